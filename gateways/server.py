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
    from collections.abc import Callable, Sequence
    from typing import IO, Any

    from gateways.accesslog import AccessLog
    from gateways.config.settings import MountSettings, PoolSettings, ServerSettings
    from gateways.core.interfaces import ExecutionModel, Log
    from gateways.execution.recipes import Recipe
    from gateways.process.listeners import OpenListeners
    from gateways.process.pool import Pool
    from gateways.process.status import StatusPort
    from gateways.process.worker import Worker

CALLED_MODELS = ("wsgi", "handler")
"""Models that call a Python object; the others run scripts."""
DEFER_ACCEPT = 1
"""Seconds that the kernel may wait for a connection's first bytes before it wakes a worker for it."""


# Execution models.


def make_called_model(model: str, path: str, module: str, *names: str) -> ExecutionModel:
    """Return a model that calls the first of ``names`` in the file ``path``, or in ``module``."""
    from gateways.execution.loading import make_loader

    return make_object_model(model, make_loader(path, module, *names))


def make_object_model(model: str, loader: Callable[[], Any]) -> ExecutionModel:
    """Return the model (wsgi or handler) that calls what ``loader`` gives."""
    if model == "handler":
        from gateways.execution.handler import HandlerModel

        return HandlerModel(loader)
    from gateways.execution.wsgi import WSGIModel

    return WSGIModel(loader)


def make_model(
    mount: MountSettings, adapt: Callable[[Recipe], Recipe] | None = None, preloaded: bool = False
) -> ExecutionModel:
    """Return the execution model that a mount asks for. ``adapt``, ``preloaded``: see ``make_script_model``."""
    target = mount.target
    if mount.model in CALLED_MODELS:
        is_file = target.kind == "callable_file"
        path, module = (target.path, "") if is_file else ("", target.path)
        return make_called_model(mount.model, path, module, target.name)
    return make_script_model(mount, adapt, preloaded)


def make_script_model(
    mount: MountSettings, adapt: Callable[[Recipe], Recipe] | None = None, preloaded: bool = False
) -> ExecutionModel:
    """Return the model that runs a mount's script, or its folder of scripts.

    ``adapt``: gives the recipe that takes the place of a model's own (perlrun, registry), for who wants to watch.
    ``preloaded``: the worker shares imported modules with others.
    """
    from gateways.execution.sources import ScriptFolder, SingleScript

    path = mount.target.path
    source = ScriptFolder(path, mount.directory_index) if mount.target.kind == "folder" else SingleScript(path)
    if mount.model == "cgi":
        from gateways.execution.cgi import CGIModel

        return CGIModel(source, time_limit=mount.script_time_limit, pass_authorization=mount.pass_authorization)
    if mount.model == "zygote":
        from gateways.execution.zygote import ZygoteModel

        return ZygoteModel(
            source,
            time_limit=mount.script_time_limit,
            pass_authorization=mount.pass_authorization,
            preloaded=preloaded,
        )
    from gateways.execution.recipes import make_recipe
    from gateways.execution.script import ScriptModel

    recipe = make_recipe(mount.model, namespace=mount.namespace, stat_scripts=mount.stat_scripts)
    recipe = recipe if adapt is None else adapt(recipe)
    return ScriptModel(mount.model, source, recipe, stdio=mount.stdio, pass_authorization=mount.pass_authorization)


def list_own_variables(mount: MountSettings) -> dict[str, str]:
    """Return the variables that a mount adds to each of its requests, as native strings."""
    from gateways.execution.sources import format_native

    own = {name: format_native(value) for name, value in mount.environment}
    return {**own, "GATEWAYS_MODE": mount.model}


def make_mounts(pool: PoolSettings) -> list[Mount]:
    """Return the mounts of a pool, and its index page where nothing is mounted at the root."""
    shares = bool(pool.preload)
    mounts = [
        Mount(settings.path, make_model(settings, preloaded=shares), list_own_variables(settings))
        for settings in pool.mounts
    ]
    if all(mount.prefix for mount in mounts):
        from gateways.execution.index import IndexModel, make_rows

        mounts.append(Mount("", IndexModel(make_rows(pool))))
    return mounts


def load_mounts(mounts: list[Mount]) -> None:
    """Load every application. Raise ``LoadError`` for the first that cannot be."""
    for mount in mounts:
        mount.model.load()


# Serving processes.

_at_work = False


def begin_work() -> None:
    """Note that this process serves: what it loads must not make it serve once more."""
    global _at_work
    _at_work = True


