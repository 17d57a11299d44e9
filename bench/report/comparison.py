"""The report of a comparison from a scenario file: its cases, its ladders, and whether the original is reproduced.

Knows a run and what it is drawn with; measures nothing and decides nothing that is not in ``ladders`` or ``summary``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bench.goals import Verdict, judge_goals
from bench.ladders import Judged, Rung, judge_ladders
from bench.report.document import Block, Document, Drawing, Facts, Section, Table, Words
from bench.report.figures import show_ratio, show_spread, significant
from bench.report.findings import tell_agreement, tell_briefly, tell_original, tell_run
from bench.report.page import both, machine_rows
from bench.report.series import make_series
from bench.report.svg import Bar, Line, Ratio, draw_bars, draw_latencies, draw_lines, draw_ratios
from bench.report.words import tell_doubts
from bench.results import Run, Scenario
from bench.stats import median
from bench.summary import Row, counted, sample_rate, summarise

NONE = "-"
STYLES = 8
BARS = "Medians of the rounds on a logarithmic scale; whiskers reach from the slowest to the fastest round."
LATENCY = (
    "How long a request took at most, for so many percent of them, as ab prints it: all counted rounds together, "
    "milliseconds on a logarithmic scale."
)
STEADY = (
    "Each round's rate as a part of the contender's median, over the minutes of the run: what moves together was the "
    "machine's doing. Names stand where a round was more than a tenth off."
)
THEN = (("then", "the original's"), ("ratio then", ""), ("agree?", ""))
RATIOS = "Dots are the medians of the ratios within each round, with their 95 % intervals, on a logarithmic scale."
DIAMOND = " A diamond is the original's ratio."
STAR = "* unstable: see the doubts."


def style_groups(run: Run) -> dict[str, str]:
    """Return contender -> the style of its group."""
    groups = list(dict.fromkeys(contender.group for contender in run.contenders))
    return {contender.name: f"s{groups.index(contender.group) % STYLES}" for contender in run.contenders}


def make_document(run: Run) -> Document:
    """Return the report of a run."""
    plan, ladders = run.plan, judge_ladders(run)
    cases = [make_case(run, scenario) for scenario in run.scenarios]
    return Document(
        plan["title"],
        plan["lead"],
        (
            Section("In short", (*brief_tables(run, ladders), *missing_words(run))),
            *(make_ladder(ladder) for ladder in ladders),
            *(make_series(run, row["title"], row["case"], row["contenders"]) for row in plan.get("series", ())),
            *(section for section in cases if section.blocks),
            Section("Memory", (memory_table(run),), brief=False),
            Section("How the servers were started", (command_facts(run),), brief=False),
            Section("Doubts", (Words((*find_unrest(run), *tell_doubts(run, []))),)),
            Section("How it was measured", (Facts(tuple(fact_rows(run))),), brief=False),
            Section("What these numbers do not show", (Words(tuple(plan["shows_not"])),), brief=False),
            Section("What the original found", (Words((*plan["found"], *tell_all(ladders, tell_original))),)),
            Section("What this run found", (Words(tell_all(ladders, tell_run)),), brief=False),
            Section("Do they agree?", (Words(tuple(tell_agreement(ladders))),) if ladders else ()),
        ),
    )


def tell_all(ladders: Sequence[Judged], tell: object) -> tuple[str, ...]:
    """Return what a teller says of every ladder, nothing twice."""
    assert callable(tell)
    return tuple(dict.fromkeys(sentence for ladder in ladders for sentence in tell(ladder)))


def brief_tables(run: Run, ladders: Sequence[Judged]) -> list[Block]:
    """Return the verdicts on goals and on ladders, where there are some."""
    goals = judge_goals(run)
    return [*([goal_table(goals)] if goals else []), *([brief_table(ladders)] if ladders else [])]


def goal_table(verdicts: Sequence[Verdict]) -> Table:
    """Return every goal's verdict."""
    headings = (("goal", ""), ("case", ""), ("verdict", ""), ("found", "95 %"))
    rows = tuple(
        (describe_goal(verdict), verdict.scenario.title, verdict.verdict, show_ratio(verdict.ratio))
        for verdict in verdicts
    )
    return Table(headings, rows)


def describe_goal(verdict: Verdict) -> str:
    """Return a goal in words."""
    mine, other, what = verdict.mine.contender.label, verdict.other.contender.label, verdict.measure.title
    if not verdict.most:
        return f"{what} of {mine} in parts of {other}'s"
    return f"{what} of {mine} at most {verdict.most:.3g} times {other}'s"


def brief_table(ladders: Sequence[Judged]) -> Table:
    """Return every ladder's verdict."""
    headings = (("ladder", ""), ("order", ""), ("steps that hold", ""), ("ratios that agree", "with the original"))
    return Table(headings, tuple((ladder.title, *tell_briefly(ladder)) for ladder in ladders))


