"""What scripts that run inside the serving process leave open, and which script it was.

Looked at now and then only, and only after a run that has opened something: a look is a listing of this process's
descriptors before the first ``open`` or socket of the run, and another when it is over. Knows notes and a log; whoever
serves is asked to be replaced through the exchange.
"""

from __future__ import annotations

import gc
import os
import resource

from gateways.execution.watch import NOTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import Exchange
    from gateways.execution.scriptlog import ScriptLog

FIRST_LOOKS = 8
EACH = 16
"""Of runs that open something the first few are looked at, and then each so many."""
STRIKES = 3
"""Looks that have to find something before a script is said to leak: one may open what is meant to stay."""
MOST = 512
"""Descriptors from which on a run that leaks has its process replaced, where the system's limit is not lower."""
MAX_NAMED = 1000
_shared: list[Leaks] = []


def share_leaks() -> Leaks:
    """Return what watches this process, for all its mounts."""
    if not _shared:
        _shared.append(Leaks())
    return _shared[0]


class Leaks:
    """What this process's runs have left. ``limit``: descriptors from which on a run that leaks has it replaced."""

    __slots__ = ("_before", "_runs", "_strikes", "limit")

    def __init__(self) -> None:
        self._runs = 0
        self._before = -1
        self._strikes: dict[str, int] = {}
        self.limit = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, MOST)
        NOTES.before_open = self.begin

    def begin(self) -> None:
        """Note what is open, if this run is to be looked at: it is about to open something."""
        self._runs += 1
        self._before = count_descriptors() if self._runs <= FIRST_LOOKS or self._runs % EACH == 0 else -1

    def end(self, log: ScriptLog, exchange: Exchange) -> None:
        """Look at what is left of a run that has opened something, and say so."""
        if NOTES.folders:
            self._look_at_folders(log)
        before, self._before = self._before, -1
        if before < 0:
            return
        after = count_descriptors()
        for generation in (1, 2):  # what hangs in a circle only is not lost
            if after > before:
                gc.collect(generation)
                after = count_descriptors()
        if after > before:
            self._strike(log, exchange, after - before, after)

    def _look_at_folders(self, log: ScriptLog) -> None:
        left = [folder for folder in NOTES.folders if os.path.isdir(folder)]
        NOTES.folders.clear()
        if left and self._count(f"{log.name} and its folders") == 1:
            log.note(f"left the temporary folder {left[0]}; more of this script's are not told of")

    def _strike(self, log: ScriptLog, exchange: Exchange, left: int, after: int) -> None:
        said = f"{left} descriptor{'s' if left > 1 else ''}"
        if self._count(log.name) == STRIKES:
            log.note(f"leaves {said} open in each run, as far as was seen")
        if after > self.limit:
            log.note(f"left {said} open, and {after} are open now: this process will be replaced")
            exchange.recycle()

    def _count(self, name: str) -> int:
        if len(self._strikes) >= MAX_NAMED:
            self._strikes.clear()
        self._strikes[name] = count = self._strikes.get(name, 0) + 1
        return count


def count_descriptors() -> int:
    """Return how many descriptors this process has open, one more than there are: that of the look itself."""
    return len(os.listdir("/proc/self/fd"))
