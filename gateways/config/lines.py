"""On which line of a TOML file each key stands, so that a mistake can be shown where it was made.

``tomllib`` gives values without places. This scanner finds table headers and the keys at the start of statements in a
file that ``tomllib`` has already accepted; it reads no values. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

KeyPath = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+|\s*\.\s*)+)\s*=""")
_PART = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+)""")
_TOKEN = re.compile(
    r'\\?"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[\]{}]',
)


def find_lines(text: str) -> dict[KeyPath, int]:
    """Return the line, counted from 1, of every table and key; an array of tables counts its tables from 0.

    ``("pool", "modes", "Mount", 0, "Path")`` is the ``Path`` of the first ``[[pool.modes.Mount]]``.
    """
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in _statements(text):
        header = _HEADER.match(line)
        if header:
            table = _open_table(_split_key(header[2]), header[1] == "[[", counts)
            for length in range(1, len(table) + 1):
                lines.setdefault(table[:length], number)
        elif key := _KEY.match(line):
            path = table
            for part in _split_key(key[1]):
                path = (*path, part)
                lines.setdefault(path, number)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of the lines on which a statement begins."""
    quote, depth = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if not quote and not depth:
            yield number, line
            if _HEADER.match(line):
                continue
        quote, depth = _scan(line, quote, depth)


def _scan(line: str, quote: str, depth: int) -> tuple[str, int]:
    """Return the open multi-line quote and the depth of open brackets after a line."""
    place = 0
    while True:
        if quote:
            end = line.find(quote, place)
            if end < 0:
                return quote, depth
            place, quote = end + len(quote), ""
        token = _TOKEN.search(line, place)
        if token is None:
            return "", depth
        place = token.end()
        if token[0] in ('"""', "'''"):
            quote = token[0]
        elif token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1


def _split_key(key: str) -> list[str]:
    return [match[1] or match[2] or match[3] or "" for match in _PART.finditer(key)]


def _open_table(parts: list[str], in_array: bool, counts: dict[KeyPath, int]) -> KeyPath:
    path: KeyPath = ()
    for index, part in enumerate(parts, 1):
        path = (*path, part)
        if in_array and index == len(parts):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path
