"""The connections that wait for any worker of a full pool, in order; and the answer to those that may not.

What was sent to the workers' common socket and not taken *is* the queue: the kernel counts it. What finds no room there
is held here. Knows sockets, wires and a loop that answers; nothing of when a pool is full.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
from collections import deque
from math import ceil
from time import monotonic

from gateways.serve.connection import Connection
from gateways.serve.passing import HANDED, find_peer, receive_handed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateways.core.interfaces import Door, Exchange, Log
    from gateways.serve.listener import Listener
    from gateways.serve.loop import ConnectionLoop

REPORT_PAUSE = 10.0
"""Seconds between two lines of the log about a full pool."""


class TurnAway:
    """The execution model of a full pool: 503, and when to come again (RFC 9110 15.6.4, 10.2.3)."""

    name = "full"

    def __init__(self, retry_after: float) -> None:
        self._fields = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Retry-After", str(max(1, ceil(retry_after)))),
        ]

    def load(self) -> None:
        """Nothing is loaded."""

    def run(self, exchange: Exchange) -> None:
        """Answer; the body of the request is not read."""
        exchange.respond("503 Service Unavailable", self._fields, b"503 Service Unavailable\nall workers are busy\n")

    def close(self) -> None:
        """Nothing is held."""


class Queue:
    """At most ``most`` connections wait while the pool ``is_full``, none longer than ``patience`` seconds; 0: no limit.

    ``loop``: where those that may not wait are answered, by ``TurnAway``.
    """

    def __init__(
        self, loop: ConnectionLoop, listeners: Sequence[Listener], door: Door, most: int, patience: float, log: Log
    ) -> None:
        self._loop = loop
        self._listeners = listeners
        self._door = door
        self._most = most
        self._patience = patience
        self._log = log
        self.is_full = False
        # When what is on its way was sent, and what finds no room there: (descriptor, listener's number, mark, since).
        self._sent: deque[float] = deque()
        self._held: deque[tuple[int, int, int, float]] = deque()
        self._reported_at = -REPORT_PAUSE
        self._turned_away = self._reported = 0

    @property
    def is_limited(self) -> bool:
        """True when not everybody may wait for any time."""
        return self._most > 0 or self._patience > 0

    def put(self, fd: int, number: int, mark: int = 0) -> None:
        """Give a connection to whichever worker is free first, or turn it away. ``mark``: below 0 if it was taken."""
        if self.is_full and self._most and self.count() >= self._most:
            self._turn_away(fd, number)
            return
        self._door.tally.passed += mark < 0
        if self._held or not self._send(fd, number, mark, monotonic()):
            self._held.append((fd, number, mark, monotonic()))

    def _send(self, fd: int, number: int, mark: int, since: float) -> bool:
        try:
            socket.send_fds(self._door.handing, [HANDED.pack(number, mark)], [fd], socket.MSG_DONTWAIT)
        except OSError:
            return False
        os.close(fd)
        self._sent.append(since)
        return True

    def count(self) -> int:
        """Return how many connections were handed on and not taken."""
        sent = fcntl.ioctl(self._door.handed, termios.FIONREAD, bytes(4))
        waiting: int = struct.unpack("=i", sent)[0] // HANDED.size
        while len(self._sent) > waiting:
            self._sent.popleft()
        return waiting + len(self._held)

    def trim(self, has_takers: bool, now: float) -> None:
        """Turn away what has waited for too long, and everything when there is nobody left to take it."""
        if self._sent or self._held:
            self.count()
            self._turn_away_late(now - self._patience if self._patience else 0.0, not has_takers)
            while self._held and self._send(*self._held[0]):
                self._held.popleft()

    def _turn_away_late(self, latest: float, all_of_them: bool) -> None:
        while self._sent and (all_of_them or self._sent[0] <= latest):
            handed = receive_handed(self._door.handed)
            if handed is None:
                break
            self._sent.popleft()
            fd, number, _ = handed
            self._turn_away(fd, number, waited=True)
        while self._held and (all_of_them or self._held[0][3] <= latest):
            fd, number, _, _ = self._held.popleft()
            self._turn_away(fd, number, waited=True)

    def _turn_away(self, fd: int, number: int, waited: bool = False) -> None:
        """Answer 503 as soon as the head of a request is there."""
        self._turned_away += 1
        self._door.tally.turned_away += 1
        self._door.tally.timed_out += waited
        try:
            wire = self._listeners[number].wire(find_peer(fd))
        except (OSError, IndexError):
            os.close(fd)
            return
        connection = Connection(fd, wire, self._loop.times)
        connection.last = connection.handed = True
        self._loop.adopt(connection)

    def report(self, now: float) -> None:
        """Show what waits; log what was turned away, now and then."""
        tally = self._door.tally
        waiting = len(self._sent) + len(self._held)
        if waiting != tally.waiting:
            tally.waiting = waiting
        more = self._turned_away - self._reported
        if more and now >= self._reported_at + REPORT_PAUSE:
            self._reported_at = now
            self._reported += more
            self._log.warning(
                "pool %s is full: %d connections were answered 503; raise MaxServers (%d), MaxQueue (%s) or"
                " QueueTimeout (%s)",
                self._door.pool, more, tally.max_servers, self._most or "no limit",
                f"{self._patience:g} s" if self._patience else "no limit",
            )  # fmt: skip

    def close(self) -> None:
        """Log what was not logged yet."""
        self._reported_at = -REPORT_PAUSE
        self.report(monotonic())
