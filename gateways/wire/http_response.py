"""How a response of HTTP/1.0 or 1.1 is framed (RFC 9112 6): decisions as pure functions, and the framed bytes.

Knows no connection. Names and values of fields are checked in ``gateways.core.response``.
"""

from __future__ import annotations

from gateways.wire.http_head import CONNECT, HEAD, OLD

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

PENDING, UNFRAMED, SIZED, IN_CHUNKS, TO_END = range(5)
"""How a response's body is framed: not known yet; there is none; by its length; chunked; by the connection's end."""


def is_special(flags: int, code: int) -> bool:
    """True when the request's method or the status decides about the body, whatever the application gives."""
    return flags & (HEAD | CONNECT) != 0 or code < 200 or code == 204 or code == 304


def plan_special(flags: int, code: int, length: int | None, size: int) -> tuple[int, int | None, bool]:
    """Return (framing, Content-Length to send or ``None``, whether to close) of a special response.

    ``length`` is the application's Content-Length; ``size`` the bytes of the body that GET would get, 0 if not known.
    """
    if code < 200:
        # Not a final response: the client would take the next one for it (RFC 9110 15.2).
        return UNFRAMED, None, True
    if code == 204:
        return UNFRAMED, None, False
    if code == 304:
        return UNFRAMED, length, False
    if flags & CONNECT:
        # After a 2xx the client takes what follows for a tunnel, whose end is the connection's (RFC 9110 9.3.6).
        return TO_END, None if code < 300 else length, True
    # HEAD: what GET would have sent, if that is known (RFC 9110 8.6).
    return UNFRAMED, size or None if length is None else length, False


def plan_pieces(flags: int, length: int | None) -> int:
    """Return the framing of a body that follows in pieces. HTTP/1.0 has no chunked coding (RFC 9112 6.1)."""
    if length is not None:
        return SIZED
    return TO_END if flags & OLD else IN_CHUNKS


def format_piece(framing: int, data: bytes) -> bytes:
    """Return one piece of body, framed; ``b""`` gives ``b""``, because a chunk of no bytes would be the last."""
    if not data or framing == UNFRAMED:
        return b""
    if framing == IN_CHUNKS:
        return b"%x\r\n%b\r\n" % (len(data), data)
    return data
