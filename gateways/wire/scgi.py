"""The ``scgi`` wire: one netstring of variables, a body of exactly CONTENT_LENGTH bytes, one request a connection.

Knows SCGI 1 (Neil Schemenauer, 2008) and netstrings (D. J. Bernstein, 1997); no socket, no clock, no application.
The response is a document in CGI form; the end of the connection ends it.
"""

from __future__ import annotations

from gateways.core.errors import BodyIncomplete, RemoteProtocolError
from gateways.core.request import VariableRequest
from gateways.core.response import format_document, format_document_head, format_fields
from gateways.core.variables import (
    DROPPED,
    MAX_BLOCK,
    MAX_VARIABLES,
    VARIABLE_KEYS,
    merge_repeated,
    parse_content_length,
)
from gateways.wire.parts import ADDRESS, MAX_PARTED, NAME_SIZE, PORT, UnusualError, VariableParts
from gateways.wire.pieces import Pieces
from gateways.wire.single import SingleExchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import FieldList
    from gateways.core.limits import WireLimits
    from gateways.core.request import Endpoint

MAX_DIGITS = 9
"""The longest netstring length that is read at all; the block's own limit is far below."""


def parse_block_size(start: bytes, limit: int) -> tuple[int, int] | None:
    """Return (offset, size) of the block that a netstring ``<size>:<block>,`` holds; ``None`` without its colon.

    Raise ``RemoteProtocolError``: 400 unless the size is digits without a leading zero, 431 beyond ``limit`` bytes.
    """
    colon = start.find(b":", 0, MAX_DIGITS + 1)
    digits = start[: colon if colon >= 0 else MAX_DIGITS + 1]
    if wrong := digits.lstrip(b"0123456789"):
        raise RemoteProtocolError(f"{chr(wrong[0])!r} in a netstring's length", 400, "netstrings")
    if colon < 0:
        if len(digits) > MAX_DIGITS:
            raise RemoteProtocolError(f"a netstring length of more than {MAX_DIGITS} digits", 400, "netstrings")
        return None
    if not digits or (digits[0] == 48 and colon > 1):
        raise RemoteProtocolError("a netstring length that is empty or begins with zero", 400, "netstrings")
    size = int(digits)
    if size > limit:
        raise RemoteProtocolError(f"more than {limit} bytes of variables", 431, "SCGI 3")
    return colon + 1, size


def parse_pairs(block: bytes) -> tuple[list[str], list[str]]:
    """Return the names and the values of a netstring's content, in order: ``name NUL value NUL`` (section 3).

    Raise ``RemoteProtocolError`` (400) for anything else.
    """
    parts = block.decode("latin-1").split("\0")
    if parts.pop():
        raise RemoteProtocolError("the variables do not end with NUL", 400, "SCGI 3")
    if len(parts) & 1:
        raise RemoteProtocolError("a variable without a value", 400, "SCGI 3")
    return parts[::2], parts[1::2]


_PARTS = VariableParts(parse_pairs)


def recall_variables(block: bytes) -> dict[str, str]:
    """Return the variables of a block in parts; raise ``UnusualError`` or ``RemoteProtocolError``."""
    at = block.find(ADDRESS)
    port = block.find(PORT, at)
    value = port + NAME_SIZE + 1
    end = block.find(b"\0", value)
    if not 0 < at < port or end < 0 or block[value - 1]:
        raise UnusualError
    return _PARTS.join(block[:at], block[at:port], block[value:end], block[end + 1 :])


def parse_variables(block: bytes) -> dict[str, str]:
    """Return the variables of a netstring's content: CONTENT_LENGTH first, ``SCGI`` = ``1`` (section 3).

    Raise ``RemoteProtocolError``: 400 for anything else and for a name that came twice with different values, 431 for
    more than ``MAX_VARIABLES``.
    """
    if len(block) <= MAX_PARTED and block.startswith(b"CONTENT_LENGTH\0"):
        try:
            variables = recall_variables(block)
        except (UnusualError, RemoteProtocolError):
            variables = parse_whole(block)
    else:
        variables = parse_whole(block)
    if variables.get("SCGI") != "1":
        raise RemoteProtocolError(f"SCGI is {variables.get('SCGI', 'absent')[:40]!r}, not 1", 400, "SCGI 3")
    return variables


def parse_whole(block: bytes) -> dict[str, str]:
    """Return the variables of a block, looked at as a whole; raise as ``parse_variables`` does."""
    names, values = parse_pairs(block)
    if not names or names[0] != "CONTENT_LENGTH":
        raise RemoteProtocolError("CONTENT_LENGTH is not the first variable", 400, "SCGI 3")
    if len(names) > MAX_VARIABLES:
        raise RemoteProtocolError(f"more than {MAX_VARIABLES} variables", 431, "SCGI 3")
    if "" in names:
        raise RemoteProtocolError("a variable with an empty name", 400, "SCGI 3")
    variables = dict(zip(map(VARIABLE_KEYS.__getitem__, names), values, strict=True))
    if len(variables) != len(names) or DROPPED in variables:
        variables = merge_repeated(zip(names, values, strict=True), strict=True, section="SCGI 3")
    return variables


