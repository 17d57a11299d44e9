"""The supervisor: keeps as many workers as there is work for, from the first fork to the last wait.

Its loop reads from top to bottom: take signals, collect the dead, look at the scoreboard, kill what is overdue, start
and retire, sleep. The numbers are decided in ``spares``; what a request is, nobody here knows.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from enum import IntEnum
from math import inf
from socket import socket
from time import monotonic
from typing import TYPE_CHECKING

from gateways.core.errors import GatewayError
from gateways.process.listeners import close_listeners
from gateways.process.pool import Generation, Pool
from gateways.process.roster import Roster
from gateways.process.scoreboard import State
from gateways.process.signals import SignalQueue
from gateways.process.spares import plan_renewal, plan_replacements, plan_spares

if TYPE_CHECKING:
    from gateways.core.interfaces import Log

TICK = 1.0
QUIET_TICK = 2.0
RELOAD_PAUSE = 1.0
"""Seconds for which a reload in progress is left alone by the next one: a storm of HUPs is no storm of forks."""
LAST_WAIT = 5.0
"""Seconds that killed children have to vanish."""
STOPPED = 0
FAILED = 1


class Stop(IntEnum):
    """How far the supervisor is on its way out; it only ever goes up."""

    NO = 0
    RETIRE = 1
    STOP = 2
    KILL = 3


class Supervisor:
    """One pool of workers, and its next generation while that is tried.

    ``load()`` gives the pool, at first and again on HUP; whatever it raises then keeps the old one.
    """

    _signals: SignalQueue
    _roster: Roster
    _current: Generation

    def __init__(self, load: Callable[[], Pool], log: Log) -> None:
        self._load_pool = load
        self._log = log
        self._candidate: Generation | None = None
        self._generations = 0
        self._stop = Stop.NO
        self._killed_at = inf
        self._status = STOPPED
        self._spawn_rate = 1
        self._next_tick = 0.0
        self._owed = 0
        self._ceiling_told = False
        self._reload_wanted = False
        self._reload_at = 0.0

    def run(self) -> int:
        """Serve until told to stop; return the exit status: 0 after a stop, 1 when the application never started.

        The main thread only, once.
        """
        self._signals = SignalQueue((*ACTIONS, *NO_MEANING, signal.SIGCHLD))
        self._signals.install()
        try:
            pool = self._load()
            return FAILED if pool is None else self._supervise(pool)
        finally:
            self._signals.restore()

    def _supervise(self, pool: Pool) -> int:
        self._current = self._generation(pool, pool.limits.start_servers)
        self._roster = Roster(pool.limits.slots, self._give_up, self._log)
        self._log.info("supervisor %d: pool %s, %d workers", os.getpid(), pool.name, pool.limits.start_servers)
        try:
            return self._join()
        finally:
            # Children are left only after a fault of ours, or when they cannot be killed: they must not outlive us.
            self._roster.close(LAST_WAIT, self._wait)
            close_listeners(self._listeners())

    def _join(self) -> int:
        roster = self._roster
        while True:
            # Signals first: a child that dies after this line wakes the loop again.
            signals = self._signals.take()
            died = roster.reap(monotonic())
            for number in signals:
                if number in ACTIONS:
                    ACTIONS[number](self)
            now = monotonic()
            died += roster.observe(now)
            roster.kill_overdue(now)
            if self._stop is Stop.NO:
                self._maintain(died, now)
            if self._stop is not Stop.NO and not roster:
                self._log.info("supervisor %d: stopped", os.getpid())
                return self._status
            if now > self._killed_at + LAST_WAIT:
                self._log.error("supervisor %d: cannot be killed: %s", os.getpid(), [child.pid for child in roster])
                return FAILED
            self._signals.wait(self._plan_sleep(monotonic()), roster.news)

    def _wait(self, timeout: float) -> None:
        self._signals.wait(timeout)
        self._signals.take()

    def _plan_sleep(self, now: float) -> float:
        moments = [now + QUIET_TICK, *(child.kill_at for child in self._roster)]
        if self._stop is Stop.NO:
            moments.append(self._next_tick)
            if self._reload_wanted:
                moments.append(self._reload_at)
            moments += [g.backoff.until for g in (self._current, self._candidate) if g and g.backoff.until > now]
        return min(moments) - now

    # How many workers: one kind of decision a method, each a plan of ``spares`` and its execution.

    def _maintain(self, died: int, now: float) -> None:
        if self._reload_wanted and (now >= self._reload_at or not self._changing()):
            self._reload(now)
        if self._candidate is not None:
            self._try_candidate(self._candidate, now)
        elif self._current.hopeless:
            self._log.error("stopping: %s", self._current.despair())
            self._status = FAILED
            self._rise(Stop.STOP)
            return
        self._renew(now)
        if not self._current.filled:
            self._next_tick = now + TICK
        else:
            self._replace(died, now)
            if now >= self._next_tick:
                self._keep_spares(now)

    def _changing(self) -> bool:
        """True while one generation takes over from another, or is tried."""
        current = self._current
        return self._candidate is not None or not current.filled or bool(self._roster.older(current))

    def _try_candidate(self, candidate: Generation, now: float) -> None:
        if candidate.proven:
            self._adopt(candidate)
        elif candidate.hopeless:
            self._candidate = None
            self._drop(candidate)
            self._log.error("reload given up, the old workers stay: %s", candidate.despair())
        elif not self._roster.serving(candidate):
            self._roster.spawn(candidate, 1, now)

    def _renew(self, now: float) -> None:
        """Bring the current generation to its first target, and retire the older ones as it becomes ready."""
        current = self._current
        old = self._roster.older(current)
        if current.filled and not old:
            return
        own = [child.state for child in self._roster.serving(current)]
        starting = own.count(State.STARTING)
        plan = plan_renewal(current.target, starting, len(own) - starting, len(old))
        if not current.filled:
            spawned = self._roster.spawn(current, plan.spawn, now)
            current.filled = len(own) + spawned >= current.target
        for child in old[: plan.retire]:
            child.retire(now)

    def _replace(self, died: int, now: float) -> None:
        """Replace at once who has died; what the back-off forbids now stays owed."""
        self._owed += died
        if self._owed:
            idle, busy = self._roster.count(self._current)
            wanted = plan_replacements(self._owed, idle, busy, self._current.pool.limits)
            self._owed = wanted - self._roster.spawn(self._current, wanted, now)

    def _keep_spares(self, now: float) -> None:
        limits = self._current.pool.limits
        idle, busy = self._roster.count(self._current)
        plan = plan_spares(idle, busy, limits, self._spawn_rate)
        self._spawn_rate = plan.spawn_rate
        if plan.loud:
            self._log.info("short of spare workers: %d idle, %d busy, starting %d", idle, busy, plan.spawn)
        if plan.at_ceiling and not self._ceiling_told:
            self._ceiling_told = True
            self._log.warning("MaxServers (%d) reached: the next requests wait", limits.max_servers)
        self._roster.spawn(self._current, plan.spawn, now)
        spare = sorted((c for c in self._roster.serving(self._current)), key=lambda c: (c.state is State.IDLE, c.index))
        for child in spare[len(spare) - plan.retire :]:
            child.retire(now)
        quiet = not (plan.spawn or plan.retire) and all(child.state is State.IDLE for child in self._roster)
        self._next_tick = now + (QUIET_TICK if quiet else TICK)

    # Generations: what ``load`` gave, one after the other.

    def _load(self) -> Pool | None:
        try:
            return self._load_pool()
        except GatewayError as error:
            self._log.error("%s", error)
        except Exception:  # noqa: BLE001 - a reload that fails in any way must leave the old workers as they are
            self._log.exception("loading failed")
        return None

    def _generation(self, pool: Pool, target: int) -> Generation:
        self._generations += 1
        return Generation(self._generations, pool, target)

    def _reload(self, now: float) -> None:
        self._reload_wanted = False
        self._reload_at = now + RELOAD_PAUSE
        pool = self._load()
        if pool is None:
            self._log.error("reload failed, the old workers stay")
            return
        gc.collect()
        self._roster.make_room(pool.limits.slots)
        left, self._candidate = self._candidate, self._generation(pool, 1)
        if left is not None:
            self._drop(left)
        self._log.info("reload: trying generation %d", self._candidate.number)

    def _adopt(self, candidate: Generation) -> None:
        old, self._current, self._candidate = self._current, candidate, None
        limits = candidate.pool.limits
        candidate.target = min(max(limits.start_servers, len(self._roster.older(candidate))), limits.max_servers)
        self._ceiling_told = False
        self._spawn_rate = 1
        self._log.info("reload: generation %d serves, %d workers", candidate.number, candidate.target)
        self._close_unshared(old)

    def _drop(self, candidate: Generation) -> None:
        for child in self._roster.serving(candidate):
            child.stop(monotonic())
        self._close_unshared(candidate)

    def _listeners(self) -> list[socket]:
        generations = [generation for generation in (self._current, self._candidate) if generation]
        return [listener for generation in generations for listener in generation.pool.listeners]

    def _close_unshared(self, left: Generation) -> None:
        kept = set(map(id, self._listeners()))
        close_listeners(listener for listener in left.pool.listeners if id(listener) not in kept)

    def _give_up(self, generation: Generation) -> None:
        """Close, in a new child of ``generation``, what is the supervisor's."""
        self._signals.close()
        own = set(map(id, generation.pool.listeners))
        for listener in self._listeners():
            if id(listener) not in own:
                listener.close()

    # The way out.

    def _rise(self, stop: Stop) -> None:
        if stop <= self._stop:
            return
        if self._stop is Stop.NO:
            # From here on the last worker that closes its listeners closes the address: nobody waits there in vain.
            close_listeners(self._listeners())
        self._stop = stop
        self._log.info("supervisor %d: %s", os.getpid(), stop.name.lower())
        now = monotonic()
        if stop is Stop.KILL:
            self._killed_at = now
        for child in self._roster:
            if stop is Stop.KILL:
                child.kill()
            elif stop is Stop.STOP:
                child.stop(now)
            else:
                child.retire(now)

    def _on_terminate(self) -> None:
        self._rise(Stop.STOP if self._stop < Stop.STOP else Stop.KILL)

    def _on_hangup(self) -> None:
        self._reload_wanted = True

    def _on_quit(self) -> None:
        self._rise(Stop.RETIRE)


ACTIONS: dict[int, Callable[[Supervisor], None]] = {
    signal.SIGTERM: Supervisor._on_terminate,
    signal.SIGINT: Supervisor._on_terminate,
    signal.SIGQUIT: Supervisor._on_quit,
    signal.SIGHUP: Supervisor._on_hangup,
}
"""What each signal means."""
NO_MEANING = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that other servers take as orders: here they do nothing, rather than end the supervisor."""
