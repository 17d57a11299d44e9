"""The ``ajp`` wire: AJPv13 on one connection, as the container. Packets in, requests and bodies out, and back.

Sans-I/O: knows no socket, clock or application. What a request says is ``ajp_forward``'s business, how a response is
written ``ajp_packets``'; this module keeps a connection's place.

- The front server sends the first body packet unasked when Content-Length is above zero; further ones are asked for,
  one at a time. While a body is awaited every packet is a body packet: none is ever parsed as a request.
- Every answer ends in exactly one End Response. It offers reuse only when the whole request body has arrived.
- CPing is answered with CPong; Ping is ignored; Shutdown is refused, whoever sends it.
"""

from __future__ import annotations

from gateways.core.errors import (
    BodyIncomplete,
    ConfigurationError,
    LengthMismatch,
    RemoteProtocolError,
)
from gateways.core.response import STATUS_CODES, has_body
from gateways.wire.ajp_checks import PLAIN_RULES, FrontRules
from gateways.wire.ajp_codes import CPING, FORWARD_REQUEST, PING, SHUTDOWN
from gateways.wire.ajp_forward import parse_forward_request
from gateways.wire.ajp_packets import (
    CPONG,
    END_CLOSED,
    END_KEPT,
    format_chunk_head,
    format_chunks,
    format_get_body_chunk,
    format_headers,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import FieldList
    from gateways.core.limits import WireLimits
    from gateways.core.request import Endpoint, FieldRequest

MIN_PACKET, MAX_PACKET = 8192, 65536
_MAGIC = b"\x12\x34"
_REQUEST = bytes((FORWARD_REQUEST,))
_UNKNOWN = -1


class AJPWire:
    """One connection's AJP state; see ``gateways.core.interfaces.Wire`` for the methods' contract.

    ``peer`` is the front server's address; the client's is in each request. ``rules``: what a front server must show,
    and is believed. ``packet_size``: bytes of the longest packet in either direction, as the front server has it
    (8192 to 65536); raise ``ConfigurationError`` for another.
    """

    __slots__ = (
        "_at", "_awaited", "_bare", "_buffer", "_closed", "_ended", "_endpoint", "_error", "_held", "_kept", "_left",
        "_limits", "_output", "_packet_size", "_received", "_request", "_rules", "_stopped",
    )  # fmt: skip

    cut_needs_reset = False
    announces_end = True
    peer_is_done = False
    request_id = 0

    def __init__(
        self,
        endpoint: Endpoint,
        peer: object,
        limits: WireLimits,
        rules: FrontRules = PLAIN_RULES,
        packet_size: int = MIN_PACKET,
    ) -> None:
        if not MIN_PACKET <= packet_size <= MAX_PACKET:
            raise ConfigurationError(f"an AJP packet size is {MIN_PACKET} to {MAX_PACKET} bytes, not {packet_size}")
        self._endpoint = endpoint
        self._limits = limits
        self._rules = rules
        self._packet_size = packet_size
        self._buffer: bytes | bytearray = b""
        # Where in the buffer the next packet begins.
        self._at = 0
        self._output = b""
        self._error: RemoteProtocolError | None = None
        # The peer will send no more; no further byte is looked at.
        self._ended = self._closed = False
        self._held = bytearray()
        # The last request had no body: an empty packet may say so once more.
        self._bare = False
        self._begin()

    def _begin(self) -> None:
        """Forget the exchange: what comes next is a request."""
        self._request: FieldRequest | None = None
        # Body bytes that have not arrived; _UNKNOWN until an empty packet ends the body.
        self._left = 0
        self._received = 0
        # A body packet is on its way, sent unasked or asked for; the front server has ended the body.
        self._awaited = self._stopped = False
        self._kept = False

    # Input.

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer; ``b""`` means that the peer will send no more."""
        if not data:
            self._ended = True
        elif self._closed:
            return
        elif self._at == len(self._buffer):
            self._buffer = data
            self._at = 0
        else:
            if isinstance(self._buffer, bytes):
                self._buffer = bytearray(self._buffer)
            del self._buffer[: self._at]
            self._at = 0
            self._buffer += data

    def take_request(self) -> FieldRequest | None:
        """Return the next request once its packet is complete; raise ``RemoteProtocolError`` if it never can be."""
        if self._error is not None:
            raise self._error
        if self._closed:
            return None
        try:
            largest = min(self._packet_size - 4, self._limits.head)
            packet = self._take_packet(largest, 431)
            while packet is not None and packet[:1] != _REQUEST:
                self._answer_signal(packet)
                packet = self._take_packet(largest, 431)
            if packet is None:
                if self._at == len(self._buffer):
                    self._release()
                elif self._ended:
                    raise RemoteProtocolError("the input ended in the middle of a packet", 400, "AJPv13")
                return None
            request = parse_forward_request(packet, self._rules, self._limits, self._endpoint)
        except RemoteProtocolError as error:
            self._fail(error)
            raise
        self._request = request
        length = request.content_length
        self._bare = length == 0
        if length:
            self._left = length
            self._awaited = True
        elif length is None:
            self._left = _UNKNOWN
        return request

    def _answer_signal(self, packet: bytes) -> None:
        """Answer a packet that is no request: CPing with CPong, Ping with nothing. Raise for any other."""
        code = packet[0] if packet else 0
        if not packet and self._bare:
            # lighttpd ends the body of a request that has none with a packet of no bytes.
            self._bare = False
        elif code == CPING and len(packet) == 1:
            self._output += CPONG
        elif code == SHUTDOWN:
            raise RemoteProtocolError("the peer asked for a shutdown, which nobody may", 403, "AJPv13, shutdown")
        elif code != PING:
            raise RemoteProtocolError("a packet that is no request where one should be", 400, "AJPv13, prefix codes")

    def _take_packet(self, largest: int, status: int) -> bytes | None:
        """Return the payload of the next packet, or ``None`` when it is not complete.

        Raise ``RemoteProtocolError``: ``status`` for one of more than ``largest`` bytes.
        """
        buffer = self._buffer
        start = self._at + 4
        if len(buffer) < start:
            return None
        if buffer[self._at : self._at + 2] != _MAGIC:
            raise RemoteProtocolError("this is not AJP: a packet does not begin with 0x1234", 400, "AJPv13, packets")
        length = buffer[start - 2] << 8 | buffer[start - 1]
        if length > largest:
            raise RemoteProtocolError(f"a packet of {length} bytes is longer than {largest}", status, "AJPv13, packets")
        end = start + length
        if len(buffer) < end:
            return None
        self._at = end
        return bytes(buffer[start:end])

    def _fail(self, error: RemoteProtocolError) -> None:
        """End the input: an answer can still be formatted, but nothing more is parsed."""
        self._error = error
        self._closed = True
        self._kept = False
        self._release()

    def _release(self) -> None:
        """Hold nothing of what was received: an idle connection may stay for long."""
        self._buffer = b""
        self._at = 0

    # Request bodies.

    def body_ready(self) -> bool:
        """True when the application may be called; asks for more of the body until enough of it is held."""
        enough = self._limits.buffered_body
        if not self._left or len(self._held) >= enough:
            return True
        self._collect(enough)
        if not self._left or len(self._held) >= enough:
            return True
        if self._ended or self._stopped:
            error = RemoteProtocolError("the input ended in the middle of a request body", 400, "AJPv13, body packets")
            self._fail(error)
            raise error
        return False

    def _collect(self, enough: int) -> None:
        """Take the body packets that have arrived, and ask for the next while fewer than ``enough`` bytes are held."""
        if self._error is not None:
            raise self._error
        while self._left and len(self._held) < enough and not self._stopped:
            if not self._awaited:
                self._output += format_get_body_chunk(self._packet_size - 6)
                self._awaited = True
            if not self._take_awaited():
                return

    def _take_awaited(self) -> bool:
        """Take the body packet that is awaited. False when it has not arrived."""
        try:
            packet = self._take_packet(self._packet_size - 4, 400)
            if packet is None:
                return False
            self._awaited = False
            size = len(packet) - 2
            if packet and (size < 0 or packet[0] << 8 | packet[1] != size):
                raise RemoteProtocolError("a body packet's data is not as long as it says", 400, "AJPv13, body packets")
            self._count(max(size, 0))
        except RemoteProtocolError as error:
            self._fail(error)
            raise
        self._held += packet[2:]
        return True

    def _count(self, size: int) -> None:
        """Count ``size`` body bytes; none ends the body."""
        self._received += size
        if self._left == _UNKNOWN:
            if size == 0:
                self._left = 0
            elif self._received > self._limits.body:
                raise RemoteProtocolError(
                    f"the request body is longer than {self._limits.body} bytes", 413, "RFC 9110 15.5.14"
                )
        elif size > self._left:
            raise RemoteProtocolError("the body is longer than its Content-Length", 400, "AJPv13, body packets")
        elif size:
            self._left -= size
        else:
            self._stopped = True

    def take_body(self, size: int) -> bytes | None:
        """Return at most ``size`` bytes of the request body; ``b""`` at its end; ``None`` when more input is needed."""
        held = self._held
        if not held:
            if not self._left:
                return b""
            self._collect(1)
            if not held:
                if not self._left:
                    return b""
                if self._ended or self._stopped:
                    raise BodyIncomplete("the front server stopped sending in the middle of a request body")
                return None
        piece = bytes(held[:size])
        del held[:size]
        return piece

    def body_complete(self) -> bool:
        """True when the whole request body has arrived (whether or not it was taken)."""
        if self._left and self._awaited and self._error is None:
            try:
                self._take_awaited()
            except RemoteProtocolError:
                return False
        return not self._left

    def take_output(self) -> bytes:
        """Return, and forget, the bytes that input has caused to be sent (CPong, Get Body Chunk)."""
        output = self._output
        self._output = b""
        return output

    @property
    def has_partial_request(self) -> bool:
        """True when some bytes of a packet have arrived and no request is under way."""
        return self._request is None and self._at < len(self._buffer)

    @property
    def buffered(self) -> int:
        """Bytes received and not yet consumed."""
        return len(self._buffer) - self._at + len(self._held)

    # Responses.

    def format_response(self, status: str, fields: FieldList, body: bytes, close: bool) -> bytes:
        """Return a whole response: Send Headers, Send Body Chunks, End Response."""
        code = STATUS_CODES[status]
        method = self._request.method if self._request is not None else "GET"
        carries = has_body(method, code)
        # For HEAD: what GET would have sent, if that is known (RFC 9110 8.6).
        length = len(body) if carries or (body and method == "HEAD" and code >= 200 and code != 304) else None
        head, own = format_headers(status, fields, length, self._packet_size)
        if carries and own is not None and own != len(body):
            raise LengthMismatch
        head = self._begin_response(head, close)
        end = END_KEPT if self._kept else END_CLOSED
        return format_chunks(head, body, end, self._packet_size) if carries else head + end

    def format_head(self, status: str, fields: FieldList, close: bool) -> bytes:
        """Return a Send Headers packet. Without a Content-Length the front server frames the body for its client."""
        return self._begin_response(format_headers(status, fields, None, self._packet_size)[0], close)

    def _begin_response(self, head: bytes, close: bool) -> bytes:
        """Settle whether the connection is kept; what input has caused to be sent goes before the response."""
        self._kept = not close and self._error is None and self._request is not None and self.body_complete()
        return self.take_output() + head if self._output else head

    def format_body(self, data: bytes) -> bytes:
        """Return one piece of body as Send Body Chunk packets."""
        return format_chunks(b"", data, b"", self._packet_size)

    def format_frame(self, size: int) -> tuple[bytes, bytes] | None:
        """Return what goes before and after ``size`` body bytes; ``None`` when they do not fit one packet."""
        if not size or size > self._packet_size - 8:
            return None
        return format_chunk_head(size), b"\0"

    def format_end(self) -> bytes:
        """Return End Response."""
        return END_KEPT if self._kept else END_CLOSED

    def format_abort(self) -> bytes:
        """Return nothing: the end of the connection without End Response tells that the response is incomplete."""
        self._kept = False
        return b""

    def finish(self) -> bool:
        """End the exchange. Return True when the connection can carry another request, as End Response has said."""
        self._held.clear()
        if self._kept:
            if self._at == len(self._buffer):
                self._release()
            self._begin()
            return True
        self._closed = True
        self._request = None
        self._release()
        return False
