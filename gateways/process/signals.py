"""Signals as numbers read from a pipe, and the mask that keeps them away from a fork.

Handlers do nothing but wake whoever waits: the number is written by the interpreter itself (``signal.set_wakeup_fd``).
Knows no process and gives no number a meaning.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

READ_SIZE = 4096
STACK_SIGNAL = signal.SIGRTMIN + 1
"""Asks a worker for the stack of each of its threads; no application has a use for it, as it may for USR1 and USR2."""
ALL_SIGNALS = frozenset(signal.valid_signals())
Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


def wake(_number: int, _frame: FrameType | None) -> None:
    """The handler of a signal that only wakes: the interpreter has already written its number."""


class Bell:
    """A pipe that never blocks: ringing it makes ``read_fd`` readable until it is cleared."""

    __slots__ = ("read_fd", "write_fd")

    def __init__(self) -> None:
        self.read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def ring(self) -> None:
        """Make ``read_fd`` readable; a full pipe is readable already, and one that nobody reads is of no interest."""
        try:
            os.write(self.write_fd, b"\0")
        except (BlockingIOError, BrokenPipeError):
            pass

    def take(self) -> bytes:
        """Return at most ``READ_SIZE`` of the bytes that were rung, ``b""`` when there are none."""
        try:
            return os.read(self.read_fd, READ_SIZE)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close both ends."""
        os.close(self.read_fd)
        os.close(self.write_fd)


class SignalQueue:
    """The signals that a process waits for, from ``install`` to ``restore``."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = tuple(numbers)
        self._bell = Bell()
        self._previous: dict[int, Handler] = {}
        self._previous_fd = -1
        self._previous_mask: set[int] = set()

    def install(self) -> None:
        """Begin to collect; the main thread only."""
        self._previous_fd = signal.set_wakeup_fd(self._bell.write_fd, warn_on_full_buffer=False)
        for number in self._numbers:
            self._previous[number] = signal.signal(number, wake)
        # A parent may have left them blocked.
        self._previous_mask = set(signal.pthread_sigmask(signal.SIG_UNBLOCK, self._numbers))

    def restore(self) -> None:
        """Put back what was before ``install``, and close."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._previous_mask)
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._previous_fd)
        self._bell.close()

    def take(self) -> list[int]:
        """Return the numbers that have arrived, each once, in order of arrival."""
        return list(dict.fromkeys(self._bell.take()))

    def wait(self, timeout: float, bell: Bell | None = None, fds: Iterable[int] = ()) -> None:
        """Return when a signal arrives, ``bell`` rings (it is cleared), one of ``fds`` is readable, or time is over.

        ``timeout`` is in seconds.
        """
        poller = select.poll()
        for fd in (self._bell.read_fd, *fds, *((bell.read_fd,) if bell else ())):
            poller.register(fd, select.POLLIN)
        poller.poll(max(0.0, timeout) * 1000)
        if bell:
            bell.take()

    def close(self) -> None:
        """Close the pipe only: for a child, which has dispositions of its own."""
        self._bell.close()


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Keep every signal waiting for the length of a ``with`` block: no child runs its parent's handlers."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ALL_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def has_terminal() -> bool:
    """Return True when this process has a controlling terminal, which sends signals of its own accord (tty(4))."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
