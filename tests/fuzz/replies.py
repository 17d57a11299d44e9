"""What a wire sent for one request, read strictly by the clients of ``tests.clients``; any fault is an assertion."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.clients import ajp, fastcgi, uwsgi
from tests.clients.document import parse_document


class Reply(NamedTuple):
    """One response. ``status``: 0 when there was none. ``keep``: what the peer was told of the connection.

    ``whole``: the peer can tell that nothing is missing, or that something is. Each is ``None`` when the wire does not
    say, because only the end of the connection would tell.
    """

    status: int
    body: bytes
    keep: bool | None
    whole: bool | None


_STATUS_LINE = re.compile(r"HTTP/1\.1 ([1-5][0-9]{2}) [^\r\n\0]*")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([^\r\n\0]*)")
_SINGLE = ("connection", "content-length", "date", "server", "transfer-encoding")
_CHUNK = re.compile(rb"([0-9a-f]+)\r\n")


def read_http(data: bytes, method: str) -> Reply:
    """An HTTP/1.1 response to a request of ``method`` (RFC 9112)."""
    head, found, rest = data.partition(b"\r\n\r\n")
    assert found, f"no end of head in {data[:100]!r}"
    first, *lines = head.decode("latin-1").split("\r\n")
    line = _STATUS_LINE.fullmatch(first)
    assert line, first
    status = int(line[1])
    fields: dict[str, str] = {}
    for text in lines:
        pair = _FIELD.fullmatch(text)
        assert pair, text
        name = pair[1].lower()
        assert name not in fields or name not in _SINGLE, text
        fields[name] = pair[2]
    keep = fields.get("connection") != "close"
    length, coding = fields.get("content-length"), fields.get("transfer-encoding")
    assert length is None or coding is None
    if method == "HEAD" or status < 200 or status in (204, 304):
        assert not rest, rest
        return Reply(status, b"", keep, True)
    if method == "CONNECT" and status < 300:
        assert not keep
        return Reply(status, rest, keep, None)
    if coding is not None:
        assert coding == "chunked"
        body, whole = read_chunks(rest)
        return Reply(status, body, keep, whole)
    if length is not None:
        assert len(rest) <= int(length)
        return Reply(status, rest, keep, len(rest) == int(length))
    assert not keep
    return Reply(status, rest, keep, None)


def read_chunks(data: bytes) -> tuple[bytes, bool]:
    """The body of a chunked response that ends with its chunks, and whether its last chunk came."""
    body, at = b"", 0
    while at < len(data):
        size = _CHUNK.match(data, at)
        assert size, data[at : at + 20]
        count = int(size[1], 16)
        if not count:
            assert data[at:] == b"0\r\n\r\n"
            return body, True
        body += data[size.end() : size.end() + count]
        at = size.end() + count + 2
        assert data[at - 2 : at] == b"\r\n"
    return body, False


def read_fastcgi(data: bytes, _method: str) -> Reply:
    """The records of one request; what belongs to others, or to the connection, is only split into records."""
    if data.startswith(b"HTTP/1.0 "):
        return read_plain(data)
    records = fastcgi.parse_records(data)
    ids = {record.rid for record in records if record.kind == fastcgi.STDOUT}
    assert len(ids) < 2
    if not ids:
        return Reply(0, b"", None, any(record.kind == fastcgi.END for record in records))
    # Before it, an aborted request of the same id may have been ended.
    first = next(number for number, record in enumerate(records) if record.kind == fastcgi.STDOUT)
    start = sum(8 + len(record.content) + record.pad for record in records[:first])
    answer = fastcgi.parse_answer(data[start:], ids.pop())
    assert len(answer.ends) < 2
    return Reply(answer.document.status, answer.document.body, None, bool(answer.ends))


def read_plain(data: bytes) -> Reply:
    """What one gets who speaks HTTP on another wire's port."""
    head, found, body = data.partition(b"\r\n\r\n")
    assert found
    assert b"\r\nConnection: close" in head
    return Reply(int(head[9:12]), body, False, None)


def read_scgi(data: bytes, method: str) -> Reply:
    """A document in CGI form; its Content-Length, if any, tells whether it is whole."""
    if data.startswith(b"HTTP/1.0 "):
        return read_plain(data)
    document = parse_document(data)
    return Reply(document.status, document.body, False, is_whole(document.get("content-length"), document, method))


def is_whole(lengths: list[str], document: object, method: str) -> bool | None:
    """Whether a body is as long as stated; ``None`` when nothing is stated or nothing may follow."""
    assert len(lengths) < 2
    body: bytes = getattr(document, "body")  # noqa: B009
    status: int = getattr(document, "status")  # noqa: B009
    if not lengths or method == "HEAD" or status in (204, 304):
        return None
    assert len(body) <= int(lengths[0])
    return len(body) == int(lengths[0])


def read_uwsgi(data: bytes, method: str) -> Reply:
    """A response in HTTP form."""
    answer = uwsgi.parse_answer(data)
    length = answer.get("Content-Length")
    return Reply(answer.status, answer.body, False, is_whole([] if length is None else [length], answer, method))


def read_ajp(data: bytes, _method: str) -> Reply:
    """The packets of one response, with what was asked for before it."""
    answer = ajp.parse_answer(data)
    assert all(size <= 8192 for size in answer.sizes)
    return Reply(answer.status, answer.body, answer.reuse, answer.reuse is not None)
