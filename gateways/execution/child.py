"""One child process and its three pipes: made, killed with its group, collected.

Knows processes; no request and no document. Waits for its own child only, never for any (``process/`` reaps those).
"""

from __future__ import annotations

import os
import select
import signal
from time import monotonic

from gateways.execution.parent import OURSELVES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gateways.execution.parent import Parent

KILL_GRACE = 2.0
"""Seconds between TERM and KILL."""
_TICK = 0.02


class Pipes:
    """The ends of a child's standard streams, on both sides; -1 for an end that is closed or was never made."""

    __slots__ = ("child_in", "child_out", "errors", "input", "output", "stderr_in")

    def __init__(self, with_input: bool) -> None:
        self.child_in, self.input = os.pipe() if with_input else (os.open(os.devnull, os.O_RDONLY), -1)
        self.output, self.child_out = os.pipe()
        self.errors, self.stderr_in = os.pipe()
        for descriptor in (self.input, self.output, self.errors):
            if descriptor >= 0:
                os.set_blocking(descriptor, False)

    def close_child_ends(self) -> None:
        """Close what only the child needs."""
        for name in ("child_in", "child_out", "stderr_in"):
            self.close(name)

    def close(self, name: str) -> None:
        """Close one end, once."""
        descriptor = getattr(self, name)
        if descriptor >= 0:
            setattr(self, name, -1)
            os.close(descriptor)

    def close_all(self) -> None:
        """Close every end."""
        for name in self.__slots__:
            self.close(name)


class Child:
    """A process for one request. ``pid`` is also its process group. ``pidfd``: readable once it has ended; -1 where the
    system has none. It is collected late, so that until then its number is nobody else's. ``parent``: who forked it."""

    __slots__ = ("_collected", "_parent", "_status", "pid", "pidfd", "pipes")

    def __init__(self, pid: int, pipes: Pipes, parent: Parent) -> None:
        self.pid = pid
        self.pipes = pipes
        self._parent = parent
        self._collected = False
        self._status: int | None = None
        self.pidfd = parent.watch(pid)

    def has_ended(self) -> bool:
        """True when the child has ended, collected or not."""
        return self._collected or self._parent.has_ended(self.pid)

    def collect(self) -> int | None:
        """Wait for the child's end and return its wait status; ``None`` when somebody else collected it (C12)."""
        if not self._collected:
            self._collected = True
            self._status = self._parent.collect(self.pid)
        return self._status

    def signal_group(self, number: int) -> None:
        """Send a signal to the child and everything in its group."""
        if not self._collected:
            self._parent.signal_group(self.pid, number)

    def kill(self) -> None:
        """End the child and its group, TERM first, KILL after ``KILL_GRACE`` seconds."""
        self.signal_group(signal.SIGTERM)
        deadline = monotonic() + KILL_GRACE
        while not self.has_ended() and monotonic() < deadline:
            self.wait(min(_TICK if self.pidfd < 0 else KILL_GRACE, deadline - monotonic()))
        self.signal_group(signal.SIGKILL)

    def wait(self, seconds: float) -> None:
        """Wait until the child has ended or ``seconds`` have passed."""
        poller = select.poll()
        if self.pidfd >= 0:
            poller.register(self.pidfd, select.POLLIN)
        poller.poll(max(seconds, 0) * 1000)

    def close(self) -> None:
        """Close every descriptor."""
        self.pipes.close_all()
        if self.pidfd >= 0:
            self._parent.unwatch(self.pidfd)
            self.pidfd = -1


def describe_status(status: int | None) -> tuple[str, bool]:
    """Return (what to log about a wait status, whether a signal ended the process); ``""`` for an orderly end."""
    if status is None or status == 0:
        return "", False
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return f"was ended by {name}", True
    return f"ended with exit status {os.waitstatus_to_exitcode(status)}", False


def spawn_with_pipes(with_input: bool, spawn: Callable[[Pipes], int], parent: Parent = OURSELVES) -> Child:
    """Make pipes, have ``parent`` start a process on their child ends by ``spawn``, and return it.

    If that raises, they are closed.
    """
    pipes = Pipes(with_input)
    try:
        pid = spawn(pipes)
    except BaseException:
        pipes.close_all()
        raise
    pipes.close_child_ends()
    return Child(pid, pipes, parent)