def missing_words(run: Run) -> list[Block]:
    """Return who could not take part, at all or in some cases, and how to install what is needed."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for contender in run.contenders:
        if contender.missing:
            by_reason.setdefault(("", contender.missing), []).append(contender.label)
    for scenario in run.scenarios:
        for name, reason in scenario.missing.items():
            if not run.find(name).missing:
                by_reason.setdefault((f" of {scenario.title}", reason), []).append(run.find(name).label)
    lines = tuple(f"Left out{where}: {', '.join(names)}: {reason}" for (where, reason), names in by_reason.items())
    return [Words(lines)] if lines else []


# Ladders.


def make_ladder(ladder: Judged) -> Section:
    """Return a ladder's section: its figures beside the original's, and a drawing of the ratios."""
    measure, known = ladder.measure, any(rung.original is not None for rung in ladder.rungs)
    headings = (("step", ""), (measure.title, measure.unit), ("ratio", "95 %"))
    rows = tuple(rung_cells(ladder, rung, known) for rung in ladder.rungs)
    ratios = [
        Ratio(ladder.name(rung), rung.ratio.median, rung.ratio.low, rung.ratio.high, rung.original_ratio)
        for rung in ladder.rungs
        if rung.ratio is not None
    ]
    unit = f"times the {measure.title} of {ladder.base}"
    drawing = both(draw_ratios, ratios, unit, f"{ladder.title}: {unit}") if len(ratios) > 1 else ""
    notes = [f"A ratio is {unit}."] if ladder.base else []
    if any(rung.unstable and not rung.is_base for rung in ladder.rungs):
        notes.append(STAR)
    table = Table((*headings, *THEN) if known else headings, rows, tuple(notes))
    return Section(ladder.title, (table, Drawing(drawing, RATIOS + (DIAMOND if known else ""))))


def rung_cells(ladder: Judged, rung: Rung, known: bool) -> tuple[str, ...]:
    """Return one step's cells; ``known``: with the original's."""
    if rung.value is None:
        return (ladder.name(rung), rung.failed)
    agrees = {None: NONE, True: "yes", False: "no"}[rung.agrees]
    ratio = "1" if rung.is_base else show_ratio(rung.ratio) + (" *" if rung.unstable else "")
    figures = (ladder.name(rung), significant(rung.value.median), ratio)
    return (*figures, show(rung.original), show(rung.original_ratio), agrees) if known else figures


def show(value: float | None) -> str:
    """Return a figure, or a dash."""
    return NONE if value is None else significant(value)


# Cases.


def make_case(run: Run, scenario: Scenario) -> Section:
    """Return a case's section: figures, drawings of rates and CPU, latencies, and how steady the rounds were."""
    every = summarise(run, scenario, scenario.base)
    rows = [row for row in every if not row.contender.missing and row.name not in scenario.missing]
    if scenario.base:
        rows.sort(key=lambda row: row.cpu.median if row.cpu else math.inf)
    if not rows:
        return Section(scenario.title, ())
    styles, good = style_groups(run), [row for row in rows if row.rate is not None]
    unit, cpu_unit = "requests per second (more is better)", "microseconds of server CPU a request (less is better)"
    blocks: list[Block] = [Words((f"{capitalise(scenario.describe())}.",)), case_table(run, scenario, rows)]
    if good:
        blocks.append(Drawing(both(draw_bars, rate_bars(rows, styles), unit, f"{scenario.title}: {unit}"), BARS))
        blocks.append(Drawing(both(draw_bars, cpu_bars(rows, styles), cpu_unit, f"{scenario.title}: {cpu_unit}")))
        blocks += latency_drawings(run, scenario, good)
        blocks.append(steadiness(run, scenario, good, styles))
    return Section(capitalise(scenario.title), tuple(blocks))


def capitalise(text: str) -> str:
    """Return text with a capital first letter, the rest as it is."""
    return text[:1].upper() + text[1:]


def case_table(run: Run, scenario: Scenario, rows: Sequence[Row]) -> Table:
    """Return the figures of a case, the fastest first; where there is a base, the cheapest."""
    columns = list(CASE_COLUMNS)
    if scenario.behind:
        columns.append((("front's CPU", "µs/request"), lambda row: significant(row.front_cpu)))
    if scenario.base:
        label = next(contender.label for contender in run.contenders if contender.name == scenario.base)
        columns.append(
            (
                (f"times {label}", "CPU, 95 %"),
                lambda row: "1" if row.name == scenario.base else show_ratio(row.cpu_ratio),
            )
        )
    cells = tuple(
        (row.contender.label, f"FAILED: {row.failed}") if row.failed else tuple(cell(row) for _, cell in columns)
        for row in rows
    )
    return Table(tuple(head for head, _ in columns), cells, (STAR,) if any(row.unstable for row in rows) else ())


