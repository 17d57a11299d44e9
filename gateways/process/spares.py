"""How many workers to start and to retire: pure arithmetic, one function for each ProcessManager, no process in sight.

A worker that is still starting counts as idle everywhere here; one that is leaving counts neither as idle nor as busy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gateways.process.limits import PoolLimits

MAX_SPAWN_RATE = 32
LOUD_SPAWN_RATE = 8


class Census(NamedTuple):
    """What one cycle finds: ``idle`` workers (with the starting), ``busy`` ones, and what only some managers ask.

    ``resting``: how many have been idle for ProcessIdleTimeout. ``waiting``: a connection waits and nobody is idle.
    """

    idle: int
    busy: int
    resting: int = 0
    waiting: bool = False


class Plan(NamedTuple):
    """What one cycle does: at most one of ``spawn`` and ``retire`` is not zero.

    ``spawn_rate`` goes into the next cycle. ``loud``: the pool is short of spares for the fourth cycle or more, worth a
    log line. ``at_ceiling``: more were needed and MaxServers forbade them.
    """

    spawn: int = 0
    retire: int = 0
    spawn_rate: int = 1
    loud: bool = False
    at_ceiling: bool = False


def plan_dynamic(found: Census, limits: PoolLimits, spawn_rate: int) -> Plan:
    """Return what the once-a-second cycle does to keep spares, after Apache's prefork.

    Too many idle: retire one. Too few: start ``spawn_rate``, which doubles from cycle to cycle up to 32 while the pool
    is short, and falls back to 1 as soon as it is not. A pool whose MinSpareServers is MaxServers is of fixed size:
    that it is at its ceiling is no news.
    """
    idle, busy = found.idle, found.busy
    if idle > limits.max_spare_servers:
        return Plan(retire=1)
    if idle >= limits.min_spare_servers:
        return Plan()
    room = limits.max_servers - idle - busy
    if room <= 0:
        return Plan(at_ceiling=limits.min_spare_servers < limits.max_servers)
    spawn = min(spawn_rate, room)
    return Plan(spawn, 0, min(spawn_rate * 2, MAX_SPAWN_RATE), spawn_rate >= LOUD_SPAWN_RATE)


def plan_static(found: Census, limits: PoolLimits, _spawn_rate: int) -> Plan:
    """Return what keeps exactly MaxServers workers."""
    missing = limits.max_servers - found.idle - found.busy
    return Plan(spawn=max(0, missing), retire=max(0, -missing))


def plan_ondemand(found: Census, limits: PoolLimits, _spawn_rate: int) -> Plan:
    """Return what starts a worker when a connection waits for one, and retires those that rest."""
    surplus = found.idle + found.busy - limits.max_servers
    if surplus > 0:
        return Plan(retire=min(surplus, found.idle))
    if not found.waiting:
        return Plan(retire=found.resting)
    return Plan(spawn=1) if surplus < 0 else Plan(at_ceiling=True)


PLANS: dict[str, Callable[[Census, PoolLimits, int], Plan]] = {
    "dynamic": plan_dynamic,
    "static": plan_static,
    "ondemand": plan_ondemand,
    "fork": plan_ondemand,
}
"""ProcessManager -> what one cycle does. A worker of ``fork`` is one of ``ondemand`` that takes one connection."""


def plan_cycle(found: Census, limits: PoolLimits, spawn_rate: int) -> Plan:
    """Return what one cycle does under the pool's ProcessManager."""
    return PLANS[limits.manager](found, limits, spawn_rate)


def plan_replacements(died: int, idle: int, busy: int, limits: PoolLimits) -> int:
    """Return how many of ``died`` workers to replace at once, without waiting for the next cycle."""
    return max(0, min(died, limits.fewest_idle - idle, limits.max_servers - idle - busy))


class Renewal(NamedTuple):
    """One step of a change of generation: how many new workers to start, how many old ones to retire."""

    spawn: int
    retire: int


def plan_renewal(target: int, starting: int, ready: int, old: int) -> Renewal:
    """Return the next step towards ``target`` workers of the new generation in place of ``old`` ones.

    An old worker is retired only for a new one that is ``ready``: together they are never fewer than before.
    """
    return Renewal(max(0, target - starting - ready), max(0, min(old, ready + old - target)))
