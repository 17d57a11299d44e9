"""A trial's findings as one HTML page: the verdict, every claim, courses over time, tables. Knows no server."""

from __future__ import annotations

from html import escape

from bench.report.course import draw_course
from bench.report.page import both, definition_list, format_page, paragraphs, section
from bench.trials.findings import Course, Findings, Table, format_verdict


def format_findings(findings: Findings) -> str:
    """Return the page."""
    return format_page(
        f"Trial: {findings.name}",
        f"{findings.summary} {format_verdict(findings)}.",
        [
            section("What was claimed", format_claims(findings), paragraphs(findings.notes)),
            *(section(course.title, format_course(course)) for course in findings.courses),
            *(section(table.title, format_table(table)) for table in findings.tables),
            section("How", definition_list(describe(findings))),
        ],
    )


def format_claims(findings: Findings) -> str:
    """Return the claims as a table."""
    rows = "".join(
        f"<tr{'' if claim.held else ' class=failed'}>"
        f'<th scope="row" style="white-space:normal">{escape(claim.text)}</th>'
        f'<td class="{"good" if claim.held else "bad"}">{"held" if claim.held else "did not hold"}</td>'
        f'<td style="white-space:normal">{escape(claim.seen)}</td></tr>'
        for claim in findings.claims
    )
    return f"<table><tbody>{rows}</tbody></table>"


def format_course(course: Course) -> str:
    """Return the drawing of a course."""
    return both(draw_course, course.lines, course.bounds, course.unit, course.title)


def format_table(table: Table) -> str:
    """Return a table; on narrow pages each cell names its column."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(
            f'<td data-label="{escape(column)}" style="white-space:normal">{escape(cell)}</td>'
            for column, cell in zip(table.columns[1:], row[1:], strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def describe(findings: Findings) -> list[tuple[str, str]]:
    """Return what the trial ran on and with."""
    machine = findings.machine
    return [
        ("date", str(machine.get("date", ""))),
        ("processor", f"{machine.get('cpu')} ({machine.get('cores')} cores)"),
        ("kernel", str(machine.get("kernel", ""))),
        ("Python", str(machine.get("python", ""))),
        ("load before", ", ".join(f"{value:.2f}" for value in machine.get("load_average", ()))),
        ("command", " ".join(map(str, machine.get("command", ())))),
        *((name, str(value)) for name, value in findings.options.items()),
    ]
