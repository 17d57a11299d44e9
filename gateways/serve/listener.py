"""A listening socket as the loop accepts on it, and one that closes at once what a rule does not admit.

Knows sockets and peers' addresses; no request.
"""

from __future__ import annotations

import fcntl
import os

from gateways.core.request import parse_peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from gateways.core.interfaces import Log, Wire


class Listener:
    """A listening socket and the wire that is spoken on it. ``wire(peer)`` makes the wire of one connection.

    ``number``: which of the pool's listeners it is. ``is_handed``: its connections were accepted by another process.
    ``mark``: then, what the last one is called.
    """

    __slots__ = ("_accept", "fd", "number", "sock", "wire")
    is_handed = False
    mark: int

    def __init__(self, sock: socket.socket, wire: Callable[[object], Wire], number: int = 0) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.number = number
        self.fd = sock.fileno()
        self.wire = wire
        # The public accept() wraps each socket in Python objects: 5 us a connection (`bench floor`, close).
        self._accept: Callable[[], tuple[int, object]] = getattr(sock, "_accept")  # noqa: B009

    def accept(self) -> tuple[int, object]:
        """Return (descriptor, peer address) of the next connection, non-blocking. Raise ``OSError`` as ``accept``."""
        fd, peer = self._accept()
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
        return fd, peer


class GuardedListener(Listener):
    """A ``Listener``. ``admits(address)`` tells whether a peer may connect; it gets ``""`` for a UNIX socket."""

    __slots__ = ("_admits", "_log")

    def __init__(
        self,
        sock: socket.socket,
        wire: Callable[[object], Wire],
        admits: Callable[[str], bool],
        log: Log,
        number: int = 0,
    ) -> None:
        super().__init__(sock, wire, number)
        self._admits = admits
        self._log = log

    def accept(self) -> tuple[int, object]:
        """Accept as ``Listener`` does; raise ``BlockingIOError`` after closing a connection that is not admitted."""
        fd, peer = super().accept()
        address = parse_peer(peer)[0]
        if self._admits(address):
            return fd, peer
        os.close(fd)
        self._log.warning("closed a connection from %s, which is not among AllowedPeers", address or "a UNIX socket")
        raise BlockingIOError
