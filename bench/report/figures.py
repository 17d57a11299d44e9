"""Numbers as people read them. Knows no results: a figure and its unit in, a short text out."""

from __future__ import annotations

from bench.stats import Interval, Spread


def significant(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits and thousands marked: ``12,300``, ``4.59``, ``0.411``."""
    if value == 0:
        return "0"
    if abs(value) >= 10**digits:
        size = len(str(int(abs(value))))
        return f"{round(value, digits - size):,.0f}"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    places = digits - whole
    if whole == 0:
        text = f"{abs(value):.10f}"[2:]
        places += len(text) - len(text.lstrip("0"))
    return f"{value:.{max(places, 0)}f}"


def plain(value: float) -> str:
    """Return a round number without decimals that say nothing: ``0.5``, ``1``, ``30``, ``10,000``."""
    return f"{value:,.0f}" if value >= 1 else f"{value:.10f}".rstrip("0")


def show_ratio(interval: Interval | None) -> str:
    """Return a ratio with its interval: ``25.4 (24.1 to 26.0)``; ``-`` for none."""
    if interval is None:
        return "-"
    return f"{significant(interval.median)} ({significant(interval.low)} to {significant(interval.high)})"


def show_spread(spread: Spread | None) -> str:
    """Return half the interquartile range as a percentage of the median: ``±1.2 %``; ``-`` for none."""
    return "-" if spread is None else f"±{100 * spread.relative / 2:.1f} %"
