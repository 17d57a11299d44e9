"""What a zygote's child does: every line of this module runs in the forked child, and none returns to the zygote.

Knows the zygote only as what has to be shed: its descriptors, its session, the signals that it blocks.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import atexit
import os
import sys
from mmap import mmap

from gateways.execution.ending import Ending, run_code
from gateways.execution.recipes import make_namespace
from gateways.execution.scriptlog import format_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gateways.execution.recipes import Program

MAX_DESCRIPTOR = 1 << 20


class Template:
    """What the zygote prepares once so that a child touches as little as it can: each page of memory that a child
    writes to, were it only a count of references, is copied first. Made in the zygote, used in its children.

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


def run_script(program: Program, variables: dict[bytes, bytes], descriptors: list[int], template: Template) -> int:
    """Be the process of one script, and return its exit status. ``template.fault``: set when it raised."""
    folder = os.path.dirname(program.path)
    shed_zygote(descriptors)
    set_environment(variables)
    os.chdir(folder)
    set_streams(template)
    sys.argv = [program.path]
    sys.path.insert(0, folder)
    module = make_namespace(program)
    sys.modules["__main__"] = module
    pid = os.getpid()
    ending = run_code(program.code, module.__dict__, ErrorStream())
    if ending.raised and os.getpid() == pid:  # not in a child of the script's own
        template.fault[0] = 1
    return end_process(ending)


class ErrorStream:
    """Writes exceptions to descriptor 2, whose lines the worker logs."""

    def write_exception(self, error: BaseException) -> None:
        """Write an exception with its traceback."""
        os.write(2, format_exception(error))


def shed_zygote(descriptors: list[int]) -> None:
    """Leave the zygote's session, blocked signals and descriptors behind.

    ``descriptors`` become 0, 1 and 2; every other one is closed (C13).
    """
    os.setsid()
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    count = len(descriptors)
    safe = [move_above(descriptor, count) for descriptor in descriptors]
    for number, descriptor in enumerate(safe):
        os.dup2(descriptor, number)
    os.closerange(count, MAX_DESCRIPTOR)


def move_above(descriptor: int, floor: int) -> int:
    """Return ``descriptor``, or a copy of it that is not among the first ``floor``."""
    if descriptor >= floor:
        return descriptor
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, floor)


def set_environment(variables: dict[bytes, bytes]) -> None:
    """Fill the environment, which has nothing that is not in ``variables``: Python's and the C library's."""
    text: Any = os.environ
    octets: Any = os.environb
    putenv = os.putenv
    for name, value in variables.items():
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

    The zygote's own are kept: closing them would write what they hold into the script's reply.
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
