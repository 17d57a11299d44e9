"""The only place where the axes meet: settings become mounts, wires, loops and workers.

Each function ties one of each kind together and holds no logic of its own. Imports of the parts stand inside the
functions, because one CGI request (``run_cgi``) must not pay for a supervisor.
"""

from __future__ import annotations

from gateways.core.errors import ConfigurationError, LoadError
from gateways.core.mounts import Mount, MountTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

    from gateways.config.settings import MountSettings, PoolSettings, ServerSettings
    from gateways.core.interfaces import ExecutionModel, Log, WireFactory
    from gateways.core.request import Endpoint
    from gateways.process.listeners import OpenListeners
    from gateways.process.pool import Pool
    from gateways.process.worker import Worker
    from gateways.serve.loop import Listener

CALLED_MODELS = ("wsgi", "handler")
"""Models that call a Python object; the others run scripts."""
DEFER_ACCEPT = 1
"""Seconds that the kernel may wait for a connection's first bytes before it wakes a worker for it."""


# Execution models.


def make_called_model(model: str, path: str, module: str, *names: str) -> ExecutionModel:
    """Return a model that calls the first of ``names`` in the file ``path``, or in ``module``."""
    from gateways.execution.loading import make_loader

    loader = make_loader(path, module, *names)
    if model == "handler":
        from gateways.execution.handler import HandlerModel

        return HandlerModel(loader)
    from gateways.execution.wsgi import WSGIModel

    return WSGIModel(loader)


def make_model(mount: MountSettings) -> ExecutionModel:
    """Return the execution model that a mount asks for."""
    target = mount.target
    if mount.model in CALLED_MODELS:
        is_file = target.kind == "callable_file"
        path, module = (target.path, "") if is_file else ("", target.path)
        return make_called_model(mount.model, path, module, target.name)
    return make_script_model(mount)


def make_script_model(mount: MountSettings) -> ExecutionModel:
    """Return the model that runs a mount's script, or its folder of scripts."""
    from gateways.execution.sources import ScriptFolder, SingleScript

    path = mount.target.path
    source = ScriptFolder(path) if mount.target.kind == "folder" else SingleScript(path)
    if mount.model == "cgi":
        from gateways.execution.cgi import CGIModel

        return CGIModel(source, time_limit=mount.script_time_limit, pass_authorization=mount.pass_authorization)
    if mount.model == "zygote":
        from gateways.execution.zygote import ZygoteModel

        return ZygoteModel(source, time_limit=mount.script_time_limit, pass_authorization=mount.pass_authorization)
    from gateways.execution.recipes import make_recipe
    from gateways.execution.script import ScriptModel

    recipe = make_recipe(mount.model, namespace=mount.namespace, stat_scripts=mount.stat_scripts)
    return ScriptModel(mount.model, source, recipe, stdio=mount.stdio, pass_authorization=mount.pass_authorization)


def make_mounts(pool: PoolSettings) -> list[Mount]:
    """Return the mounts of a pool, and its index page where nothing is mounted at the root."""
    mounts = [Mount(settings.path, make_model(settings), {"GATEWAYS_MODE": settings.model}) for settings in pool.mounts]
    if all(mount.prefix for mount in mounts):
        from gateways.execution.index import IndexModel, make_rows

        mounts.append(Mount("", IndexModel(make_rows(pool))))
    return mounts


def load_mounts(mounts: list[Mount]) -> None:
    """Load every application. Raise ``LoadError`` for the first that cannot be."""
    for mount in mounts:
        mount.model.load()


# Listeners and wires.


def make_http(endpoint: Endpoint, pool: PoolSettings) -> WireFactory:
    """Return what makes the ``http`` wire of a connection."""
    from gateways.wire.http import HTTPWire

    limits = pool.wire_limits()
    date = make_clock()
    return lambda peer: HTTPWire(endpoint, peer, limits, date)


