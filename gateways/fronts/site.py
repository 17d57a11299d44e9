"""What a front server's configuration is made of: where it listens, and what stands behind it.

Made from the settings of a configuration; knows no front server.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from gateways.config.addresses import ListenAddress, parse_listen, split_host
from gateways.config.settings import MountSettings, PoolSettings, ServerSettings
from gateways.config.targets import Target, TargetError, choose_name
from gateways.core.errors import ConfigurationError

_PATIENCE = 15
_ANSWER_TIME = 60.0
_RUN_BY_TIME = ("cgi", "zygote")
_REACHED_AS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


_NOT_IN_PATHS = " \"'\\;{}$#|"
"""Characters that end a word, or begin something else, in the configuration of one front or another."""


@dataclass(frozen=True, slots=True)
class Backend:
    """One pool as a front reaches it.

    ``host`` and ``port``, or ``socket`` (a path). ``prefixes``: the paths of its mounts, ``""`` for the root, no slash
    at an end. ``keep_alive``: seconds for which the pool keeps an idle connection. ``answer_time``: seconds after which
    an answer will not come any more. ``trusts_front``: whether it believes the front's X-Forwarded-* fields.
    """

    pool: str
    wire: str
    host: str
    port: int
    socket: str
    prefixes: tuple[str, ...]
    secret: str
    packet_size: int
    keep_alive: float
    answer_time: int
    body_limit: int
    trusts_front: bool

    @property
    def authority(self) -> str:
        """``HOST:PORT``, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def place(self) -> str:
        """The address as our own configuration writes it."""
        return f"{self.wire}://" + (f"unix:{self.socket}" if self.socket else self.authority)

    @property
    def idle_time(self) -> int:
        """Whole seconds for which a front may keep an idle connection: it has to be the first to give it up."""
        return max(1, math.ceil(self.keep_alive) - 2) if self.keep_alive else 60


@dataclass(frozen=True, slots=True)
class Program:
    """One mount whose application the front starts by itself.

    ``path``: the application's file. ``executable``: whether that is a program as it is, and so can be a CGI script.
    ``environment``: the variables that each of its requests gets. The rest are settings of the mount and its pool;
    ``answer_time`` is as in ``Backend``.
    """

    prefix: str
    path: str
    executable: bool
    model: str
    passes_authorization: bool
    start_servers: int
    max_servers: int
    max_requests: int
    answer_time: int
    body_limit: int
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that a configuration says.

    ``spawn``: the way in which the front starts us, ``""`` if we run already. ``reuse``: connections to the backend are
    kept. ``stream``: bodies are passed on as they come. ``folder``: where a whole server keeps its files; ``""`` for a
    part of a server that there is. ``file``: our configuration. ``command``: what starts ``gateways``, for fronts that
    spawn.
    """

    host: str
    port: int
    backends: tuple[Backend, ...]
    programs: tuple[Program, ...] = ()
    spawn: str = ""
    reuse: bool = False
    stream: bool = False
    folder: str = ""
    file: str = ""
    command: str = ""

    @property
    def mounts(self) -> tuple[tuple[str, Backend], ...]:
        """(prefix, backend) of every path that is passed on, the longest first."""
        pairs = [(prefix, backend) for backend in self.backends for prefix in backend.prefixes]
        return tuple(sorted(pairs, key=lambda pair: -len(pair[0])))

    @property
    def sets_variables(self) -> bool:
        """True when a program that the front starts has variables of its own."""
        return any(program.environment for program in self.programs)

    @property
    def body_limit(self) -> int:
        """The largest request body that anything here takes, in bytes; 0 for no limit."""
        limits = [backend.body_limit for backend in self.backends]
        limits += [program.body_limit for program in self.programs]
        return max(limits) if all(limits) and limits else 0

    @property
    def listen(self) -> str:
        """``HOST:PORT`` of the front itself."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_front_listen(text: str) -> tuple[str, int]:
    """Return (host, port) that the front itself listens on. Raise ``ConfigurationError`` for anything else."""
    try:
        place = parse_listen(text)
    except ValueError as error:
        raise ConfigurationError(f"--listen must be {error}") from error
    host, _, port = place.address.rpartition(":")
    if place.wire or place.address.startswith("unix:") or port == "0":
        raise ConfigurationError(f'--listen must be HOST:PORT with a port from 1 to 65535, not "{text}"')
    return host.strip("[]"), int(port)


def plan_backends(settings: ServerSettings, wires: tuple[str, ...], wanted: str, front: str) -> tuple[Backend, ...]:
    """Return a backend for each pool: its first address whose wire is ``wanted``, or among ``wires`` if that is empty.

    Raise ``ConfigurationError`` when a pool has none.
    """
    return tuple(
        make_backend(pool, choose_place(pool, (wanted,) if wanted else wires, front), front) for pool in settings.pools
    )


