"""Our wires and execution models in gunicorn's workers: ``gunicorn -k gateways.gunicorn.Worker hello:application``.

The third process model. The arbiter keeps the processes, their number, the listeners and the logs; what happens on a
connection is ours. The only module that imports gunicorn, and nothing of ours imports it. Puts parts together as
``server.py`` does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gunicorn.errors import AppImportError
from gunicorn.workers.base import Worker as BaseWorker

from gateways import server
from gateways.accesslog import escape_text
from gateways.config.build import fit_model
from gateways.config.directives import SCRIPT_MODELS
from gateways.config.environ import collect_variables, find_unknown
from gateways.config.exposure import find_exposure
from gateways.config.options import read_entries
from gateways.config.sections import Entry, Mistakes
from gateways.config.targets import CALLABLE_MODULE, Target, TargetError, read_target
from gateways.core.errors import ConfigurationError, LoadError
from gateways.core.mounts import Mount, MountTable
from gateways.core.request import parse_peer
from gateways.listening import check_exposure, format_address, make_listeners
from gateways.serve.loop import ConnectionLoop

if TYPE_CHECKING:
    import socket

    from gateways.config.settings import PoolSettings

SETTABLE = frozenset({
    "Wire", "Model", "AllowWildcard", "AllowedPeers", "Secret", "PacketSize", "TrustRemoteUser", "AllowedAttributes",
    "TrustedProxies", "ServerName", "HeaderTimeout", "BodyTimeout", "BodyRate", "SendTimeout", "LimitRequestHead",
    "LimitRequestBody", "Namespace", "StatScripts", "Stdio", "PassAuthorization", "ScriptTimeLimit",
})  # fmt: skip
"""Directives that are read from variables: GATEWAYS_WIRE, GATEWAYS_MODEL ..."""
OWNERS = {
    "ErrorLog": "--error-logfile", "LogLevel": "--log-level", "Listen": "--bind", "ListenMode": "--umask",
    "ListenOwner": "--user", "ListenGroup": "--group", "ListenBacklog": "--backlog", "StartServers": "--workers",
    "MinSpareServers": "--workers", "MaxSpareServers": "--workers", "MaxServers": "--workers",
    "MaxRequestsPerChild": "--max-requests", "MaxRequestsJitter": "--max-requests-jitter",
    "GracefulTimeout": "--graceful-timeout", "KeepAliveTimeout": "--keep-alive",
    "LimitRequestLine": "--limit-request-line", "LimitRequestFields": "--limit-request-fields",
    "LimitRequestFieldSize": "--limit-request-field_size", "PythonPath": "--pythonpath", "Target": "APP_MODULE",
    "AccessLog": "--access-logfile", "AccessLogFormat": "--access-logformat",
    "User": "--user", "Group": "--group", "PidFile": "--pid", "RequestTimeout": "--timeout",
}  # fmt: skip
"""Directive -> gunicorn's option in its place."""
FOREIGN: tuple[tuple[str, tuple[object, ...], str], ...] = (
    ("is_ssl", (False, None), "--certfile and --keyfile are refused: there is no TLS here; a front server can do that"),
    ("proxy_protocol", (False, None, "off"), "--proxy-protocol is refused: no wire here reads it"),
    ("protocol", (None, "http"), "--protocol is refused: GATEWAYS_WIRE says what is spoken"),
)
"""Rows (attribute of gunicorn's configuration, what it may be, the sentence): what must not seem to be done here."""
AT_ONCE = 0.001
"""Seconds for which a connection is kept under ``--keep-alive 0``: it is closed at the next look, within a second."""
LOOK = 1.0
"""Seconds between two looks at the arbiter, and between two signs of life to it, at most."""


def take_wires(text: str, count: int) -> list[str]:
    """Return the wire of each of ``count`` addresses: one for all, or as many as there are, in the order of --bind.

    Raise ``ConfigurationError`` when they are not as many.
    """
    wires = [wire.strip() for wire in text.split(",")]
    if len(wires) == 1:
        return wires * count
    if len(wires) != count:
        raise ConfigurationError(f"GATEWAYS_WIRE names {len(wires)} wires, and there are {count} addresses to bind")
    return wires


