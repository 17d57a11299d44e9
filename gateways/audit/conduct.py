"""The whole audit: what new processes answer, what each rung answers and keeps, and what follows from both.

Runs jobs and asks the judges; knows neither how a request is run nor how a report looks.
"""

from __future__ import annotations

import dataclasses
import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from gateways.audit import judge
from gateways.audit.expect import Difference, Expectation, find_differences
from gateways.audit.job import Asked, Job, Record, Run, Rung
from gateways.audit.links import list_links
from gateways.audit.locate import Place, Sources
from gateways.audit.reading import is_read_unset
from gateways.audit.runner import Workshop, do_job

ROUNDS = 3
"""Times that a rung is asked everything: in the given order, then in shuffled ones."""
SOAK = 48
"""Further requests until the memory of a rung is looked at first."""
AGAIN = 3
"""Times that a new process is asked once more what seems to be answered otherwise."""
CRAWL_LIMIT = 2.0
"""Seconds that a page may take which is only known by a link."""
MODES = (b"zygote", b"perlrun", b"registry")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be audited. ``ladders``: (yardstick, rungs held against it), slowest first. ``script``: the path of a
    script, ``""`` for what is called. ``crawl``: pages to follow links to, beside ``requests``."""

    target: tuple[str, str, str]
    shown: str
    ladders: tuple[tuple[Rung, tuple[Rung, ...]], ...]
    requests: tuple[Asked, ...]
    script: str = ""
    python_path: tuple[str, ...] = ()
    crawl: int = 0
    seed: int = 1
    time_limit: float = 10.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Audit:
    """The outcome. ``places``: (kind, name) of a cause -> lines of source. ``notes``: what was left out, and why."""

    plan: Plan
    requests: tuple[Asked, ...]
    verdicts: tuple[judge.Verdict, ...]
    places: dict[tuple[str, str], list[Place]]
    notes: tuple[str, ...]


def make_sequence(count: int, rounds: int, seed: int) -> tuple[int, ...]:
    """Return ``rounds`` orders of ``count`` requests, one after another: the first as given, the others shuffled."""
    shuffle = random.Random(seed).shuffle
    sequence = list(range(count))
    for _ in range(rounds - 1):
        order = list(range(count))
        shuffle(order)
        sequence += order
    return tuple(sequence)


def crawl(shop: Workshop, job: Job, limit: int) -> tuple[list[Asked], list[Asked]]:
    """Return (the job's requests and those that pages of the application link to, pages that were too slow).

    At most ``limit`` links are followed, none of them for longer than ``CRAWL_LIMIT``.
    """
    given = set(job.requests)
    known = {asked.target for asked in given if asked.method == "GET"}
    found, slow = list(job.requests), []
    fresh = tuple(job.requests)
    patience = min(job.time_limit, CRAWL_LIMIT)
    while fresh:
        order = tuple(range(len(fresh)))
        run = do_job(shop, dataclasses.replace(job, requests=fresh, sequence=order, time_limit=patience))
        slow += [fresh[record.request] for record in run.records if record.died or record.seconds >= patience]
        links = [link for record in run.records for link in read_links(record, fresh[record.request].target)]
        wanted = [target for target in dict.fromkeys(links) if target not in known]
        fresh = tuple(Asked("GET", target) for target in wanted[: limit + len(given) - len(found)])
        known.update(asked.target for asked in fresh)
        found += fresh
    slow = [asked for asked in slow if asked not in given]
    return [asked for asked in found if asked not in slow], slow


def read_links(record: Record, target: str) -> list[str]:
    """Return where an answer's page, or its Location, leads."""
    links = []
    for name, value in record.fields:
        if name.lower() == "location":
            links += list_links(f'<a href="{escape(value)}">', target)
        elif name.lower() == "content-type" and "html" in value:
            links += list_links(record.body.decode("utf-8", "replace"), target)
    return links


def give_up(rungs: Sequence[Rung], reason: str) -> list[judge.Verdict]:
    """Return the verdicts on rungs that were not tried."""
    return [judge.Verdict(rung.name, judge.Standing.UNTRIED, reason=reason) for rung in rungs]


def prefer_fresh(verdicts: list[judge.Verdict]) -> list[judge.Verdict]:
    """Return verdicts in which ``registry`` is told to be safe because its namespace is fresh, where that is why."""
    unsafe = {verdict.rung for verdict in verdicts if verdict.standing is judge.Standing.UNSAFE}
    return [
        dataclasses.replace(verdict, settings=(("Namespace", "fresh"),))
        if "registry-shared" in unsafe and verdict.rung == "registry" and verdict.standing is judge.Standing.SAFE
        else verdict
        for verdict in verdicts
    ]


class Auditor:
    """One audit. ``program``: see ``Workshop``."""

    def __init__(self, plan: Plan, shop: Workshop) -> None:
        self._plan = plan
        self._shop = shop
        self._requests: tuple[Asked, ...] = plan.requests
        self._notes: list[str] = list(plan.notes)
        self._own: set[str] = {plan.script} if plan.script else set()
        self._fresh: dict[int, list[dict[str, str]]] = {}

    def run(self) -> Audit:
        """Run everything and return the outcome."""
        verdicts = [verdict for yardstick, rungs in self._plan.ladders for verdict in self._climb(yardstick, rungs)]
        sources = Sources(self._own, self._plan.script)
        keys = {cause.key: cause for verdict in verdicts for cause in verdict.causes}
        places = {key: self._locate(sources, cause) for key, cause in keys.items()}
        return Audit(self._plan, self._requests, tuple(verdicts), places, tuple(dict.fromkeys(self._notes)))

    def _locate(self, sources: Sources, cause: judge.Cause) -> list[Place]:
        if cause.kind == "no end":
            return sources.find_frames(cause.before)
        return sources.locate(cause.kind, cause.name)

    def _job(self, rung: Rung, sequence: tuple[int, ...], soak: int = 0) -> Job:
        plan = self._plan
        return Job(
            plan.target, rung, self._requests, sequence, "", "", plan.python_path, soak=soak,
            time_limit=plan.time_limit,
        )  # fmt: skip

    def _plan_rung(self, rung: Rung, sequence: tuple[int, ...], two_rounds: int) -> Job:
        """Return a rung's job; nothing but answers can differ where each request has a process of its own."""
        return self._job(rung, sequence[:two_rounds]) if rung.forks else self._job(rung, sequence, SOAK)

    def _climb(self, yardstick: Rung, rungs: Sequence[Rung]) -> list[judge.Verdict]:
        """Return the verdicts on a yardstick and the rungs held against it."""
        plan = self._plan
        if plan.crawl and self._requests is plan.requests:
            found, slow = crawl(self._shop, self._job(yardstick, ()), plan.crawl)
            self._requests = tuple(found)
            self._notes += [f"found by following links: {len(found) - len(plan.requests)} of {len(found)} requests"] * (
                len(found) > len(plan.requests)
            )
            self._notes += [f"{asked.label}: left out: a link that takes {CRAWL_LIMIT:g} s or more" for asked in slow]
        count = len(self._requests)
        truth = do_job(self._shop, self._job(yardstick, make_sequence(count, 2, plan.seed)))
        if truth.failed:
            return give_up((yardstick, *rungs), truth.failed)
        samples = self._sort_samples(truth, yardstick)
        kept = self._drop_unfit(samples, yardstick)
        sequence = tuple(number for number in make_sequence(count, ROUNDS, plan.seed) if number in kept)
        first = judge.Verdict(yardstick.name, judge.Standing.YARDSTICK)
        if not kept:
            reason = "no request has an answer that can be compared"
            return [first, *give_up(rungs, reason)]
        runs = [do_job(self._shop, self._plan_rung(rung, sequence, 2 * len(kept))) for rung in rungs]
        for run in runs:
            self._own.update(run.own)
            if (run.rung.model, run.rung.namespace) == ("registry", "fresh"):
                for record in run.records:
                    self._fresh.setdefault(record.request, []).append(record.names)
        self._ask_again(yardstick, runs, samples)
        return [first, *prefer_fresh([self._judge(run, truth, samples, len(kept)) for run in runs])]

    def _sort_samples(self, truth: Run, yardstick: Rung) -> dict[int, list[Record]]:
        samples: dict[int, list[Record]] = {}
        for record in truth.records:
            samples.setdefault(record.request, []).append(record)
        return samples

    def _drop_unfit(self, samples: dict[int, list[Record]], yardstick: Rung) -> set[int]:
        """Return the requests that can be compared, and note the others."""
        kept = set(samples)
        for number, records in samples.items():
            label = self._requests[number].label
            if any(record.died or record.seconds >= self._plan.time_limit * 0.9 for record in records):
                self._notes.append(
                    f"{label}: not compared: {yardstick.name} does not end it in {self._plan.time_limit:g} s either"
                )
                kept.discard(number)
            elif all(record.error for record in records):
                self._notes.append(f"{label}: fails in a new process, too: {records[0].error}")
        answered = {records[0].status for number, records in samples.items() if number in kept}
        if answered and all(status[:1] in ("4", "5") for status in answered):
            self._notes.append(f"no request succeeds ({', '.join(sorted(answered))}): give one that does")
        return kept

    def _find(self, run: Run, samples: dict[int, list[Record]]) -> list[Difference]:
        expectations = {
            number: Expectation(records) for number, records in samples.items() if not any(r.died for r in records)
        }
        mode = run.rung.model.encode()
        return find_differences(run.records, expectations, (mode, b"cgi") if mode in MODES else (b"", b""))

    def _ask_again(self, yardstick: Rung, runs: Sequence[Run], samples: dict[int, list[Record]]) -> None:
        """Ask new processes once more for what seems to be answered otherwise: time may have changed it."""
        doubtful = {difference.request for run in runs for difference in self._find(run, samples)}
        if doubtful:
            sequence = tuple(sorted(doubtful)) * AGAIN
            for record in do_job(self._shop, self._job(yardstick, sequence)).records:
                samples[record.request].append(record)
        shared = [run for run in runs if run.rung.namespace == "shared"]
        old = {cause.request for run in shared for cause in judge.judge_names(run, self._fresh)}
        if old:
            for record in do_job(self._shop, self._job(Rung("registry"), tuple(sorted(old)) * 2)).records:
                self._fresh.setdefault(record.request, []).append(record.names)

    def _judge(self, run: Run, truth: Run, samples: dict[int, list[Record]], count: int) -> judge.Verdict:
        causes = self._list_causes(run, truth, count)
        differences = self._find(run, samples)
        unexplained = differences and not any(cause.fault for cause in causes)
        if unexplained and run.rung.model in ("perlrun", "registry") and run.rung.stdio == "object":
            with_body = all(self._requests[difference.request].body for difference in differences)
            other = dataclasses.replace(run.rung, stdio="descriptor")
            again = do_job(self._shop, self._job(other, tuple(r.request for r in run.records))) if with_body else None
            if again is not None and not self._find(again, samples) and not again.failed:
                return judge.decide(run, causes, [("Stdio", "descriptor")])
        if run.cut:
            self._notes.append(f"{run.rung.name}: its process ended too often; {len(run.records)} requests were tried")
        return judge.decide(run, judge.assign_differences(causes, differences))

    def _list_causes(self, run: Run, truth: Run, count: int) -> list[judge.Cause]:
        ends = judge.judge_ends(run)
        for cause in ends:
            cause.name = self._requests[cause.request].label
        if run.rung.forks:
            return [*judge.judge_files(run, truth, 2, count), *ends]
        names: list[judge.Cause] = []
        if run.rung.namespace == "shared":
            names = judge.judge_names(run, self._fresh, self._find_read(run))
        causes = [
            *names,
            *judge.judge_state(run, ROUNDS, count),
            *judge.judge_files(run, truth, ROUNDS, count),
            *ends,
        ]
        if not any(cause.fault for cause in causes):  # otherwise it may be what they keep
            causes += judge.judge_memory(run)
        return causes

    def _find_read(self, run: Run) -> dict[str, bool]:
        names = {name for record in run.records for name in record.names}
        try:
            with open(self._plan.script, "rb") as file:
                source = file.read(1 << 20)
        except OSError:
            return {}
        return {name: is_read_unset(source, name) for name in names}


def audit(plan: Plan, program: str, progress: object = None) -> Audit:
    """Audit what ``plan`` says. ``program``: Python source that does a job; ``progress``: see ``Workshop``."""
    folder = tempfile.mkdtemp(prefix="gateways-audit-")
    tell = progress if callable(progress) else lambda rung, done, total: None
    try:
        return Auditor(plan, Workshop(folder, program, tell)).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