def choose_place(pool: PoolSettings, wires: tuple[str, ...], front: str) -> ListenAddress:
    """Return the pool's first address that speaks one of ``wires``. Raise ``ConfigurationError`` when none does."""
    for place in pool.listen:
        if place.wire in wires:
            if place.address.endswith(":0"):
                raise ConfigurationError(
                    f'pool "{pool.name}": {place} is a new port with every start: {front} needs a fixed one'
                )
            return place
    spoken = ", ".join(dict.fromkeys(place.wire for place in pool.listen))
    raise ConfigurationError(f'pool "{pool.name}" listens with {spoken}: {front} needs {" or ".join(wires)}')


def make_backend(pool: PoolSettings, place: ListenAddress, front: str) -> Backend:
    """Return the pool as it is reached at ``place``. Raise ``ConfigurationError`` for a path no front can be told."""
    local = place.address.startswith("unix:")
    if local:
        check_path(place.address[5:], front)
    host = split_host(place.address)
    return Backend(
        pool=pool.name,
        wire=place.wire,
        host=_REACHED_AS.get(host, host),
        port=0 if local else int(place.address.rpartition(":")[2]),
        socket=place.address[5:] if local else "",
        prefixes=plan_prefixes(pool.mounts),
        secret=pool.secret if place.wire == "ajp" else "",
        packet_size=pool.packet_size,
        keep_alive=pool.keep_alive_timeout,
        answer_time=plan_answer_time(pool.mounts),
        body_limit=pool.limit_request_body,
        trusts_front=pool.trusted_proxies("" if local else _REACHED_AS.get(host, host)),
    )


def plan_prefixes(mounts: tuple[MountSettings, ...]) -> tuple[str, ...]:
    """Return the paths that a front passes on: all of them if something is mounted at the root, else each mount's."""
    prefixes = tuple(dict.fromkeys(mount.path.rstrip("/") for mount in mounts))
    return ("",) if "" in prefixes else prefixes


def plan_answer_time(mounts: tuple[MountSettings, ...]) -> int:
    """Return the seconds after which a front may give up: longer than ours, so that the client sees our answer."""
    limits = [mount.script_time_limit for mount in mounts if mount.model in _RUN_BY_TIME]
    return math.ceil(max((_ANSWER_TIME, *limits))) + _PATIENCE


def read_programs(settings: ServerSettings, way: str, front: str) -> tuple[Program, ...]:
    """Return what a front starts for each mount, the longest path first. Looks at the files.

    Raise ``ConfigurationError`` when a mount is no file, or is no program where it has to be one (``way`` is cgi).
    """
    programs = [make_program(pool, mount, front) for pool in settings.pools for mount in pool.mounts]
    for program in programs:
        if way == "cgi" and not program.executable:
            raise ConfigurationError(
                f"{front} runs {program.path} as a CGI script, and it is no program: let its first line be "
                '"#!/usr/bin/env -S gateways run", and chmod +x it'
            )
    return tuple(sorted(programs, key=lambda program: -len(program.prefix)))


def make_program(pool: PoolSettings, mount: MountSettings, front: str) -> Program:
    """Return what a front starts for a mount. Looks at the file. Raise ``ConfigurationError`` when it is none."""
    path = mount.target.path
    if mount.target.kind not in ("script", "executable", "callable_file"):
        raise ConfigurationError(
            f"{front} can start a file only, and {mount.path} is {mount.target}: name a file as Target"
        )
    check_path(path, front)
    check_name(mount, front)
    return Program(
        prefix=mount.path.rstrip("/"),
        path=path,
        executable=os.access(path, os.X_OK),
        model=mount.model,
        passes_authorization=mount.pass_authorization or mount.model in ("wsgi", "handler"),
        start_servers=pool.start_servers,
        max_servers=pool.max_servers,
        max_requests=pool.max_requests_per_child,
        answer_time=plan_answer_time((mount,)),
        body_limit=pool.limit_request_body,
        environment=check_environment(mount, front),
    )


def check_path(path: str, front: str) -> None:
    """Raise ``ConfigurationError`` for a path that stands for something else in the configuration of some front."""
    if any(c in _NOT_IN_PATHS or ord(c) < 32 or ord(c) == 127 for c in path):
        raise ConfigurationError(
            f"{front} cannot be told the path {path!r}: it has a blank, a quote or one of {_NOT_IN_PATHS.strip()}"
        )


def check_name(mount: MountSettings, front: str) -> None:
    """Raise ``ConfigurationError`` for a callable that ``gateways run FILE`` would not choose. Reads the file."""
    target = mount.target
    if target.kind != "callable_file":
        return
    try:
        chosen = choose_name(Target("script", target.path), mount.model).name
    except TargetError:
        chosen = ""
    if chosen != target.name:
        known = "handler" if mount.model == "handler" else "application"
        raise ConfigurationError(
            f"{front} starts {target.path} by its path alone, which does not choose {target.name}: "
            f"let the file call it {known} at its top level"
        )


def check_environment(mount: MountSettings, front: str) -> tuple[tuple[str, str], ...]:
    """Return the mount's variables. Raise ``ConfigurationError`` for one that no configuration of a front can hold."""
    for name, value in mount.environment:
        if "${" in value or any(ord(c) < 32 or ord(c) == 127 for c in value):
            raise ConfigurationError(
                f"{front} cannot be told {name} of Environment: it has a control character, or ${{ for which {front} "
                "may put something else"
            )
    return mount.environment
