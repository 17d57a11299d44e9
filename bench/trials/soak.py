"""A long time under mixed load while workers are killed, clients misbehave and the code is reloaded."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench import fronts
from bench.proc import MIB, read_pss
from bench.trials.clients import Failure, SteadyLoad
from bench.trials.findings import Course, Table
from bench.trials.harness import (
    FIGURE_COLUMNS,
    Gateways,
    Trial,
    Watcher,
    fronting,
    list_family,
    read_figures,
    serving,
    wait_until,
)

SUMMARY = "Mixed load, with killed workers and reloads: only requests on killed workers fail, and nothing leaks."
LENGTH = "30 minutes, --quick 2, or --minutes"
MINUTES, QUICK_MINUTES = 30.0, 2.0
POOL = "StartServers = 4\nMinSpareServers = 3\nMaxSpareServers = 6\nMaxServers = 16\nMaxRequestsPerChild = 2000"
KILL_EVERY, RELOAD_EVERY = 4.0, 15.0
SLOW_CLIENTS, ABORTERS = 4, 2
NEAR = 0.5
"""Seconds by which a kill may lie outside a failed request's time and still be its reason."""
LATE = 2.0
"""A client that learns later than this that its worker is dead is told of."""
GROWTH = 2 * MIB
LOOK = 5.0


@dataclass(slots=True)
class Misdeeds:
    """What was done to the server: (time, pid) of each kill, and counts."""

    kills: list[tuple[float, int]] = field(default_factory=list)
    reloads: int = 0
    slow: int = 0
    aborted: int = 0


def kill_somebody(server: Gateways, done: Misdeeds) -> None:
    """Kill a worker that serves."""
    workers = [w for w in server.status().get("workers", []) if w["state"] in ("idle", "busy")]
    if workers:
        pid = random.choice(workers)["pid"]
        done.kills.append((time.time(), pid))
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            done.kills.pop()


def reload(server: Gateways, done: Misdeeds) -> None:
    """Reload."""
    server.signal(signal.SIGHUP)
    done.reloads += 1


def send_slowly(port: int, over: threading.Event) -> None:
    """Send a request a few bytes at a time and read its long answer as slowly."""
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        for piece in (b"GET /size/200000 ", b"HTTP/1.1\r\nHost: loc", b"alhost\r\nConnection: close\r\n", b"\r\n"):
            sock.sendall(piece)
            over.wait(0.3)
        while sock.recv(20000):
            over.wait(0.1)


