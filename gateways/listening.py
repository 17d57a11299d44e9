"""What listens: the table of wires, and a listener made of a socket, a wire and a rule of who may connect.

Puts parts together for ``server.py`` and holds no logic of its own. A wire is imported when it is first made.
"""

from __future__ import annotations

from gateways.core.errors import ConfigurationError
from gateways.core.variables import MAX_BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Sequence

    from gateways.config.settings import PoolSettings
    from gateways.core.interfaces import Log, WireFactory
    from gateways.core.limits import WireLimits
    from gateways.core.request import Endpoint
    from gateways.serve.listener import Listener


def make_http(endpoint: Endpoint, _pool: PoolSettings, _log: Log, limits: WireLimits) -> WireFactory:
    """Return what makes the ``http`` wire of a connection."""
    from gateways.wire.http import HTTPWire

    date = make_clock()
    return lambda peer: HTTPWire(endpoint, peer, limits, date)


def make_fastcgi(endpoint: Endpoint, pool: PoolSettings, _log: Log, limits: WireLimits) -> WireFactory:
    """Return what makes the ``fastcgi`` wire of a connection."""
    from gateways.wire.fastcgi import FastCGIWire

    most = str(pool.max_servers)
    values = {"FCGI_MAX_CONNS": most, "FCGI_MAX_REQS": most, "FCGI_MPXS_CONNS": "0"}
    longest = min(limits.head, MAX_BLOCK)
    return lambda peer: FastCGIWire(endpoint, peer, limits, values, longest)


def make_scgi(endpoint: Endpoint, _pool: PoolSettings, _log: Log, limits: WireLimits) -> WireFactory:
    """Return what makes the ``scgi`` wire of a connection."""
    from gateways.wire.scgi import SCGIWire

    longest = min(limits.head, MAX_BLOCK)
    return lambda peer: SCGIWire(endpoint, peer, limits, longest)


def make_ajp(endpoint: Endpoint, pool: PoolSettings, _log: Log, limits: WireLimits) -> WireFactory:
    """Return what makes the ``ajp`` wire of a connection."""
    import re

    from gateways.wire.ajp import AJPWire
    from gateways.wire.ajp_checks import FrontRules

    pattern = re.compile(pool.allowed_attributes) if pool.allowed_attributes else None
    rules = FrontRules(pool.secret, pool.trust_remote_user, pattern)
    return lambda peer: AJPWire(endpoint, peer, limits, rules, pool.packet_size)


def make_uwsgi(endpoint: Endpoint, _pool: PoolSettings, log: Log, limits: WireLimits) -> WireFactory:
    """Return what makes the ``uwsgi`` wire of a connection; what it notes is logged, each sentence once (U01)."""
    from gateways.wire.uwsgi import UwsgiWire

    notes = NoteLog(log)

    def make(peer: object) -> UwsgiWire:
        wire = UwsgiWire(endpoint, peer, limits)
        wire.notes = notes
        return wire

    return make


WIRE_MAKERS: dict[str, Callable[[Endpoint, PoolSettings, Log, WireLimits], WireFactory]] = {
    "http": make_http,
    "fastcgi": make_fastcgi,
    "scgi": make_scgi,
    "ajp": make_ajp,
    "uwsgi": make_uwsgi,
}
"""What makes each wire: ``make(endpoint, pool, log, limits)`` gives ``factory(peer)``, called for each connection."""


def open_http(method: str, _request_id: int) -> bytes:
    """Return a request whose answer has no more than the answer to ``method`` may have."""
    return b"%s / HTTP/1.0\r\n\r\n" % (b"HEAD" if method == "HEAD" else b"GET")


def open_fastcgi(_method: str, request_id: int) -> bytes:
    """Return the beginning of a request of that number."""
    from gateways.wire.fastcgi_records import format_begin

    return format_begin(request_id)


OPENINGS: dict[str, Callable[[str, int], bytes]] = {"http": open_http, "fastcgi": open_fastcgi}
"""What a wire must have received before it can answer; the others answer whoever is there."""
OVERDUE = b"504 Gateway Timeout\nthe application took too long\n"


