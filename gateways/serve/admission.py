"""A listener that closes a connection at once unless a rule names its peer. Without a rule nobody pays for one."""

from __future__ import annotations

import os

from gateways.core.request import parse_peer
from gateways.serve.loop import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from gateways.core.interfaces import Log, Wire


class GuardedListener(Listener):
    """A ``Listener``. ``admits(address)`` tells whether a peer may connect; it gets ``""`` for a UNIX socket."""

    __slots__ = ("_admits", "_log")

    def __init__(
        self, sock: socket.socket, wire: Callable[[object], Wire], admits: Callable[[str], bool], log: Log
    ) -> None:
        super().__init__(sock, wire)
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
