"""One request to a running server over any wire, in the words of the client encoders: (status, body)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.clients import ajp, fastcgi, scgi, uwsgi
from tests.clients.document import parse_document
from tests.servers import DEADLINE, Server, read_to_end

WIRES = ("http", "fastcgi", "scgi", "ajp", "uwsgi")


class Answer(NamedTuple):
    """``length``: the Content-Length that was stated, -1 for none."""

    status: int
    body: bytes
    length: int


def variables(path: str, body: bytes | None) -> list[tuple[bytes, bytes]]:
    """What a front server says of a request, without CONTENT_LENGTH."""
    return [
        (b"REQUEST_METHOD", b"GET" if body is None else b"POST"), (b"SCRIPT_NAME", b""), (b"PATH_INFO", path.encode()),
        (b"QUERY_STRING", b""), (b"REQUEST_URI", path.encode()), (b"SERVER_PROTOCOL", b"HTTP/1.1"),
        (b"REMOTE_ADDR", b"192.0.2.7"), (b"SERVER_NAME", b"www.example.com"), (b"SERVER_PORT", b"80"),
    ]  # fmt: skip


def ask_http(server: Server, path: str, body: bytes | None) -> Answer:
    method = "GET" if body is None else "POST"
    length = "" if body is None else f"Content-Length: {len(body)}\r\n"
    head = f"{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{length}\r\n".encode()
    return parse_http(server.exchange(head + (body or b""), "http"))


def parse_http(data: bytes) -> Answer:
    answer = uwsgi.parse_answer(data)
    return Answer(answer.status, answer.body, int(answer.get("Content-Length") or -1))


def ask_fastcgi(server: Server, path: str, body: bytes | None) -> Answer:
    pairs = [*variables(path, body), (b"CONTENT_LENGTH", b"" if body is None else b"%d" % len(body))]
    answer = fastcgi.parse_answer(server.exchange(fastcgi.request(pairs, body or b""), "fastcgi"))
    assert answer.ends == [(0, 0)]
    assert answer.err == b""
    return from_document(answer.out)


def from_document(data: bytes) -> Answer:
    document = parse_document(data)
    return Answer(document.status, document.body, int((document.get("content-length") or ["-1"])[0]))


def ask_scgi(server: Server, path: str, body: bytes | None) -> Answer:
    return from_document(server.exchange(scgi.request(variables(path, body), body or b""), "scgi"))


def ask_ajp(server: Server, path: str, body: bytes | None) -> Answer:
    fields = [("Host", "h")] + ([] if body is None else [("Content-Length", str(len(body)))])
    request = ajp.forward("GET" if body is None else "POST", path, fields)
    with server.connect(wire="ajp") as sock:
        answer = ajp.Front(sock).exchange(request, body or b"")
        assert answer.reuse is True
    return Answer(answer.status, answer.body, int(answer.get("Content-Length") or -1))


def ask_uwsgi(server: Server, path: str, body: bytes | None) -> Answer:
    length = b"" if body is None else b"%d" % len(body)
    data = uwsgi.packet([*variables(path, body), (b"CONTENT_LENGTH", length)], body or b"")
    with server.connect(DEADLINE, "uwsgi") as sock:
        sock.sendall(data)
        return parse_http(read_to_end(sock))


ASK: dict[str, Callable[[Server, str, bytes | None], Answer]] = {
    "http": ask_http, "fastcgi": ask_fastcgi, "scgi": ask_scgi, "ajp": ask_ajp, "uwsgi": ask_uwsgi,
}  # fmt: skip
"""Wire -> how to ask: ``ask(server, path, body)``; no body makes it a GET."""
