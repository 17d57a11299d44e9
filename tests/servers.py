"""A real `gateways serve` in a process of its own, for tests: started, waited for, stopped, and its error log read."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEADLINE = 30.0
"""Seconds that any event is waited for before the test fails."""


class Server:
    """A running server. ``said``: its announcement; ``log``: the path of its error log."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, said: str) -> None:
        self.process = process
        self.log = log
        self.said = said

    @property
    def port(self) -> int:
        """The port of its first listener, 0 when it has none on the loopback address."""
        match = re.search(r"[a-z]+://127\.0\.0\.1:([0-9]+)", self.said)
        return int(match[1]) if match else 0

    @property
    def ports(self) -> dict[str, int]:
        """Wire -> the first port where it is spoken."""
        ports: dict[str, int] = {}
        for wire, port in re.findall(r"([a-z]+)://127\.0\.0\.1:([0-9]+)", self.said):
            ports.setdefault(wire, int(port))
        return ports

    @property
    def pid(self) -> int:
        return self.process.pid

    def connect(self, timeout: float = DEADLINE, wire: str = "") -> socket.socket:
        """A connection with a deadline on each operation, to the first listener or to the one that speaks ``wire``."""
        return socket.create_connection(("127.0.0.1", self.ports[wire] if wire else self.port), timeout)

    def exchange(self, data: bytes, wire: str = "") -> bytes:
        """Send bytes on a new connection and return everything up to its end."""
        with self.connect(wire=wire) as sock:
            sock.sendall(data)
            return read_to_end(sock)

    def get(self, path: str, *fields: str, method: str = "GET") -> tuple[int, bytes]:
        """Return (status, body) of one request on a connection of its own."""
        lines = "".join(f"{field}\r\n" for field in fields)
        head, _, body = self.exchange(
            f"{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{lines}\r\n".encode("latin-1")
        ).partition(b"\r\n\r\n")
        if b"\r\nTransfer-Encoding: chunked" in head:
            body = decode_chunks(body)
        return int(head[9:12]), body

    def workers(self) -> list[int]:
        """The pids of its live children."""
        return [pid for pid, state in children(self.pid) if state != "Z"]

    def read_log(self) -> str:
        return self.log.read_text()

    def wait_for_log(self, pattern: str, count: int = 1) -> None:
        """Wait until the error log has ``count`` matches."""
        wait_until(lambda: len(re.findall(pattern, self.read_log())) >= count, f"{pattern!r} in the log")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)

    def complaints(self) -> list[str]:
        """Log records above info, and tracebacks."""
        return [line for line in self.read_log().splitlines() if not re.search(r"\] (info|debug): ", line)]


def read_to_end(sock: socket.socket) -> bytes:
    """Everything until the peer closes; a reset is an error."""
    pieces = []
    while piece := sock.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def read_response(sock: socket.socket, held: bytes = b"") -> tuple[bytes, bytes, bytes]:
    """Read one response framed by Content-Length from a kept connection: (head, body, bytes that follow)."""
    data = held
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        assert piece, f"the connection ended within a head: {data[:200]!r}"
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    match = re.search(rb"\r\nContent-Length: ([0-9]+)", head)
    length = int(match[1]) if match else 0
    while len(rest) < length:
        piece = sock.recv(65536)
        assert piece, "the connection ended within a body"
        rest += piece
    return head, rest[:length], rest[length:]


def decode_chunks(data: bytes) -> bytes:
    """Decode a complete chunked body, strictly."""
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            assert data == b"\r\n", data
            return body
        body += data[:count]
        assert data[count : count + 2] == b"\r\n"
        data = data[count + 2 :]


def children(pid: int) -> list[tuple[int, str]]:
    """(pid, state letter) of every child of a process, zombies included."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append((int(entry), fields[0]))
    return found


def has_ended(pid: int) -> bool:
    """True when a process is gone, or dead and waiting for somebody to collect it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until(condition: object, what: str, deadline: float = DEADLINE) -> None:
    """Poll a condition until it holds; fail when it does not within the deadline (seconds)."""
    assert callable(condition)
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, f"waited {deadline} s for {what}"
        select.select([], [], [], 0.01)


@contextmanager
def serving(
    folder: Path,
    *arguments: str,
    wanted: Sequence[str] = (),
    tolerated: Sequence[str] = (),
    bind: bool = True,
) -> Iterator[Server]:
    """Run ``gateways serve`` with ``arguments`` on a free port; afterwards stop it and assert a clean error log.

    ``wanted``: patterns of complaints that the test provokes; each must occur, and nothing else may, except what
    matches ``tolerated``. ``bind``: listen on a free port unless the arguments say where.
    """
    log = folder / "error.log"
    output = folder / "output"
    with output.open("wb") as stdout:
        command = [sys.executable, "-m", "gateways", "serve", *arguments, "--error-log", str(log)]
        if bind and "--bind" not in arguments:
            command += ["--bind", "127.0.0.1:0"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=stdout, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        wait_until(lambda: "stop:" in output.read_text() or process.poll() is not None, "the announcement")
        said = output.read_text()
        assert process.poll() is None, said
        server = Server(process, log, said)
        yield server
        if process.poll() is None:
            assert server.stop() == 0
        left = server.complaints()
        for pattern in wanted:
            assert any(re.search(pattern, line) for line in left), f"no {pattern!r} in {left}"
        left = [line for line in left if not any(re.search(pattern, line) for pattern in (*wanted, *tolerated))]
        assert left == [], "\n".join(left)
        said_since = output.read_text()[len(said) :].splitlines()
        assert [line for line in said_since if not any(re.search(pattern, line) for pattern in tolerated)] == []
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
