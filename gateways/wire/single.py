"""What wires with one request a connection have in common (cgi, scgi, uwsgi): a response body without framing.

Knows no format of a request or a head.
"""

from __future__ import annotations


class SingleExchange:
    """The methods of ``core.interfaces.Wire`` that are the same where a connection carries one request.

    ``_left``: bytes of the request body that have not come.
    """

    __slots__ = ()

    _left: int
    peer_is_done = True
    announces_end = True
    request_id = 0

    def body_complete(self) -> bool:
        """True when CONTENT_LENGTH bytes have come."""
        return not self._left

    def take_output(self) -> bytes:
        """Return nothing: input causes no output here."""
        return b""

    def format_body(self, data: bytes) -> bytes:
        """Return ``data``: a body has no framing, its length or the end of the connection ends it."""
        return data

    def format_frame(self, size: int) -> tuple[bytes, bytes] | None:
        """Return nothing before and nothing after."""
        return b"", b""

    def format_end(self) -> bytes:
        """Return nothing: the end of the connection follows."""
        return b""

    def format_abort(self) -> bytes:
        """Return nothing: a body shorter than its length tells, or the connection's reset."""
        return b""
