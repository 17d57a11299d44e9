"""Driving the ``cgi`` wire: one exchange on standard input and output, then the end of the process.

Knows two descriptors. Imports no ``socket``: a CGI program pays for every import on every request.
"""

from __future__ import annotations

import os

from gateways.core.errors import ConnectionLost, LocalProtocolError, RemoteProtocolError, ScriptError
from gateways.serve.exchange import Exchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from gateways.core.interfaces import Log, Wire
    from gateways.core.mounts import MountTable

RECEIVE = 65536
MAX_DISCARD = 1 << 24
"""Bytes of an unread request body that are read and dropped."""
_FILE_TYPE, _SOCKET = 0o170000, 0o140000  # ``stat`` would be one import more


class StdioConnection:
    """What ``Exchange`` asks of a connection, on two descriptors; blocking, without time limits: the web server has its
    own."""

    def __init__(self, wire: Wire, input_fd: int = 0, output_fd: int = 1) -> None:
        self.wire = wire
        self.fd = -1
        self.last = True
        self.broken = False
        self._input_fd = input_fd
        self._output_fd = output_fd

    def send(self, data: bytes) -> None:
        """Write all of ``data``. Raise ``ConnectionLost`` when the web server has gone."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._output_fd, rest) :]
            except OSError as error:
                self.broken = True
                raise ConnectionLost(f"the web server has gone: {error}") from error

    def send_pair(self, first: bytes, second: bytes) -> None:
        """Write two buffers in order."""
        self.send(first + second)

    def send_file(self, head: bytes, file_fd: int, offset: int, count: int) -> None:
        """Write ``head``, then ``count`` bytes of a file from ``offset``. Raise ``OSError`` for a shorter file."""
        self.send(head)
        while count:
            data = os.pread(file_fd, min(count, RECEIVE), offset)
            if not data:
                raise OSError(f"the file ended {count} bytes before its promised end")
            self.send(data)
            offset += len(data)
            count -= len(data)

    def read_input(self) -> None:
        """Wait for bytes of the request body and give them to the wire."""
        self.wire.receive(os.read(self._input_fd, RECEIVE))

    def reset(self) -> bool:
        """A CGI program cannot reset the client's connection; its exit status tells."""
        return False

    def discard_input(self) -> None:
        """Read the rest of a request body, where standard input is a socket.

        It is standard output, too, then (Apache's mod_cgid), and closing it with bytes unread would cost the client the
        end of its answer.
        """
        try:
            if os.fstat(self._input_fd).st_mode & _FILE_TYPE != _SOCKET:
                return
            left = MAX_DISCARD
            while left > 0 and (data := os.read(self._input_fd, RECEIVE)):
                left -= len(data)
        except OSError:
            pass


class StreamConnection(StdioConnection):
    """The same on two binary streams: for a process whose standard input and output only its Python code sees."""

    def __init__(self, wire: Wire, streams: tuple[IO[bytes], IO[bytes]]) -> None:
        super().__init__(wire)
        self._input, self._output = streams

    def send(self, data: bytes) -> None:
        """Write all of ``data``."""
        self._output.write(data)

    def read_input(self) -> None:
        """Wait for bytes of the request body and give them to the wire."""
        self.wire.receive(self._input.read(RECEIVE))

    def discard_input(self) -> None:
        """Leave the streams to whoever made them."""


def run_once(wire: Wire, mounts: MountTable, log: Log, streams: tuple[IO[bytes], IO[bytes]] | None = None) -> int:
    """Serve the one request of ``wire`` on descriptors 0 and 1, or on ``streams`` (input, output).

    Return the exit status: 0, or 1 after a failure.
    """
    connection = StreamConnection(wire, streams) if streams else StdioConnection(wire)
    try:
        request = wire.take_request()
    except RemoteProtocolError as error:
        log.warning("refused a request with %d: %s", error.status, error)
        connection.send(wire.format_response(f"{error.status} Refused", [], f"{error.message}\n".encode(), True))
        connection.discard_input()
        return 1
    if request is None:
        return 1
    exchange = Exchange(connection, request, mounts, log)  # type: ignore[arg-type]
    try:
        exchange.dispatch()
        exchange.finish()
    except ConnectionLost as error:
        log.info("%s: %s", exchange.describe(), error)
        return 1
    except (Exception, SystemExit) as error:  # noqa: BLE001 the edge around the application
        return _fail(exchange, error, log)
    finally:
        exchange.run_cleanups()
        if not wire.body_complete():
            connection.discard_input()
    return 1 if exchange.was_cut else 0


def _fail(exchange: Exchange, error: BaseException, log: Log) -> int:
    status = error.status if isinstance(error, (RemoteProtocolError, LocalProtocolError, ScriptError)) else 500
    if isinstance(error, (RemoteProtocolError, LocalProtocolError, ScriptError)):
        log.error("%s: %s", exchange.describe(), error)
    else:
        log.exception("%s: the application failed: %r", exchange.describe(), error)
    try:
        exchange.fail(status, error.hint if isinstance(error, ScriptError) else "")
    except ConnectionLost:
        pass
    return 1


class StderrLog:
    """A log on standard error, where a web server keeps what its CGI programs say. Imports nothing until it is used."""

    def info(self, msg: str, *args: object) -> None:
        """Say nothing: a web server's error log is for errors."""

    def warning(self, msg: str, *args: object) -> None:
        """Write one line."""
        text = f"gateways: {msg % args if args else msg}\n"
        os.write(2, text.encode("utf-8", "backslashreplace"))

    error = warning

    def exception(self, msg: str, *args: object) -> None:
        """Write one line and the traceback of the exception that is being handled."""
        import traceback

        self.warning(msg, *args)
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
