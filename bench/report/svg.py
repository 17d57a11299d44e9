"""Drawings as inline SVG: bars on a logarithmic axis, and latencies over percentiles. Pure; knows no results.

Colours are CSS classes, so that the page decides them for light, dark and paper. Every text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from bench.report.figures import plain, significant

LINE = 15
"""Pixels between the base lines of two texts."""
LETTER = 8.4
WIDTHS = {**dict.fromkeys("mwMW@%", 12.8), **dict.fromkeys("ijlI|.,:;'()[]/ ", 5.2), **dict.fromkeys("frt-", 6.2)}
"""Pixels that a letter takes at most in a wide font: most of them, and those that differ."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its value, least and greatest round; ``mark``: where 2008 would put it; ``note`` replaces a bar."""

    label: str
    value: float = 0.0
    low: float = 0.0
    high: float = 0.0
    mark: float | None = None
    note: str = ""
    style: str = "s0"


@dataclass(frozen=True, slots=True)
class Ratio:
    """One ratio with its interval; ``mark``: the original's."""

    label: str
    value: float
    low: float
    high: float
    mark: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A value over time: points (time, value); ``named``: whether its name stands beside it."""

    label: str
    points: tuple[tuple[float, float], ...]
    style: str = "s0"
    named: bool = True


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis from ``low`` to ``high`` over ``start`` to ``end`` pixels."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return the pixel of a positive value, within the axis."""
        part = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return round(self.start + (self.end - self.start) * min(part, 1.0), 1)

    def ticks(self) -> list[float]:
        """Return the decades on the axis; with few of them, 2 and 5 of each as well."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if last - first <= 2 else (1, 3) if last - first <= 4 else (1,)
        values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]


def fit_axis(values: Sequence[float], start: float, end: float, room: float = 1.15) -> Axis:
    """Return an axis that holds all positive values, with a little room; from 1 to 10 when there are none."""
    known = [value for value in values if value > 0]
    if not known:
        return Axis(1, 10, start, end)
    low, high = min(known) / room, max(known) * room
    return Axis(low, max(high, low * 2), start, end)


def text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    """Return one text element."""
    kind = f' class="{style}"' if style else ""
    place = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:g}" y="{y:g}"{kind}{place}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """Return one line element."""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{style}"/>'


def rectangle(x: float, y: float, width: float, height: float, style: str) -> str:
    """Return one filled rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{style}"/>'


def frame(width: float, height: float, title: str, parts: Sequence[str], style: str) -> str:
    """Return the whole drawing; ``title`` is what a screen reader says."""
    body = "\n".join(parts)
    return (
        f'<svg class="{style}" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
        f'aria-label="{escape(title)}">\n{body}\n</svg>'
    )


MANY = 12
"""Bars from which on they stand closer together."""


def fit_names(names: Sequence[str], least: int) -> int:
    """Return the pixels that names beside a drawing take."""
    return max(least, round(max(map(measure_text, names), default=0)) + 16)


def measure_text(words: str) -> float:
    """Return the pixels that a text takes at most."""
    return sum(WIDTHS.get(letter, LETTER) for letter in words)


def shorten(name: str, pixels: float) -> str:
    """Return a name that fits into so many pixels, with an ellipsis where it is cut."""
    if measure_text(name) <= pixels:
        return name
    while name and measure_text(name) > pixels - LETTER:
        name = name[:-1]
    return name.rstrip() + "…"


def label_tick(x: float, y: float, words: str, width: float) -> str:
    """Return the text below an axis at ``x``, which ends at the drawing's edge if it would lie beyond."""
    half = measure_text(words) / 2
    return text(min(x, width - half), y, words, "tick", "middle")


def label_axis(left: float, right: float, y: float, words: str, width: float) -> str:
    """Return what an axis is about, below its middle, within the drawing."""
    words = shorten(words, width - 8)
    half = measure_text(words) / 2
    return text(min(max((left + right) / 2, half), width - half), y, words, "axis", "middle")


def draw_bars(bars: Sequence[Bar], unit: str, title: str, width: int, style: str) -> str:
    """Return horizontal bars, one a row, with whiskers and marks.

    Below 500 pixels a bar's name stands above it instead of before it.
    """
    narrow = width < 500
    room = fit_names([bar.label for bar in bars], 124)
    left, right, top, step = (8, 16, 8, 46) if narrow else (room, 84, 8, 34 if len(bars) < MANY else 24)
    values = [v for bar in bars if not bar.note for v in (bar.low, bar.value, bar.high, bar.mark or 0)]
    known = [v for v in values if v > 0]
    axis = fit_axis([*known, min(known) / 2] if known else [], left, width - right)
    bottom = top + step * len(bars)
    parts = []
    for tick in axis.ticks():
        x = axis.place(tick)
        parts += [line(x, top, x, bottom, "grid"), label_tick(x, bottom + LINE, plain(tick), width)]
    for number, bar in enumerate(bars):
        parts += draw_bar(bar, axis, top + step * number, step, width, narrow)
    parts.append(label_axis(left, width - right, bottom + 2 * LINE + 3, unit, width))
    return frame(width, bottom + 2 * LINE + 10, title, parts, style)


