"""uwsgi as a front server speaks it: a packet of variables, and an answer in HTTP form. Imports nothing of ours."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

Pairs = Sequence[tuple[bytes, bytes]]


def block(pairs: Pairs) -> bytes:
    """A block of variables."""
    return b"".join(
        struct.pack("<H", len(name)) + name + struct.pack("<H", len(value)) + value for name, value in pairs
    )


def packet(pairs: Pairs, body: bytes = b"", modifier1: int = 0, modifier2: int = 0) -> bytes:
    """A packet and what follows it."""
    variables = block(pairs)
    return struct.pack("<BHB", modifier1, len(variables), modifier2) + variables + body


def request(
    method: bytes = b"GET", path: bytes = b"/x", query: bytes = b"", more: Pairs = (), body: bytes | None = None
) -> bytes:
    """A request as nginx sends one with its own ``uwsgi_params``."""
    pairs = [
        (b"QUERY_STRING", query), (b"REQUEST_METHOD", method), (b"CONTENT_TYPE", b""),
        (b"CONTENT_LENGTH", b"" if body is None else b"%d" % len(body)),
        (b"REQUEST_URI", path + (b"?" + query if query else b"")), (b"PATH_INFO", path),
        (b"DOCUMENT_ROOT", b"/srv"), (b"SERVER_PROTOCOL", b"HTTP/1.1"), (b"REQUEST_SCHEME", b"http"),
        (b"REMOTE_ADDR", b"192.0.2.7"), (b"REMOTE_PORT", b"40000"), (b"SERVER_PORT", b"80"),
        (b"SERVER_NAME", b"www.example.com"), (b"HTTP_HOST", b"www.example.com"), *more,
    ]  # fmt: skip
    return packet(pairs, body or b"")


class Answer(NamedTuple):
    """An answer in HTTP form; the body is everything to the connection's end."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes

    def get(self, name: str) -> str | None:
        """The value of the only field of this name."""
        values = [value for key, value in self.fields if key.lower() == name.lower()]
        assert len(values) < 2
        return values[0] if values else None

    @property
    def whole(self) -> bool:
        """True when the body is as long as the head says, or the head says nothing."""
        length = self.get("Content-Length")
        return length is None or int(length) == len(self.body)


def parse_answer(data: bytes) -> Answer:
    """The answer in ``data``."""
    head, found, body = data.partition(b"\r\n\r\n")
    assert found, data[:80]
    first, *lines = head.decode("latin-1").split("\r\n")
    assert first.startswith("HTTP/1.1 "), first
    fields = [tuple(line.split(": ", 1)) for line in lines]
    return Answer(int(first[9:12]), fields, body)  # type: ignore[arg-type]
