"""What has become of the workers of one pool since the supervisor started: counts that no reload and no death loses.

Pure; kept by the pool's roster, shown by the status port.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from gateways.process.measures import Measures

REQUESTS, MEMORY, APPLICATION = "requests", "memory", "application"
REQUEST_TIMEOUT, GRACEFUL_TIMEOUT = "request_timeout", "graceful_timeout"
BOOT, CRASH, SPARE, RELOAD, CONNECTION, STOP = "boot", "crash", "spare", "reload", "connection", "stop"

REASONS = {
    REQUESTS: "it has served its requests",
    MEMORY: "it holds more than MaxMemoryPerChild",
    APPLICATION: "the application asked for it",
    REQUEST_TIMEOUT: "its request took longer than RequestTimeout",
    GRACEFUL_TIMEOUT: "it did not leave within GracefulTimeout",
    BOOT: "it died before it was ready",
    CRASH: "it died by itself",
    SPARE: "there was no work for it",
    RELOAD: "a newer generation took over",
    CONNECTION: "ProcessManager fork: its one connection was over",
    STOP: "the pool was stopped",
}
"""Why a worker came to its end -> in words. The order is that of the reports."""
RECYCLED = (REQUESTS, MEMORY, APPLICATION)
KILLED = (REQUEST_TIMEOUT, GRACEFUL_TIMEOUT)
HISTORY_TIME = 120.0
"""Seconds that are remembered for the curves."""
HISTORY_STEP = 1.0


class Moment(NamedTuple):
    """What was seen at a time (monotonic seconds): requests since the start, busy workers, connections that waited."""

    time: float
    requests: int
    busy: int
    waiting: int


class Ledger:
    """The counts. ``buried``: what those have measured that are gone; ``cpu``: the seconds that they have used."""

    __slots__ = ("buried", "cpu", "ended", "history", "slow", "started")

    def __init__(self) -> None:
        self.started = 0
        self.ended: Counter[str] = Counter()
        self.slow = 0
        self.buried = Measures()
        self.cpu = 0.0
        self.history: deque[Moment] = deque()

    def bury(self, measures: Measures, cpu: float, reason: str) -> None:
        """Take over what a worker leaves behind."""
        self.buried = self.buried.plus(measures)
        self.cpu += cpu
        self.ended[reason] += 1

    def count(self, reasons: Sequence[str]) -> int:
        """Return how many have ended for one of ``reasons``."""
        return sum(self.ended[reason] for reason in reasons)

    def wants_moment(self, now: float) -> bool:
        """True when the last moment is long enough ago for another one."""
        return not self.history or now - self.history[-1].time >= HISTORY_STEP

    def note_moment(self, moment: Moment) -> None:
        """Remember a moment, and forget those that are too old."""
        self.history.append(moment)
        while self.history[0].time < moment.time - HISTORY_TIME:
            self.history.popleft()

    def find_rate(self, span: float = 10.0) -> float:
        """Return the requests a second over the last ``span`` seconds of the history."""
        if len(self.history) < 2:
            return 0.0
        last = self.history[-1]
        first = next(moment for moment in self.history if moment.time >= last.time - span or moment is last)
        passed = last.time - first.time
        return (last.requests - first.requests) / passed if passed > 0 else 0.0
