"""The report of the wires: CPU a request of each server that speaks a protocol, ratios to ours, verdicts.

Knows a run; measures nothing.
"""

from __future__ import annotations

from html import escape

from bench.report import page
from bench.report.figures import show_ratio, significant
from bench.report.floor import Goal, align, doubts, judge_goal
from bench.report.svg import draw_bars
from bench.results import Run, Scenario
from bench.stats import Interval
from bench.summary import UNSTABLE, Row, counted, pair, sample_cpu, summarise

OURS = "gateways"
MOST = 1 / 3
"""Our CPU a request, as a part of flup's and of gunicorn's."""
PEERS = (("flup", MOST), ("gunicorn", MOST), ("uwsgi", None))
"""Whom ours is held against, with the bound; the ratio to a server in C is told without one."""
HEADINGS = ("server", "CPU µs/request", "middle half", "times ours (95 %)", "requests/s", "p99 ms")

Verdict = tuple[Scenario, str, Interval | None, str]


def find_verdicts(run: Run) -> list[Verdict]:
    """Return each scenario's comparisons: what was asked, the ratio of our CPU to the peer's, and the verdict."""
    verdicts: list[Verdict] = []
    present = {contender.name: contender for contender in run.contenders}
    for scenario in run.scenarios:
        ours = f"{OURS}-{scenario.wire}"
        for name, most in PEERS:
            peer = f"{name}-{scenario.wire}"
            if peer not in present:
                continue
            mine, other = counted(run, ours, scenario), counted(run, peer, scenario)
            if not other and not present[peer].failed:
                continue  # it takes no part in this scenario
            ratio = None if present[ours].failed or present[peer].failed else pair(mine, other, sample_cpu)
            if most is None:
                verdicts.append((scenario, f"{OURS} against {name}", ratio, "told" if ratio else "not measured"))
            else:
                asked = f"{OURS} at most a third of {name}"
                verdicts.append((scenario, asked, ratio, judge_goal(Goal(ours, peer, most), ratio)))
    return verdicts


def scenario_cells(run: Run, scenario: Scenario) -> list[tuple[Row, list[str]]]:
    """Return the rows of one scenario, the cheapest first, with their cells; failed ones have only a name."""
    rows = [
        row for row in summarise(run, scenario, f"{OURS}-{scenario.wire}") if row.name.endswith(f"-{scenario.wire}")
    ]
    rows = [row for row in rows if row.cpu is not None or row.contender.failed]
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
        "1" if row.contender.label == OURS else show_ratio(row.cpu_ratio),
        significant(row.rate.median),
        significant(row.percentiles[99]) if 99 in row.percentiles else "-",
    ]


def verdict_lines(run: Run) -> list[str]:
    """Return the verdicts as lines of text."""
    return [
        f"{verdict:<13} {scenario.name:<19} {asked:<36} {show_ratio(ratio)}"
        for scenario, asked, ratio, verdict in find_verdicts(run)
    ]


def memory_line(run: Run) -> str:
    """Return the memory of the process that serves, of each server and wire."""
    known = [(c.name, max(c.memory) / (1 << 20)) for c in run.contenders if c.memory]
    return "memory of the serving process, PSS: " + ", ".join(f"{name} {size:.1f} MiB" for name, size in known)


def format_text(run: Run) -> str:
    """Return the tables, the verdicts and the doubts as text."""
    lines = []
    for scenario in run.scenarios:
        cells = scenario_cells(run, scenario)
        full = [HEADINGS, *(row for _, row in cells if len(row) > 1)]
        widths = [max(len(row[i]) for row in full) for i in range(len(HEADINGS))]
        widths[0] = max(widths[0], *(len(row[0]) for _, row in cells)) if cells else widths[0]
        lines += [f"{scenario.name}: {scenario.describe()}", align(HEADINGS, widths)]
        lines += [
            align(row, widths) if len(row) > 1 else f"{row[0]:<{widths[0]}}  {figures.failed}" for figures, row in cells
        ]
        lines.append("")
    verdicts = ["verdict, and our CPU a request as a part of the other's:", *verdict_lines(run)]
    return "\n".join([*lines, *verdicts, "", memory_line(run), "", *doubts(run)]).rstrip()


def style_servers(run: Run) -> dict[str, str]:
    """Return contender -> CSS class of its colour: a server has the same one with every wire."""
    servers = {contender.name: contender.name.rpartition("-")[0] for contender in run.contenders}
    styles = page.order_styles(dict.fromkeys(servers.values()))
    return {name: styles[server] for name, server in servers.items()}


def html_scenario(run: Run, scenario: Scenario) -> str:
    """Return one scenario's section: drawing and table."""
    cells = scenario_cells(run, scenario)
    styles = style_servers(run)
    unit = "microseconds of server CPU a request (less is better)"
    bars = page.both(draw_bars, page.cpu_bars([row for row, _ in cells], styles), unit, unit)
    heads = "".join(f"<th scope=col>{escape(heading)}</th>" for heading in HEADINGS)
    lines = []
    for row, texts in cells:
        name = f"<th scope=row>{escape(texts[0])}</th>"
        if row.failed:
            lines.append(f"<tr class=failed>{name}<td colspan=5>{escape(row.failed)}</td></tr>")
            continue
        figures = zip(HEADINGS[1:], texts[1:], strict=True)
        shown = [
            f'<td data-label="{escape(heading)}"{page.wide(text)}>{escape(text)}</td>' for heading, text in figures
        ]
        lines.append(f"<tr>{name}{''.join(shown)}</tr>")
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return page.section(f"{scenario.name}: {scenario.describe()}", bars, table)


def html_verdicts(run: Run) -> str:
    """Return the verdicts as a table."""
    headings = ("scenario", "target", "verdict", "part of the other's CPU (95 %)")
    heads = "".join(f"<th scope=col>{escape(text)}</th>" for text in headings)
    lines = []
    for scenario, asked, ratio, verdict in find_verdicts(run):
        style = {"met": ' class="good"', "missed": ' class="bad"'}.get(verdict, "")
        lines.append(
            f"<tr><th scope=row>{escape(scenario.name)}</th><td data-label=target class=full>{escape(asked)}</td>"
            f"<td data-label=verdict{style}>{verdict}</td>"
            f"<td data-label=found class=full>{escape(show_ratio(ratio))}</td></tr>"
        )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def format_wires(run: Run) -> str:
    """Return the report as one HTML page."""
    lead = (
        f"The server's CPU for one page of {run.page.get('length')} bytes, one worker each, asked by a client that "
        f"speaks each protocol itself: no front server stands between."
    )
    return page.format_page(
        "What each wire costs",
        lead,
        [
            page.section("Verdict", html_verdicts(run)),
            *(html_scenario(run, scenario) for scenario in run.scenarios),
            page.section("Memory", page.paragraphs([memory_line(run) + "."])),
            page.section("Doubts", page.paragraphs(doubts(run))),
            page.section("How it was measured", page.definition_list(page.machine_rows(run))),
        ],
    )
