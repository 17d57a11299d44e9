"""Listening sockets: what an address means, and opening, keeping and removing what listens there.

Everything here runs in the supervisor. Knows no connection and no wire.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import socket
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateways.core.errors import ConfigurationError

DEFAULT_BACKLOG = 2048
DEFAULT_MODE = 0o660
LOOPBACK = "127.0.0.1"
MAX_PATH = 107
"""Bytes of a UNIX socket's path: ``sun_path`` holds 108 with its end (unix(7))."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: ``host`` and ``port``, or the ``path`` of a UNIX socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def parts(self) -> tuple[str, int, str]:
        """Host, port and path."""
        return self.host, self.port, self.path

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return the address that ``text`` names; raise ``ConfigurationError`` when it names none.

    ``127.0.0.1:8000``, ``[::1]:8000``, ``localhost:8000``, ``unix:/run/app.sock``. Without a host (``8000``,
    ``:8000``) it is the loopback address: to listen to the world one has to say so, with ``0.0.0.0``, ``[::]`` or ``*``
    (every IPv4 address).
    """
    if text.startswith("unix:"):
        return Address(path=_parse_path(text.removeprefix("unix:")))
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if ":" not in host:
            raise ConfigurationError(f"address {text!r}: only an IPv6 address stands in brackets")
    elif ":" in host:
        raise ConfigurationError(f"address {text!r}: write an IPv6 address in brackets, as in [::1]:8000")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        raise ConfigurationError(f"address {text!r}: expected HOST:PORT, PORT or unix:PATH, with a port up to 65535")
    if any(c.isspace() or c in "/[]@" for c in host):
        raise ConfigurationError(f"address {text!r}: {host!r} is no host name")
    return Address("0.0.0.0" if host == "*" else host or LOOPBACK, int(port))


def _parse_path(path: str) -> str:
    if not path or "\0" in path:
        raise ConfigurationError("address 'unix:': the path of the socket is missing")
    if len(os.fsencode(path)) > MAX_PATH:
        raise ConfigurationError(f"address 'unix:{path}': the path is longer than {MAX_PATH} bytes")
    return path


def is_wildcard(address: Address) -> bool:
    """Return True when ``address`` takes connections on every interface of the machine."""
    if address.path:
        return False
    try:
        return not any(socket.inet_pton(socket.AF_INET6 if ":" in address.host else socket.AF_INET, address.host))
    except OSError:
        return False


class Listener(socket.socket):
    """A listening socket that knows its address and, for a UNIX socket, which file it made and in which process.

    ``claim``: who asked for this free port, and how many it asked for before; ``""`` for an address that there is once.
    ``heritage``: the file that it is to own when the
    process that made it has left it to us.
    """

    __slots__ = ("address", "claim", "heritage", "identity", "owner")

    address: Address
    claim: str
    heritage: tuple[int, int] | None
    identity: tuple[int, int] | None
    owner: int

    def remove(self) -> None:
        """Close it, and remove its file if it is still the one that this very process made."""
        if self.identity is not None and self.owner == os.getpid():
            try:
                found = os.lstat(self.address.path)
                if (found.st_dev, found.st_ino) == self.identity:
                    os.unlink(self.address.path)
            except OSError:
                pass
        self.close()


def open_listener(
    address: Address,
    backlog: int = DEFAULT_BACKLOG,
    mode: int = DEFAULT_MODE,
    defer_accept: int = 0,
    owner: str = "",
    group: str = "",
) -> Listener:
    """Return a non-blocking, close-on-exec listener on ``address``.

    ``mode`` is a UNIX socket's from its first moment; ``owner`` and ``group``, names or numbers, are set before anybody
    can connect. ``defer_accept``: seconds that the kernel may wait for a connection's first bytes before it shows it
    (Linux). Raise ``ConfigurationError`` with what to do about it.
    """
    try:
        listener = _bind_path(address, mode, owner, group) if address.path else _bind_port(address)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {address}: {_explain(error, address)}") from error
    except UnicodeError as error:
        raise ConfigurationError(f"cannot listen on {address}: this is no host name") from error
    if defer_accept and not address.path:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, defer_accept)
    try:
        listener.listen(backlog)
    except OSError as error:
        listener.remove()
        raise ConfigurationError(f"cannot listen on {address}: {_explain(error, address)}") from error
    listener.setblocking(False)
    return listener


def _bind_port(address: Address) -> Listener:
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, where = min(found, key=lambda info: info[0] != socket.AF_INET)
    listener = _make(family, address)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Linux hands TCP_NODELAY down to accepted sockets, which saves a system call for each connection.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(where)
    except BaseException:
        listener.close()
        raise
    return listener


def _bind_path(address: Address, mode: int, owner: str, group: str) -> Listener:
    _remove_stale(address.path)
    listener = _make(socket.AF_UNIX, address)
    umask = os.umask(0o777 & ~mode)
    try:
        listener.bind(address.path)
        made = os.lstat(address.path)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(umask)
    listener.identity = (made.st_dev, made.st_ino)
    if owner or group:
        _give_away(listener, owner, group)
    return listener


def _give_away(listener: Listener, owner: str, group: str) -> None:
    path = listener.address.path
    try:
        os.chown(path, _find_user(owner), _find_group(group), follow_symlinks=False)
    except OSError as error:
        listener.remove()
        whose = " and ".join(filter(None, (owner and f"owner {owner}", group and f"group {group}")))
        raise ConfigurationError(
            f"cannot listen on unix:{path}: its {whose} cannot be set: {error.strerror}; "
            "only root can give a file away, others only to a group that they are in"
        ) from error
    except BaseException:
        listener.remove()
        raise


def _find_user(name: str) -> int:
    """Return a user's number, -1 for no name. Raise ``ConfigurationError`` for an unknown one."""
    if not name or name.isdigit():
        return int(name or -1)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise ConfigurationError(f"there is no user {name!r} on this machine") from None


