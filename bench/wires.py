"""``python -m bench wires``: our wires against flup, uWSGI and gunicorn, each asked in its own protocol.

Ties the parts together as ``floor`` does: one worker each, started side by side, the same application and page,
alternating rounds among those that speak a protocol. No front server stands between load and server.
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
from bench.peers import read_peers
from bench.proc import read_pss, read_table
from bench.progress import TextProgress
from bench.results import Contender, Run, Scenario, write_run
from bench.servers import HELLO, Recipe, Server, ServerFailed, one_worker, start_server

OURS = "gateways"
SCENARIOS = (
    Scenario("fastcgi close c=1", 1, False, "fastcgi"),
    Scenario("fastcgi close c=10", 10, False, "fastcgi"),
    Scenario("fastcgi keep c=10", 10, True, "fastcgi"),
    Scenario("scgi close c=1", 1, False, "scgi"),
    Scenario("scgi close c=10", 10, False, "scgi"),
    Scenario("ajp close c=1", 1, False, "ajp"),
    Scenario("ajp close c=10", 10, False, "ajp"),
    Scenario("ajp keep c=10", 10, True, "ajp"),
    Scenario("uwsgi close c=1", 1, False, "uwsgi"),
    Scenario("uwsgi close c=10", 10, False, "uwsgi"),
)
WIRES = tuple(dict.fromkeys(scenario.wire for scenario in SCENARIOS))
ROUNDS, SECONDS = 5, 0.8
QUICK_ROUNDS, QUICK_SECONDS = 3, 0.3
OVERHEAD = 0.5
"""Seconds that one sample may take beyond its own, before the rest of a scenario is given up."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that wires takes."""
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds of {QUICK_SECONDS:g} s")
    parser.add_argument("--rounds", type=int, help=f"how often each server is measured in each way (default {ROUNDS})")
    parser.add_argument("--seconds", type=float, help=f"how long each time (default {SECONDS:g})")
    parser.add_argument("--only", default="", help=f"wires to measure, with commas: {','.join(WIRES)}")
    parser.add_argument("--scenario", default="", help="part of a scenario's name: close, keep, c=10")
    parser.add_argument("--seed", type=int, help="of the order of servers; drawn and recorded if not given")
    parser.add_argument("--out", type=Path, help=f"the raw result's file (default: {RESULTS}/wires-DATE.json)")


def begin_run(arguments: argparse.Namespace, right: Answer) -> Run:
    """Return a run without contenders; raise ``ValueError`` for options that cannot be."""
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    seconds = arguments.seconds or (QUICK_SECONDS if arguments.quick else SECONDS)
    if not 1 <= rounds <= 1000 or not 0.05 <= seconds <= 600:
        raise ValueError("--rounds must be 1 to 1000 and --seconds 0.05 to 600")
    only = {name for name in arguments.only.split(",") if name}
    if unknown := only - set(WIRES):
        raise ValueError(f"--only: {unknown.pop()!r} is none of {', '.join(WIRES)}")
    scenarios = [s for s in SCENARIOS if arguments.scenario in s.name and (not only or s.wire in only)]
    if not scenarios:
        raise ValueError(f"--scenario: {arguments.scenario!r} is in none of {', '.join(s.name for s in SCENARIOS)}")
    seed = int.from_bytes(os.urandom(3), "big") if arguments.seed is None else arguments.seed
    page = {"length": len(right.body), "digest": right.digest, "content_type": right.content_type}
    cores = list(choose_cores(sorted(os.sched_getaffinity(0))))
    return Run("wires", describe_machine(), "builtin", seed, rounds, seconds, page, cores, scenarios)


def list_recipes(wires: set[str]) -> list[Recipe]:
    """Return how to start everyone who speaks one of the wires, ours first."""
    ours = [
        Recipe(f"{OURS}-{wire}", OURS, one_worker("wsgi", f"{HELLO}:application", wire), wire=wire)
        for wire in WIRES
        if wire in wires
    ]
    return ours + [
        peer.make_recipe(wire) for peer in read_peers() for wire in WIRES if wire in wires & peer.start.keys()
    ]


def start_all(run: Run, stack: ExitStack, progress: TextProgress) -> list[Server]:
    """Start every server that is there; each that does not start is a failed contender. The stack stops the others."""
    servers = []
    for recipe in list_recipes({scenario.wire for scenario in run.scenarios}):
        contender = Contender(recipe.name, recipe.label)
        run.contenders.append(contender)
        try:
            server = start_server(recipe, run.pinned[1])
        except ServerFailed as error:
            contender.failed = str(error)
            progress.say(f"{recipe.name}: {error}")
            continue
        stack.callback(server.stop)
        contender.command = server.describe()
        servers.append(server)
    return servers


def choose_servers(servers: list[Server], scenario: Scenario) -> list[Server]:
    """Return the servers that take part in a scenario: those that speak its wire, and keep connections if it does."""
    keeping = {f"{OURS}-{wire}" for wire in WIRES}
    keeping |= {f"{peer.name}-{wire}" for peer in read_peers() for wire in peer.keeps}
    return [
        server
        for server in servers
        if server.recipe.wire == scenario.wire and (not scenario.keep_alive or server.recipe.name in keeping)
    ]


def measure(run: Run, servers: list[Server], driver: Driver, right: Answer, progress: TextProgress) -> None:
    """Prove the answers of each scenario's servers, then measure them; failures go into the contenders."""
    conditions = Conditions(run.rounds, run.seconds, run.seed, 0.0, run.pinned[0])
    for scenario in run.scenarios:
        chosen = choose_servers(servers, scenario)
        targets = [Target(server.recipe.name, server.port, "/", server.pid) for server in chosen]
        progress.say(f"{scenario.name}: {scenario.describe()}")
        conditions.failures.update(prove_answers(targets, right, scenario.wire))
        conditions.deadline = time.monotonic() + run.rounds * len(targets) * (run.seconds + OVERHEAD) * 2
        warm_up(targets, scenario, driver, right, conditions)
        run_rounds(run, targets, scenario, driver, right, conditions, progress)
        conditions.seed += 1
    table = read_table()
    pids = {server.recipe.name: server.pid for server in servers}
    for contender in run.contenders:
        contender.failed = contender.failed or conditions.failures.get(contender.name, "")
        if contender.name in pids:
            family = split_family(table, pids[contender.name])[0] or [pids[contender.name]]
            contender.memory = [size for size in map(read_pss, family) if size]


def run_wires(arguments: argparse.Namespace) -> int:
    """Run the comparison, return 0, or 1 when one of ours failed; raise ``ValueError`` for options that cannot be."""
    try:
        right = call_application(HELLO)
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror} (run this from the repository's root)") from error
    run, progress = begin_run(arguments, right), TextProgress()
    with ExitStack() as stack:
        driver = open_driver("builtin")
        stack.callback(driver.close)
        servers = start_all(run, stack, progress)
        measure(run, servers, driver, right, progress)
    path = arguments.out or fresh_path("wires")
    write_run(run, path)
    show_run(run, path, progress)
    return 1 if any(c.failed for c in run.contenders if c.label == OURS) else 0
