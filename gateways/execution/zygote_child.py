"""What a zygote's child does: every line of this module runs in the forked child, and none returns to the worker.

Knows the worker's process only as what has to be shed: its descriptors, signal handlers and exit functions.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import atexit
import os
import sys
from mmap import mmap
from signal import NSIG, SIG_SETMASK, SIGINT, SIGKILL, SIGPIPE, SIGSTOP

from gateways.execution.ending import Ending, run_code
from gateways.execution.pipe_exchange import DescriptorLog, PipeExchange
from gateways.execution.recipes import make_namespace
from gateways.execution.scriptlog import format_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gateways.core.interfaces import ExecutionModel
    from gateways.core.request import Request
    from gateways.execution.child import Pipes
    from gateways.execution.recipes import Program
    from gateways.execution.sources import Script

DOCUMENT = 3
"""The descriptor of the reply when an execution model runs: 1 belongs to whatever the application prints."""
MAX_DESCRIPTOR = 1 << 20
WORKER_ENVIRON: Any = os._Environ
_SIGNALS = tuple(number for number in range(1, NSIG) if number not in (SIGKILL, SIGSTOP))


class Template:
    """What the worker prepares once so that a child touches as little as it can: each page of memory that a child
    writes to, were it only a count of references, is copied first. Made in the worker, used in its children.

    ``streams``: standard streams as a new process has them, made while descriptors 0 to 2 were pipes. ``fault``: one
    shared byte, which a child sets when it ends by an exception.
    """

    __slots__ = ("fault", "kept", "streams")

    def __init__(self) -> None:
        self.fault = mmap(-1, 1)
        self.kept: list[object] = []
        saved = [os.dup(number) for number in range(3)]
        reader, writer = os.pipe()
        try:
            for number, descriptor in ((0, reader), (1, writer), (2, writer)):
                os.dup2(descriptor, number)
            self.streams = open_streams()
        finally:
            for number, descriptor in enumerate(saved):
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.close(reader)
            os.close(writer)

    def close(self) -> None:
        """Release the shared byte."""
        self.fault.close()


def run_script(
    program: Program, script: Script, variables: dict[bytes, bytes], pipes: Pipes, template: Template
) -> int:
    """Be the process of one script, and return its exit status. ``template.fault``: set when it raised."""
    shed_worker(pipes.child_in, pipes.child_out, pipes.stderr_in)
    set_environment(variables)
    os.chdir(script.folder)
    set_streams(template)
    sys.argv = [script.path]
    sys.path.insert(0, script.folder)
    module = make_namespace(program)
    sys.modules["__main__"] = module
    pid = os.getpid()
    ending = run_code(program.code, module.__dict__, ErrorStream())
    if ending.raised and os.getpid() == pid:  # not in a child of the script's own
        template.fault[0] = 1
    return end_process(ending)


def run_model(model: ExecutionModel, request: Request, pipes: Pipes, template: Template) -> int:
    """Be the process of one exchange of ``model``, and return 0, or 1 with ``template.fault`` set when it raised."""
    shed_worker(pipes.child_in, pipes.stderr_in, pipes.stderr_in, pipes.child_out)
    set_streams(template)
    exchange = PipeExchange(request, DOCUMENT, DescriptorLog())
    ending = Ending(0)
    try:
        model.run(exchange)
        exchange.finish()
    except BaseException as error:  # noqa: BLE001 - the edge around the application
        ErrorStream().write_exception(error)
        template.fault[0] = 1
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
    """Give every signal the meaning it has in a new Python process, and block none.

    By the functions below ``signal``'s, which would touch an enumeration for each number.
    """
    _signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        handler = _signal.getsignal(number)
        if handler is not None and handler != _signal.SIG_DFL:
            _signal.signal(number, _signal.SIG_DFL)
    _signal.signal(SIGPIPE, _signal.SIG_IGN)
    _signal.signal(SIGINT, _signal.default_int_handler)
    _signal.pthread_sigmask(SIG_SETMASK, ())


def set_environment(variables: dict[bytes, bytes]) -> None:
    """Replace the whole environment, of Python and of the C library."""
    text: Any = os.environ
    octets: Any = os.environb
    if type(octets) is not WORKER_ENVIRON:
        octets.clear()
        octets.update(variables)
        return
    worker: dict[bytes, bytes] = octets._data
    putenv, unsetenv = os.putenv, os.unsetenv
    for name in worker:
        if name not in variables:
            unsetenv(name)
    for name, value in variables.items():
        if worker.get(name) != value:
            putenv(name, value)
    text._data = octets._data = variables


def open_streams() -> tuple[Any, Any, Any]:
    """Return new standard streams on descriptors 0, 1 and 2."""
    encoding = getattr(sys.__stdout__, "encoding", None) or "utf-8"
    errors = getattr(sys.__stdout__, "errors", None) or "strict"
    return (
        os.fdopen(0, encoding=encoding, errors=errors, newline="\n", closefd=False),
        os.fdopen(1, "w", encoding=encoding, errors=errors, newline="\n", closefd=False),
        os.fdopen(2, "w", encoding=encoding, errors="backslashreplace", newline="\n", closefd=False, buffering=1),
    )


def set_streams(template: Template) -> None:
    """Give ``sys`` the template's streams.

    The worker's own are kept: closing them would write what they hold into the script's reply.
    """
    template.kept.extend((sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__))
    sys.stdin, sys.stdout, sys.stderr = template.streams
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = template.streams  # type: ignore[misc]
    sys.excepthook = sys.__excepthook__
    sys.unraisablehook = sys.__unraisablehook__


def end_process(ending: Ending) -> int:
    """Do what the interpreter does at the end of a process, and return the exit status (120: output was lost)."""
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
