"""Reading a configuration file (TOML) into settings; every mistake is collected, with its line.

Blocks on the disk. Knows the layout of the file: server directives at its top, ``[pool.NAME]`` tables, and
``[[pool.NAME.Mount]]`` tables in them.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from typing import Any

from gateways.config.build import build_mount, build_pool, build_server, check_paths
from gateways.config.directives import BY_NAME, Scope
from gateways.config.lines import KeyPath, find_lines
from gateways.config.sections import Entry, Mistakes, Section, suggest, take_section
from gateways.config.settings import MountSettings, PoolSettings, ServerSettings
from gateways.core.errors import ConfigurationError

MAX_BYTES = 1 << 20
POOL, MOUNT = "pool", "Mount"
_POOL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")

LineOf = Callable[[KeyPath], int]


def read_settings(path: str) -> ServerSettings:
    """Return the settings of a configuration file. Raise ``ConfigurationError``, the first of its mistakes."""
    settings, mistakes = read_configuration(path)
    if settings is None:
        raise mistakes[0]
    return settings


def read_configuration(path: str) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    """Return (settings, mistakes) of a configuration file; the settings are ``None`` when there is any mistake."""
    mistakes = Mistakes(path)
    text = _read_text(path, mistakes)
    if text is None:
        return None, mistakes.found
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is one; a number of too many digits is another
        mistakes.add(*_describe_syntax(str(error), text))
        return None, mistakes.found
    settings = _Reader(path, find_lines(text), mistakes).read_server(document)
    mistakes.found.sort(key=lambda mistake: mistake.line)
    return (None if mistakes.found else settings), mistakes.found


def _read_text(path: str, mistakes: Mistakes) -> str | None:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        mistakes.add(f"the configuration cannot be read: {error.strerror}")
        return None
    if len(data) > MAX_BYTES:
        mistakes.add(f"the configuration is longer than {MAX_BYTES} bytes")
        return None
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        mistakes.add("the configuration is not UTF-8 text", data.count(b"\n", 0, error.start) + 1)
        return None


def _describe_syntax(message: str, text: str) -> tuple[str, int]:
    """Return (sentence, line) of what ``tomllib`` said."""
    place = _PLACE.search(message)
    line = int(place[1]) if place and place[1] else max(text.rstrip("\n").count("\n") + 1, 1)
    return f"not valid TOML: {_PLACE.sub('', message)}", line


class _Reader:
    """Walks one document. ``lines``: where each key stands."""

    def __init__(self, path: str, lines: dict[KeyPath, int], mistakes: Mistakes) -> None:
        self.path = os.path.abspath(path)
        self.folder = os.path.dirname(self.path)
        self.lines = lines
        self.mistakes = mistakes

    def line(self, path: KeyPath) -> int:
        """Return the line of a key, or of the nearest table around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def entries(self, table: dict[str, Any], path: KeyPath) -> list[Entry]:
        """Return the entries of a table that are not tables by the layout."""
        return [Entry(name, value, self.line((*path, name))) for name, value in table.items()]

    def read_server(self, document: dict[str, Any]) -> ServerSettings:
        rest = {name: value for name, value in document.items() if name != POOL}
        for name in [name for name, value in rest.items() if isinstance(value, dict) and name not in BY_NAME]:
            self.mistakes.add(
                f'there is no table "{name}"{suggest(name, [POOL])}; a pool is written [pool.NAME]', self.line((name,))
            )
            del rest[name]
        section = take_section(Scope.SERVER, self.entries(rest, ()), self.folder, self.mistakes, 1)
        pools = document.get(POOL)
        if not isinstance(pools, dict) or not pools or not all(isinstance(pool, dict) for pool in pools.values()):
            self.mistakes.add(
                "there is no pool: add a table [pool.NAME] with at least one [[pool.NAME.Mount]]", self.line((POOL,))
            )
            pools = {}
        built = [self.read_pool(name, pool) for name, pool in pools.items()]
        return build_server(self.path, section, built, self.mistakes)

    def read_pool(self, name: str, table: dict[str, Any]) -> tuple[PoolSettings, Section]:
        path = (POOL, name)
        line = self.line(path)
        if _POOL_NAME.fullmatch(name) is None:
            self.mistakes.add(f'"{name}" cannot name a pool: use letters, digits, - and _, at most 63', line)
        rest = {key: value for key, value in table.items() if key != MOUNT}
        section = take_section(Scope.POOL, self.entries(rest, path), self.folder, self.mistakes, line)
        mounts = self.read_mounts(table.get(MOUNT), (*path, MOUNT), section)
        return build_pool(name, section, mounts, self.mistakes), section

    def read_mounts(self, tables: object, path: KeyPath, pool: Section) -> list[MountSettings]:
        name = path[1]
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            self.mistakes.add(f'pool "{name}" serves nothing: add a table [[pool.{name}.Mount]]', self.line(path))
            return []
        sections = []
        for index, table in enumerate(tables):
            place = (*path, index)
            entries = self.entries(table, place)
            sections.append(
                take_section(Scope.MOUNT, entries, self.folder, self.mistakes, self.line(place), outer=pool)
            )
        mounts = [build_mount(section, self.folder, self.mistakes) for section in sections]
        check_paths(sections, mounts, self.mistakes)
        return mounts
