"""The findings of a comparison of modes, in words made from its numbers. Pure; knows the ladder of 2008.

Nothing is said that the figures of this very run do not show: where an interval holds 1, the text says that the order
is open, and not who won.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.harness import judge_sample
from bench.historic import MODES_2008
from bench.report.figures import show_ratio, significant
from bench.results import Run, Scenario
from bench.stats import Interval
from bench.summary import Row, counted, pair, sample_cpu, sample_rate

LADDER = ("cgi", "zygote", "perlrun", "registry", "wsgi", "handler")
"""From the slowest to the fastest, as the original and the work that each does let one expect."""
AGREES = 1.5
"""Two ratios agree when neither is more than this many times the other."""
LOAD_BOUND = 0.6
"""Part of its core that a load tool may use before it is named as what bounds the rate."""

HOLDS, OPEN, REVERSED = "holds", "open", "reversed"


@dataclass(frozen=True, slots=True)
class Step:
    """Two neighbours on the ladder: how many times faster the upper one is, and how many times less CPU it uses."""

    lower: str
    upper: str
    rate: Interval
    cpu: Interval
    then: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the upper one is faster, by rate."""
        return judge(self.rate)

    @property
    def cpu_verdict(self) -> str:
        """Whether the upper one uses less CPU."""
        return judge(self.cpu)


def judge(ratio: Interval) -> str:
    """Return whether a ratio is above 1: ``HOLDS``, ``OPEN`` (its interval holds 1) or ``REVERSED``."""
    if ratio.low > 1:
        return HOLDS
    return REVERSED if ratio.high < 1 else OPEN


def find_steps(run: Run, scenario: Scenario, rows: Sequence[Row], rates_2008: Mapping[str, float]) -> list[Step]:
    """Return the steps between neighbouring modes of the ladder that were measured."""
    present = [name for name in LADDER for row in rows if row.name == name and not row.failed]
    steps = []
    for lower, upper in pairwise(present):
        low, high = counted(run, lower, scenario), counted(run, upper, scenario)
        rate, cpu = pair(high, low, sample_rate), pair(low, high, sample_cpu)
        then = rates_2008[upper] / rates_2008[lower] if upper in rates_2008 and lower in rates_2008 else None
        if rate is not None and cpu is not None:
            steps.append(Step(lower, upper, rate, cpu, then))
    return steps


def join(items: Sequence[str]) -> str:
    """Return a list as English: ``a, b and c``."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""


def tell_original(rates_2008: Mapping[str, float]) -> list[str]:
    """Return what the original found."""
    order = sorted(rates_2008, key=lambda name: -rates_2008[name])
    base = rates_2008["cgi"]
    listed = [
        f"{then_name(name)} {rates_2008[name]:,.0f}"
        + (f" ({rates_2008[name] / base:.1f} times cgi)" if name != "cgi" else "")
        for name in order
    ]
    how = "asked for with ab, one request at a time, directly from Apache with mod_perl 2"
    return [
        f"In July 2008 the same 1,164-byte page was {how}.",
        f"Requests per second: {join(listed)}. A zygote was not measured: there was none.",
    ]


def then_name(name: str) -> str:
    """Return a mode's name with what it was called in 2008, where that differs."""
    then = MODES_2008.get(name, name)
    return name if then == name else f"{name} (then {then})"


def tell_run(rows: Sequence[Row], base: str) -> list[str]:
    """Return what this run found."""
    good = [row for row in rows if row.rate is not None]
    failed = [row for row in rows if row.failed]
    sentences = []
    if good:
        listed = [tell_row(row, base) for row in good]
        sentences.append(f"This run found, in requests per second: {join(listed)}.")
    costs = sorted((row for row in good if row.cpu), key=lambda row: row.cpu.median if row.cpu else 0)
    if len(costs) > 1:
        least, most = costs[0], costs[-1]
        assert least.cpu is not None
        assert most.cpu is not None
        apart = most.cpu.median / least.cpu.median
        sentences.append(
            f"In the server's CPU, {least.name} uses {significant(least.cpu.median)} microseconds a request and "
            f"{most.name} {significant(most.cpu.median)}, {significant(apart)} times as much."
        )
        if good[0].rate and good[-1].rate and apart > good[0].rate.median / good[-1].rate.median:
            sentences.append(
                "That is further apart than the rates are: a rate also holds the waking of processes and the load tool."
            )
    sentences += [f"{row.name} failed and has no figures: {row.failed}." for row in failed]
    return sentences


def tell_row(row: Row, base: str) -> str:
    """Return one mode's rate and its ratio to the base."""
    assert row.rate is not None
    rate = significant(row.rate.median)
    if row.name == base or row.rate_ratio is None:
        return f"{row.name} {rate}"
    return f"{row.name} {rate} ({significant(row.rate_ratio.median)} times {base})"