def abort_upload(port: int, over: threading.Event) -> None:
    """Announce a long body, send a part of it, and go."""
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        sock.sendall(b"POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + bytes(150_000))
        over.wait(0.2)


def repeat(action: Callable[[], None], pause: float, over: threading.Event) -> threading.Thread:
    """Do something again and again, with a random pause of that mean, in a thread of its own until ``over``."""

    def run() -> None:
        while not over.wait(random.uniform(0.5, 1.5) * pause):
            try:
                action()
            except OSError:
                pass  # a slow client of a killed worker, for one

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def excuse(failure: Failure, kills: list[tuple[float, int]], log: str) -> str:
    """Return which kill a failed request is to be blamed on, ``""`` for none."""
    if any(pid == failure.worker for _, pid in kills):
        return "its connection was kept by a worker that was killed"
    if re.search(rf"was killed by SIGKILL while \w+ with GET {re.escape(failure.path)}[ ,]", log):
        return "it ran on a worker that was killed"
    if any(failure.began - NEAR <= at <= failure.ended + NEAR for at, _ in kills):
        return "a worker was killed while it ran, and the log does not say whose request that was"
    return ""


def list_lines(log: str, failure: Failure) -> list[str]:
    """Return what the error log says of a failed request and of the worker that had answered before it."""
    wanted = (failure.path, f"worker {failure.worker} ", f"[{failure.worker}]")
    return [line for line in log.splitlines() if any(word in line for word in wanted)][-5:]


def run(trial: Trial) -> None:
    """Run the trial."""
    minutes = trial.minutes or (QUICK_MINUTES if trial.quick else MINUTES)
    done, over = Misdeeds(), threading.Event()
    with serving(POOL, ("http", "fastcgi")) as server, ExitStack() as stack:
        http = server.ports["http"]
        loads = {
            "HTTP, kept": SteadyLoad(http, 60, 6, "/?k{}"),
            "HTTP, closed": SteadyLoad(http, 20, 4, "/?c{}", keep=False),
            "HTTP, slow pages": SteadyLoad(http, 6, 3, "/sleep/0.2?s{}"),
        }
        if not fronts.find_missing(fronts.TABLE["nginx"]):
            front, _ = stack.enter_context(fronting("nginx", "fastcgi", server.ports["fastcgi"]))
            loads["FastCGI behind nginx"] = SteadyLoad(front.port, 60, 6, "/?f{}")

        def do_slowly() -> None:
            done.slow += 1
            send_slowly(http, over)

        def do_abort() -> None:
            done.aborted += 1
            abort_upload(http, over)

        ledger = Ledger(server)
        with ExitStack() as running:
            for load in loads.values():
                running.enter_context(load)
            threads = [repeat(lambda: kill_somebody(server, done), KILL_EVERY, over),
                       repeat(lambda: reload(server, done), RELOAD_EVERY, over),
                       *(repeat(do_slowly, 1.0, over) for _ in range(SLOW_CLIENTS)),
                       *(repeat(do_abort, 1.0, over) for _ in range(ABORTERS))]  # fmt: skip
            endure(trial, ledger, loads, done, minutes)
            over.set()
            for thread in threads:
                thread.join()
        wait_until(lambda: server.status().get("closing") == 0 and server.status().get("busy") == 0, "rest")
        ledger.note("at rest")
        judge(trial, server, loads, done, ledger)


class Ledger:
    """The figures of the supervisor and of the whole family, noted as the trial goes on."""

    def __init__(self, server: Gateways) -> None:
        self._server = server
        self.course = Course("Memory and processes", "MiB, processes, descriptors")
        self.rows: list[tuple[str, ...]] = []
        self.figures: list[tuple[int, int, int]] = []

    def look(self, seconds: float) -> None:
        """Add a point to the course."""
        try:
            figures = read_figures(self._server.pid)
        except OSError:
            return
        family = list_family(self._server.pid)
        self.course.add(
            seconds, supervisor=figures.resident / MIB, processes=len(family), descriptors=figures.descriptors
        )

    def note(self, when: str) -> None:
        """Add a row: the supervisor's figures, processes, and what all of them hold together."""
        figures = read_figures(self._server.pid)
        family = list_family(self._server.pid)
        share = sum(read_pss(pid) or 0 for pid in family)
        self.figures.append((figures.descriptors, figures.resident, len(family)))
        self.rows.append((when, *figures.row(), str(len(family)), f"{share / MIB:.0f} MiB"))


def endure(trial: Trial, ledger: Ledger, loads: dict[str, SteadyLoad], done: Misdeeds, minutes: float) -> None:
    """Let time pass, and note figures after a sixth of it (five minutes of thirty) and at the end."""
    end, first = 60 * minutes, 10 * minutes
    with Watcher(ledger.look, min(LOOK, end / 60)) as watcher:
        while watcher.now < end:
            time.sleep(min(LOOK, end - watcher.now))
            if not ledger.rows and watcher.now >= first:
                ledger.note(f"after {watcher.now / 60:.1f} minutes")
            asked = sum(load.tally.asked for load in loads.values())
            failed = sum(len(load.tally.failures) for load in loads.values())
            text = f"{watcher.now / 60:.1f} of {minutes:g} minutes: {asked:,} requests, {failed} failed, "
            trial.tell(f"{text}{len(done.kills)} kills, {done.reloads} reloads", watcher.now, end)
        ledger.note(f"after {watcher.now / 60:.1f} minutes")


def judge(trial: Trial, server: Gateways, loads: dict[str, SteadyLoad], done: Misdeeds, ledger: Ledger) -> None:
    """Claim what was promised."""
    found, log = trial.findings, server.read_log()
    blamed: dict[str, int] = {}
    rows: list[tuple[str, ...]] = []
    for name, load in loads.items():
        reasons = [excuse(failure, done.kills, log) for failure in load.tally.failures]
        blank = [failure for failure, reason in zip(load.tally.failures, reasons, strict=True) if not reason]
        late = [failure for failure in load.tally.failures if failure.ended - failure.began > LATE]
        if late:
            found.notes.append(f"{name}: {len(late)} clients of killed workers knew it only {LATE:g} s later, or more")
        for reason in filter(None, reasons):
            blamed[reason] = blamed.get(reason, 0) + 1
        seen = f"{load.tally.describe()}" if not blank else f"{len(blank)}, the first: {blank[0]}"
        found.claim(f"only requests on killed workers fail: {name}", load.tally.asked > 0 and not blank, seen)
        found.notes += [f"{failure.path}: {line}" for failure in blank[:5] for line in list_lines(log, failure)]
        rows.append((name, f"{load.tally.asked:,}", str(len(reasons)), str(len(blank))))
    (first_fds, first_size, _), *_, (fds, size, processes) = ledger.figures
    found.claim("the supervisor's descriptors stay as many", fds <= first_fds + 1, f"{first_fds}, then {fds}")
    grown = f"{(size - first_size) / 1024:+.0f} KiB"
    found.claim("the supervisor's memory does not grow", size - first_size <= GROWTH, grown)
    status = server.status()
    known = len(status.get("workers", [])) + 2  # the supervisor, and a doorman
    found.claim("nobody is left who is not known", processes <= known, f"{processes} processes, {known} known at most")
    found.notes.append(
        f"done to the server: {len(done.kills)} kills, {done.reloads} reloads, {done.slow} slow clients, "
        f"{done.aborted} aborted uploads"
    )
    found.notes += [f"failed, {count}: {reason}" for reason, count in blamed.items()]
    found.tables.append(Table("Requests", ("load", "asked", "failed", "of these without a kill"), rows))
    columns = ("when", *FIGURE_COLUMNS, "processes", "PSS of all")
    found.tables.append(Table("The supervisor, and all processes", columns, ledger.rows))
    found.courses.append(ledger.course)
