"""One process that serves by itself: for tests and debuggers. Nothing is forked, nothing is replaced."""

from __future__ import annotations

import os
import signal
from time import monotonic
from typing import TYPE_CHECKING

from gateways.process.listeners import close_listeners
from gateways.process.pool import Pool
from gateways.process.scoreboard import Scoreboard
from gateways.process.signals import Bell
from gateways.process.worker import Worker

if TYPE_CHECKING:
    from gateways.core.interfaces import Log

WATCHED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def run_single(pool: Pool, log: Log) -> int:
    """Run ``pool.serve`` in this process, until it returns; return 0.

    TERM and INT ask it to stop, QUIT and USR1 to retire; a second INT interrupts it. What it raises is the caller's,
    and the signal handlers are as before when this returns. The request limit does not hold here: nobody would take
    over. The listeners are closed at the end.
    """
    board = Scoreboard(1)
    board.open_line(0, 1, monotonic())
    board.write_pid(0, os.getpid())
    lifeline = Bell()
    previous = {number: signal.getsignal(number) for number in WATCHED}
    previous_fd = signal.set_wakeup_fd(-1)
    worker = Worker(board.slot(0), pool.listeners, lifeline.read_fd, 0, log)
    try:
        worker.take_signals()
        worker.answer_terminal()
        worker.answer_manager()
        # Whoever started us may have left them blocked.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
        pool.serve(worker)
        return 0
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        signal.set_wakeup_fd(previous_fd)
        worker.close()
        lifeline.close()
        close_listeners(pool.listeners)
