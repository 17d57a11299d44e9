"""A whole response as a gateway wire carries it: in CGI form (RFC 3875 6) or in HTTP form."""

from __future__ import annotations

import re

from tests.conformance.clients.http import parse_fields, parse_length
from tests.conformance.messages import Broken, Response

_STATUS = re.compile(r"([1-5][0-9][0-9])(?: (.*))?")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: ([\t -~\x80-\xff]*))?")


def split_head(data: bytes) -> tuple[bytes, bytes]:
    """Return (head, body). Raise ``Broken`` when there is no end of head."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        raise Broken("no answer came" if not data else f"no end of a head in {data[:80]!r}")
    return head, body


def find_body(data: bytes) -> bytes:
    """The body as far as it has come."""
    return data.partition(b"\r\n\r\n")[2]


def parse_response(data: bytes, ended: bool, method: str) -> Response:
    """Return the response to ``method`` that ``data`` is. ``ended``: the wire says that it ended in order.

    Incomplete is also what is shorter than its Content-Length. Raise ``Broken`` for a head that is none.
    """
    head, body = split_head(data)
    lines = head.split(b"\r\n")
    first = _STATUS_LINE.fullmatch(lines[0])
    fields = parse_fields(lines[1:] if first else lines)
    status, reason = 200, "OK"
    if first:
        status, reason = int(first[1]), (first[2] or b"").decode("latin-1")
    else:
        said = [value for name, value in fields if name.lower() == "status"]
        fields = tuple(pair for pair in fields if pair[0].lower() != "status")
        if said:
            match = _STATUS.fullmatch(said[0])
            if match is None or len(said) > 1:
                raise Broken(f"Status is {said}")
            status, reason = int(match[1]), match[2] or ""
        elif any(name.lower() == "location" for name, _ in fields):
            status, reason = 302, "Found"
    length = parse_length([value for name, value in fields if name.lower() == "content-length"])
    bodiless = method == "HEAD" or status in (204, 304)
    short = length is not None and len(body) < length and not bodiless
    fault = "" if ended else "the response was cut"
    if body and bodiless:
        fault = f"a body in a {status} to {method}: {body[:40]!r}"
    return Response(status, reason, fields, body, ended and not short, fault=fault)
