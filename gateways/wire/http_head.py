"""Request heads of HTTP/1.0 and 1.1, strictly as RFC 9112 has them: text in, a request and its framing out.

Pure. Knows no connection and no body. A head that is right is read by two regular expressions; only one that is not, or
is long, is walked line by line (``scan_lines``), by the same walk that checks a head while it arrives, so that the
answer does not depend on how the bytes were cut.
"""

from __future__ import annotations

import re

from gateways.core.errors import RemoteProtocolError
from gateways.core.request import FieldPairs, FieldRequest
from gateways.wire.http_target import CHECKED_AUTHORITIES, check_authority, normalize_authority, parse_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.limits import WireLimits
    from gateways.core.request import Endpoint

KEEP, OLD, HEAD, CONNECT, EXPECT = 1, 2, 4, 8, 16
"""Flags of a request: its connection may be kept; it is HTTP/1.0; a HEAD; a CONNECT; it waits for 100-continue."""

TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]"
_METHOD = r"[!#$%&'*+.^_`|~0-9A-Z-]++"
# A path without escape or fragment, the query apart: what nearly every request has.
_PLAIN_LINE = re.compile(rf"({_METHOD}) ((/[!\"$&->@-~\x80-\xff]*+)(?:\?([!\"$-~\x80-\xff]*+))?+) HTTP/1\.([01])\r\n")
_REQUEST_LINE = re.compile(rf"({_METHOD}) ([!-~\x80-\xff]++) HTTP/1\.([01])\r\n")
_OTHER_VERSION = re.compile(r"[^ ]+ [^ ]+ HTTP/[0-9]+\.[0-9]+\r\n")
_FIELD_LINE = re.compile(rf"^({TOKEN}++):[ \t]*+([\t -~\x80-\xff]*+)\r\n", re.MULTILINE)
_LENGTH = re.compile(r"[0-9]{1,18}")
_CODING = re.compile(rf"{TOKEN}++")

_match_plain_line = _PLAIN_LINE.match
find_fields = _FIELD_LINE.findall

_SPECIAL = frozenset({"host", "content-length", "transfer-encoding", "connection", "expect", "content-type"})
_SINGLE = {
    "host": "RFC 9112 3.2",
    "content-length": "RFC 9112 6.3",
    "content-type": "RFC 9110 5.3",
}
"""Fields that may come once, and the section that says so."""

ALIAS = "_"
"""The kind of a name with ``_``, which would become the same meta-variable as one with ``-``: dropped."""

_MEMO_ENTRIES = 512
_MEMO_NAME = 64


class _FieldKinds(dict[str, str]):
    """A bounded memo: field name -> its lower-case name if that matters here, ``ALIAS``, or ``""`` for all others."""

    def __missing__(self, name: str) -> str:
        lower = name.lower()
        kind = ALIAS if "_" in name else lower if lower in _SPECIAL else ""
        if len(self) < _MEMO_ENTRIES and len(name) <= _MEMO_NAME:
            self[name] = kind
        return kind


_FIELD_KINDS = _FieldKinds()
ParsedFields = tuple[list[tuple[str, str]], int, int | None, str | None]
"""Pairs, flags, Content-Length (``None``: chunked) and Host of a field section."""
_SECTIONS: dict[str, dict[str, ParsedFields]] = {"0": {}, "1": {}}
_MEMO_SECTION = 1024
_MEMO_SECTIONS = 64
_PROTOCOLS = {"0": "HTTP/1.0", "1": "HTTP/1.1"}
_PERSISTENCE = {"0": OLD, "1": KEEP}
"""The flags of a head without special fields: HTTP/1.1 is kept, HTTP/1.0 is not (RFC 9112 9.3)."""


def parse_head(text: str, limits: WireLimits, endpoint: Endpoint, peer: object) -> tuple[FieldRequest, int]:
    """Return the request of a complete head (``text`` ends with the empty line) and its flags.

    The request's ``content_length`` is ``None`` for a chunked body. Raise ``RemoteProtocolError``.
    """
    match = _match_plain_line(text)
    if match is None:
        return _parse_unusual(text, limits, endpoint, peer)
    method, target, path, query, minor = match.groups("")
    pairs, flags, length, _ = recall_fields(text, match.end(), minor, limits)
    if method == "HEAD":
        flags |= HEAD
    elif method == "CONNECT":
        parse_target(method, target)
    return FieldRequest(endpoint, peer, method, target, path, query, _PROTOCOLS[minor], pairs, length), flags


def _parse_unusual(text: str, limits: WireLimits, endpoint: Endpoint, peer: object) -> tuple[FieldRequest, int]:
    """Return what ``parse_head`` does, for a target with an escape or fragment, or one that is no path."""
    match = _REQUEST_LINE.match(text)
    if match is None:
        raise refuse_head(text, limits)
    method, target, minor = match.groups()
    pairs, flags, length, host = recall_fields(text, match.end(), minor, limits)
    path, query, scheme, authority = parse_target(method, target)
    if authority and host is None:
        pairs = [*pairs, ("Host", authority)]
    elif authority and normalize_authority(scheme, host or "") != normalize_authority(scheme, authority):
        raise RemoteProtocolError("Host is not the host of the request-target", 400, "RFC 9112 3.2")
    if method == "HEAD":
        flags |= HEAD
    elif method == "CONNECT":
        # What follows a CONNECT would be a tunnel's bytes, never a request (RFC 9110 9.3.6).
        flags = (flags | CONNECT) & ~KEEP
    return FieldRequest(endpoint, peer, method, target, path, query, _PROTOCOLS[minor], pairs, length), flags


