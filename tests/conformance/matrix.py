"""The outcomes of several servers as one table, in text and in Markdown. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.conformance.runner import FAIL, PASS, SKIP, Outcome

Results = Mapping[str, Sequence[Outcome]]
MARKS = {PASS: "ok", FAIL: "FAIL", SKIP: "-"}


def count(outcomes: Sequence[Outcome]) -> str:
    """``"97 ok, 2 failed, 4 skipped"``"""
    numbers = {result: sum(outcome.result == result for outcome in outcomes) for result in MARKS}
    return f"{numbers[PASS]} ok, {numbers[FAIL]} failed, {numbers[SKIP]} skipped"


def format_text(results: Results) -> str:
    """Return rows x servers, then each failure and each reason for a skip."""
    names = list(results)
    width = max((len(outcome.row.name) for outcomes in results.values() for outcome in outcomes), default=4)
    lines = [" ".join(["row".ljust(width), *names])]
    for group in zip(*results.values(), strict=True):
        marks = [MARKS[outcome.result].ljust(len(name)) for outcome, name in zip(group, names, strict=True)]
        lines.append(" ".join([group[0].row.name.ljust(width), *marks]).rstrip())
    for name, outcomes in results.items():
        lines += ["", f"{name}: {count(outcomes)}"]
        lines += [f"  FAIL {outcome.row.name}: {outcome.reason}" for outcome in outcomes if outcome.result == FAIL]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Text that may stand in a table's cell."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ").replace("`", "'")


def format_markdown(results: Results) -> str:
    """Return the same as Markdown: counts, matrix, and by server what it gets wrong."""
    names = list(results)
    lines = ["| server | right | wrong | skipped |", "|---|---|---|---|"]
    for name, outcomes in results.items():
        numbers = [sum(outcome.result == result for outcome in outcomes) for result in (PASS, FAIL, SKIP)]
        lines.append(f"| {cell(name)} | {' | '.join(map(str, numbers))} |")
    lines += ["", f"| row | where it comes from | {' | '.join(map(cell, names))} |", "|---" * (len(names) + 2) + "|"]
    for group in zip(*results.values(), strict=True):
        row = group[0].row
        marks = " | ".join(MARKS[outcome.result] for outcome in group)
        lines.append(f"| {row.name} | {cell('; '.join(row.ids))} | {marks} |")
    return "\n".join([*lines, "", *format_faults(results)]) + "\n"


def format_faults(results: Results) -> list[str]:
    """Return, as Markdown lines, each server's failures with what was seen."""
    lines = []
    for name, outcomes in results.items():
        failures = [outcome for outcome in outcomes if outcome.result == FAIL]
        lines += [f"### {name}", ""]
        lines += [f"- `{outcome.row.name}`: {cell(outcome.reason)}" for outcome in failures] or ["Nothing."]
        lines.append("")
    return lines
