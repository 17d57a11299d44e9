"""An exchange that remembers what an access log tells: when it began, its first request, its status, its body's bytes.

Used in place of ``Exchange`` only where there is such a log: without one nobody pays for the counting.
"""

from __future__ import annotations

from time import monotonic

from gateways.core.response import STATUS_CODES, has_body
from gateways.serve.exchange import DONE, Exchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from gateways.core.interfaces import FieldList, Log
    from gateways.core.mounts import MountTable
    from gateways.core.request import Request
    from gateways.serve.connection import Connection


class LoggedExchange(Exchange):
    """An ``Exchange``. ``began``: monotonic, in seconds."""

    __slots__ = ("_length", "_sent", "began", "first")

    def __init__(self, connection: Connection, request: Request, mounts: MountTable, log: Log) -> None:
        super().__init__(connection, request, mounts, log)
        self.first = request
        self._sent = 0
        self._length: int | None = None
        self.began = monotonic()

    @property
    def sent(self) -> int:
        """Bytes of response body that were handed to the connection."""
        return self._sent if self._length is None else self._length - (self._left or 0)

    @property
    def is_whole(self) -> bool:
        """True when the response was sent to its end."""
        return self.state == DONE

    def respond(self, status: str, fields: FieldList, body: bytes = b"") -> None:
        """Send a whole response."""
        # First, because a body of the wrong length goes by ``start`` and ``write``, which count it.
        self._length = None
        self._sent = len(body) if has_body(self.request.method, STATUS_CODES[status]) else 0
        super().respond(status, fields, body)

    def start(self, status: str, fields: FieldList) -> None:
        """Set the response head."""
        super().start(status, fields)
        self._sent = 0
        self._length = self._left if self._carries_body else None

    def write(self, data: bytes) -> None:
        """Send a piece of body."""
        super().write(data)
        if self._carries_body:
            self._sent += len(data)

    def send_file(self, file: IO[bytes], offset: int, count: int) -> None:
        """Send a part of a file."""
        before = self._sent
        super().send_file(file, offset, count)
        if self._sent == before and self._carries_body and count > 0:
            self._sent += count
