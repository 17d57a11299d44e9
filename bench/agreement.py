"""``python -m bench agree ONE OTHER``: whether two runs of the same comparisons found the same ratios.

Two ratios contradict each other when their intervals have nothing in common. Knows kept runs; measures nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.goals import judge_goals
from bench.ladders import Judged, Rung, judge_ladders
from bench.report.document import Document, Facts, Section, Table, Words, format_text
from bench.report.figures import show_ratio
from bench.results import Run, Scenario, read_run
from bench.stats import Interval
from bench.summary import Row, summarise


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio that a report shows: what of whom, its interval, and whether the report calls it unstable."""

    name: str
    interval: Interval
    unstable: bool


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A ratio of which two runs give intervals that do not overlap."""

    name: str
    one: Interval
    other: Interval
    unstable: bool


def list_ratios(run: Run) -> dict[str, Ratio]:
    """Return every ratio that the report of a run shows, by name."""
    found = [ratio for scenario in run.scenarios for ratio in case_ratios(run, scenario)]
    found += [ratio for ladder in judge_ladders(run) for ratio in ladder_ratios(ladder)]
    found += [
        Ratio(
            f"{verdict.scenario.name}: {verdict.measure.title}, {verdict.mine.contender.name} of "
            f"{verdict.other.contender.name}",
            verdict.ratio, verdict.mine.unstable or verdict.other.unstable,
        )
        for verdict in judge_goals(run) if verdict.ratio is not None
    ]  # fmt: skip
    return {ratio.name: ratio for ratio in found}


def case_ratios(run: Run, scenario: Scenario) -> Iterator[Ratio]:
    """Yield the ratios of a case that has a base."""
    rows = summarise(run, scenario, scenario.base) if scenario.base else []
    base = next((row for row in rows if row.name == scenario.base), None)
    for row in rows:
        if base is not None and row is not base and row.cpu_ratio is not None:
            yield Ratio(f"{scenario.name}: CPU, {row.name} of {base.name}", row.cpu_ratio, doubtful(row, base))


def doubtful(row: Row, base: Row) -> bool:
    """True when a row or its base is called unstable."""
    return bool(row.unstable or base.unstable)


def ladder_ratios(ladder: Judged) -> Iterator[Ratio]:
    """Yield a ladder's ratios: to its base, and of each step."""
    for rung in ladder.rungs:
        if rung.ratio is not None and not rung.is_base:
            yield Ratio(f"{ladder.title}: {name_rung(rung)} of {ladder.base}", rung.ratio, rung.unstable)
    for step in ladder.steps:
        name = f"{ladder.title}: {name_rung(step.upper)} of {name_rung(step.lower)}"
        yield Ratio(name, step.ratio, step.upper.unstable or step.lower.unstable)


def name_rung(rung: Rung) -> str:
    """Return what tells a rung from all others."""
    return f"{rung.contender.name} ({rung.scenario.name})"


def find_contradictions(one: dict[str, Ratio], other: dict[str, Ratio]) -> list[Contradiction]:
    """Return the ratios that both runs have and disagree about."""
    return [
        Contradiction(name, one[name].interval, other[name].interval, one[name].unstable or other[name].unstable)
        for name in one.keys() & other.keys()
        if one[name].interval.high < other[name].interval.low or other[name].interval.high < one[name].interval.low
    ]


def pair_files(one: Path, other: Path) -> list[tuple[str, Path, Path]]:
    """Return the results that two files, or two folders, both have; raise ``ValueError`` when there is none."""
    if one.is_dir() and other.is_dir():
        names = sorted({path.name for path in one.glob("*.json")} & {path.name for path in other.glob("*.json")})
        if not names:
            raise ValueError(f"{one} and {other} have no result in common")
        return [(name.removesuffix(".json"), one / name, other / name) for name in names]
    return [(one.stem, one, other)]


def read_result(path: Path) -> Run:
    """Read a comparison's result; raise ``ValueError``."""
    try:
        run = read_run(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if run.kind != "scenario":
        raise ValueError(f"{path}: only results of scenario files have ratios to hold against each other")
    return run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``agree`` takes."""
    parser.add_argument("one", type=Path, help="a raw file of a comparison, or a folder of compare --all")
    parser.add_argument("other", type=Path, help="the same of another run")


def run_agree(arguments: argparse.Namespace) -> int:
    """Print whether two runs agree; return 0 when they do, 1 when a ratio contradicts itself that no report doubted."""
    sections, found, total = [], [], 0
    for name, one, other in pair_files(arguments.one, arguments.other):
        ratios = [list_ratios(read_result(path)) for path in (one, other)]
        contradictions = find_contradictions(*ratios)
        both = len(ratios[0].keys() & ratios[1].keys())
        sections.append(make_section(name, both, contradictions))
        found += contradictions
        total += both
    surprising = [contradiction for contradiction in found if not contradiction.unstable]
    sections.append(Section("Together", (Words((tell_verdict(total, found, surprising),)),)))
    print(format_text(Document("", "", tuple(sections))))
    return 1 if surprising else 0


def make_section(name: str, both: int, contradictions: list[Contradiction]) -> Section:
    """Return a comparison's section: how many ratios there are, and those that disagree."""
    facts = Facts((("ratios", str(both)), ("disagree", str(len(contradictions)))))
    headings = (("ratio", ""), ("one", "95 %"), ("other", "95 %"), ("called unstable", ""))
    rows = tuple(
        (c.name, show_ratio(c.one), show_ratio(c.other), "yes" if c.unstable else "no") for c in contradictions
    )
    return Section(name, (facts, Table(headings, rows)) if rows else (facts,))


def tell_verdict(total: int, found: list[Contradiction], surprising: list[Contradiction]) -> str:
    """Return the verdict in words."""
    if not total:
        return "The two have no ratio in common: nothing can be said."
    if not found:
        return f"The runs agree: the intervals of all {total} ratios overlap."
    marked = len(found) - len(surprising)
    said = f"Of {total} ratios, {len(found)} have intervals that do not overlap; {marked} of them were called unstable"
    return f"{said}. {'The runs do not agree.' if surprising else 'The runs agree.'}"
