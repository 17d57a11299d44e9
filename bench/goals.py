"""Goals judged: a contender's figure in parts of another's, from paired rounds, against a bound.

Computed from a kept run; knows figures and their intervals, and no words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.ladders import MEASURES, Measure, Rung, make_rung, pair_rounds
from bench.results import Run, Scenario
from bench.stats import Interval

MET, MISSED, OPEN, TOLD, UNMEASURED = "met", "missed", "open", "told", "not measured"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A goal in one case: what was asked of whom, the ratio found, and the verdict."""

    scenario: Scenario
    mine: Rung
    other: Rung
    measure: Measure
    most: float
    ratio: Interval | None
    verdict: str


def judge_goal(most: float, ratio: Interval | None) -> str:
    """Return the verdict on a ratio that must be ``most`` at most; one with a bound of 0 is only told."""
    if ratio is None:
        return UNMEASURED
    if not most:
        return TOLD
    if ratio.high <= most:
        return MET
    return MISSED if ratio.low > most else OPEN


def judge_goals(run: Run) -> list[Verdict]:
    """Return every goal of the run's plan in every case that both contenders take part in."""
    return [verdict for goal in run.plan.get("goals", ()) for verdict in judge_cases(run, goal)]


def judge_cases(run: Run, goal: dict[str, Any]) -> Iterator[Verdict]:
    """Yield a goal's verdicts, case by case."""
    for scenario in run.scenarios:
        if {goal["name"], goal["of"]} <= set(scenario.parts):
            mine, other = (make_rung(run, goal[key], scenario.name, goal["measure"], None) for key in ("name", "of"))
            ratio = pair_rounds(mine.by_round, other.by_round)
            measure, most = MEASURES[goal["measure"]], float(goal["most"])
            yield Verdict(scenario, mine, other, measure, most, ratio, judge_goal(most, ratio))
