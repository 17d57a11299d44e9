"""A request and its response on one connection: what an execution model is handed (``core.interfaces.Exchange``).

Counts the body against its Content-Length, holds the head back until the first byte, and decides what a failure
may still tell the peer. Knows a connection and its wire's methods; not which wire, not which model.
"""

from __future__ import annotations

import os

from gateways.core.errors import ConnectionLost, LengthMismatch, LocalProtocolError, ScriptError
from gateways.core.redirect import RedirectedRequest
from gateways.core.response import STATUS_CODES, format_status, has_body, parse_length

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from gateways.core.interfaces import FieldList, Log
    from gateways.core.mounts import MountTable
    from gateways.core.request import Request
    from gateways.serve.connection import Connection

NEW, STARTED, COMMITTED, DONE, CUT = range(5)
PIECE = 65536
MAX_REDIRECTS = 10
NOT_MOUNTED = "nothing is mounted here"


class Exchange:
    """See ``core.interfaces.Exchange``; ``state`` goes from NEW over STARTED and COMMITTED to DONE, or to CUT.

    ``status``: of the response, ``"200 OK"``; ``""`` when the peer went before there was one.
    """

    __slots__ = (
        "_carries_body",
        "_cleanups",
        "_fields",
        "_left",
        "_redirects",
        "connection",
        "log",
        "mounts",
        "recycling",
        "request",
        "state",
        "status",
    )

    def __init__(self, connection: Connection, request: Request, mounts: MountTable, log: Log) -> None:
        self.connection = connection
        self.request = request
        self.mounts = mounts
        self.log = log
        self.state = NEW
        self.recycling = False
        self._cleanups: list[Callable[[], object]] | None = None
        self._redirects = 0

    # What the application sees of its request.

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes of the request body; all of it for -1."""
        if size == 0 or self._redirects:
            return b""
        if size < 0:
            pieces = []
            while data := self.read(PIECE):
                pieces.append(data)
            return b"".join(pieces)
        take = self.connection.wire.take_body
        piece = take(size)
        while piece is None:
            self.connection.read_input()
            piece = take(size)
        return piece

    def fileno(self) -> int:
        """The connection's descriptor."""
        return self.connection.fd

    # The response.

    @property
    def committed(self) -> bool:
        """True once a byte of the response has gone to the peer."""
        return self.state >= COMMITTED

    @property
    def was_cut(self) -> bool:
        """True when the response was ended early, so that the peer can tell."""
        return self.state == CUT

    @property
    def started(self) -> bool:
        """True once a status was set."""
        return self.state != NEW

    def respond(self, status: str, fields: FieldList, body: bytes = b"") -> None:
        """Send a whole response."""
        if self.state > STARTED:
            raise LocalProtocolError("a second response to one request")
        self.status = status
        connection = self.connection
        try:
            data = connection.wire.format_response(status, fields, body, connection.last)
        except LengthMismatch:
            # The body is not as long as its Content-Length: the counting path cuts it, or cuts the connection.
            self.start(status, fields)
            self.write(body)
            self.finish()
            return
        self.state = DONE
        connection.send(data)

    def start(self, status: str, fields: FieldList) -> None:
        """Set the response head; may be called again until a byte has gone."""
        if self.state > STARTED:
            raise LocalProtocolError("the response head has gone already")
        self._left: int | None = None
        for name, value in fields:
            if name.lower() == "content-length":
                self._left = parse_length(value)
        self._carries_body = has_body(self.request.method, STATUS_CODES[status])
        self.status = status
        self._fields = fields
        self.state = STARTED

    def _format_head(self) -> bytes:
        connection = self.connection
        head = connection.wire.format_head(self.status, self._fields, connection.last)
        self.state = COMMITTED
        return head

    def write(self, data: bytes) -> None:
        """Send a piece of body."""
        if self.state == CUT:
            raise ConnectionLost("the response was cut")
        if self.state not in (STARTED, COMMITTED):
            raise LocalProtocolError("a body without a response head, or after its end")
        if not data:
            return
        if not self._carries_body:
            data = b""
        elif self._left is not None:
            data = self._count(data)
        head = self._format_head() if self.state == STARTED else b""
        if data:
            connection = self.connection
            connection.send_pair(head, connection.wire.format_body(data))
        elif head:
            self.connection.send(head)

    def _count(self, data: bytes) -> bytes:
        left = self._left or 0
        if len(data) > left:
            if left >= 0:
                self._warn_long()
            data = data[:left]
        self._left = left - len(data)
        return data

    def _warn_long(self) -> None:
        self.log.warning("%s: the body is longer than its Content-Length; the rest is not sent", self.describe())

    def flush(self) -> None:
        """Send the head now."""
        if self.state == STARTED:
            self.connection.send(self._format_head())

    def send_file(self, file: IO[bytes], offset: int, count: int) -> None:
        """Send ``count`` bytes of a file from ``offset``."""
        if self.state not in (STARTED, COMMITTED):
            raise LocalProtocolError("a body without a response head, or after its end")
        if self._left is not None and count > self._left:
            self._warn_long()
            count = self._left
        if not self._carries_body or count <= 0:
            self.flush()
            return
        connection = self.connection
        frame = connection.wire.format_frame(count)
        descriptor = file.fileno()
        if frame is None:
            self._send_file_in_pieces(descriptor, offset, count)
            return
        head = self._format_head() if self.state == STARTED else b""
        if self._left is not None:
            self._left -= count
        connection.send_file(head + frame[0], descriptor, offset, count)
        if frame[1]:
            connection.send(frame[1])

    def _send_file_in_pieces(self, descriptor: int, offset: int, count: int) -> None:
        while count:
            data = os.pread(descriptor, min(PIECE, count), offset)
            if not data:
                raise OSError(f"the file ended {count} bytes before its promised end")
            self.write(data)
            offset += len(data)
            count -= len(data)

    # The end.

    def add_cleanup(self, function: Callable[[], object]) -> None:
        """Call ``function`` after the response."""
        if self._cleanups is None:
            self._cleanups = []
        self._cleanups.append(function)

    def recycle(self) -> None:
        """Ask that this worker be replaced once the exchange is over."""
        self.recycling = True

    def redirect(self, path: str) -> None:
        """Run ``path`` of this server as a GET request in place of this one."""
        if self._redirects >= MAX_REDIRECTS:
            raise ScriptError(f"more than {MAX_REDIRECTS} internal redirects, the last to {path!r}")
        self._redirects += 1
        self.request = RedirectedRequest(self.request, path)
        self.dispatch()

    def dispatch(self) -> None:
        """Find the mount that the request belongs to and run its model; 404 when there is none."""
        mount = self.mounts.take(self.request)
        if mount is None:
            self.fail(404, NOT_MOUNTED)
        else:
            mount.model.run(self)

    def finish(self) -> None:
        """Send what is left: the head of an empty body, the end of a body; cut a body that is too short."""
        if self.state >= DONE:
            return
        if self.state == NEW:
            raise LocalProtocolError("the application sent no response")
        connection = self.connection
        if self._left and self._carries_body:
            if self.state == STARTED:
                connection.send(self._format_head())
            self.log.error("%s: the body is %d bytes shorter than its Content-Length", self.describe(), self._left)
            self.cut()
            return
        if self.state == STARTED and self._left is None:
            self.state = DONE
            connection.send(connection.wire.format_response(self.status, self._fields, b"", connection.last))
            return
        head = self._format_head() if self.state == STARTED else b""
        self.state = DONE
        # Also without a body: AJP and FastCGI end every response with a packet of its own.
        end = head + connection.wire.format_end()
        if end:
            connection.send(end)

    def fail(self, status: int, message: str = "") -> None:
        """Answer with an error page if nothing has gone yet; otherwise cut the response so that the peer can tell."""
        if self.committed:
            self.cut()
            return
        self.state = NEW
        text = f"{format_status(status)}\n" + (f"{message}\n" if message else "")
        fields = [("Content-Type", "text/plain; charset=utf-8")]
        self.respond(format_status(status), fields, text.encode())

    def cut(self) -> None:
        """End the connection in a way that shows the peer that its response is incomplete."""
        connection = self.connection
        if self.state in (DONE, CUT):
            return
        self.state = CUT
        connection.last = True
        if connection.wire.cut_needs_reset and connection.reset():
            connection.broken = True
        elif not connection.broken and (notice := connection.wire.format_abort()):
            connection.send(notice)

    def run_cleanups(self) -> None:
        """Call what was registered, last in first out; a failure is logged and the rest still run."""
        while self._cleanups:
            function = self._cleanups.pop()
            try:
                function()
            except Exception:
                self.log.exception("%s: a cleanup failed", self.describe())

    def describe(self) -> str:
        """``"GET /path"`` for the log, with everything a peer could have smuggled in escaped."""
        return f"{self.request.method} {ascii(self.request.target)[1:-1]}"
