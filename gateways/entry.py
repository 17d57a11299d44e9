"""What ``gateways run FILE`` and ``gateways.run(application)`` serve, in each of the ways a process can be started.

``FileEntry`` and ``ObjectEntry`` answer the same three questions: run one CGI request; which settings; which mounts.
Puts parts together for ``cli.py``. The CGI path imports no configuration unless it must look into a file.
"""

from __future__ import annotations

import os

from gateways.core.errors import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

    from gateways.config.settings import PoolSettings, ServerSettings
    from gateways.config.targets import Target
    from gateways.core.mounts import Mount
    from gateways.start import Start

    MountMaker = Callable[[], list[Mount]]


CALLED_NAMES: dict[str, tuple[str, ...]] = {
    "cgi": (), "zygote": (), "perlrun": (), "registry": (), "wsgi": ("application", "app"), "handler": ("handler",),
}  # fmt: skip
"""Execution model -> the names that it looks for in a file; none where it runs the file from its top."""


class FileEntry:
    """A Python file: its application is called if it defines one, otherwise it is run as a script.

    ``model``: the execution model, ``""`` for the file's own. ``arguments``: what ``sys.argv`` holds after the file.
    """

    __slots__ = ("arguments", "model", "path")

    reloads = True

    def __init__(self, path: str, model: str = "", arguments: tuple[str, ...] = ()) -> None:
        self.path = os.path.abspath(path)
        self.model = model
        self.arguments = arguments

    def run_cgi(self) -> int:
        """Serve the one request of a CGI program. A plain script takes this process over and never returns.

        Words after the file are not passed on: a web server may have made them of a query (RFC 3875 4.4).
        """
        import sys

        from gateways import server
        from gateways.start import become_script

        model, names = self.choose_callable()
        if not names:
            become_script(self.path)
        sys.argv = [self.path]
        return server.run_cgi(server.make_called_model(model, self.path, "", *names))

    def choose_callable(self) -> tuple[str, tuple[str, ...]]:
        """Return (model, names to look for) of what is called in the file; no names for a plain script."""
        from gateways.start import find_callable

        if self.model:
            return self.model, self.find_names()
        try:
            with open(self.path, "rb") as file:
                name = find_callable(file.read())
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be read: {error.strerror}") from error
        if not name:
            name = self.look_closer()
        return "handler" if name == "handler" else "wsgi", (name,) if name else ()

    def find_names(self) -> tuple[str, ...]:
        """Return the names that the model looks for. Raise ``ConfigurationError`` for a model that there is not."""
        try:
            return CALLED_NAMES[self.model]
        except KeyError:
            known = ", ".join(CALLED_NAMES)
            raise ConfigurationError(f'--model must be one of {known}; not "{self.model}"') from None

    def look_closer(self) -> str:
        """Return the name of the file's callable, ``""`` if it is a script; parses the file."""
        from gateways.config.targets import SCRIPT, Target, TargetError, choose_model

        try:
            return choose_model(Target(SCRIPT, self.path))[0].name
        except TargetError as error:
            raise ConfigurationError(str(error)) from error

    def read_settings(self, bind: str) -> ServerSettings:
        """Return the settings of a server that listens on ``bind``. Raise ``ConfigurationError``."""
        import sys

        from gateways.config.build import fit_model
        from gateways.config.targets import SCRIPT, Target, TargetError

        if self.model:
            self.find_names()
        if not os.path.isfile(self.path):
            raise ConfigurationError(f"there is no file {self.path}")
        try:
            # Python, whatever its name and first line are: otherwise nobody would have given it to us.
            target, model = fit_model(Target(SCRIPT, self.path), self.model)
        except TargetError as error:
            raise ConfigurationError(str(error)) from error
        sys.argv = [self.path, *self.arguments]
        return read_plain_settings(target, model, bind, os.path.dirname(self.path))

    def make(self, pool: PoolSettings) -> MountMaker:
        """Return what makes the mounts in each serving process."""
        from gateways import server

        return lambda: server.make_mounts(pool)


