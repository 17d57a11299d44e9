"""How many connections wait on a listening socket for somebody to accept them, as the kernel says.

Everything here runs in the supervisor; no call waits. Linux only: elsewhere nothing is known.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

_TCP_INFO_SIZE = 32
_TCP_LENGTH = struct.Struct("@II")
_TCP_AT = 24
"""tcpi_unacked and tcpi_sacked, which in a listening socket are its queue and the queue's limit (tcp_diag.c)."""
# sock_diag(7): one UNIX socket by its inode, and of it the lengths of its queues.
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_UDIAG_SHOW_RQLEN = 0x10
_UNIX_DIAG_RQLEN = 4
_ANY_COOKIE = 0xFFFFFFFF
_HEADER = struct.Struct("@IHHII")
_ASK = struct.Struct("@BBHIIIII")
_TOLD = 16
_ATTRIBUTE = struct.Struct("@HH")


class Queue(NamedTuple):
    """Connections that wait, and how many may: the smaller of ListenBacklog and the kernel's net.core.somaxconn."""

    length: int
    limit: int


def read_queue(listener: socket.socket) -> Queue | None:
    """Return a listener's queue; None when the kernel does not tell."""
    try:
        if listener.family == socket.AF_UNIX:
            return _ask_unix(os.fstat(listener.fileno()).st_ino)
        info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_SIZE)
        return Queue(*_TCP_LENGTH.unpack_from(info, _TCP_AT))
    except (OSError, AttributeError, struct.error):
        return None


def read_queues(listeners: Iterable[socket.socket]) -> Queue | None:
    """Return the queues of several listeners together; None when none of them is known."""
    known = [queue for queue in map(read_queue, listeners) if queue is not None]
    return Queue(sum(queue.length for queue in known), sum(queue.limit for queue in known)) if known else None


def _ask_unix(inode: int) -> Queue | None:
    size = _HEADER.size + _ASK.size
    question = _HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0) + _ASK.pack(
        socket.AF_UNIX, 0, 0, _ANY_COOKIE, inode, _UDIAG_SHOW_RQLEN, _ANY_COOKIE, _ANY_COOKIE
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as diag:
        diag.sendto(question, (0, 0))
        # The answer is there when the question has been sent: the kernel gives it within that call.
        return parse_unix(diag.recv(4096, socket.MSG_DONTWAIT))


def parse_unix(answer: bytes) -> Queue | None:
    """Return the queue that an answer of sock_diag(7) tells of; None when it is an error or tells of none."""
    length, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _SOCK_DIAG_BY_FAMILY:
        return None
    at, end = _HEADER.size + _TOLD, min(length, len(answer))
    while at + _ATTRIBUTE.size <= end:
        size, name = _ATTRIBUTE.unpack_from(answer, at)
        if name == _UNIX_DIAG_RQLEN:
            return Queue(*_TCP_LENGTH.unpack_from(answer, at + _ATTRIBUTE.size))
        at += max(size + 3 & ~3, _ATTRIBUTE.size)
    return None
