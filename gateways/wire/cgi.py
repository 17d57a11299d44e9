"""The ``cgi`` wire: we are the script. A web server's variables and standard input in, a document out (RFC 3875).

One request, one response, one process. Knows bytes and variables; the environment and the descriptors are its driver's.
"""

from __future__ import annotations

from gateways.core.errors import BodyIncomplete, RemoteProtocolError
from gateways.core.request import Endpoint, VariableRequest
from gateways.core.response import format_document, format_document_head
from gateways.core.variables import parse_content_length
from gateways.wire.single import SingleExchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import FieldList
    from gateways.core.limits import WireLimits

_DROPPED = frozenset({"HTTP_PROXY"})


class CGIWire(SingleExchange):
    """See ``core.interfaces.Wire``. ``variables``: the process's environment as Latin-1 text of its bytes."""

    cut_needs_reset = False

    def __init__(self, endpoint: Endpoint, variables: dict[str, str], limits: WireLimits) -> None:
        self._endpoint = endpoint
        self._variables = variables
        self._limits = limits
        self._request: VariableRequest | None = None
        self._pieces: list[bytes] = []
        self._left = 0
        self._ended = False

    def receive(self, data: bytes) -> None:
        """Take bytes of standard input; what follows the body's end is dropped."""
        if not data:
            self._ended = True
        elif self._left:
            piece = data[: self._left]
            self._left -= len(piece)
            self._pieces.append(piece)

    def take_request(self) -> VariableRequest | None:
        """Return the one request; ``None`` afterwards."""
        if self._request is not None:
            return None
        length = self._variables.get("CONTENT_LENGTH", "")
        if not length and self._variables.get("HTTP_TRANSFER_ENCODING"):  # Apache's mod_cgid collects no such body
            raise RemoteProtocolError("a chunked body without CONTENT_LENGTH has no end here", 411, "RFC 3875 4.1.2")
        self._left = parse_content_length(length, self._limits.body)
        kept = {name: value for name, value in self._variables.items() if name not in _DROPPED}
        self._request = VariableRequest(self._endpoint, (kept.get("REMOTE_ADDR", ""), ""), kept, self._left)
        return self._request

    def body_ready(self) -> bool:
        """A CGI program reads its input as it likes."""
        return True

    def take_body(self, size: int) -> bytes | None:
        """Return at most ``size`` bytes of body."""
        if self._pieces:
            piece = self._pieces.pop(0)
            if len(piece) > size:
                self._pieces.insert(0, piece[size:])
                piece = piece[:size]
            return piece
        if not self._left:
            return b""
        if self._ended:
            raise BodyIncomplete(f"standard input ended {self._left} bytes before CONTENT_LENGTH")
        return None

    @property
    def has_partial_request(self) -> bool:
        """A CGI request is whole from the start."""
        return False

    @property
    def buffered(self) -> int:
        """Bytes of body held."""
        return sum(map(len, self._pieces))

    def format_response(self, status: str, fields: FieldList, body: bytes, close: bool) -> bytes:
        """Return a whole document."""
        method = self._request.method if self._request is not None else "GET"
        return b"".join(format_document(status, fields, body, method))

    def format_head(self, status: str, fields: FieldList, close: bool) -> bytes:
        """Return the head of a document that follows in pieces."""
        return format_document_head(status, fields, None)

    def finish(self) -> bool:
        """A CGI process serves one request."""
        return False
