"""HTTP/1.0 and HTTP/1.1 on one connection (RFC 9112), strictly: bytes in, requests and bodies out; responses to bytes.

Sans-I/O: knows no socket, no clock and no application. What may stand in a head is ``http_head``'s business, the
chunked coding ``http_chunked``'s, what a target means ``http_target``'s; this module keeps a connection's place.

After an error, and after a response that ends the connection, no further byte is looked at.
"""

from __future__ import annotations

from gateways.core.errors import BodyIncomplete, LengthMismatch, RemoteProtocolError
from gateways.core.request import SERVER_SOFTWARE
from gateways.core.response import STATUS_CODES, encode_head, format_fields
from gateways.wire.http_chunked import ChunkedDecoder
from gateways.wire.http_head import EXPECT, KEEP, OLD, parse_head, scan_lines
from gateways.wire.http_response import (
    CONTINUE,
    IN_CHUNKS,
    PENDING,
    SIZED,
    TO_END,
    format_piece,
    is_special,
    plan_pieces,
    plan_special,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gateways.core.interfaces import FieldList
    from gateways.core.limits import WireLimits
    from gateways.core.request import Endpoint, FieldRequest

_SERVER = f"Server: {SERVER_SOFTWARE}\r\n"


class HTTPWire:
    """One connection's HTTP state; see ``gateways.core.interfaces.Wire`` for the methods' contract.

    ``peer`` is the address as accepted. ``date`` gives the value of the Date field (IMF-fixdate); without it no Date is
    sent. Whoever drives the wire has the clock, and caches the text for a second.
    """

    __slots__ = (
        "_buffer",
        "_checked",
        "_chunked",
        "_closed",
        "_date",
        "_ended",
        "_endpoint",
        "_error",
        "_flags",
        "_framing",
        "_kept",
        "_limits",
        "_lines",
        "_output",
        "_peer",
        "_remaining",
        "_request",
        "_searched",
        "_skipped",
    )

    request_id = 0
    announces_end = True

    def __init__(
        self, endpoint: Endpoint, peer: object, limits: WireLimits, date: Callable[[], str] | None = None
    ) -> None:
        self._endpoint = endpoint
        self._peer = peer
        self._limits = limits
        self._date = date
        self._buffer: bytes | bytearray = b""
        self._output = b""
        self._error: RemoteProtocolError | None = None
        # The peer will send no more; no further byte is looked at.
        self._ended = self._closed = False
        self._begin()

    def _begin(self) -> None:
        """Forget the exchange: what comes next is a request."""
        self._request: FieldRequest | None = None
        self._chunked: ChunkedDecoder | None = None
        # Body bytes, framed by Content-Length, that were not taken.
        self._remaining = 0
        self._flags = 0
        self._framing = PENDING
        self._kept = self._skipped = False
        # Of a head that is not complete: where to look for its end, and how much of it was checked.
        self._searched = self._checked = self._lines = 0

    # Input.

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer; ``b""`` means that the peer will send no more."""
        if not data:
            self._ended = True
        elif self._closed:
            return
        elif not self._buffer:
            self._buffer = data
        else:
            if isinstance(self._buffer, bytes):
                self._buffer = bytearray(self._buffer)
            self._buffer += data

    def take_request(self) -> FieldRequest | None:
        """Return the next request once its head is complete; raise ``RemoteProtocolError`` if it never can be."""
        data = self._buffer
        if self._closed or not data:
            if self._error is not None:
                raise self._error
            return None
        end = data.find(b"\r\n\r\n", self._searched) + 4
        if end == 3 or data[0] == 13:
            return self._wait_for_head()
        try:
            if end == len(data):
                request, flags = parse_head(str(data, "latin-1"), self._limits, self._endpoint, self._peer)
                self._buffer = b""
            else:
                request, flags = parse_head(str(data[:end], "latin-1"), self._limits, self._endpoint, self._peer)
                self._drop(end)
        except RemoteProtocolError as error:
            self._fail(error)
            raise
        self._request = request
        self._flags = flags
        length = request.content_length
        if length is None:
            self._chunked = ChunkedDecoder(self._limits)
        else:
            self._remaining = length
        return request

    def _wait_for_head(self) -> FieldRequest | None:
        """Check as much of an incomplete head as has arrived; raise as soon as it can not become a request."""
        if self._buffer[0] == 13 and not self._skipped and self._lines == 0:
            # One empty line may come before a request line (RFC 9112 2.2).
            if self._buffer[:2] == b"\r\n":
                self._drop(2)
                self._skipped = True
                return self.take_request()
            if len(self._buffer) == 1 and not self._ended:
                return None
        try:
            if self._ended:
                raise RemoteProtocolError("the input ended in the middle of a request head", 400, "RFC 9112 8")
            text = str(self._buffer[self._checked :], "latin-1")
            self._checked, self._lines = scan_lines(text, self._checked, self._lines, self._limits)
        except RemoteProtocolError as error:
            self._fail(error)
            raise
        self._searched = max(len(self._buffer) - 3, 0)
        return None

    def _drop(self, count: int) -> None:
        """Forget the first ``count`` buffered bytes."""
        if isinstance(self._buffer, bytearray) and count < len(self._buffer):
            del self._buffer[:count]
        else:
            self._buffer = bytes(self._buffer[count:])

    def _fail(self, error: RemoteProtocolError) -> None:
        """End the input: an answer can still be formatted, but nothing more is parsed."""
        self._error = error
        self._closed = True
        self._kept = False
        self._buffer = b""

    # Request bodies.

    def body_ready(self) -> bool:
        """True when the application may be called without waiting for the peer; raise for a malformed body."""
        if (not self._remaining and self._chunked is None) or self._body_arrived():
            return True
        held = self.buffered
        if held >= self._limits.buffered_body:
            return True
        if self._ended:
            error = RemoteProtocolError("the input ended in the middle of a request body", 400, "RFC 9112 8")
            self._fail(error)
            raise error
        return not held and bool(self._flags & EXPECT)

    def _body_arrived(self) -> bool:
        """Decode what has arrived; True when that is the whole body. Raise for a malformed one."""
        if self._error is not None:
            raise self._error
        chunked = self._chunked
        if chunked is None:
            return len(self._buffer) >= self._remaining
        if self._buffer and not chunked.complete:
            try:
                self._drop(chunked.feed(self._buffer))
            except RemoteProtocolError as error:
                self._fail(error)
                raise
        return chunked.complete

    def take_body(self, size: int) -> bytes | None:
        """Return at most ``size`` bytes of the request body; ``b""`` at its end; ``None`` when more input is needed."""
        chunked = self._chunked
        if chunked is not None:
            arrived = self._body_arrived()
            if chunked.held:
                return chunked.take(size)
            if arrived:
                return b""
            self._ask_for_body()
            return None
        if not self._remaining:
            return b""
        if not self._buffer:
            self._ask_for_body()
            return None
        data = self._buffer
        count = min(size, self._remaining, len(data))
        self._remaining -= count
        if count == len(data):
            self._buffer = b""
            return bytes(data)
        if isinstance(data, bytes):
            # Small reads of a large body must not copy its rest each time.
            self._buffer = bytearray(data)
        piece = bytes(data[:count])
        self._drop(count)
        return piece

    def _ask_for_body(self) -> None:
        """Ask the peer for the body, if it waits to be asked; raise when it will send no more."""
        if self._error is not None:
            raise self._error
        if self._ended:
            raise BodyIncomplete("the peer stopped sending in the middle of a request body")
        if self._flags & EXPECT:
            self._flags &= ~EXPECT
            if not self._buffer and self._framing == PENDING:
                self._output += CONTINUE

    def body_complete(self) -> bool:
        """True when the whole request body has arrived (whether or not it was taken)."""
        try:
            return (not self._remaining and self._chunked is None) or self._body_arrived()
        except RemoteProtocolError:
            return False

    def take_output(self) -> bytes:
        """Return, and forget, the bytes that input has caused to be sent."""
        output = self._output
        self._output = b""
        return output

    @property
    def has_partial_request(self) -> bool:
        """True when some bytes of a request have arrived and its head is not complete."""
        return bool(self._buffer) and self._request is None

    @property
    def buffered(self) -> int:
        """Bytes received and not yet consumed."""
        return len(self._buffer) + (self._chunked.held if self._chunked is not None else 0)

    # Responses.

    def format_response(self, status: str, fields: FieldList, body: bytes, close: bool) -> bytes:
        """Return a whole response. Raise ``LengthMismatch`` for a body of another length than the fields state."""
        code = STATUS_CODES[status]
        if is_special(self._flags, code):
            head = self._format_special(status, code, fields, len(body), close)
            return head + body if self._framing == TO_END else head
        lines, length, dated, served = format_fields(fields)
        if length is not None and length != len(body):
            raise LengthMismatch
        self._framing = SIZED
        return self._encode(status, f"{lines}Content-Length: {len(body)}\r\n", dated, served, close) + body

    def format_head(self, status: str, fields: FieldList, close: bool) -> bytes:
        """Return the response head of a body that follows in pieces."""
        code = STATUS_CODES[status]
        if is_special(self._flags, code):
            return self._format_special(status, code, fields, 0, close)
        lines, length, dated, served = format_fields(fields)
        # What could not be read as a request may have been HTTP/1.0.
        self._framing = framing = plan_pieces(self._flags if self._request is not None else OLD, length)
        if framing == SIZED:
            lines += f"Content-Length: {length}\r\n"
        elif framing == IN_CHUNKS:
            lines += "Transfer-Encoding: chunked\r\n"
        return self._encode(status, lines, dated, served, close or framing == TO_END)

    def _format_special(self, status: str, code: int, fields: FieldList, size: int, close: bool) -> bytes:
        """Return the head of a response to HEAD or CONNECT, or of a status without a body."""
        lines, length, dated, served = format_fields(fields)
        self._framing, length, last = plan_special(self._flags, code, length, size)
        if length is not None:
            lines += f"Content-Length: {length}\r\n"
        return self._encode(status, lines, dated, served, close or last)

    def _encode(self, status: str, lines: str, dated: bool, served: bool, close: bool) -> bytes:
        """Return a response head, and settle whether the connection is kept (RFC 9112 9.3, 9.6)."""
        flags = self._flags
        arrived = not self._remaining and self._chunked is None
        self._kept = kept = bool(flags & KEEP) and not close and (arrived or self.body_complete())
        connection = "Connection: close\r\n" if not kept else "Connection: keep-alive\r\n" if flags & OLD else ""
        date = "" if dated or self._date is None else f"Date: {self._date()}\r\n"
        return encode_head(f"HTTP/1.1 {status}\r\n{lines}{date}{'' if served else _SERVER}{connection}\r\n")

    def format_body(self, data: bytes) -> bytes:
        """Return one piece of body, framed."""
        return format_piece(self._framing, data)

    def format_frame(self, size: int) -> tuple[bytes, bytes]:
        """Return what goes before and after ``size`` body bytes that the driver sends by itself."""
        if size and self._framing == IN_CHUNKS:
            return b"%x\r\n" % size, b"\r\n"
        return b"", b""

    def format_end(self) -> bytes:
        """Return what ends a body sent in pieces."""
        return b"0\r\n\r\n" if self._framing == IN_CHUNKS else b""

    def format_abort(self) -> bytes:
        """Return nothing: the cut of the connection tells (RFC 9112 8)."""
        self._kept = False
        return b""

    @property
    def peer_is_done(self) -> bool:
        """True after a request that was the peer's last by its own word or version (RFC 9112 9.3, 9.6)."""
        return not self._flags & KEEP

    @property
    def cut_needs_reset(self) -> bool:
        """True when the end of the connection is what ends the response's body."""
        return self._framing == TO_END

    def finish(self) -> bool:
        """End the exchange. Return True when the connection can carry another request."""
        if not self._kept:
            self._closed = True
            self._buffer = b""
            self._request = self._error = None
            return False
        if not (self._remaining or self._searched or self._skipped) and self._chunked is None:
            # What most requests leave to be forgotten: their body was read or none, and their head came whole.
            self._request = None
            self._framing = PENDING
            self._kept = False
            self._flags = 0
            return True
        if self._remaining:
            self._drop(self._remaining)
        self._begin()
        return True
