"""How long requests waited while a worker was idle, from a record of who ran what, and when. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Run(NamedTuple):
    """One request as its worker ran it; times in nanoseconds."""

    name: int
    pid: int
    begin: int
    end: int


def parse_record(text: str) -> list[Run]:
    """Return the lines of a record, those cut short left out."""
    rows = (line.split() for line in text.splitlines())
    return [Run(*map(int, row)) for row in rows if len(row) == 4]


class IdleTime:
    """How much time has passed, up to any moment, in which fewer than ``workers`` ran a request."""

    def __init__(self, runs: Iterable[Run], workers: int) -> None:
        steps = sorted([(run.begin, 1) for run in runs] + [(run.end, -1) for run in runs])
        self._moments = [0]
        self._idle_before = [0]
        self._is_idle = [True]
        busy = 0
        for moment, change in steps:
            last = moment - self._moments[-1] if self._is_idle[-1] else 0
            busy += change
            self._idle_before.append(self._idle_before[-1] + last)
            self._moments.append(moment)
            self._is_idle.append(busy < workers)

    def up_to(self, moment: int) -> int:
        """Return the idle nanoseconds before ``moment``."""
        at = bisect_right(self._moments, moment) - 1
        return self._idle_before[at] + (moment - self._moments[at] if self._is_idle[at] else 0)


def find_idle_waits(sent: Mapping[int, int], runs: Iterable[Run], workers: int) -> list[tuple[int, int]]:
    """Return (wait, part of it in which a worker was idle) of each request that was sent and run, in nanoseconds.

    ``sent``: by the request's name, when it was.
    """
    runs = list(runs)
    idle = IdleTime(runs, workers)
    known = [(sent[run.name], run.begin) for run in runs if run.name in sent]
    return [(begin - asked, idle.up_to(begin) - idle.up_to(asked)) for asked, begin in known if begin >= asked]
