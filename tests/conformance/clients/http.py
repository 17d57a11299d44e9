"""HTTP/1.1 on raw sockets, strictly by RFC 9112 where it reads, and exactly as a row says where it sends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.conformance.addresses import Address
from tests.conformance.clients.stream import PAUSE, Stream
from tests.conformance.messages import Broken, Fields, Request, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tests.conformance.clients import Watch

_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: ([\t -~\x80-\xff]*))?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;.*)?")
SILENCE = 1.0
"""Seconds after an answer to raw bytes in which nothing comes, after which the connection counts as kept."""
CONTINUE_WAIT = 1.0
"""Seconds that a client that expects 100-continue waits before it sends the body all the same (RFC 9110 10.1.1)."""
MAX_ANSWERS = 20


def parse_fields(lines: Sequence[bytes]) -> Fields:
    """Return the fields of head lines. Raise ``Broken`` for one that is none."""
    fields = []
    for line in lines:
        match = _FIELD.fullmatch(line)
        if match is None:
            raise Broken(f"no field line: {line[:80]!r}")
        fields.append((match[1].decode("ascii"), match[2].decode("latin-1")))
    return tuple(fields)


def split_list(values: Sequence[str]) -> list[str]:
    """The members of a list field, in lower case."""
    return [word.strip(" \t").lower() for value in values for word in value.split(",") if word.strip(" \t")]


def parse_length(values: Sequence[str]) -> int | None:
    """Return Content-Length, ``None`` without one. Raise ``Broken`` for anything but one number."""
    if not values:
        return None
    if len(values) > 1 or not re.fullmatch("[0-9]{1,15}", values[0]):
        raise Broken(f"Content-Length is {list(values)}")
    return int(values[0])


class HTTPReader:
    """Reads responses from a stream."""

    def __init__(self, stream: Stream, watch: Watch | None = None) -> None:
        self.stream = stream
        self.watch = watch or (lambda body: None)

    def read_head(self) -> Response:
        """The next head, final or not, as a response without a body."""
        line = self.stream.read_line()
        match = _STATUS_LINE.fullmatch(line)
        if match is None:
            raise Broken(f"no status line: {line[:80]!r}")
        lines = []
        while line_read := self.stream.read_line():
            lines.append(line_read)
        return Response(int(match[1]), (match[2] or b"").decode("latin-1"), parse_fields(lines))

    def read(self, method: str, version: str = "HTTP/1.1") -> Response:
        """The next final response. Raise ``Broken`` within a head; a body that is cut is returned with a fault."""
        interim: tuple[int, ...] = ()
        response = self.read_head()
        while response.status < 200:
            interim = (*interim, response.status)
            response = self.read_head()
        options = split_list(response.get_all("Connection"))
        kept = "close" not in options and (version == "HTTP/1.1" or "keep-alive" in options)
        return self._read_body(replace(response, interim=interim, kept=kept), method, version)

    def _read_body(self, response: Response, method: str, version: str) -> Response:
        """Read the body as RFC 9112 6.3 frames it."""
        length = parse_length(response.get_all("Content-Length"))
        codings = split_list(response.get_all("Transfer-Encoding"))
        if codings and (response.status == 204 or version == "HTTP/1.0"):
            raise Broken(f"Transfer-Encoding in a {response.status} to {version} (RFC 9112 6.1)")
        if method == "HEAD" or response.status in (204, 304):
            return replace(response, complete=True, framing="none")
        if codings:
            if codings != ["chunked"] or length is not None:
                raise Broken(f"Transfer-Encoding {codings} with Content-Length {length}")
            return self._collect(response, "chunked", self._read_chunks)
        if length is not None:
            return self._collect(response, "length", lambda body: self._read_sized(body, length))
        return self._collect(replace(response, kept=False), "close", self._read_to_end)

    def _collect(self, response: Response, framing: str, read: object) -> Response:
        body = bytearray()
        complete, fault = False, ""
        try:
            read(body)  # type: ignore[operator]
            complete = True
        except (Broken, ConnectionError, TimeoutError) as error:
            fault = f"{framing}: {error}"
        kept = response.kept and complete
        return replace(response, body=bytes(body), framing=framing, complete=complete, fault=fault, kept=kept)

    def _add(self, body: bytearray, data: bytes) -> None:
        body += data
        self.watch(bytes(body))

    def _read_sized(self, body: bytearray, length: int) -> None:
        while len(body) < length:
            data = self.stream.read_some(length - len(body))
            if not data:
                raise Broken(f"the connection ended after {len(body)} of {length} bytes")
            self._add(body, data)

    def _read_to_end(self, body: bytearray) -> None:
        while data := self.stream.read_some():
            self._add(body, data)

    def _read_chunks(self, body: bytearray) -> None:
        while True:
            match = _CHUNK.fullmatch(line := self.stream.read_line())
            if match is None:
                raise Broken(f"no chunk size: {line[:80]!r}")
            size = int(match[1], 16)
            if size == 0:
                break
            self._add(body, self.stream.read_exactly(size))
            if self.stream.read_exactly(2) != b"\r\n":
                raise Broken("a chunk that does not end in CRLF")
        while self.stream.read_line():
            pass


class HTTPClient:
    """See ``clients.Client``."""

    wire = "http"
    lacks: Mapping[str, str] = {}

    def __init__(self, address: Address, limit: float) -> None:
        self.address = address
        self.limit = limit

    def format(self, request: Request) -> tuple[bytes, bytes]:
        """Return (head, body) as they are sent."""
        lines = [f"{request.method} {self.address.prefix}{request.target} {request.version}"]
        lines += [f"Host: {self.address.authority}", *(f"{name}: {value}" for name, value in request.fields)]
        body = request.body or b""
        if request.chunks:
            lines.append("Transfer-Encoding: chunked")
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in request.cut_body()) + b"0\r\n\r\n"
        elif request.body is not None:
            lines.append(f"Content-Length: {len(body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), body

    def exchange(self, requests: Sequence[Request], watch: Watch) -> list[Response]:
        """Send each request when the answer before it is complete; on a new connection only if the old one ended."""
        responses: list[Response] = []
        stream: Stream | None = None
        try:
            for request in requests:
                fresh = stream is None
                stream = stream or Stream(self.address, self.limit)
                response = self._exchange_one(stream, request, watch)
                if not response.status and not fresh and stream.ended:
                    # An idle connection may end at any time; a request that nothing answered is sent again (9.3.1).
                    stream.close()
                    stream = Stream(self.address, self.limit)
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
        head, body = self.format(request)
        data = head + body
        first = request.sends if request.sends >= 0 else len(data) + request.sends
        reader = HTTPReader(stream, watch)
        interim: tuple[int, ...] = ()
        try:
            stream.send(data[:first] if first else data)
            if first and any(name.lower() == "expect" for name, _ in request.fields):
                if stream.wait(CONTINUE_WAIT):
                    response = reader.read_head()
                    if response.status >= 200:
                        return replace(self._finish_early(reader, response, request), kept=False)
                    interim = (response.status,)
            elif first:
                stream.wait(PAUSE)
            stream.send(data[first:] if first else b"")
            response = reader.read(request.method, request.version)
        except (Broken, ConnectionError, TimeoutError) as error:
            return Response(fault=f"{error or type(error).__name__}")
        response = replace(response, interim=interim + response.interim)
        return self._check_end(stream, response)

    @staticmethod
    def _finish_early(reader: HTTPReader, response: Response, request: Request) -> Response:
        """Read the body of an answer that came before the request's body was sent."""
        return reader._read_body(response, request.method, request.version)

    @staticmethod
    def _check_end(stream: Stream, response: Response) -> Response:
        """Find what came beyond the response; a connection that says it closes must do so."""
        if response.fault:
            return response
        if response.kept:
            fault = f"bytes beyond the response: {stream.buffer[:24]!r}" if stream.buffer else ""
            return replace(response, fault=fault, kept=not fault)
        try:
            fault = "" if stream.at_end() else f"bytes beyond the response: {stream.buffer[:24]!r}"
        except ConnectionResetError:
            fault = ""
        except TimeoutError:
            fault = "the connection said that it closes, and stayed open"
        return replace(response, fault=fault)

    def send_raw(self, data: bytes, half_close: bool) -> list[Response]:
        """Send bytes as they are; return every answer until the connection ends, or a second is silent after one."""
        stream = Stream(self.address, self.limit)
        reader = HTTPReader(stream)
        responses: list[Response] = []
        try:
            stream.send(data)
            if half_close:
                stream.half_close()
            while len(responses) < MAX_ANSWERS:
                if responses and not stream.wait(SILENCE):
                    responses[-1] = replace(responses[-1], kept=True)
                    break
                if stream.at_end():
                    if responses:
                        responses[-1] = replace(responses[-1], kept=False)
                    break
                responses.append(reader.read(find_method(data, len(responses)), find_version(data)))
        except ConnectionResetError:
            # What the server did not read may cost the client the end of what it was told: an end all the same.
            if responses:
                responses[-1] = replace(responses[-1], kept=False)
        except (Broken, TimeoutError) as error:
            responses.append(Response(fault=str(error)))
        finally:
            stream.close()
        return responses


_REQUEST_LINE = re.compile(rb"([A-Z]+) [^ \r\n]+ HTTP/[0-9.]+\r?\n")


def find_method(data: bytes, index: int) -> str:
    """The method of the request in raw bytes that answer ``index`` belongs to; ``GET`` when there is none."""
    found = _REQUEST_LINE.findall(data)
    return found[index].decode() if index < len(found) else "GET"


def find_version(data: bytes) -> str:
    """The version of raw bytes, as far as it matters to framing."""
    return "HTTP/1.0" if re.match(rb"[A-Z]+ [^ \r\n]+ HTTP/1\.0\r\n", data) else "HTTP/1.1"
