"""How far a run is: executions counted, a line every few seconds, the end when time or number is reached."""

from __future__ import annotations

import sys
from time import monotonic

EVERY = 5.0
LOOK = 64
"""Executions between two looks at the clock."""


class Tally:
    """Counts executions of ``name``. ``runs`` and ``seconds`` bound them, 0 for no bound."""

    def __init__(self, name: str, runs: int, seconds: float) -> None:
        self.name = name
        self.runs = runs
        self.seconds = seconds
        self.done = 0
        self.began = monotonic()
        self._told = self.began

    def count(self) -> bool:
        """Count one execution; return False when it was the last."""
        self.done += 1
        if self.done % LOOK == 0:
            now = monotonic()
            if now - self._told >= EVERY:
                self._told = now
                self.tell("so far")
            if self.seconds and now - self.began >= self.seconds:
                return False
        return not self.runs or self.done < self.runs

    def tell(self, what: str) -> None:
        """Say how far it is."""
        spent = monotonic() - self.began
        of = f" of {self.runs:,}" if self.runs and self.done < self.runs else ""
        print(
            f"{self.name}: {self.done:,}{of} executions {what}, {spent:.0f} s, {self.done / max(spent, 0.001):,.0f}/s",
            file=sys.stderr, flush=True,
        )  # fmt: skip
