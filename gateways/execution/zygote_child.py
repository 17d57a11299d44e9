"""What a zygote's child does: every line of this module runs in the forked child, and none returns to the worker.

Knows the worker's process only as what has to be shed: its descriptors, signal handlers and exit functions.
"""

from __future__ import annotations

import os
import sys

from gateways.execution.ending import Ending, run_code
from gateways.execution.pipe_exchange import DescriptorLog, PipeExchange
from gateways.execution.recipes import make_namespace
from gateways.execution.scriptlog import format_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap
    from typing import Any

    from gateways.core.interfaces import ExecutionModel
    from gateways.core.request import Request
    from gateways.execution.child import Pipes
    from gateways.execution.recipes import Program
    from gateways.execution.sources import Script

DOCUMENT = 3
"""The descriptor of the reply when an execution model runs: 1 belongs to whatever the application prints."""
MAX_DESCRIPTOR = 1 << 20
_kept: list[object] = []


def run_script(program: Program, script: Script, variables: dict[bytes, bytes], pipes: Pipes, fault: mmap) -> int:
    """Be the process of one script, and return its exit status. ``fault[0]``: set when it ended by an exception."""
    shed_worker(pipes.child_in, pipes.child_out, pipes.stderr_in)
    set_environment(variables)
    os.chdir(script.folder)
    open_stdio()
    sys.argv = [script.path]
    sys.path.insert(0, script.folder)
    module = make_namespace(program)
    sys.modules["__main__"] = module
    pid = os.getpid()
    ending = run_code(program.code, module.__dict__, ErrorStream())
    if ending.raised and os.getpid() == pid:  # not in a child of the script's own
        fault[0] = 1
    return end_process(ending)


def run_model(model: ExecutionModel, request: Request, pipes: Pipes, fault: mmap) -> int:
    """Be the process of one exchange of ``model``, and return 0, or 1 with ``fault[0]`` set when it raised."""
    shed_worker(pipes.child_in, pipes.stderr_in, pipes.stderr_in, pipes.child_out)
    open_stdio()
    exchange = PipeExchange(request, DOCUMENT, DescriptorLog())
    ending = Ending(0)
    try:
        model.run(exchange)
        exchange.finish()
    except BaseException as error:  # noqa: BLE001 - the edge around the application
        ErrorStream().write_exception(error)
        fault[0] = 1
        ending = Ending(1, raised=True)
    os.close(DOCUMENT)
    exchange.run_cleanups()
    return end_process(ending)


class ErrorStream:
    """Writes exceptions to descriptor 2, whose lines the worker logs."""

    def write_exception(self, error: BaseException) -> None:
        """Write an exception with its traceback."""
        os.write(2, format_exception(error))


def shed_worker(*descriptors: int) -> None:
    """Leave the worker's session, signal handlers, exit functions and descriptors behind.

    ``descriptors`` become 0, 1, 2 ...; every other one is closed (C13).
    """
    import atexit

    os.setsid()
    shed_signals()
    atexit._clear()
    floor = len(descriptors)
    safe = [move_above(descriptor, floor) for descriptor in descriptors]
    for number, descriptor in enumerate(safe):
        os.dup2(descriptor, number, inheritable=number <= 2)
    os.closerange(floor, MAX_DESCRIPTOR)


def move_above(descriptor: int, floor: int) -> int:
    """Return ``descriptor``, or a copy of it that is not among the first ``floor``."""
    if descriptor >= floor:
        return descriptor
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, floor)


def shed_signals() -> None:
    """Give every signal the meaning it has in a new Python process, and block none."""
    import signal

    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if handler is not None and handler is not signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def set_environment(variables: dict[bytes, bytes]) -> None:
    """Replace the whole environment, of Python and of the C library."""
    os.environb.clear()
    os.environb.update(variables)


def open_stdio() -> None:
    """Give ``sys`` new standard streams on descriptors 0, 1 and 2, as a new process has them.

    The worker's own objects are kept: closing them would write what they hold into the script's reply.
    """
    _kept.extend((sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__))
    encoding = getattr(sys.__stdout__, "encoding", None) or "utf-8"
    errors = getattr(sys.__stdout__, "errors", None) or "strict"
    opened: list[Any] = [
        os.fdopen(0, encoding=encoding, errors=errors, newline="\n", closefd=False),
        os.fdopen(1, "w", encoding=encoding, errors=errors, newline="\n", closefd=False),
        os.fdopen(2, "w", encoding=encoding, errors="backslashreplace", newline="\n", closefd=False, buffering=1),
    ]
    sys.stdin, sys.stdout, sys.stderr = opened
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = opened  # type: ignore[misc]
    sys.excepthook = sys.__excepthook__
    sys.unraisablehook = sys.__unraisablehook__


def end_process(ending: Ending) -> int:
    """Do what the interpreter does at the end of a process, and return the exit status (120: output was lost)."""
    import atexit

    threading: Any = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()
    atexit._run_exitfuncs()
    status = ending.status
    for stream in (sys.stdout, sys.__stdout__, sys.stderr):
        try:
            stream.flush()  # type: ignore[union-attr]
        except (AttributeError, OSError, ValueError):
            status = status if stream is not sys.stdout else status or 120
    return status
