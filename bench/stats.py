"""Statistics of alternating rounds: medians, spreads, paired ratios and their intervals, percentiles of latencies.

Pure. Knows numbers only: nothing of modes, servers or units. Everything is computed when a result is read, so that a
kept file can be judged again by better rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
DIGITS = 3

Histogram = Sequence[Sequence[int]]
"""Pairs (value, how many), values ascending."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with what lies around it: quartiles, and the least and greatest value."""

    median: float
    low: float
    high: float
    least: float
    greatest: float
    count: int

    @property
    def relative(self) -> float:
        """The interquartile range as a part of the median; 0.0 for a median of zero."""
        return (self.high - self.low) / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Interval:
    """A median and the interval that holds the true one with ``CONFIDENCE``."""

    median: float
    low: float
    high: float


def quantile(values: Sequence[float], part: float) -> float:
    """Return the value below which ``part`` (0 to 1) of ``values`` lie, interpolated; raise ``ValueError`` for none."""
    if not values:
        raise ValueError("no values")
    if not 0 <= part <= 1:
        raise ValueError(f"a part is between 0 and 1, not {part}")
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def median(values: Sequence[float]) -> float:
    """Return the middle value; raise ``ValueError`` for none."""
    return quantile(values, 0.5)


def spread(values: Sequence[float]) -> Spread:
    """Return the median, the quartiles and the extremes; raise ``ValueError`` for none."""
    return Spread(median(values), quantile(values, 0.25), quantile(values, 0.75), min(values), max(values), len(values))


def paired_ratios(values: Mapping[int, float], base: Mapping[int, float]) -> list[float]:
    """Return value / base of each round that both have, by round; those with a base of zero are left out.

    Pairing by round is what makes a ratio steadier than the two figures it comes from: what slows a whole round down
    slows both.
    """
    return [values[key] / base[key] for key in sorted(values) if base.get(key)]


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median and the interval between two of the values that holds the true one with ``CONFIDENCE``.

    Exact and free of any assumption on how the values are spread: that more than half of independent values fall on one
    side of their true median is as likely as with a coin. Up to eight values it reaches from the least to the greatest,
    and with fewer than six it holds the median a little less often (five: 93.75 %). Raise ``ValueError`` for none.
    """
    middle, ordered = median(values), sorted(values)
    place = find_place(len(ordered))
    return Interval(middle, ordered[place], ordered[-1 - place])


def find_place(size: int) -> int:
    """Return how many of ``size`` values lie outside of the interval of their median, on each side."""
    outside, place = 0.0, 0
    while (outside := outside + math.comb(size, place) / 2**size) <= (1 - CONFIDENCE) / 2:
        place += 1
    return max(place - 1, 0)


def round_to_digits(value: int, digits: int = DIGITS) -> int:
    """Return a non-negative whole number rounded to ``digits`` significant digits."""
    extra = len(str(value)) - digits
    return round(value, -extra) if extra > 0 else value


def count_values(values: Iterable[int]) -> list[list[int]]:
    """Return a histogram of whole numbers, each kept to ``DIGITS`` significant digits (half a percent off at most)."""
    counts: dict[int, int] = {}
    for value in values:
        key = round_to_digits(value)
        counts[key] = counts.get(key, 0) + 1
    return [[value, counts[value]] for value in sorted(counts)]


def merge_histograms(histograms: Iterable[Histogram]) -> list[list[int]]:
    """Return one histogram of all the values of many."""
    counts: dict[int, int] = {}
    for histogram in histograms:
        for value, count in histogram:
            counts[value] = counts.get(value, 0) + count
    return [[value, counts[value]] for value in sorted(counts)]


def percentile(histogram: Histogram, percent: float) -> int:
    """Return the least value that ``percent`` of a histogram's values do not exceed (as ``ab`` counts: nearest rank).

    Raise ``ValueError`` for an empty histogram.
    """
    total = sum(count for _, count in histogram)
    if not total:
        raise ValueError("no values")
    wanted = percent / 100 * total
    seen = 0
    for value, count in histogram:
        seen += count
        if seen >= wanted:
            return value
    return histogram[-1][0]
