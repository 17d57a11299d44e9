"""``python -m bench compare NAME``: one comparison as its scenario file says, in alternating rounds.

Ties the parts together: starts the servers, proves the answers, measures round after round and keeps the raw result
after each, so that a run that was interrupted goes on where it was.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.answers import Answer, ask, call_application, compare_answers
from bench.drivers import Driver
from bench.fronts import TABLE as FRONTS
from bench.harness import OVERHEAD, RERUNS, Conditions, Steps, Target, plan_orders, run_round, warm_up
from bench.historic import find_figure, read_figures
from bench.machine import choose_cores, describe_machine
from bench.plan import Case, Ladder, Page, Part, Plan, split_step
from bench.proc import read_family_memory
from bench.progress import TextProgress
from bench.results import Contender, Run, Scenario, write_run
from bench.servers import ServerFailed, ServerMissing
from bench.stage import Stage

ANSWER_SECONDS = 15.0
LEAST_SECONDS, MOST_SECONDS, QUICK_SECONDS = 0.1, 1.5, 0.5
TOOL_SECONDS = 1.0
"""What ab and wrk take at least: they count whole seconds."""
SAMPLE_OVERHEAD = OVERHEAD + 0.03
"""Seconds that a sample takes beside its load: process tables are read, and the load's last answers come."""
COUNT_GUESS = 0.5
QUICK_ROUNDS = 3
SESSIONS = 3
"""How often servers are started anew in a run that is not quick: where a process lies in memory differs from start to
start, and so does its speed, by a few percent that no number of rounds would show."""
PART_FOR_SAMPLES = 0.85
"""Part of the time that is left for samples; the rest is for those that are measured again."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for. ``budget``: seconds for the whole run; ``seconds``: 0 for what the budget gives."""

    rounds: int = 0
    seconds: float = 0.0
    seed: int = 0
    load: str = "builtin"
    quick: bool = False
    budget: float = 480.0
    only: tuple[str, ...] = ()
    cases: str = ""


@dataclass(slots=True)
class Course:
    """A case on its way: who is asked where, and in which order in each round."""

    case: Case
    scenario: Scenario
    targets: list[Target] = field(default_factory=list)
    orders: list[list[str]] = field(default_factory=list)


def narrow_plan(plan: Plan, options: Options) -> Plan:
    """Return the plan with what was asked for only; raise ``ValueError`` when nothing of it is left."""
    known = {part.name for part in plan.contenders} | {part.group for part in plan.contenders}
    if unknown := [name for name in options.only if name not in known]:
        raise ValueError(f"--only: {unknown[0]!r} is none of {', '.join(sorted(known))}")
    parts = tuple(part for part in plan.contenders if not options.only or {part.name, part.group} & {*options.only})
    narrowed = replace(plan, contenders=parts)
    cases = tuple(
        case
        for case in plan.cases
        if is_wanted(case.name, options.cases)
        and (case.quick or not options.quick or options.cases)
        and narrowed.taking_part(case)
    )
    if not cases:
        raise ValueError(f"no case is left of {', '.join(case.name for case in plan.cases)}")
    if options.load == "wrk" and (counting := [case.name for case in cases if case.count]):
        raise ValueError(f"wrk cannot be given a number of requests, as {counting[0]} asks for: use builtin or ab")
    return replace(narrowed, cases=cases)


def is_wanted(name: str, wanted: str) -> bool:
    """True when a case's name holds one of the parts that commas separate; ``a+b``: both of them."""
    return any(all(part in name for part in choice.split("+")) for choice in wanted.split(","))


def describe_plan(plan: Plan, options: Options) -> dict[str, Any]:
    """Return what the report needs of a plan, with the original's figures looked up."""
    figures = read_figures()
    measured = {(part.name, case.name) for case in plan.cases for part in plan.taking_part(case)}
    ladders = []
    for ladder in plan.ladders:
        steps = [
            {"name": name, "case": case, "original": find_original(plan, ladder, step, figures)}
            for step, (name, case) in ((step, split_step(ladder, step)) for step in ladder.steps)
            if (name, case) in measured
        ]
        base = split_step(ladder, ladder.base or ladder.steps[0])
        if len(steps) > 1:
            ladders.append({"title": ladder.title, "measure": ladder.measure, "base": list(base), "steps": steps})
    series = [asdict(row) for row in plan.series if any((name, row.case) in measured for name in row.contenders)]
    present = {part.name for part in plan.contenders}
    goals = [asdict(goal) for goal in plan.goals if {goal.name, goal.of} <= present]
    return {
        "name": plan.name, **asdict(plan.head), "ladders": ladders, "goals": goals, "series": series,
        "options": asdict(options), "digest": plan.digest,
    }  # fmt: skip


def find_original(plan: Plan, ladder: Ladder, step: str, figures: dict[str, Any]) -> float | None:
    """Return the original's figure of a step, ``None`` when it had none of this measure."""
    name, case = split_step(ladder, step)
    key = ladder.original.get(step) or (plan.case(case).original.get(name) if ladder.measure == "rate" else "")
    return find_figure(key, figures) if key else None


