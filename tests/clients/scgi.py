"""The front server's side of SCGI, from the specification alone."""

from __future__ import annotations

from collections.abc import Iterable

Pairs = Iterable[tuple[bytes, bytes]]


def netstring(content: bytes) -> bytes:
    """``<length>:<content>,``"""
    return b"%d:" % len(content) + content + b","


def headers(pairs: Pairs) -> bytes:
    """``name NUL value NUL`` for each pair."""
    return b"".join(name + b"\0" + value + b"\0" for name, value in pairs)


def scgi(pairs: Pairs, body: bytes = b"") -> bytes:
    """A request of exactly these pairs."""
    return netstring(headers(pairs)) + body


def request(pairs: Pairs, body: bytes = b"") -> bytes:
    """A request as a front server sends it: CONTENT_LENGTH first, then ``SCGI``."""
    return scgi([(b"CONTENT_LENGTH", b"%d" % len(body)), (b"SCGI", b"1"), *pairs], body)