def read_pool(
    variables: Mapping[str, str], cfg: Any, addresses: Sequence[str], target: Target, model: str
) -> PoolSettings:
    """Return the settings of this worker. Raise ``ConfigurationError`` with every mistake in them."""
    mistakes = Mistakes()
    wires = take_wires(variables.get("GATEWAYS_WIRE", "http"), len(addresses))
    places = [f"{wire}://{address}" for wire, address in zip(wires, addresses, strict=True)]
    entries = [
        *collect_variables(variables, SETTABLE - {"Wire"}, mistakes),
        Entry("Listen", places, spelled="--bind with GATEWAYS_WIRE"),
        Entry("KeepAliveTimeout", float(cfg.keepalive) or AT_ONCE, spelled="--keep-alive"),
        Entry("LimitRequestLine", cfg.limit_request_line, spelled="--limit-request-line"),
        Entry("LimitRequestFields", cfg.limit_request_fields, spelled="--limit-request-fields"),
        Entry("LimitRequestFieldSize", cfg.limit_request_field_size, spelled="--limit-request-field_size"),
    ]
    settings, found = read_entries(target, model, entries, cfg.chdir, mistakes)
    if settings is None:
        raise ConfigurationError("; ".join(mistake.message for mistake in found))
    return settings.pools[0]


def format_bind(address: object) -> str:
    """Return an address of gunicorn's configuration as ours are written; a descriptor is known once it is open."""
    if isinstance(address, tuple):
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"unix:{address}"


def is_file(word: str, model: str) -> bool:
    """True when APP_MODULE is a file or folder for us to run, and not a module for gunicorn to import."""
    return model in SCRIPT_MODELS or "/" in word or word.endswith(".py") or ".py:" in word


class Slot:
    """What the loop says of its work: gunicorn has no scoreboard, and wants a sign of life and a count."""

    __slots__ = ("_worker",)

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def idle(self) -> None:
        """Nothing to say."""

    def busy(self) -> None:
        """Give a sign of life before each request: the arbiter allows --timeout seconds for one, not for many."""
        self._worker.beat()

    def begin(self, method: str, target: str) -> None:
        """The same; for what, gunicorn does not ask."""
        self.busy()

    def closing(self) -> None:
        """Say that this worker takes no new connection."""
        self._worker.say_leaving()

    def count_request(self, status: str) -> None:
        """Count one request."""
        self._worker.nr += 1

    def count_refusal(self) -> None:
        """Nothing to say."""


class Access:
    """What the loop notes of each request, told to gunicorn's logger in the objects that it knows.

    Its logger escapes double quotes; control characters, which it would write as they are, are escaped here.
    """

    __slots__ = ("_log",)

    def __init__(self, log: Any) -> None:
        self._log = log

    def write(self, exchange: Any) -> None:
        """Tell of an exchange that is over. Response fields (``%({...}o)s``) are not known here."""
        request = exchange.first
        environ = {name: make_visible(value) for name, value in request.metavariables.items()}
        environ["RAW_URI"] = make_visible(request.target)
        fields = [(name, make_visible(value)) for name, value in request.fields]
        self._tell(exchange.status, exchange.sent, fields, environ, monotonic() - exchange.began)

    def write_refused(self, peer: object, status: str, sent: int) -> None:
        """Tell of a request that could not be read."""
        environ = {"REQUEST_METHOD": "-", "RAW_URI": "-", "SERVER_PROTOCOL": "-", "REMOTE_ADDR": parse_peer(peer)[0]}
        self._tell(status, sent, [], environ, 0.0)

    def _tell(
        self, status: str, sent: int, fields: list[tuple[str, str]], environ: dict[str, str], seconds: float
    ) -> None:
        response = SimpleNamespace(status=status or "-", sent=sent, headers=[])
        self._log.access(response, SimpleNamespace(headers=fields), environ, timedelta(seconds=seconds))


def make_visible(text: str) -> str:
    """Return text in which control characters are escaped."""
    return text if text.isprintable() else escape_text(text)


