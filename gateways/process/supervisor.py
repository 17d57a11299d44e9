"""The supervisor: keeps each pool at as many workers as there is work for, from the first fork to the last wait.

Its loop reads from top to bottom: take signals, collect the dead, obey, look at the workers, start and retire, sleep.
What one pool needs is decided in ``keeper``; what a signal means stands in ``ACTIONS``.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from math import inf
from socket import socket
from time import monotonic
from typing import TYPE_CHECKING

from gateways.core.errors import GatewayError
from gateways.process.apologies import Apologies
from gateways.process.children import Child, reap_children
from gateways.process.keeper import QUIET_TICK, Keeper
from gateways.process.listeners import close_listeners, disown_listeners, own_listeners
from gateways.process.notify import Notifier
from gateways.process.pidfile import PidFile
from gateways.process.pool import Generation, Pool
from gateways.process.report import Report
from gateways.process.roster import Household
from gateways.process.scoreboard import State
from gateways.process.signals import Bell, SignalQueue, has_terminal
from gateways.process.stacks import Interrogator
from gateways.process.status import StatusPort
from gateways.process.succession import Succession
from gateways.process.weights import Scales

if TYPE_CHECKING:
    from gateways.core.interfaces import Log

RELOAD_PAUSE = 1.0
"""Seconds for which a reload in progress is left alone by the next one: a storm of HUPs is no storm of forks."""
LAST_WAIT = 5.0
"""Seconds that killed children have to vanish."""
MOST_LATE = 1.0
"""A turn of the loop that comes later than this was not the workers' fault: the machine, or we, stood still (P17)."""
STOPPED = 0
FAILED = 1


class Stop(IntEnum):
    """How far the supervisor is on its way out; it only ever goes up."""

    NO = 0
    RETIRE = 1
    STOP = 2
    KILL = 3


