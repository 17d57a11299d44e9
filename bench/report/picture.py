"""One drawing of a report as an SVG file of its own, to be shown on other pages: light and dark, nothing fetched."""

from __future__ import annotations

import re

from bench.report.comparison import cpu_bars, style_groups
from bench.report.page import WIDE, read_style
from bench.report.svg import draw_bars, text
from bench.results import Run
from bench.summary import summarise

HEADING = 56
"""Pixels above the drawing for its two lines of heading."""
UNIT = "microseconds of server CPU a request, on a logarithmic scale (less is better)"


def format_picture(run: Run, name: str) -> str:
    """Return the CPU a request of everybody in a case, as an SVG file. Raise ``ValueError`` for a case that is none."""
    if run.kind != "scenario":
        raise ValueError(f"only results of scenario files have such a picture, and this is {run.kind}")
    scenario = next((scenario for scenario in run.scenarios if scenario.name == name), None)
    if scenario is None:
        raise ValueError(f"there is no case {name!r}; there are {', '.join(s.name for s in run.scenarios)}")
    rows = summarise(run, scenario, scenario.base)
    title, date = run.plan["title"], str(run.machine.get("date", ""))[:10]
    drawing = draw_bars(cpu_bars(rows, style_groups(run)), UNIT, f"{title}: {scenario.title}", WIDE, "picture")
    return stand_alone(drawing, (title, f"{scenario.title}; {scenario.describe()}; {date}"))


def stand_alone(drawing: str, heading: tuple[str, str]) -> str:
    """Return an inline drawing as a file, with two lines above it."""
    found = re.match(r'<svg class="picture" viewBox="0 0 (\S+) (\S+)" width="\S+" height="\S+"(.*?)>\n', drawing)
    assert found is not None
    width, height = float(found[1]), float(found[2]) + HEADING
    words = text(0, 18, heading[0], "heading") + text(0, 38, heading[1], "tick")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 -8 {width + 32:g} {height + 16:g}" '
        f'width="{width + 32:g}" height="{height + 16:g}"{found[3]}>\n<style>{read_style()}'
        "svg { margin: 0; background: var(--paper); } svg .heading { font-size: 15px; font-weight: 600; }\n</style>\n"
        f'{words}\n<g transform="translate(0 {HEADING})">\n{drawing[found.end() :].replace("</svg>", "</g>")}\n</svg>\n'
    )
