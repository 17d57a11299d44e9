"""The comparison of servers as one Markdown page: for each wire a matrix, and by row what each gets wrong. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.conformance.matrix import MARKS, cell
from tests.conformance.runner import FAIL, PASS, SKIP, Outcome

WIRES = {
    "http": "HTTP", "fastcgi": "FastCGI", "scgi": "SCGI", "uwsgi": "uwsgi protocol", "ajp": "AJP 1.3",
}  # fmt: skip
INTRODUCTION = """# Conformance

One table of {rows} behaviours, held against servers that all serve the same file, `apps/conformance.py`, unmodified.
Run on {date} with {system}. Each server ran with its defaults and two workers where it has workers.

How to read it:

- A row is a request (or a sequence of them on one connection, or raw bytes) and what must come back. That is taken
  from a specification where one says it: RFC 9110, 9112 and 3875, PEP 3333. `plack:` names a kind of
  Plack::Test::Suite, which tests the same things for Perl. Ids such as B018 or H05 stand for reports of faults that
  users of other servers met, and for attacks that became public; there the row says what this project holds to be
  right, and another server may have decided otherwise on purpose.
- Where a specification leaves a choice, a row accepts every choice it leaves.
- Over a gateway wire a front server stands before the application's server and repairs some of what is wrong here: it
  discards the body of an answer to HEAD, for one. The rows ask for what needs no repair (RFC 3875 4.3.3).
- The servers of werkzeug and wsgiref are made for development, as their own documentation says.
- `ok`: right; `FAIL`: wrong, with what was seen further down; `-`: the row makes no sense there.

Run it against any server: `python -m tests.conformance http://127.0.0.1:8000/`, or `fastcgi://`, `scgi://`, `uwsgi://`,
`ajp://` with a host and port or with `unix:PATH`. Make this page anew: `python -m tests.conformance.peers --cache DIR
--output docs/conformance.md`.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A server over a wire, and what came of each row."""

    name: str
    wire: str
    outcomes: tuple[Outcome, ...]


def code(text: str) -> str:
    """Text as a code span, in which nothing but a backtick means anything."""
    return "`" + text.replace("`", "'").replace("\n", " ") + "`"


def shorten(text: str, limit: int = 240) -> str:
    """Text that a reader can take in."""
    return text if len(text) <= limit else f"{text[:limit]}..."


def count_row(column: Column) -> str:
    """A line of the summary."""
    numbers = [sum(outcome.result == result for outcome in column.outcomes) for result in (PASS, FAIL, SKIP)]
    return f"| {WIRES[column.wire]} | {cell(column.name)} | {' | '.join(map(str, numbers))} |"


def format_wire(columns: Sequence[Column]) -> list[str]:
    """The section of one wire: rows that somebody gets wrong as a matrix, and what was seen."""
    lines = ["", f"## {WIRES[columns[0].wire]}", ""]
    groups = zip(*(column.outcomes for column in columns), strict=True)
    run = [group for group in groups if any(outcome.result != SKIP for outcome in group)]
    names = [cell(column.name) for column in columns]
    lines += [f"| row | {' | '.join(names)} | where it comes from |", "|---" * (len(names) + 2) + "|"]
    for group in run:
        row = group[0].row
        marks = " | ".join(MARKS[outcome.result] for outcome in group)
        lines.append(f"| {row.name} | {marks} | {cell('; '.join(row.ids))} |")
    wrong = [group for group in run if any(outcome.result == FAIL for outcome in group)]
    if wrong:
        lines += ["", f"### What goes wrong over {WIRES[columns[0].wire]}, by row", ""]
    for group in wrong:
        lines.append(f"- **{group[0].row.name}**")
        lines += [f"  - {', '.join(who)}: {said}" for said, who in group_by_reason(names, group).items()]
    return lines


def group_by_reason(names: Sequence[str], group: Sequence[Outcome]) -> dict[str, list[str]]:
    """What was seen -> the servers that it was seen of."""
    found: dict[str, list[str]] = {}
    for name, outcome in zip(names, group, strict=True):
        if outcome.result == FAIL:
            found.setdefault(code(shorten(outcome.reason)), []).append(name)
    return found


def format_skips(columns: Sequence[Column]) -> list[str]:
    """Why rows were skipped: each reason with the wires and the number of rows."""
    reasons: dict[str, dict[str, set[str]]] = {}
    for column in columns:
        for outcome in column.outcomes:
            if outcome.result == SKIP:
                reasons.setdefault(outcome.reason, {}).setdefault(column.wire, set()).add(outcome.row.name)
    lines = ["", "## Why rows are skipped", ""]
    for reason, wires in sorted(reasons.items()):
        where = ", ".join(f"{WIRES[wire]}: {len(rows)}" for wire, rows in wires.items())
        lines.append(f"- {cell(reason)} ({where})")
    return lines


def format_report(columns: Sequence[Column], date: str, system: str) -> str:
    """Return the page."""
    rows = len(columns[0].outcomes) if columns else 0
    lines = [INTRODUCTION.format(rows=rows, date=date, system=system)]
    lines += ["| wire | server | right | wrong | skipped |", "|---|---|---|---|---|", *map(count_row, columns)]
    for wire in WIRES:
        if chosen := [column for column in columns if column.wire == wire]:
            lines += format_wire(chosen)
    return "\n".join(lines + format_skips(columns)) + "\n"
