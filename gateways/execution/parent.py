"""A process as the parent of its children: what can be asked of a child by its pid, by whoever forked it.

Waits for one child only, never for any (``process/`` reaps those). Imports next to nothing: a zygote does it, too.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Parent(Protocol):
        """Whoever forked a child, and can be asked about it."""

        def has_ended(self, pid: int) -> bool: ...
        def collect(self, pid: int) -> int | None: ...


class Ourselves:
    """A process as the parent of its children: what can be asked of a child by its pid."""

    def has_ended(self, pid: int) -> bool:
        """True when a child has ended, collected or not."""
        try:
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def collect(self, pid: int) -> int | None:
        """Wait for a child's end and return its wait status; ``None`` when somebody else collected it."""
        try:
            return os.waitpid(pid, 0)[1]
        except ChildProcessError:
            return None


OURSELVES = Ourselves()
