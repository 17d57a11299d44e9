"""Kept connections over each wire that keeps them, and requests that stay at a gate until a test lets them go."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.clients import ajp, fastcgi
from tests.servers import DEADLINE, Server, read_response
from tests.wires import from_document, variables

APP = "tests/apps/gate.py"
KEEPING = ("http", "fastcgi", "ajp")


class Said(NamedTuple):
    """An answer: its status, the pid that is its body, and its fields as bytes or pairs."""

    status: int
    pid: int
    retry_after: str


def format_http(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode()


def read_http(sock: socket.socket) -> Said:
    head, body, rest = read_response(sock)
    assert rest == b""
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    return make_said(int(head[9:12]), body, fields.get(b"Retry-After", b"").decode())


def make_said(status: int, body: bytes, retry_after: str | None) -> Said:
    return Said(status, int(body) if status == 200 else 0, retry_after or "")


def format_fastcgi(path: str) -> bytes:
    return fastcgi.request([*variables(path, None), (b"CONTENT_LENGTH", b"")], keep=1)


def read_fastcgi(sock: socket.socket) -> Said:
    data = record = fastcgi.read_record(sock)
    while record and record[1] != fastcgi.END:
        record = fastcgi.read_record(sock)
        data += record
    out = fastcgi.parse_answer(data).out
    status, body, _ = from_document(out)
    return make_said(status, body, "".join(fastcgi.parse_document(out).get("retry-after")))


def format_ajp(path: str) -> bytes:
    return ajp.forward("GET", path, [("Host", "h")])


def read_ajp(sock: socket.socket) -> Said:
    answer = ajp.Front(sock).exchange(b"")
    return make_said(answer.status, answer.body, answer.get("Retry-After"))


SPEAK: dict[str, tuple[Callable[[str], bytes], Callable[[socket.socket], Said]]] = {
    "http": (format_http, read_http),
    "fastcgi": (format_fastcgi, read_fastcgi),
    "ajp": (format_ajp, read_ajp),
}
"""Wire -> (what makes a request that keeps its connection, what reads an answer)."""


class Line:
    """A kept connection."""

    def __init__(self, server: Server, wire: str, path: str = "") -> None:
        if path:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(DEADLINE)
            self.sock.connect(path)
        else:
            self.sock = server.connect(wire=wire)
        self._format, self._read = SPEAK[wire]

    def ask(self, path: str = "/") -> None:
        """Send a request."""
        self.sock.sendall(self._format(path))

    def answer(self) -> Said:
        """Read the answer of one request."""
        return self._read(self.sock)

    def get(self, path: str = "/") -> Said:
        """Send a request and read its answer."""
        self.ask(path)
        return self.answer()

    def close(self) -> None:
        self.sock.close()


class Gate:
    """The FIFOs of ``apps/gate.py`` below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        os.mkfifo(folder / "begun")
        self._begun = os.open(folder / "begun", os.O_RDWR)
        self._lines: list[Line] = []

    @property
    def options(self) -> list[str]:
        """What the server is told."""
        return ["--environment", f"GATE_FOLDER={self.folder}"]

    def connect(self, server: Server, wire: str, path: str = "") -> Line:
        """A kept connection, closed with the gate."""
        self._lines.append(Line(server, wire, path))
        return self._lines[-1]

    def wait(self) -> int:
        """Wait until a request has come to the gate; return the pid of the worker that is held."""
        line = b""
        while not line.endswith(b"\n"):
            assert select.select([self._begun], [], [], DEADLINE)[0], "nobody came to the gate"
            line += os.read(self._begun, 1)
        return int(line)

    def open(self, pid: int) -> None:
        """Let a worker go that is held."""
        with open(self.folder / f"gate.{pid}", "wb"):
            pass

    def close(self) -> None:
        os.close(self._begun)
        self.close_lines()

    def close_lines(self) -> None:
        """Close every connection."""
        for line in self._lines:
            line.close()
