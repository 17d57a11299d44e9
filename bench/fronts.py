"""Front servers between load and server: each started with what ``gateways conf`` says, for any back end.

Knows front servers' programs and arguments, and ``gateways.fronts``; nothing of loads or rounds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.servers import FOLDERS, Recipe
from gateways.fronts.site import Backend, Site
from gateways.fronts.table import FRONTS

KEEP_ALIVE, ANSWER_TIME = 5.0, 75


@dataclass(frozen=True, slots=True)
class Front:
    """One front server. ``conf``: its name in ``gateways.fronts``; ``swap``: (old, new) in its configuration."""

    label: str
    conf: str
    program: str
    package: str
    arguments: tuple[str, ...]
    swap: tuple[str, str] = ("", "")


_APACHE = ("-d", "{folder}", "-f", "{file}", "-DFOREGROUND")
TABLE = {
    "apache": Front("Apache, event", "apache", "apache2", "apache2-bin", _APACHE),
    "apache-worker": Front("Apache, worker", "apache", "apache2", "apache2-bin", _APACHE, ("mpm_event", "mpm_worker")),
    "nginx": Front("nginx", "nginx", "nginx", "nginx", ("-e", "{folder}/error.log", "-c", "{file}")),
    "nginx-32": Front(
        "nginx, 32 connections",
        "nginx",
        "nginx",
        "nginx",
        ("-e", "{folder}/error.log", "-c", "{file}"),
        ("keepalive 16;", "keepalive 32;"),
    ),
    "lighttpd": Front("lighttpd", "lighttpd", "lighttpd", "lighttpd", ("-D", "-f", "{file}")),
    "haproxy": Front("HAProxy", "haproxy", "haproxy", "haproxy", ("-db", "-f", "{file}")),
    "caddy": Front("Caddy", "caddy", "caddy", "caddy", ("run", "--adapter", "caddyfile", "--config", "{file}")),
}
"""Name in a scenario file -> how it is started in the foreground."""


def find_program(front: Front) -> str | None:
    """Return the path of a front's program, ``None`` where it is not installed."""
    return shutil.which(front.program, path=FOLDERS)


def find_missing(front: Front) -> str:
    """Return how to install a front that is not installed, ``""`` for one that is."""
    return "" if find_program(front) else f"not installed: apt-get install -y --no-install-recommends {front.package}"


def make_recipe(name: str, wire: str, backend_port: int, reuse: bool, folder: Path, ready: str) -> Recipe:
    """Return how to start a front that passes everything to a port of 127.0.0.1 by ``wire``."""
    front = TABLE[name]
    file = folder / "front.conf"

    def prepare(port: int) -> None:
        text = "\n".join([*FRONTS[front.conf].format(make_site(wire, port, backend_port, reuse, folder)), ""])
        file.write_text(text.replace(*front.swap) if front.swap[0] else text, encoding="utf-8")

    return Recipe(
        f"{name}-{wire}", front.label, make_command(front, folder, file), lambda: find_missing(front), ready,
        prepare=prepare, environment=dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(folder)),
    )  # fmt: skip


def make_command(front: Front, folder: Path, file: Path) -> Callable[[int], list[str]]:
    """Return a front's command line; its port stands in its file."""
    words = [word.format(folder=folder, file=file) for word in front.arguments]
    return lambda _port: [find_program(front) or front.program, *words]


def make_site(wire: str, port: int, backend_port: int, reuse: bool, folder: Path) -> Site:
    """Return what the front's configuration says."""
    backend = Backend(
        pool="backend", wire=wire, host="127.0.0.1", port=backend_port, socket="", prefixes=("",), secret="",
        packet_size=8192, keep_alive=KEEP_ALIVE, answer_time=ANSWER_TIME, body_limit=0, trusts_front=True,
    )  # fmt: skip
    return Site("127.0.0.1", port, (backend,), reuse=reuse, folder=str(folder))
