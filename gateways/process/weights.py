"""What processes weigh: memory that is theirs alone, memory that they share, and processor time (proc(5)).

Reads /proc in the supervisor when somebody looks at the status, not more than once a second for each process, and
within a budget of time: a pool of thousands is read bit by bit. Knows no worker; pids only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from time import monotonic
from typing import NamedTuple

FRESH = 0.9
"""Seconds for which a reading is good enough."""
BUDGET = 0.05
"""Seconds that one look may take: the supervisor has workers to mind."""
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_FIELD = re.compile(rb"^(\w+): +(\d+) kB$", re.M)


class Memory(NamedTuple):
    """Resident bytes. ``own``: in no other process. ``shared``: also in others. ``part``: own, and a fair part of the
    shared: the sum of all parts is what the processes hold together (PSS)."""

    own: int
    shared: int
    part: int


class Weight(NamedTuple):
    """A process at one time. ``cpu``: seconds of processor time; ``share``: of one processor, since the look before."""

    time: float
    memory: Memory | None
    cpu: float | None
    share: float | None


class Scales:
    """The last weight of each process that is looked at."""

    def __init__(self) -> None:
        self._known: dict[int, Weight] = {}

    def look(self, pids: Collection[int], budget: float = BUDGET) -> dict[int, Weight]:
        """Return the weights of ``pids``, as fresh as the budget (seconds) allows; those not among them are forgotten.

        A process that could not be read for want of time is missing until a later look.
        """
        start = now = monotonic()
        known = self._known = {pid: self._known[pid] for pid in pids if pid in self._known}
        for pid in sorted(pids, key=lambda pid: known[pid].time if pid in known else -1.0):
            before = known.get(pid)
            if now - start > budget or (before is not None and now - before.time < FRESH):
                break
            known[pid] = weigh(pid, now, before)
            now = monotonic()
        return dict(known)


def weigh(pid: int, now: float, before: Weight | None = None) -> Weight:
    """Return the weight of a process; ``before`` is what it was."""
    cpu = read_cpu(pid)
    share = None
    if cpu is not None and before is not None and before.cpu is not None and now > before.time:
        share = max(0.0, cpu - before.cpu) / (now - before.time)
    return Weight(now, read_memory(pid), cpu, share)


def read_cpu(pid: int) -> float | None:
    """Return the seconds of processor time of a process without its children; None when it may not be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read(4096).rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) * _TICK
    except (OSError, IndexError, ValueError):
        return None


def read_memory(pid: int) -> Memory | None:
    """Return the memory of a process; None when it may not be read."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb", buffering=0) as file:
            return parse_rollup(file.read(8192))
    except OSError:
        return None


def parse_rollup(text: bytes) -> Memory | None:
    """Return the memory that a text of smaps_rollup tells of; None for a process that has none (a zombie)."""
    sizes = {name: int(size) << 10 for name, size in _FIELD.findall(text)}
    if b"Rss" not in sizes:
        return None
    own = sizes.get(b"Private_Clean", 0) + sizes.get(b"Private_Dirty", 0)
    return Memory(own, sizes[b"Rss"] - own, sizes.get(b"Pss", own))
