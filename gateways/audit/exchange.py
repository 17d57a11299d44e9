"""An exchange without a connection: it gives a model one request and keeps what it answers (``core.interfaces``)."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import IO, TYPE_CHECKING

from gateways.audit.job import MAX_BODY
from gateways.core.errors import ConnectionLost, LocalProtocolError
from gateways.core.percent import decode_path
from gateways.core.request import Endpoint, FieldRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateways.audit.job import Asked
    from gateways.core.interfaces import FieldList

ENDPOINT = Endpoint("localhost", "80")
PEER = ("127.0.0.1", 40000)
MAX_LOG = 4000
MAX_SENT = 1 << 28
"""Bytes after which the client goes away."""


def make_request(asked: Asked) -> FieldRequest:
    """Return a request as an HTTP wire would make it."""
    path, _, query = asked.target.partition("?")
    fields = [("Host", "localhost"), *asked.fields]
    length = len(asked.body)
    if length:
        fields.append(("Content-Length", str(length)))
    return FieldRequest(
        ENDPOINT, PEER, asked.method, asked.target, decode_path(path), query, "HTTP/1.1", fields, length
    )  # fmt: skip


class TailLog:
    """A log that keeps the last characters that were written."""

    def __init__(self) -> None:
        self.text = ""

    def info(self, msg: str, *args: object) -> None:
        """Say nothing."""

    def warning(self, msg: str, *args: object) -> None:
        """Keep a line."""
        self.text = f"{self.text}{msg % args if args else msg}\n"[-MAX_LOG:]

    error = warning

    def exception(self, msg: str, *args: object) -> None:
        """Keep a line and the traceback."""
        import traceback

        self.warning(msg, *args)
        self.warning("%s", traceback.format_exc())


class KeptExchange:
    """One request and the answer to it. ``size``: bytes of the body, of which ``body`` are the first."""

    def __init__(self, asked: Asked) -> None:
        self.request = make_request(asked)
        self.log = TailLog()
        self.status = ""
        self.fields: list[tuple[str, str]] = []
        self.committed = False
        self.started = False
        self.recycled = False
        self.size = 0
        self._pieces: list[bytes] = []
        self._digest = blake2b(digest_size=16)
        self._unread = asked.body
        self._cleanups: list[Callable[[], object]] = []

    @property
    def body(self) -> bytes:
        """The first bytes of the body; of a longer one a digest of the rest stands at the end."""
        body = b"".join(self._pieces)
        return body if self.size <= MAX_BODY else body + b"..." + self._digest.hexdigest().encode()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes of the request's body."""
        size = len(self._unread) if size < 0 else size
        data, self._unread = self._unread[:size], self._unread[size:]
        return data

    def respond(self, status: str, fields: FieldList, body: bytes = b"") -> None:
        """Keep a whole answer."""
        self.start(status, fields)
        self.write(body)
        self.committed = True

    def start(self, status: str, fields: FieldList) -> None:
        """Keep a head."""
        if self.committed:
            raise LocalProtocolError("the response head has gone already")
        self.status, self.fields, self.started = status, list(fields), True

    def write(self, data: bytes) -> None:
        """Keep a piece of body. Raise ``ConnectionLost`` for more than anybody would wait for."""
        if not self.started:
            raise LocalProtocolError("a body without a response head")
        self.committed = self.committed or bool(data)
        if self.size < MAX_BODY:
            self._pieces.append(bytes(data[: MAX_BODY - self.size]))
        self._digest.update(data)
        self.size += len(data)
        if self.size > MAX_SENT:
            raise ConnectionLost("the body is longer than the audit reads")

    def flush(self) -> None:
        """The head is sent."""
        self.committed = True

    def send_file(self, file: IO[bytes], offset: int, count: int) -> None:
        """Keep ``count`` bytes of a file from ``offset``."""
        while count > 0 and (data := os.pread(file.fileno(), min(count, 65536), offset)):
            self.write(data)
            offset += len(data)
            count -= len(data)

    def add_cleanup(self, function: Callable[[], object]) -> None:
        """Call ``function`` after the response."""
        self._cleanups.append(function)

    def run_cleanups(self) -> None:
        """Call what was registered, last in first out."""
        while self._cleanups:
            self._cleanups.pop()()

    def recycle(self) -> None:
        """Note that a server would replace this process now."""
        self.recycled = True

    def redirect(self, path: str) -> None:
        """Keep a local redirect as the answer that a client would see one step later (RFC 3875 6.2.2)."""
        self.respond("302 Local Redirect", [("Location", path)])

    def fileno(self) -> int:
        """There is no connection."""
        return -1
