"""A function called in a process of its own: forked, given a time, collected.

What the function does to its process ends with that process. Knows no request.
"""

from __future__ import annotations

import os
import select
import signal

from gateways.execution.ending import FINE
from gateways.execution.parent import OURSELVES
from gateways.execution.scriptlog import format_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def run_apart(function: Callable[[], object], time_limit: float) -> int | None:
    """Call ``function`` in a forked process, which ends as the interpreter does, and return its wait status.

    ``None`` when it was still there after ``time_limit`` seconds, and was killed with its group. It needs a system with
    pidfds.
    """
    pid = os.fork()
    if not pid:
        _live(function)
    descriptor = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    try:
        ended = bool(poller.poll(time_limit * 1000))
    finally:
        os.close(descriptor)
    OURSELVES.signal_group(pid, signal.SIGKILL)  # and whatever it has left behind
    status = OURSELVES.collect(pid)
    return status if ended else None


def _live(function: Callable[[], object]) -> None:
    """Be the process; never return."""
    from gateways.execution.zygote_child import end_process

    status = 1
    try:
        os.setsid()
        function()
        status = end_process(FINE)
    except BaseException as error:  # noqa: BLE001 - the edge of a process: nothing may return into its parent's code
        os.write(2, format_exception(error))
    finally:
        os._exit(status)
