"""The workers of a pool as its doorman knows them: copies of what waits on each, and what is taken from busy ones.

Which connections are whose is decided without a system call of the worker. The doorman looks at each worker again and
again: twice the same request is a long one. Then it says so in shared memory, and looks a third time: if the worker
is still at that request, it will find the word before it touches a waiting connection, and ask for what was taken.
Between the store and the third look lies a wait: no processor keeps a store to itself for so long.

A connection that was taken has an owner who cannot close its copy, so its end would not show if whoever serves it dies.
The doorman keeps a copy, and ends it then.

Knows sockets and the scoreboard's words; nothing of what becomes of a connection that was taken.
"""

from __future__ import annotations

import os
import socket
from functools import partial
from time import monotonic, monotonic_ns

from gateways.core.states import BUSY, DEAD, IDLE, STARTING
from gateways.serve.connection import end_connection
from gateways.serve.passing import (
    BACK,
    COPY,
    FORGOTTEN,
    KNOCK,
    MARK,
    MOST_COPIES,
    SHARED,
    close_all,
    is_channel,
    receive,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gateways.core.interfaces import Board, Door
    from gateways.serve.loop import ConnectionLoop

    Work = tuple[int, int, int, int, int]

MOST_IN_A_ROW = 64
"""Messages of one worker before others are looked at."""
LAST_WORD = 1.0
"""Seconds from a worker's death until a connection that it served is ended: the supervisor may answer there (504)."""
CALM, ASKED, TAKING = range(3)


class Lodger:
    """A worker as the doorman sees it. ``copies``: mark -> (descriptor, listener's number). ``taken``: marks.

    ``owned``: the marks under which others serve what was taken and it has a copy of.
    """

    __slots__ = ("channel", "copies", "line", "owned", "seen", "stage", "taken")

    def __init__(self, line: int, channel: socket.socket) -> None:
        self.line = line
        self.channel = channel
        self.copies: dict[int, tuple[int, int]] = {}
        self.seen: Work | None = None
        self.stage = CALM
        self.taken: list[int] = []
        self.owned: list[int] = []


class Lodgers:
    """Every worker that has knocked. ``take(fd, number, mark)``: what is done with a connection that was taken.

    ``heard`` is called when anything comes from a worker. ``is_open``: whether anything may be taken.
    """

    def __init__(
        self,
        loop: ConnectionLoop,
        door: Door,
        board: Board,
        listeners: int,
        take: Callable[[int, int, int], None],
        heard: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._door = door
        self._board = board
        self._listeners = listeners
        self._take_on = take
        self._heard = heard
        self.is_open = False
        self._lodgers: dict[int, Lodger] = {}
        # Mark -> a copy of what was taken; what each line was at; mark -> when to end it, as its server has died.
        self._served: dict[int, int] = {}
        self._works: Sequence[Work] = ()
        self._orphans: dict[int, float] = {}
        # No two doormen give the same mark: one that stands in a line may be of another.
        self._last = -monotonic_ns()
        loop.watch(door.knocks.fileno(), self._answer_knock)

    def list_copies(self) -> list[int]:
        """Return the descriptors of all copies."""
        return [fd for lodger in self._lodgers.values() for fd, _ in lodger.copies.values()]

    def look(self, works: Sequence[Work], has_others: Callable[[Work], bool]) -> None:
        """Move each worker on. ``works``: what those of each line are at; ``has_others(work)``: besides one at that."""
        for lodger in list(self._lodgers.values()):
            work = works[lodger.line] if lodger.line < len(works) else None
            self._judge(lodger, work, work is not None and has_others(work))
        if self._served:
            self._end_orphans(works)
        self._works = works

    def _end_orphans(self, works: Sequence[Work]) -> None:
        """End what a worker has served last that has died: its owner's copy would keep it open.

        The mark that a worker has served last stays in its line. It cannot have been taken from there since: for that,
        the worker would have to serve another.
        """
        now = monotonic()
        for before, after in zip(self._works, works, strict=False):
            # Idle without a request served: another worker already.
            if after[0] in (DEAD, STARTING) or (after[0] == IDLE and not after[2]):
                for mark in {before[3], after[3]} & self._served.keys():
                    self._orphans.setdefault(mark, now + LAST_WORD)
        for mark, when in list(self._orphans.items()):
            if mark not in self._served:
                del self._orphans[mark]
            elif when <= now:
                end_connection(self._served[mark])

    def close(self) -> None:
        """Forget everybody: who is at a long request finds, when it is done, what was taken."""
        for lodger in list(self._lodgers.values()):
            if lodger.stage != CALM:
                self._say_taken(lodger)
        for lodger in list(self._lodgers.values()):
            self._end(lodger)

    def _answer_knock(self) -> None:
        self._heard()
        try:
            data, fds = receive(self._door.knocks, KNOCK.size, 1)
        except OSError:
            return
        line = KNOCK.unpack(data)[0] if len(data) == KNOCK.size else -1
        if not (0 <= line < self._door.tally.lines and len(fds) == 1 and is_channel(fds[0])):
            close_all(fds)
            return
        if line in self._lodgers:
            self._end(self._lodgers[line])
        channel = socket.socket(fileno=fds[0])
        lodger = self._lodgers[line] = Lodger(line, channel)
        self._loop.watch(channel.fileno(), partial(self._hear, lodger))

    def _hear(self, lodger: Lodger) -> bool:
        """Take what a worker has said; True when there was no more of it than is taken in a row."""
        self._heard()
        for _ in range(MOST_IN_A_ROW):
            if self._lodgers.get(lodger.line) is not lodger:
                return True
            try:
                data, fds = receive(lodger.channel, 1 + COPY.size * MOST_COPIES, MOST_COPIES)
            except BlockingIOError:
                return True
            except OSError:
                data, fds = b"", []
            self._obey(lodger, data[:1], data[1:], fds)
        return False

    def _obey(self, lodger: Lodger, kind: bytes, rest: bytes, fds: list[int]) -> None:
        if kind == bytes((SHARED,)) and len(rest) % COPY.size == 0:
            self._keep(lodger, list(COPY.iter_unpack(rest)), fds)
            return
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
            if mark in lodger.copies or not 0 <= number < self._listeners:
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

    def _judge(self, lodger: Lodger, work: Work | None, has_others: bool) -> None:
        """Move one worker on: from a long request, to saying so, to taking what it leaves waiting."""
        is_same = work is not None and work[0] == BUSY and work == lodger.seen
        lodger.seen = work
        if lodger.stage == CALM:
            if is_same and has_others and len(lodger.copies) > (work is not None and work[3] in lodger.copies):
                self._board.write_taking(lodger.line, True)
                lodger.stage = ASKED
        elif lodger.stage == ASKED and not is_same:
            # It may have found the word: then it asks, and is answered.
            self._board.write_taking(lodger.line, False)
            lodger.stage = CALM
        # What it has said before this request counts: that something came on a connection, for one.
        elif lodger.stage == ASKED and self._hear(lodger) and lodger.line in self._lodgers and lodger.stage == ASKED:
            lodger.stage = TAKING
            for mark in lodger.copies:
                self._take_later(lodger, mark)

    def _take_later(self, lodger: Lodger, mark: int) -> None:
        """Take a waiting connection of a worker as soon as something comes on it."""
        work = lodger.seen
        if work is None or mark != work[3]:
            self._loop.watch(lodger.copies[mark][0], partial(self._take, lodger, mark))

    def _take(self, lodger: Lodger, mark: int) -> None:
        fd, number = lodger.copies[mark]
        self._loop.unwatch(fd)
        if not self.is_open:
            return  # its own worker comes to it
        del lodger.copies[mark]
        lodger.taken.append(mark)
        self._last -= 1
        lodger.owned.append(self._last)
        self._served[self._last] = os.dup(fd)
        self._take_on(fd, number, self._last)

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
        self._disown(lodger)
        try:
            lodger.channel.send(answer, socket.MSG_DONTWAIT)
        except OSError:
            self._end(lodger)

    def _disown(self, lodger: Lodger) -> None:
        """Let go of what was taken from a worker that is about to close its own copies, or has done so."""
        for mark in lodger.owned:
            os.close(self._served.pop(mark))
        lodger.owned = []

    def _end(self, lodger: Lodger) -> None:
        """Forget a worker: it is gone, or makes no sense."""
        self._disown(lodger)
        for mark in list(lodger.copies):
            self._forget(lodger, mark)
        self._loop.unwatch(lodger.channel.fileno())
        lodger.channel.close()
        del self._lodgers[lodger.line]
