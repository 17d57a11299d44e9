"""The line between a worker and its zygote: a socket that keeps messages apart, and what is said on it.

| message | from the worker | from the zygote |
|---|---|---|
| dictionary | prepare: ``imports``, ``scripts``, and ``path`` for ``sys.path`` | |
| True | | prepared |
| tuple | fork: (script, marshalled environment), with three descriptors | (status, raised): the child has ended |
| list | | refused: [sentence, status for the client, traceback for the log] |
| number | send it to the child and its group as a signal; 0: collect the child | |

Each is a marshalled value; a long one lies in a memory file whose descriptor comes first. Knows sockets only.
"""

from __future__ import annotations

import marshal
import os
import sys
from _socket import (
    AF_UNIX,
    CMSG_LEN,
    MSG_CMSG_CLOEXEC,
    SCM_RIGHTS,
    SOCK_CLOEXEC,
    SOCK_SEQPACKET,
    SOL_SOCKET,
    socketpair,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Any

_SHORT = 32768
_ROOM = 4
_INTEGER = 4


class LineLost(Exception):
    """The other end is gone."""


class LineUnused(LineLost):
    """The other end was gone before it could read a word."""


def make_line() -> tuple[socket, socket]:
    """Return the two ends of a new line."""
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC)


def send(line: socket, message: Any, descriptors: tuple[int, ...] = ()) -> None:
    """Send one message. Raise ``LineUnused`` when it cannot be."""
    data = marshal.dumps(message)
    try:
        if len(data) > _SHORT:
            file = os.memfd_create("zygote-order")
            try:
                write_all(file, data)
                send_short(line, b"", (file, *descriptors))
            finally:
                os.close(file)
        else:
            send_short(line, data, descriptors)
    except OSError as error:  # a message is sent whole or not at all
        raise LineUnused from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write data to a file."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def send_short(line: socket, data: bytes, descriptors: tuple[int, ...]) -> None:
    """Send bytes as one message; no bytes at all are sent as one that is no marshalled value."""
    data = data or b"?"
    if descriptors:
        rights = b"".join([number.to_bytes(_INTEGER, sys.byteorder) for number in descriptors])
        line.sendmsg((data,), ((SOL_SOCKET, SCM_RIGHTS, rights),))
    else:
        line.send(data)


def receive(line: socket) -> tuple[Any, list[int]]:
    """Wait for one message; return it, and the descriptors that came with it. Raise ``LineLost``."""
    try:
        data, extras, _, _ = line.recvmsg(_SHORT, CMSG_LEN(_ROOM * _INTEGER), MSG_CMSG_CLOEXEC)
    except OSError as error:
        raise LineLost from error
    if not data:
        raise LineLost
    descriptors = []
    for _, _, rights in extras:
        for n in range(0, len(rights), _INTEGER):
            descriptors.append(int.from_bytes(rights[n : n + _INTEGER], sys.byteorder))
    if data == b"?":
        with open(descriptors.pop(0), "rb") as file:
            file.seek(0)
            data = file.read()
    return marshal.loads(data), descriptors
