"""Does a request on a kept connection wait for a busy worker while another is idle? And what does the cure cost?

Four workers behind nginx, which keeps 32 connections to them; 32 clients, of whose requests 3 in 100 sleep for half a
second; who waited for whom is computed from a record that the application keeps. Then the CPU that a request of the
hello page takes, in alternating rounds. All of it with ShareConnections on and off.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import fronts
from bench.answers import call_application
from bench.drivers import open_driver
from bench.harness import Conditions, Progress, Target, run_rounds, warm_up
from bench.machine import choose_cores, describe_machine
from bench.results import Run, Scenario
from bench.servers import HELLO, Recipe, Server, ServerFailed, serve_command, start_server
from bench.stats import median_interval, paired_ratios
from bench.trials.crowd import Client, Heard, run_crowd
from bench.trials.findings import Table
from bench.trials.harness import Trial, open_folder
from bench.trials.waits import find_idle_waits, parse_record

SUMMARY = "Requests on kept connections whose worker is busy, while others are idle, with ShareConnections on and off."
LENGTH = "about 5 minutes, --quick 80 seconds"
APP = "bench/trials/recording.py"
WORKERS, CLIENTS, SLOW, SLEEP = 4, 32, 0.03, 0.5
PAUSES = {"a client thinks for 0.2 s": 0.2, "no client thinks": 0.0}
"""Between two requests: some worker is idle most of the time, or hardly ever."""
REQUESTS, QUICK_REQUESTS = 4000, 1000
ROUNDS, QUICK_ROUNDS = 21, 5
LIMIT = 60.0
"""Milliseconds that no fast request shall wait while a worker is idle."""
COST = 1.05
"""What a request of the hello page may cost with sharing, of what it costs without."""
STATES = ("on", "off")
STATIC = ("--process-manager", "static", "--max-servers", str(WORKERS))
PATIENCE = 10.0
SEED = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run. ``waits``: (wait, part while a worker was idle) of each fast request, in milliseconds."""

    heard: Heard
    waits: list[tuple[float, float]]

    @property
    def idle(self) -> list[float]:
        """The parts while a worker was idle, the shortest first."""
        return sorted(part for _, part in self.waits)

    def row(self, *names: str) -> tuple[str, ...]:
        """Return the figures as cells."""
        idle = self.idle
        wrong = sum(status != 200 for status, _, _ in self.heard.answers)
        late = sum(part > LIMIT for part in idle)
        most = max(wait for wait, _ in self.waits)
        figures = (f"{idle[-1]:.0f} ms", f"{idle[int(0.999 * (len(idle) - 1))]:.0f} ms", f"{late}", f"{most:.0f} ms")
        return (*names, f"{len(self.heard.answers):,}", str(wrong), *figures)


COLUMNS = (
    "load", "wire", "shared", "answers", "not 200", "longest", "99.9 % within", f"over {LIMIT:g} ms", "longest of all"
)  # fmt: skip


def make_requests(count: int, seed: int) -> Iterator[tuple[int, str]]:
    """Yield (name, path); names of slow requests are negative."""
    source = random.Random(seed)
    for number in range(1, count + 1):
        name = -number if source.random() < SLOW else number
        yield name, f"/sleep/{SLEEP}/{name}" if name < 0 else f"/{name}"


def serve_recording(wire: str, state: str, record: Path) -> Recipe:
    """Return how to start the server whose application keeps a record."""
    words = (APP, *STATIC, "--share-connections", state, "--environment", f"RECORD={record}")
    return Recipe(f"{wire}-{state}", "gateways", lambda port: serve_command(port, *words, wire=wire), wire=wire)