def begin_run(plan: Plan, options: Options) -> Run:
    """Return a run without samples."""
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else plan.head.rounds)
    seed = options.seed or int.from_bytes(os.urandom(3), "big")
    cores = list(choose_cores(sorted(os.sched_getaffinity(0))))
    run = Run("scenario", describe_machine(), options.load, seed, rounds, options.seconds, {}, cores)
    run.contenders = [Contender(part.name, part.label or part.name, group=part.group) for part in plan.contenders]
    run.scenarios = [make_scenario(plan, case) for case in plan.cases]
    run.plan = describe_plan(plan, options)
    return run


def make_scenario(plan: Plan, case: Case) -> Scenario:
    """Return a case as the result keeps it."""
    behind = ""
    if case.front:
        kept = "keeps its connections to the server" if case.reuse else "makes a new connection for each request"
        behind = f"behind {FRONTS[case.front].label}, which {kept}"
    return Scenario(
        case.name, case.concurrency, case.keep_alive, title=case.title or case.name, page=case.page, count=case.count,
        behind=behind, base=case.base, parts=[part.name for part in plan.taking_part(case)],
    )  # fmt: skip


def find_right(page: Page) -> Answer | None:
    """Return the page as its application makes it when it is called directly, ``None`` without one."""
    return call_application(page.app, page.path) if page.app else None


def judge_answer(page: Page, got: Answer, right: Answer | None) -> str:
    """Return in what an answer is wrong, ``""`` when it is right."""
    if page.same == "bytes" and right is not None:
        return compare_answers(got, right)
    if got.status != 200:
        return f"status {got.status}, not 200"
    if page.same == "pattern" and not re.search(page.pattern.encode(), got.body):
        return f"the body has no match of {page.pattern!r}: {got.body[:60]!r}"
    return ""


def prove_part(
    stage: Stage, part: Part, case: Case, page: Page, right: Answer | None, load: str
) -> tuple[Target, Answer]:
    """Return a contender's target and its answer; raise ``ServerFailed`` when it does not run or answers wrongly."""
    target = stage.make_target(part, case, page)
    if target.wire != "http" and load != "builtin":
        raise ServerMissing(f"only --load builtin speaks {target.wire}")
    if failed := target.prepare():
        raise ServerFailed(failed)
    try:
        got = ask(target.wire, target.port, target.path, ANSWER_SECONDS)
    except (OSError, ValueError) as error:
        raise ServerFailed(f"no answer: {error}") from error
    if problem := judge_answer(page, got, right):
        raise ServerFailed(problem)
    shown = Answer(got.status, got.content_type, b"") if page.same == "pattern" else got
    return replace(target, page=shown), got


def prepare_course(plan: Plan, case: Case, run: Run, stage: Stage, rights: dict[str, Answer]) -> Course:
    """Start what a case needs and prove every answer; who fails is noted in the scenario."""
    scenario = next(scenario for scenario in run.scenarios if scenario.name == case.name)
    course, page = Course(case, scenario), plan.page(case.page)
    contenders = {contender.name: contender for contender in run.contenders}
    for part in plan.taking_part(case):
        scenario.missing.pop(part.name, "")
        if part.name in scenario.failed:
            continue
        try:
            target, got = prove_part(stage, part, case, page, rights.get(page.name), run.load)
        except ServerMissing as error:
            scenario.missing[part.name] = str(error)
            continue
        except ServerFailed as error:
            scenario.failed[part.name] = str(error)
            stage.say(f"FAILED {part.name} ({case.name}): {error}")
            continue
        rights.setdefault(page.name, got)
        if page.same != "pattern":
            scenario.lengths[part.name] = len(got.body)
        contenders[part.name].command = stage.describe(part.service)
        course.targets.append(target)
    names = [target.name for target in course.targets]
    course.orders = plan_orders(names, run.rounds, run.seed + plan.cases.index(case)) if names else []
    return course


def note_missing(run: Run) -> None:
    """Call those missing altogether that could take part in none of their cases."""
    for contender in run.contenders:
        reasons = [s.missing.get(contender.name, "") for s in run.scenarios if s.takes_part(contender.name)]
        contender.missing = reasons[0] if reasons and all(reasons) else ""


def choose_seconds(courses: Sequence[Course], run: Run, left: float) -> float:
    """Return how long a sample may take so that all of them fit into ``left`` seconds, within bounds."""
    timed = sum(len(course.targets) for course in courses if not course.case.count)
    counted = sum(len(course.targets) for course in courses if course.case.count)
    least = LEAST_SECONDS if run.load == "builtin" else TOOL_SECONDS
    most = max(least, QUICK_SECONDS if run.plan["options"]["quick"] else MOST_SECONDS)
    if not timed:
        return most
    free = left / run.rounds - counted * (COUNT_GUESS + SAMPLE_OVERHEAD)
    return round(min(max(free / timed - SAMPLE_OVERHEAD, least), most), 2)


