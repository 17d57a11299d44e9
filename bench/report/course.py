"""A drawing of values over time, on linear axes from zero. Pure; knows nothing of where the values come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.report.svg import LINE, frame, line, spread_labels, text

Points = Sequence[tuple[float, float]]
_STEPS = (1, 2, 5)


def plan_ticks(most: float, count: int) -> list[float]:
    """Return round values from 0 up to at least ``most``, about ``count`` of them."""
    most = most if most > 0 else 1.0
    step = 10.0**-9
    while most / step > count:
        step = next_step(step)
    ticks = [0.0]
    while ticks[-1] < most:
        ticks.append(round(ticks[-1] + step, 12))
    return ticks


def next_step(step: float) -> float:
    """Return the round number after ``step``: 1, 2, 5, 10, 20 ..."""
    power = 10.0**-9
    while power * 10 <= step * 1.001:
        power *= 10
    place = next(i for i, factor in enumerate(_STEPS) if step <= power * factor * 1.001)
    return power * _STEPS[place + 1] if place + 1 < len(_STEPS) else power * 10


def draw_course(
    lines: Mapping[str, Points], bounds: Mapping[str, float], unit: str, title: str, width: int, style: str
) -> str:
    """Return a stepped line for each name -> (seconds, value) pairs, and a dashed line across for each bound."""
    narrow = width < 500
    left, right, top, height = (40, 82, 10, 240) if narrow else (56, 110, 10, 260)
    values = [value for points in lines.values() for _, value in points] + list(bounds.values())
    ends = [seconds for points in lines.values() for seconds, _ in points]
    up, along = plan_ticks(max(values, default=1), 6), plan_ticks(max(ends, default=1), 5 if narrow else 9)

    def place(seconds: float, value: float) -> tuple[float, float]:
        x = left + (width - right - left) * seconds / along[-1]
        return round(x, 1), round(top + height - height * max(value, 0.0) / up[-1], 1)

    parts = []
    for tick in up:
        y = place(0, tick)[1]
        parts += [line(left, y, width - right, y, "grid"), text(left - 6, y + 4, f"{tick:g}", "tick", "end")]
    parts += [text(place(tick, 0)[0], top + height + LINE, f"{tick:g}", "tick", "middle") for tick in along]
    for value in bounds.values():
        y = place(0, value)[1]
        parts.append(f'<path d="M{left:g} {y:g} H{width - right:g}" class="whisker" stroke-dasharray="4 4"/>')
    names = [*lines, *bounds]
    last = [place(0, points[-1][1] if points else 0.0)[1] for points in lines.values()]
    wanted = [*last, *(place(0, value)[1] for value in bounds.values())]
    places = spread_labels(wanted, LINE, top + 4, top + height)
    for number, (points, label) in enumerate(zip([*lines.values(), *([] for _ in bounds)], places, strict=True)):
        kind = f"s{number % 8}" if number < len(lines) else ""
        if points:
            parts.append(f'<path d="{format_steps([place(*point) for point in points])}" class="{kind} stroke"/>')
        parts.append(text(width - right + 8, label + 4, names[number], f"{kind} name" if kind else "tick"))
    parts.append(text((left + width - right) / 2, top + height + 2 * LINE + 4, f"{unit}; seconds", "axis", "middle"))
    return frame(width, top + height + 2 * LINE + 12, title, parts, style)


def format_steps(points: Sequence[tuple[float, float]]) -> str:
    """Return a path that keeps each height until the next point."""
    first, *rest = points
    return f"M{first[0]:g} {first[1]:g}" + "".join(f"H{x:g}V{y:g}" for x, y in rest)
