"""``python -m bench floor``: our fastest modes against the least that Python can cost, and against gunicorn.

Ties the parts together: one worker each, started side by side, the same page, three ways to ask, alternating rounds.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import ExitStack
from pathlib import Path

from bench.answers import Answer, call_application
from bench.compare import prove_answers
from bench.drivers import Driver, open_driver
from bench.harness import Conditions, Target, run_rounds, warm_up
from bench.machine import choose_cores, describe_machine
from bench.memory import split_family
from bench.outcome import RESULTS, fresh_path, show_run
from bench.proc import read_pss, read_table
from bench.progress import TextProgress
from bench.results import Contender, Run, Scenario, write_run
from bench.servers import HELLO, RECIPES, Server, ServerFailed, start_server

SCENARIOS = (
    Scenario("close c=1", 1, False),
    Scenario("close c=10", 10, False),
    Scenario("keep c=10", 10, True),
)
ROUNDS, SECONDS = 5, 1.0
QUICK_ROUNDS, QUICK_SECONDS = 3, 0.4
BUDGET = 110.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that floor takes."""
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds of {QUICK_SECONDS:g} s")
    parser.add_argument("--rounds", type=int, help=f"how often each server is measured in each way (default {ROUNDS})")
    parser.add_argument("--seconds", type=float, help=f"how long each time (default {SECONDS:g})")
    parser.add_argument("--only", default="", help="servers to measure, with commas; the floor is always among them")
    parser.add_argument("--scenario", default="", help="part of a scenario's name: close, keep, c=10")
    parser.add_argument("--load", default="builtin", help="builtin (default), ab or wrk")
    parser.add_argument("--seed", type=int, help="of the order of servers; drawn and recorded if not given")
    parser.add_argument("--out", type=Path, help=f"the raw result's file (default: {RESULTS}/floor-DATE.json)")


def begin_run(arguments: argparse.Namespace, right: Answer) -> Run:
    """Return a run without contenders; raise ``ValueError`` for options that cannot be."""
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    seconds = arguments.seconds or (QUICK_SECONDS if arguments.quick else SECONDS)
    if not 1 <= rounds <= 1000 or not 0.05 <= seconds <= 600:
        raise ValueError("--rounds must be 1 to 1000 and --seconds 0.05 to 600")
    scenarios = [scenario for scenario in SCENARIOS if arguments.scenario in scenario.name]
    if not scenarios:
        raise ValueError(f"--scenario: {arguments.scenario!r} is in none of {', '.join(s.name for s in SCENARIOS)}")
    seed = int.from_bytes(os.urandom(3), "big") if arguments.seed is None else arguments.seed
    page = {"length": len(right.body), "digest": right.digest, "content_type": right.content_type}
    cores = list(choose_cores(sorted(os.sched_getaffinity(0))))
    return Run("floor", describe_machine(), arguments.load, seed, rounds, seconds, page, cores, scenarios)


def start_all(run: Run, only: set[str], stack: ExitStack, progress: TextProgress) -> list[Server]:
    """Start every server asked for; each that does not start is a failed contender. The stack stops the others."""
    servers = []
    for recipe in RECIPES:
        if only and recipe.name not in only and recipe.name != "floor":
            continue
        contender = Contender(recipe.name, recipe.label)
        run.contenders.append(contender)
        try:
            server = start_server(recipe, run.pinned[1])
        except ServerFailed as error:
            contender.failed = str(error)
            progress.say(f"FAILED {recipe.name}: {error}")
            continue
        stack.callback(server.stop)
        contender.command = server.describe()
        servers.append(server)
    return servers


def measure(run: Run, servers: list[Server], driver: Driver, right: Answer, progress: TextProgress) -> None:
    """Prove every answer, then measure every scenario; failures go into the contenders."""
    targets = [Target(server.recipe.name, server.port, "/", server.pid) for server in servers]
    conditions = Conditions(run.rounds, run.seconds, run.seed, 0.0, run.pinned[0])
    conditions.failures.update(prove_answers(targets, right))
    start, share = time.monotonic(), max(BUDGET, run.rounds * run.seconds * 20) / len(run.scenarios)
    for number, scenario in enumerate(run.scenarios):
        progress.say(f"{scenario.name}: {scenario.describe()}")
        conditions.deadline = start + share * (number + 1)
        warm_up(targets, scenario, driver, right, conditions)
        run_rounds(run, targets, scenario, driver, right, conditions, progress)
        conditions.seed += 1
    table = read_table()
    for contender in run.contenders:
        contender.failed = contender.failed or conditions.failures.get(contender.name, "")
        for target in targets:
            if target.name == contender.name:
                pids = split_family(table, target.root)[0] or [target.root]
                contender.memory = [size for size in map(read_pss, pids) if size]


def run_floor(arguments: argparse.Namespace) -> int:
    """Run the comparison, return 0, or 1 when one of ours failed; raise ``ValueError`` for options that cannot be."""
    only = {name for name in arguments.only.split(",") if name}
    if unknown := only - {recipe.name for recipe in RECIPES}:
        raise ValueError(f"--only: {unknown.pop()!r} is none of {', '.join(recipe.name for recipe in RECIPES)}")
    try:
        right = call_application(HELLO)
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror} (run this from the repository's root)") from error
    run, progress = begin_run(arguments, right), TextProgress()
    with ExitStack() as stack:
        driver = open_driver(arguments.load)
        stack.callback(driver.close)
        servers = start_all(run, only, stack, progress)
        measure(run, servers, driver, right, progress)
    path = arguments.out or fresh_path("floor")
    write_run(run, path)
    show_run(run, path, progress)
    return 1 if any(c.failed for c in run.contenders if not c.name.startswith("gunicorn")) else 0
