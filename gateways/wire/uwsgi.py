"""The ``uwsgi`` wire: one request as a block of variables, one answer in HTTP form, then the end of the connection.

Sans-I/O: knows no socket, clock or application. Section names are those of the uwsgi protocol's page in uWSGI's manual.

- Only modifier1 0 and modifier2 0 (a request with its variables) are served: every other packet asks for something that
  is no request of ours (to evaluate code, to spool, to set PATH_INFO by other rules).
- No variable changes which code runs or how: those that uWSGI takes as orders are dropped, and ``notes`` says so.
- One request a connection: what follows the body is dropped, and nothing that follows a head is parsed as one.
- A body is as long as CONTENT_LENGTH says. The protocol has no end for a body without it: a request that was chunked
  and comes without a length is refused with 411 (nginx and lighttpd collect such a body first; Apache refuses it).
"""

from __future__ import annotations

from gateways.core.errors import BodyIncomplete, LengthMismatch, RemoteProtocolError
from gateways.core.request import VariableRequest
from gateways.core.response import STATUS_CODES, encode_head, format_fields, has_body
from gateways.core.variables import (
    DROPPED,
    MAX_VARIABLES,
    VARIABLE_KEYS,
    check_values,
    merge_repeated,
    parse_content_length,
)
from gateways.wire.parts import ADDRESS, MAX_PARTED, NAME_SIZE, PORT, UnusualError, VariableParts
from gateways.wire.single import SingleExchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import FieldList
    from gateways.core.limits import WireLimits
    from gateways.core.request import Endpoint

MAGIC_VARIABLES = frozenset(
    "UWSGI_" + name
    for name in (
        "APPID", "CACHE_GET", "CALLABLE", "CHDIR", "FILE", "HOME", "MODULE", "POSTFILE", "PYHOME", "SCHEME", "SCRIPT",
        "SETENV", "TOUCH_RELOAD",
    )
)  # fmt: skip
"""Variables that uWSGI takes as orders: which file to load, where to change to. Never passed on here."""

_HEADER_SIZE = 4
_METHODS = frozenset({b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"TRAC", b"CONN", b"PRI "})
_SECTION = "uwsgi packet"


def parse_header(header: bytes) -> int:
    """Return the size of the variables block from a packet's first four bytes.

    Raise ``RemoteProtocolError`` for every packet but a request, with the mistake's name where it has one.
    """
    if header[0] or header[3]:
        if header in _METHODS:
            raise RemoteProtocolError("this is HTTP, sent to a uwsgi port", 400, _SECTION)
        if header[:2] == b"\x16\x03":
            raise RemoteProtocolError("this is TLS, sent to a uwsgi port", 400, _SECTION)
        raise RemoteProtocolError(f"modifiers {header[0]} and {header[3]} are not served, only 0 and 0", 400, _SECTION)
    size = header[1] | header[2] << 8
    if not size:
        raise RemoteProtocolError("a request without variables", 400, _SECTION)
    return size


def parse_block(block: bytes) -> tuple[list[str], list[str]]:
    """Return the names and the values of a block of variables, in order, as Latin-1 text.

    Raise ``RemoteProtocolError`` (400) when a size runs past the block's end.
    """
    names: list[str] = []
    values: list[str] = []
    text = str(block, "latin-1")
    at, end = 0, len(block)
    try:
        while at < end:
            middle = at + 2 + (block[at] | block[at + 1] << 8)
            names.append(text[at + 2 : middle])
            at = middle + 2 + (block[middle] | block[middle + 1] << 8)
            values.append(text[middle + 2 : at])
    except IndexError:
        at = end + 1
    if at != end:
        raise RemoteProtocolError("a variable is longer than the rest of its block", 400, "uwsgi vars")
    return names, values


_PARTS = VariableParts(parse_block)


def recall_variables(block: bytes) -> dict[str, str]:
    """Return the variables of a block in parts; raise ``UnusualError`` or ``RemoteProtocolError``."""
    at = block.find(ADDRESS) - 2
    port = block.find(PORT, at) - 2
    value = port + NAME_SIZE + 4
    if not 0 < at < port or block[port] != NAME_SIZE or block[port + 1] or value > len(block):
        raise UnusualError
    end = value + (block[value - 2] | block[value - 1] << 8)
    if end > len(block):
        raise UnusualError
    return _PARTS.join(block[:at], block[at:port], block[value:end], block[end:])


