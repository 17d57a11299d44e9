"""The web server's side of AJPv13, from its description: one connection, kept where the container offers it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.conformance.addresses import Address
from tests.conformance.clients.fastcgi import NO_INTERIM, NO_RAW, NO_VERSION, send_in_parts
from tests.conformance.clients.http import parse_length
from tests.conformance.clients.stream import Stream
from tests.conformance.clients.variables import REMOTE_ADDRESS
from tests.conformance.messages import Broken, Request, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tests.conformance.clients import Watch

METHODS = {
    name: code for code, name in enumerate(
        ("OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE",
         "LOCK", "UNLOCK", "ACL", "REPORT"), 1)
}  # fmt: skip
STORED_METHOD, STORED_METHOD_ATTRIBUTE = 0xFF, 0x0D
REQUEST_NAMES = {
    name: code for code, name in enumerate(
        ("accept", "accept-charset", "accept-encoding", "accept-language", "authorization", "connection",
         "content-type", "content-length", "cookie", "cookie2", "host", "pragma", "referer", "user-agent"), 0xA001)
}  # fmt: skip
RESPONSE_NAMES = dict(enumerate(
    ("Content-Type", "Content-Language", "Content-Length", "Date", "Last-Modified", "Location", "Set-Cookie",
     "Set-Cookie2", "Servlet-Engine", "Status", "WWW-Authenticate"), 0xA001))  # fmt: skip
FORWARD_REQUEST, SEND_BODY_CHUNK, SEND_HEADERS, END_RESPONSE, GET_BODY_CHUNK = 2, 3, 4, 5, 6
QUERY_STRING, END_OF_ATTRIBUTES = 0x05, 0xFF
MAX_BODY = 8192 - 6
MAX_PACKET = 8192


def string(text: str) -> bytes:
    """A string: its length, its bytes, NUL."""
    data = text.encode("latin-1")
    return struct.pack(">H", len(data)) + data + b"\0"


def packet(content: bytes) -> bytes:
    """A packet to the container."""
    return b"\x12\x34" + struct.pack(">H", len(content)) + content


def format_forward_request(request: Request, address: Address) -> bytes:
    """Return the packet of a request. The URI travels as sent; the query is an attribute."""
    path, found, query = request.target.partition("?")
    code = METHODS.get(request.method, STORED_METHOD)
    fields = [("host", address.authority), *request.fields]
    if request.chunks:
        fields.append(("transfer-encoding", "chunked"))
    elif request.body is not None:
        fields.append(("content-length", str(len(request.body))))
    content = struct.pack(">BB", FORWARD_REQUEST, code) + string(request.version) + string(address.prefix + path)
    content += string(REMOTE_ADDRESS) + string("client.example") + string(address.host or "localhost")
    content += struct.pack(">HBH", 80, 0, len(fields))
    for name, value in fields:
        known = REQUEST_NAMES.get(name.lower())
        content += (struct.pack(">H", known) if known else string(name)) + string(value)
    if found:
        content += bytes([QUERY_STRING]) + string(query)
    if code == STORED_METHOD:
        content += bytes([STORED_METHOD_ATTRIBUTE]) + string(request.method)
    return packet(content + bytes([END_OF_ATTRIBUTES]))


class PacketReader:
    """Reads values from a packet's content."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def number(self) -> int:
        self.at += 2
        return int.from_bytes(self.content[self.at - 2 : self.at])

    def string(self) -> str:
        size = self.number()
        text = self.content[self.at : self.at + size]
        if len(text) != size or self.content[self.at + size : self.at + size + 1] != b"\0":
            raise Broken("a string that does not end in NUL")
        self.at += size + 1
        return text.decode("latin-1")

    def response_head(self) -> Response:
        """The content of Send Headers."""
        status, reason = self.number(), self.string()
        fields = []
        for _ in range(self.number()):
            if self.content[self.at : self.at + 1] == b"\xa0":
                code = self.number()
                if code not in RESPONSE_NAMES:
                    raise Broken(f"a field name of code {code:#x}")
                name = RESPONSE_NAMES[code]
            else:
                name = self.string()
            fields.append((name, self.string()))
        if self.at != len(self.content):
            raise Broken("Send Headers is longer than its fields")
        return Response(status, reason, tuple(fields))


