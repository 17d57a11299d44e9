"""Alternating rounds: every contender once a round, in an order drawn anew, each with the CPU it used.

Knows ports, process families, load tools and the clock; nothing of which servers they are or what the figures mean.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from bench.answers import Answer
from bench.drivers import Driver
from bench.load import Job, Result
from bench.proc import read_account
from bench.results import Run, Sample, Scenario

OTHER_LIMIT = 0.10
"""Part of one core that other processes may use during a sample before it is measured again."""
STOLEN_LIMIT = 0.10
"""Part of one core that the host may take during a sample before it is measured again."""
TRIES = 3
RERUNS = 12
WARM_UP_SECONDS = 0.3
WARM_UP_CONCURRENCY = 4
OVERHEAD = 0.05
COUNT_SECONDS = 60.0
"""How long a sample of so many requests may take."""


class Progress(Protocol):
    """Where the harness tells how far it is."""

    def tell(self, text: str, done: int, total: int) -> None:
        """Show one step of ``total``."""


@dataclass(frozen=True, slots=True)
class Target:
    """One contender as the harness sees it: where to ask, and which process family answers.

    ``page``: the answer that is right for it, where that is not everybody's. ``wire``: the protocol, the scenario's if
    empty. ``front``: the front server's process, 0 for none. ``prepare``: done before each sample; returns what failed.
    """

    name: str
    port: int
    path: str
    root: int
    page: Answer | None = None
    wire: str = ""
    front: int = 0
    prepare: Callable[[], str] = field(default=lambda: "")


@dataclass(slots=True)
class Conditions:
    """How the rounds are run. ``deadline`` and ``start``: on the monotonic clock; ``reruns``: samples that may still be
    repeated.
    """

    rounds: int
    seconds: float
    seed: int
    deadline: float
    load_core: int | None
    reruns: int = RERUNS
    start: float = 0.0
    failures: dict[str, str] = field(default_factory=dict)


def plan_orders(names: Sequence[str], rounds: int, seed: int) -> list[list[str]]:
    """Return the order of contenders for each round; the same seed gives the same orders.

    Places are turned by one each round, so that nobody is always first, and neighbours are drawn anew, so that nobody
    always follows the same one.
    """
    source = random.Random(seed)
    orders = []
    for number in range(rounds):
        order = list(names)
        source.shuffle(order)
        first = names[number % len(names)]
        order.remove(first)
        orders.append([first, *order])
    return orders


def judge_sample(sample: Sample) -> str:
    """Return why a sample was disturbed, ``""`` when it was not."""
    if sample.other_cpu > OTHER_LIMIT * sample.seconds:
        return f"other processes used {100 * sample.other_cpu / sample.seconds:.0f} % of a core"
    if sample.stolen > STOLEN_LIMIT * sample.seconds:
        return f"the host took {100 * sample.stolen / sample.seconds:.0f} % of a core"
    return ""


def make_job(target: Target, scenario: Scenario, page: Answer, seconds: float, core: int | None) -> Job:
    """Return the job that asks a target for the page; without a body to compare it checks the status only."""
    right = target.page or page
    return Job(
        port=target.port,
        path=target.path,
        length=len(right.body) if right.body else -1,
        digest=right.digest,
        seconds=COUNT_SECONDS if scenario.count else seconds,
        count=scenario.count,
        concurrency=scenario.concurrency,
        keep_alive=scenario.keep_alive,
        core=-1 if core is None else core,
        speech=target.wire or scenario.wire,
    )


def measure_sample(
    target: Target, scenario: Scenario, driver: Driver, job: Job, place: tuple[int, int]
) -> tuple[Sample, Result]:
    """Run one job and return its sample, with the CPU used between its beginning and its end.

    Raise ``ProcessLookupError`` when the server is gone.
    """
    ours = [os.getpid(), *driver.pids()]
    before = read_account(target.root, ours, target.front)
    result = driver.run(job)
    after = read_account(target.root, ours, target.front)
    cpu, load, front = after.family - before.family, after.ours - before.ours, after.beside - before.beside
    other = after.everything - before.everything - cpu - load - front
    sample = Sample(
        contender=target.name,
        scenario=scenario.name,
        round=place[0],
        place=place[1],
        requests=result.requests,
        seconds=round(result.seconds, 6),
        connections=result.connections,
        cpu=round(max(cpu, 0.0), 6),
        load_cpu=round(max(load, 0.0), 6),
        other_cpu=round(max(other, 0.0), 6),
        stolen=round(after.stolen - before.stolen, 3),
        latencies=result.latencies,
        front_cpu=round(max(front, 0.0), 6),
    )
    return sample, result


def measure_quietly(
    target: Target, scenario: Scenario, driver: Driver, job: Job, place: tuple[int, int], conditions: Conditions
) -> tuple[list[Sample], str]:
    """Return the samples of one place in a round, and what failed: a disturbed one is measured again, a few times.

    The last try counts even when it was disturbed, so that nobody is left without figures; whoever reads it can tell.
    """
    samples: list[Sample] = []
    for attempt in range(TRIES):
        if failed := target.prepare():
            return samples, failed
        try:
            sample, result = measure_sample(target, scenario, driver, job, place)
        except ProcessLookupError as error:
            return samples, f"the server is gone: {error}"
        if result.error or not result.requests:
            return samples, result.error or "no answer in the time given"
        sample.at = round(time.monotonic() - conditions.start - sample.seconds, 3) if conditions.start else 0.0
        reason = judge_sample(sample)
        last = attempt == TRIES - 1 or conditions.reruns <= 0
        samples.append(sample if last or not reason else replace(sample, discarded=reason))
        if last or not reason:
            break
        conditions.reruns -= 1
    return samples, ""


def warm_up(
    targets: Sequence[Target], scenario: Scenario, driver: Driver, page: Answer, conditions: Conditions
) -> None:
    """Ask every target for a moment, several at a time so that several workers take part; note who fails."""
    crowd = replace(scenario, concurrency=max(scenario.concurrency, WARM_UP_CONCURRENCY), count=0)
    for target in targets:
        if target.name in conditions.failures:
            continue
        job = make_job(target, crowd, page, WARM_UP_SECONDS, conditions.load_core)
        problem = target.prepare() or driver.run(job).error
        if problem:
            conditions.failures[target.name] = f"while warming up: {problem}"


def run_rounds(
    run: Run,
    targets: Sequence[Target],
    scenario: Scenario,
    driver: Driver,
    page: Answer,
    conditions: Conditions,
    progress: Progress,
) -> None:
    """Measure every target in alternating rounds and put the samples into ``run``; failures into ``conditions``.

    Ends early, with a note, when the next round would pass the deadline.
    """
    orders = plan_orders([target.name for target in targets], conditions.rounds, conditions.seed)
    total = len(orders) * len(targets)
    for number, order in enumerate(orders):
        left = [name for name in order if name not in conditions.failures]
        if not left:
            return
        if time.monotonic() + len(left) * (conditions.seconds + OVERHEAD) > conditions.deadline:
            run.notes.append(
                f"{scenario.name}: ended after {number} of {len(orders)} rounds, because the time was over"
            )
            return
        steps = Steps(progress, number, len(orders), number * len(targets), total)
        run_round(run, targets, left, scenario, driver, page, conditions, steps)


@dataclass(slots=True)
class Steps:
    """Tells the samples of a round, of which ``done`` of ``total`` are behind us."""

    progress: Progress
    number: int
    rounds: int
    done: int
    total: int
    label: str = ""

    def tell(self, name: str, samples: list[Sample], failure: str) -> None:
        """Tell one step."""
        self.done += 1
        text = describe_step(self.number, self.rounds, self.label + name, samples, failure)
        self.progress.tell(text, self.done, self.total)


def run_round(
    run: Run,
    targets: Sequence[Target],
    order: Sequence[str],
    scenario: Scenario,
    driver: Driver,
    page: Answer,
    conditions: Conditions,
    steps: Steps,
) -> None:
    """Measure the targets named in ``order`` once, in that order."""
    by_name = {target.name: target for target in targets}
    for place, name in enumerate(order):
        target = by_name[name]
        job = make_job(target, scenario, page, conditions.seconds, conditions.load_core)
        samples, failure = measure_quietly(target, scenario, driver, job, (steps.number, place), conditions)
        run.samples.extend(samples)
        if failure:
            conditions.failures[name] = f"in round {steps.number + 1} ({scenario.describe()}): {failure}"
        steps.tell(name, samples, failure)


def describe_step(number: int, rounds: int, name: str, samples: list[Sample], failure: str) -> str:
    """Return one line for whoever watches."""
    head = f"round {number + 1}/{rounds}  {name:<17}"
    if failure:
        return f"{head} FAILED: {failure}"
    sample = samples[-1]
    again = f"  (measured {len(samples)} times: {samples[0].discarded})" if len(samples) > 1 else ""
    rate, cpu = sample.requests / sample.seconds, sample.cpu / sample.requests * 1e6
    return f"{head}{rate:>9,.0f} requests/s {cpu:>9,.0f} µs CPU a request{again}"
