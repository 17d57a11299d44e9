"""The roster: which children there are, on which line of the scoreboard, and what can be said of them together.

Everything here runs in the supervisor. It forks, tells and collects; how many there shall be is decided elsewhere.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from signal import SIGKILL
from typing import TYPE_CHECKING, NamedTuple

from gateways.process.apologies import Apologies
from gateways.process.children import Child, Death, adopt_child, explain_death, format_death, judge_death, spawn_child
from gateways.process.ledger import GRACEFUL_TIMEOUT, Ledger, Moment
from gateways.process.limits import MOST_SERVERS
from gateways.process.measures import Measures, MeasuringSlot, parse_measures
from gateways.process.nursery import Nursery
from gateways.process.pool import Generation
from gateways.process.scoreboard import Scoreboard, Slot, SlotReading, State
from gateways.process.signals import Bell
from gateways.process.worker import Worker

if TYPE_CHECKING:
    from gateways.core.interfaces import Log

SETTLED_AGE = 1.0
MOST_LINES = 2 * MOST_SERVERS + 2
"""Lines of the largest pool that there may be: one scoreboard serves it from the first worker to the last."""


class Household(NamedTuple):
    """What all pools of one supervisor share.

    ``news`` rings when a worker has something to show on its scoreboard. ``lifeline``: only the supervisor holds its
    write end, so that the read end's end of file is the supervisor's end of life. ``stacks_fd``: where workers write
    their stacks when asked. ``apologies``: what answers in the place of those that are killed. ``give_up(generation)``
    runs in each new child and closes what is the supervisor's and not that generation's; ``release(generation)``
    closes, in the supervisor, the listeners that only this one had.
    """

    news: Bell
    lifeline: Bell
    stacks_fd: int
    apologies: Apologies
    give_up: Callable[[Generation], None]
    release: Callable[[Generation], None]
    log: Log


class Roster:
    """The children of one pool, by pid. ``ledger``: what has become of those that are gone."""

    def __init__(self, size: int, household: Household) -> None:
        self.ledger = Ledger()
        self.board = Scoreboard(size, MOST_LINES)
        self._household = household
        self._log = household.log
        self._children: dict[int, Child] = {}

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Child]:
        return iter([*self._children.values()])

    def __contains__(self, child: Child) -> bool:
        return self._children.get(child.pid) is child

    def read(self) -> list[SlotReading]:
        """Return the children's lines of the scoreboard."""
        return [child.board.read_line(child.index) for child in self]

    def measure(self) -> Measures:
        """Return what all workers of this pool have measured since the start, the dead included."""
        measures = self.ledger.buried
        for child in self:
            measures = measures.plus(parse_measures(*child.board.read_measures(child.index)))
        return measures

    def count_requests(self) -> int:
        """Return the requests that all workers of this pool have served since the start, as far as was seen."""
        return self.ledger.buried.requests + sum(child.requests for child in self)

    def note_moment(self, now: float, waiting: int) -> None:
        """Remember how things stand, for the curves."""
        requests = self.count_requests()
        busy = sum(child.state is State.BUSY for child in self)
        self.ledger.note_moment(Moment(now, requests, busy, waiting))

    def make_room(self, size: int) -> None:
        """See that there are at least ``size`` lines for children to come; those that live keep theirs."""
        self.board.grow(size)

    def serving(self, generation: Generation) -> list[Child]:
        """Return the children of ``generation`` that are not leaving."""
        return [child for child in self if child.generation is generation and not child.leaving]

    def older(self, generation: Generation) -> list[Child]:
        """Return the children of earlier generations that are not leaving, the least useful first."""
        old = [child for child in self if child.generation.number < generation.number and not child.leaving]
        return sorted(old, key=lambda child: child.state)

    def count(self, newest: Generation) -> tuple[int, int]:
        """Return how many serve up to generation ``newest``: the idle (with the starting) and the busy.

        One whose successor is on its way is not counted any more.
        """
        states = [
            child.state
            for child in self
            if child.generation.number <= newest.number and not child.leaving and child.successor is None
        ]
        busy = states.count(State.BUSY)
        return len(states) - busy, busy

    def spawn(self, generation: Generation, count: int, now: float) -> list[Child]:
        """Start up to ``count`` workers, as many as the back-off and the scoreboard allow; return them."""
        starting = sum(child.state is State.STARTING for child in self.serving(generation))
        count = min(count, generation.backoff.allowance(now, starting, generation.proven))
        spawned: list[Child] = []
        if count <= 0 or not self._can_fork(generation, now):
            return spawned
        used = {child.index for child in self}
        free = [index for index in range(self.board.size) if index not in used][:count]
        for index in free:
            try:
                child = self._fork(generation, index, now)
            except OSError as error:
                delay = generation.backoff.fail(now)
                self._log.error("cannot start a worker: %s; trying again in %.1f s", error.strerror or error, delay)
                break
            self._children[child.pid] = child
            self.ledger.started += 1
            spawned.append(child)
        return spawned

    def _can_fork(self, generation: Generation, now: float) -> bool:
        """True when workers can be forked now: at once, or once what they share is imported (``nursery``)."""
        pool = generation.pool
        if pool.preload is None:
            return True
        if generation.nursery is None:
            household = self._household
            try:
                generation.nursery = Nursery(
                    pool,
                    partial(self._make_worker, generation),
                    partial(household.give_up, generation),
                    household.news,
                    self._log,
                )
            except OSError as error:
                generation.refusal = error.strerror or str(error)
            return False
        nursery = generation.nursery
        if nursery.look():
            generation.refusal = ""
            return True
        if nursery.lost or nursery.reason:
            nursery.close()
            generation.nursery = None
        if nursery.reason:
            generation.refusal = nursery.reason
            generation.backoff.fail(now)
            if generation.proven:
                self._log.error("%s", generation.despair())
        return False

    def _make_worker(self, generation: Generation, index: int, chance: float) -> Worker:
        """Make, in a process just forked, the worker that it is."""
        household = self._household
        limits = generation.pool.limits
        slot = self.board.slot(index, MeasuringSlot if limits.shows_requests else Slot)
        if generation.door is not None:
            generation.door.leave_to_worker()
        most = limits.plan_max_requests(chance)
        worker = Worker(
            slot,
            generation.pool.listeners,
            household.lifeline.read_fd,
            most,
            self._log,
            household.news,
            limits.manager == "fork",
            household.stacks_fd,
            generation.door,
            index,
        )
        slot.set_up(limits.watches_requests or limits.shows_requests, limits.plan_due(most), worker.tell)
        return worker

    def _fork(self, generation: Generation, index: int, now: float) -> Child:
        chance = random.random()
        if generation.nursery is not None:
            return adopt_child(generation, self.board, index, now, partial(generation.nursery.spawn, index, chance))
        make = partial(self._make_worker, generation, index, chance)
        # What exists now stays shared between the workers: no collector of theirs will write to it.
        gc.freeze()
        try:
            return spawn_child(generation, self.board, index, now, make, partial(self._household.give_up, generation))
        finally:
            gc.unfreeze()

    def bury(self, death: Death, now: float) -> tuple[Child, bool] | None:
        """Take note of a death, with one log line; return the child and whether it went by surprise.

        By surprise: neither told nor seen to leave. None when it was none of ours.
        """
        child = self._children.pop(death.pid, None)
        if child is None:
            return None
        child.observe(now)
        line = child.board.read_line(child.index)
        measures = parse_measures(*child.board.read_measures(child.index))
        self._household.apologies.speak(child, now)
        child.board.close_line(child.index)
        words = format_death(child, death, line, now)
        verdict = judge_death(child.told, child.state, death.status, now - child.ready_at, line.requests)
        self.ledger.bury(measures, death.cpu, explain_death(child, death.status, verdict, line.requests))
        (self._log.error if verdict.loud else self._log.info)("%s", words)
        if verdict.failed:
            child.generation.fail(words, verdict.boot, now)
        elif line.requests and not verdict.loud:
            child.generation.backoff.succeed()
        child.state = State.DEAD
        return child, (not child.told and child.kill_at == inf) or (child.told == SIGKILL and child.asked > 0)

    def observe(self, now: float) -> int:
        """Look at the scoreboard: note who is ready and who has settled; who leaves by itself gets a time limit.

        Return how many have newly been found to leave by themselves: they are replaced before they are gone.
        """
        leaving = 0
        for child in self:
            state = child.observe(now)
            if state is State.STARTING:
                continue
            child.generation.proven = True
            if not child.settled and now - child.ready_at >= SETTLED_AGE:
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
                child.kill(GRACEFUL_TIMEOUT)
