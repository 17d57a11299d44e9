"""The frame of every HTML report, and the pieces they share: one file, no script, nothing fetched; light, dark, paper.

Knows HTML and a run's conditions; not what is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from bench.report.svg import Bar
from bench.report.words import LADDER
from bench.results import Run
from bench.summary import Row

WIDE, NARROW = 720, 340
LONG_CELL, LONG_LABEL = 9, 16


def order_styles(names: Iterable[str]) -> dict[str, str]:
    """Return name -> CSS class of its colour; the same mode has the same colour in every report."""
    known = [*LADDER, *(name for name in names if name not in LADDER)]
    return {name: f"s{i % 8}" for i, name in enumerate(known)}


def both(drawing: object, *arguments: object) -> str:
    """Return a drawing twice, for wide and for narrow pages; the style sheet shows one."""
    assert callable(drawing)
    return f"{drawing(*arguments, WIDE, 'wide')}\n{drawing(*arguments, NARROW, 'narrow')}"


def cpu_bars(rows: Sequence[Row], styles: Mapping[str, str]) -> list[Bar]:
    """Return the bars of CPU a request."""
    return [
        Bar(row.contender.label, row.cpu.median, row.cpu.least, row.cpu.greatest, style=styles[row.name])
        if row.cpu
        else Bar(row.contender.label, note="failed")
        for row in rows
    ]


def wide(cell: str, label: str = "") -> str:
    """Return the class that gives a long cell, or one with a long name, a line of its own on narrow pages."""
    return ' class="full"' if len(cell) > LONG_CELL or len(label) > LONG_LABEL else ""


def paragraphs(sentences: Iterable[str]) -> str:
    """Return sentences as paragraphs."""
    return "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def machine_rows(run: Run) -> list[tuple[str, str]]:
    """Return what the run was measured on and how, as pairs for a definition list."""
    machine = run.machine
    pinned = run.pinned[0] is not None
    cores = f"load on core {run.pinned[0]}, server on core {run.pinned[1]}" if pinned else "nothing pinned"
    return [
        ("date", str(machine.get("date", ""))),
        ("processor", f"{machine.get('cpu')} ({machine.get('cores')} cores; {cores})"),
        ("kernel", str(machine.get("kernel", ""))),
        ("Python", str(machine.get("python", ""))),
        ("load before", ", ".join(f"{value:.2f}" for value in machine.get("load_average", ()))),
        ("command", " ".join(map(str, machine.get("command", ())))),
        ("load tool", run.load),
        ("rounds", f"{run.rounds} of {run.seconds:g} s for each, order drawn with seed {run.seed}"),
        ("page", f"{run.page.get('length')} bytes, SHA-256 {run.page.get('digest')}"),
    ]


def definition_list(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a definition list."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs) + "</dl>"


def section(title: str, *parts: str) -> str:
    """Return one section of the page, without those parts that are empty; ``""`` when all are."""
    shown = "\n".join(part for part in parts if part)
    return f"<section>\n<h2>{escape(title)}</h2>\n{shown}\n</section>" if shown else ""


def read_style() -> str:
    """Return the style sheet, which stands in the page itself."""
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def format_page(title: str, lead: str, sections: Iterable[str]) -> str:
    """Return a whole HTML page."""
    body = "\n".join(part for part in sections if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{read_style()}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n{body}\n</main>\n</body>\n</html>\n'
    )


def small(sentence: str) -> str:
    """Return a note below a drawing."""
    return f'<p class="note">{escape(sentence)}</p>'
