"""The front server's side of FastCGI 1.0, with a kept connection where the application keeps it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.clients.fastcgi import END, PARAMS, STDERR, STDIN, STDOUT, begin, nv
from tests.clients.fastcgi import stream as stream_of
from tests.conformance.addresses import Address
from tests.conformance.clients.documents import find_body, parse_response
from tests.conformance.clients.stream import PAUSE, Stream
from tests.conformance.clients.variables import encode, plan_variables
from tests.conformance.messages import Broken, Request, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tests.conformance.clients import Watch

NO_INTERIM = "the wire has no 1xx responses"
NO_VERSION = "the wire has no HTTP versions of its own"
NO_RAW = "the row is bytes of HTTP"


class FastCGIClient:
    """See ``clients.Client``."""

    wire = "fastcgi"
    lacks: Mapping[str, str] = {"raw": NO_RAW, "interim": NO_INTERIM, "version": NO_VERSION}

    def __init__(self, address: Address, limit: float) -> None:
        self.address = address
        self.limit = limit

    def exchange(self, requests: Sequence[Request], watch: Watch) -> list[Response]:
        """Send each request with KEEP_CONN; on a new connection where the application ended the old one."""
        responses: list[Response] = []
        stream: Stream | None = None
        try:
            for one in requests:
                fresh = stream is None
                stream = stream or Stream(self.address, self.limit)
                response = self._exchange_one(stream, one, watch)
                if not response.status and not fresh and stream.ended:
                    # The application ended the kept connection meanwhile, which it may.
                    stream.close()
                    stream = Stream(self.address, self.limit)
                    response = self._exchange_one(stream, one, watch)
                responses.append(response)
                if not response.kept:
                    stream.close()
                    stream = None
        finally:
            if stream is not None:
                stream.close()
        return responses

    def _exchange_one(self, stream: Stream, one: Request, watch: Watch) -> Response:
        body = one.body or b""
        length = "" if one.body is None or one.chunks else str(len(body))
        pairs = encode(plan_variables(one, self.address, length))
        params = b"".join(nv(name, value) for name, value in pairs)
        size = min(max(one.chunks, default=32768), 65535)
        data = begin(keep=1) + stream_of(PARAMS, params, pad=5) + stream_of(STDIN, body, size=size, pad=3)
        try:
            send_in_parts(stream, data, one.sends)
            return self._read(stream, one.method, watch)
        except (Broken, ConnectionError, TimeoutError) as error:
            return Response(fault=f"{error or type(error).__name__}")

    @staticmethod
    def _read(stream: Stream, method: str, watch: Watch) -> Response:
        """Read records up to END_REQUEST (section 5.5), or to the end of the connection."""
        out = bytearray()
        streams_ended = set()
        while True:
            try:
                if stream.at_end():
                    return parse_response(bytes(out), False, method)
                version, kind, request_id, size, pad, _ = struct.unpack(">BBHHBB", stream.read_exactly(8))
                content = stream.read_exactly(size + pad)[:size]
            except ConnectionResetError:
                return parse_response(bytes(out), False, method)
            if version == 1 and request_id == 0:
                # Nothing was asked that a management record answers (section 4): front servers take it for a fault.
                return parse_response(bytes(out), False, method)
            if version != 1 or request_id != 1 or kind not in (STDOUT, STDERR, END):
                raise Broken(f"a record of version {version}, type {kind}, request {request_id}")
            if kind == END:
                break
            if kind in streams_ended:
                raise Broken("a record after the end of its stream")
            if not content:
                streams_ended.add(kind)
            if kind == STDOUT:
                out += content
                watch(find_body(bytes(out)))
        if len(content) != 8:
            raise Broken(f"END_REQUEST of {len(content)} bytes")
        status, protocol_status = struct.unpack(">IB3x", content)
        response = parse_response(bytes(out), status == 0 and protocol_status == 0, method)
        fault = f"bytes beyond END_REQUEST: {stream.buffer[:40]!r}" if stream.buffer else response.fault
        return replace(response, kept=not fault, fault=fault)


def send_in_parts(stream: Stream, data: bytes, first: int) -> None:
    """Send everything, the first ``first`` bytes (all but the last for a negative number) apart if it is not zero."""
    if first:
        stream.send(data[:first])
        stream.wait(PAUSE)
        data = data[first:]
    stream.send(data)
