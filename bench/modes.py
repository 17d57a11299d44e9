"""The modes of a configuration file, as the comparison needs them: name, path, and how to serve one of them alone.

The one place of the comparison that knows the configuration's form; it reads the file as TOML and imports nothing of
the server, so that what is measured and what measures stay apart.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.servers import serve_command

NOT_ALONE = ("Path", "Target", "Title", "Pages", "Mount", "Listen")
"""Directives that mean nothing, or something else, when a mode is served alone."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One mount: ``name`` is its path without slashes, ``words`` the command line's words that serve it alone."""

    name: str
    path: str
    model: str
    title: str
    words: tuple[str, ...]

    def command(self) -> Callable[[int], list[str]]:
        """Return the recipe's command that serves this mode alone."""
        return lambda port: serve_command(port, *self.words)


def format_option(name: str, value: object) -> list[str]:
    """Return a directive as the command line's words: ``MaxServers = 5`` is ``--max-servers 5``."""
    flag = "--" + "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")
    if isinstance(value, list):
        return [word for item in value for word in (flag, str(item))]
    return [flag, ("on" if value else "off") if isinstance(value, bool) else str(value)]


def parse_modes(text: str, folder: str) -> list[Mode]:
    """Return the modes of a configuration in its order; ``folder`` is what its targets are relative to.

    Raise ``ValueError`` when it has none, or is no TOML.
    """
    modes = []
    for pool in tomllib.loads(text).get("pool", {}).values():
        for mount in pool.get("Mount", []):
            modes.append(parse_mount(pool, mount, folder))
    if not modes:
        raise ValueError("the configuration has no mounts")
    return modes


def parse_mount(pool: Mapping[str, Any], mount: Mapping[str, Any], folder: str) -> Mode:
    """Return one mount as a mode; raise ``ValueError`` when it has no target."""
    if "Target" not in mount:
        raise ValueError("a mount without Target")
    path = mount.get("Path", "/")
    words = [os.path.normpath(os.path.join(folder, mount["Target"]))]
    for name, value in {**pool, **mount}.items():
        if name not in NOT_ALONE:
            words += format_option(name, value)
    name = path.strip("/") or mount.get("Model", "mount")
    return Mode(name, path, mount.get("Model", ""), mount.get("Title", name), tuple(words))


def read_modes(file: Path) -> list[Mode]:
    """Read the modes of a configuration file; raise ``OSError`` or ``ValueError``."""
    return parse_modes(file.read_text(encoding="utf-8"), str(file.parent))
