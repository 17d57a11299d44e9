"""The samples of a few contenders one after the other: what happens every so many requests shows here, as a dip.

Every sample counts, also one that was discarded for the figures: its requests were answered all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.report.document import Block, Drawing, Section, Words
from bench.report.figures import significant
from bench.report.page import both
from bench.report.svg import Line, draw_lines
from bench.report.words import join
from bench.results import Run, Sample
from bench.stats import median
from bench.summary import sample_rate

DIP = 0.8
"""Part of the median below which a sample is called a dip."""
DRAWN = 1.5
"""Part of the median up to which a sample is drawn: what is asked is where it falls."""
NOTE = (
    "Each sample's rate as a part of the contender's median, by the requests that it had answered until then, those of "
    f"discarded samples among them. What is above {DRAWN:g} is drawn there."
)
MANY = 12


def list_points(samples: Sequence[Sample]) -> tuple[tuple[float, float], ...]:
    """Return (requests answered at its end, rate as a part of the median) of each sample, in the order of time."""
    ordered = sorted(samples, key=lambda sample: (sample.at, sample.round))
    middle = median([sample_rate(sample) for sample in ordered])
    points, answered = [], 0
    for sample in ordered:
        answered += sample.requests
        points.append((float(answered), sample_rate(sample) / middle))
    return tuple(points)


def tell_dips(label: str, points: Sequence[tuple[float, float]]) -> str:
    """Return where a contender's samples dip, in words."""
    dips = [(answered, value) for answered, value in points if value < DIP]
    whole = f"{label}: {len(dips)} of {len(points)} samples below {DIP:g} of the median"
    if not dips:
        return f"{whole}."
    places = join([f"{answered:,.0f}" for answered, _ in dips[:MANY]]) + (" and on" if len(dips) > MANY else "")
    deepest = min(value for _, value in dips)
    return f"{whole}, at {places} requests; the deepest at {significant(deepest)} of it."


def make_series(run: Run, title: str, case: str, names: Sequence[str]) -> Section:
    """Return a section with a line for each contender and a sentence on its dips."""
    labels = {contender.name: contender.label for contender in run.contenders}
    lines, words = [], []
    for number, name in enumerate(names):
        samples = [s for s in run.samples if s.contender == name and s.scenario == case and s.requests]
        if len(samples) > 1:
            points = list_points(samples)
            drawn = tuple((answered, min(value, DRAWN)) for answered, value in points)
            lines.append(Line(labels[name], drawn, f"s{number % 8}"))
            words.append(tell_dips(labels[name], points))
    if not lines:
        return Section(title, (Words(("Fewer than two samples: there is nothing to draw.",)),))
    unit = "requests answered so far"
    blocks: list[Block] = [Drawing(both(draw_lines, lines, unit, f"{title}: {unit}"), NOTE), Words(tuple(words))]
    return Section(title, tuple(blocks))