class SCGIWire(SingleExchange):
    """See ``core.interfaces.Wire``. ``max_head``: bytes of variables; more is refused (431)."""

    # Without a length nothing else tells that a body was cut, and Apache corrects a length that the body did not reach.
    cut_needs_reset = True

    def __init__(self, endpoint: Endpoint, peer: object, limits: WireLimits, max_head: int = MAX_BLOCK) -> None:
        self._endpoint = endpoint
        self._peer = peer
        self._limits = limits
        self._max_head = max_head
        self._buffer = b""
        self._body = Pieces()
        self._left = 0
        self._eof = False
        self._request: VariableRequest | None = None
        self._closed = False
        self._speaks_http = False

    # Input.

    def receive(self, data: bytes) -> None:
        """Take bytes from the front server; ``b""`` at its end of input. What follows the body is dropped."""
        if not data:
            self._eof = True
        elif self._request is not None:
            self._take_content(data)
        elif not self._closed:
            self._buffer = self._buffer + data if self._buffer else data

    def _take_content(self, data: bytes) -> None:
        if self._left:
            piece = data if len(data) <= self._left else data[: self._left]
            self._left -= len(piece)
            self._body.append(piece)

    def take_request(self) -> VariableRequest | None:
        """Return the connection's one request, once the netstring is complete; ``None`` afterwards."""
        if self._request is not None or self._closed:
            return None
        try:
            return self._parse()
        except RemoteProtocolError:
            self._closed = True
            self._buffer = b""
            raise

    def _parse(self) -> VariableRequest | None:
        buffer = self._buffer
        if buffer and 65 <= buffer[0] <= 90:
            self._speaks_http = True
            raise RemoteProtocolError("this port speaks SCGI, and what came looks like HTTP", 400, "SCGI 3")
        place = parse_block_size(buffer[: MAX_DIGITS + 1], self._max_head)
        if place is None or len(buffer) <= place[0] + place[1]:
            if self._eof and buffer:
                raise RemoteProtocolError("the connection ended within a request's head", 400, "SCGI 3")
            return None
        start, size = place
        end = start + size
        if buffer[end] != 44:
            raise RemoteProtocolError("a netstring that does not end with a comma", 400, "netstrings")
        variables = parse_variables(buffer[start:end])
        text = variables["CONTENT_LENGTH"]
        if not text:
            raise RemoteProtocolError("CONTENT_LENGTH is empty", 400, "SCGI 3")
        self._left = length = parse_content_length(text, self._limits.body)
        self._request = request = VariableRequest(self._endpoint, self._peer, variables, length, True)
        self._buffer = b""
        if length and len(buffer) > end + 1:
            self._take_content(buffer[end + 1 :])
        return request

    # The body.

    def body_ready(self) -> bool:
        """True when the body is complete or much of it is held.

        Raise ``RemoteProtocolError`` (400) when the input ended before the body did.
        """
        if not self._left or self._body.held >= self._limits.buffered_body:
            return True
        if self._eof:
            raise RemoteProtocolError(f"the connection ended {self._left} bytes before the body did", 400, "SCGI 3")
        return False

    def take_body(self, size: int) -> bytes | None:
        """Return at most ``size`` bytes of the body."""
        if self._body.held or not self._left:
            return self._body.take(size)
        if self._eof or self._closed:
            raise BodyIncomplete(f"the connection ended {self._left} bytes before the body did")
        return None

    @property
    def has_partial_request(self) -> bool:
        """True when some of the netstring has come."""
        return bool(self._buffer)

    @property
    def buffered(self) -> int:
        """Bytes of an incomplete netstring, and of body not yet taken."""
        return len(self._buffer) + self._body.held

    # The response.

    def format_response(self, status: str, fields: FieldList, body: bytes, close: bool) -> bytes:
        """Return a whole document in CGI form; a plain HTTP response to one who speaks HTTP here."""
        if self._speaks_http:
            return f"HTTP/1.0 {status}\r\n{format_fields(fields)[0]}Connection: close\r\n\r\n".encode("latin-1") + body
        request = self._request
        head, body = format_document(status, fields, body, request.method if request is not None else "GET")
        return head + body

    def format_head(self, status: str, fields: FieldList, close: bool) -> bytes:
        """Return the head of a document that follows in pieces."""
        return format_document_head(status, fields, None)

    def finish(self) -> bool:
        """Return False: a connection carries one request."""
        self._body = Pieces()
        self._closed = True
        return False
