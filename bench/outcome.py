"""What becomes of a run: where it is kept, the table on the terminal, the report beside it, and what to try next."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime
from pathlib import Path

from bench.historic import ratios_2008, read_rates_2008
from bench.progress import TextProgress
from bench.report import document, words
from bench.report.compare import BASE, choose_base, format_compare
from bench.report.comparison import make_document
from bench.report.table import compare_columns, format_table
from bench.results import Run
from bench.summary import summarise

RESULTS = "bench/results"
TEXT_WIDTH = 110


def fresh_path(kind: str) -> Path:
    """Return where a new result is kept: by kind and local time, to the second."""
    now = datetime.now(UTC).astimezone()
    return Path(RESULTS) / f"{kind}-{now:%Y-%m-%d-%H%M%S}.json"


def format_report(run: Run) -> str:
    """Return a run's HTML report; raise ``ValueError`` for a kind that has none."""
    if run.kind == "compare":
        return format_compare(run)
    if run.kind == "scenario":
        return document.format_html(make_document(run))
    raise ValueError(f"no report for results of kind {run.kind!r}")


def format_text(run: Run) -> str:
    """Return a run's table and findings as text."""
    if run.kind == "scenario":
        return document.format_text(make_document(run))
    scenario = run.scenarios[0]
    rows = summarise(run, scenario, BASE)
    base = choose_base(rows)
    rows = summarise(run, scenario, base)
    steps = words.find_steps(run, scenario, rows, read_rates_2008())
    historic = ratios_2008(base)
    findings = [
        *words.tell_order(steps),
        *words.tell_ratios(rows, historic, steps, base),
        *words.tell_doubts(run, rows),
    ]
    table = format_table(compare_columns(historic, base), rows)
    star = "* unstable, see below\n" if any(row.unstable for row in rows) else ""
    wrapped = [textwrap.fill(finding, TEXT_WIDTH, subsequent_indent="  ") for finding in findings]
    return "\n".join([f"{scenario.describe()}; {run.load} load", "", table + star, *wrapped])


NEXT = {
    "compare": (
        "next: --concurrency 10 --keep-alive leaves the cost of connecting out; --load ab asks as 2008 did; "
        "python -m bench floor holds wsgi and handler against the least Python can cost"
    ),
    "scenario": "next: python -m bench compare --all runs every comparison",
}


def show_run(run: Run, path: Path, progress: TextProgress) -> None:
    """Print a run's table and findings, write its report beside the raw result, and say where both are."""
    report = path.with_suffix(".html")
    report.write_text(format_report(run), encoding="utf-8")
    if run.kind == "scenario":
        path.with_suffix(".md").write_text(document.format_markdown(make_document(run)), encoding="utf-8")
    progress.say("")
    print(format_text(run))
    print(f"\nreport: {report}\nraw:    {path}   (python -m bench report {path} draws it again)\n{NEXT[run.kind]}")