class Worker(BaseWorker):
    """A worker of gunicorn that serves with our loop. Signals, hooks and exit statuses are gunicorn's own."""

    hurried = False

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Refuse at the start, in the arbiter, what would fail in each worker. Raise ``RuntimeError``."""
        for name, allowed, sentence in FOREIGN:
            if getattr(cfg, name, allowed[0]) not in allowed:
                raise RuntimeError(sentence)
        for name, sentence in find_unknown(os.environ, SETTABLE, OWNERS):
            if name in cfg.env:
                raise RuntimeError(sentence)
            log.warning("%s", sentence)
        addresses = [format_bind(address) for address in cfg.address]
        try:
            pool = read_pool(os.environ, cfg, addresses, Target(CALLABLE_MODULE, ""), "wsgi")
        except ConfigurationError as error:
            raise RuntimeError(error.message) from error
        for place in pool.listen:
            if sentence := find_exposure(place, pool.allow_wildcard, bool(pool.secret)):
                raise RuntimeError(sentence)

    def load_wsgi(self) -> None:
        """Load the application, by gunicorn where it is a module's, by us where it is a file's.

        Raise ``AppImportError`` when it cannot be: the arbiter stops for that, as for an application of its own.
        """
        word = getattr(self.app, "app_uri", None) or ""
        model = os.environ.get("GATEWAYS_MODEL", "")
        server.begin_work()
        self._listening: list[socket.socket] = [getattr(each, "sock", each) for each in self.sockets]
        try:
            if is_file(word, model):
                mounts = self._plan_file(word, model)
            else:
                super().load_wsgi()
                mounts = self._plan_object(model)
            check_exposure(self._listening, self._pool)
            server.load_mounts(mounts)
        except (ConfigurationError, LoadError) as error:
            raise AppImportError(str(error)) from error
        self._mounts = mounts

    def _plan_file(self, word: str, model: str) -> list[Mount]:
        try:
            target, model = fit_model(read_target(word, os.getcwd()), model)
        except TargetError as error:
            raise ConfigurationError(str(error)) from error
        self._pool = self._read_pool(target, model)
        return server.make_mounts(self._pool)

    def _plan_object(self, model: str) -> list[Mount]:
        self._pool = self._read_pool(Target(CALLABLE_MODULE, ""), model or "wsgi")
        return server.make_object_mounts(model or "wsgi", self.wsgi)

    def _read_pool(self, target: Target, model: str) -> PoolSettings:
        return read_pool(os.environ, self.cfg, list(map(format_address, self._listening)), target, model)

    def run(self) -> None:
        """Serve until told to stop. What a worker runs, once the application is loaded."""
        pool = self._pool
        listeners = make_listeners(self._listening, pool, self.log)
        limit = self.max_requests if self.max_requests < sys.maxsize else 0
        self._next_beat = 0.0
        self._pause = min(LOOK, self.timeout) if self.timeout else LOOK
        wanted = getattr(self.log, "access_log_enabled", self.cfg.accesslog) or self.cfg.statsd_host
        self._loop = ConnectionLoop(
            listeners,
            MountTable(self._mounts),
            pool.time_limits(),
            Slot(self),
            self.log,
            limit,
            access=Access(self.log) if wanted else None,
        )
        self._loop.watch(self.PIPE[0], self._obey)
        self._loop.pulse(self._pause, self._look)
        self._loop.run()
        for mount in self._mounts:
            mount.model.close()
        if self.aborted:
            # The application swallowed the exception that was to end it.
            raise SystemExit(1)

    def beat(self) -> None:
        """Show the arbiter that this worker is not stuck, by a system call now and then."""
        now = monotonic()
        if now >= self._next_beat:
            self._next_beat = now + self._pause
            self.notify()

    def say_leaving(self) -> None:
        """Say why this worker ends, where nobody asked it to."""
        if self.alive and self._loop.is_spent:
            self.log.info("Autorestarting worker after current request.")

    def _look(self) -> float:
        self.beat()
        if self.ppid != os.getppid() and self._loop.stop_kind != "stop":
            self.log.info("Parent changed, shutting down: %s", self)
            self._loop.stop("stop")
        return self._pause

    def _obey(self) -> None:
        os.read(self.PIPE[0], 4096)
        # TERM ends a worker under reload, too: kept connections are told, and get their last answer.
        kind = "" if self.alive else "stop" if self.aborted or self.hurried else "retire"
        if kind and self._loop.stop_kind not in (kind, "stop"):
            self._loop.stop(kind)

    def handle_quit(self, sig: int, frame: Any) -> None:
        """QUIT, INT: end at once, as gunicorn's own workers do; a request that runs gets 500."""
        self.hurried = True
        super().handle_quit(sig, frame)

    def handle_abort(self, sig: int, frame: Any) -> None:
        """ABRT: the arbiter waited longer than --timeout; a request that runs gets 500, its traceback is logged."""
        self.aborted = True
        super().handle_abort(sig, frame)
