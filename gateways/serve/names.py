"""What a listener calls itself to applications: SERVER_NAME and SERVER_PORT (RFC 3875 4.1.14, 4.1.15)."""

from __future__ import annotations

import socket


def find_server_name(sock: socket.socket) -> tuple[str, str]:
    """Return (server name, port) of a listening socket; neither is ever empty.

    An IPv6 address stands in brackets. A socket that listens on every interface is called by the machine's name, a
    UNIX socket ``localhost``, port 80.
    """
    where = sock.getsockname()
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return "localhost", "80"
    host, port = where[0], str(where[1])
    if host in ("0.0.0.0", "::"):
        return socket.gethostname() or "localhost", port
    return (f"[{host}]" if ":" in host else host), port