class AJPClient:
    """See ``clients.Client``."""

    wire = "ajp"
    lacks: Mapping[str, str] = {
        "raw": NO_RAW,
        "interim": NO_INTERIM,
        "version": NO_VERSION,
        "big-head": "a response head has to fit into one packet of 8 KiB",
    }

    def __init__(self, address: Address, limit: float) -> None:
        self.address = address
        self.limit = limit

    def exchange(self, requests: Sequence[Request], watch: Watch) -> list[Response]:
        """Send each request on the connection, as long as the container offers its reuse."""
        responses: list[Response] = []
        stream: Stream | None = None
        try:
            for request in requests:
                stream = stream or Stream(self.address, self.limit)
                response = self._exchange_one(stream, request, watch)
                responses.append(response)
                if not response.kept:
                    stream.close()
                    stream = None
        finally:
            if stream is not None:
                stream.close()
        return responses

    def _exchange_one(self, stream: Stream, request: Request, watch: Watch) -> Response:
        pieces = BodyPieces(request)
        data = format_forward_request(request, self.address)
        if len(data) > MAX_PACKET:
            return Response(fault="the request does not fit into a packet")
        if request.body and not request.chunks:
            data += pieces.take(MAX_BODY)
        try:
            send_in_parts(stream, data, request.sends)
            return self._read(stream, request.method, pieces, watch)
        except (Broken, ConnectionError, TimeoutError) as error:
            return Response(fault=f"{error or type(error).__name__}")

    def _read(self, stream: Stream, method: str, pieces: BodyPieces, watch: Watch) -> Response:
        """Read packets up to End Response, answering Get Body Chunk meanwhile."""
        response = Response()
        body = bytearray()
        while True:
            kind, content = self._read_packet(stream, response, body)
            if kind == GET_BODY_CHUNK:
                stream.send(pieces.take(int.from_bytes(content[1:3])))
            elif kind == SEND_HEADERS and not response.status:
                response = PacketReader(content[1:]).response_head()
            elif kind == SEND_BODY_CHUNK and response.status:
                size = int.from_bytes(content[1:3])
                if len(content) < size + 3 or not size:
                    raise Broken(f"Send Body Chunk of {size} bytes in a packet of {len(content)}")
                body += content[3 : size + 3]
                watch(bytes(body))
            elif kind == END_RESPONSE and response.status:
                return self._finish(replace(response, body=bytes(body)), method, content[1:2] == b"\1", stream)
            elif kind == 0:
                return replace(response, body=bytes(body), fault="the connection ended before End Response")
            else:
                raise Broken(f"a packet of type {kind} after status {response.status}")

    @staticmethod
    def _read_packet(stream: Stream, response: Response, body: bytearray) -> tuple[int, bytes]:
        """Return (type, content) of the next packet; type 0 when the connection ended after a head."""
        try:
            if stream.at_end():
                if not response.status:
                    raise Broken("no answer came")
                return 0, b""
            magic, size = struct.unpack(">2sH", stream.read_exactly(4))
            if magic != b"AB" or not 0 < size <= MAX_PACKET - 4:
                raise Broken(f"a packet that begins with {magic!r} and has {size} bytes")
            content = stream.read_exactly(size)
        except ConnectionResetError:
            if not response.status:
                raise
            return 0, b""
        return content[0], content

    @staticmethod
    def _finish(response: Response, method: str, kept: bool, stream: Stream) -> Response:
        length = parse_length(response.get_all("Content-Length"))
        bodiless = method == "HEAD" or response.status in (204, 304)
        fault = f"a body in a {response.status} to {method}" if bodiless and response.body else ""
        if stream.buffer:
            fault = f"bytes beyond End Response: {stream.buffer[:40]!r}"
        short = length is not None and len(response.body) < length and not bodiless
        return replace(response, complete=not short, kept=kept and not fault, fault=fault)


class BodyPieces:
    """What is left of a request body, as packets of at most what was asked for."""

    def __init__(self, request: Request) -> None:
        self._data = request.body or b""

    def take(self, size: int) -> bytes:
        """The next packet: at most ``size`` bytes; an empty packet at the end."""
        data, self._data = self._data[: min(size, MAX_BODY)], self._data[min(size, MAX_BODY) :]
        return packet(struct.pack(">H", len(data)) + data) if data else packet(b"")
