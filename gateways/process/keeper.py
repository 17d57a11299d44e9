"""One pool kept: as many workers as there is work for, and the next generation while that is tried.

Everything here runs in the supervisor, which calls ``look`` and ``maintain`` in each turn of its loop. The numbers are
decided in ``spares``; what a request is, nobody here knows.
"""

from __future__ import annotations

import select
from collections.abc import Iterable, Iterator
from socket import socket

from gateways.process.children import Child, Death, read_resident
from gateways.process.door import Door, Doormen
from gateways.process.ledger import MEMORY, REASONS, RELOAD, SPARE, STOP
from gateways.process.limits import WAITING_MANAGERS, PoolLimits
from gateways.process.pool import Generation, Pool
from gateways.process.queues import read_queues
from gateways.process.report import LONG, PoolReport, QueueReport
from gateways.process.roster import Household, Roster
from gateways.process.scoreboard import State
from gateways.process.spares import Census, plan_cycle, plan_renewal, plan_replacements
from gateways.process.stacks import Interrogator

TICK = 1.0
QUIET_TICK = 2.0
DEMAND_TICK = 0.1
"""Seconds between two looks at a pool whose workers may all be taken before the next whole second."""


class Keeper:
    """One pool's workers and generations.

    ``limits`` are those in effect: the current generation's, moved by TTIN and TTOU, which outlive a reload.
    ``over``: it has given up (``failed``) or was taken out of the configuration, and is gone with its last child.
    ``refused``: the last reload was given up.
    """

    def __init__(self, pool: Pool, household: Household, stacks: Interrogator, shift: int = 0) -> None:
        self._household = household
        self._log = household.log
        self._stacks = stacks
        self._shift = shift
        self._paused: int | None = None
        self._generations = 0
        self.roster = Roster(pool.limits.shift(shift).slots, household)
        self.doormen = Doormen(household)
        self.candidate: Generation | None = None
        self.current = self._generation(pool)
        self.current.target = self.limits.first_servers
        self.over = self.failed = self.refused = False
        self._spawn_rate = 1
        self._next_tick = 0.0
        self._owed = 0
        self._ceiling_told = False
        self._blocked_until = 0.0

    @property
    def name(self) -> str:
        """The pool's name."""
        return self.current.pool.name

    @property
    def limits(self) -> PoolLimits:
        """The limits in effect."""
        limits = self.current.pool.limits
        if self._paused is not None:
            return limits.fix(max(self._paused, 1))
        return limits.shift(self._shift) if self._shift else limits

    @property
    def generations(self) -> list[Generation]:
        """Those whose listeners are in use."""
        return [] if self.over else [self.current, *([self.candidate] if self.candidate else [])]

    @property
    def changing(self) -> bool:
        """True while one generation takes over from another, or is tried."""
        return not self.over and (
            self.candidate is not None or not self.current.filled or bool(self.roster.older(self.current))
        )

    @property
    def unsettled(self) -> bool:
        """True while it is not known whether what was loaded last can serve."""
        return not self.over and (self.candidate is not None or not (self.current.proven and self.current.filled))

    def report(self) -> PoolReport:
        """Return what there is to see of this pool."""
        limits = self.limits
        tally = self.doormen.tally
        return PoolReport(
            self.name,
            self.current.number,
            limits.manager,
            limits.max_servers,
            self.roster.read(),
            self.roster.measure(),
            self.roster.ledger,
            limits.slow_timeout or limits.request_timeout or LONG,
            None if self.over else read_queues(self.current.pool.listeners),
            QueueReport(tally.waiting, tally.turned_away, tally.timed_out, tally.passed),
            self.current.pool.addresses,
            [*(child.pid for child in self.doormen), *(each.nursery.pid for each in self.generations if each.nursery)],
        )

    # In each turn.

    def bury(self, death: Death, now: float) -> bool:
        """Take note of a death; return whether it was one of this pool."""
        if self.doormen.bury(death):
            return True
        found = self.roster.bury(death, now)
        if found is None:
            return False
        self._owed += found[1]
        return True

    def look(self, now: float) -> None:
        """See what the workers have come to, and act on those whose time is over."""
        self._owed += self.roster.observe(now)
        self.roster.kill_overdue(now)
        self.doormen.kill_overdue(now)
        limits = self.current.pool.limits
        if limits.shows_requests and self.roster.ledger.wants_moment(now):
            queue = None if self.over else read_queues(self.current.pool.listeners)
            self.roster.note_moment(now, self.doormen.tally.waiting + (queue.length if queue else 0))
        if limits.watches_requests:
            for child in self.roster:
                self.roster.ledger.slow += self._stacks.watch(child, limits, now)

    def maintain(self, now: float) -> None:
        """Start and retire."""
        self._keep(now)
        self.doormen.look(self.generations, self.roster, self.limits.max_servers, now)

    def _keep(self, now: float) -> None:
        """One kind of decision a method, each a plan of ``spares`` and its execution."""
        if self.over:
            return
        if self.candidate is not None:
            self._try_candidate(self.candidate, now)
        elif self.current.hopeless:
            self._fail(now)
            return
        if self._paused == 0:
            return
        if not (self.current.proven or self.roster.serving(self.current)):
            self.current.filled = False
        self._renew(now)
        if not self.current.filled:
            self._next_tick = now + TICK
            return
        self._replace(now)
        self._succeed(now)
        if now >= self._next_tick or self.wants_listeners(now):
            self._cycle(now)

    def moments(self, now: float) -> Iterator[float]:
        """Yield the moments at which there is something to do, however quiet it is (monotonic seconds)."""
        for child in self.doormen:
            yield child.kill_at
        for child in self.roster:
            yield child.kill_at
            yield self._stacks.plan(child, self.current.pool.limits)
        if not self.over:
            yield self._next_tick if self._paused != 0 else now + QUIET_TICK
            for generation in self.generations:
                if generation.backoff.until > now:
                    yield generation.backoff.until

    @property
    def everybody(self) -> list[Child]:
        """Its workers and its doormen."""
        return [*self.roster, *self.doormen]

    def watched(self, now: float) -> list[socket]:
        """Return what the supervisor waits on for this pool: what nobody else would answer."""
        doors = [each.door.knocks for each in self.generations if each.door and self.doormen.is_missing(each, now)]
        return doors + (self.current.entrances if self.wants_listeners(now) else [])

    def wants_listeners(self, now: float) -> bool:
        """True when a connection that comes would find no worker that could be started for it."""
        current = self.current
        limits = self.limits
        if self.over or self._paused == 0 or limits.manager not in WAITING_MANAGERS or not current.filled:
            return False
        if now < max(current.backoff.until, self._blocked_until):
            return False
        idle, busy = self.roster.count(current)
        return idle == 0 and busy < limits.max_servers

    # How many workers.

    def _try_candidate(self, candidate: Generation, now: float) -> None:
        if candidate.proven:
            self._adopt(candidate)
        elif candidate.hopeless:
            self.candidate = None
            self.refused = True
            self._drop(candidate, now)
            self.resume(now)
            self._log.error("reload given up, the old workers stay: %s", candidate.despair())
        elif not self.roster.serving(candidate):
            self.roster.spawn(candidate, 1, now)

    def _renew(self, now: float) -> None:
        """Bring the current generation to its first target, and retire the older ones as it becomes ready.

        It goes on until no older one is left, also when a worker of the new generation is lost on the way.
        """
        current = self.current
        old = self.roster.older(current)
        if current.filled and not old:
            return
        own = [child.state for child in self.roster.serving(current)]
        starting = own.count(State.STARTING)
        plan = plan_renewal(current.target, starting, len(own) - starting, len(old))
        spawned = self.roster.spawn(current, plan.spawn, now)
        current.filled = current.filled or len(own) + len(spawned) >= current.target
        for child in old[: plan.retire]:
            child.retire(now, RELOAD)

    def _replace(self, now: float) -> None:
        """Replace at once who has died; what the back-off forbids now stays owed."""
        if self._owed:
            idle, busy = self.roster.count(self.current)
            wanted = plan_replacements(self._owed, idle, busy, self.limits)
            self._owed = wanted - len(self.roster.spawn(self.current, wanted, now))

    def _succeed(self, now: float) -> None:
        """Replace, one after the other, those who are due: each is told when its successor is ready (P06)."""
        due = [child for child in self.roster.serving(self.current) if child.due]
        for child in due:
            successor = child.successor
            if successor is None:
                continue
            if successor not in self.roster or successor.leaving:
                child.successor = None
            elif successor.state is State.STARTING:
                return
            else:
                self._log.info(
                    "worker %d is replaced by %d: %s", child.pid, successor.pid, child.because or REASONS[child.due]
                )
                child.retire(now, child.due)
                due.remove(child)
            break
        if due and all(child.successor is None for child in due):
            if self.limits.manager in WAITING_MANAGERS:
                due[0].retire(now, due[0].due)
                return
            for successor in self.roster.spawn(self.current, 1, now):
                due[0].successor = successor

    def _cycle(self, now: float) -> None:
        """Count first, then at most one kind of action."""
        limits = self.limits
        current = self.current
        if limits.max_memory:
            self._weigh(limits.max_memory)
        idle, busy = self.roster.count(current)
        waiting = limits.manager in WAITING_MANAGERS and not idle and has_connection(current.entrances)
        resting = [
            child
            for child in self.roster.serving(current)
            if child.state is State.IDLE and now - child.since >= limits.idle_timeout
        ]
        plan = plan_cycle(Census(idle, busy, len(resting), waiting), limits, self._spawn_rate)
        if self.roster.older(current):
            # While generations change there are more than the limits say, and it is the older ones that go.
            plan = plan._replace(retire=0)
        self._spawn_rate = plan.spawn_rate
        if plan.loud:
            self._log.info("short of spare workers: %d idle, %d busy, starting %d", idle, busy, plan.spawn)
        if plan.at_ceiling and not self._ceiling_told:
            self._ceiling_told = True
            self._log.warning("MaxServers (%d) reached: the next requests wait", limits.max_servers)
        if plan.spawn and not self.roster.spawn(current, plan.spawn, now):
            # No line of the scoreboard is free: too many are leaving. Who waits on listeners must not spin meanwhile.
            self._blocked_until = now + DEMAND_TICK
        self._retire_spares(plan.retire, now)
        self._next_tick = now + self._plan_tick(limits, busy, plan.spawn + plan.retire)

    def _retire_spares(self, count: int, now: float) -> None:
        spare = sorted(self.roster.serving(self.current), key=lambda c: (c.state is State.IDLE, -c.since, c.index))
        for child in spare[len(spare) - count :]:
            child.retire(now, SPARE)

    def _plan_tick(self, limits: PoolLimits, busy: int, changed: int) -> float:
        if limits.manager in WAITING_MANAGERS and len(self.roster):
            return DEMAND_TICK
        quiet = not busy and not changed and all(child.state is State.IDLE for child in self.roster)
        return QUIET_TICK if quiet and not limits.watches_requests else TICK

    def _weigh(self, most: int) -> None:
        for child in self.roster.serving(self.current):
            size = read_resident(child.pid) if not child.due and child.state is not State.STARTING else 0
            if size > most:
                child.due = MEMORY
                child.because = f"it holds {size >> 20} MiB, MaxMemoryPerChild is {most >> 20}"

    # Orders.

    def add(self, more: int, now: float) -> None:
        """Have ``more`` workers from now on (fewer if negative), also after a reload."""
        if self.over:
            return
        if self._paused is not None:
            self._paused = max(0, self._paused + more)
        elif self.current.pool.limits.shift(self._shift + more).max_servers == self.limits.max_servers + more:
            self._shift += more
        limits = self.limits
        self.roster.make_room(limits.slots)
        self._log.info("pool %s: at most %d workers from now on", self.name, limits.max_servers)
        self._ceiling_told = False
        self._next_tick = now

    def pause(self, now: float) -> None:
        """Retire every worker and start none, but keep listening."""
        if not self.over:
            self._paused = 0
            self._owed = 0
            self._log.info("pool %s: no workers until HUP", self.name)
            self._drop_candidate(now)
            self.retire(now)

    def resume(self, now: float) -> None:
        """Have workers again after a pause."""
        if self._paused is not None:
            self._paused = None
            self._next_tick = now
            self.current.filled = False
            self.current.target = self.limits.first_servers

    def reload(self, pool: Pool, now: float) -> None:
        """Try what a new ``load`` gave, with one worker first."""
        self.refused = False
        self.roster.make_room(pool.limits.shift(self._shift).slots)
        left, self.candidate = self.candidate, self._generation(pool)
        if left is not None:
            self._drop(left, now)
        self._log.info("reload: trying generation %d of pool %s", self.candidate.number, pool.name)

    def end(self, now: float) -> None:
        """Retire everybody for good: the pool is no longer in the configuration."""
        self._finish(now)
        self._log.info("pool %s: taken out of the configuration", self.name)

    def retire(self, now: float) -> None:
        """Tell everybody to leave when their connections are done."""
        for child in self.roster:
            child.retire(now, STOP)

    def kill(self) -> None:
        """End everybody now."""
        for child in self.everybody:
            child.kill(STOP)

    def stop(self, now: float) -> None:
        """Tell everybody to leave after the current request."""
        for child in self.roster:
            child.stop(now, STOP)

    # Generations: what ``load`` gave, one after the other.

    def _generation(self, pool: Pool) -> Generation:
        self._generations += 1
        generation = Generation(self._generations, pool, 1)
        if pool.keep_door is not None:
            generation.door = Door(pool.name, pool.always_kept, self.doormen.tally)
        return generation

    def _adopt(self, candidate: Generation) -> None:
        old, self.current, self.candidate = self.current, candidate, None
        self._paused = None
        limits = self.limits
        serving = len(self.roster.older(candidate)) if limits.manager not in WAITING_MANAGERS else 0
        candidate.target = min(max(limits.first_servers, serving), limits.max_servers)
        self._ceiling_told = False
        self._spawn_rate = 1
        self._log.info(
            "reload: generation %d of pool %s serves, %d workers", candidate.number, self.name, candidate.target
        )
        self._household.release(old)

    def _drop_candidate(self, now: float) -> None:
        candidate, self.candidate = self.candidate, None
        if candidate is not None:
            self._drop(candidate, now)

    def _drop(self, candidate: Generation, now: float) -> None:
        for child in self.roster.serving(candidate):
            child.stop(now, RELOAD)
        self._household.release(candidate)

    def _fail(self, now: float) -> None:
        self.failed = True
        self._finish(now)
        self._log.error("pool %s is given up: %s", self.name, self.current.despair())

    def _finish(self, now: float) -> None:
        generations = self.generations
        self.over = True
        self.retire(now)
        for generation in generations:
            self._household.release(generation)


def has_connection(listeners: Iterable[socket]) -> bool:
    """Return True when a connection waits on one of ``listeners``."""
    poller = select.poll()
    for listener in listeners:
        poller.register(listener, select.POLLIN)
    return bool(poller.poll(0))