def recall_fields(text: str, start: int, minor: str, limits: WireLimits) -> ParsedFields:
    """Return what ``parse_fields`` does; the list of pairs may be shared between requests, and is not to be changed.

    Clients and front servers send the same fields again and again, so short sections without a body are remembered, a
    bounded number of them (`bench floor`, keep c=10: 2 of 19 us a request). Equal text has an equal answer, whoever
    sent it.
    """
    section = text[start:]
    memo = _SECTIONS[minor]
    known = memo.get(section)
    if known is not None and len(text) <= limits.shortest and len(known[0]) <= limits.fields:
        return known
    parsed = parse_fields(text, start, minor, limits)
    if parsed[2] == 0 and len(section) <= _MEMO_SECTION:
        if len(memo) >= _MEMO_SECTIONS:
            del memo[next(iter(memo))]
        parsed = (FieldPairs(parsed[0]), *parsed[1:])
        memo[section] = parsed
    return parsed


def parse_fields(text: str, start: int, minor: str, limits: WireLimits) -> ParsedFields:
    """Return (pairs, flags, content_length, host) of the field lines from ``start`` to the end of a head."""
    pairs: list[tuple[str, str]] = find_fields(text, start, len(text) - 2)
    # Each line gives at most one match, and only a line that is right as a whole gives one.
    lines = text.count("\n") - 2
    if len(pairs) != lines or lines > limits.fields:
        raise refuse_head(text, limits)
    if len(text) > limits.shortest:
        scan_lines(text, 0, 0, limits)
    if " \r\n" in text or "\t\r\n" in text:
        pairs = [(name, value.rstrip(" \t")) for name, value in pairs]
    seen: dict[str, str] = {}
    kinds = _FIELD_KINDS
    for name, value in pairs:
        kind = kinds[name]
        if kind:
            seen[kind] = value if kind not in seen else _join_repeated(kind, seen[kind], value)
    host = seen.pop("host", None)
    if host is not None:
        if host not in CHECKED_AUTHORITIES:
            check_authority(host)
    elif minor == "1":
        raise RemoteProtocolError("an HTTP/1.1 request has no Host", 400, "RFC 9112 3.2")
    flags = _PERSISTENCE[minor]
    if "connection" in seen:
        flags = parse_connection(seen.pop("connection"), flags)
    if not seen:
        return pairs, flags, 0, host
    if ALIAS in seen:
        pairs = [pair for pair in pairs if "_" not in pair[0]]
    length = parse_length(seen, minor, limits)
    if "expect" in seen:
        flags |= parse_expect(seen["expect"], minor)
    return pairs, flags, length, host


def _join_repeated(kind: str, first: str, second: str) -> str:
    if kind in _SINGLE:
        raise RemoteProtocolError(f"the field {kind} came twice", 400, _SINGLE[kind])
    return f"{first}, {second}"


def parse_length(seen: dict[str, str], minor: str, limits: WireLimits) -> int | None:
    """Return the length of the body that the special fields ``seen`` announce; ``None`` for a chunked one."""
    if "transfer-encoding" in seen:
        if minor == "0":
            raise RemoteProtocolError("an HTTP/1.0 request has a Transfer-Encoding", 400, "RFC 9112 6.1")
        if "content-length" in seen:
            raise RemoteProtocolError("both Content-Length and Transfer-Encoding came", 400, "RFC 9112 6.3")
        check_transfer_coding(seen["transfer-encoding"])
        return None
    return parse_content_length(seen["content-length"], limits) if "content-length" in seen else 0


def parse_expect(value: str, minor: str) -> int:
    """Return EXPECT for an expectation that holds; HTTP/1.0 has none. Raise 417 for one that is not known."""
    if value.lower() != "100-continue":
        raise RemoteProtocolError("the only expectation known is 100-continue", 417, "RFC 9110 10.1.1")
    return EXPECT if minor == "1" else 0


def parse_connection(value: str, flags: int) -> int:
    """Return ``flags`` with KEEP as the Connection field has it (RFC 9112 9.3): close wins, 1.0 must ask to be kept."""
    options = value.lower()
    if options == "keep-alive":
        return flags | KEEP
    words = [word.strip(" \t") for word in options.split(",")]
    if "close" in words:
        return flags & ~KEEP
    return flags | KEEP if "keep-alive" in words else flags


