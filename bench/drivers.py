"""The load tools behind one face: our own generator, ``ab`` and ``wrk``. Each takes a ``Job`` and gives a ``Result``.

Knows the tools' command lines and what they print; nothing of modes, servers or rounds.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from bench.load import Job, Result

SPARE = 20.0
MANY = 10_000_000


class Driver(Protocol):
    """A load tool."""

    name: str

    def run(self, job: Job) -> Result:
        """Do one job; whatever goes wrong is the result's ``error``."""

    def pids(self) -> list[int]:
        """Return the tool's processes that are running now."""

    def close(self) -> None:
        """End the tool's processes."""


class BuiltinDriver:
    """``bench.load``, one process for all jobs."""

    name = "builtin"

    def __init__(self) -> None:
        command = [sys.executable, "-m", "bench.load"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, job: Job) -> Result:
        """Send the job and wait for its result; the generator has a time limit of its own, and we a longer one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(asdict(job)) + "\n")
            self.process.stdin.flush()
        except OSError:
            return Result(error="the load generator has ended")
        if not select.select([self.process.stdout], [], [], job.seconds + job.timeout + SPARE)[0]:
            return Result(error="the load generator did not answer")
        line = self.process.stdout.readline()
        return Result(**json.loads(line)) if line else Result(error="the load generator has ended")

    def pids(self) -> list[int]:
        """Return the generator's process."""
        return [self.process.pid]

    def close(self) -> None:
        """End the generator: its input ends."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(SPARE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def format_ab(job: Job, table: str) -> list[str]:
    """Return ``ab``'s command line; it counts whole seconds only, and writes its percentiles to ``table``."""
    count = job.count or MANY
    command = ["ab", "-q", "-t", str(max(1, math.ceil(job.seconds))), "-n", str(count)]
    command += ["-c", str(job.concurrency), "-s", str(math.ceil(job.timeout)), "-e", table]
    if job.keep_alive:
        command.append("-k")
    if job.length < 0:
        command.append("-l")  # bodies may differ in length
    return [*command, f"http://{job.host}:{job.port}{job.path}"]


def parse_ab(text: str, table: str, job: Job) -> Result:
    """Read what ``ab`` printed, and its table of percentiles (``-e``: percent, milliseconds).

    The table's hundred steps stand for the latencies: one value each, so that every percentile can be read again.
    """
    found = dict(re.findall(r"^([A-Z][^:\n]+):\s+([0-9.]+)", text, re.MULTILINE))
    result = Result(int(found.get("Complete requests", 0)), float(found.get("Time taken for tests", 0)))
    result.connections = result.requests - int(found.get("Keep-Alive requests", 0))
    wrong = found.get("Non-2xx responses")
    if not result.requests:
        result.error = "ab got no answer: " + (text.strip().splitlines() or ["it printed nothing"])[-1]
    elif wrong:
        result.error = f"{wrong} answers had another status than 200"
    elif int(found.get("Failed requests", 0)):
        result.error = f"{found['Failed requests']} requests failed"
    elif job.length >= 0 and int(found.get("Document Length", 0)) != job.length:
        result.error = f"a body of {found.get('Document Length')} bytes, not {job.length}"
    result.latencies = parse_ab_table(table)
    return result


def parse_ab_table(table: str) -> list[list[int]]:
    """Return the histogram that ``ab -e`` stands for: one value a percent, in microseconds."""
    rows = [line.split(",") for line in table.splitlines()[1:] if "," in line]
    counts: dict[int, int] = {}
    for _, milliseconds in rows[1:]:
        value = round(float(milliseconds) * 1000)
        counts[value] = counts.get(value, 0) + 1
    return [[value, counts[value]] for value in sorted(counts)]


