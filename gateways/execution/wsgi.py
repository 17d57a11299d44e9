"""The ``wsgi`` model: PEP 3333, complete, and nowhere else.

The environ is the request's meta-variables and the ``wsgi.`` keys. An application that returns a list is answered with
one system call; anything else is sent as it comes. Knows an exchange; not its wire, not its process.
"""

from __future__ import annotations

from gateways.core.errors import ConnectionLost, LocalProtocolError
from gateways.core.response import STATUS_CODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import IO, Any

    from gateways.core.interfaces import Exchange, FieldList, Log, WSGIApplication
    from gateways.core.request import Endpoint, Request

    ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType] | None

BLOCK = 65536


class Input:
    """``wsgi.input``: the request body as a file that ends where the body ends (PEP 3333)."""

    __slots__ = ("_ahead", "_ended", "_exchange")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._ahead = b""
        self._ended = False

    def _more(self, size: int = BLOCK) -> bytes:
        if self._ended:
            return b""
        data = self._exchange.read(size)
        if not data:
            self._ended = True
        return data

    def read(self, size: int | None = -1, /) -> bytes:
        """Return ``size`` bytes, fewer only at the end; everything for -1 or None."""
        if size is None or size < 0:
            pieces = [self._ahead]
            self._ahead = b""
            while data := self._more():
                pieces.append(data)
            return b"".join(pieces)
        while len(self._ahead) < size and (data := self._more(max(size - len(self._ahead), 1))):
            self._ahead = self._ahead + data if self._ahead else data
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the bytes up to and with the next newline, at most ``size`` of them if it is not negative."""
        limit = -1 if size is None or size < 0 else size
        pieces: list[bytes] = []
        length = 0
        while True:
            if not self._ahead:
                self._ahead = self._more()
                if not self._ahead:
                    break
            end = self._ahead.find(b"\n") + 1 or len(self._ahead)
            if limit >= 0:
                end = min(end, limit - length)
            piece, self._ahead = self._ahead[:end], self._ahead[end:]
            pieces.append(piece)
            length += len(piece)
            if piece.endswith(b"\n") or length == limit:
                break
        return b"".join(pieces)

    def readlines(self, hint: int | None = -1, /) -> list[bytes]:
        """Return the remaining lines; stop after ``hint`` bytes if it is positive."""
        lines = []
        total = 0
        while line := self.readline():
            lines.append(line)
            total += len(line)
            if hint is not None and 0 < hint <= total:
                break
        return lines

    def __iter__(self) -> Iterator[bytes]:
        while line := self.readline():
            yield line


class NoInput:
    """``wsgi.input`` of a request without a body: it holds nothing, so that all such requests can share one."""

    __slots__ = ()

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the end of the input."""
        return b""

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the end of the input."""
        return b""

    def readlines(self, hint: int | None = -1, /) -> list[bytes]:
        """Return no line."""
        return []

    def __iter__(self) -> Iterator[bytes]:
        return iter(())


class Errors:
    """``wsgi.errors``: each write is a record of the error log."""

    __slots__ = ("_log",)

    def __init__(self, log: Log) -> None:
        self._log = log

    def write(self, text: str, /) -> int:
        """Log ``text``; a newline alone (``print``'s end) is not a record."""
        if text.strip("\n"):
            self._log.error("%s", text.rstrip("\n"))
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        """Log each line."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is held back."""


class FileWrapper:
    """``wsgi.file_wrapper``: a file to send, by ``sendfile`` if it has a descriptor (PEP 3333, "Optional Platform-
    Specific File Handling")."""

    __slots__ = ("block_size", "close", "file")

    def __init__(self, file: IO[bytes], block_size: int = BLOCK) -> None:
        self.file = file
        self.block_size = block_size
        if hasattr(file, "close"):
            self.close = file.close

    def __iter__(self) -> Iterator[bytes]:
        while data := self.file.read(self.block_size):
            yield data

    def find_range(self) -> tuple[int, int] | None:
        """Return (offset, count) of what is left of a regular binary file; ``None`` for anything else."""
        import os
        import stat

        try:
            if self.file.read(0) != b"":
                return None
            status = os.fstat(self.file.fileno())
            offset = self.file.tell()
        except (AttributeError, OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return offset, max(status.st_size - offset, 0)


class StartResponse:
    """The ``start_response`` of one exchange; holds the head until the first piece of body."""

    __slots__ = ("exchange", "fields", "status")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.status = ""

    def __call__(
        self, status: str, fields: list[tuple[str, str]], exc_info: ExceptionInfo = None, /
    ) -> Callable[[bytes], object]:
        if exc_info is not None:
            try:
                if self.exchange.committed:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None
        elif self.status:
            raise LocalProtocolError("start_response was called twice without exc_info", section="PEP 3333")
        if type(fields) is not list:
            raise TypeError(f"start_response takes its fields as a list, not {type(fields).__name__}")
        if STATUS_CODES[status] < 200:
            raise LocalProtocolError(f"an application may not answer {status}", section="PEP 3333")
        self.status = status
        self.fields: FieldList = fields
        return self.write

    def write(self, data: bytes, /) -> None:
        """The ``write`` callable: send a piece of body at once."""
        if type(data) is not bytes:
            raise TypeError(f"a response body is bytes, not {type(data).__name__}")
        self.begin()
        self.exchange.write(data)

    def begin(self) -> None:
        """Hand the head to the exchange, once."""
        if not self.exchange.committed:
            if not self.status:
                raise LocalProtocolError(
                    "the application sent a body before it called start_response", section="PEP 3333"
                )
            self.exchange.start(self.status, self.fields)


class WSGIModel:
    """Calls a WSGI application. ``loader`` returns it; see ``execution.loading``."""

    def __init__(self, loader: Callable[[], WSGIApplication], name: str = "wsgi", multiprocess: bool = True) -> None:
        self.name = name
        self._loader = loader
        # A model serves one mount: what is the same for all its requests depends on the wire and the listener.
        self._templates: dict[tuple[type[Request], Endpoint], dict[str, Any]] = {}
        self._keys: dict[str, Any] = {
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.multithread": False,
            "wsgi.multiprocess": multiprocess,
            "wsgi.run_once": False,
            "wsgi.file_wrapper": FileWrapper,
            "wsgi.input_terminated": True,
            "wsgi.input": NoInput(),
        }

    def load(self) -> None:
        """Import the application."""
        self._application = self._loader()

    def close(self) -> None:
        """Nothing is held beyond the process."""

    def build_environ(self, exchange: Exchange) -> dict[str, Any]:
        """Return a new environ for one exchange."""
        request = exchange.request
        key = (request.__class__, request.endpoint)
        template = self._templates.get(key)
        if template is None:
            template = {**request.make_template(), **self._keys, "wsgi.errors": Errors(exchange.log)}
            self._templates[key] = template
        environ = request.build_metavariables(template)
        if request.content_length != 0:
            environ["wsgi.input"] = Input(exchange)
        if environ.get("HTTPS") == "on":
            environ["wsgi.url_scheme"] = "https"
        return environ

    def run(self, exchange: Exchange) -> None:
        """Call the application once, send what it returns, and call its ``close``."""
        start_response = StartResponse(exchange)
        result = self._application(self.build_environ(exchange), start_response)
        if isinstance(result, (list, tuple)) and start_response.status and not exchange.started:
            body = result[0] if len(result) == 1 else b"".join(result)
            if type(body) is not bytes:
                raise TypeError(f"a response body is bytes, not {type(body).__name__}")
            exchange.respond(start_response.status, start_response.fields, body)
            return
        try:
            self._send(exchange, start_response, result)
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()

    def _send(self, exchange: Exchange, start_response: StartResponse, result: Iterable[bytes]) -> None:
        if type(result) is FileWrapper and (found := result.find_range()) is not None:
            start_response.begin()
            self._send_file(exchange, start_response, result, *found)
            return
        for piece in result:
            if type(piece) is not bytes:
                raise TypeError(f"a response body is bytes, not {type(piece).__name__}")
            if piece:
                start_response.begin()
                exchange.write(piece)
        start_response.begin()

    def _send_file(
        self, exchange: Exchange, start_response: StartResponse, wrapper: FileWrapper, offset: int, count: int
    ) -> None:
        lengths = [value for name, value in start_response.fields if name.lower() == "content-length"]
        if not lengths and not exchange.committed:
            exchange.start(start_response.status, [*start_response.fields, ("Content-Length", str(count))])
        elif lengths and lengths[0].isdigit():
            count = min(count, int(lengths[0]))
        exchange.send_file(wrapper.file, offset, count)


__all__ = ["ConnectionLost", "Errors", "FileWrapper", "Input", "StartResponse", "WSGIModel"]
