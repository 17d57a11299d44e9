"""From what was written to checked values: one section of a configuration at a time, every mistake collected.

A file's table and a command line's options are both sections; which of the two it was shows only in how an entry is
spelled. Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gateways.config.directives import BY_NAME, DIRECTIVES, REQUIRED, Directive, Scope
from gateways.core.errors import ConfigurationError

_PLACES = {
    Scope.SERVER: "at the top of the file",
    Scope.POOL: "in a pool ([pool.NAME])",
    Scope.MOUNT: "in a mount ([[pool.NAME.Mount]])",
}
_HERE = {Scope.SERVER: "at the top of the file", Scope.POOL: "in a pool", Scope.MOUNT: "in a mount"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting as written: ``spelled`` is its name there, ``line`` its line, 0 on the command line."""

    name: str
    value: object
    line: int = 0
    spelled: str = ""

    @property
    def label(self) -> str:
        """The name to use in messages."""
        return self.spelled or self.name


@dataclass(slots=True)
class Mistakes:
    """The mistakes found so far, in the order they were found."""

    file: str = ""
    found: list[ConfigurationError] = field(default_factory=list)

    def add(self, message: str, line: int = 0) -> None:
        """Note one mistake: one sentence that says what is wrong and what to do."""
        self.found.append(ConfigurationError(message, self.file, line))


@dataclass(slots=True)
class Section:
    """The checked values of one section, by code name.

    ``given``: the entries that were written. ``bad``: code names whose entry was refused and whose default stands in,
    so that no further check complains of it. ``line``: where the section begins.
    """

    scope: Scope
    line: int
    values: dict[str, Any]
    given: dict[str, Entry]
    bad: set[str]

    def line_of(self, attribute: str) -> int:
        """Return the line of a setting, or of its section when it was not written."""
        return self.given[attribute].line if attribute in self.given else self.line

    def label(self, attribute: str, name: str) -> str:
        """Return a setting's name as it was written, or ``name``."""
        return self.given[attribute].label if attribute in self.given else name


def take_section(
    scope: Scope, entries: Iterable[Entry], folder: str, mistakes: Mistakes, line: int = 0, outer: Section | None = None
) -> Section:
    """Return the section that ``entries`` make; paths in it are relative to ``folder``.

    A mount takes what its pool says of shared directives (``outer``) before the table's defaults.
    """
    section = Section(scope, line, {}, {}, set())
    for row in DIRECTIVES:
        if _belongs(row, scope):
            section.values[row.attribute] = _take_default(row, folder)
    if outer is not None:
        for attribute in outer.given.keys() & section.values.keys():
            section.values[attribute] = outer.values[attribute]
    for entry in entries:
        directive = BY_NAME.get(entry.name)
        if directive is None:
            mistakes.add(_describe_unknown(entry.label), entry.line)
        elif not _belongs(directive, scope):
            mistakes.add(_describe_misplaced(directive, entry.label, scope), entry.line)
        else:
            _take_entry(section, directive, entry, folder, mistakes)
    return section


def _belongs(directive: Directive, scope: Scope) -> bool:
    return directive.scope is scope or (directive.shared and scope is Scope.POOL)


def _take_default(directive: Directive, folder: str) -> object:
    value = directive.default
    if directive.kind.resolve is None or not value or value is REQUIRED:
        return value
    return directive.kind.resolve(value, folder)


def _take_entry(section: Section, directive: Directive, entry: Entry, folder: str, mistakes: Mistakes) -> None:
    section.given[directive.attribute] = entry
    try:
        value = directive.kind.take(entry.value)
    except ValueError as error:
        section.bad.add(directive.attribute)
        mistakes.add(f"{entry.label} must be {error}", entry.line)
        return
    if directive.kind.resolve is not None:
        value = directive.kind.resolve(value, folder)
    section.values[directive.attribute] = value


def _describe_unknown(name: str) -> str:
    return f'there is no directive "{name}"{suggest(name, BY_NAME)}'


def _describe_misplaced(directive: Directive, name: str, scope: Scope) -> str:
    return f"{name} stands {_HERE[scope]}, where it means nothing: put it {_PLACES[directive.scope]}"


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean X?"`` for the nearest known name, whatever its case, or ``""``."""
    names = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return f"; did you mean {names[near[0]]}?" if near else ""