def draw_bar(bar: Bar, axis: Axis, y: float, step: float, width: int, narrow: bool) -> list[str]:
    """Return one row of a bar chart."""
    height = 16.0
    up = y + (22 if narrow else (step - height) / 2)
    middle = up + height / 2
    parts = [
        text(axis.start, y + 17, shorten(bar.label, width - 90))
        if narrow
        else text(axis.start - 8, middle + 4, bar.label, "", "end")
    ]
    if bar.note:
        parts.append(text(axis.start + 4, middle + 4, bar.note, "failed"))
        return parts
    end, low, high = axis.place(bar.value), axis.place(bar.low), axis.place(bar.high)
    parts += [
        rectangle(axis.start, up, max(end - axis.start, 1), height, f"{bar.style} fill"),
        line(low, middle, high, middle, "whisker"),
        line(low, middle - 4, low, middle + 4, "whisker"),
        line(high, middle - 4, high, middle + 4, "whisker"),
    ]
    if bar.mark:
        x = axis.place(bar.mark)
        parts.append(f'<path d="M{x:g} {middle - 7:g} l6 7 l-6 7 l-6 -7 z" class="mark"/>')
    words = significant(bar.value)
    parts.append(text(width - 8, y + 17 if narrow else middle + 4, words, "value", "end"))
    return parts


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a whole: its name, what it comes to, and its colour."""

    label: str
    value: float
    style: str = "s0"


def draw_stack(parts: Sequence[Part], unit: str, title: str, width: int, style: str) -> str:
    """Return one bar made of parts, on a plain scale from zero, and their names and values below in its order."""
    left, right, height, top = 8, 8, 34, 8
    whole = sum(part.value for part in parts) or 1.0
    drawn, x, y = [], float(left), top + height + 2 * LINE
    for part in parts:
        span = (width - left - right) * part.value / whole
        drawn.append(rectangle(round(x, 1), top, round(max(span - 1, 0.5), 1), height, f"{part.style} fill"))
        x += span
    drawn.append(text(width - right, top + height + LINE, f"{significant(whole)} {unit}", "axis", "end"))
    for part in parts:
        share = f"{significant(part.value)}  ({100 * part.value / whole:.0f} %)"
        drawn += [
            rectangle(left, y - 10, 12, 12, f"{part.style} fill"),
            text(left + 20, y, shorten(part.label, width - 150)),
            text(width - right, y, share, "value", "end"),
        ]
        y += LINE + 6
    return frame(width, y, title, drawn, style)


def spread_labels(wanted: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Return places near the wanted ones, in their order, at least ``gap`` apart and within the bounds if they fit."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = [0.0] * len(wanted)
    last = top - gap
    for i in order:
        places[i] = last = max(wanted[i], last + gap)
    edge = bottom + gap
    for i in reversed(order):
        places[i] = edge = min(places[i], edge - gap)
    return places


def draw_latencies(
    series: Sequence[tuple[str, str, Mapping[int, float]]], unit: str, title: str, width: int, style: str
) -> str:
    """Return a line for each (name, style, percent -> value): the value that so many percent did not exceed."""
    narrow = width < 500
    names = fit_names([name for name, _, _ in series], 78)
    left, right, top, height = (40, min(names, 136), 10, 300) if narrow else (56, max(names, 104), 10, 320)
    percents = sorted({percent for _, _, values in series for percent in values})
    axis = fit_axis([v for _, _, values in series for v in values.values()], top + height, top)
    parts = []
    for tick in axis.ticks():
        y = axis.place(tick)
        parts += [line(left, y, width - right, y, "grid"), text(left - 6, y + 4, plain(tick), "tick", "end")]
    span = (width - right - left) / max(len(percents) - 1, 1)
    across = {percent: left + span * i for i, percent in enumerate(percents)}
    for i, percent in enumerate(percents):
        if not narrow or i % 2 == 0:
            parts.append(text(across[percent], top + height + LINE, f"{percent} %", "tick", "middle"))
    ends = [axis.place(values[percents[-1]]) for _, _, values in series]
    places = spread_labels(ends, LINE, top + 4, top + height)
    for (name, kind, values), place in zip(series, places, strict=True):
        points = " ".join(f"{across[p]:g},{axis.place(values[p]):g}" for p in percents if p in values)
        parts.append(f'<polyline points="{points}" class="{kind} stroke"/>')
        parts.append(text(width - right + 8, place + 4, shorten(name, right - 12), f"{kind} name"))
    parts.append(label_axis(left, width - right, top + height + 2 * LINE + 4, unit, width))
    return frame(width, top + height + 2 * LINE + 12, title, parts, style)


def draw_ratios(ratios: Sequence[Ratio], unit: str, title: str, width: int, style: str) -> str:
    """Return a dot with its interval for each ratio, and a diamond where the original's is."""
    narrow = width < 500
    room = fit_names([ratio.label for ratio in ratios], 124)
    left, right, top, step = (12, 24, 8, 40) if narrow else (room, 84, 8, 28)
    axis = fit_axis([v for r in ratios for v in (r.low, r.high, r.mark or r.value)], left, width - right, 1.2)
    bottom = top + step * len(ratios)
    parts = []
    for tick in axis.ticks():
        x = axis.place(tick)
        parts += [line(x, top, x, bottom, "grid"), label_tick(x, bottom + LINE, plain(tick), width)]
    for number, ratio in enumerate(ratios):
        y = top + step * number
        middle = y + (28 if narrow else step / 2)
        low, high = axis.place(ratio.low), axis.place(ratio.high)
        parts += [
            text(left, y + 15, shorten(ratio.label, width - left - 110))
            if narrow
            else text(left - 10, middle + 4, ratio.label, "", "end"),
            line(left, middle, width - right, middle, "grid"),
            line(low, middle, high, middle, "whisker"),
            f'<circle cx="{axis.place(ratio.value):g}" cy="{middle:g}" r="4.5" class="dot"/>',
        ]
        if ratio.mark:
            x = axis.place(ratio.mark)
            parts.append(f'<path d="M{x:g} {middle - 7:g} l6 7 l-6 7 l-6 -7 z" class="mark hollow"/>')
        shown = significant(ratio.value) + (f" / {significant(ratio.mark)}" if ratio.mark else "")
        parts.append(text(width - 8, y + 15 if narrow else middle + 4, shown, "value", "end"))
    parts.append(label_axis(left, width - right, bottom + 2 * LINE + 3, unit, width))
    return frame(width, bottom + 2 * LINE + 10, title, parts, style)