def parse_variables(block: bytes, limits: WireLimits) -> dict[str, str]:
    """Return a request's meta-variables, still with those of ``MAGIC_VARIABLES``.

    Raise ``RemoteProtocolError``: 400 for malformed or contradictory ones and for a value with NUL, 431 for too many
    and for one that is too long.
    """
    if len(block) <= MAX_PARTED and len(block) <= limits.field:
        try:
            return recall_variables(block)
        except (UnusualError, RemoteProtocolError):
            pass
    names, values = parse_block(block)
    if len(names) > MAX_VARIABLES:
        raise RemoteProtocolError(f"more than {MAX_VARIABLES} variables", 431, "RFC 6585 5")
    variables = dict(zip(map(VARIABLE_KEYS.__getitem__, names), values, strict=True))
    if len(variables) != len(names) or DROPPED in variables:
        variables = merge_repeated(zip(names, values, strict=True), strict=True, section="uwsgi vars")
    if len(block) > limits.field and any(len(pair[0]) + len(pair[1]) > limits.field for pair in variables.items()):
        raise RemoteProtocolError(f"a variable is longer than {limits.field} bytes", 431, "RFC 6585 5")
    check_values(variables, "uwsgi vars")
    return variables


def parse_body_length(variables: dict[str, str], limit: int) -> int:
    """Return the bytes of body that follow. Raise ``RemoteProtocolError``: 400, 411 or 413."""
    text = variables.get("CONTENT_LENGTH", "")
    if not text and variables.get("HTTP_TRANSFER_ENCODING"):
        raise RemoteProtocolError("a chunked body without CONTENT_LENGTH has no end here", 411, "RFC 9110 15.5.12")
    return parse_content_length(text, limit)