class Supervisor:
    """Pools of workers, and the way in and out for all of them.

    ``load()`` gives the pools, at first and again on HUP; whatever it raises then keeps the old ones. ``pid_file`` is
    claimed already, and released at the end. ``port``: where the status is shown. Without ``succession`` there is no
    successor. ``notifier``: tells the service manager. ``slow_log``: for requests that take too long; ``log``
    if not given.
    """

    _signals: SignalQueue
    _household: Household
    _stacks: Interrogator

    def __init__(
        self,
        load: Callable[[], Sequence[Pool]],
        log: Log,
        pid_file: PidFile | None = None,
        succession: Succession | None = None,
        notifier: Notifier | None = None,
        port: StatusPort | None = None,
        slow_log: Log | None = None,
    ) -> None:
        self._load_pools = load
        self._log = log
        self._slow_log = slow_log or log
        self._pid_file = pid_file
        self._succession = succession
        self._notifier = notifier or Notifier({})
        self._port = port
        self._began = monotonic()
        self._scales = Scales()
        self._settled = False
        self._reloads = 0
        self._load_failed = False
        self._keepers: list[Keeper] = []
        self._stop = Stop.NO
        self._killed_at = inf
        self._status = STOPPED
        self._reload_wanted = False
        self._reload_at = 0.0

    def run(self) -> int:
        """Serve until told to stop; return the exit status: 0 after a stop, 1 when no pool could start.

        The main thread only, once.
        """
        self._signals = SignalQueue((*ACTIONS, *NO_MEANING, signal.SIGCHLD))
        self._signals.install()
        try:
            pools = self._load()
            return self._supervise(pools) if pools else FAILED
        finally:
            self._signals.restore()

    def _supervise(self, pools: Sequence[Pool]) -> int:
        apologies = Apologies(self._log)
        self._stacks = Interrogator(self._log, self._slow_log, apologies)
        self._household = Household(Bell(), Bell(), self._stacks.fd, apologies, self._give_up, self._release, self._log)
        self._keepers = [Keeper(pool, self._household, self._stacks) for pool in pools]
        for keeper in self._keepers:
            self._log.info("supervisor %d: pool %s, %d workers", os.getpid(), keeper.name, keeper.limits.first_servers)
        try:
            return self._join()
        finally:
            # Children are left only after a fault of ours, or when they cannot be killed: they must not outlive us.
            self._bury_all()
            self._close_listeners()
            for generation in [each for keeper in self._keepers for each in keeper.generations]:
                if generation.door is not None:
                    generation.door.close()
                if generation.nursery is not None:
                    generation.nursery.close()
            if self._port is not None:
                self._port.close()
            if self._pid_file is not None:
                self._pid_file.release()
            for each in (self._household.news, self._household.lifeline, self._household.apologies, self._stacks):
                each.close()

    def _join(self) -> int:
        expected = monotonic()
        while True:
            # Signals first: a child that dies after this line wakes the loop again.
            signals = self._signals.take()
            self._reap(monotonic())
            for number in signals:
                if number in ACTIONS:
                    ACTIONS[number](self)
            now = monotonic()
            self._excuse(now - expected)
            for keeper in self._keepers:
                keeper.look(now)
            self._stacks.look(now)
            self._household.apologies.look(now)
            self._notifier.beat(now, self._describe)
            if self._port is not None:
                self._port.look(now, self._report)
            if self._stop is Stop.NO:
                self._maintain(now)
            if self._stop is not Stop.NO and not self._children():
                self._log.info("supervisor %d: stopped", os.getpid())
                return self._status
            if now > self._killed_at + LAST_WAIT:
                left = [child.pid for child in self._children()]
                self._log.error("supervisor %d: cannot be killed: %s", os.getpid(), left)
                return FAILED
            expected = self._plan_wake(monotonic())
            self._signals.wait(expected - monotonic(), self._household.news, self._watched(monotonic()))

    def _reap(self, now: float) -> None:
        """Collect the dead. Those of nobody here (we may be process 1) go in silence."""
        for death in reap_children():
            if self._succession is not None and self._succession.bury(death, self._log):
                if self._pid_file is not None:
                    self._pid_file.step_back()
            else:
                any(keeper.bury(death, now) for keeper in self._keepers)

    def _excuse(self, late: float) -> None:
        if late > MOST_LATE:
            self._log.info("supervisor %d: stood still for %.0f s, which no worker is blamed for", os.getpid(), late)
            for child in self._children():
                child.excuse(late)

    def _maintain(self, now: float) -> None:
        if self._reload_wanted and (now >= self._reload_at or not any(keeper.changing for keeper in self._keepers)):
            self._reload(now)
        for keeper in self._keepers:
            keeper.maintain(now)
        if all(keeper.over for keeper in self._keepers):
            self._log.error("stopping: %s", "; ".join(k.current.despair() for k in self._keepers if k.failed))
            self._status = FAILED
            self._rise(Stop.STOP)
        elif not self._settled and not any(keeper.unsettled for keeper in self._keepers):
            self._settle()
        if any(keeper.over and not keeper.everybody and not keeper.failed for keeper in self._keepers):
            self._keepers = [keeper for keeper in self._keepers if not keeper.over or keeper.failed or keeper.everybody]

    def _plan_wake(self, now: float) -> float:
        moments = [
            now + QUIET_TICK,
            self._stacks.deadline,
            self._household.apologies.deadline,
            self._notifier.next_beat,
        ]
        if self._stop is Stop.NO:
            for keeper in self._keepers:
                moments += keeper.moments(now)
            if self._reload_wanted:
                moments.append(self._reload_at)
        else:
            moments += [child.kill_at for child in self._children()]
        return min(moments)

    def _watched(self, now: float) -> list[int]:
        """Return what the supervisor itself waits on: the status port, and listeners where no worker does."""
        port = [] if self._port is None or self._port.closed else [self._port.fileno()]
        if self._stop is not Stop.NO:
            return port
        return port + [each.fileno() for keeper in self._keepers for each in keeper.watched(now)]

    def _report(self) -> Report:
        now = monotonic()
        pools = [keeper.report() for keeper in self._keepers]
        pids = [line.pid for pool in pools for line in pool.workers] + [pid for pool in pools for pid in pool.helpers]
        return Report(
            os.getpid(),
            now - self._began,
            now,
            self._stop is not Stop.NO,
            pools,
            self._scales.look([os.getpid(), *pids]),
            self._reloads,
            self._has_failed,
        )

    def _describe(self) -> str:
        """Return how it goes, in a sentence."""
        states = [child.state for keeper in self._keepers for child in keeper.roster]
        busy, requests = states.count(State.BUSY), sum(keeper.roster.count_requests() for keeper in self._keepers)
        failed = "; the last reload failed, the old workers serve" if self._has_failed else ""
        return f"{busy} busy, {len(states) - busy} idle; {requests} requests{failed}"

    @property
    def _has_failed(self) -> bool:
        """True when the last reload left a pool as it was, or all of them."""
        return self._load_failed or any(keeper.refused or keeper.failed for keeper in self._keepers)

    def _children(self) -> list[Child]:
        return [child for keeper in self._keepers for child in keeper.everybody]

    def _settle(self) -> None:
        """Everything that could be started or renewed serves now: whoever waits for that is told."""
        self._settled = True
        self._notifier.send("READY=1", f"MAINPID={os.getpid()}", f"STATUS={self._describe()}")
        if self._reloads and self._pid_file is not None:
            self._pid_file.report(self._reloads, self._has_failed)
        if self._succession is not None:
            own_listeners(self._listeners())
            self._succession.take_over()

    # What ``load`` gives.

    def _load(self) -> Sequence[Pool]:
        try:
            return self._load_pools()
        except GatewayError as error:
            self._log.error("%s", error)
        except Exception:  # noqa: BLE001 - a reload that fails in any way must leave the old workers as they are
            self._log.exception("loading failed")
        return ()

    def _reload(self, now: float) -> None:
        self._reload_wanted = False
        self._reload_at = now + RELOAD_PAUSE
        self._settled = False
        self._reloads += 1
        self._notifier.send("RELOADING=1", f"MONOTONIC_USEC={int(now * 1e6)}")
        pools = {pool.name: pool for pool in self._load()}
        self._load_failed = not pools
        if not pools:
            self._log.error("reload failed, the old workers stay")
            for keeper in self._keepers:
                keeper.resume(now)
            return
        gc.collect()
        for keeper in self._keepers:
            keeper.failed = False  # those that had given up are over, and their names free for another try
        living = {keeper.name: keeper for keeper in self._keepers if not keeper.over}
        # First those that stay: what two of them share, or one takes over from another, is never closed in between.
        for name, pool in pools.items():
            if name in living:
                living[name].reload(pool, now)
            else:
                self._log.info("reload: a new pool, %s", name)
                self._keepers.append(Keeper(pool, self._household, self._stacks))
        for name, keeper in living.items():
            if name not in pools:
                keeper.end(now)

    # Listeners: each is open in the supervisor as long as some generation has it.

    def _listeners(self) -> Iterator[socket]:
        for keeper in self._keepers:
            for generation in keeper.generations:
                yield from generation.pool.listeners

    def _release(self, left: Generation) -> None:
        """Close what only ``left``, of which no keeper knows any more, had."""
        kept = set(map(id, self._listeners()))
        close_listeners(listener for listener in left.pool.listeners if id(listener) not in kept)
        if left.door is not None:
            left.door.close()
        if left.nursery is not None:
            left.nursery.close()

    def _give_up(self, generation: Generation) -> None:
        """Close, in a new child of ``generation``, what is the supervisor's."""
        self._signals.close()
        if self._port is not None:
            self._port.close()
        os.close(self._household.lifeline.write_fd)
        os.close(self._household.news.read_fd)
        self._household.apologies.close()
        if self._pid_file is not None:
            os.close(self._pid_file.fd)
        own = set(map(id, generation.pool.listeners))
        for listener in self._listeners():
            if id(listener) not in own:
                listener.close()
        for keeper in self._keepers:
            for other in keeper.generations:
                if other is not generation and other.door is not None:
                    other.door.close()
                if other.nursery is not None:
                    other.nursery.close()

    # Orders, and the way out.

    def _rise(self, stop: Stop) -> None:
        if stop <= self._stop:
            return
        if self._stop is Stop.NO:
            # From here on the last worker that closes its listeners closes the address: nobody waits there in vain.
            self._close_listeners()
            for generation in [each for keeper in self._keepers for each in keeper.generations]:
                if generation.nursery is not None:
                    generation.nursery.close()
        self._stop = stop
        self._log.info("supervisor %d: %s", os.getpid(), stop.name.lower())
        now = monotonic()
        if stop is Stop.KILL:
            self._killed_at = now
        for keeper in self._keepers:
            if stop is Stop.KILL:
                keeper.kill()
            elif stop is Stop.STOP:
                keeper.stop(now)
            else:
                keeper.retire(now)
            if stop is not Stop.KILL:
                keeper.doormen.stop(now)

    def _close_listeners(self) -> None:
        if self._succession is not None and self._succession.successor:
            disown_listeners(self._listeners())
            if self._port is not None:
                self._port.close()
        else:
            self._notifier.send("STOPPING=1")
        close_listeners(self._listeners())

    def _bury_all(self) -> None:
        for keeper in self._keepers:
            keeper.kill()
        deadline = monotonic() + LAST_WAIT
        while self._children() and monotonic() < deadline:
            self._signals.wait(deadline - monotonic())
            self._signals.take()
            self._reap(monotonic())

    def _on_terminate(self) -> None:
        self._rise(Stop.STOP if self._stop < Stop.STOP else Stop.KILL)

    def _on_quit(self) -> None:
        self._rise(Stop.RETIRE)

    def _on_hangup(self) -> None:
        self._reload_wanted = True

    def _on_more(self) -> None:
        self._tell_keepers(lambda keeper: keeper.add(1, monotonic()))

    def _on_fewer(self) -> None:
        self._tell_keepers(lambda keeper: keeper.add(-1, monotonic()))

    def _on_pause(self) -> None:
        # A terminal sends this signal whenever its window changes its size.
        if has_terminal():
            self._log.info("supervisor %d: WINCH means nothing to a program with a terminal", os.getpid())
            return
        self._tell_keepers(lambda keeper: keeper.pause(monotonic()))

    def _on_successor(self) -> None:
        if self._stop is not Stop.NO:
            return
        if self._succession is None:
            self._log.warning("no successor is started: this program was not started by `gateways serve`")
            return
        # Before the successor looks for it; who has one already has stepped aside.
        aside = self._pid_file if not self._succession.successor else None
        if aside is not None:
            aside.step_aside()
        if not self._succession.spawn(self._listeners(), self._log) and aside is not None:
            aside.step_back()

    def _tell_keepers(self, order: Callable[[Keeper], None]) -> None:
        if self._stop is Stop.NO:
            for keeper in self._keepers:
                order(keeper)


ACTIONS: dict[int, Callable[[Supervisor], None]] = {
    signal.SIGTERM: Supervisor._on_terminate,
    signal.SIGINT: Supervisor._on_terminate,
    signal.SIGQUIT: Supervisor._on_quit,
    signal.SIGHUP: Supervisor._on_hangup,
    signal.SIGTTIN: Supervisor._on_more,
    signal.SIGTTOU: Supervisor._on_fewer,
    signal.SIGWINCH: Supervisor._on_pause,
    signal.SIGUSR2: Supervisor._on_successor,
}
"""What each signal means."""
NO_MEANING = (signal.SIGUSR1,)
"""Signals that other servers take as orders: logs open themselves again, so there is nothing to do."""
