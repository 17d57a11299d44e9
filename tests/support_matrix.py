"""What `make test` prints at its end: over which wires, and behind which fronts, the conformance table was held.

A test that runs rows says so with ``note_rows``; ``conftest`` collects what was said and prints ``format_matrix``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

PROPERTY = "conformance"
DIRECTLY, BY_FLUP, IN_GUNICORN = "no front", "flup's client", "in gunicorn"
COLUMNS = ("http", "fastcgi", "scgi", "ajp", "uwsgi", "spawns fastcgi", "spawns cgi")

_NO_FRONTS = (DIRECTLY, BY_FLUP, IN_GUNICORN)

Record = Callable[[str, object], None]
Cell = tuple[int, bool]


def note_rows(record_property: Record, front: str, column: str, rows: int) -> None:
    """Say that this test holds so many rows of the table against one way: ``front`` before ``column``."""
    record_property(PROPERTY, (front, column, rows))


def add_up(reports: Iterable[tuple[Iterable[tuple[str, object]], bool]]) -> dict[tuple[str, str], Cell]:
    """Return (front, column) -> (rows, all hold) of what tests have said: (properties, passed) each."""
    cells: dict[tuple[str, str], Cell] = {}
    for properties, passed in reports:
        for name, value in properties:
            if name == PROPERTY:
                front, column, rows = value  # type: ignore[misc]
                before, whole = cells.get((front, column), (0, True))
                cells[front, column] = before + rows, whole and passed
    return cells


def format_matrix(cells: Mapping[tuple[str, str], Cell]) -> list[str]:
    """Return the lines of a table: how many rows hold each way, ``FAILED`` where one did not, ``-`` where none ran."""
    fronts = sorted({front for front, _ in cells}, key=lambda front: (front not in _NO_FRONTS, front))
    widths = [max(len(column), 7) for column in COLUMNS]
    lines = [" " * 14 + "  ".join(column.rjust(width) for column, width in zip(COLUMNS, widths, strict=True))]
    for front in fronts:
        texts = []
        for column, width in zip(COLUMNS, widths, strict=True):
            rows, whole = cells.get((front, column), (0, True))
            texts.append(("-" if not rows else str(rows) if whole else "FAILED").rjust(width))
        lines.append(front.ljust(14) + "  ".join(texts))
    held = sum(1 for rows, whole in cells.values() if rows and whole)
    behind = sum(1 for (front, _), (rows, whole) in cells.items() if rows and whole and front not in _NO_FRONTS)
    lines.append(f"{held} of {len(cells)} ways hold, {behind} of them behind a front server")
    return lines
