"""The scanner that finds on which line a key stands, in files with everything that could mislead it."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from gateways.config.lines import KeyPath, find_lines

ROWS: list[tuple[str, str, dict[KeyPath, int]]] = [
    ("top", "a = 1\n\n# b = 2\nc=3\n", {("a",): 1, ("c",): 4}),
    ("table", "[a]\nb = 1\n[a.c]\nd = 1\n", {("a",): 1, ("a", "b"): 2, ("a", "c"): 3, ("a", "c", "d"): 4}),
    ("spaces", "  [ a . b ] # c\n  d = 1\n", {("a",): 1, ("a", "b"): 1, ("a", "b", "d"): 2}),
    ("dotted", "a.b = 1\na.c = 2\n", {("a",): 1, ("a", "b"): 1, ("a", "c"): 2}),
    ("quoted", "[\"a.b\"]\n'c d' = 1\n", {("a.b",): 1, ("a.b", "c d"): 2}),
    (
        "array-of-tables", "[[a.M]]\nb = 1\n[[a.M]]\nb = 2\n[a.M.c]\nd = 3\n",
        {("a",): 1, ("a", "M"): 1, ("a", "M", 0): 1, ("a", "M", 0, "b"): 2, ("a", "M", 1): 3, ("a", "M", 1, "b"): 4,
         ("a", "M", 1, "c"): 5, ("a", "M", 1, "c", "d"): 6},
    ),
    ("array", "a = [\n  1, # ]\n  '[x]',\n]\nb = 1\n", {("a",): 1, ("b",): 5}),
    ("inline-table", "a = {b = 1, c = 2}\nd = 1\n", {("a",): 1, ("d",): 2}),
    ("multi-line", 'a = """\n[b]\nc = 1\n"""\nd = 1\n', {("a",): 1, ("d",): 5}),
    ("multi-line-literal", "a = '''\n[b]\nc = \"1\n'''\nd = 1\n", {("a",): 1, ("d",): 5}),
    ("one-line-triple", 'a = """b"""\nc = 1\n', {("a",): 1, ("c",): 2}),
    ("string-with-bracket", 'a = "["\nb = \'{\'\nc = 1\n', {("a",): 1, ("b",): 2, ("c",): 3}),
    ("escaped-quote", 'a = "\\"["\nb = 1\n', {("a",): 1, ("b",): 2}),
    ("hash-in-string", 'a = "# ["\nb = 1\n', {("a",): 1, ("b",): 2}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_every_key_is_found_on_its_line(text: str, expected: dict[KeyPath, int]) -> None:
    tomllib.loads(text)
    assert find_lines(text) == expected


def walk(value: Any, path: KeyPath) -> list[KeyPath]:
    """Every key path of a document that has no inline table."""
    if isinstance(value, dict):
        return [(*path, key) for key in value] + [p for key, inner in value.items() for p in walk(inner, (*path, key))]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [p for index, inner in enumerate(value) for p in [(*path, index), *walk(inner, (*path, index))]]
    return []


def test_no_key_of_the_shipped_configuration_is_missed() -> None:
    from pathlib import Path

    text = (Path(__file__).resolve().parent.parent / "conf" / "modes.toml").read_text()
    lines = find_lines(text)
    assert set(walk(tomllib.loads(text), ())) == set(lines)
    for path, number in lines.items():
        name = next(part for part in reversed(path) if isinstance(part, str))
        assert name in text.split("\n")[number - 1]
