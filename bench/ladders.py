"""Ladders judged: each step's figure, its ratio to the base from paired rounds, and the original's beside it.

Computed from a kept run; knows figures and their intervals, and no words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from bench.results import Contender, Run, Sample, Scenario
from bench.stats import Interval, Spread, median_interval, paired_ratios, percentile, spread
from bench.summary import FEW_ROUNDS, counted, doubt_samples, sample_cpu, sample_rate

AGREES, AGREES_NEAR = 1.5, 1.05
"""Two ratios agree when neither is more than so many times the other: the first for one far from 1; half the way to 1
(on a logarithmic scale) for a smaller one, but not less than the second."""
NEAR = f"within a factor of {AGREES}, less where the original's own step is small"
HOLDS, OPEN, REVERSED = "holds", "open", "reversed"


@dataclass(frozen=True, slots=True)
class Measure:
    """What a ladder compares: its name in a table and its unit; ``more``: whether more of it is better."""

    title: str
    unit: str
    more: bool = True


MEASURES = {
    "rate": Measure("rate", "requests/s"),
    "mbytes": Measure("throughput", "10^6 bytes/s"),
    "cpu": Measure("CPU", "µs/request", more=False),
    **{f"p{percent}": Measure(f"p{percent}", "ms", more=False) for percent in (50, 90, 95, 99, 100)},
}


def measure_sample(measure: str, length: int) -> Callable[[Sample], float]:
    """Return what gives a sample's figure; ``length``: bytes of a body."""
    if measure == "cpu":
        return sample_cpu
    if measure == "mbytes":
        return lambda sample: sample_rate(sample) * length / 1e6
    if measure.startswith("p"):
        return lambda sample: percentile(sample.latencies, int(measure[1:])) / 1000
    return sample_rate


@dataclass(frozen=True, slots=True)
class Rung:
    """A contender's figure in a case: median and spread, by round, and what the original had; ``failed``: why none.

    ``is_base``: it is what ratios are taken to. ``unstable``: its figures, or those of the base, should be doubted.
    """

    contender: Contender
    scenario: Scenario
    value: Spread | None
    by_round: dict[int, float]
    ratio: Interval | None = None
    original: float | None = None
    original_ratio: float | None = None
    failed: str = ""
    is_base: bool = False
    unstable: bool = False

    @property
    def agrees(self) -> bool | None:
        """Whether the ratio and the original's are near each other; ``None`` for the base, and without either."""
        if self.is_base or self.ratio is None or self.original_ratio is None:
            return None
        return agree(self.ratio.median, self.original_ratio)


@dataclass(frozen=True, slots=True)
class Step:
    """Two neighbours of a ladder: how many times the upper one's figure is the lower one's, now and in the original."""

    lower: Rung
    upper: Rung
    ratio: Interval
    then: float | None

    @property
    def verdict(self) -> str:
        """``HOLDS``, ``OPEN`` (the interval holds 1, or there are too few rounds) or ``REVERSED``."""
        if len(self.upper.by_round.keys() & self.lower.by_round.keys()) < FEW_ROUNDS:
            return OPEN
        if self.ratio.low > 1:
            return HOLDS
        return REVERSED if self.ratio.high < 1 else OPEN


@dataclass(frozen=True, slots=True)
class Judged:
    """A ladder with its figures."""

    title: str
    measure: Measure
    base: str
    rungs: tuple[Rung, ...]
    steps: tuple[Step, ...]
    across: bool
    """Whether its steps are of several cases."""

    def name(self, rung: Rung) -> str:
        """Return what tells a rung from the others: the contender, the case, or both."""
        case = rung.scenario.name.replace("-", " ")
        alone = len({rung.contender.name for rung in self.rungs}) == 1
        return (
            case
            if self.across and alone
            else f"{rung.contender.label}, {case}"
            if self.across
            else rung.contender.label
        )


def agree(now: float, then: float) -> bool:
    """True when a ratio is near the original's."""
    if now <= 0 or then <= 0:
        return False
    allowed = min(math.log(AGREES), max(abs(math.log(then)) / 2, math.log(AGREES_NEAR)))
    return abs(math.log(now / then)) <= allowed


def pair_rounds(values: dict[int, float], base: dict[int, float]) -> Interval | None:
    """Return the interval of the ratios within each round that both have; ``None`` without one."""
    ratios = paired_ratios(values, base)
    return median_interval(ratios) if ratios else None


def make_rung(run: Run, name: str, case: str, measure: str, original: float | None) -> Rung:
    """Return a contender's figures in a case."""
    contender = run.find(name)
    scenario = next(scenario for scenario in run.scenarios if scenario.name == case)
    failed = scenario.tell_reason(contender)
    samples = [] if failed else counted(run, name, scenario)
    figure = measure_sample(measure, scenario.lengths.get(name, 0))
    values = {sample.round: figure(sample) for sample in samples}
    known = spread(list(values.values())) if values else None
    return Rung(
        contender, scenario, known, values, original=original, failed=failed or ("" if values else "not measured"),
        unstable=bool(samples and doubt_samples(samples)),
    )  # fmt: skip


def judge_ladder(run: Run, ladder: dict[str, Any]) -> Judged:
    """Return a ladder of the run's plan with its figures."""
    bare = [make_rung(run, row["name"], row["case"], ladder["measure"], row["original"]) for row in ladder["steps"]]
    good = [rung for rung in bare if rung.value is not None]
    wanted = tuple(ladder["base"])
    base = next(
        (rung for rung in good if (rung.contender.name, rung.scenario.name) == wanted), good[0] if good else None
    )
    rungs = tuple(hold_against(rung, base) for rung in bare)
    steps = []
    for lower, upper in pairwise(rung for rung in rungs if rung.value is not None):
        if (ratio := pair_rounds(upper.by_round, lower.by_round)) is not None:
            then = upper.original / lower.original if upper.original and lower.original else None
            steps.append(Step(lower, upper, ratio, then))
    across = len({rung.scenario.name for rung in rungs}) > 1
    bare_ladder = Judged(ladder["title"], MEASURES[ladder["measure"]], "", rungs, tuple(steps), across)
    return replace(bare_ladder, base=bare_ladder.name(base) if base else "")


def hold_against(rung: Rung, base: Rung | None) -> Rung:
    """Return a rung with its ratios to the base."""
    if base is None or rung.value is None:
        return rung
    then = rung.original / base.original if rung.original and base.original else None
    ratio = pair_rounds(rung.by_round, base.by_round)
    unstable = rung.unstable or base.unstable
    return replace(rung, ratio=ratio, original_ratio=then, is_base=rung is base, unstable=unstable)


def judge_ladders(run: Run) -> list[Judged]:
    """Return every ladder of a run."""
    return [judge_ladder(run, ladder) for ladder in run.plan["ladders"]]
