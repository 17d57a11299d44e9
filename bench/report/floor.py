"""The report of the floor comparison: CPU a request in each scenario, ratios to the floor, verdicts on the targets.

Knows a run; measures nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from bench.report import page
from bench.report.figures import show_ratio, significant
from bench.report.svg import draw_bars
from bench.report.words import join, tell_doubts
from bench.results import Run, Scenario
from bench.stats import Interval
from bench.summary import UNSTABLE, Row, counted, pair, sample_cpu, summarise

FLOOR = "floor"


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on a contender's CPU a request, as a part of another's."""

    name: str
    of: str
    most: float

    def describe(self) -> str:
        """Return the goal in words."""
        return f"{self.name} at most {self.most:g} times {self.of}"


GOALS = (
    Goal("wsgi", FLOOR, 1.6),
    Goal("handler", FLOOR, 1.3),
    Goal("wsgi", "gunicorn-sync", 0.25),
    Goal("handler", "gunicorn-sync", 0.25),
)


def judge_goal(goal: Goal, ratio: Interval | None) -> str:
    """Return ``met``, ``missed``, ``open`` (the bound lies within the interval), or ``not measured``."""
    if ratio is None:
        return "not measured"
    if ratio.high <= goal.most:
        return "met"
    return "missed" if ratio.low > goal.most else "open"


def find_verdicts(run: Run) -> list[tuple[Scenario, Goal, Interval | None, str]]:
    """Return every goal in every scenario with the ratio found and the verdict."""
    verdicts = []
    failed = {contender.name for contender in run.contenders if contender.failed}
    for scenario in run.scenarios:
        for goal in GOALS:
            mine, other = counted(run, goal.name, scenario), counted(run, goal.of, scenario)
            ratio = None if {goal.name, goal.of} & failed else pair(mine, other, sample_cpu)
            verdicts.append((scenario, goal, ratio, judge_goal(goal, ratio)))
    return verdicts


HEADINGS = ("server", "CPU µs/request", "middle half", "times floor (95 %)", "requests/s", "p99 ms")


def scenario_cells(run: Run, scenario: Scenario) -> list[tuple[Row, list[str]]]:
    """Return the rows of one scenario, the cheapest first, with their cells; failed ones have only a name."""
    rows = summarise(run, scenario, FLOOR)
    rows.sort(key=lambda row: row.cpu.median if row.cpu else float("inf"))
    return [(row, row_cells(row)) for row in rows]


def row_cells(row: Row) -> list[str]:
    """Return one row's cells."""
    if row.cpu is None or row.rate is None:
        return [row.contender.label]
    return [
        row.contender.label + (" *" if row.cpu.relative > UNSTABLE else ""),
        significant(row.cpu.median),
        f"{significant(row.cpu.low)} to {significant(row.cpu.high)}",
        "1" if row.name == FLOOR else show_ratio(row.cpu_ratio),
        significant(row.rate.median),
        significant(row.percentiles[99]) if 99 in row.percentiles else "-",
    ]


def verdict_lines(run: Run) -> list[str]:
    """Return the verdicts as lines of text."""
    return [
        f"{verdict:<13} {goal.describe():<40} {scenario.name:<11} {show_ratio(ratio)}"
        for scenario, goal, ratio, verdict in find_verdicts(run)
    ]


def memory_line(run: Run) -> str:
    """Return the worker's memory of each server."""
    known = [(c.label, max(c.memory) / (1 << 20)) for c in run.contenders if c.memory]
    return "memory of the worker, PSS: " + ", ".join(f"{label} {size:.1f} MiB" for label, size in known)


def doubts(run: Run) -> list[str]:
    """Return what speaks against the figures, each once."""
    unrest = []
    for scenario in run.scenarios:
        wide = [
            f"{row.name} {100 * row.cpu.relative:.0f} %"
            for row in summarise(run, scenario, FLOOR)
            if row.cpu and row.cpu.relative > UNSTABLE
        ]
        if wide:
            unrest.append(f"{scenario.name}: the middle half of the rounds differs in CPU by {join(wide)}.")
    return [*unrest, *tell_doubts(run, [])]


def format_text(run: Run) -> str:
    """Return the tables, the verdict and the doubts as text."""
    lines = []
    for scenario in run.scenarios:
        cells = scenario_cells(run, scenario)
        full = [HEADINGS, *(row for _, row in cells if len(row) > 1)]
        widths = [max(len(row[i]) for row in full) for i in range(len(HEADINGS))]
        widths[0] = max(widths[0], *(len(row[0]) for _, row in cells))
        lines += [f"{scenario.name}: {scenario.describe()}", align(HEADINGS, widths)]
        lines += [
            align(row, widths) if len(row) > 1 else f"{row[0]:<{widths[0]}}  FAILED: {figures.failed}"
            for figures, row in cells
        ]
        lines.append("")
    return "\n".join([*lines, memory_line(run), "", "verdict:", *verdict_lines(run), "", *doubts(run)]).rstrip()


def align(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return one line: the first cell to the left, the others to the right."""
    return "  ".join(f"{c:<{w}}" if i == 0 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, widths, strict=True)))


def html_scenario(run: Run, scenario: Scenario) -> str:
    """Return one scenario's section: drawing and table."""
    cells = scenario_cells(run, scenario)
    styles = page.order_styles(contender.name for contender in run.contenders)
    unit = "microseconds of server CPU a request (less is better)"
    bars = page.both(draw_bars, page.cpu_bars([row for row, _ in cells], styles), unit, unit)
    heads = "".join(f"<th scope=col>{escape(heading)}</th>" for heading in HEADINGS)
    lines = []
    for row, texts in cells:
        name = f"<th scope=row>{escape(texts[0])}</th>"
        if row.failed:
            lines.append(f"<tr class=failed>{name}<td colspan=5>failed: {escape(row.failed)}</td></tr>")
            continue
        figures = zip(HEADINGS[1:], texts[1:], strict=True)
        texts = [
            f'<td data-label="{escape(heading)}"{page.wide(text)}>{escape(text)}</td>' for heading, text in figures
        ]
        lines.append(f"<tr>{name}{''.join(texts)}</tr>")
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return page.section(f"{scenario.name}: {scenario.describe()}", bars, table)


def html_verdicts(run: Run) -> str:
    """Return the verdicts as a table."""
    heads = "".join(f"<th scope=col>{escape(text)}</th>" for text in ("target", "scenario", "verdict", "found (95 %)"))
    lines = []
    for scenario, goal, ratio, verdict in find_verdicts(run):
        style = {"met": ' class="good"', "missed": ' class="bad"'}.get(verdict, "")
        lines.append(
            f"<tr><th scope=row>{escape(goal.describe())}</th><td data-label=scenario>{escape(scenario.name)}</td>"
            f"<td data-label=verdict{style}>{verdict}</td>"
            f"<td data-label=found class=full>{escape(show_ratio(ratio))}</td></tr>"
        )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def format_floor(run: Run) -> str:
    """Return the report as one HTML page."""
    lead = (
        f"The server's CPU for one page of {run.page.get('length')} bytes, one worker each, against the least that a "
        f"pure-Python server can use: a loop that checks, limits and times out nothing."
    )
    return page.format_page(
        "What the modes cost above the floor",
        lead,
        [
            page.section("Verdict", html_verdicts(run)),
            *(html_scenario(run, scenario) for scenario in run.scenarios),
            page.section("Memory", page.paragraphs([memory_line(run) + "."])),
            page.section("Doubts", page.paragraphs(doubts(run))),
            page.section("How it was measured", page.definition_list(page.machine_rows(run))),
        ],
    )
