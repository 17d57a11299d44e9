"""``python -m bench compare``: the comparison of 2008 on today's modes, one server, six mounts, alternating rounds.

Ties the parts together: starts the server, proves the answers, measures memory and rounds, keeps the raw result.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import commands
from bench.answers import Answer, ask, call_application, compare_answers
from bench.drivers import Driver, open_driver
from bench.harness import Conditions, Target, make_job, run_rounds, warm_up
from bench.machine import choose_cores, describe_machine
from bench.memory import measure_memory
from bench.modes import Mode, read_modes
from bench.outcome import fresh_path, show_run
from bench.progress import TextProgress
from bench.results import Contender, Run, Scenario, write_run
from bench.servers import HELLO, Recipe, Server, ServerFailed, serve_command, start_server

CONFIG = "conf/modes.toml"
ROUNDS, SECONDS = 7, 1.5
QUICK_ROUNDS, QUICK_SECONDS = 3, 0.5
MEMORY_SECONDS = 0.4
BUDGET = 150.0
"""Seconds after which no further round is begun, whatever was asked for, unless more rounds were asked for by hand."""
ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line."""

    config: Path
    rounds: int
    seconds: float
    seed: int
    load: str
    scenario: Scenario
    only: tuple[str, ...]
    memory: bool
    out: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that compare takes."""
    commands.add_arguments(parser)
    parser.add_argument(
        "--config", type=Path, default=Path(CONFIG), help="a configuration with one mount for each mode"
    )
    parser.add_argument("--concurrency", type=int, default=1, help="requests under way at once (default 1, as in 2008)")
    parser.add_argument("--keep-alive", action="store_true", help="keep connections (not done in 2008)")
    parser.add_argument("--no-memory", action="store_true", help="leave the memory of workers out")


def read_options(arguments: argparse.Namespace) -> Options:
    """Return the options, checked; raise ``ValueError`` with a sentence for whoever typed them."""
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    seconds = arguments.seconds or (QUICK_SECONDS if arguments.quick else SECONDS)
    if not 1 <= rounds <= 1000:
        raise ValueError("--rounds must be 1 to 1000")
    if not 0.05 <= seconds <= 600:
        raise ValueError("--seconds must be 0.05 to 600")
    if not 1 <= arguments.concurrency <= 1000:
        raise ValueError("--concurrency must be 1 to 1000")
    return Options(
        arguments.config,
        rounds,
        seconds,
        int.from_bytes(os.urandom(3), "big") if arguments.seed is None else arguments.seed,
        arguments.load,
        Scenario("compare", arguments.concurrency, arguments.keep_alive),
        tuple(name for name in arguments.only.split(",") if name),
        not arguments.no_memory,
        arguments.out,
    )


def choose_modes(modes: Sequence[Mode], only: Sequence[str]) -> list[Mode]:
    """Return the modes asked for, all if none is named; raise ``ValueError`` for a name that is no mode."""
    known = {mode.name for mode in modes}
    if unknown := [name for name in only if name not in known]:
        raise ValueError(f"--only: {unknown[0]!r} is none of {', '.join(sorted(known))}")
    return [mode for mode in modes if not only or mode.name in only]


def prove_answers(targets: Sequence[Target], right: Answer, wire: str = "http") -> dict[str, str]:
    """Return name -> in what a target's answer is wrong, for those whose answer is."""
    failures = {}
    for target in targets:
        try:
            problem = compare_answers(ask(wire, target.port, target.path, ANSWER_SECONDS), right)
        except (OSError, ValueError) as error:
            problem = f"no answer: {error}"
        if problem:
            failures[target.name] = problem
    return failures


def begin_run(options: Options, right: Answer, modes: Sequence[Mode]) -> Run:
    """Return a run without samples."""
    load_core, server_core = choose_cores(sorted(os.sched_getaffinity(0)))
    return Run(
        kind="compare",
        machine=describe_machine(),
        load=options.load,
        seed=options.seed,
        rounds=options.rounds,
        seconds=options.seconds,
        page={"length": len(right.body), "digest": right.digest, "content_type": right.content_type},
        pinned=[load_core, server_core],
        scenarios=[options.scenario],
        contenders=[Contender(mode.name, mode.name) for mode in modes],
    )