def measure_waits(wire: str, state: str, count: int, pause: float, direct: bool) -> Outcome:
    """Run the crowd once. Raise ``ServerFailed``."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        folder.chmod(0o777)
        server = start_server(serve_recording(wire, state, folder / "record"), None)
        stack.callback(server.stop)
        port = server.port
        if not direct:
            front = start_server(fronts.make_recipe("nginx-32", wire, port, True, folder, "/0"), None)
            stack.callback(front.stop)
            port = front.port
        source = random.Random(SEED)
        clients = [Client(port, keep=True) for _ in range(CLIENTS)]
        heard = run_crowd(clients, make_requests(count, SEED), lambda: source.uniform(0, 2 * pause), PATIENCE)
        runs = parse_record((folder / "record").read_text())
    sent = {name: moment for name, moment in heard.sent.items() if name > 0}
    return Outcome(heard, [(wait / 1e6, idle / 1e6) for wait, idle in find_idle_waits(sent, runs, WORKERS)])


def measure_cost(wire: str, rounds: int, progress: Progress) -> Run:
    """Return samples of the hello page, shared and not shared, in alternating rounds. Raise ``ServerFailed``."""
    cores = choose_cores(sorted(os.sched_getaffinity(0)))
    page = call_application(HELLO)
    run = Run("pinned", describe_machine(), "builtin", SEED, rounds, 1.0, {}, [*cores])
    with ExitStack() as stack:
        driver = open_driver("builtin")
        stack.callback(driver.close)
        scenario = Scenario(f"{wire} keep c={CLIENTS}", CLIENTS, True, wire)
        servers: list[Server] = []
        for state in STATES:
            servers.append(start_server(serve_hello(wire, state), cores[1]))
            stack.callback(servers[-1].stop)
        targets = [Target(server.recipe.name, server.port, "/", server.pid) for server in servers]
        conditions = Conditions(rounds, 1.0, SEED, time.monotonic() + 10 * rounds, cores[0])
        warm_up(targets, scenario, driver, page, conditions)
        run_rounds(run, targets, scenario, driver, page, conditions, progress)
    if conditions.failures:
        raise ServerFailed(str(conditions.failures))
    return run


def serve_hello(wire: str, state: str) -> Recipe:
    """Return how to start the hello page."""
    words = (f"{HELLO}:application", *STATIC, "--share-connections", state)
    return Recipe(f"{wire}-{state}", "gateways", lambda port: serve_command(port, *words, wire=wire), wire=wire)


def judge_cost(trial: Trial, wire: str, run: Run) -> None:
    """Claim what one wire's request may cost."""
    costs: dict[str, dict[int, float]] = {state: {} for state in STATES}
    for sample in run.samples:
        if not sample.discarded:
            costs[sample.contender.rpartition("-")[2]][sample.round] = sample.cpu / sample.requests * 1e6
    ratio = median_interval(paired_ratios(costs["on"], costs["off"]))
    plain = median_interval(list(costs["off"].values())).median
    trial.findings.claim(
        f"{wire}: a request of the hello page costs at most {COST:g} times what it does without sharing",
        ratio.low <= COST,
        f"{plain:.1f} µs CPU without; with it times {ratio.median:.3f} ({ratio.low:.3f} to {ratio.high:.3f})",
    )


def run(trial: Trial) -> None:
    """Run the trial."""
    count, rounds = (QUICK_REQUESTS, QUICK_ROUNDS) if trial.quick else (REQUESTS, ROUNDS)
    missing = fronts.find_missing(fronts.TABLE["nginx-32"])
    wires = ("http",) if missing else ("http", "fastcgi")
    if missing:
        trial.findings.notes.append(f"nginx is {missing}; the clients asked directly")
    table = Table("What fast requests waited while a worker was idle", COLUMNS, [])
    trial.findings.tables.append(table)
    cases = [(words, wire, state) for words in PAUSES for wire in wires for state in STATES]
    for number, (words, wire, state) in enumerate(cases, 1):
        trial.tell(f"{words}: {wire}, ShareConnections {state}, {count} requests", number, len(cases))
        outcome = measure_waits(wire, state, count, PAUSES[words], bool(missing))
        table.rows.append(outcome.row(words, wire, state))
        answered = sum(status == 200 for status, _, _ in outcome.heard.answers)
        trial.findings.claim(f"{words}: {wire}, shared {state}: every request is answered", answered == count, answered)
        if state == "on":
            longest = max(outcome.idle, default=0.0)
            trial.findings.claim(
                f"{words}: {wire}: no fast request waits over {LIMIT:g} ms while a worker is idle",
                bool(outcome.waits) and longest <= LIMIT, f"the longest {longest:.1f} ms",
            )  # fmt: skip
    for wire in ("http", "fastcgi"):
        judge_cost(trial, wire, measure_cost(wire, rounds, trial.progress))