def _find_group(name: str) -> int:
    """Return a group's number, -1 for no name. Raise ``ConfigurationError`` for an unknown one."""
    if not name or name.isdigit():
        return int(name or -1)
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ConfigurationError(f"there is no group {name!r} on this machine") from None


def _make(family: int, address: Address) -> Listener:
    listener = Listener(family, socket.SOCK_STREAM)
    listener.address = address
    listener.identity = None
    listener.heritage = None
    listener.claim = ""
    listener.owner = os.getpid()
    return listener


def adopt_listener(fd: int, address: Address, claim: str, identity: tuple[int, int]) -> Listener:
    """Return the listener that another process has opened and passed on as ``fd``; its file stays that process's."""
    listener = Listener(fileno=fd)
    listener.address = address
    listener.identity = None
    listener.heritage = identity if address.path else None
    listener.claim = claim
    listener.owner = os.getpid()
    os.set_inheritable(fd, False)
    listener.setblocking(False)
    return listener


def adopt_socket(sock: socket.socket) -> Listener:
    """Return the listener that a service manager has opened; its file, if it has one, stays the manager's."""
    name = sock.getsockname()
    if isinstance(name, bytes) or not name:
        raise ConfigurationError("a UNIX socket without a file was passed to this program: no Listen can name it")
    address = Address(path=name) if isinstance(name, str) else Address(name[0], name[1])
    listener = adopt_listener(sock.detach(), address, "", (0, 0))
    if not address.path:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _remove_stale(path: str) -> None:
    """Remove a socket file on which nobody answers; raise ``OSError`` (EADDRINUSE) for anything else that is there."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, "not a socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:
            pass
    raise OSError(errno.EADDRINUSE, "somebody answers on it")


def _explain(error: OSError, address: Address) -> str:
    if isinstance(error, socket.gaierror):
        return f"the host name is unknown ({error.strerror}); use an address of this machine"
    advice = {
        errno.EADDRINUSE: "the address is in use; stop the program that listens there, or choose another one",
        errno.EADDRNOTAVAIL: "no interface of this machine has this address; use one that `ip address` shows",
        errno.EAFNOSUPPORT: "this machine does not speak this address family; use an IPv4 address",
        errno.EEXIST: "a file that is not a socket is in the way; remove it, or choose another path",
        errno.ENOENT: "its directory does not exist; create it first",
    }.get(error.errno or 0)
    if error.errno in (errno.EACCES, errno.EPERM):
        advice = (
            "permission denied; the directory must be writable for this user"
            if address.path
            else "permission denied; use a port above 1023, or grant CAP_NET_BIND_SERVICE"
        )
    return advice or f"{error.strerror or error}"


def close_listeners(listeners: Iterable[socket.socket]) -> None:
    """Close ``listeners`` in the process that opened them, and remove the socket files that are still theirs."""
    for listener in listeners:
        if isinstance(listener, Listener):
            listener.remove()
        else:
            listener.close()


def own_listeners(listeners: Iterable[socket.socket]) -> None:
    """Take over the files of those ``listeners`` that were inherited."""
    for listener in listeners:
        if isinstance(listener, Listener) and listener.heritage is not None:
            listener.identity, listener.heritage = listener.heritage, None


def disown_listeners(listeners: Iterable[socket.socket]) -> None:
    """Leave the files of ``listeners`` to whoever goes on with them."""
    for listener in listeners:
        if isinstance(listener, Listener):
            listener.identity = None


def number_free_ports(addresses: Sequence[Address]) -> list[tuple[Address, int]]:
    """Return each address with a number: how often it stood there before if it asks for a free port, otherwise 0."""
    keys = []
    counts: dict[Address, int] = {}
    for address in addresses:
        keys.append((address, counts.get(address, 0)))
        if not address.path and not address.port:
            counts[address] = counts.get(address, 0) + 1
    return keys


class OpenListeners:
    """What is open, by address, so that a reload keeps listening where it already does."""

    def __init__(self, inherited: Iterable[Listener] = ()) -> None:
        self._open = {(listener.address, listener.claim): listener for listener in inherited}

    def close_others(self, kept: Iterable[socket.socket]) -> set[Listener]:
        """Close what is open and not among ``kept``: what was inherited and is not asked for any more. Return it."""
        others = self.are_open() - set(kept)
        close_listeners(others)
        return others

    def are_open(self) -> set[Listener]:
        """Return the listeners that are open now."""
        return {listener for listener in self._open.values() if listener.fileno() != -1}

    def acquire(
        self,
        addresses: Sequence[Address],
        backlog: int = DEFAULT_BACKLOG,
        mode: int = DEFAULT_MODE,
        defer_accept: int = 0,
        owner: str = "",
        group: str = "",
        claimant: str = "",
    ) -> list[Listener]:
        """Return a listener for each of ``addresses``: the one that is open, or a new one; all of them or none.

        Port 0 is another port each time it stands there, and for each ``claimant``; any other address that stands twice
        gives the same listener.
        Closing those that a new pool no longer has is the supervisor's. Raise as ``open_listener`` does.
        """
        known = {key: listener for key, listener in self._open.items() if listener.fileno() != -1}
        opened: dict[tuple[Address, str], Listener] = {}
        keys = [
            (address, "" if address.path or address.port else f"{claimant} {number}")
            for address, number in number_free_ports(addresses)
        ]
        try:
            for key in keys:
                if key not in known and key not in opened:
                    opened[key] = open_listener(key[0], backlog, mode, defer_accept, owner, group)
                    opened[key].claim = key[1]
        except ConfigurationError:
            close_listeners(opened.values())
            raise
        self._open = {**known, **opened}
        return [self._open[key] for key in keys]
