"""A fake exchange for tests of execution models: a plain object that keeps what it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from gateways.core.interfaces import FieldList
from gateways.core.request import Endpoint, FieldRequest, Request


class ListLog:
    """A log that keeps its records as (level, text)."""

    def __init__(self) -> None:
        self.records: list[tuple[str, str]] = []

    def _keep(self, level: str, msg: str, args: tuple[object, ...]) -> None:
        self.records.append((level, msg % args if args else msg))

    def info(self, msg: str, *args: object) -> None:
        self._keep("info", msg, args)

    def warning(self, msg: str, *args: object) -> None:
        self._keep("warning", msg, args)

    def error(self, msg: str, *args: object) -> None:
        self._keep("error", msg, args)

    def exception(self, msg: str, *args: object) -> None:
        import traceback

        self._keep("error", msg, args)
        self._keep("traceback", traceback.format_exc(), ())

    @property
    def text(self) -> str:
        return "\n".join(text for _, text in self.records)


def make_request(
    method: str = "GET",
    target: str = "/",
    fields: list[tuple[str, str]] | None = None,
    content_length: int | None = 0,
    protocol: str = "HTTP/1.1",
) -> FieldRequest:
    """A request as an HTTP wire would make it."""
    path, _, query = target.partition("?")
    return FieldRequest(
        Endpoint("example.com", "8000"), ("127.0.0.1", 5000), method, target, path, query, protocol,
        [("Host", "example.com"), *(fields or [])], content_length,
    )  # fmt: skip


class FakeExchange:
    """See ``core.interfaces.Exchange``. ``pieces`` are the body's pieces as they were sent."""

    def __init__(self, request: Request | None = None, body: bytes = b"") -> None:
        self.request: Request = request or make_request()
        self.log = ListLog()
        self.unread = body
        self.status = ""
        self.fields: FieldList = []
        self.pieces: list[bytes] = []
        self.committed = False
        self.started = False
        self.whole = False
        self.cleanups: list[Callable[[], object]] = []
        self.recycling = False
        self.redirected: list[str] = []
        self.files: list[tuple[int, int]] = []

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def read(self, size: int = -1) -> bytes:
        size = len(self.unread) if size < 0 else size
        data, self.unread = self.unread[:size], self.unread[size:]
        return data

    def respond(self, status: str, fields: FieldList, body: bytes = b"") -> None:
        assert not self.committed
        self.status, self.fields = status, list(fields)
        self.pieces.append(body)
        self.started = self.committed = self.whole = True

    def start(self, status: str, fields: FieldList) -> None:
        assert not self.committed
        self.status, self.fields, self.started = status, list(fields), True

    def write(self, data: bytes) -> None:
        assert self.started
        self.committed = True
        self.pieces.append(data)

    def flush(self) -> None:
        self.committed = True

    def send_file(self, file: IO[bytes], offset: int, count: int) -> None:
        import os

        self.files.append((offset, count))
        self.write(os.pread(file.fileno(), count, offset))

    def add_cleanup(self, function: Callable[[], object]) -> None:
        self.cleanups.append(function)

    def recycle(self) -> None:
        self.recycling = True

    def redirect(self, path: str) -> None:
        self.redirected.append(path)

    def fileno(self) -> int:
        return -1
