"""The front server's side of SCGI: a request a connection, answered in CGI form until the connection ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.clients.scgi import request
from tests.conformance.addresses import Address
from tests.conformance.clients.documents import find_body, parse_response
from tests.conformance.clients.fastcgi import NO_INTERIM, NO_RAW, NO_VERSION, send_in_parts
from tests.conformance.clients.stream import Stream
from tests.conformance.clients.variables import Pairs, encode, plan_variables
from tests.conformance.messages import Broken, Request, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tests.conformance.clients import Watch


class SCGIClient:
    """See ``clients.Client``."""

    wire = "scgi"
    lacks: Mapping[str, str] = {
        "raw": NO_RAW,
        "interim": NO_INTERIM,
        "version": NO_VERSION,
        "chunked": "SCGI has no body without CONTENT_LENGTH",
    }

    def __init__(self, address: Address, limit: float) -> None:
        self.address = address
        self.limit = limit

    def format(self, one: Request) -> bytes:
        """Return a request as it is sent: CONTENT_LENGTH first, then SCGI."""
        body = one.body or b""
        return request(self.plan_pairs(one, body, ("CONTENT_LENGTH",)), body)

    def plan_pairs(self, one: Request, body: bytes, without: tuple[str, ...] = ()) -> Pairs:
        """Return the variables as bytes, some left out."""
        length = "" if one.body is None else str(len(body))
        return encode([pair for pair in plan_variables(one, self.address, length) if pair[0] not in without])

    def exchange(self, requests: Sequence[Request], watch: Watch) -> list[Response]:
        """Send each request on a connection of its own."""
        return [self._exchange_one(one, watch) for one in requests]

    def _exchange_one(self, one: Request, watch: Watch) -> Response:
        stream = Stream(self.address, self.limit)
        data = bytearray()
        try:
            send_in_parts(stream, self.format(one), one.sends)
            ended = True
            try:
                while piece := stream.read_some():
                    data += piece
                    watch(find_body(bytes(data)))
            except ConnectionResetError:
                ended = False
            return parse_response(bytes(data), ended, one.method)
        except (Broken, ConnectionError, TimeoutError) as error:
            return Response(fault=f"{error or type(error).__name__}")
        finally:
            stream.close()
