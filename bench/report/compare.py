"""The HTML report of a comparison of modes.

Knows a run and how to draw it; measures nothing, and decides nothing that is not in ``summary`` or ``words``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from bench.historic import ratios_2008, read_rates_2008
from bench.report import words
from bench.report.page import (
    both,
    cpu_bars,
    definition_list,
    format_page,
    machine_rows,
    order_styles,
    paragraphs,
    section,
    small,
    wide,
)
from bench.report.svg import Bar, draw_bars, draw_latencies
from bench.report.table import Column, compare_columns
from bench.results import Run
from bench.summary import Row, summarise

BASE = "cgi"
MARKS = (
    "Bars are medians of the rounds, on a logarithmic scale; whiskers reach from the slowest to the fastest round. "
    "A diamond stands where the ratio of 2008 would put the mode, counted from today's cgi."
)
LATENCY = "How long a request took at most, for so many percent of them, as ab prints it: all counted rounds together."
RATIOS = (
    "A ratio is the median of the ratios within each round, with its 95 % interval. CPU is user and system "
    "time of every process of the server, ended ones included. Memory is the proportional set size of a worker that "
    "serves this mode alone, with the process of a request added where a request is a process."
)
STAR = "* unstable: see the doubts below."


def choose_base(rows: Sequence[Row]) -> str:
    """Return what ratios are taken to: ``cgi`` when it has figures, else the slowest that has."""
    good = [row.name for row in rows if not row.failed]
    return BASE if BASE in good or not good else good[-1]


def rate_bars(rows: Sequence[Row], historic: Mapping[str, float], base: str, styles: Mapping[str, str]) -> list[Bar]:
    """Return the bars of rates; the mark is the base's rate of today times the ratio of 2008."""
    anchor = next((row.rate.median for row in rows if row.name == base and row.rate), 0.0)
    bars = []
    for row in rows:
        if row.rate is None:
            bars.append(Bar(row.contender.label, note="failed"))
            continue
        mark = historic[row.name] * anchor if row.name in historic and row.name != base else None
        bars.append(
            Bar(row.contender.label, row.rate.median, row.rate.least, row.rate.greatest, mark, style=styles[row.name])
        )
    return bars


def html_table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Return the table; on narrow pages each row becomes a card, with its headings from ``data-label``."""
    heads = "".join(
        f"<th scope=col>{escape(column.heading)}<br><small>{escape(column.unit)}</small></th>" for column in columns
    )
    lines = []
    for row in rows:
        name = f"<th scope=row>{escape(row.contender.label)}{'<sup>*</sup>' if row.unstable else ''}</th>"
        if row.failed:
            lines.append(
                f"<tr class=failed>{name}<td colspan={len(columns) - 1}>failed: {escape(row.failed)}</td></tr>"
            )
            continue
        cells = "".join(
            f'<td data-label="{escape(column.heading)} {escape(column.unit)}"{wide(text)}>{escape(text)}</td>'
            for column, text in ((column, column.cell(row)) for column in columns[1:])
        )
        lines.append(f"<tr>{name}{cells}</tr>")
    body = "\n".join(lines)
    return f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def notes(rows: Sequence[Row]) -> str:
    """Return what the table's reader must know."""
    return small(RATIOS) + (small(STAR) if any(row.unstable for row in rows) else "")


def format_compare(run: Run) -> str:
    """Return the report of a comparison of modes."""
    scenario = run.scenarios[0]
    rows = summarise(run, scenario, choose_base(summarise(run, scenario, BASE)))
    base = choose_base(rows)
    historic, rates = ratios_2008(base), read_rates_2008()
    styles = order_styles(contender.name for contender in run.contenders)
    steps = words.find_steps(run, scenario, rows, rates)
    bars = rate_bars(rows, historic, base, styles)
    series = [(row.name, styles[row.name], row.percentiles) for row in rows if row.percentiles]
    lead = (
        f"One page of {run.page.get('length')} bytes, built anew for each request, through every execution model of "
        f"this server: {scenario.describe()}. Before anything was timed, every mode was seen to send the same bytes."
    )
    unit = "requests per second (more is better)"
    cpu_unit = "microseconds of server CPU a request (less is better)"
    latency_title = "milliseconds for the given percentage of requests"
    return format_page(
        "One application, every gateway: the comparison of 2008 today",
        lead,
        [
            section("Figures", html_table(compare_columns(historic, base), rows), notes(rows)),
            section(
                "Requests per second",
                both(draw_bars, bars, unit, unit),
                small(MARKS),
            ),
            section("CPU a request", both(draw_bars, cpu_bars(rows, styles), cpu_unit, cpu_unit)),
            section(
                "Latency",
                both(draw_latencies, series, "percentage of requests", latency_title) if series else "",
                small("Milliseconds, on a logarithmic scale. " + LATENCY) if series else "",
            ),
            section("What the original found", paragraphs(words.tell_original(rates))),
            section("What this run found", paragraphs(words.tell_run(rows, base))),
            section(
                "Do they agree?",
                paragraphs([*words.tell_order(steps), *words.tell_ratios(rows, historic, steps, base)]),
            ),
            section("Doubts", paragraphs(words.tell_doubts(run, rows))),
            section("How it was measured", definition_list(machine_rows(run))),
        ],
    )