def is_at_work() -> bool:
    """True in a process that loads or runs applications for others."""
    return _at_work


def import_ahead(pool: PoolSettings) -> None:
    """Put the pool's folders on ``sys.path`` and import what it preloads; what was imported before the fork is there.

    Raise ``LoadError``.
    """
    import sys

    from gateways.execution.loading import load_preloads

    begin_work()
    for folder in reversed(pool.python_path):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    load_preloads(pool.preload)


def run_worker(
    worker: Worker,
    pool: PoolSettings,
    make: Callable[[], list[Mount]],
    announce: Callable[[], None] | None = None,
    access: AccessLog | None = None,
) -> None:
    """Serve what ``make`` gives in this process until told to stop. What a worker runs, from its fork to its end.

    ``announce`` is called when the applications are loaded and signals are obeyed.
    """

    from gateways.door import open_door
    from gateways.listening import make_listeners
    from gateways.serve.loop import ConnectionLoop

    begin_work()
    if access is not None:
        access.begin()
    import_ahead(pool)
    mounts = make()
    load_mounts(mounts)
    listeners = make_listeners(worker.listeners, pool, worker.log)
    sharing = None
    if worker.door is not None:
        handed, sharing = open_door(worker.door, worker.line, worker.slot.shared, listeners, pool, worker.log)
        listeners.append(handed)
    loop = ConnectionLoop(
        listeners,
        MountTable(mounts),
        pool.time_limits(),
        worker.slot,
        worker.log,
        worker.max_requests,
        worker.leaving,
        one_connection=worker.one_connection,
        access=access,
        watch=worker.slot if pool.request_timeout else None,
        sharing=sharing,
    )

    def obey() -> None:
        worker.clear_wake()
        if worker.stop_requested:
            loop.stop(worker.stop_requested)

    loop.watch(worker.wake_fd, obey)
    loop.watch(worker.lifeline_fd, lambda: loop.stop("stop"))
    worker.ready()
    if announce is not None:
        announce()
    loop.run()
    for mount in mounts:
        mount.model.close()


def open_access_log(pool: PoolSettings) -> AccessLog | None:
    """Return the pool's access log, if it has one. Raise ``ConfigurationError`` when it cannot be opened."""
    if not pool.access_log:
        return None
    from gateways.accesslog import AccessLog

    return AccessLog(pool.access_log, pool.access_log_format)


def make_pool(
    pool: PoolSettings,
    sockets: Sequence[socket.socket],
    make: Callable[[], list[Mount]],
    announce: Callable[[], None] | None = None,
    shows_requests: bool = False,
) -> Pool:
    """Return the process model's view of a pool: its limits and listeners, and what its workers run.

    Its access log is opened here, by whoever starts the workers: they may be nobody who is allowed to. Raise
    ``ConfigurationError`` when it cannot be.
    """
    from gateways.door import limits_queue, make_keeper
    from gateways.listening import format_address, make_apology
    from gateways.process.limits import PoolLimits
    from gateways.process.pool import Pool
    from gateways.process.privileges import look_up_identity

    access = open_access_log(pool)
    limits = PoolLimits(
        start_servers=pool.start_servers,
        min_spare_servers=pool.min_spare_servers,
        max_spare_servers=pool.max_spare_servers,
        max_servers=pool.max_servers,
        max_requests_per_child=pool.max_requests_per_child,
        max_requests_jitter=pool.max_requests_jitter,
        graceful_timeout=pool.graceful_timeout,
        manager=pool.process_manager,
        idle_timeout=pool.process_idle_timeout,
        request_timeout=pool.request_timeout,
        slow_timeout=pool.slow_request_timeout,
        max_memory=pool.max_memory_per_child,
        shows_requests=shows_requests,
    )
    identity = look_up_identity(pool.user, pool.group)
    apologies = [make_apology(place.wire, pool) for place in pool.listen] if pool.request_timeout else ()
    return Pool(
        pool.name,
        limits,
        sockets,
        lambda worker: run_worker(worker, pool, make, announce, access),
        identity,
        apologies,
        make_keeper(pool, access),
        limits_queue(pool),
        [f"{place.wire}://{format_address(sock)}" for sock, place in zip(sockets, pool.listen, strict=True)],
        (lambda: import_ahead(pool)) if pool.preload else None,
    )