class UwsgiWire(SingleExchange):
    """One connection's uwsgi state; see ``gateways.core.interfaces.Wire`` for the methods' contract.

    ``peer``: the front server's address as accepted. ``notes``: what an operator should know of the request and the
    peer cannot be told: a sentence for each kind of variable that was dropped for what it might do.
    """

    __slots__ = (
        "_buffer",
        "_closed",
        "_ended",
        "_endpoint",
        "_error",
        "_held",
        "_left",
        "_limits",
        "_peer",
        "_request",
        "_to_end",
        "notes",
    )

    def __init__(self, endpoint: Endpoint, peer: object, limits: WireLimits) -> None:
        self._endpoint = endpoint
        self._peer = peer
        self._limits = limits
        self.notes: list[str] = []
        self._buffer: bytes | bytearray = b""
        self._held = bytearray()
        self._left = 0
        self._request: VariableRequest | None = None
        self._error: RemoteProtocolError | None = None
        # The peer will send no more; no further byte is looked at; the response has no other end than the connection's.
        self._ended = self._closed = self._to_end = False

    # Input.

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer, ``b""`` at its end of input; what follows the body is dropped."""
        if not data:
            self._ended = True
        elif self._closed:
            return
        elif self._request is not None:
            self._hold(data)
        elif not self._buffer:
            self._buffer = data
        else:
            if isinstance(self._buffer, bytes):
                self._buffer = bytearray(self._buffer)
            self._buffer += data

    def _hold(self, data: bytes | bytearray) -> None:
        if self._left:
            piece = data[: self._left]
            self._left -= len(piece)
            self._held += piece

    def take_request(self) -> VariableRequest | None:
        """Return the one request once its block is complete; ``None`` afterwards. Raise ``RemoteProtocolError``."""
        if self._error is not None:
            raise self._error
        data = self._buffer
        if self._closed or not data:
            return None
        try:
            end = self._find_end()
            if not end:
                return None
            variables = parse_variables(bytes(data[_HEADER_SIZE:end]), self._limits)
            if not MAGIC_VARIABLES.isdisjoint(variables):
                self._drop_magic(variables)
            if not variables.get("REQUEST_METHOD"):
                raise RemoteProtocolError("a request without REQUEST_METHOD", 400, "RFC 3875 4.1.12")
            self._left = parse_body_length(variables, self._limits.body)
            request = VariableRequest(self._endpoint, self._peer, variables, self._left, whole_path=True)
        except RemoteProtocolError as error:
            self._error = error
            self._closed = True
            self._buffer = b""
            raise
        self._request = request
        self._buffer = b""
        if len(data) > end:
            self._hold(data[end:])
        return request

    def _find_end(self) -> int:
        """Return where the block of variables ends, 0 when it is not complete. Raise if it never can be."""
        data = self._buffer
        if len(data) >= _HEADER_SIZE:
            size = parse_header(bytes(data[:_HEADER_SIZE]))
            if size > self._limits.head:
                raise RemoteProtocolError(f"the variables are longer than {self._limits.head} bytes", 431, "RFC 6585 5")
            if len(data) >= _HEADER_SIZE + size:
                return _HEADER_SIZE + size
        if self._ended:
            raise RemoteProtocolError("the input ended in the middle of a request's variables", 400, _SECTION)
        return 0

    def _drop_magic(self, variables: dict[str, str]) -> None:
        names = sorted(MAGIC_VARIABLES & variables.keys())
        for name in names:
            del variables[name]
        self.notes.append(f"dropped variables that are orders to uWSGI: {', '.join(names)}")

    # The request body.

    def body_ready(self) -> bool:
        """True when the application may be called without waiting for the peer."""
        if not self._left or len(self._held) >= self._limits.buffered_body:
            return True
        if self._ended:
            self._closed = True
            self._error = RemoteProtocolError("the input ended in the middle of a request body", 400, "RFC 3875 4.2")
            raise self._error
        return False

    def take_body(self, size: int) -> bytes | None:
        """Return at most ``size`` bytes of the request body; ``b""`` at its end; ``None`` when more input is needed."""
        held = self._held
        if not held:
            if not self._left:
                return b""
            if self._ended:
                raise BodyIncomplete("the front server stopped sending in the middle of a request body")
            return None
        piece = bytes(held[:size])
        del held[:size]
        return piece

    @property
    def has_partial_request(self) -> bool:
        """True when some bytes have arrived, and not all of the variables."""
        return self._request is None and bool(self._buffer)

    @property
    def buffered(self) -> int:
        """Bytes received and not yet consumed."""
        return len(self._buffer) + len(self._held)

    # Responses.

    def format_response(self, status: str, fields: FieldList, body: bytes, close: bool) -> bytes:
        """Return a whole response in HTTP form."""
        code = STATUS_CODES[status]
        lines, length, _, _ = format_fields(fields)
        method = self._request.method if self._request is not None else "GET"
        if not has_body(method, code):
            # What GET would have sent, if that is known (RFC 9110 8.6).
            known = len(body) if method == "HEAD" and body and code != 304 else None
            return self._format_bare(status, code, lines, known if length is None else length)
        if length is not None and length != len(body):
            raise LengthMismatch
        return encode_head(f"HTTP/1.1 {status}\r\n{lines}Content-Length: {len(body)}\r\n\r\n") + body

    def format_head(self, status: str, fields: FieldList, close: bool) -> bytes:
        """Return the head of a body that follows in pieces: framed by its Content-Length or the connection's end."""
        code = STATUS_CODES[status]
        lines, length, _, _ = format_fields(fields)
        method = self._request.method if self._request is not None else "GET"
        if not has_body(method, code):
            return self._format_bare(status, code, lines, length)
        self._to_end = length is None
        size = "" if length is None else f"Content-Length: {length}\r\n"
        return encode_head(f"HTTP/1.1 {status}\r\n{lines}{size}\r\n")

    def _format_bare(self, status: str, code: int, lines: str, length: int | None) -> bytes:
        size = "" if length is None or code < 200 or code == 204 else f"Content-Length: {length}\r\n"
        return encode_head(f"HTTP/1.1 {status}\r\n{lines}{size}\r\n")

    @property
    def cut_needs_reset(self) -> bool:
        """True when the end of the connection is what ends the response's body."""
        return self._to_end

    def finish(self) -> bool:
        """End the exchange: a uwsgi connection carries one request."""
        self._closed = True
        self._held.clear()
        return False
