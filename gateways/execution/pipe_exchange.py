"""An exchange at the far end of a pipe: what an execution model is handed in a zygote's child.

The response is written as a document with a status line (RFC 3875 5, non-parsed header), which the worker parses: every
status and field is checked here, because a line break within one would be two fields there (B092).
"""

from __future__ import annotations

import os

from gateways.core.errors import LocalProtocolError, ScriptError
from gateways.core.response import STATUS_CODES, encode_head, format_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from gateways.core.interfaces import FieldList, Log
    from gateways.core.request import Request

_PIECE = 65536


class DescriptorLog:
    """A ``Log`` that writes lines to descriptor 2."""

    def _write(self, msg: str, args: tuple[object, ...]) -> None:
        os.write(2, (msg % args if args else msg).encode("utf-8", "backslashreplace") + b"\n")

    def info(self, msg: str, *args: object) -> None:
        """Log what is worth knowing."""
        self._write(msg, args)

    def warning(self, msg: str, *args: object) -> None:
        """Log what may be wrong."""
        self._write(msg, args)

    def error(self, msg: str, *args: object) -> None:
        """Log what is wrong."""
        self._write(msg, args)

    def exception(self, msg: str, *args: object) -> None:
        """Log what is wrong, with the exception being handled."""
        import traceback

        self._write(msg, args)
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))


class PipeExchange:
    """See ``core.interfaces.Exchange``. The body is read from descriptor 0, the response written to ``descriptor``."""

    def __init__(self, request: Request, descriptor: int, log: Log) -> None:
        self.request = request
        self.log = log
        self.committed = False
        self.started = False
        self._descriptor = descriptor
        self._head = b""
        self._cleanups: list[Callable[[], object]] = []

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes of the body; all of it for -1; ``b""`` at its end."""
        if size >= 0:
            return os.read(0, min(size, 1 << 20)) if size else b""
        pieces = []
        while piece := os.read(0, _PIECE):
            pieces.append(piece)
        return b"".join(pieces)

    def respond(self, status: str, fields: FieldList, body: bytes = b"") -> None:
        """Send a whole response."""
        self.start(status, fields)
        self._send(self._take_head() + body)

    def start(self, status: str, fields: FieldList) -> None:
        """Set the response head. Raise ``LocalProtocolError`` for what may not be sent."""
        if self.committed:
            raise LocalProtocolError("the response head has gone already")
        lines, length, _, _ = format_fields(fields)
        if STATUS_CODES[status] < 200:
            raise LocalProtocolError(f"an application may not answer {status}")
        if length is not None:
            lines += f"Content-Length: {length}\r\n"
        self._head = encode_head(f"HTTP/1.1 {status}\r\n{lines}\r\n")
        self.started = True

    def write(self, data: bytes) -> None:
        """Send a piece of body, and the head before it."""
        if not self.started:
            raise LocalProtocolError("a body without a response head")
        if data:
            self._send(self._take_head() + data)

    def flush(self) -> None:
        """Send the head now."""
        if self._head:
            self._send(self._take_head())

    def send_file(self, file: IO[bytes], offset: int, count: int) -> None:
        """Send ``count`` bytes of a file from ``offset``."""
        self.flush()
        while count:
            sent = os.sendfile(self._descriptor, file.fileno(), offset, min(count, 1 << 30))
            if not sent:
                raise OSError(f"the file ended {count} bytes before its promised end")
            offset += sent
            count -= sent

    def add_cleanup(self, function: Callable[[], object]) -> None:
        """Call ``function`` after the response."""
        self._cleanups.append(function)

    def run_cleanups(self) -> None:
        """Call what was registered, last in first out."""
        while self._cleanups:
            try:
                self._cleanups.pop()()
            except Exception:
                self.log.exception("a cleanup failed")

    def recycle(self) -> None:
        """This process ends with the exchange anyway."""

    def redirect(self, path: str) -> None:
        """Have the worker run ``path`` in place of this request (RFC 3875 6.2.2)."""
        if self.started or any(ord(c) < 0x21 for c in path):
            raise ScriptError(f"no internal redirect to {path!r} is possible here")
        self.started = True
        self._send(b"Location: " + path.encode("latin-1") + b"\n\n")

    def fileno(self) -> int:
        """There is no connection here."""
        return -1

    def finish(self) -> None:
        """Send what is left. Raise ``LocalProtocolError`` when the application sent no response."""
        if not self.started:
            raise LocalProtocolError("the application sent no response")
        self.flush()

    def _take_head(self) -> bytes:
        head, self._head = self._head, b""
        return head

    def _send(self, data: bytes) -> None:
        self.committed = True
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
