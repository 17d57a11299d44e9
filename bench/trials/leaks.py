"""A script that cleans up nothing, run a hundred thousand times inside the serving processes."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from pathlib import Path

from bench.trials.findings import Course, Table
from bench.trials.harness import FIGURE_COLUMNS, Gateways, Trial, fetch, list_family, open_folder, read_figures, serving

SUMMARY = "A script that closes, joins and removes nothing: workers are replaced in time, and the log says whose it is."
LENGTH = "100,000 runs, about 5 minutes; --quick 3,000"
RUNS, QUICK_RUNS = 100_000, 3_000
CLIENTS = 4
LOOK = 5.0
THREAD_EACH = 1000
"""One run in so many leaves a thread, which costs its worker at once."""
SCRIPT = Path(__file__).with_name("leaky.py")
POOL = """ProcessManager = "static"
MaxServers = 4
[[pool.main.Mount]]
Path = "/leaky/"
Target = "{script}"
Model = "registry"
Environment = {{ LEAKY_FOLDER = "{folder}" }}
"""
MOST = 512
"""Descriptors from which on a worker is replaced (``gateways.execution.leaks``)."""
BETWEEN_LOOKS = 2 * 16 * 2
"""Descriptors that may come between two looks: two a run, of the runs that are looked at one in sixteen, twice."""
GROWTH = 32 * 1024
"""KiB by which the largest run may exceed the smallest: what a worker's life leaks, and no more."""
NAMED = {
    "descriptors": r"leaky\.py: leaves 2 descriptors open in each run",
    "descriptors, at the end": r"leaky\.py: left 2 descriptors open, and \d+ are open now: this process",
    "threads": r"leaky\.py: left a thread running: this process will be replaced",
    "folders": r"leaky\.py: left the temporary folder ",
}


@dataclass(slots=True)
class Seen:
    """What runs have told of their process: the most of each, and by run for the course."""

    runs: int = 0
    failures: list[str] = field(default_factory=list)
    workers: set[int] = field(default_factory=set)
    descriptors: int = 0
    threads: int = 0
    resident: int = 0
    least: int = 1 << 40
    course: list[tuple[int, int, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, body: bytes) -> None:
        """Take a run's words: pid, descriptors, threads, resident KiB."""
        pid, descriptors, threads, resident = map(int, body.split())
        with self.lock:
            self.runs += 1
            self.workers.add(pid)
            self.descriptors, self.threads = max(self.descriptors, descriptors), max(self.threads, threads)
            self.resident, self.least = max(self.resident, resident), min(self.least, resident)
            if self.runs % 50 == 0:
                self.course.append((self.runs, descriptors, resident))


def ask(server: Gateways, numbers: range, seen: Seen) -> None:
    """Have the script run for each of these numbers."""
    for number in numbers:
        path = "/leaky/?thread" if number % THREAD_EACH == 0 else "/leaky/"
        try:
            seen.add(fetch(server.ports["http"], path))
        except (OSError, ValueError) as error:
            with seen.lock:
                seen.failures.append(f"run {number}: {error}")


def run(trial: Trial) -> None:
    """Run the trial."""
    count = QUICK_RUNS if trial.quick else RUNS
    seen = Seen()
    with open_folder() as folder, serving(POOL.format(script=SCRIPT, folder=folder)) as server:
        clients = [
            threading.Thread(target=ask, args=(server, range(1 + each, count + 1, CLIENTS), seen))
            for each in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        for client in clients:
            while client.is_alive():
                client.join(LOOK)
                trial.tell(f"{seen.runs + len(seen.failures):,} runs, {len(seen.workers)} workers", seen.runs, count)
        figures = {pid: read_figures(pid) for pid in list_family(server.pid)}
        log = server.read_log()
    judge(trial, seen, count, log)
    rows = [(str(pid), *each.row()) for pid, each in figures.items()]
    trial.findings.tables.append(Table("Processes at the end", ("pid", *FIGURE_COLUMNS), rows))


def judge(trial: Trial, seen: Seen, count: int, log: str) -> None:
    """Put down what was seen."""
    claim = trial.findings.claim
    failed = f"{len(seen.failures)} failed" + (f", the first: {seen.failures[0]}" if seen.failures else "")
    claim("every run is answered", seen.runs == count and not seen.failures, f"{seen.runs:,} of {count:,}, {failed}")
    most = MOST + BETWEEN_LOOKS
    claim(f"no process has more than {most} descriptors", seen.descriptors <= most, f"at most {seen.descriptors}")
    claim("no process has more than one thread beside its own", seen.threads <= 2, f"at most {seen.threads}")
    grown = (seen.resident - seen.least) / 1024
    sizes = f"{seen.resident / 1024:.1f} MiB at most, {grown:.1f} more than the least"
    claim(f"memory stays within {GROWTH >> 10} MiB", grown <= GROWTH >> 10, sizes)
    for what, pattern in NAMED.items():
        times = len(re.findall(pattern, log))
        claim(f"the log names the script for its {what}", times > 0, f"{times} times")
    trial.findings.notes.append(f"{len(seen.workers)} workers took turns.")
    open_course = Course("Descriptors of the process that ran it", "descriptors", bounds={"replaced from": MOST})
    size_course = Course("Resident memory of the process that ran it", "MiB")
    for number, descriptors, resident in seen.course[:: max(1, len(seen.course) // 1000)]:
        open_course.add(number, descriptors=descriptors)
        size_course.add(number, resident=resident / 1024)
    trial.findings.courses += [open_course, size_course]