def make_apology(wire: str, pool: PoolSettings) -> Callable[[str, int], bytes]:
    """Return what gives the 504 for a request that another process has received: ``format(method, request_id)``."""

    def format_apology(method: str, request_id: int) -> bytes:
        from gateways.core.request import Endpoint
        from gateways.serve.stdio import StderrLog

        talk = WIRE_MAKERS[wire](Endpoint("", ""), pool, StderrLog(), pool.wire_limits())("")
        if wire in OPENINGS:
            talk.receive(OPENINGS[wire](method, request_id))
            talk.take_request()
        fields = [("Content-Type", "text/plain; charset=utf-8")]
        return talk.format_response("504 Gateway Timeout", fields, OVERDUE, True)

    return format_apology


class NoteLog(list[str]):
    """A list of notes that keeps nothing: what is appended is logged, each sentence once, and not without limit."""

    def __init__(self, log: Log, limit: int = 100) -> None:
        super().__init__()
        self._log = log
        self._limit = limit
        self._known: set[str] = set()

    def append(self, note: str) -> None:
        """Log a note that was not logged before."""
        if note not in self._known and len(self._known) < self._limit:
            self._known.add(note)
            self._log.warning("%s", note)


def make_clock() -> Callable[[], str]:
    """Return a function that gives the time as an IMF-fixdate, formatted once a second (RFC 9110 5.6.7)."""
    from email.utils import formatdate
    from time import time

    second = 0
    text = ""

    def date() -> str:
        nonlocal second, text
        now = int(time())
        if now != second:
            text = formatdate(now, usegmt=True)
            second = now
        return text

    return date


def make_listener(
    sock: socket.socket, wire: str, pool: PoolSettings, log: Log, number: int = 0, limits: WireLimits | None = None
) -> Listener:
    """Return what accepts on ``sock`` and speaks ``wire`` there, with those whom the pool allows.

    ``number``: which of the pool's listeners it is. ``limits``: of its parsers, where they are not the pool's.
    """
    from gateways.core.request import Endpoint
    from gateways.serve.listener import GuardedListener, Listener
    from gateways.serve.names import find_server_name

    name, port = find_server_name(sock)
    endpoint = Endpoint(pool.server_name or name, port, pool.trusted_proxies)
    factory = WIRE_MAKERS[wire](endpoint, pool, log, limits or pool.wire_limits())
    if pool.allowed_peers.written:
        return GuardedListener(sock, factory, pool.allowed_peers, log, number)
    return Listener(sock, factory, number)


def make_listeners(
    sockets: Sequence[socket.socket], pool: PoolSettings, log: Log, limits: WireLimits | None = None
) -> list[Listener]:
    """Return what accepts on each of a pool's sockets."""
    places = zip(sockets, pool.listen, strict=True)
    return [make_listener(sock, place.wire, pool, log, number, limits) for number, (sock, place) in enumerate(places)]


def check_exposure(sockets: Sequence[socket.socket], pool: PoolSettings) -> None:
    """Raise ``ConfigurationError`` when a socket, by the address it is really bound to, is open to too many.

    The configuration was checked for what it says; a host name in it, or a socket from elsewhere, shows only here.
    """
    from gateways.config.addresses import ListenAddress
    from gateways.config.exposure import find_exposure

    for sock, place in zip(sockets, pool.listen, strict=True):
        bound = ListenAddress(format_address(sock), place.wire)
        sentence = find_exposure(bound, pool.allow_wildcard, bool(pool.secret))
        if sentence:
            raise ConfigurationError(sentence)


def format_address(sock: socket.socket) -> str:
    """Return the address that a socket is bound to: ``127.0.0.1:8000``, ``[::1]:8000`` or ``unix:PATH``."""
    where = sock.getsockname()
    if isinstance(where, bytes):  # a UNIX socket without a file (Linux's abstract names begin with NUL)
        where = "@" + where.lstrip(b"\0").decode("utf-8", "backslashreplace")
    if isinstance(where, str):
        return f"unix:{where}"
    return f"[{where[0]}]:{where[1]}" if ":" in where[0] else f"{where[0]}:{where[1]}"


def preload(wires: Iterable[str]) -> None:
    """Import what every worker needs, so that they share it; of the wires only those that are spoken."""
    from importlib import import_module

    import gateways.execution.handler
    import gateways.execution.loading
    import gateways.execution.wsgi
    import gateways.serve.loop
    import gateways.serve.names  # noqa: F401

    for wire in wires:
        import_module(f"gateways.wire.{wire}")
