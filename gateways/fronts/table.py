"""The fronts by name, and the one call that makes a configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateways.config.settings import ServerSettings
from gateways.core.errors import ConfigurationError
from gateways.fronts import apache, caddy, haproxy, lighttpd, nginx
from gateways.fronts.lines import remark
from gateways.fronts.site import Site, parse_front_listen, plan_backends, read_programs


@dataclass(frozen=True, slots=True)
class Front:
    """One front server. ``wires``: what it speaks to us; ``spawns``: the ways in which it starts us by itself."""

    name: str
    wires: tuple[str, ...]
    spawns: tuple[str, ...]
    format: Callable[[Site], list[str]]


FRONTS = {
    front.name: front
    for front in (
        Front(apache.NAME, apache.WIRES, apache.SPAWNS, apache.format_apache),
        Front(nginx.NAME, nginx.WIRES, nginx.SPAWNS, nginx.format_nginx),
        Front(lighttpd.NAME, lighttpd.WIRES, lighttpd.SPAWNS, lighttpd.format_lighttpd),
        Front(haproxy.NAME, haproxy.WIRES, haproxy.SPAWNS, haproxy.format_haproxy),
        Front(caddy.NAME, caddy.WIRES, caddy.SPAWNS, caddy.format_caddy),
    )
}

WIRES = tuple(dict.fromkeys(wire for front in FRONTS.values() for wire in front.wires))
SPAWNS = tuple(dict.fromkeys(way for front in FRONTS.values() for way in front.spawns))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is wanted of a configuration; see ``Site``. ``wire``: ``""`` for the first that both sides speak."""

    listen: str = "127.0.0.1:8080"
    wire: str = ""
    spawn: str = ""
    reuse: bool = False
    stream: bool = False
    folder: str = ""
    command: str = "gateways"


def format_front(name: str, settings: ServerSettings, wishes: Wishes) -> str:
    """Return the configuration of the front called ``name`` for everything that ``settings`` serve.

    Raise ``ConfigurationError`` when the front cannot do what is wished.
    """
    front = FRONTS[name]
    if wishes.wire and wishes.wire not in front.wires:
        raise ConfigurationError(f"{name} cannot speak {wishes.wire}: it speaks {', '.join(front.wires)}")
    if wishes.spawn and wishes.spawn not in front.spawns:
        can = f"it can spawn {' and '.join(front.spawns)}" if front.spawns else "it starts no programs"
        raise ConfigurationError(f"{name} cannot spawn {wishes.spawn}: {can}")
    host, port = parse_front_listen(wishes.listen)
    backends = () if wishes.spawn else plan_backends(settings, front.wires, wishes.wire, name)
    programs = read_programs(settings, wishes.spawn, name) if wishes.spawn else ()
    site = Site(
        host, port, backends, programs, wishes.spawn, wishes.reuse, wishes.stream, wishes.folder,
        settings.file, wishes.command,
    )  # fmt: skip
    return "\n".join([*format_head(front, site), *front.format(site), ""])


def format_head(front: Front, site: Site) -> list[str]:
    """Return what a configuration says of itself."""
    lines = [f"# {front.name} in front of gateways at http://{site.listen}/"]
    for backend in site.backends:
        paths = ", ".join(prefix or "/" for prefix in backend.prefixes)
        lines.append(f'# pool "{backend.pool}": {backend.place}, for {paths}')
        if backend.socket:
            lines += remark(f'{front.name} needs to write to the socket: ListenGroup = "www-data" in the pool.')
        if backend.wire == "http" and not backend.trusts_front:
            lines += remark("The pool's TrustedProxies does not name this server: it believes no X-Forwarded-* field.")
    if site.spawn == "fastcgi":
        lines += remark(
            f"{front.name} starts `gateways run` for each mount. It knows the mount's path, file, model and "
            "Environment, and how many servers and requests the pool allows; other settings are not passed on."
        )
    if site.spawn == "cgi":
        lines += remark(
            f"{front.name} starts each mount's file for each request, with its Environment, and that is all."
        )
    return lines