def warm_courses(courses: Sequence[Course], driver: Driver, conditions: Conditions) -> None:
    """Ask everybody for a moment, once for each server and path; who fails is noted in its scenario."""
    warm: set[tuple[int, str]] = set()
    for course in courses:
        fresh = [target for target in course.targets if (target.port, target.path) not in warm]
        if course.case.warm_up:
            conditions.failures = course.scenario.failed
            warm_up(fresh, course.scenario, driver, NOTHING, conditions)
            warm |= {(target.port, target.path) for target in fresh}


NOTHING = Answer(200, "", b"")


def plan_sessions(first: int, rounds: int, sessions: int) -> list[range]:
    """Return the rounds from ``first`` on, in ``sessions`` parts of all of them; servers are started anew for each."""
    edges = [rounds * number // sessions for number in range(sessions + 1)]
    parts = [range(max(begin, first), end) for begin, end in pairwise(edges)]
    return [part for part in parts if part]


@dataclass(slots=True)
class Pace:
    """What ends a run early: its deadline, on the monotonic clock, and the longest that a round has taken, seconds."""

    deadline: float
    longest: float = 0.0

    def allows(self, run: Run, number: int) -> bool:
        """True when another round fits; else a note is made. The first always does."""
        if not self.longest or time.monotonic() + self.longest <= self.deadline:
            return True
        run.notes.append(f"ended after {number} of {run.rounds} rounds, because the time was over")
        return False


def measure_rounds(
    run: Run, rounds: range, courses: Sequence[Course], driver: Driver, conditions: Conditions, pace: Pace,
    keep: Callable[[], None], progress: TextProgress,
) -> bool:  # fmt: skip
    """Measure every case once a round, and keep the result after each; return whether there was time for all."""
    size = sum(len(course.targets) for course in courses)
    for number in rounds:
        if not pace.allows(run, number):
            return False
        begin, done = time.monotonic(), number * size
        for course in courses:
            conditions.failures = course.scenario.failed
            order = [name for name in course.orders[number] if name not in conditions.failures] if course.orders else []
            steps = Steps(progress, number, run.rounds, done, run.rounds * size, f"{course.case.name}: ")
            run_round(run, course.targets, order, course.scenario, driver, NOTHING, conditions, steps)
            done += len(course.targets)
        pace.longest = max(pace.longest, time.monotonic() - begin)
        keep()
    return True


def add_memory(run: Run, plan: Plan, stage: Stage) -> None:
    """Put the memory of each contender's whole server, as it is after the load, into it."""
    parts = {part.name: part for part in plan.contenders}
    for contender in run.contenders:
        try:
            sizes = read_family_memory(stage.open_service(parts[contender.name].service).pid)
        except ServerFailed:
            continue
        contender.memory = [sum(sizes)] if sizes else []


def run_plan(plan: Plan, run: Run, budget: float, driver: Driver, path: Path, progress: TextProgress) -> None:
    """Measure what of a run is still to be measured, and keep it in ``path`` after every round."""
    pace = Pace(time.monotonic() + budget)
    rights = {page.name: right for page in plan.pages if (right := find_right(page)) is not None}
    first = 1 + max((sample.round for sample in run.samples), default=-1)
    sessions = plan_sessions(first, run.rounds, 1 if run.plan["options"]["quick"] else SESSIONS)
    conditions: Conditions | None = None
    for place, rounds in enumerate(sessions):
        begin = time.monotonic()
        with Stage(plan, run.pinned[1], progress.say) as stage:
            progress.say(f"{plan.head.title}: starting servers and proving their answers")
            courses = [prepare_course(plan, case, run, stage, rights) for case in plan.cases]
            note_missing(run)
            size = sum(len(course.targets) for course in courses)
            conditions = conditions or make_conditions(run, size, pace.deadline)
            warm_courses(courses, driver, conditions)
            again = (len(sessions) - place - 1) * (time.monotonic() - begin)
            left = (pace.deadline - time.monotonic() - again) * PART_FOR_SAMPLES
            run.seconds = conditions.seconds = run.seconds or choose_seconds(courses, run, left)
            progress.say(f"{tell_rounds(rounds, run)}; seed {run.seed}")
            in_time = measure_rounds(
                run, rounds, courses, driver, conditions, pace, lambda: write_run(run, path), progress
            )
            add_memory(run, plan, stage)
        if not in_time:
            break
    run.plan["done"] = True
    write_run(run, path)


def tell_rounds(rounds: range, run: Run) -> str:
    """Return which rounds follow, in words."""
    which = f"round {rounds[0] + 1}" if len(rounds) == 1 else f"rounds {rounds[0] + 1} to {rounds[-1] + 1}"
    return f"{which} of {run.rounds}, {run.seconds:g} s for each"


def make_conditions(run: Run, slots: int, deadline: float) -> Conditions:
    """Return how a run's rounds, of so many samples each, are measured."""
    start = time.monotonic() - max((sample.at for sample in run.samples), default=0.0)
    again = slots // 4 if run.plan["options"]["quick"] else slots
    return Conditions(run.rounds, run.seconds, run.seed, deadline, run.pinned[0], max(RERUNS, again), start)
