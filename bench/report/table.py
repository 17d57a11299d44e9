"""The table of a comparison, once: the same cells for the terminal and for the page.

Knows rows of figures; nothing of how they were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.report.figures import show_ratio, significant
from bench.summary import Row

NONE = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, the unit below it, and the cell of a row."""

    heading: str
    unit: str
    cell: Callable[[Row], str]


def optional(value: float | None) -> str:
    """Return a figure, or a dash for none."""
    return NONE if value is None else significant(value)


def compare_columns(historic: Mapping[str, float], base: str) -> tuple[Column, ...]:
    """Return the columns of the comparison of modes; ``historic``: mode -> ratio to the base in 2008."""
    return (
        Column("mode", "", lambda row: row.contender.label),
        Column("rate", "requests/s", lambda row: optional(row.rate.median if row.rate else None)),
        Column("time", "ms", lambda row: optional(row.time)),
        Column("p99", "ms", lambda row: optional(row.percentiles.get(99))),
        Column("CPU", "µs/request", lambda row: optional(row.cpu.median if row.cpu else None)),
        Column("memory", "MiB", lambda row: optional(row.memory)),
        Column(f"times {base}", "rate, 95 %", lambda row: show_ratio(row.rate_ratio) if row.name != base else "1"),
        Column(f"times {base}", "in 2008", lambda row: optional(historic.get(row.name))),
    )


def mark(row: Row) -> str:
    """Return what stands after a row's name: ``" *"`` when its figures are unstable."""
    return " *" if row.unstable else ""


def format_table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Return the table as text; a failed row has its reason in place of figures, unstable ones a star."""
    lines = [[column.heading for column in columns], [column.unit for column in columns]]
    bodies = []
    for row in rows:
        if row.failed:
            bodies.append([row.contender.label])
            continue
        cells = [column.cell(row) for column in columns]
        bodies.append([cells[0] + mark(row), *cells[1:]])
    full = [line for line in (*lines, *bodies) if len(line) == len(columns)]
    widths = [max(len(line[i]) for line in full) for i in range(len(columns))]
    widths[0] = max(widths[0], *(len(line[0]) for line in bodies))
    text = [align(line, widths) for line in lines]
    text.append("  ".join("-" * width for width in widths))
    for row, cells in zip(rows, bodies, strict=True):
        text.append(align(cells, widths) if not row.failed else f"{cells[0]:<{widths[0]}}  FAILED: {row.failed}")
    return "\n".join(line.rstrip() for line in text) + "\n"


def align(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return one line: the first cell to the left, the others to the right."""
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([f"{first[0]:<{first[1]}}", *(f"{cell:>{width}}" for cell, width in others)])
