"""A worker's zygote as the worker sees it: started, told, asked, and started again when it was lost.

It is the ``Parent`` of the children that it forks: the worker has them signalled and collected through it. Knows the
line and processes; no request.
"""

from __future__ import annotations

import os
import select
import sys

from gateways.core.errors import ScriptError
from gateways.execution.zygote_line import LineLost, LineUnused, make_line, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Any

DESCRIPTOR = 3
"""Where a zygote finds its end of the line."""
_BOOT = "import sys; sys.path.insert(0, sys.argv.pop()); from gateways.execution.zygote_process import main; main()"
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_shared: list[Zygote] = []


def share_zygote(forked: bool = False) -> Zygote:
    """Return this process's zygote, which all its mounts use; each closes it once. ``forked``: see ``spawn_zygote``."""
    if not _shared or _shared[0].owner != os.getpid():
        _shared[:] = [Zygote(forked)]
    _shared[0].users += 1
    return _shared[0]


class Zygote:
    """One zygote, which has one child at a time. ``owner``: the process whose it is; ``users``: how many close it.

    Of the child: ``raised``: it ended by an exception; ``refusal``: [sentence, status, traceback] when it was never
    forked; ``lost``: it cannot be told how it ended.
    """

    __slots__ = ("_answer", "_forked", "_line", "_pid", "_settings", "lost", "owner", "raised", "refusal", "users")

    def __init__(self, forked: bool) -> None:
        self._forked = forked
        self.owner = os.getpid()
        self.users = 0
        self.raised = self.lost = False
        self.refusal: list[Any] = []
        self._settings: list[dict[str, Any]] = []
        self._answer: Any = None
        self._line: socket | None = None
        self._pid = 0

    def prepare(self, imports: list[str], scripts: list[str]) -> None:
        """Have modules imported and scripts compiled. Raise ``LineLost`` or ``OSError``."""
        self._settings.append({"path": list(sys.path), "imports": imports, "scripts": scripts})
        if self._line is None:
            self._start()
        else:
            send(self._line, self._settings[-1])
            receive(self._line)

    def _start(self) -> socket:
        """Start the process and prepare it."""
        line, far = make_line()
        self._line = line
        try:
            self._pid = spawn_zygote(far.fileno(), self._forked)
        finally:
            far.close()
        for setting in self._settings:
            send(line, setting)
            receive(line)
        return line

    def fork(self, order: tuple[str, bytes], descriptors: tuple[int, int, int]) -> int:
        """Have a child forked for (script, marshalled environment) on three descriptors. Raise ``ScriptError``.

        Return 0: the child's number is the zygote's to know. An order that may have arrived is never repeated.
        """
        self.raised = self.lost = False
        self.refusal = []
        self._answer = None
        try:
            if self._line is not None:
                try:
                    send(self._line, order, descriptors)
                    return 0
                except LineUnused:
                    self._end()
            send(self._start(), order, descriptors)
        except (LineLost, OSError) as error:
            self._end()
            raise ScriptError("the zygote process was lost; the next request starts another") from error
        return 0

    # Of the child: see ``parent.Parent``.

    def watch(self, _pid: int) -> int:
        """Return the descriptor that is readable when the child has ended."""
        return self._line.fileno() if self._line is not None else -1

    def unwatch(self, _descriptor: int) -> None:
        """The line stays."""

    def has_ended(self, _pid: int) -> bool:
        """True when the child has ended, or was never forked, or nothing more will be heard of it."""
        if self._answer is None and self._line is not None:
            poller = select.poll()
            poller.register(self._line.fileno(), select.POLLIN)
            if poller.poll(0):
                self._take()
        return self._answer is not None or self.lost

    def collect(self, _pid: int) -> int | None:
        """Wait for the child's end, and return its wait status; ``None`` when it was never forked, or is lost."""
        if self._answer is None:
            self._take()
        answer, self._answer = self._answer, None
        if type(answer) is not tuple:
            return None
        self._tell(0)
        self.raised = answer[1]
        return int(answer[0])

    def signal_group(self, _pid: int, number: int) -> None:
        """Send a signal to the child and everything in its group."""
        self._tell(number)

    def _take(self) -> None:
        try:
            if self._line is None:
                raise LineLost
            self._answer = receive(self._line)[0]
        except LineLost:
            self._end()
            self.lost = True
            return
        if type(self._answer) is list:
            self.refusal = self._answer

    def _tell(self, number: int) -> None:
        if self._line is not None:
            try:
                send(self._line, int(number))
            except LineLost:
                self._end()

    def close(self) -> None:
        """Have one user less; the last one ends it."""
        self.users -= 1
        if self.users <= 0:
            self._end()
            if self in _shared:
                _shared.remove(self)

    def _end(self) -> None:
        """Close the line, which ends the process, and collect it."""
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._pid:
            try:
                os.waitpid(self._pid, 0)
            except ChildProcessError:
                pass
            self._pid = 0


def spawn_zygote(descriptor: int, forked: bool) -> int:
    """Start a zygote whose end of the line is ``descriptor``, and return its pid. Raise ``OSError``.

    A new interpreter, because the memory of a worker has been everywhere, and every page that a child writes to, were
    it only a count of references, is copied for it. A fork of the worker if ``forked``, because the worker shares what
    it has imported with others; or where its user may not start an interpreter.
    """
    if not forked:
        try:
            return os.posix_spawn(
                sys.executable, [sys.executable, "-c", _BOOT, _ROOT], {**os.environ, "LD_BIND_NOW": "1"},
                file_actions=[(os.POSIX_SPAWN_DUP2, descriptor, DESCRIPTOR)],
            )  # fmt: skip
        except OSError:
            pass
    from gateways.execution.zygote_process import fork_zygote

    return fork_zygote(descriptor)