def open_pool(pool: PoolSettings, listeners: OpenListeners, shows_requests: bool = False) -> Pool:
    """Open what a pool listens on, where it is not open already, and return the supervisor's view of it.

    Raise ``ConfigurationError`` when an address cannot be listened on, or is open to too many.
    """
    from gateways.listening import check_exposure
    from gateways.process.listeners import close_listeners, parse_address

    before = listeners.are_open()
    opened = listeners.acquire(
        [parse_address(place.address) for place in pool.listen],
        backlog=pool.listen_backlog,
        mode=int(pool.listen_mode, 8),
        owner=pool.listen_owner,
        group=pool.listen_group,
        defer_accept=DEFER_ACCEPT,
        claimant=pool.name,
    )
    try:
        check_exposure(opened, pool)
    except ConfigurationError:
        close_listeners(listener for listener in opened if listener not in before)
        raise
    return make_pool(pool, opened, lambda: make_mounts(pool), shows_requests=shows_requests)


def open_pools(settings: ServerSettings, listeners: OpenListeners) -> list[Pool]:
    """Open what every pool listens on; all of them or none. Raise ``ConfigurationError`` as ``open_pool`` does."""
    from gateways.process.listeners import close_listeners

    before = listeners.are_open()
    pools: list[Pool] = []
    try:
        for pool in settings.pools:
            pools.append(open_pool(pool, listeners, bool(settings.status_listen)))
    except ConfigurationError:
        close_listeners(listener for listener in listeners.are_open() if listener not in before)
        raise
    return pools


def open_status(settings: ServerSettings) -> socket.socket | None:
    """Return the listener of the status port, None when there is to be none. Raise ``ConfigurationError``."""
    if not settings.status_listen:
        return None
    from gateways.process.listeners import open_listener, parse_address

    return open_listener(parse_address(settings.status_listen), backlog=64, mode=0o600)


def reload_pools(
    before: ServerSettings, settings: ServerSettings, listeners: OpenListeners, port: StatusPort, log: Log
) -> list[Pool]:
    """Open what new settings listen on, the status port too: all of it or nothing. Raise ``ConfigurationError``."""
    from gateways.process.listeners import close_listeners

    moves = settings.status_listen != before.status_listen
    shown = open_status(settings) if moves else None
    try:
        pools = open_pools(settings, listeners)
    except ConfigurationError:
        close_listeners([shown] if shown else [])
        raise
    if moves:
        port.take(shown)
        log.info("reload: the status is shown %s", f"at {settings.status_listen}" if shown else "no more")
    return pools


def check_activated(listeners: OpenListeners, pools: Sequence[Pool]) -> None:
    """Raise ``ConfigurationError`` when a socket from the service manager is no pool's."""
    from gateways.listening import format_address

    for left in listeners.are_open() - {listener for pool in pools for listener in pool.listeners}:
        raise ConfigurationError(
            f"the service manager has passed a socket on {format_address(left)}, where no pool listens: "
            "name this address in a pool's Listen, or take it out of the socket unit"
        )


def serve(
    settings: ServerSettings,
    *,
    reload: Callable[[], ServerSettings],
    log: Log,
    announce: Callable[[list[str]], None],
    slow_log: Log | None = None,
    activated: Sequence[socket.socket] = (),
) -> int:
    """Run the supervisor until it is told to stop. Return its exit status.

    ``reload`` gives the settings anew on HUP; ``announce`` is called once with the addresses that are listened on, when
    signals are obeyed. ``slow_log``: for requests that take too long, where that is not ``log``.
    ``activated``: listening sockets from a service manager; each is the pool's whose ``Listen`` names its address.
    Raise ``ConfigurationError`` when the first settings cannot be served.
    """
    import os

    from gateways.listening import format_address, preload
    from gateways.process.listeners import OpenListeners, adopt_socket
    from gateways.process.notify import Notifier
    from gateways.process.pidfile import PidFile
    from gateways.process.status import StatusPort
    from gateways.process.succession import Succession, take_inheritance
    from gateways.process.supervisor import Supervisor

    predecessor, inherited = take_inheritance(os.environ)
    listeners = OpenListeners(inherited or map(adopt_socket, activated))
    pid_file = PidFile(settings.pid_file) if settings.pid_file else None
    if pid_file is not None:
        pid_file.claim()
    port = StatusPort(lambda: open_status(settings))
    try:
        first = [open_pools(settings, listeners)]
        if activated:
            check_activated(listeners, first[0])
        if not predecessor:
            port.open()
    except ConfigurationError:
        if pid_file is not None:
            pid_file.release()
        raise
    left = listeners.close_others(listener for pool in first[0] for listener in pool.listeners)
    preload({place.wire for pool in settings.pools for place in pool.listen})

    current = [settings]

    def load() -> list[Pool]:
        if not first:
            anew = reload()
            pools = reload_pools(current[0], anew, listeners, port, log)
            current[0] = anew
            return pools
        # Not earlier: from here on a signal is an order, and no longer the end of a process that knows no better.
        announce([format_address(listener) for pool in first[0] for listener in pool.listeners])
        return first.pop()

    succession = Succession(predecessor=predecessor, left=left)
    return Supervisor(load, log, pid_file, succession, Notifier(os.environ), port, slow_log).run()


