"""How this process was started, and what it is to be: a CGI program, a FastCGI application, a server.

``plan_start`` decides, from what descriptor 0 is and from the environment; the other functions look and take. Knows no
application. Imports next to nothing, because a CGI program pays for it on every request.
"""

from __future__ import annotations

import os

from gateways.core.errors import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence

# What descriptor 0 is.
LISTENING, CONNECTED, CLOSED, OTHER = "listening", "connected", "closed", "other"

# What this process is to be.
CGI, FASTCGI, ACTIVATED, HTTP, REFUSED = "cgi", "fastcgi", "activated", "http", "refused"

FIRST_ACTIVATED = 3
"""The first descriptor of socket activation (sd_listen_fds(3))."""
MAX_ACTIVATED = 100
_CGI_VARIABLES = ("GATEWAY_INTERFACE", "REQUEST_METHOD")
_IS_SOCKET = 0o140000
_INSTEAD = (
    "start it from a FastCGI process manager with a listening socket there, as a CGI program with GATEWAY_INTERFACE "
    "and REQUEST_METHOD set, or with standard input from /dev/null to serve HTTP"
)


class Start:
    """What to do. ``sentence``: why not, for ``REFUSED``. ``wires``: those of the activated sockets, in their order."""

    __slots__ = ("sentence", "way", "wires")

    def __init__(self, way: str, sentence: str = "", wires: Sequence[str] = ()) -> None:
        self.way = way
        self.sentence = sentence
        self.wires = tuple(wires)


def plan_start(stdin: str, variables: Mapping[str, str], pid: int) -> Start:
    """Return what a process is to be, from what its descriptor 0 is, its environment and its pid.

    One sign alone that may be left over from somebody else decides nothing: GATEWAY_INTERFACE without a request, or
    LISTEN_FDS that was meant for another process.
    """
    if stdin == LISTENING:
        return Start(FASTCGI)  # FastCGI 2.2
    if all(map(variables.get, _CGI_VARIABLES)):
        return Start(CGI)  # RFC 3875 4.1.4, 4.1.12
    if stdin == CONNECTED:
        return Start(REFUSED, f"descriptor 0 is a socket that does not listen: {_INSTEAD}")
    if variables.get("LISTEN_PID") == str(pid) and variables.get("LISTEN_FDS", "0") != "0":
        return plan_activation(variables["LISTEN_FDS"], variables.get("LISTEN_FDNAMES", ""))
    return Start(HTTP)


def plan_activation(count: str, names: str) -> Start:
    """Return what to do with LISTEN_FDS sockets; one whose name is a wire's speaks that wire, any other HTTP."""
    if not (count.isascii() and count.isdigit() and len(count) < 4 and int(count) <= MAX_ACTIVATED):
        return Start(REFUSED, f"LISTEN_FDS is not a number from 1 to {MAX_ACTIVATED}: start it by socket activation")
    from gateways.config.addresses import WIRES

    given = names.split(":") if names else []
    wires = [name if name in WIRES else "http" for name in given][: int(count)]
    return Start(ACTIVATED, wires=wires + ["http"] * (int(count) - len(wires)))


def look_at_stdin() -> str:
    """Return what descriptor 0 is."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return CLOSED
    if mode & 0o170000 != _IS_SOCKET:
        return OTHER
    # The public module takes ten times as long to import, and a CGI program may have a socket here, too (mod_cgid).
    import _socket

    sock = _socket.socket(fileno=0)
    try:
        return LISTENING if sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ACCEPTCONN) else CONNECTED
    except OSError:
        return CONNECTED
    finally:
        sock.detach()


def open_standard_descriptors() -> None:
    """Open /dev/null at those of the descriptors 0, 1 and 2 that are closed, so that nothing else lands there.

    A FastCGI application may be started with 0 alone (FastCGI 2.2).
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            null = os.open("/dev/null", os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)
            else:
                os.set_inheritable(fd, True)


def take_stdin_socket() -> socket.socket:
    """Return the listening socket of descriptor 0 under another descriptor, and leave /dev/null in its place."""
    sock = take_socket(0)
    moved = sock.dup()
    sock.detach()
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)
    return moved


def take_activation(pid: int) -> list[socket.socket]:
    """Return the sockets that a service manager has passed to process ``pid``, none if it has passed none.

    Raise ``ConfigurationError`` when they are not listening stream sockets.
    """
    if os.environ.get("LISTEN_PID") != str(pid) or os.environ.get("LISTEN_FDS", "0") == "0":
        return []
    plan = plan_activation(os.environ["LISTEN_FDS"], "")
    if plan.way == REFUSED:
        raise ConfigurationError(plan.sentence)
    return take_activated_sockets(len(plan.wires))


def take_activated_sockets(count: int) -> list[socket.socket]:
    """Return the activated sockets, close-on-exec, and forget the variables that told of them (sd_listen_fds(3))."""
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)
    sockets = [take_socket(fd) for fd in range(FIRST_ACTIVATED, FIRST_ACTIVATED + count)]
    for sock in sockets:
        sock.set_inheritable(False)
    return sockets


def take_socket(fd: int) -> socket.socket:
    """Return the listening stream socket at ``fd``. Raise ``ConfigurationError`` when there is none."""
    import socket

    try:
        sock = socket.socket(fileno=fd)
    except OSError as error:
        raise ConfigurationError(f"descriptor {fd} is not a socket: {error.strerror}") from error
    if sock.type != socket.SOCK_STREAM or not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        sock.detach()
        raise ConfigurationError(f"descriptor {fd} is not a listening stream socket: say Accept=no")
    return sock


def is_under_web_server(variables: Mapping[str, str]) -> bool:
    """True when a web server may wait for a document on standard output."""
    return any(map(variables.get, _CGI_VARIABLES))


def format_refusal(sentence: str) -> bytes:
    """Return a CGI document that tells a browser why there is no other (RFC 3875 6)."""
    head = "Status: 500 Internal Server Error\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    return f"{head}500 Internal Server Error\n{sentence}\n".encode("utf-8", "backslashreplace")


def find_callable(source: bytes) -> str:
    """Return ``application``, ``app`` or ``handler`` where a file's source plainly defines it, ``""`` where not.

    Looks at beginnings of lines only: whoever gets ``""`` and must know looks closer.
    """
    text = b"\n" + source
    for name in ("application", "app", "handler"):
        word = name.encode()
        if any(text.find(start) >= 0 for start in (b"\ndef %b(" % word, b"\n%b = " % word, b"\nclass %b(" % word)):
            return name
    return ""


def become_script(path: str) -> None:
    """Turn this process into a plain CGI script; never returns. Raise ``OSError`` when that cannot be."""
    import sys

    os.environ.pop("HTTP_PROXY", None)
    os.execv(sys.executable, [sys.executable, path])