def make_fastcgi(endpoint: Endpoint, pool: PoolSettings) -> WireFactory:
    """Return what makes the ``fastcgi`` wire of a connection."""
    from gateways.wire.fastcgi import FastCGIWire

    limits = pool.wire_limits()
    most = str(pool.max_servers)
    values = {"FCGI_MAX_CONNS": most, "FCGI_MAX_REQS": most, "FCGI_MPXS_CONNS": "0"}
    return lambda peer: FastCGIWire(endpoint, peer, limits, values)


def make_scgi(endpoint: Endpoint, pool: PoolSettings) -> WireFactory:
    """Return what makes the ``scgi`` wire of a connection."""
    from gateways.wire.scgi import SCGIWire

    limits = pool.wire_limits()
    return lambda peer: SCGIWire(endpoint, peer, limits)


def make_ajp(endpoint: Endpoint, pool: PoolSettings) -> WireFactory:
    """Return what makes the ``ajp`` wire of a connection."""
    from gateways.wire.ajp import AJPWire

    limits = pool.wire_limits()
    return lambda peer: AJPWire(endpoint, peer, limits)


def make_uwsgi(endpoint: Endpoint, pool: PoolSettings) -> WireFactory:
    """Return what makes the ``uwsgi`` wire of a connection."""
    from gateways.wire.uwsgi import UwsgiWire

    limits = pool.wire_limits()
    return lambda peer: UwsgiWire(endpoint, peer, limits)


WIRE_MAKERS: dict[str, Callable[[Endpoint, PoolSettings], WireFactory]] = {
    "http": make_http,
    "fastcgi": make_fastcgi,
    "scgi": make_scgi,
    "ajp": make_ajp,
    "uwsgi": make_uwsgi,
}
"""What makes each wire: ``make(endpoint, pool)`` imports it and returns ``factory(peer)``, called for a connection."""


def make_listener(sock: socket.socket, wire: str, pool: PoolSettings) -> Listener:
    """Return what accepts on ``sock`` and speaks ``wire`` there."""
    from gateways.core.request import Endpoint
    from gateways.serve.loop import Listener
    from gateways.serve.names import find_server_name

    name, port = find_server_name(sock)
    endpoint = Endpoint(pool.server_name or name, port, pool.trusted_proxies)
    return Listener(sock, WIRE_MAKERS[wire](endpoint, pool))


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


# Serving processes.


def run_worker(worker: Worker, pool: PoolSettings) -> None:
    """Serve a pool in this process until told to stop. What a worker runs, from its fork to its end."""
    import sys

    from gateways.serve.loop import ConnectionLoop

    for folder in reversed(pool.python_path):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    mounts = make_mounts(pool)
    load_mounts(mounts)
    listeners = [
        make_listener(sock, place.wire, pool) for sock, place in zip(worker.listeners, pool.listen, strict=True)
    ]
    loop = ConnectionLoop(
        listeners, MountTable(mounts), pool.time_limits(), worker.slot, worker.log, worker.max_requests, worker.leaving
    )

    def obey() -> None:
        worker.clear_wake()
        if worker.stop_requested:
            loop.stop(worker.stop_requested)

    loop.watch(worker.wake_fd, obey)
    loop.watch(worker.lifeline_fd, lambda: loop.stop("stop"))
    worker.ready()
    loop.run()
    for mount in mounts:
        mount.model.close()


def make_pool(pool: PoolSettings, listeners: OpenListeners) -> Pool:
    """Return the supervisor's view of a pool: its limits and listeners, and what its workers run.

    Raise ``ConfigurationError`` when an address cannot be listened on.
    """
    from gateways.process.limits import PoolLimits
    from gateways.process.listeners import parse_address
    from gateways.process.pool import Pool

    limits = PoolLimits(
        start_servers=pool.start_servers,
        min_spare_servers=pool.min_spare_servers,
        max_spare_servers=pool.max_spare_servers,
        max_servers=pool.max_servers,
        max_requests_per_child=pool.max_requests_per_child,
        max_requests_jitter=pool.max_requests_jitter / 100,
        graceful_timeout=pool.graceful_timeout,
    )
    addresses = [parse_address(place.address) for place in pool.listen]
    opened = listeners.acquire(addresses, backlog=pool.listen_backlog, defer_accept=DEFER_ACCEPT)
    return Pool(pool.name, limits, opened, lambda worker: run_worker(worker, pool))


