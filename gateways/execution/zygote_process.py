"""The zygote: a small process beside a worker that has imported what its scripts need, and forks one child a request.

Every line of this module runs in that process. It imports little, and does little between two forks, because each page
of memory that parent or child then writes to costs a copy. It ends when its line to the worker does.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import atexit
import gc
import os
import sys
from _signal import NSIG, SIG_DFL, SIG_IGN, SIG_SETMASK, SIGKILL, SIGPIPE, SIGSTOP
from _socket import AF_UNIX, SOCK_STREAM, socket

from gateways.core.errors import ScriptError
from gateways.execution.loading import load_imports
from gateways.execution.parent import OURSELVES
from gateways.execution.recipes import CompileError, NotPython, Program, compile_when_changed
from gateways.execution.scriptlog import format_exception
from gateways.execution.zygote_child import IGNORED, MAX_DESCRIPTOR, Template, run_script
from gateways.execution.zygote_line import (
    COLLECT,
    DESCRIPTOR,
    FORK,
    NOT_COMPILED,
    NOT_PYTHON,
    NOT_READ,
    REFUSED,
    STARTED,
    STATUS,
    LineLost,
    receive,
    send,
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Be a worker's zygote until the worker closes the line; never returns."""
    status = 0
    try:
        os.set_inheritable(DESCRIPTOR, False)
        os.closerange(DESCRIPTOR + 1, MAX_DESCRIPTOR)
        shed_signals()
        serve(socket(AF_UNIX, SOCK_STREAM, 0, DESCRIPTOR))
    except LineLost:
        pass
    except BaseException as error:  # noqa: BLE001 - the edge of a process
        os.write(2, format_exception(error))
        status = 1
    finally:
        os._exit(status)


def fork_zygote(descriptor: int) -> int:
    """Fork a zygote off this worker, and return its pid. It sheds what a new process would not have."""
    pid = os.fork()
    if not pid:
        try:
            if descriptor != DESCRIPTOR:
                os.dup2(descriptor, DESCRIPTOR, inheritable=False)
            atexit._clear()
            shed_environment()
            main()
        finally:
            os._exit(1)
    return pid


def shed_signals() -> None:
    """Give every signal the meaning it has in a new Python process, but ignore those that are the worker's.

    By the functions below ``signal``'s, which would touch an enumeration for each number.
    """
    _signal.set_wakeup_fd(-1)
    for number in range(1, NSIG):
        handler = _signal.getsignal(number)
        if number not in (SIGKILL, SIGSTOP, SIGPIPE) and handler is not None and handler != SIG_DFL:
            _signal.signal(number, SIG_DFL)
    _signal.signal(SIGPIPE, SIG_IGN)
    for number in IGNORED:
        _signal.signal(number, SIG_IGN)
    _signal.pthread_sigmask(SIG_SETMASK, ())


def shed_environment() -> None:
    """Make the environment the plain one again, where scripts of the worker have theirs (``run_environment``)."""
    octets = dict(os.environb.items())
    text: Any = os.environ
    bytes_view: Any = os.environb
    text.__class__ = bytes_view.__class__ = os._Environ
    text._data = bytes_view._data = octets


def serve(line: socket) -> None:
    """Take the setting and get ready; then take orders. Raise ``LineLost`` when the worker is gone.

    The setting: ``path``: what ``sys.path`` is to be; ``imports``: modules that children will need; ``scripts``: those
    that are known. The environment is emptied: a child's is its own.
    """
    setting, _ = receive(line)
    sys.path[:] = setting["path"]
    zygote = _Nest(line)
    load_imports(setting["imports"])
    for path in setting["scripts"]:
        zygote.compile(path)
    os.environ.clear()
    gc.collect()
    gc.freeze()
    send(line, True)
    zygote.run()


class _Nest:
    """The zygote's programs and its children, of which there is one at a time as a rule."""

    __slots__ = ("_children", "_line", "_programs", "_template")

    def __init__(self, line: socket) -> None:
        self._line = line
        self._programs: dict[str, Program] = {}
        self._children: set[int] = set()
        self._template = Template()

    def compile(self, path: str) -> Any:
        """Return the program at ``path``, or the answer that refuses it."""
        try:
            return compile_when_changed(self._programs, path)
        except CompileError as error:
            return REFUSED, NOT_COMPILED, error.message, error.status, format_exception(error.cause)
        except ScriptError as error:
            kind = NOT_PYTHON if isinstance(error, NotPython) else NOT_READ
            return REFUSED, kind, error.message, error.status, b""

    def run(self) -> None:
        """Take orders. Raise ``LineLost`` when the worker is gone; a child that still runs goes with it."""
        try:
            while True:
                order, descriptors = receive(self._line, room=3)
                if order[0] == FORK:
                    answer = self._fork(order, descriptors)
                elif order[0] == COLLECT:
                    answer = self._collect(order[1])
                else:
                    answer = (STATUS, OURSELVES.has_ended(order[1]))
                send(self._line, answer)
        finally:
            for pid in self._children:
                os.killpg(pid, SIGKILL)

    def _fork(self, order: tuple[Any, ...], descriptors: list[int]) -> tuple[Any, ...]:
        _, path, folder, variables = order
        program = self.compile(path)
        if type(program) is tuple:
            answer: tuple[Any, ...] = program
        else:
            pid = os.fork()
            if not pid:
                live(program, folder, variables, descriptors, self._template)
            self._children.add(pid)
            answer = (STARTED, pid)
        for descriptor in descriptors:
            os.close(descriptor)
        return answer

    def _collect(self, pid: int) -> tuple[Any, ...]:
        self._children.discard(pid)
        status = OURSELVES.collect(pid)
        fault = self._template.fault
        raised = fault[0] != 0
        if raised:
            fault[0] = 0
        return STATUS, status, raised


def live(
    program: Program, folder: str, variables: dict[bytes, bytes], descriptors: list[int], template: Template
) -> None:
    """Be a child: run one script and end; never returns."""
    status = 70
    try:
        status = run_script(program, folder, variables, descriptors, template)
    except BaseException as error:  # noqa: BLE001 - the edge of a process: nothing may return into the zygote's loop
        os.write(2, format_exception(error))
    finally:
        os._exit(status)
