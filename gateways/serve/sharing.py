"""A serving process's side of sharing: its waiting connections are known to the pool's doorman, who may take them.

While this process runs the application, a request may come on another of its connections. The doorman has a copy of
each that was told to it, and takes those on which something has come (``doorman``). Two words of shared memory say
when: ``shared[0]``, the mark of the connection that is served now, is ours; ``shared[1]``, not 0 once the doorman may
take, is the doorman's, and looked at before a waiting connection is touched again after a request.

Messages cost a system call, so they are sent late: when a request begins while others wait, for all of them at once. A
process with one connection sends none. Knows one process's connections; nothing of who takes them.
"""

from __future__ import annotations

import select
import socket

from gateways.serve.passing import BACK, COPY, FORGOTTEN, KNOCK, MARK, MOST_COPIES, SHARED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateways.core.interfaces import Log
    from gateways.serve.connection import Connection

NOTHING_SHARED = memoryview(bytearray(16)).cast("q")
"""What a process looks at that shares nothing."""
PATIENCE = 2.0
"""Seconds that the doorman has to say what it has taken."""
MOST_ANSWER = 65536


class Sharing:
    """What the doorman knows of this process.

    ``untold``: the waiting connections of which it does not know how they are. ``shared``: the two words. ``line``:
    the number by which it finds them. ``knocks``: where it hears of processes that it does not know.
    """

    __slots__ = ("_channel", "_known", "_last", "_line", "_log", "knocks", "shared", "untold")

    def __init__(self, line: int, shared: memoryview, knocks: socket.socket, log: Log) -> None:
        self._line = line
        self.shared = shared
        self.knocks = knocks
        self._log = log
        self._channel: socket.socket | None = None
        self._known: dict[int, Connection] = {}
        self._last = 0
        self.untold: dict[Connection, None] = {}

    def tell(self, served: Connection) -> None:
        """Tell the doorman, before a request of ``served`` runs, how every other waiting connection is."""
        if len(self.untold) == 1 and served in self.untold:
            return
        blank = []
        for connection in [*self.untold]:
            known = connection.mark in self._known
            if connection is served or connection.is_blank:
                if known:
                    del self.untold[connection]
                else:
                    blank.append(connection)
            elif known:
                self._disown(connection)
        for at in range(0, len(blank), MOST_COPIES):
            if not self._share(blank[at : at + MOST_COPIES]):
                return

    def _share(self, connections: Sequence[Connection]) -> bool:
        """Send copies. False when that cannot be now: they stay untold."""
        channel = self._channel or self._knock()
        if channel is None:
            return False
        marks = range(self._last + 1, self._last + 1 + len(connections))
        rows = zip(marks, connections, strict=True)
        message = bytes((SHARED,)) + b"".join(COPY.pack(mark, each.origin) for mark, each in rows)
        try:
            socket.send_fds(channel, [message], [each.fd for each in connections], socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            self._lose()
            return False
        self._last = marks[-1]
        for mark, connection in zip(marks, connections, strict=True):
            connection.mark = mark
            self._known[mark] = connection
            self.untold.pop(connection, None)
        return True

    def _knock(self) -> socket.socket | None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            socket.send_fds(self.knocks, [KNOCK.pack(self._line)], [theirs.fileno()], socket.MSG_DONTWAIT)
        except OSError:
            ours.close()
            return None
        finally:
            theirs.close()
        self._channel = ours
        return ours

    def forget(self, connection: Connection) -> None:
        """Have the copy of a connection closed, if there is one: it is about to end, or no other may take it now."""
        self.untold.pop(connection, None)
        self._disown(connection)

    def _disown(self, connection: Connection) -> None:
        if self._known.pop(connection.mark, None) is None or self._channel is None:
            return
        try:
            self._channel.send(bytes((FORGOTTEN,)) + MARK.pack(connection.mark), socket.MSG_DONTWAIT)
        except OSError:
            self._lose()

    def rejoin(self) -> list[Connection]:
        """Be the only owner again, after a request; return the connections that were taken meanwhile.

        When the doorman is gone nobody can say which: then all are returned that may have been.
        """
        marks = self._ask()
        self.shared[1] = 0
        if marks is not None:
            return [self._known.pop(mark) for mark in marks if mark in self._known]
        # Not the one that was served: it is never taken, and nothing else was touched since.
        served = self._known.pop(self.shared[0], None)
        if served is not None:
            self.untold[served] = None
        lost, self._known = list(self._known.values()), {}
        if lost:
            self._log.warning("the doorman does not answer: closing %d waiting connections", len(lost))
        self._lose()
        return lost

    def _ask(self) -> Sequence[int] | None:
        channel = self._channel
        if channel is None:
            return None
        try:
            channel.send(bytes((BACK,)), socket.MSG_DONTWAIT)
        except OSError:
            pass  # it may have said what it has taken before it went
        poll = select.poll()
        poll.register(channel, select.POLLIN)
        data = b""
        if poll.poll(PATIENCE * 1000):
            try:
                data = channel.recv(MOST_ANSWER, socket.MSG_DONTWAIT)
            except ConnectionResetError:
                data = channel.recv(MOST_ANSWER, socket.MSG_DONTWAIT)  # it went with our question unread
            except OSError:
                pass
        return [mark for (mark,) in MARK.iter_unpack(data[1:])] if data and len(data) % MARK.size == 1 else None

    def _lose(self) -> None:
        """Forget the doorman, which closes every copy; its successor is told anew.

        Not while it may have taken something: then what it said last is still to be read, by ``rejoin``.
        """
        if self.shared[1]:
            return
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        self.untold.update(dict.fromkeys(self._known.values()))
        self._known = {}
