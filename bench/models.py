"""``python -m bench models``: what each step of the in-process CGI emulation costs, by switching it off.

A step's cost is the CPU time of a run with it less that of the same run without it: two rows that differ in nothing
else. Rows are recipes of ``gateways.execution.recipes`` and the parts that they are cooked with; nothing of the
machinery is copied. One process runs them all in turn, in an order drawn anew for each round, without a server around
it. Then the scenario ``emulation`` measures whole servers, and judges what the emulation may cost.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.answers import call_application
from bench.commands import finish
from bench.comparison import Options, begin_run
from bench.machine import describe_machine
from bench.outcome import fresh_path
from bench.plan import read_plan
from bench.progress import TextProgress
from bench.report import document
from bench.report.document import Document, Drawing, Facts, Section, Table, Words
from bench.report.figures import significant
from bench.report.page import both
from bench.report.svg import Part, draw_stack
from bench.servers import HELLO
from bench.stats import Spread, median, spread
from gateways.core.mounts import Mount
from gateways.core.request import Endpoint, FieldRequest
from gateways.execution.environment import EnvironmentPlan
from gateways.execution.recipes import PERLRUN, REGISTRY, Recipe
from gateways.execution.reply import Reply
from gateways.execution.restore import ProcessState
from gateways.execution.run_environment import RunEnvironment
from gateways.execution.script import PARTS, Parts, ScriptModel
from gateways.execution.sources import Script, SingleScript
from gateways.execution.watch import NOTES

ROUNDS, SECONDS = 15, 0.08
QUICK_ROUNDS, QUICK_SECONDS = 5, 0.03
SERVERS = "emulation"
SERVER_SECONDS, QUICK_SERVER_SECONDS = 95.0, 35.0
STYLES = 8


class SameEnvironment(EnvironmentPlan):
    """Gives every run the first one's variables."""

    def format_environment(self, request: Any, script: Script, length: int) -> dict[str, str]:
        """Return them."""
        if not FIRST:
            FIRST.update(super().format_environment(request, script, length))
        return FIRST


class EnvironmentOnly(ProcessState):
    """Shows a run its environment, and neither sets nor restores anything else."""

    def __init__(self) -> None:
        self._only = RunEnvironment()

    def enter(self, variables: dict[str, str], main: Any, script: str, folder: str) -> None:
        """Begin a run."""
        NOTES.active = True
        self._only.enter(variables)

    def leave(self) -> None:
        """End it."""
        NOTES.active = False
        self._only.leave()


class UnreadReply(Reply):
    """Counts what a script prints and answers with nothing of it."""

    def write(self, data: bytes) -> None:
        """Take output."""
        self._size += len(data)

    def flush(self) -> None:
        """Nothing is held."""

    def finish(self) -> None:
        """Answer."""
        self._exchange.respond("200 OK", [], b"")


FIRST: dict[str, str] = {}
FRESH = REGISTRY["fresh", True]
COMPILING = Recipe("compiling", PERLRUN.program, FRESH.namespace, FRESH.discard)


@dataclass(frozen=True, slots=True)
class Row:
    """One way to run the script."""

    recipe: Recipe
    parts: Parts = PARTS
    stdio: str = "object"


ROWS = {
    "registry": Row(FRESH),
    "without stat": Row(REGISTRY["fresh", False]),
    "shared namespace": Row(REGISTRY["shared", True]),
    "without environment": Row(FRESH, Parts(environment=SameEnvironment)),
    "without restoring": Row(FRESH, Parts(state=EnvironmentOnly)),
    "without parsing": Row(FRESH, Parts(reply=UnreadReply)),
    "descriptor stdio": Row(FRESH, stdio="descriptor"),
    "compiling": Row(COMPILING),
    "perlrun": Row(PERLRUN),
}


@dataclass(frozen=True, slots=True)
class Step:
    """A step: the row that has it and the row that has not. ``usual``: it is part of ``registry`` as it comes."""

    label: str
    on: str
    off: str
    usual: bool = True


STEPS = (
    Step("environment", "registry", "without environment"),
    Step("setting up and restoring the process", "registry", "without restoring"),
    Step("looking at the script's file (StatScripts)", "registry", "without stat"),
    Step("a fresh namespace", "registry", "shared namespace"),
    Step("parsing the reply", "registry", "without parsing"),
    Step("stdio on descriptors (Stdio)", "descriptor stdio", "registry", usual=False),
    Step("compiling for each request (perlrun)", "compiling", "registry", usual=False),
    Step("dropping local modules (perlrun)", "perlrun", "compiling", usual=False),
)
REST = "the script itself, and what was not switched off"


