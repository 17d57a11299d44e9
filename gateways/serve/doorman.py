"""The doorman of a pool: a process beside its workers that sees to it that no connection waits for one of them alone.

Two duties, each only where the settings ask for it:

- **Sharing.** It has a copy of every waiting connection of every worker (``sharing``). When a worker stays with one
  request, what comes on its other connections is handed to whichever worker is free first.
- **The queue.** When every worker that there may be is busy it accepts in their place, and hands on in order. What is
  beyond MaxQueue, or older than QueueTimeout, is answered 503, by a loop of its own that reads request heads only.

Both go over one socket pair on which all workers listen: what was sent there and not taken *is* the queue.

Knows workers as lines of the scoreboard; no application, no pid. Whose a connection is stands in ``lodgers``, what
waits in ``queue``.
"""

from __future__ import annotations

import resource
from functools import partial
from time import monotonic

from gateways.core.states import BUSY, DEAD, IDLE, SERVING, STARTING
from gateways.serve.lodgers import Lodgers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateways.core.interfaces import Board, Door
    from gateways.serve.listener import Listener
    from gateways.serve.loop import ConnectionLoop
    from gateways.serve.queue import Queue

    Work = tuple[int, int, int, int, int]

TICK = 0.01
"""Seconds between two looks at the workers while anything happens."""
REST = 1.0
"""Seconds without a request after which nothing is looked at until something comes."""
MOST_IN_A_ROW = 64
"""Connections accepted before others are looked at."""


class Doorman:
    """Looks at the workers of a pool, and at its listeners while nobody else does.

    ``loop``: answers those whom ``queue`` turns away. ``board``: shared memory. ``generation``: of the pool, whose
    workers take what is handed on.
    """

    def __init__(
        self,
        loop: ConnectionLoop,
        listeners: Sequence[Listener],
        door: Door,
        board: Board,
        generation: int,
        queue: Queue,
    ) -> None:
        self._loop = loop
        self._listeners = listeners
        self._door = door
        self._tally = door.tally
        self._board = board
        self._generation = generation
        self._queue = queue
        self._lodgers = Lodgers(loop, door, board, len(listeners), queue.put, self._wake)
        self._full_looks = 0
        self._at_gate = False
        self._resting: list[int] | None = None
        self._leaving = False
        self._takers = 0
        self._workers = 0
        self._works: list[Work] = []
        self._next_look = 0.0
        self._active_until = 0.0
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
        self._lodgers.look(works, self._has_others)
        self._queue.trim(self._takers > 0, now)
        if self._leaving:
            self._leave()
            return
        self._queue.report(now)
        if now >= self._active_until and self._resting is None:
            self._rest()

    def _rest(self) -> None:
        """Stop looking until something comes, on whatever connection or listener."""
        self._resting = self._lodgers.list_copies()
        if self._queue.is_limited:
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

    # Workers.

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
        self._queue.is_full = is_full
        self._lodgers.is_open = self._takers > 0 and not self._leaving
        self._guard(self._queue.is_limited and self._full_looks > 1 and self._lodgers.is_open)

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
            self._queue.put(fd, listener.number)

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
        if not (self._loop.stop_kind or self._queue.count()):
            self._lodgers.close()
            self._queue.close()
            self._loop.stop("retire")


def raise_descriptor_limit() -> None:
    """Let this process hold as many copies as it is ever allowed to."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