def show_percentile(percent: int) -> Callable[[Row], str]:
    """Return what shows a percentile of a row."""
    return lambda row: show(row.percentiles.get(percent))


CASE_COLUMNS: tuple[tuple[tuple[str, str], Callable[[Row], str]], ...] = (
    (("contender", ""), lambda row: row.contender.label + (" *" if row.unstable else "")),
    (("rate", "requests/s"), lambda row: show(row.rate.median if row.rate else None)),
    (("spread", "±"), lambda row: show_spread(row.rate)),
    (("time", "ms"), lambda row: show(row.time)),
    *(((f"p{percent}", "ms"), show_percentile(percent)) for percent in (50, 95, 99)),
    (("CPU", "µs/request"), lambda row: show(row.cpu.median if row.cpu else None)),
)


def rate_bars(rows: Sequence[Row], styles: dict[str, str]) -> list[Bar]:
    """Return the bars of rates."""
    return [
        Bar(row.contender.label, row.rate.median, row.rate.least, row.rate.greatest, style=styles[row.name])
        if row.rate
        else Bar(row.contender.label, note="failed")
        for row in rows
    ]


def cpu_bars(rows: Sequence[Row], styles: dict[str, str]) -> list[Bar]:
    """Return the bars of the server's CPU a request, the cheapest first."""
    known = sorted((row for row in rows if row.cpu), key=lambda row: row.cpu.median if row.cpu else 0)
    return [
        Bar(row.contender.label, row.cpu.median, row.cpu.least, row.cpu.greatest, style=styles[row.name])
        for row in known
        if row.cpu
    ]


def latency_drawings(run: Run, scenario: Scenario, rows: Sequence[Row]) -> list[Block]:
    """Return the percentiles of each group, so that no drawing holds more lines than can be told apart."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.percentiles:
            groups.setdefault(row.contender.group, []).append(row)
    few = len(rows) <= STYLES
    sets = [[row for row in rows if row.percentiles]] if few else list(groups.values())
    drawings: list[Block] = []
    for members in sets:
        for start in range(0, len(members), STYLES):
            part = members[start : start + STYLES]
            series = [(row.contender.label, f"s{i}", row.percentiles) for i, row in enumerate(part)]
            title = f"{scenario.title}: milliseconds for the given percentage of requests"
            drawings.append(Drawing(both(draw_latencies, series, "percentage of requests", title)))
    if drawings:
        last = drawings[-1]
        assert isinstance(last, Drawing)
        drawings[-1] = Drawing(last.html, LATENCY)
    return drawings


def steadiness(run: Run, scenario: Scenario, rows: Sequence[Row], styles: dict[str, str]) -> Block:
    """Return each contender's rates over time, as parts of its median."""
    lines = []
    for row in rows:
        samples = run.of(row.name, scenario.name)
        if len(samples) > 1:
            middle = median([sample_rate(sample) for sample in samples])
            points = tuple((sample.at / 60, sample_rate(sample) / middle) for sample in samples)
            wild = any(abs(value - 1) > 0.1 for _, value in points)
            lines.append(Line(row.contender.label, points, styles[row.name], wild))
    if not lines or not any(sample.at for sample in counted(run, rows[0].name, scenario)):
        return Drawing("")
    title = f"{scenario.title}: each round's rate as a part of the median"
    return Drawing(both(draw_lines, lines, "minutes of the run", title), STEADY)


# The rest.


def memory_table(run: Run) -> Table:
    """Return the memory of each server, whole."""
    rows = tuple(
        (contender.label, significant(contender.memory[0] / (1 << 20)))
        for contender in run.contenders
        if contender.memory
    )
    note = "Proportional set size of all processes of the server that serves the contender, after the load."
    return Table((("contender", ""), ("memory", "MiB")), rows, (note,) if rows else ())


def command_facts(run: Run) -> Facts:
    """Return how each server was started, and whom it serves."""
    served: dict[str, list[str]] = {}
    for contender in run.contenders:
        if contender.command:
            served.setdefault(contender.command, []).append(contender.label)
    return Facts(tuple((", ".join(labels), command) for command, labels in served.items()))


def find_unrest(run: Run) -> list[str]:
    """Return which figures are unstable and why, case by case."""
    sentences = []
    for scenario in run.scenarios:
        rows = [row for row in summarise(run, scenario, "") if row.unstable]
        if rows:
            listed = "; ".join(f"{row.contender.label}: {', '.join(row.unstable)}" for row in rows)
            sentences.append(f"Unstable in {scenario.title}: {listed}.")
    return sentences


def fact_rows(run: Run) -> list[tuple[str, str]]:
    """Return the conditions of a run."""
    rows = [(name, value) for name, value in machine_rows(run) if name != "page"]
    return [*rows, ("scenario file", f"{run.plan['name']}, SHA-256 {run.plan['digest']}")]
