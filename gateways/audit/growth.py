"""Whether memory grows with every request, or a cache fills: told from some looks at it. Pure.

A look is (requests run, blocks of small objects, bytes resident).
"""

from __future__ import annotations

from itertools import pairwise

Look = tuple[int, int, int]

PARTS = (1, 2, 4, 8)
"""How many requests lie before each look, in parts. The last is taken when the others have found growth: caches
of some hundred entries may have been filling until then."""
BLOCKS = 1.0
"""Blocks of small objects a request, from which growth is told."""
RESIDENT = 24 * 1024.0
"""The same in bytes of resident memory, for what is no small object."""
SUSTAINED = 0.75
"""Of its first rate, what a growth keeps that is no filling cache."""


def list_rates(looks: list[Look]) -> tuple[list[float], list[float]]:
    """Return the growth between each look and the next: (blocks a request, bytes resident a request)."""
    blocks, resident = [], []
    for (run1, blocks1, bytes1), (run2, blocks2, bytes2) in pairwise(looks):
        blocks.append((blocks2 - blocks1) / (run2 - run1))
        resident.append((bytes2 - bytes1) / (run2 - run1))
    return blocks, resident


def is_growing(looks: list[Look]) -> bool:
    """True when there are three looks at least and every rate is what the first one was, about."""
    return len(looks) > 2 and any(
        min(rates) >= least and min(rates) >= SUSTAINED * rates[0]
        for rates, least in zip(list_rates(looks), (BLOCKS, RESIDENT), strict=True)
    )


def measure_growth(looks: list[Look]) -> float:
    """Return bytes a request; 0 for no growth, or when it was not looked for to the end."""
    if len(looks) < len(PARTS) or not is_growing(looks):
        return 0.0
    blocks, resident = list_rates(looks)
    return max(min(resident), 64 * min(blocks))
