"""Asking a supervisor's status port, from another process."""

from __future__ import annotations

import json
import socket
from typing import Any

from gateways.core.errors import GatewayError
from gateways.process.listeners import parse_address

PATIENCE = 5.0
"""Seconds for each operation: a supervisor answers at once or is stuck itself."""
MOST = 16 << 20
REQUEST = b"GET /status.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def read_status(text: str) -> dict[str, Any]:
    """Return the report of the status port at an address as configurations spell it. Raise ``GatewayError``."""
    address = parse_address(text)
    try:
        with connect(address.path, address.host, address.port) as sock:
            sock.sendall(REQUEST)
            answer = read_to_end(sock)
    except OSError as error:
        raise GatewayError(f"nobody tells a status at {text}: {error}") from error
    head, found, body = answer.partition(b"\r\n\r\n")
    try:
        data = json.loads(body) if found and head.startswith(b"HTTP/1.1 200 ") else None
    except ValueError:
        data = None
    if not isinstance(data, dict) or "pools" not in data:
        raise GatewayError(f"what answers at {text} is no status port of ours")
    return data


def connect(path: str, host: str, port: int) -> socket.socket:
    """Return a connection to a UNIX socket, or to a host and port."""
    if not path:
        return socket.create_connection((host, port), PATIENCE)
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(PATIENCE)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


def read_to_end(sock: socket.socket) -> bytes:
    """Return everything until the peer closes. Raise ``GatewayError`` beyond ``MOST`` bytes."""
    pieces = []
    size = 0
    while piece := sock.recv(65536):
        pieces.append(piece)
        size += len(piece)
        if size > MOST:
            raise GatewayError(f"an answer of more than {MOST} bytes is no status")
    return b"".join(pieces)
