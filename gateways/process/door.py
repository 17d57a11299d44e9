"""The door of a generation: what its workers and its doorman share beside the scoreboard, and that process itself.

Everything here runs in the supervisor, but for the two calls that a new child makes to keep only its own ends. What a
doorman does is not known here: it is a child that runs another function of the pool (``Pool.keep_door``).
"""

from __future__ import annotations

import mmap
import select
import socket
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gateways.core.tally import Tally
from gateways.process.children import Child, Death, format_status, spawn_child
from gateways.process.ledger import GRACEFUL_TIMEOUT, STOP
from gateways.process.pool import Generation
from gateways.process.scoreboard import Scoreboard, State
from gateways.process.worker import Worker

if TYPE_CHECKING:
    from gateways.core.interfaces import Log
    from gateways.process.roster import Household, Roster

PAUSE = 1.0
"""Seconds between two starts of a doorman that dies."""


class Door:
    """Two socket pairs and a tally.

    Workers say who they are by ``knocking``, the doorman hears them at ``knocks``; it sends connections by ``handing``,
    and whichever worker is free takes them at ``handed``. ``pool``: its name. ``always``: there is to be a doorman also
    before anybody knocks.
    """

    def __init__(self, pool: str, always: bool, tally: Tally) -> None:
        self.pool = pool
        self.always = always
        self.tally = tally
        self.knocking, self.knocks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.handing, self.handed = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def leave_to_worker(self) -> None:
        """Close, in a worker, the doorman's ends."""
        self.knocks.close()
        self.handing.close()

    def leave_to_doorman(self) -> None:
        """Close, in a doorman, the workers' end; what was handed and not taken it may take back."""
        self.knocking.close()

    def close(self) -> None:
        """Close every end."""
        for end in (self.knocking, self.knocks, self.handing, self.handed):
            end.close()

    @property
    def is_wanted(self) -> bool:
        """True when there is something for a doorman to do."""
        if self.knocks.fileno() < 0:
            return False
        poller = select.poll()
        poller.register(self.knocks, select.POLLIN)
        return self.always or bool(poller.poll(0))


class Doormen:
    """The doormen of one pool: one for each generation that needs one. ``tally``: what they have counted."""

    def __init__(self, household: Household) -> None:
        self._household = household
        self._log: Log = household.log
        self._children: dict[int, Child] = {}
        self._next_start = 0.0
        self.tally = Tally(memoryview(mmap.mmap(-1, 64)).cast("q"))

    def __iter__(self) -> Iterator[Child]:
        return iter([*self._children.values()])

    def __len__(self) -> int:
        return len(self._children)

    def find(self, generation: Generation) -> Child | None:
        """Return the doorman of a generation."""
        return next((child for child in self if child.generation is generation), None)

    def is_missing(self, generation: Generation, now: float) -> bool:
        """True when a generation that serves could be given a doorman."""
        has_door = generation.door is not None and generation.proven
        return has_door and now >= self._next_start and self.find(generation) is None

    def look(self, generations: list[Generation], roster: Roster, max_servers: int, now: float) -> None:
        """Say how the pool is; tell those not of ``generations`` to leave, and start who is missing."""
        for child in self:
            child.observe(now)
            if child.generation not in generations and not child.told:
                child.stop(now, STOP)
        self.tally.lines = 1 + max((child.index for child in roster), default=0)
        self.tally.max_servers = max_servers
        for generation in generations:
            door = generation.door
            if door is None:
                continue
            if self.is_missing(generation, now) and door.is_wanted:
                self._spawn(generation, door, roster.board, now)

    def _spawn(self, generation: Generation, door: Door, board: Scoreboard, now: float) -> None:
        self._next_start = now + PAUSE
        keep = generation.pool.keep_door
        assert keep is not None
        household = self._household
        own = Scoreboard(1)

        def make() -> Worker:
            door.leave_to_doorman()
            listeners = generation.pool.listeners
            return Worker(own.slot(0), listeners, household.lifeline.read_fd, 0, self._log, household.news)

        pool = replace(generation.pool, serve=partial(keep, door=door, board=board, generation=generation.number))
        give_up = partial(household.give_up, generation)
        try:
            child = spawn_child(generation, own, 0, now, make, give_up, pool)
        except OSError as error:
            self._log.error("pool %s: cannot start a doorman: %s", door.pool, error.strerror or error)
            return
        self._children[child.pid] = child
        self._log.info("doorman %d: pool %s", child.pid, door.pool)

    def bury(self, death: Death) -> bool:
        """Take note of a death; return whether it was one of these."""
        child = self._children.pop(death.pid, None)
        if child is None:
            return False
        self.tally.waiting = 0
        # One that is told while it still starts just ends, by the signal that tells it.
        if not child.told or death.status not in (0, child.told):
            self._log.error(
                "doorman %d (pool %s) %s", child.pid, child.generation.pool.name, format_status(death.status)
            )
        child.state = State.DEAD
        return True

    def kill_overdue(self, now: float) -> None:
        """Kill those whose time to leave is over."""
        for child in self:
            if now >= child.kill_at:
                child.kill(GRACEFUL_TIMEOUT)

    def stop(self, now: float) -> None:
        """Tell each to leave when nobody waits any more."""
        for child in self:
            child.stop(now, STOP)
