"""A process as the parent of its children: what can be asked of a child, and done to it, by whoever forked it.

Waits for one child only, never for any (``process/`` reaps those). Knows pids; no pipes and no request.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Parent(Protocol):
        """Whoever forked a child."""

        def watch(self, pid: int, /) -> int:
            """Return a descriptor that is readable once the child has ended; -1 where there is none."""

        def unwatch(self, descriptor: int, /) -> None:
            """The descriptor is no longer needed."""

        def has_ended(self, pid: int, /) -> bool:
            """True when the child has ended, collected or not."""

        def collect(self, pid: int, /) -> int | None:
            """Wait for the child's end and return its wait status; ``None`` when that cannot be known (C12)."""

        def signal_group(self, pid: int, number: int, /) -> None:
            """Send a signal to the child, which is not collected yet, and everything in its group."""


class Ourselves:
    """This process, as the ``Parent`` of its own children."""

    def watch(self, pid: int) -> int:
        """A pidfd, where the system has it."""
        try:
            return os.pidfd_open(pid)
        except (AttributeError, OSError):
            return -1

    def unwatch(self, descriptor: int) -> None:
        """Close the pidfd."""
        os.close(descriptor)

    def has_ended(self, pid: int) -> bool:
        """By a look that collects nothing."""
        try:
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def collect(self, pid: int) -> int | None:
        """Somebody else may have collected it."""
        try:
            return os.waitpid(pid, 0)[1]
        except ChildProcessError:
            return None

    def signal_group(self, pid: int, number: int) -> None:
        """The group may not be there yet, or no longer."""
        for tell in (os.killpg, os.kill):
            try:
                tell(pid, number)
            except (ProcessLookupError, PermissionError):
                continue
            return


OURSELVES = Ourselves()
