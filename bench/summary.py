"""From samples to figures: one row a contender and scenario. Computed on reading, never kept.

Knows samples and statistics; nothing of how figures are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bench.harness import judge_sample
from bench.results import Contender, Run, Sample, Scenario
from bench.stats import Interval, Spread, median, median_interval, merge_histograms, paired_ratios, percentile, spread

UNSTABLE = 0.10
"""Interquartile range, as a part of the median, above which a figure is called unstable."""
FEW_ROUNDS = 3
AB_PERCENTS = (50, 66, 75, 80, 90, 95, 98, 99, 100)
"""The percentages that ``ab`` prints."""
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """A contender's figures in one scenario; all ``None`` when it failed.

    ``rate``: requests a second; ``time``: milliseconds a request as one client waits; ``cpu``: microseconds of the
    server's CPU a request; ``percentiles``: percent -> milliseconds; ``memory``: MiB a worker; ``rate_ratio`` and
    ``cpu_ratio``: to the base contender, from paired rounds; ``front_cpu``: microseconds of the front server between.
    """

    contender: Contender
    failed: str = ""
    rounds: int = 0
    requests: int = 0
    rate: Spread | None = None
    time: float | None = None
    cpu: Spread | None = None
    percentiles: dict[int, float] = field(default_factory=dict)
    memory: float | None = None
    rate_ratio: Interval | None = None
    cpu_ratio: Interval | None = None
    load_share: float = 0.0
    front_cpu: float = 0.0
    unstable: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The contender's name."""
        return self.contender.name


def counted(run: Run, contender: str, scenario: Scenario) -> list[Sample]:
    """Return the samples that figures are made of: without the disturbed ones, if enough others are left."""
    samples = run.of(contender, scenario.name)
    quiet = [sample for sample in samples if not judge_sample(sample)]
    return quiet if len(quiet) >= FEW_ROUNDS else samples


def sample_rate(sample: Sample) -> float:
    """Return requests a second."""
    return sample.requests / sample.seconds


def sample_cpu(sample: Sample) -> float:
    """Return the server's CPU microseconds a request."""
    return sample.cpu / sample.requests * 1e6


def by_round(samples: list[Sample], measure: Callable[[Sample], float]) -> dict[int, float]:
    """Return round -> figure."""
    return {sample.round: measure(sample) for sample in samples}


def pair(samples: list[Sample], base: list[Sample], measure: Callable[[Sample], float]) -> Interval | None:
    """Return the ratio of a figure to the base's, from the rounds that both have; ``None`` when there are none."""
    ratios = paired_ratios(by_round(samples, measure), by_round(base, measure))
    return median_interval(ratios) if ratios else None


def find_unrest(samples: list[Sample], rate: Spread, cpu: Spread) -> tuple[str, ...]:
    """Return why a contender's figures should be doubted, in words; empty when nothing speaks against them."""
    wide = [
        f"{100 * figure.relative:.0f} % in {name}"
        for name, figure in (("rate", rate), ("CPU a request", cpu))
        if figure.relative > UNSTABLE
    ]
    reasons = [f"the middle half of its rounds differs by {' and '.join(wide)}"] if wide else []
    disturbed = [reason for reason in map(judge_sample, samples) if reason]
    if disturbed:
        reasons.append(f"{len(disturbed)} of {len(samples)} rounds were disturbed to the last try ({disturbed[0]})")
    if len(samples) < FEW_ROUNDS:
        reasons.append(f"only {len(samples)} round{'s' if len(samples) != 1 else ''}")
    return tuple(reasons)


def doubt_samples(samples: list[Sample]) -> tuple[str, ...]:
    """Return why the figures of one or more samples should be doubted; empty when nothing speaks against them."""
    return find_unrest(samples, spread([sample_rate(s) for s in samples]), spread([sample_cpu(s) for s in samples]))


def summarise_contender(run: Run, contender: Contender, scenario: Scenario, base: str) -> Row:
    """Return one contender's row; a failed one has its reason and no figures."""
    samples = counted(run, contender.name, scenario)
    failed = scenario.tell_reason(contender)
    if failed or not samples:
        return Row(contender, failed or "not measured")
    rate, cpu = spread([sample_rate(s) for s in samples]), spread([sample_cpu(s) for s in samples])
    latencies = merge_histograms(sample.latencies for sample in samples)
    reference = counted(run, base, scenario)
    return Row(
        contender,
        rounds=len(samples),
        requests=sum(sample.requests for sample in samples),
        rate=rate,
        time=1000 * scenario.concurrency / rate.median,
        cpu=cpu,
        percentiles={p: percentile(latencies, p) / 1000 for p in AB_PERCENTS} if latencies else {},
        memory=median([size / MIB for size in contender.memory]) if contender.memory else None,
        rate_ratio=pair(samples, reference, sample_rate),
        cpu_ratio=pair(samples, reference, sample_cpu),
        front_cpu=median([s.front_cpu / s.requests * 1e6 for s in samples]),
        load_share=sum(s.load_cpu for s in samples) / sum(s.seconds for s in samples),
        unstable=find_unrest(samples, rate, cpu),
    )


def summarise(run: Run, scenario: Scenario, base: str) -> list[Row]:
    """Return every contender's row, the fastest first, failed ones last."""
    rows = [
        summarise_contender(run, contender, scenario, base)
        for contender in run.contenders
        if scenario.takes_part(contender.name)
    ]
    return sorted(rows, key=lambda row: -row.rate.median if row.rate else 1.0)