def tell_order(steps: Sequence[Step]) -> list[str]:
    """Return whether the ladder holds, and where it does not, what the figures say about why."""
    if not steps:
        return ["Fewer than two modes have figures: there is no order to judge."]
    names = [steps[0].lower, *(step.upper for step in steps)]
    ladder = " > ".join(reversed(names))
    doubtful = [step for step in steps if step.verdict != HOLDS]
    if not doubtful:
        return [f"The order holds: {ladder}. Every step is above 1 in its whole 95 % interval."]
    reversed_ = [step for step in doubtful if step.verdict == REVERSED]
    what = "does not hold" if reversed_ else "is not contradicted, but not shown throughout"
    return [f"The expected order {ladder} {what}.", *map(explain_step, doubtful)]


def explain_step(step: Step) -> str:
    """Return why a step of the ladder is not there, as far as the figures tell."""
    ratio, cpu = show_ratio(step.rate), show_ratio(step.cpu)
    if step.verdict == OPEN:
        said = f"{step.upper} against {step.lower}: {ratio} times the rate, which may be either way"
    else:
        said = f"{step.upper} is slower than {step.lower}: {ratio} times the rate"
    if step.cpu_verdict == HOLDS:
        return (
            f"{said}. It does use less CPU ({step.lower} uses {cpu} times as much), so the server does less work; the "
            f"rate holds the time of waking each other and of the load tool as well, which hides it. "
            f"Look at the CPU, or ask with --concurrency 10 --keep-alive."
        )
    if step.cpu_verdict == REVERSED:
        return (
            f"{said}, and it uses more CPU as well ({step.lower} uses {cpu} times as much): here the server really "
            f"does more work for {step.upper}."
        )
    return (
        f"{said}, and CPU does not decide it ({cpu}): more rounds would (--rounds 15 --only {step.lower},{step.upper})."
    )


def tell_ratios(rows: Sequence[Row], historic: Mapping[str, float], steps: Sequence[Step], base: str) -> list[str]:
    """Return whether the ratios to the base, and the steps of the ladder, agree with 2008."""
    compared = [
        (row.name, row.rate_ratio.median, historic[row.name])
        for row in rows
        if row.rate_ratio is not None and row.name in historic and row.name != base
    ]
    if not compared:
        return ["No ratio can be held against 2008."]
    near = [name for name, now, then in compared if agree(now, then)]
    far = [(name, now, then) for name, now, then in compared if not agree(now, then)]
    sentences = []
    if near:
        sentences.append(f"The ratio to {base} agrees with 2008, within a factor of {AGREES}, for {join(near)}.")
    if far:
        listed = [f"{name} ({significant(now)} times {base} now, {significant(then)} then)" for name, now, then in far]
        sentences.append(f"The ratio to {base} does not agree with 2008 for {join(listed)}.")
    if far and base == "cgi" and all(now > then for _, now, then in far):
        sentences.append(
            "They lie further from cgi than they did: here, starting an interpreter for every request costs more of "
            "a loaded one's requests than starting Perl did."
        )
    between = [step for step in steps if step.then is not None and step.lower != base]
    if between:
        listed = [
            f"{step.lower} to {step.upper} {significant(step.rate.median)} now and {significant(step.then or 0)} then "
            f"({'agree' if agree(step.rate.median, step.then or 0) else 'differ'})"
            for step in between
        ]
        sentences.append(f"The steps between the others do not depend on {base}: {join(listed)}.")
    return sentences


def agree(now: float, then: float) -> bool:
    """True when neither ratio is more than ``AGREES`` times the other."""
    return now > 0 and then > 0 and max(now / then, then / now) <= AGREES


def tell_doubts(run: Run, rows: Sequence[Row]) -> list[str]:
    """Return what speaks against trusting this run: unstable figures, disturbed rounds, a busy load tool."""
    doubts = [f"{row.name} is unstable: {'; '.join(row.unstable)}." for row in rows if row.unstable]
    kept = [sample for sample in run.samples if not sample.discarded]
    left_out = sum(1 for sample in kept if judge_sample(sample))
    if left_out > len(kept) / 2:
        doubts.insert(0, "This machine was busy with other work most of the time: run it again when it is quiet.")
    if left_out:
        doubts.append(
            f"{left_out} sample{'s were' if left_out != 1 else ' was'} disturbed to the last try, and left out where "
            f"enough others are there."
        )
    again = list(run.discarded())
    if again:
        doubts.append(
            f"{len(again)} sample{'s were' if len(again) != 1 else ' was'} discarded and measured again, because the "
            f"machine was disturbed (the first: {again[0].contender}, {again[0].discarded})."
        )
    busy = [row for row in rows if row.load_share > LOAD_BOUND]
    if busy:
        listed = [f"{row.name} {100 * row.load_share:.0f} %" for row in busy]
        doubts.append(
            f"The load tool was busy for much of the time ({join(listed)} of its core), so it bounds these rates; "
            f"their CPU a request is not touched by that."
        )
    if run.pinned[0] is None:
        doubts.append("There is only one core: load and server took turns on it, and the rates hold both.")
    return [*doubts, *(note[0].upper() + note[1:] + "." for note in run.notes)]