def parse_content_length(value: str, limits: WireLimits) -> int:
    """Return a Content-Length: digits only, no list (RFC 9110 8.6); ``010`` is ten."""
    if _LENGTH.fullmatch(value) is None:
        raise RemoteProtocolError(f"Content-Length {value[:40]!r} is not a number", 400, "RFC 9110 8.6")
    length = int(value)
    if length > limits.body:
        raise RemoteProtocolError(f"the request body is longer than {limits.body} bytes", 413, "RFC 9110 15.5.14")
    return length


def check_transfer_coding(value: str) -> None:
    """Raise unless ``value`` is ``chunked``: 501 for a coding that is not known, 400 for what is no list of codings."""
    if value.lower() == "chunked":
        return
    codings = [coding.strip(" \t").lower() for coding in value.split(",")]
    if not all(_CODING.fullmatch(coding) for coding in codings):
        raise RemoteProtocolError(f"Transfer-Encoding {value[:40]!r} is malformed", 400, "RFC 9112 6.1")
    if "chunked" in codings[:-1]:
        raise RemoteProtocolError("chunked is not the only, last transfer coding", 400, "RFC 9112 6.1")
    raise RemoteProtocolError(f"the transfer coding {codings[0][:40]} is not implemented", 501, "RFC 9112 6.1")


def scan_lines(text: str, offset: int, lines: int, limits: WireLimits) -> tuple[int, int]:
    """Check the complete lines of a head, and the length of an incomplete last one.

    ``text`` starts with a line; before it the head has ``offset`` bytes in ``lines`` lines. Return both as they are
    after the last complete line. Raise ``RemoteProtocolError`` for the first fault, complete head or not;
    the empty line that ends a head is no fault.
    """
    if lines == 0 and text[:1] == "\x16":
        raise RemoteProtocolError("a TLS handshake came where plain HTTP is spoken", 400, "RFC 9112 3")
    start = 0
    while True:
        newline = text.find("\n", start)
        end = newline + 1 or len(text)
        if lines == 0 and end - start > limits.request_line:
            raise RemoteProtocolError(f"the request line is longer than {limits.request_line} bytes", 414, "RFC 9112 3")
        if lines > 0 and end - start > limits.field:
            raise RemoteProtocolError(f"a field line is longer than {limits.field} bytes", 431, "RFC 9110 5.4")
        if offset + end > limits.head:
            raise RemoteProtocolError(f"the head is longer than {limits.head} bytes", 431, "RFC 9110 5.4")
        if newline < 0:
            return offset + start, lines
        check_line(text[start:end], lines, limits)
        start = end
        lines += 1


def check_line(line: str, lines: int, limits: WireLimits) -> None:
    """Raise unless ``line``, with ``lines`` before it in its head, is one that may stand there."""
    if lines == 0:
        if _REQUEST_LINE.fullmatch(line) is None:
            raise refuse_request_line(line)
    elif line != "\r\n":
        if _FIELD_LINE.fullmatch(line) is None:
            raise refuse_field_line(line)
        if lines > limits.fields:
            raise RemoteProtocolError(f"more than {limits.fields} fields came", 431, "RFC 9110 5.4")


def refuse_head(text: str, limits: WireLimits) -> RemoteProtocolError:
    """Return the first error of a complete head that has one."""
    try:
        scan_lines(text, 0, 0, limits)
    except RemoteProtocolError as error:
        return error
    return RemoteProtocolError("the request head is malformed", 400, "RFC 9112 2.1")


def refuse_request_line(line: str) -> RemoteProtocolError:
    """Return the error that says what is wrong with a request line (with its line end)."""
    if not line.endswith("\r\n"):
        return RemoteProtocolError("the request line does not end with CRLF", 400, "RFC 9112 2.2")
    if _OTHER_VERSION.fullmatch(line):
        if _REQUEST_LINE.fullmatch(line[: line.rindex("/")] + "/1.1\r\n"):
            return RemoteProtocolError("the HTTP version is not 1.0 or 1.1", 505, "RFC 9112 2.3")
        return RemoteProtocolError("the method or the target has a character it may not have", 400, "RFC 9112 3")
    return RemoteProtocolError("the request line is not: method target HTTP/version", 400, "RFC 9112 3")


def refuse_field_line(line: str) -> RemoteProtocolError:
    """Return the error that says what is wrong with a field line (with its line end)."""
    name, colon, _ = line.partition(":")
    if not line.endswith("\r\n") or "\r" in line[:-2]:
        return RemoteProtocolError("a field line holds a bare CR or ends with a bare LF", 400, "RFC 9112 2.2")
    if line[0] in " \t":
        return RemoteProtocolError("a field line starts with whitespace (folding)", 400, "RFC 9112 5.2")
    if not colon:
        return RemoteProtocolError("a field line has no colon", 400, "RFC 9112 5")
    if name[-1:] in (" ", "\t"):
        return RemoteProtocolError("a field name is followed by whitespace", 400, "RFC 9112 5.1")
    if _CODING.fullmatch(name) is None:
        return RemoteProtocolError(f"the field name {name[:40]!r} is not a token", 400, "RFC 9110 5.1")
    return RemoteProtocolError(f"the field {name[:40]} holds a control character", 400, "RFC 9110 5.5")
