"""What a trial found: claims that held or did not, tables, and courses over time; kept as JSON. Knows no server.

Nothing is timed here, and nothing is judged but by whoever adds a claim.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """What should hold, whether it did, and what was seen."""

    text: str
    held: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain values below their columns' names."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


@dataclass(slots=True)
class Course:
    """Values over time. ``lines``: name -> (seconds, value) pairs. ``bounds``: name -> a level that is drawn across."""

    title: str
    unit: str
    lines: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    bounds: dict[str, float] = field(default_factory=dict)

    def add(self, seconds: float, **values: float) -> None:
        """Add a value to each line that is named."""
        for name, value in values.items():
            self.lines.setdefault(name, []).append((round(seconds, 3), value))


@dataclass(slots=True)
class Findings:
    """One run of a trial. ``notes``: what a reader should know besides."""

    name: str
    summary: str
    machine: dict[str, Any]
    options: dict[str, Any]
    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    courses: list[Course] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def claim(self, text: str, held: bool, seen: object) -> None:
        """Add a claim."""
        self.claims.append(Claim(text, bool(held), str(seen)))

    @property
    def held(self) -> bool:
        """True when there are claims and every one held."""
        return bool(self.claims) and all(claim.held for claim in self.claims)


def write_findings(findings: Findings, path: Path) -> None:
    """Write findings as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = {"kind": "trial", "format": FORMAT, **asdict(findings)}
    path.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


def format_verdict(findings: Findings) -> str:
    """Return one sentence."""
    failed = [claim for claim in findings.claims if not claim.held]
    if not findings.claims:
        return f"{findings.name}: nothing was found out"
    if not failed:
        return f"{findings.name}: everything held ({len(findings.claims)} claims)"
    return f"{findings.name}: {len(failed)} of {len(findings.claims)} claims DID NOT HOLD"


def format_claims(findings: Findings) -> list[str]:
    """Return a line for each claim."""
    return [f"{'held  ' if claim.held else 'FAILED'}  {claim.text}: {claim.seen}" for claim in findings.claims]


def format_table(table: Table) -> list[str]:
    """Return a table's lines for a terminal."""
    rows = [table.columns, *table.rows]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.columns))]
    return [table.title, *("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)]


def format_text(findings: Findings) -> str:
    """Return everything but the courses, for a terminal."""
    parts = [format_table(table) for table in findings.tables]
    parts += [format_claims(findings), findings.notes, [format_verdict(findings)]]
    return "\n\n".join("\n".join(part) for part in parts if part)
