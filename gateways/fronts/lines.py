"""Configuration text: indented blocks, and the reasons that stand above their lines. Pure; knows no front server."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

WIDTH = 100
"""Columns of a remark, its ``#`` included."""

Reasons = dict[str, str]
"""Pattern -> why a line in which the pattern is found is written as it is."""


def parse_reasons(text: str) -> Reasons:
    """Return the reasons in ``text``: each pattern on a line of its own, and below it, indented, why."""
    reasons: Reasons = {}
    pattern = ""
    for line in text.strip("\n").splitlines():
        if line.startswith("    "):
            reasons[pattern] = f"{reasons[pattern]} {line.strip()}".lstrip()
        else:
            pattern = line
            reasons[pattern] = ""
    return reasons


def remark(text: str) -> list[str]:
    """Return ``text`` as lines that every front server here reads as a comment."""
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def block(head: str, lines: Iterable[str], tail: str = "}") -> list[str]:
    """Return ``head``, the lines four columns further to the right, and ``tail`` if there is one."""
    inner = ["    " + line if line else "" for line in lines]
    return [head, *inner, *([tail] if tail else [])]


def explain(lines: Iterable[str], reasons: Reasons) -> list[str]:
    """Return the lines with each reason above the first line that it is about."""
    left = dict(reasons)
    explained = []
    for line in lines:
        found = [pattern for pattern in left if re.search(pattern, line)]
        if found and not line.lstrip().startswith("#"):
            margin = " " * (len(line) - len(line.lstrip()))
            explained += [margin + row for row in remark(" ".join(left.pop(pattern) for pattern in found))]
        explained.append(line)
    return explained
