"""The roster: which children there are, on which line of the scoreboard, and what can be said of them together.

Everything here runs in the supervisor. It forks, tells and collects; how many there shall be is decided elsewhere.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from gateways.process.children import Child, format_death, judge_death, reap_children, spawn_child
from gateways.process.pool import Generation
from gateways.process.scoreboard import Scoreboard, State
from gateways.process.signals import Bell
from gateways.process.worker import Worker

if TYPE_CHECKING:
    from gateways.core.interfaces import Log

SETTLED_AGE = 1.0


class Roster:
    """The supervisor's children, by pid.

    ``news`` rings when a worker has become ready; ``give_up(generation)`` runs in each new child and closes what is the
    supervisor's and not that generation's.
    """

    def __init__(self, size: int, give_up: Callable[[Generation], None], log: Log) -> None:
        self.news = Bell()
        self._board = Scoreboard(size)
        # Only the supervisor holds the write end: its end of life is the read end's end of file.
        self._lifeline = Bell()
        self._give_up = give_up
        self._log = log
        self._children: dict[int, Child] = {}

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Child]:
        return iter([*self._children.values()])

    def make_room(self, size: int) -> None:
        """See that there are at least ``size`` lines for children to come; those that live keep theirs."""
        if self._board.size < size:
            self._board = Scoreboard(size)

    def serving(self, generation: Generation) -> list[Child]:
        """Return the children of ``generation`` that are not leaving."""
        return [child for child in self if child.generation is generation and not child.leaving]

    def older(self, generation: Generation) -> list[Child]:
        """Return the children of earlier generations that are not leaving, the least useful first."""
        old = [child for child in self if child.generation.number < generation.number and not child.leaving]
        return sorted(old, key=lambda child: child.state)

    def count(self, newest: Generation) -> tuple[int, int]:
        """Return how many serve up to generation ``newest``: the idle (with the starting) and the busy."""
        states = [c.state for c in self if c.generation.number <= newest.number and not c.leaving]
        busy = states.count(State.BUSY)
        return len(states) - busy, busy

    def spawn(self, generation: Generation, count: int, now: float) -> int:
        """Start up to ``count`` workers, as many as the back-off and the scoreboard allow; return how many."""
        starting = sum(child.state is State.STARTING for child in self.serving(generation))
        count = min(count, generation.backoff.allowance(now, starting, generation.proven))
        if count <= 0:
            return 0
        used = {child.index for child in self if child.board is self._board}
        free = [index for index in range(self._board.size) if index not in used][:count]
        for done, index in enumerate(free):
            try:
                child = self._fork(generation, index, now)
            except OSError as error:
                delay = generation.backoff.fail(now)
                self._log.error("cannot start a worker: %s; trying again in %.1f s", error.strerror or error, delay)
                return done
            self._children[child.pid] = child
        return len(free)

    def _fork(self, generation: Generation, index: int, now: float) -> Child:
        chance = random.random()

        def make() -> Worker:
            limit = generation.pool.limits.plan_max_requests(chance)
            listeners = generation.pool.listeners
            return Worker(self._board.slot(index), listeners, self._lifeline.read_fd, limit, self._log, self.news)

        # What exists now stays shared between the workers: no collector of theirs will write to it.
        gc.freeze()
        try:
            return spawn_child(generation, self._board, index, now, make, partial(self._forget, generation))
        finally:
            gc.unfreeze()

    def _forget(self, generation: Generation) -> None:
        """Close, in a new child, what only the supervisor may hold."""
        os.close(self._lifeline.write_fd)
        os.close(self.news.read_fd)
        self._give_up(generation)

    def reap(self, now: float) -> int:
        """Collect the dead, one log line each; return how many went by surprise: neither told to nor seen to leave.

        Pids that are not ours (we may be process 1) are collected in silence.
        """
        died = 0
        for death in reap_children():
            child = self._children.pop(death.pid, None)
            if child is None:
                continue
            child.observe()
            line = child.board.read_line(child.index)
            child.board.close_line(child.index)
            words = format_death(child, death, line, now)
            verdict = judge_death(child.told, child.state, death.status, now - child.born, line.requests)
            (self._log.error if verdict.loud else self._log.info)("%s", words)
            died += not child.told and child.kill_at == inf
            if verdict.failed:
                child.generation.fail(words, verdict.boot, now)
            elif line.requests:
                child.generation.backoff.succeed()
        return died

    def observe(self, now: float) -> int:
        """Look at the scoreboard: note who is ready and who has settled; who leaves by itself gets a time limit.

        Return how many have newly been found to leave by themselves: they are replaced before they are gone.
        """
        leaving = 0
        for child in self:
            state = child.observe()
            if state is State.STARTING:
                continue
            child.generation.proven = True
            if not child.settled and now - child.born >= SETTLED_AGE:
                child.settled = True
                child.generation.backoff.succeed()
            if state is State.CLOSING and not child.told and child.kill_at == inf:
                child.kill_at = now + child.generation.pool.limits.graceful_timeout
                leaving += 1
        return leaving

    def kill_overdue(self, now: float) -> None:
        """Kill those whose time to leave is over."""
        for child in self:
            if now >= child.kill_at:
                self._log.warning("worker %d is killed: it did not leave in its time", child.pid)
                child.kill()

    def close(self, patience: float, wait: Callable[[float], None]) -> None:
        """Kill and collect whoever is left, for ``patience`` seconds; close what was opened here."""
        for child in self:
            child.kill()
        deadline = monotonic() + patience
        while self._children and monotonic() < deadline:
            wait(deadline - monotonic())
            self.reap(monotonic())
        self.news.close()
        self._lifeline.close()
