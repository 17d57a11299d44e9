"""Runs jobs: each in a process of its own, begun again after a request that ended it, killed when it stands still.

What the application does to its process, it does to that one. Knows processes and files; judges nothing.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from gateways.audit.job import Job, Record, Run, format_job, parse_record

MAX_BEGINNINGS = 12
"""Times that one rung's process is started before the rest is given up."""
LOAD_LIMIT = 60.0
"""Seconds that an application may take to load."""
_TICK_MS = 50
_SLACK = 0.5
_FORK_SLACK = 4.0
"""Seconds beyond the time limit until a process is killed; models that fork kill their child by themselves."""
MAX_HANGS = 2
_MAX_LOG = 2000


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where jobs are done. ``folder``: for their files. ``program``: Python source that does the job named by its first
    argument. ``progress``: told (rung, answered, all) now and then."""

    folder: str
    program: str
    progress: Callable[[str, int, int], None]


def do_job(shop: Workshop, job: Job) -> Run:
    """Run a job to its end and return what was seen."""
    run = Run(job.rung)
    job = dataclasses.replace(
        job, results=os.path.join(shop.folder, "results"), files=os.path.join(shop.folder, "files")
    )
    shutil.rmtree(job.files, ignore_errors=True)
    os.mkdir(job.files)
    for _ in range(MAX_BEGINNINGS):
        watch = _Watch(shop, job, run)
        if watch.run() or run.failed:
            return run
        done = len(run.records)
        if done >= len(job.sequence):
            return run
        if sum(record.died == "no end" for record in run.records) >= MAX_HANGS:
            break
        job = dataclasses.replace(job, start=done)
    run.cut = True
    return run


class _Watch:
    """One process of a job."""

    def __init__(self, shop: Workshop, job: Job, run: Run) -> None:
        self._shop = shop
        self._job = job
        self._run = run
        self._partial = b""
        self._done = False
        self._loaded = False
        self._moved_at = monotonic()

    def run(self) -> bool:
        """Start the process and watch it; True when it has done the whole job."""
        job = self._job
        path = os.path.join(self._shop.folder, "job")
        with open(path, "w", encoding="utf-8") as file:
            file.write(format_job(job))
        with open(job.results, "wb"), open(f"{job.results}.log", "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", self._shop.program, path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=log, start_new_session=True, env={**os.environ, "TMPDIR": job.files},
            )  # fmt: skip
        try:
            with open(job.results, "rb") as results:
                late = self._follow(process, results.read)
        finally:
            kill_session(process)
        if not self._done and not self._run.failed:
            self._note_end(process.returncode, late)
        return self._done

    def _follow(self, process: subprocess.Popen[bytes], read: Callable[[], bytes]) -> bool:
        """Take records until the process ends; True when it stood still instead."""
        descriptor = os.pidfd_open(process.pid)
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        try:
            while True:
                ended = bool(poller.poll(_TICK_MS))
                self._take(read())
                if ended:
                    return False
                if monotonic() > self._moved_at + patience(self._job, self._loaded):
                    return True
        finally:
            os.close(descriptor)

    def _take(self, data: bytes) -> None:
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        for line in lines:
            self._moved_at = monotonic()
            self._take_line(json.loads(line))

    def _take_line(self, values: dict[str, Any]) -> None:
        run = self._run
        if "place" in values:
            run.records.append(parse_record(values))
            self._shop.progress(self._job.rung.name, len(run.records), len(self._job.sequence))
        elif "memory" in values:
            run.memory.append(tuple(values["memory"]))
        elif "files" in values:
            run.records[-1].files = int(values["files"])
        elif "failed" in values:
            run.failed = str(values["failed"])
        self._loaded = self._loaded or "loaded" in values
        self._done = self._done or "done" in values
        own = values.get("own")
        if isinstance(own, list):
            run.own = sorted({*run.own, *own})

    def _note_end(self, status: int | None, late: bool) -> None:
        """Note that the process ended before its job did: by the request that it had begun, if it had begun one."""
        run, job = self._run, self._job
        if not self._loaded:
            said = self._read_tail(".log").strip().splitlines()
            run.failed = f"it could not be loaded: {said[-1] if said else describe_exit(status)}"
            return
        place = len(run.records)
        if place >= len(job.sequence) or (run.records and run.records[-1].recycled and place > job.start):
            return
        died = "no end" if late else describe_exit(status)
        run.records.append(Record(place, job.sequence[place], died=died, log=self._read_tail(".stack")))

    def _read_tail(self, suffix: str) -> str:
        try:
            with open(self._job.results + suffix, "rb") as file:
                return file.read()[-_MAX_LOG:].decode("utf-8", "replace")
        except OSError:
            return ""


def patience(job: Job, loaded: bool) -> float:
    """Return how many seconds may pass without a record."""
    if not loaded:
        return LOAD_LIMIT
    return job.time_limit + (_FORK_SLACK if job.rung.forks else _SLACK)


def describe_exit(status: int | None) -> str:
    """Return how a process ended, of its own or by which signal."""
    if status is None or status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started and left in its group, and collect it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nothing of it is left
    process.wait()
