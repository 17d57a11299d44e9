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
from _signal import NSIG, SIG_DFL, SIG_IGN, SIG_SETMASK, SIGINT, SIGKILL, SIGPIPE, SIGSTOP
from _socket import AF_UNIX, SOCK_SEQPACKET, socket
from marshal import loads
from select import POLLIN, poll

from gateways.core.errors import ScriptError
from gateways.execution.environment import PASSED, list_inherited
from gateways.execution.loading import load_imports
from gateways.execution.parent import OURSELVES
from gateways.execution.recipes import CompileError, Program, compile_when_changed
from gateways.execution.scriptlog import format_exception
from gateways.execution.zygote_child import MAX_DESCRIPTOR, Template, run_script
from gateways.execution.zygote_control import DESCRIPTOR
from gateways.execution.zygote_line import LineLost, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TICK = 20
"""Milliseconds between two looks at a child where there are no pidfds."""


def main() -> None:
    """Be a worker's zygote until the worker closes the line; never returns."""
    status = 0
    try:
        os.set_inheritable(DESCRIPTOR, False)
        os.closerange(DESCRIPTOR + 1, MAX_DESCRIPTOR)
        shed_signals()
        serve(socket(AF_UNIX, SOCK_SEQPACKET, 0, DESCRIPTOR))
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
    """Give every signal the meaning it has in a new Python process, and block all: they are meant for the worker, and
    may be sent to everybody of its group or its service. A child unblocks them by one system call.

    By the functions below ``signal``'s, which would touch an enumeration for each number.
    """
    _signal.set_wakeup_fd(-1)
    for number in range(1, NSIG):
        handler = _signal.getsignal(number)
        if number not in (SIGKILL, SIGSTOP, SIGPIPE) and handler is not None and handler != SIG_DFL:
            _signal.signal(number, SIG_DFL)
    _signal.signal(SIGPIPE, SIG_IGN)
    _signal.signal(SIGINT, _signal.default_int_handler)
    _signal.pthread_sigmask(SIG_SETMASK, _signal.valid_signals())


def shed_environment() -> None:
    """Make the environment the plain one again, where scripts of the worker have theirs (``run_environment``)."""
    octets = dict(os.environb.items())
    text: Any = os.environ
    bytes_view: Any = os.environb
    text.__class__ = bytes_view.__class__ = os._Environ
    text._data = bytes_view._data = octets


def serve(line: socket) -> None:
    """Take orders until the worker is gone, then raise ``LineLost``; a child that still runs goes with the worker.

    Of the environment only that is kept which every child has too: a module that is imported ahead may copy it, or find
    the locale there.
    """
    kept = list_inherited(dict(os.environ), PASSED)
    os.environ.clear()
    os.environ.update(kept)
    nest = Nest(line)
    try:
        while True:
            nest.obey(*receive(line))
    finally:
        if nest.child:
            OURSELVES.signal_group(nest.child, SIGKILL)


class Nest:
    """A zygote's programs, and its child. ``child``: the pid of the one that is not collected yet, 0 for none."""

    __slots__ = ("_line", "_programs", "_template", "child")

    def __init__(self, line: socket) -> None:
        self.child = 0
        self._line = line
        self._programs: dict[str, Program] = {}
        self._template = Template()

    def obey(self, order: Any, descriptors: list[int]) -> None:
        """Do what the worker says. See ``zygote_line``. Raise ``LineLost``."""
        if type(order) is tuple:
            self._fork(order, descriptors)
            if self.child:
                self._wait()
        elif type(order) is int:
            self._tell_child(order)
        else:
            self._prepare(order)

    def _prepare(self, setting: dict[str, list[str]]) -> None:
        sys.path[:] = setting["path"]
        load_imports(setting["imports"])
        for path in setting["scripts"]:
            try:
                compile_when_changed(self._programs, path)
            except ScriptError:
                pass  # the first request says it
        gc.collect()
        gc.freeze()
        send(self._line, True)

    def _tell_child(self, number: int) -> None:
        if number and self.child:
            OURSELVES.signal_group(self.child, number)
        elif self.child:
            OURSELVES.collect(self.child)
            self.child = 0

    def _fork(self, order: tuple[str, bytes], descriptors: list[int]) -> None:
        """Fork a child, unless there is no program."""
        try:
            program = compile_when_changed(self._programs, order[0])
            pid = os.fork()
            if not pid:
                live(program, order[1], descriptors, self._template)
            self.child = pid
        except ScriptError as error:
            traceback = format_exception(error.cause) if isinstance(error, CompileError) else b""
            send(self._line, [error.message, error.status, traceback])
        except OSError as error:
            send(self._line, [f"no process can be made for {order[0]}: {error}", 503, b""])
        for descriptor in descriptors:
            os.close(descriptor)

    def _wait(self) -> None:
        """Wait for the child's end and report it; obey meanwhile. The child is collected when the worker says so."""
        watched = OURSELVES.watch(self.child)
        poller = poll()
        poller.register(self._line.fileno(), POLLIN)
        if watched >= 0:
            poller.register(watched, POLLIN)
        try:
            ended = False
            while not ended:
                for descriptor, _ in poller.poll(None if watched >= 0 else TICK):
                    if descriptor == watched:
                        ended = True
                    else:
                        self.obey(*receive(self._line))
                if watched < 0:
                    ended = OURSELVES.has_ended(self.child)
        finally:
            if watched >= 0:
                OURSELVES.unwatch(watched)
        self._report()

    def _report(self) -> None:
        end = os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOWAIT)
        assert end is not None
        status = end.si_status << 8 if end.si_code == os.CLD_EXITED else end.si_status
        fault = self._template.fault
        raised = fault[0] != 0
        if raised:
            fault[0] = 0
        send(self._line, (status, raised))


def live(program: Program, variables: bytes, descriptors: list[int], template: Template) -> None:
    """Be a child: run one script and end; never returns."""
    status = 70
    try:
        status = run_script(program, loads(variables), descriptors, template)
    except BaseException as error:  # noqa: BLE001 - the edge of a process: nothing may return into the zygote's loop
        os.write(2, format_exception(error))
    finally:
        os._exit(status)
