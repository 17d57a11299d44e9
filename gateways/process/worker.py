"""The worker's side: what a serving process knows of itself, and its life from the fork to ``os._exit``.

Everything here runs in the child (or in the only process, under ``single``), nothing in the supervisor.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Callable, Sequence
from socket import socket
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from gateways.process.pool import Pool
from gateways.process.privileges import become
from gateways.process.scoreboard import Slot
from gateways.process.signals import STACK_SIGNAL, Bell, wake

if TYPE_CHECKING:
    from gateways.core.interfaces import Log
    from gateways.process.door import Door

SERVED = 0
FAILED = 1


class Worker:
    """One serving process, as the code that serves sees it.

    ``slot``: its line in the scoreboard, number ``line``. ``door``: to its pool's doorman, if any. ``listeners``: to
    accept on. ``lifeline_fd``: readable, at its end, when the supervisor is gone. ``wake_fd``: readable after a signal,
    until ``clear_wake``. ``max_requests``: leave after as many requests, 0 for no limit. ``stop_requested``: ``""``,
    ``"retire"`` (accept no more, finish kept connections politely) or ``"stop"`` (finish the current request, close the
    idle connections); check it after each wait and each request.
    """

    __slots__ = (
        "_news",
        "_stacks_fd",
        "_wake",
        "door",
        "lifeline_fd",
        "line",
        "listeners",
        "log",
        "max_requests",
        "one_connection",
        "slot",
        "stop_requested",
    )

    def __init__(
        self,
        slot: Slot,
        listeners: Sequence[socket],
        lifeline_fd: int,
        max_requests: int,
        log: Log,
        news: Bell | None = None,
        one_connection: bool = False,
        stacks_fd: int = -1,
        door: Door | None = None,
        line: int = 0,
    ) -> None:
        self.slot = slot
        self.listeners = listeners
        self.lifeline_fd = lifeline_fd
        self.max_requests = max_requests
        self.log = log
        self.stop_requested = ""
        self.one_connection = one_connection
        self.door = door
        self.line = line
        self._news = news
        self._stacks_fd = stacks_fd
        self._wake = Bell()

    @property
    def wake_fd(self) -> int:
        """The descriptor to wait on beside the connections."""
        return self._wake.read_fd

    def clear_wake(self) -> None:
        """Make ``wake_fd`` quiet again, until the next signal."""
        self._wake.take()

    @property
    def spent(self) -> bool:
        """True when this worker has served as many requests as it may."""
        return 0 < self.max_requests <= self.slot.requests

    def ready(self) -> None:
        """Say that the application is loaded: from here on this worker is told to stop and not just ended.

        Handlers that the application has installed meanwhile for TERM and QUIT are replaced.
        """
        signal.set_wakeup_fd(self._wake.write_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGQUIT, self._on_retire)
        self.slot.idle()
        self.tell()

    def leaving(self) -> None:
        """Say that this worker takes no new connection and will leave: its successor is started now."""
        self.slot.closing()
        self.tell()

    def tell(self) -> None:
        """Make the supervisor look at the scoreboard now."""
        if self._news is not None:
            self._news.ring()

    def take_signals(self) -> None:
        """Begin this worker's own signal dispositions: the main thread only, every signal still blocked.

        Until ``ready`` TERM ends the process at once: there is nothing to finish. INT and HUP come from a terminal to
        the whole group, and it is the supervisor who answers them; their handlers do nothing, rather than being
        ignored, so that no program started from here inherits a signal that is ignored.
        """
        signal.set_wakeup_fd(self._wake.write_fd, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, wake)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGQUIT, self._on_retire)
        if self._stacks_fd >= 0:
            # Answered in C, by whichever thread takes it: also while some C function keeps the interpreter for itself.
            faulthandler.register(STACK_SIGNAL, self._stacks_fd, all_threads=True)

    def answer_terminal(self) -> None:
        """Let a first INT ask this process to stop, and a second one interrupt it: for a process without supervisor."""
        signal.signal(signal.SIGINT, self._on_interrupt)

    def answer_manager(self) -> None:
        """Let USR1 ask this process to retire, as FastCGI process managers do: for a process without supervisor."""
        signal.signal(signal.SIGUSR1, self._on_retire)

    def close(self) -> None:
        """Close what this object opened; only a process that lives on needs to."""
        self._wake.close()

    # The interpreter writes to the wake pipe; these store one word, so that a loop that serves need not read the pipe.
    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_requested = "stop"

    def _on_retire(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_requested = self.stop_requested or "retire"

    def _on_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_requested = "stop"
        signal.signal(signal.SIGINT, signal.default_int_handler)


def run_worker(make: Callable[[], Worker], pool: Pool, give_up: Callable[[], None]) -> NoReturn:
    """Live a worker's whole life in a process just forked, and end it with ``os._exit``; never returns, never raises.

    ``give_up`` closes what is the supervisor's. Every signal must be blocked; the mask is cleared here.
    The ``random`` module reseeds itself in a forked child (it registers for that with the interpreter).
    """
    status = FAILED
    try:
        give_up()
        status = _serve(make(), pool)
    except BaseException:  # noqa: BLE001 - the edge of a worker's life: nothing of it may reach the supervisor's code
        sys.excepthook(*sys.exc_info())
    finally:
        _flush()
        os._exit(status)


def _serve(worker: Worker, pool: Pool) -> int:
    worker.take_signals()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        if pool.identity is not None:
            become(pool.identity)
        pool.serve(worker)
    except BaseException as error:
        worker.slot.note(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        worker.log.exception("worker %d ends: %s", os.getpid(), type(error).__name__)
        return FAILED
    return SERVED


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
