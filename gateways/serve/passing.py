"""Connections that go from one process to another: the messages of a pool's door, and the listener at its inner side.

A descriptor goes along with a message (SCM_RIGHTS, unix(7)) and is another for whoever receives it, of the same
connection. Knows socket pairs; nothing of who speaks, or when.
"""

from __future__ import annotations

import os
import socket
from struct import Struct

from gateways.serve.listener import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_COPIES = 64
"""Descriptors of one message; the kernel takes 253 (SCM_MAX_FD, unix(7))."""
SHARED, FORGOTTEN, BACK = b"SFB"
"""The first byte of a message: copies of connections follow; a mark whose copy is to be closed; what was taken?"""
KNOCK = Struct("=i")
COPY = Struct("=qi")
MARK = Struct("=q")
HANDED = Struct("=iq")
"""Messages: the number of the line of who knocks; a mark and the number of a listener, for each descriptor; a mark; for
a handed connection, the number of the listener that it came by and the mark under which it is served: below 0 when
another worker still has a copy."""
FD = Struct("=i")
RECEIVE_FLAGS = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC


class HandedListener(Listener):
    """Where connections come from that another process has accepted; a ``Listener`` with all the pool's wires.

    ``sock``: the end of a socket pair. A message is the number of a listener, and the connection.
    """

    __slots__ = ("_listeners", "mark")
    is_handed = True

    def __init__(self, sock: socket.socket, listeners: Sequence[Listener]) -> None:
        super().__init__(sock, listeners[0].wire)
        self._listeners = listeners

    def accept(self) -> tuple[int, object]:
        """Return (descriptor, peer address) of the next connection, with ``wire``, ``number``, ``mark`` set for it."""
        while True:
            handed = receive_handed(self.sock)
            if handed is None:
                raise BlockingIOError
            fd, number, mark = handed
            try:
                peer = find_peer(fd)
                listener = self._listeners[number]
            except (OSError, IndexError):
                os.close(fd)
                continue
            self.wire = listener.wire
            self.number = number
            self.mark = mark
            return fd, peer


def receive_handed(sock: socket.socket) -> tuple[int, int, int] | None:
    """Return (descriptor, listener's number, mark) of the next handed connection; None when there is none."""
    try:
        data, fds = receive(sock, HANDED.size, 1)
    except OSError:
        return None
    if len(data) != HANDED.size or len(fds) != 1:
        close_all(fds)
        return None
    number, mark = HANDED.unpack(data)
    return fds[0], number, mark


def receive(sock: socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """Return a message of up to ``size`` bytes and the descriptors that came with it, ``most`` of them.

    Never waits; raise ``BlockingIOError`` when there is none, ``OSError`` when there will be none.
    """
    data, ancillary, _, _ = sock.recvmsg(size, socket.CMSG_SPACE(most * FD.size), RECEIVE_FLAGS)
    return data, [
        fd
        for level, kind, content in ancillary
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS
        for (fd,) in FD.iter_unpack(content[: len(content) // FD.size * FD.size])
    ]


def close_all(fds: Iterable[int]) -> None:
    """Close descriptors."""
    for fd in fds:
        os.close(fd)


def find_peer(fd: int) -> object:
    """Return the address of a connection's peer as ``accept`` gives it. Raise ``OSError`` when it has gone."""
    with socket.socket(fileno=os.dup(fd)) as sock:
        return sock.getpeername()


def is_channel(fd: int) -> bool:
    """True for the end of a socket pair by which a worker speaks."""
    try:
        with socket.socket(fileno=os.dup(fd)) as sock:
            return sock.family == socket.AF_UNIX and sock.type == socket.SOCK_SEQPACKET
    except OSError:
        return False