def format_wrk(job: Job) -> list[str]:
    """Return ``wrk``'s command line; it counts whole seconds only and has no bound on the number of requests."""
    command = ["wrk", "-t", "1", "-c", str(job.concurrency), "-d", f"{max(1, math.ceil(job.seconds))}s", "--latency"]
    command += ["--timeout", f"{math.ceil(job.timeout)}s"]
    if not job.keep_alive:
        command += ["-H", "Connection: close"]
    return [*command, f"http://{job.host}:{job.port}{job.path}"]


UNITS = {"us": 1, "ms": 1000, "s": 1_000_000, "m": 60_000_000}


def parse_wrk(text: str, job: Job) -> Result:
    """Read what ``wrk`` printed. It checks no length, and prints four percentiles: the histogram is that coarse."""
    done = re.search(r"(\d+) requests in ([0-9.]+)(us|ms|s|m),", text)
    if done is None or not int(done[1]):
        return Result(error="wrk got no answer: " + (text.strip().splitlines() or ["it printed nothing"])[-1])
    result = Result(int(done[1]), float(done[2]) * UNITS[done[3]] / 1e6)
    result.connections = job.concurrency if job.keep_alive else result.requests
    steps = re.findall(r"^\s+(\d+)%\s+([0-9.]+)(us|ms|s|m)$", text, re.MULTILINE)
    last = 0
    for percent, value, unit in steps:
        result.latencies.append([round(float(value) * UNITS[unit]), int(percent) - last])
        last = int(percent)
    if wrong := re.search(r"Non-2xx or 3xx responses: (\d+)", text):
        result.error = f"{wrong[1]} answers had another status than 200"
    elif (errors := re.search(r"Socket errors: (.*)", text)) and not job_tolerates(errors[1], job):
        result.error = f"connection errors: {errors[1]}"
    return result


def job_tolerates(errors: str, job: Job) -> bool:
    """True for read errors alone on closing connections: ``wrk`` counts a server's close as one."""
    kinds = {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", errors)}
    return not job.keep_alive and not (kinds.get("connect") or kinds.get("write") or kinds.get("timeout"))


class CommandDriver:
    """A tool that is started anew for each job; pinned to the job's core."""

    def __init__(
        self, name: str, form: Callable[[Job, str], list[str]], parse: Callable[[str, str, Job], Result]
    ) -> None:
        self.name = name
        self.form = form
        self.parse = parse
        self.process: subprocess.Popen[str] | None = None

    def run(self, job: Job) -> Result:
        """Run the tool to its end."""
        with tempfile.NamedTemporaryFile("r", suffix=".csv") as table:
            before = os.sched_getaffinity(0)
            if job.core >= 0:
                os.sched_setaffinity(0, {job.core})
            try:
                self.process = subprocess.Popen(
                    self.form(job, table.name), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
            finally:
                os.sched_setaffinity(0, before)
            try:
                text = self.process.communicate(timeout=job.seconds + job.timeout + SPARE)[0]
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.communicate()
                return Result(error=f"{self.name} did not end in time")
            finally:
                self.process = None
            return self.parse(text, Path(table.name).read_text(encoding="ascii"), job)

    def pids(self) -> list[int]:
        """Return the tool's process, if it runs."""
        return [self.process.pid] if self.process else []

    def close(self) -> None:
        """Nothing is left running."""


TOOLS = ("builtin", "ab", "wrk")


def missing_tool(name: str) -> str:
    """Return why a tool cannot be used, or ``""``."""
    return "" if name == "builtin" or shutil.which(name) else f"{name} is not installed; --load builtin needs nothing"


def open_driver(name: str) -> Driver:
    """Return a load tool by its name; raise ``ValueError`` for an unknown or missing one."""
    if name not in TOOLS:
        raise ValueError(f"{name!r} is none of {', '.join(TOOLS)}")
    if problem := missing_tool(name):
        raise ValueError(problem)
    if name == "ab":
        return CommandDriver("ab", format_ab, parse_ab)
    if name == "wrk":
        return CommandDriver("wrk", lambda job, _: format_wrk(job), lambda text, _, job: parse_wrk(text, job))
    return BuiltinDriver()