def take_pool(settings: ServerSettings) -> PoolSettings:
    """Return the one pool of the settings. Raise ``ConfigurationError`` when there are more."""
    if len(settings.pools) != 1:
        raise ConfigurationError(
            f"a supervisor keeps one pool, and the configuration has {len(settings.pools)}: "
            "start one `gateways serve` for each, with a file for each",
            settings.file,
        )
    return settings.pools[0]


def serve(
    settings: ServerSettings,
    *,
    reload: Callable[[], ServerSettings],
    log: Log,
    announce: Callable[[list[str]], None],
) -> int:
    """Run the supervisor until it is told to stop. Return its exit status.

    ``reload`` gives the settings anew on HUP; ``announce`` is called once with the addresses that are listened on.
    Raise ``ConfigurationError`` when the first settings cannot be served.
    """
    from gateways.process.listeners import OpenListeners
    from gateways.process.supervisor import Supervisor

    listeners = OpenListeners()
    pool = take_pool(settings)
    first: list[Pool] = [make_pool(pool, listeners)]
    announce([format_address(listener) for listener in first[0].listeners])
    preload({place.wire for place in pool.listen})

    def load() -> Pool:
        return first.pop() if first else make_pool(take_pool(reload()), listeners)

    return Supervisor(load, log).run()


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


def format_address(listener: socket.socket) -> str:
    """Return the address that a listener is bound to: ``127.0.0.1:8000``, ``[::1]:8000`` or ``unix:PATH``."""
    where = listener.getsockname()
    if isinstance(where, str):
        return f"unix:{where}"
    return f"[{where[0]}]:{where[1]}" if ":" in where[0] else f"{where[0]}:{where[1]}"


# One CGI request.


def run_cgi(target: str, model: str = "") -> int:
    """Serve the request that this process's environment and standard input carry (RFC 3875). Return the exit status.

    ``target``: ``FILE.py``, ``FILE.py:NAME`` or ``MODULE:NAME``. ``model``: ``wsgi`` or ``handler``; chosen by the
    name that the file defines if not given. A target that cannot be loaded answers 500 and is logged.
    """
    import os

    from gateways.core.limits import WireLimits
    from gateways.core.request import Endpoint
    from gateways.serve.stdio import StderrLog, run_once
    from gateways.wire.cgi import CGIWire

    log = StderrLog()
    variables = {os.fsdecode(k): v.decode("latin-1") for k, v in os.environb.items()}
    endpoint = Endpoint(variables.get("SERVER_NAME", ""), variables.get("SERVER_PORT", ""))
    wire = CGIWire(endpoint, variables, WireLimits())
    mount = Mount("", make_cgi_model(target, model))
    mount.variables["GATEWAYS_MODE"] = "cgi"
    try:
        load_mounts([mount])
    except LoadError as error:
        log.error("%s", error)
        os.write(1, b"Status: 500 Internal Server Error\r\nContent-Type: text/plain\r\n\r\n500 Internal Server Error\n")
        return 1
    return run_once(wire, MountTable([mount]), log)


def make_cgi_model(target: str, model: str) -> ExecutionModel:
    """Return the model for a target written on the command line, without reading a configuration."""
    import os

    place, _, name = target.rpartition(":") if not target.endswith(".py") else (target, "", "")
    path, module = (os.path.abspath(place), "") if place.endswith(".py") else ("", place)
    if not place or (module and not name):
        raise ConfigurationError(f"{target!r} is not FILE.py, FILE.py:NAME or MODULE:NAME")
    if name:
        return make_called_model(model or ("handler" if name == "handler" else "wsgi"), path, module, name)
    names = ("handler",) if model == "handler" else ("application", "app")
    return make_called_model(model or "wsgi", path, module, *names)
