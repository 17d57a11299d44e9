"""What a service manager is told: ready, reloading, stopping, alive (sd_notify(3), the protocol only).

Nothing is sent unless NOTIFY_SOCKET names a socket, and nothing that goes wrong with it matters to the service.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from math import inf

STATUS_INTERVAL = 10.0
"""Seconds between two sentences about how it goes, for ``systemctl status``."""


class Notifier:
    """Sends to the socket that ``variables`` name. ``next_beat``: when ``beat`` is next to be called (monotonic)."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        path = variables.get("NOTIFY_SOCKET", "")
        self._address = "\0" + path[1:] if path.startswith("@") else path
        interval = variables.get("WATCHDOG_USEC", "")
        meant = variables.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        # Half of what the manager allows, as sd_watchdog_enabled(3) recommends.
        self._interval = int(interval) / 2e6 if path and meant and interval.isdigit() and int(interval) else inf
        self._next_life = 0.0 if self._interval < inf else inf
        self._next_status = 0.0 if path else inf
        self._status = ""

    @property
    def next_beat(self) -> float:
        """When a sign of life or a sentence is due."""
        return min(self._next_life, self._next_status)

    def send(self, *lines: str) -> None:
        """Send assignments such as ``READY=1``."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.sendto("\n".join(lines).encode(), self._address)
        except OSError:
            pass

    def beat(self, now: float, describe: Callable[[], str]) -> None:
        """Give a sign of life if one is due, and say how it goes if that has changed: what ``describe`` returns."""
        if now >= self._next_life:
            self._next_life = now + self._interval
            self.send("WATCHDOG=1")
        if now >= self._next_status:
            self._next_status = now + STATUS_INTERVAL
            status = describe()
            if status != self._status:
                self._status = status
                self.send(f"STATUS={status}")
