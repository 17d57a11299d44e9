"""An execution that takes too long ends with an exception, so that an engine keeps its input.

CPU time is what counts: a machine that stands still for a minute makes no hang.
"""

from __future__ import annotations

import signal
from types import FrameType

SLOW = 20.0
"""CPU seconds after which one execution counts as a hang."""


class Hang(Exception):
    """An execution did not end."""


def watch_hangs() -> None:
    """Make ``begin_execution`` count from now on."""
    signal.signal(signal.SIGPROF, _interrupt)


def begin_execution(seconds: float = SLOW) -> None:
    """Give the execution that begins now so much CPU time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def end_executions() -> None:
    """No execution is under way any more."""
    signal.setitimer(signal.ITIMER_PROF, 0)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise Hang(f"an execution took more than {SLOW:g} s of CPU time")
