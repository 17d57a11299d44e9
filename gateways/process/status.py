"""The status port: ``/ping`` and the supervisor's report over HTTP, answered by the supervisor itself.

It answers while every worker is stuck, so it must never wait: each connection is one request and one response, moved on
in each turn of the supervisor's loop as far as it goes. Knows nothing of workers but the report that it is given.
"""

from __future__ import annotations

import re
import select
from collections.abc import Callable
from math import inf
from socket import socket

from gateways.core.errors import ConfigurationError
from gateways.process.listeners import close_listeners
from gateways.process.page import POLICY, format_page
from gateways.process.report import Report, describe, format_json
from gateways.process.table import format_text

MOST_CONNECTIONS = 32
MOST_HEAD = 8192
PATIENCE = 5.0
"""Seconds that a connection has, from the first byte to the last."""
RETRY = 1.0
"""Seconds between two tries to open the port while a predecessor still has it."""
_LINE = re.compile(rb"(GET|HEAD) (/[!-~]*) HTTP/1\.[01]\r?\n")
_ACCEPT = re.compile(rb"\r?\nAccept:[ \t]*([^\r\n]*)", re.IGNORECASE)
NO_LIBRARY = "metrics are formatted by the package prometheus_client: install it where this server's Python finds it"
_HEAD_END = re.compile(rb"\r?\n\r?\n")
HTML = ("text/html; charset=utf-8", lambda report: format_page(describe(report)))
TEXT = "text/plain; charset=utf-8"
METRICS = "/metrics"
PAGES: dict[str, tuple[str, Callable[[Report], str]]] = {
    "/": HTML,
    "/status": HTML,
    "/status.json": ("application/json", lambda report: format_json(describe(report))),
    "/status.txt": (TEXT, lambda report: format_text(describe(report))),
    "/ping": (TEXT, lambda _: "pong\n"),
}
"""Path -> (media type, what makes the page of a report)."""


def plan_answer(head: bytes, report: Callable[[], Report]) -> bytes:
    """Return the whole response to a request head. Every connection ends with its response."""
    match = _LINE.match(head)
    if match is None:
        return format_answer("400 Bad Request", TEXT, "400 Bad Request: GET and HEAD only\n")
    path = match[2].decode("ascii").partition("?")[0]
    page = PAGES.get(path)
    if path == METRICS:
        answer = answer_metrics(head, report)
    elif page is None:
        answer = format_answer("404 Not Found", TEXT, "404 Not Found: see /status\n")
    else:
        answer = format_answer("200 OK", page[0], page[1](report()))
    return answer if match[1] == b"GET" else answer[: answer.index(b"\r\n\r\n") + 4]


def answer_metrics(head: bytes, report: Callable[[], Report]) -> bytes:
    """Return the response to a request for the metrics; 501 where the library that formats them is not installed."""
    try:
        from gateways.process.metrics import format_metrics
    except ImportError as error:
        return format_answer("501 Not Implemented", TEXT, f"501 Not Implemented: {NO_LIBRARY} ({error})\n")
    accept = _ACCEPT.search(head)
    media_type, body = format_metrics(report(), accept[1].decode("latin-1") if accept else "")
    return format_answer("200 OK", media_type, body.decode())


def format_answer(status: str, media_type: str, text: str) -> bytes:
    """Return a response that nobody keeps, frames or runs."""
    body = text.encode("utf-8", "backslashreplace")
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        f"Content-Security-Policy: {POLICY}\r\n\r\n"
    )
    return head.encode("ascii") + body


class Visit:
    """One connection: what it has asked so far, or what it has not been sent yet."""

    __slots__ = ("answer", "asked", "deadline", "sock")

    def __init__(self, sock: socket, deadline: float) -> None:
        self.sock = sock
        self.deadline = deadline
        self.asked = b""
        self.answer: memoryview | None = None


class StatusPort:
    """A listener and its few connections. ``listen()`` opens the listener; it may fail while a predecessor has it. It
    gives None where there is to be none, until ``take``.

    ``fileno()`` is readable when ``look`` has something to do.
    """

    def __init__(self, listen: Callable[[], socket | None]) -> None:
        self._listen: Callable[[], socket | None] | None = listen
        self._listener: socket | None = None
        self._retry_at = 0.0
        self._epoll = select.epoll()
        self._visits: dict[int, Visit] = {}

    def open(self) -> None:
        """Begin to listen. Raise ``ConfigurationError`` when that cannot be."""
        if self._listen is not None:
            self.take(self._listen())

    def take(self, listener: socket | None) -> None:
        """Listen on ``listener``, or nowhere, instead of where this port has listened; its connections go on."""
        if self._listener is not None:
            self._epoll.unregister(self._listener)
            close_listeners([self._listener])
        self._listen = None
        self._listener = listener
        if listener is not None:
            listener.setblocking(False)
            self._epoll.register(listener, select.EPOLLIN)

    @property
    def closed(self) -> bool:
        """True after ``close``."""
        return self._epoll.closed

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._epoll.fileno()

    def look(self, now: float, report: Callable[[], Report]) -> None:
        """Move every connection on as far as it goes without waiting."""
        if self.closed:
            return
        if self._listen is not None and now >= self._retry_at:
            self._retry_at = now + RETRY
            try:
                self.open()
            except ConfigurationError:
                return
        for fd, _ in self._epoll.poll(0, MOST_CONNECTIONS):
            if self._listener is not None and fd == self._listener.fileno():
                self._accept(now)
            elif fd in self._visits:
                self._move(self._visits[fd], report)
        for visit in [visit for visit in self._visits.values() if now >= visit.deadline]:
            self._end(visit)

    def _accept(self, now: float) -> None:
        assert self._listener is not None
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        if len(self._visits) >= MOST_CONNECTIONS:
            self._end(min(self._visits.values(), key=lambda visit: visit.deadline))
        sock.setblocking(False)
        self._visits[sock.fileno()] = Visit(sock, now + PATIENCE)
        self._epoll.register(sock, select.EPOLLIN)

    def _move(self, visit: Visit, report: Callable[[], Report]) -> None:
        try:
            if visit.answer is None:
                self._read(visit, report)
            else:
                visit.answer = visit.answer[visit.sock.send(visit.answer) :]
        except BlockingIOError:
            return
        except OSError:
            self._end(visit)
            return
        if visit.answer is not None and not visit.answer:
            self._end(visit)

    def _read(self, visit: Visit, report: Callable[[], Report]) -> None:
        data = visit.sock.recv(MOST_HEAD)
        visit.asked += data
        if not data:
            visit.answer = memoryview(b"")
        elif _HEAD_END.search(visit.asked) or len(visit.asked) > MOST_HEAD:
            visit.answer = memoryview(plan_answer(visit.asked, report))
            self._epoll.modify(visit.sock, select.EPOLLOUT)

    def _end(self, visit: Visit) -> None:
        del self._visits[visit.sock.fileno()]
        self._epoll.unregister(visit.sock)
        visit.sock.close()

    def close(self) -> None:
        """Close every descriptor: at the end, and in each new child, where that changes nothing for the supervisor."""
        self._retry_at = inf
        self._epoll.close()
        for visit in self._visits.values():
            visit.sock.close()
        self._visits = {}
        if self._listener is not None:
            close_listeners([self._listener])
            self._listener = None