def add_memory(run: Run, modes: Sequence[Mode], driver: Driver, right: Answer, progress: TextProgress) -> None:
    """Measure each mode's memory, served alone, and put it into its contender; a failure is that figure's note only."""
    for number, (mode, contender) in enumerate(zip(modes, run.contenders, strict=True)):
        if contender.failed:
            continue
        recipe = Recipe(mode.name, mode.title, mode.command())
        job = make_job(Target(mode.name, 0, "/", 0), run.scenarios[0], right, MEMORY_SECONDS, run.pinned[0])
        try:
            memory = measure_memory(recipe, driver, job, run.pinned[1])
            contender.memory = [size + memory.request for size in memory.workers]
            contender.memory_note = (
                f"{memory.request} bytes of it for a request's own process" if memory.request else ""
            )
        except (ServerFailed, ValueError) as error:
            contender.memory_note = f"memory could not be measured: {error}"
            run.notes.append(f"{mode.name}: {contender.memory_note}")
        progress.tell(f"memory       {mode.name}", number + 1, len(modes))


def measure(
    run: Run, modes: Sequence[Mode], server: Server, driver: Driver, right: Answer, progress: TextProgress
) -> None:
    """Prove, warm up and measure all modes of a started server; failures go into their contenders."""
    targets = [Target(mode.name, server.port, mode.path, server.pid) for mode in modes]
    budget = max(BUDGET, run.rounds * run.seconds * len(modes) * 1.5 if run.rounds > ROUNDS else 0)
    conditions = Conditions(run.rounds, run.seconds, run.seed, time.monotonic() + budget, run.pinned[0])
    conditions.failures.update(prove_answers(targets, right))
    good = [target.name for target in targets if target.name not in conditions.failures]
    progress.say(f"same answer ({len(right.body)} bytes) from: {', '.join(good) or 'none'}")
    for name, problem in conditions.failures.items():
        progress.say(f"FAILED {name}: {problem}")
    warm_up(targets, run.scenarios[0], driver, right, conditions)
    run_rounds(run, targets, run.scenarios[0], driver, right, conditions, progress)
    for contender in run.contenders:
        contender.failed = conditions.failures.get(contender.name, "")


def run_compare(arguments: argparse.Namespace) -> int:
    """Run the comparison and return 0, or 1 when some mode failed; raise ``ValueError`` for options that cannot be."""
    if commands.is_scenario(arguments):
        return commands.run_scenarios(arguments)
    options = read_options(arguments)
    try:
        modes = choose_modes(read_modes(options.config), options.only)
        right = call_application(HELLO)
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror} (run this from the repository's root)") from error
    progress = TextProgress()
    run = begin_run(options, right, modes)
    driver = open_driver(options.load)
    try:
        run_server(run, modes, options, driver, right, progress)
    finally:
        driver.close()
    path = options.out or fresh_path("compare")
    write_run(run, path)
    show_run(run, path, progress)
    return 1 if any(contender.failed for contender in run.contenders) else 0


def run_server(
    run: Run, modes: Sequence[Mode], options: Options, driver: Driver, right: Answer, progress: TextProgress
) -> None:
    """Start the server of all modes, measure, stop it, measure memory; raise ``ServerFailed`` if it cannot start."""
    recipe = Recipe(
        "modes", "gateways", lambda port: serve_command(port, "--config", str(options.config)), ready_path=modes[0].path
    )
    progress.say(
        f"seed {options.seed}; {options.rounds} rounds of {options.seconds:g} s for each of {len(modes)} modes"
    )
    server = start_server(recipe, run.pinned[1])
    try:
        for contender in run.contenders:
            contender.command = server.describe()
        measure(run, modes, server, driver, right, progress)
    finally:
        server.stop()
    if options.memory:
        add_memory(run, modes, driver, right, progress)