class ObjectEntry:
    """An application that its own file hands over. ``model``: wsgi or handler. ``streams``: see ``server.run_cgi``."""

    __slots__ = ("application", "model", "streams")

    reloads = False

    def __init__(self, application: object, model: str, streams: tuple[IO[bytes], IO[bytes]] | None = None) -> None:
        self.application = application
        self.model = model
        self.streams = streams

    def run_cgi(self) -> int:
        """Serve the one request of a CGI program."""
        from gateways import server

        return server.run_cgi(server.make_object_model(self.model, lambda: self.application), self.streams)

    def read_settings(self, bind: str) -> ServerSettings:
        """Return the settings of a server that listens on ``bind``. Raise ``ConfigurationError``."""
        import sys

        from gateways.config.targets import CALLABLE_FILE, Target

        path = os.path.abspath(sys.argv[0])
        target = Target(CALLABLE_FILE, path, getattr(self.application, "__name__", "") or self.model)
        folder = os.path.dirname(path) if os.path.isfile(path) else os.getcwd()
        return read_plain_settings(target, self.model, bind, folder)

    def make(self, pool: PoolSettings) -> MountMaker:
        """Return what makes the mounts in each serving process."""
        from gateways import server

        return lambda: server.make_object_mounts(self.model, self.application)


def read_plain_settings(target: Target, model: str, bind: str, folder: str) -> ServerSettings:
    """Return the settings of a server for one application on ``bind``. Raise ``ConfigurationError``."""
    from types import SimpleNamespace

    from gateways.config.options import read_target_options

    settings, mistakes = read_target_options(target, model, SimpleNamespace(listen=[bind]), folder)
    if settings is None:
        raise mistakes[0]
    return settings


def fit_pool(pool: PoolSettings, workers: int) -> PoolSettings:
    """Return the pool with so many workers, no more and no less; 0 is the one process that is there."""
    import dataclasses

    count = max(workers, 1)
    return dataclasses.replace(
        pool, start_servers=count, min_spare_servers=count, max_spare_servers=count, max_servers=count
    )


def take_sockets(pool: PoolSettings, plan: Start) -> tuple[PoolSettings, list[socket.socket]]:
    """Return (pool, listening sockets): those that this process was given, or those that the pool's addresses mean.

    Raise ``ConfigurationError`` when there are none to be had, or FCGI_WEB_SERVER_ADDRS is no list of addresses.
    """
    from gateways import start

    if plan.way == start.FASTCGI:
        sock = start.take_stdin_socket()
        return allow_web_servers(place_pool(pool, [sock], ["fastcgi"]), os.environ), [sock]
    if plan.way == start.ACTIVATED:
        sockets = start.take_activated_sockets(len(plan.wires))
        return place_pool(pool, sockets, plan.wires), sockets
    from gateways.process.listeners import OpenListeners, parse_address

    opened = OpenListeners().acquire([parse_address(place.address) for place in pool.listen], pool.listen_backlog)
    return pool, list(opened)


def place_pool(pool: PoolSettings, sockets: Sequence[socket.socket], wires: Sequence[str]) -> PoolSettings:
    """Return the pool listening where the sockets are bound."""
    import dataclasses

    from gateways.config.addresses import ListenAddress
    from gateways.listening import format_address

    places = [ListenAddress(format_address(sock), wire) for sock, wire in zip(sockets, wires, strict=True)]
    return dataclasses.replace(pool, listen=tuple(places))


def allow_web_servers(pool: PoolSettings, variables: Mapping[str, str]) -> PoolSettings:
    """Return the pool with FCGI_WEB_SERVER_ADDRS as the rule of who may connect, where it holds (FastCGI 3.2).

    It is about TCP only. Where it stands, the socket may be open to every interface: it is not open to everybody.
    """
    import dataclasses

    from gateways.config.addresses import PeerRule

    written = variables.get("FCGI_WEB_SERVER_ADDRS", "")
    if not written or pool.listen[0].address.startswith("unix:"):
        return pool
    try:
        rule = PeerRule.parse([item.strip() for item in written.split(",")])
    except ValueError as error:
        raise ConfigurationError(f"FCGI_WEB_SERVER_ADDRS must be {error}") from error
    return dataclasses.replace(pool, allowed_peers=rule, allow_wildcard=True)
