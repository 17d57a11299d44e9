"""What several answers to one request have in common, and whether another answer has it too.

What differed between two runs of the same program (dates, process ids, counters, tokens) is a gap: anything of its kind
may stand there. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MAX_TOKENS = 6000
"""Tokens that are aligned one by one; a longer difference is one gap."""
_TOKEN = re.compile(rb"""[^\s<>"'&;,()\[\]{}]+|\s+|.""", re.DOTALL)
_DIGITS = re.compile(rb"[0-9]+")


@dataclass(frozen=True, slots=True)
class Gap:
    """Where answers differed. ``longest``: bytes seen there. ``digits``: True when only digits were."""

    longest: int
    digits: bool

    def admits(self, data: bytes) -> bool:
        """True when ``data`` may stand here."""
        if self.digits and data and not _DIGITS.fullmatch(data):
            return False
        return len(data) <= 2 * self.longest + 16


Part = bytes | Gap
Template = tuple[Part, ...]


def learn(samples: Iterable[bytes]) -> Template:
    """Return the template of samples (one at least)."""
    first, *others = samples
    template: Template = (first,)
    for sample in others:
        if not fits(template, sample):
            template = _widen(template, sample)
    return template


def fits(template: Template, data: bytes) -> bool:
    """True when ``data`` has every common part in order, and only what is admitted in the gaps."""
    at = 0
    gap: Gap | None = None
    for number, part in enumerate(template):
        if isinstance(part, Gap):
            gap = part
            continue
        if gap is None:
            found = at if data.startswith(part, at) else -1
        elif number == len(template) - 1:
            found = len(data) - len(part) if data.endswith(part) else -1
        else:
            found = data.find(part, at)
        if found < at or (gap is not None and not gap.admits(data[at:found])):
            return False
        at, gap = found + len(part), None
    rest = data[at:]
    return gap.admits(rest) if gap is not None else not rest


def _split(template: Template) -> list[Part]:
    tokens: list[Part] = []
    for part in template:
        tokens.extend(_TOKEN.findall(part) if isinstance(part, bytes) else (part,))
    return tokens


def _widen(template: Template, sample: bytes) -> Template:
    known: list[Part] = _split(template)
    fresh: list[Part] = list(_TOKEN.findall(sample))
    head = _count_equal(known, fresh)
    tail = _count_equal(known[head:][::-1], fresh[head:][::-1])
    middle = _align(known[head : len(known) - tail], fresh[head : len(fresh) - tail])
    return _join([*known[:head], *middle, *known[len(known) - tail :]])


def _count_equal(one: Sequence[Part], other: Sequence[Part]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _align(known: Sequence[Part], fresh: Sequence[Part]) -> list[Part]:
    if len(known) > MAX_TOKENS or len(fresh) > MAX_TOKENS:
        return [_make_gap(known, fresh)]
    parts: list[Part] = []
    matcher = SequenceMatcher(None, known, fresh, autojunk=False)
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        if what == "equal":
            parts.extend(known[i1:i2])
        else:
            parts.append(_make_gap(known[i1:i2], fresh[j1:j2]))
    return parts


def _make_gap(known: Sequence[Part], fresh: Sequence[Part]) -> Gap:
    texts = [b"".join(part for part in known if isinstance(part, bytes)), b"".join(fresh)]  # type: ignore[arg-type]
    gaps = [part for part in known if isinstance(part, Gap)]
    longest = max(len(texts[0]) + sum(gap.longest for gap in gaps), len(texts[1]))
    digits = all(not text or _DIGITS.fullmatch(text) for text in texts) and all(gap.digits for gap in gaps)
    return Gap(longest, digits)


def _join(parts: Sequence[Part]) -> Template:
    """Join neighbours: bytes to bytes, gaps to gaps."""
    joined: list[Part] = []
    run: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            run.append(part)
            continue
        if run:
            joined.append(b"".join(run))
            run = []
        last = joined[-1] if joined else None
        if isinstance(last, Gap):
            joined[-1] = Gap(last.longest + part.longest, last.digits and part.digits)
        else:
            joined.append(part)
    if run:
        joined.append(b"".join(run))
    return tuple(joined)
