"""The line between a worker and its zygote: orders one way, answers the other, and the worker's end of it.

Each message is a length and a marshalled value; an order to fork carries the child's three descriptors. Knows sockets
and processes; no request and no script.
"""

from __future__ import annotations

import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_CLOEXEC, SOCK_STREAM, SOL_SOCKET, socket, socketpair

from gateways.core.errors import ScriptError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DESCRIPTOR = 3
"""Where a zygote finds its end of the line."""
FORK, LOOK, COLLECT = range(3)
"""Orders: begin a child; say whether it has ended; collect it."""
STARTED, REFUSED, STATUS = range(3)
"""Answers: (STARTED, pid); (REFUSED, kind, message, status, traceback); (STATUS, wait status, raised)."""
NOT_PYTHON, NOT_COMPILED, NOT_READ = range(3)
"""Kinds of refusal."""
MAX_MESSAGE = 1 << 26
_PREFIX = 4
_INTEGER = 4
_BOOT = "import sys; sys.path.insert(0, sys.argv.pop()); from gateways.execution.zygote_process import main; main()"
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class LineLost(Exception):
    """The other end is gone."""


class LineUnused(LineLost):
    """The other end was gone before it could read a word."""


def send(line: socket, message: Any, descriptors: tuple[int, ...] = ()) -> None:
    """Send one message. Raise ``LineLost``, or ``LineUnused`` when nothing of it was read."""
    data = marshal.dumps(message)
    data = len(data).to_bytes(_PREFIX, sys.byteorder) + data
    try:
        if descriptors:
            rights = b"".join(number.to_bytes(_INTEGER, sys.byteorder) for number in descriptors)
            data = data[line.sendmsg((data,), ((SOL_SOCKET, SCM_RIGHTS, rights),)) :]
        if data:
            line.sendall(data)
    except BrokenPipeError as error:
        raise LineUnused from error
    except OSError as error:
        raise LineLost from error


def receive(line: socket, room: int = 0) -> tuple[Any, list[int]]:
    """Wait for one message; return it, and up to ``room`` descriptors that came with it. Raise ``LineLost``."""
    try:
        if room:
            from _socket import CMSG_LEN, MSG_CMSG_CLOEXEC

            data, extras, _, _ = line.recvmsg(65536, CMSG_LEN(room * _INTEGER), MSG_CMSG_CLOEXEC)
        else:
            data, extras = line.recv(65536), []
        if not data:
            raise LineLost
        while len(data) < _PREFIX or len(data) < (size := _PREFIX + int.from_bytes(data[:_PREFIX], sys.byteorder)):
            piece = line.recv(65536)
            if not piece:
                raise LineLost
            data += piece
    except OSError as error:
        raise LineLost from error
    if len(data) != size:
        raise LineLost
    rights = b"".join(part for _, _, part in extras)
    numbers = [rights[n : n + _INTEGER] for n in range(0, len(rights), _INTEGER)]
    return marshal.loads(data[_PREFIX:]), [int.from_bytes(number, sys.byteorder) for number in numbers]


def spawn_zygote(descriptor: int) -> int:
    """Start a zygote whose end of the line is ``descriptor``; return its pid."""
    try:
        return os.posix_spawn(
            sys.executable, [sys.executable, "-c", _BOOT, _ROOT], {**os.environ, "LD_BIND_NOW": "1"},
            file_actions=[(os.POSIX_SPAWN_DUP2, descriptor, DESCRIPTOR)],
        )  # fmt: skip
    except OSError:
        from gateways.execution.zygote_process import fork_zygote

        return fork_zygote(descriptor)


class Refusal(Exception):
    """A zygote did not fork. ``kind``: why; ``status``: what a client gets; ``traceback``: what the log gets."""

    def __init__(self, kind: int, message: str, status: int, traceback: bytes) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.traceback = traceback


class Zygote:
    """A worker's zygote, as the worker sees it: started when it is first needed, and again when it was lost.

    ``setting``: what it is told first; see ``zygote_process``. ``raised``: the child that was collected last ended by
    an exception.
    """

    __slots__ = ("_line", "_pid", "raised", "setting")

    def __init__(self, setting: dict[str, Any]) -> None:
        self.setting = setting
        self.raised = False
        self._line: socket | None = None
        self._pid = 0

    def start(self) -> None:
        """Start the process. Raise ``OSError`` or ``LineLost``.

        A new interpreter, because the memory of a worker has been everywhere, and every page that a child writes to,
        were it only a count of references, is copied for it. A fork of the worker where its user may not start one.
        """
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
        self._line = ours
        try:
            self._pid = spawn_zygote(theirs.fileno())
        finally:
            theirs.close()
        send(ours, self.setting)
        receive(ours)

    def fork(self, order: tuple[Any, ...], descriptors: tuple[int, int, int]) -> int:
        """Have it fork a child on three descriptors; return the child's pid. Raise ``Refusal`` or ``ScriptError``."""
        self.raised = False
        try:
            answer = self._order((FORK, *order), descriptors)
        except (LineLost, OSError) as error:
            self.close()
            raise ScriptError("the zygote process was lost; the next request starts another") from error
        if answer[0] == STARTED:
            return int(answer[1])
        raise Refusal(*answer[1:])

    def _order(self, order: tuple[Any, ...], descriptors: tuple[int, int, int]) -> Any:
        """Order a child, from a new zygote where the last one was lost; an order that arrived is never repeated."""
        if self._line is not None:
            try:
                send(self._line, order, descriptors)
                return receive(self._line)[0]
            except LineUnused:
                self.close()
        self.start()
        assert self._line is not None
        send(self._line, order, descriptors)
        return receive(self._line)[0]

    def has_ended(self, pid: int) -> bool:
        """True when a child has ended."""
        return bool(self._ask((LOOK, pid), (STATUS, True))[1])

    def collect(self, pid: int) -> int | None:
        """Wait for a child's end, and return its wait status; ``None`` when the zygote has gone before."""
        _, status, self.raised = self._ask((COLLECT, pid), (STATUS, None, False))
        return None if status is None else int(status)

    def _ask(self, order: tuple[int, int], lost: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._line is None:
            return lost
        try:
            send(self._line, order)
            answer: tuple[Any, ...] = receive(self._line)[0]
        except LineLost:
            self.close()
            return lost
        return answer

    def close(self) -> None:
        """End it: it goes when the line does."""
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._pid:
            try:
                os.waitpid(self._pid, 0)
            except ChildProcessError:
                pass
            self._pid = 0
