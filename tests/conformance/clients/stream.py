"""A connection with one time limit for everything done on it, and a buffer in front. Knows no protocol."""

from __future__ import annotations

import select
import socket
import time

from tests.conformance.addresses import Address
from tests.conformance.messages import Broken

MAX_LINE = 1 << 20
PAUSE = 0.2
"""Seconds between two sends of a request that comes in parts, so that the server sees the first alone."""


class Stream:
    """A connection to ``address``; everything together may take ``limit`` seconds. Raise ``TimeoutError`` beyond."""

    def __init__(self, address: Address, limit: float) -> None:
        self.end = time.monotonic() + limit
        self.buffer = b""
        self.ended = False
        """The peer has ended the connection, in order."""
        if address.path:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(limit)
            self.sock.connect(address.path)
        else:
            self.sock = socket.create_connection((address.host, address.port), limit)

    def close(self) -> None:
        self.sock.close()

    def left(self) -> float:
        """Seconds left; raise ``TimeoutError`` when there are none."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time limit of the row is over")
        return left

    def send(self, data: bytes) -> None:
        """Send everything, reading meanwhile what comes, so that no two sides wait for each other.

        A peer that has stopped reading is no error here: its answer, if there is one, says more.
        """
        view = memoryview(data)
        self.sock.setblocking(False)
        try:
            while view:
                readable, writable, _ = select.select([] if self.ended else [self.sock], [self.sock], [], self.left())
                if readable:
                    self._take()
                if writable:
                    view = view[self.sock.send(view) :]
        except (BrokenPipeError, ConnectionResetError):
            return
        finally:
            self.sock.setblocking(True)

    def _take(self) -> None:
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            self.ended = True
            raise
        self.ended = not data
        self.buffer += data

    def wait(self, seconds: float) -> bool:
        """Wait until something comes; False when nothing did."""
        return bool(self.buffer or self.ended or select.select([self.sock], [], [], min(seconds, self.left()))[0])

    def half_close(self) -> None:
        """Say that nothing more will be sent."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def fill(self) -> bool:
        """Add to the buffer what comes next; False at the end of the connection. Raise ``ConnectionResetError``."""
        if self.ended:
            return False
        self.sock.settimeout(self.left())
        self._take()
        return not self.ended

    def at_end(self) -> bool:
        """True when nothing more will come; waits for either."""
        return not self.buffer and not self.fill()

    def read_some(self, size: int = 1 << 30) -> bytes:
        """At least one byte and at most ``size``; ``b""`` at the end."""
        if not self.buffer:
            self.fill()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def read_line(self) -> bytes:
        """A line without its CRLF. Raise ``Broken`` for a bare LF or CR, and at the end of the connection."""
        while b"\n" not in self.buffer:
            if len(self.buffer) > MAX_LINE or not self.fill():
                raise Broken(f"the connection ended within a line: {self.buffer[:80]!r}")
        line, _, self.buffer = self.buffer.partition(b"\n")
        if not line.endswith(b"\r") or b"\r" in line[:-1]:
            raise Broken(f"a line that does not end in CRLF: {line[:80]!r}")
        return line[:-1]

    def read_exactly(self, size: int) -> bytes:
        """``size`` bytes. Raise ``Broken`` when the connection ends before."""
        while len(self.buffer) < size:
            if not self.fill():
                raise Broken(f"the connection ended after {len(self.buffer)} of {size} bytes")
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data