def ask_reload(pid_file: str, patience: float) -> None:
    """Make the supervisor that holds ``pid_file`` reload, and wait for that (seconds). Raise ``GatewayError``."""
    from gateways.process.asking import ask_reload

    ask_reload(pid_file, patience)


def serve_sockets(
    pool: PoolSettings,
    sockets: Sequence[socket.socket],
    make: Callable[[], list[Mount]],
    *,
    supervised: bool,
    log: Log,
    announce: Callable[[], None],
) -> int:
    """Serve what ``make`` gives on open sockets until told to stop. Return the exit status.

    In this very process, or with a supervisor that keeps as many workers as the pool says. Raise
    ``ConfigurationError`` when a socket is open to too many, and ``LoadError`` when the application of the only
    process cannot be loaded.
    """
    from gateways.listening import check_exposure, preload

    check_exposure(sockets, pool)
    if supervised:
        from gateways.process.supervisor import Supervisor

        preload({place.wire for place in pool.listen})
        kept = make_pool(pool, sockets, make)
        news = [announce]

        def load() -> list[Pool]:
            while news:
                news.pop()()
            return [kept]

        return Supervisor(load, log).run()
    from gateways.process.single import run_single

    return run_single(make_pool(pool, sockets, make, announce), log)


def make_object_mounts(model: str, application: object) -> list[Mount]:
    """Return the mount of an application that is already there, called by ``model`` (wsgi or handler)."""
    return [Mount("", make_object_model(model, lambda: application), {"GATEWAYS_MODE": model})]


# One CGI request.


def run_cgi(model: ExecutionModel, streams: tuple[IO[bytes], IO[bytes]] | None = None) -> int:
    """Serve the request that this process's environment and standard input carry (RFC 3875). Return the exit status.

    ``streams``: input and output where these are not descriptors 0 and 1. An application that cannot be loaded answers
    500 and is logged.
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
    mount = Mount("", model, {"GATEWAYS_MODE": "cgi"})
    begin_work()
    try:
        load_mounts([mount])
    except LoadError as error:
        log.error("%s", error)
        os.write(1, b"Status: 500 Internal Server Error\r\nContent-Type: text/plain\r\n\r\n500 Internal Server Error\n")
        return 1
    return run_once(wire, MountTable([mount]), log, streams)


def make_cgi_model(target: str, model: str) -> ExecutionModel:
    """Return the model for a target written on the command line, without reading a configuration.

    ``target``: ``FILE.py``, ``FILE.py:NAME`` or ``MODULE:NAME``. ``model``: ``wsgi`` or ``handler``; chosen by the
    name that the file defines if not given. Raise ``ConfigurationError`` for anything else.
    """
    import os

    if model not in ("", *CALLED_MODELS):
        raise ConfigurationError(describe_cgi_model(model))
    place, _, name = target.rpartition(":") if not target.endswith(".py") else (target, "", "")
    path, module = (os.path.abspath(place), "") if place.endswith(".py") else ("", place)
    if not place or (module and not name):
        raise ConfigurationError(f"{target!r} is not FILE.py, FILE.py:NAME or MODULE:NAME")
    if name:
        return make_called_model(model or ("handler" if name == "handler" else "wsgi"), path, module, name)
    names = ("handler",) if model == "handler" else ("application", "app")
    return make_called_model(model or "wsgi", path, module, *names)


def describe_cgi_model(model: str) -> str:
    """Return the sentence that says why a CGI program does not run by ``model``."""
    from gateways.config.directives import MODELS
    from gateways.config.matrix import find_reason

    if model not in MODELS:
        return f"there is no model {model!r}: a CGI program offers {' and '.join(CALLED_MODELS)}"
    return f"a CGI program does not offer model {model}: {find_reason('cgi', model)}"
