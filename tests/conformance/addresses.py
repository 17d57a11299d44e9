"""Addresses as the command line has them: ``http://127.0.0.1:8000/app``, ``fastcgi://unix:/run/app.sock:/app``."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMES = ("http", "fastcgi", "scgi", "uwsgi", "ajp", "flup+fastcgi", "flup+scgi")
DEFAULT_PORTS = {"http": 80, "ajp": 8009}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, what it speaks, and below which path it serves the application (``""``: the root).

    ``path`` is the socket's file, or empty for TCP.
    """

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""
    prefix: str = ""

    @property
    def authority(self) -> str:
        """What a Host field says."""
        return f"{self.host}:{self.port}" if self.host else "localhost"


def parse_address(text: str) -> Address:
    """Return the address that ``text`` names. Raise ``ValueError`` with a sentence for a person."""
    scheme, found, rest = text.partition("://")
    if not found or scheme not in SCHEMES:
        raise ValueError(f"{text!r} does not begin with one of {', '.join(f'{name}://' for name in SCHEMES)}")
    if rest.startswith("unix:"):
        path, _, prefix = rest[5:].partition(":")
        if not path:
            raise ValueError(f"{text!r} names no socket: {scheme}://unix:/path/to/socket")
        return Address(scheme, path=path, prefix=prefix.rstrip("/"))
    where, _, prefix = rest.partition("/")
    host, _, port = where.rpartition(":") if ":" in where.rpartition("]")[2] else (where, "", "")
    number = DEFAULT_PORTS.get(scheme, 0) if host == where else int(port) if port.isascii() and port.isdigit() else 0
    if not host or not 0 < number < 65536:
        raise ValueError(f"{text!r} needs a host and a port: {scheme}://127.0.0.1:9000/")
    return Address(scheme, host.strip("[]"), number, prefix=f"/{prefix}".rstrip("/"))