def draw_lines(lines: Sequence[Line], unit: str, title: str, width: int, style: str) -> str:
    """Return values around 1 over time, on a plain scale; names stand at the right of the lines that have one."""
    narrow = width < 500
    named = [item for item in lines if item.named][:STEADY_NAMES]
    right = min(fit_names([item.label for item in named], 16), 136 if narrow else 240)
    left, top, height = 40, 10, 150
    low = min(value for item in lines for _, value in item.points)
    high = max(value for item in lines for _, value in item.points)
    low, high = min(low, 0.9) - 0.02, max(high, 1.1) + 0.02
    begin = min(moment for item in lines for moment, _ in item.points)
    end = max(moment for item in lines for moment, _ in item.points)

    def across(moment: float) -> float:
        return round(left + (width - right - left) * (moment - begin) / ((end - begin) or 1), 1)

    def up(value: float) -> float:
        return round(top + height * (high - value) / (high - low), 1)

    parts = []
    for tick in choose_ticks(low, high):
        parts += [
            line(left, up(tick), width - right, up(tick), "grid"),
            text(left - 6, up(tick) + 4, f"{tick:g}", "tick", "end"),
        ]
    for item in lines:
        points = " ".join(f"{across(moment):g},{up(value):g}" for moment, value in item.points)
        parts.append(f'<polyline points="{points}" class="{item.style} stroke {"" if item.named else "faint"}"/>')
    places = spread_labels([up(item.points[-1][1]) for item in named], LINE, top + 4, top + height)
    for item, place in zip(named, places, strict=True):
        parts.append(text(width - right + 8, place + 4, shorten(item.label, right - 12), f"{item.style} name"))
    for moment in (begin, end):
        anchor = "start" if moment == begin else "end"
        parts.append(text(across(moment), top + height + LINE, f"{moment:,.1f}".removesuffix(".0"), "tick", anchor))
    parts.append(label_axis(left, width - right, top + height + 2 * LINE, unit, width))
    return frame(width, top + height + 2 * LINE + 8, title, parts, style)


STEADY_NAMES = 9
"""Names that have room beside a drawing of lines."""


def choose_ticks(low: float, high: float) -> list[float]:
    """Return round values between two bounds, five or so."""
    size = 10 ** math.floor(math.log10(high - low))
    step = next(step for step in (0.1 * size, 0.2 * size, 0.5 * size, size, 2 * size) if (high - low) / step <= 6)
    first = math.ceil(low / step)
    return [round(step * i, 6) for i in range(first, math.floor(high / step) + 1)]