class Sink:
    """An exchange that takes a response and sends it nowhere."""

    committed = started = False

    def __init__(self, request: FieldRequest) -> None:
        self.request = request
        self.log = self
        self.length = -1

    def respond(self, _status: str, _fields: object, body: bytes = b"") -> None:
        """Take a whole response."""
        self.length = len(body)

    def read(self, _size: int = -1) -> bytes:
        """There is no body."""
        return b""

    def error(self, msg: str, *args: object) -> None:
        """Nothing may go wrong here."""
        raise RuntimeError(msg % args)


def make_request(mount: Mount) -> FieldRequest:
    """Return a request as a browser would make it."""
    fields = [("Host", "localhost:8000"), ("User-Agent", "bench"), ("Accept", "*/*"), ("Accept-Encoding", "gzip")]
    request = FieldRequest(ENDPOINT, ("127.0.0.1", 50000), "GET", "/", "/", "", "HTTP/1.1", fields, 0)
    request.mount = mount
    return request


ENDPOINT = Endpoint("localhost", "8000")


def measure_rows(script: str, length: int, rounds: int, seconds: float, seed: int) -> dict[str, list[float]]:
    """Return row -> CPU microseconds of a run in each round; raise ``RuntimeError`` for a wrong answer.

    In a process of its own: scripts get its descriptors 0 and 1.
    """
    runs = {name: make_run(name, row, script, length) for name, row in ROWS.items()}
    source = random.Random(seed)
    figures: dict[str, list[float]] = {name: [] for name in ROWS}
    for _ in range(rounds):
        order = list(ROWS)
        source.shuffle(order)
        for name in order:
            figures[name].append(time_run(runs[name], seconds))
    return figures


def make_run(name: str, row: Row, script: str, length: int) -> Callable[[], None]:
    """Return a function that runs a row once; it has been called, and its answer was right."""
    model = ScriptModel("registry", SingleScript(script), row.recipe, row.stdio, parts=row.parts)
    model.load()
    mount = Mount("", model, {"GATEWAYS_MODE": "registry"})

    def run() -> None:
        sink: Any = Sink(make_request(mount))
        model.run(sink)
        if sink.length != length and row.parts.reply is not UnreadReply:
            raise RuntimeError(f"{name}: {sink.length} bytes came, and not {length}")

    for _ in range(20):
        run()
    return run


def time_run(run: Callable[[], None], seconds: float) -> float:
    """Return the CPU microseconds of one call, from as many as fit into ``seconds`` of CPU time."""
    count, used, begin = 0, 0.0, time.process_time()
    while used < seconds:
        for _ in range(10):
            run()
        count += 10
        used = time.process_time() - begin
    return 1e6 * used / count


