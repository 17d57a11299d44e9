"""Clients of a trial: connections that are kept and ask at a steady rate, and crowds that ask all at once.

Every answer is looked at. A request that fails is kept with what is known of it: when, what for, and which worker had
answered on its connection before. Knows HTTP; no server.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from dataclasses import dataclass, field

PATIENCE = 30.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_WORKER = re.compile(rb"\r\nx-worker: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that got no right answer. ``worker``: who had answered on its connection before, 0 if nobody.

    ``began`` and ``ended``: when it was sent and when its client knew that it had failed (seconds, ``time.time``).
    """

    began: float
    ended: float
    path: str
    why: str
    worker: int


@dataclass(slots=True)
class Tally:
    """What came of requests; several threads may add to one."""

    asked: int = 0
    failures: list[Failure] = field(default_factory=list)
    slowest: float = 0.0
    workers: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, seconds: float, worker: int) -> None:
        """Count a right answer."""
        with self.lock:
            self.asked += 1
            self.slowest = max(self.slowest, seconds)
            self.workers.add(worker)

    def fail(self, path: str, why: str, worker: int, seconds: float) -> None:
        """Count a request that failed."""
        now = time.time()
        with self.lock:
            self.asked += 1
            self.failures.append(Failure(now - seconds, now, path, why, worker))

    def describe(self) -> str:
        """Return the numbers in words."""
        first = f"; the first: {self.failures[0].path}: {self.failures[0].why}" if self.failures else ""
        return f"{self.asked:,} requests, {len(self.failures)} failed, the slowest {self.slowest * 1e3:.0f} ms{first}"


class Client:
    """One client, whose connection is kept as long as the server keeps it."""

    def __init__(self, port: int, tally: Tally, keep: bool = True) -> None:
        self._port = port
        self._tally = tally
        self._keep = keep
        self._sock: socket.socket | None = None
        self._worker = 0

    def ask(self, path: str) -> bool:
        """Ask once; count what came of it."""
        began = time.monotonic()
        before = self._worker
        try:
            status, worker, last = self._exchange(path)
        except OSError as error:
            self.close()
            self._tally.fail(path, f"{error}" or type(error).__name__, before, time.monotonic() - began)
            return False
        if last:
            self.close()
        if status != 200:
            self._tally.fail(path, f"status {status}", before, time.monotonic() - began)
            return False
        self._worker = 0 if last else worker
        self._tally.add(time.monotonic() - began, worker)
        return True

    def _exchange(self, path: str) -> tuple[int, int, bool]:
        """Return status, worker, and whether the connection ends. Raise ``OSError`` for anything incomplete."""
        if self._sock is None:
            self._sock = socket.create_connection(("127.0.0.1", self._port), PATIENCE)
        kept = "keep-alive" if self._keep else "close"
        self._sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {kept}\r\n\r\n".encode())
        head, rest = read_head(self._sock)
        length, worker = _LENGTH.search(head), _WORKER.search(head)
        size = int(length[1]) if length else 0
        while rest < size:
            piece = self._sock.recv(65536)
            if not piece:
                raise ConnectionError(f"the answer ended {size - rest} bytes early")
            rest += len(piece)
        return int(head[9:12]), int(worker[1]) if worker else 0, bool(_CLOSE.search(head)) or not length

    def close(self) -> None:
        """Close the connection."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None
        self._worker = 0


def read_head(sock: socket.socket) -> tuple[bytes, int]:
    """Return a response's head and how many bytes of its body have come with it. Raise ``OSError``."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            raise ConnectionError("no answer" if not data else "half a head")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return head, len(body)


class SteadyLoad:
    """``rate`` requests a second over ``connections`` kept connections, for the length of a ``with`` block.

    Each connection has its own times, which do not move when an answer is late. ``path`` may hold ``{}`` for a number.
    """

    def __init__(self, port: int, rate: float, connections: int, path: str = "/?{}", keep: bool = True) -> None:
        self.tally = Tally()
        self._done = threading.Event()
        self._port = port
        self._path = path
        self._keep = keep
        pause = connections / rate
        self._threads = [
            threading.Thread(target=self._run, args=(number, pause, pause * number / connections), daemon=True)
            for number in range(connections)
        ]

    def _run(self, number: int, pause: float, at: float) -> None:
        client = Client(self._port, self.tally, self._keep)
        began = time.monotonic()
        count = 0
        while not self._done.wait(max(0.0, began + at - time.monotonic())):
            client.ask(self._path.format(f"{self._port}-{number}-{count}"))
            count += 1
            at += pause
        client.close()

    def __enter__(self) -> SteadyLoad:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()


class Crowd:
    """``size`` clients that ask for ``path`` again and again until ``stop``."""

    def __init__(self, port: int, size: int, path: str) -> None:
        self.tally = Tally()
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(port, path), daemon=True) for _ in range(size)]
        for thread in self._threads:
            thread.start()

    def _run(self, port: int, path: str) -> None:
        client = Client(port, self.tally, keep=False)
        while not self._done.is_set():
            client.ask(path)

    def stop(self) -> None:
        """Let each get its answer and go."""
        self._done.set()
        for thread in self._threads:
            thread.join()
