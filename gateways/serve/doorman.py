"""The doorman of a pool: a process beside its workers that sees to it that no connection waits for one of them alone.

Two duties, each only where the settings ask for it:

- **Sharing.** It has a copy of every waiting connection of every worker (``sharing``). When a worker stays with one
  request, what comes on its other connections is handed to whichever worker is free first.
- **The queue.** When every worker that there may be is busy it accepts in their place, and hands on in order. What is
  beyond MaxQueue, or older than QueueTimeout, is answered 503, by a loop of its own that reads request heads only.

Both go over one socket pair on which all workers listen: what was sent there and not taken *is* the queue.

Which connections are whose is decided without a system call of the worker. The doorman looks at each worker every
``TICK``: twice the same request is a long one. Then it says so in shared memory, and looks a third time: if the worker
is still at that request, it will find the word before it touches a waiting connection, and ask for what was taken.
Between the store and the third look lies a wait: no processor keeps a store to itself for so long.

Knows sockets, wires and the scoreboard's words; no application, no pid.
"""

from __future__ import annotations

import fcntl
import os
import resource
import socket
import struct
import termios
from collections import deque
from functools import partial
from math import ceil
from time import monotonic

from gateways.core.states import BUSY, DEAD, IDLE, SERVING, STARTING
from gateways.serve.connection import Connection
from gateways.serve.sharing import (
    BACK,
    COPY,
    FORGOTTEN,
    HANDED,
    KNOCK,
    MARK,
    MOST_COPIES,
    RECEIVE_FLAGS,
    SHARED,
    close_all,
    find_peer,
    read_descriptors,
    receive_handed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateways.core.interfaces import Board, Door, Exchange, Log

    Work = tuple[int, int, int, int, int]
    from gateways.serve.listener import Listener
    from gateways.serve.loop import ConnectionLoop

TICK = 0.01
"""Seconds between two looks at the workers while anything happens."""
REST = 1.0
"""Seconds without a request after which nothing is looked at until something comes."""
MOST_IN_A_ROW = 64
"""Connections accepted, or messages of one worker, before others are looked at."""
REPORT_PAUSE = 10.0
"""Seconds between two lines of the log about a full pool."""
CALM, ASKED, TAKING = range(3)


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


class Lodger:
    """A worker as the doorman sees it. ``copies``: mark -> (descriptor, listener's number). ``taken``: marks."""

    __slots__ = ("channel", "copies", "line", "seen", "stage", "taken")

    def __init__(self, line: int, channel: socket.socket) -> None:
        self.line = line
        self.channel = channel
        self.copies: dict[int, tuple[int, int]] = {}
        self.seen: Work | None = None
        self.stage = CALM
        self.taken: list[int] = []


class Doorman:
    """Ties a loop that turns away to the doors of a pool.

    ``board`` and ``tally``: shared memory. ``generation``: of the pool, whose workers take what is handed on.
    ``max_queue``: connections that may wait, 0 for any number; ``queue_timeout``: seconds, 0 for any time.
    """

    def __init__(
        self,
        loop: ConnectionLoop,
        listeners: Sequence[Listener],
        door: Door,
        board: Board,
        generation: int,
        max_queue: int,
        queue_timeout: float,
        log: Log,
    ) -> None:
        self._loop = loop
        self._listeners = listeners
        self._door = door
        self._tally = door.tally
        self._board = board
        self._generation = generation
        self._max_queue = max_queue
        self._queue_timeout = queue_timeout
        self._log = log
        self._lodgers: dict[int, Lodger] = {}
        # When what is on its way was sent, and what finds no room there: (descriptor, listener's number, since).
        self._sent: deque[float] = deque()
        self._held: deque[tuple[int, int, float]] = deque()
        self._full_looks = 0
        self._at_gate = False
        self._resting: list[int] | None = None
        self._leaving = False
        self._takers = 0
        self._workers = 0
        self._works: list[Work] = []
        self._next_look = 0.0
        self._active_until = 0.0
        self._reported_at = -REPORT_PAUSE
        self._turned_away = self._told = 0
        loop.watch(door.knocks.fileno(), self._answer_knock)
        loop.pulse(TICK, self._turn)

    # Time.

    def _turn(self) -> float | None:
        """What the loop calls after each wait: look if it is time. Return the longest next wait."""
        now = monotonic()
        if now >= self._next_look:
            self._next_look = now + TICK
            self._look(now)
        return None if self._resting is not None else max(0.0, self._next_look - now)

    def _look(self, now: float) -> None:
        works = self._board.read_works(self._tally.lines)
        if works != self._works or self._leaving or any(work[0] == BUSY for work in works):
            self._active_until = now + REST
        self._works = works
        self._count_workers(works)
        for lodger in list(self._lodgers.values()):
            self._judge(lodger, works)
        if self._sent or self._held or self._tally.waiting:
            self._trim(now)
        if self._turned_away != self._told:
            self._report(now)
        if self._leaving:
            self._leave()
        elif now >= self._active_until and self._resting is None:
            self._rest()

    def _rest(self) -> None:
        """Stop looking until something comes, on whatever connection or listener."""
        self._resting = [fd for lodger in self._lodgers.values() for fd, _ in lodger.copies.values()]
        if self._is_queueing:
            self._resting += [listener.fd for listener in self._listeners]
        for fd in self._resting:
            self._loop.watch(fd, self._wake)

    def _wake(self) -> None:
        if self._resting is None:
            return
        for fd in self._resting:
            self._loop.unwatch(fd)
        self._resting = None
        self._active_until = monotonic() + REST
        self._next_look = 0.0

    @property
    def _is_queueing(self) -> bool:
        return self._max_queue > 0 or self._queue_timeout > 0

    # Workers.

    def _answer_knock(self) -> None:
        self._wake()
        try:
            data, ancillary, _, _ = self._door.knocks.recvmsg(KNOCK.size, socket.CMSG_SPACE(4), RECEIVE_FLAGS)
        except OSError:
            return
        fds = read_descriptors(ancillary)
        line = KNOCK.unpack(data)[0] if len(data) == KNOCK.size else -1
        if not (0 <= line < self._tally.lines and len(fds) == 1 and is_channel(fds[0])):
            close_all(fds)
            return
        if line in self._lodgers:
            self._end(self._lodgers[line])
        channel = socket.socket(fileno=fds[0])
        lodger = self._lodgers[line] = Lodger(line, channel)
        self._loop.watch(channel.fileno(), partial(self._hear, lodger))

    def _hear(self, lodger: Lodger) -> None:
        """Take every message of a worker."""
        self._wake()
        for _ in range(MOST_IN_A_ROW):
            if self._lodgers.get(lodger.line) is not lodger:
                return
            try:
                room = socket.CMSG_SPACE(4 * MOST_COPIES)
                data, ancillary, _, _ = lodger.channel.recvmsg(1 + COPY.size * MOST_COPIES, room, RECEIVE_FLAGS)
            except BlockingIOError:
                return
            except OSError:
                data, ancillary = b"", []
            fds = read_descriptors(ancillary)
            kind, rest = data[:1], data[1:]
            if kind == bytes((SHARED,)) and len(rest) % COPY.size == 0:
                self._keep(lodger, list(COPY.iter_unpack(rest)), fds)
                continue
            close_all(fds)
            if kind == bytes((FORGOTTEN,)) and len(rest) == MARK.size:
                self._forget(lodger, MARK.unpack(rest)[0])
            elif kind == bytes((BACK,)):
                self._release(lodger)
            else:
                self._end(lodger)

    def _keep(self, lodger: Lodger, rows: list[tuple[int, int]], fds: list[int]) -> None:
        # Fewer descriptors than rows: there is no room for more, and their worker serves them alone.
        for (mark, number), fd in zip(rows, fds, strict=False):
            if mark in lodger.copies or not 0 <= number < len(self._listeners):
                os.close(fd)
                continue
            lodger.copies[mark] = (fd, number)
            if lodger.stage == TAKING:
                self._take_later(lodger, mark)

    def _forget(self, lodger: Lodger, mark: int) -> None:
        copy = lodger.copies.pop(mark, None)
        if copy is not None:
            if copy[0] in self._loop.wakeups:
                self._loop.unwatch(copy[0])
            os.close(copy[0])

    def _judge(self, lodger: Lodger, works: Sequence[Work]) -> None:
        """Move one worker on: from a long request, to saying so, to taking what it leaves waiting."""
        work = works[lodger.line]
        is_same = work[0] == BUSY and work == lodger.seen
        lodger.seen = work
        if lodger.stage == CALM:
            if is_same and self._has_others(work) and len(lodger.copies) > (work[3] in lodger.copies):
                self._board.write_taking(lodger.line, True)
                lodger.stage = ASKED
        elif lodger.stage == ASKED and not is_same:
            # It may have found the word: then it asks, and is answered.
            self._board.write_taking(lodger.line, False)
            lodger.stage = CALM
        elif lodger.stage == ASKED:
            self._hear(lodger)  # what it has said before this request counts
            if lodger.stage == ASKED and lodger.line in self._lodgers:
                lodger.stage = TAKING
                for mark in lodger.copies:
                    self._take_later(lodger, mark)

    def _has_others(self, work: Work) -> bool:
        """True when another worker could come to what this one leaves waiting, or one more could be started for it."""
        others = self._takers - self._is_taker(work)
        return not self._leaving and (others > 0 or self._workers < self._tally.max_servers)

    def _is_taker(self, work: Work) -> bool:
        return work[4] == self._generation and not work[1] and work[0] in SERVING

    def _count_workers(self, works: Sequence[Work]) -> None:
        """See who could take what is handed on, and whether every worker that there may be is busy."""
        self._takers = sum(map(self._is_taker, works))
        states = [work[0] for work in works if not work[1]]
        self._workers = len(states) - states.count(DEAD)
        is_full = states.count(BUSY) >= self._tally.max_servers and not (states.count(IDLE) or states.count(STARTING))
        self._full_looks = self._full_looks + 1 if is_full else 0
        self._guard(self._is_queueing and self._full_looks > 1 and self._takers > 0 and not self._leaving)

    def _guard(self, at_gate: bool) -> None:
        """Begin or cease to accept in the workers' place."""
        if at_gate == self._at_gate:
            return
        self._at_gate = at_gate
        for listener in self._listeners:
            if at_gate:
                self._loop.watch(listener.fd, partial(self._accept, listener))
            else:
                self._loop.unwatch(listener.fd)

    # Connections.

    def _take_later(self, lodger: Lodger, mark: int) -> None:
        """Take a waiting connection of a worker as soon as something comes on it."""
        work = lodger.seen
        if work is None or mark != work[3]:
            self._loop.watch(lodger.copies[mark][0], partial(self._take, lodger, mark))

    def _take(self, lodger: Lodger, mark: int) -> None:
        fd, number = lodger.copies[mark]
        self._loop.unwatch(fd)
        if not self._takers or self._leaving:
            return  # its own worker comes to it
        del lodger.copies[mark]
        lodger.taken.append(mark)
        self._hand_on(fd, number, True)

    def _release(self, lodger: Lodger) -> None:
        """Tell a worker what was taken from it: from now on the rest is its own again."""
        if lodger.stage == TAKING:
            for fd, _ in lodger.copies.values():
                if fd in self._loop.wakeups:
                    self._loop.unwatch(fd)
        lodger.stage = CALM
        lodger.seen = None
        self._board.write_taking(lodger.line, False)
        self._say_taken(lodger)

    def _say_taken(self, lodger: Lodger) -> None:
        answer = bytes((BACK,)) + b"".join(map(MARK.pack, lodger.taken))
        lodger.taken = []
        try:
            lodger.channel.send(answer, socket.MSG_DONTWAIT)
        except OSError:
            self._end(lodger)

    def _end(self, lodger: Lodger) -> None:
        """Forget a worker: it is gone, or makes no sense."""
        for mark in list(lodger.copies):
            self._forget(lodger, mark)
        self._loop.unwatch(lodger.channel.fileno())
        lodger.channel.close()
        del self._lodgers[lodger.line]

    def _accept(self, listener: Listener) -> None:
        """Accept what waits on a listener, in the place of workers that are all busy."""
        for _ in range(MOST_IN_A_ROW):
            try:
                fd, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError:
                # No descriptor is left, as a rule. Until the next looks the kernel holds what comes.
                self._full_looks = 0
                self._guard(False)
                return
            self._hand_on(fd, listener.number)

    def _hand_on(self, fd: int, number: int, passed: bool = False) -> None:
        """Give a connection to whichever worker is free first, or turn it away."""
        if self._full_looks and self._max_queue and self._count_waiting() >= self._max_queue:
            self._turn_away(fd, number)
            return
        self._tally.passed += passed
        if self._held or not self._send(fd, number, monotonic()):
            self._held.append((fd, number, monotonic()))

    def _send(self, fd: int, number: int, since: float) -> bool:
        try:
            socket.send_fds(self._door.handing, [HANDED.pack(number)], [fd], socket.MSG_DONTWAIT)
        except OSError:
            return False
        os.close(fd)
        self._sent.append(since)
        return True

    def _count_waiting(self) -> int:
        """Return how many connections were handed on and not taken."""
        sent = fcntl.ioctl(self._door.handed, termios.FIONREAD, bytes(4))
        waiting: int = struct.unpack("=i", sent)[0] // HANDED.size
        while len(self._sent) > waiting:
            self._sent.popleft()
        return waiting + len(self._held)

    def _trim(self, now: float) -> None:
        """Turn away what has waited for too long, and everything once there is nobody left to take it."""
        self._count_waiting()
        while self._sent and self._is_too_late(self._sent[0], now):
            handed = receive_handed(self._door.handed)
            if handed is None:
                break
            self._sent.popleft()
            self._turn_away(*handed, waited=True)
        while self._held and self._is_too_late(self._held[0][2], now):
            fd, number, _ = self._held.popleft()
            self._turn_away(fd, number, waited=True)
        while self._held and self._send(*self._held[0]):
            self._held.popleft()
        if not self._leaving:
            self._tally.waiting = len(self._sent) + len(self._held)

    def _is_too_late(self, since: float, now: float) -> bool:
        return not self._takers or 0 < self._queue_timeout <= now - since

    def _turn_away(self, fd: int, number: int, waited: bool = False) -> None:
        """Answer 503 as soon as the head of a request is there."""
        self._turned_away += 1
        self._tally.turned_away += 1
        self._tally.timed_out += waited
        try:
            wire = self._listeners[number].wire(find_peer(fd))
        except (OSError, IndexError):
            os.close(fd)
            return
        connection = Connection(fd, wire, self._loop.times)
        connection.last = True
        self._loop.adopt(connection)

    def _report(self, now: float) -> None:
        more = self._turned_away - self._told
        if more and now >= self._reported_at + REPORT_PAUSE:
            self._reported_at = now
            self._told += more
            self._log.warning(
                "pool %s is full: %d connections were answered 503; raise MaxServers (%d), MaxQueue (%s) or"
                " QueueTimeout (%s)",
                self._door.pool, more, self._tally.max_servers, self._max_queue or "no limit",
                f"{self._queue_timeout:g} s" if self._queue_timeout else "no limit",
            )  # fmt: skip

    # The end.

    def leave(self) -> None:
        """Accept nothing more, take nothing more, and end when nobody waits."""
        if not self._leaving:
            self._wake()
            self._leaving = True
            self._next_look = 0.0

    def _leave(self) -> None:
        for listener in self._listeners:
            listener.sock.close()
        if self._loop.stop_kind or self._count_waiting():
            return
        for lodger in list(self._lodgers.values()):
            if lodger.stage != CALM:
                self._say_taken(lodger)  # it asks when its request is over, and finds the answer
        for lodger in list(self._lodgers.values()):
            self._end(lodger)
        self._reported_at = -REPORT_PAUSE
        self._report(monotonic())
        self._loop.stop("retire")


def is_channel(fd: int) -> bool:
    """True for the end of a socket pair by which a worker speaks."""
    try:
        with socket.socket(fileno=os.dup(fd)) as sock:
            return sock.family == socket.AF_UNIX and sock.type == socket.SOCK_SEQPACKET
    except OSError:
        return False


def raise_descriptor_limit() -> None:
    """Let this process hold as many copies as it is ever allowed to."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