def measure_apart(script: str, length: int, rounds: int, seconds: float, seed: int) -> dict[str, list[float]]:
    """Return what ``measure_rows`` does, from a forked process; raise ``ValueError`` with what went wrong there."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(reader)
            kept = os.dup(writer)
            try:
                data = pickle.dumps(measure_rows(script, length, rounds, seconds, seed))
            except Exception as error:  # noqa: BLE001 - the other process says it
                data = pickle.dumps(f"{type(error).__name__}: {error}")
            with open(kept, "wb") as pipe:
                pipe.write(data)
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    result = pickle.loads(answer) if answer else "the measuring process ended early"
    if isinstance(result, str):
        raise ValueError(result)
    return dict(result)


def find_cost(figures: dict[str, list[float]], step: Step) -> Spread:
    """Return what a step costs: the differences of the two rows within each round."""
    return spread([on - off for on, off in zip(figures[step.on], figures[step.off], strict=True)])


def make_document(figures: dict[str, list[float]], machine: dict[str, Any], rounds: int) -> Document:
    """Return the report."""
    whole = median(figures["registry"])
    costs = {step: find_cost(figures, step) for step in STEPS}
    usual = [(step.label, max(costs[step].median, 0.0)) for step in STEPS if step.usual]
    parts = [*usual, (REST, max(whole - sum(value for _, value in usual), 0.0))]
    stack = [Part(label, value, f"s{number % STYLES}") for number, (label, value) in enumerate(parts)]
    return Document(
        "What each step of the CGI emulation costs",
        "A script run inside the serving process as registry runs it, with one step switched off at a time.",
        (
            Section("Steps", (make_table(costs, whole), Words((NOTE,)))),
            Section("A run of registry", (Drawing(both(draw_stack, stack, "µs of CPU", "A run of registry")),), False),
            Section("Rows", (make_rows(figures),)),
            Section("How", (Facts(describe(machine, rounds)),), False),
        ),
    )


NOTE = (
    "CPU microseconds a run, without a server around it; medians of the differences within each round. A step that "
    "is off saves more than its own code where others then have less to do."
)


def make_table(costs: dict[Step, Spread], whole: float) -> Table:
    """Return the steps and what they cost."""
    rows = [
        (
            step.label, "yes" if step.usual else "when asked for", significant(cost.median),
            f"{significant(cost.low)} to {significant(cost.high)}", f"{100 * cost.median / whole:.0f} %",
        )
        for step, cost in costs.items()
    ]  # fmt: skip
    headings = (("step", ""), ("in registry", ""), ("costs", "µs"), ("middle half", "µs"), ("of a run", ""))
    return Table(headings, tuple(rows))


def make_rows(figures: dict[str, list[float]]) -> Table:
    """Return what was measured."""
    rows = []
    for name, values in figures.items():
        each = spread(values)
        rows.append((name, significant(each.median), f"{significant(each.least)} to {significant(each.greatest)}"))
    return Table((("row", ""), ("CPU", "µs/run"), ("all rounds", "µs/run")), tuple(rows))


def describe(machine: dict[str, Any], rounds: int) -> tuple[tuple[str, str], ...]:
    """Return what it was measured on."""
    return (
        ("date", str(machine.get("date", ""))),
        ("processor", f"{machine.get('cpu')} ({machine.get('cores')} cores)"),
        ("Python", str(machine.get("python", ""))),
        ("load before", ", ".join(f"{value:.2f}" for value in machine.get("load_average", ()))),
        ("rounds", str(rounds)),
        ("command", " ".join(map(str, machine.get("command", ())))),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``models`` takes."""
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} short rounds, for a first look")
    parser.add_argument("--rounds", type=int, help=f"how often each row is measured (default {ROUNDS})")
    parser.add_argument("--seed", type=int, help="of the order of rows")
    parser.add_argument("--steps", action="store_true", help="the steps only, without whole servers and their goals")


def run_models(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, keep the pages; 0 when all was well. Raise ``ValueError`` for a wrong option."""
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    if not 1 <= rounds <= 1000:
        raise ValueError("--rounds must be 1 to 1000")
    if not os.path.isfile(HELLO):
        raise ValueError(f"{HELLO} is not there: run this from the repository's root")
    seconds = QUICK_SECONDS if arguments.quick else SECONDS
    progress, machine = TextProgress(), describe_machine()
    progress.say(f"{rounds} rounds of {len(ROWS)} rows, about {rounds * len(ROWS) * seconds * 1.5:.0f} s ...")
    length = len(call_application(HELLO).body)
    seed = int.from_bytes(os.urandom(3), "big") if arguments.seed is None else arguments.seed
    sys.stdout.flush()
    figures = measure_apart(os.path.abspath(HELLO), length, rounds, seconds, seed)
    report = make_document(figures, machine, rounds)
    path = fresh_path("models").with_suffix(".html")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document.format_html(report), encoding="utf-8")
    print(f"\n{document.format_text(report)}\n\nreport: {path}\n")
    if arguments.steps:
        print(f"next: without --steps, whole servers are measured and held against their goals ({SERVERS})")
        return 0
    return judge_servers(arguments.quick)


def judge_servers(quick: bool) -> int:
    """Measure registry against wsgi and zygote against cgi through whole servers; return 1 when one of them failed.

    What is printed last is their goals, each with its paired ratio, the ratio's interval and the verdict.
    """
    options = Options(rounds=QUICK_ROUNDS if quick else 0, budget=QUICK_SERVER_SECONDS if quick else SERVER_SECONDS)
    return finish(begin_run(read_plan(SERVERS), options), options, fresh_path(SERVERS))
