"""Reloads and successions under load."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack

from bench import fronts
from bench.proc import MIB
from bench.trials.clients import SteadyLoad
from bench.trials.findings import Course, Table
from bench.trials.harness import (
    FIGURE_COLUMNS,
    Figures,
    Gateways,
    Trial,
    fronting,
    is_alive,
    read_figures,
    serving,
    wait_until,
)

SUMMARY = "100 reloads and 20 successions under 200 requests a second, on HTTP and on FastCGI behind nginx: none fails."
LENGTH = "about 5 minutes, --quick 40 seconds"
POOL = 'ProcessManager = "static"\nMaxServers = 8'
RATE = 200.0
CONNECTIONS = 6
RELOADS, SUCCESSIONS = 100, 20
QUICK_RELOADS, QUICK_SUCCESSIONS = 10, 3
GROWTH = MIB
"""Bytes by which a process may differ and still be called as large as before."""


def reload(server: Gateways, generation: int) -> None:
    """Reload and wait until only workers of ``generation`` are left."""
    server.signal(signal.SIGHUP)
    wait_until(lambda: is_settled(server, generation), f"generation {generation}")


def is_settled(server: Gateways, generation: int) -> bool:
    """True when all workers are of one generation and none is on its way in or out."""
    status = server.status()
    workers = status.get("workers", [])
    return (
        status.get("generation") == generation
        and len(workers) == status["max_servers"]
        and all(w["generation"] == generation and w["state"] in ("idle", "busy") for w in workers)
    )


def succeed(server: Gateways) -> None:
    """Replace the supervisor and wait until the old one has gone and the new one is complete."""
    old = server.pid
    server.signal(signal.SIGUSR2)
    wait_until(lambda: server.pid not in (0, old) and not is_alive(old), f"the successor of {old}")
    wait_until(lambda: server.status().get("pid") == server.pid and is_settled(server, 1), "its workers")


class Register:
    """The supervisor's figures, noted as the trial goes on."""

    def __init__(self, title: str) -> None:
        self.course = Course(f"Memory of the supervisor: {title}", "MiB")
        self.began = time.monotonic()
        self.rows: list[tuple[str, int, Figures]] = []

    def note(self, server: Gateways, when: str) -> Figures:
        """Read the figures of whoever is the supervisor now."""
        figures = read_figures(server.pid)
        self.rows.append((when, server.pid, figures))
        seconds = time.monotonic() - self.began
        self.course.add(seconds, RSS=figures.resident / MIB, PSS=figures.share / MIB)
        return figures

    def pick(self) -> list[tuple[str, ...]]:
        """Return the rows of the beginning, the middle and the end."""
        chosen = dict.fromkeys((0, len(self.rows) // 2, len(self.rows) - 1))
        return [(self.rows[at][0], str(self.rows[at][1]), *self.rows[at][2].row()) for at in chosen]

    def judge(self, trial: Trial, what: str, start: int) -> None:
        """Claim that nothing has grown since row ``start``: what is made once has been made by then."""
        first, last = self.rows[min(start, len(self.rows) - 1)][2], self.rows[-1][2]
        claim = trial.findings.claim
        claim(f"descriptors stay as many {what}", first.descriptors == last.descriptors,
              f"{first.descriptors}, then {last.descriptors}")  # fmt: skip
        claim(f"threads stay as many {what}", first.threads == last.threads, f"{first.threads}, then {last.threads}")
        grown = last.resident - first.resident
        claim(f"resident memory does not grow {what}", grown <= GROWTH, f"{grown / 1024:+.0f} KiB")


def run(trial: Trial) -> None:
    """Run the trial."""
    reloads, successions = (QUICK_RELOADS, QUICK_SUCCESSIONS) if trial.quick else (RELOADS, SUCCESSIONS)
    has_front = not fronts.find_missing(fronts.TABLE["nginx"])
    if not has_front:
        trial.findings.notes.append("nginx is not installed: HTTP only")
    with serving(POOL, ("http", "fastcgi")) as server, ExitStack() as stack:
        loads = {"HTTP, kept connections": SteadyLoad(server.ports["http"], RATE, CONNECTIONS)}
        front_log = None
        if has_front:
            front, front_log = stack.enter_context(fronting("nginx", "fastcgi", server.ports["fastcgi"]))
            loads["FastCGI behind nginx, kept connections"] = SteadyLoad(front.port, RATE, CONNECTIONS)
        wait_until(lambda: is_settled(server, 1), "the workers")
        for load in loads.values():
            stack.enter_context(load)
        registers = exercise(server, trial, reloads, successions)
        said = front_log.read_text("utf-8", "replace").splitlines() if front_log else []
        stack.pop_all().close()
        judge(trial, server, loads, registers, (reloads, successions))
        if front_log:
            trial.findings.claim(
                "nginx has nothing to complain of",
                not said,
                f"{len(said)} times, the first: {said[0]}" if said else "nothing",
            )


def exercise(server: Gateways, trial: Trial, reloads: int, successions: int) -> tuple[Register, Register]:
    """Reload and succeed; return the supervisors' figures of both parts."""
    total = reloads + successions
    through, over = Register("reloads"), Register("successions, each a new process")
    through.note(server, "before the first reload")
    for number in range(1, reloads + 1):
        reload(server, number + 1)
        figures = through.note(server, f"after reload {number}")
        trial.tell(f"reload {number}/{reloads}: {figures.descriptors} descriptors, {figures.resident / MIB:.1f} MiB",
                   number, total)  # fmt: skip
    for number in range(1, successions + 1):
        succeed(server)
        over.note(server, f"supervisor {number + 1}")
        trial.tell(f"succession {number}/{successions}: supervisor {server.pid}", reloads + number, total)
    return through, over


def judge(
    trial: Trial,
    server: Gateways,
    loads: dict[str, SteadyLoad],
    registers: tuple[Register, Register],
    counts: tuple[int, int],
) -> None:
    """Claim what was promised."""
    found = trial.findings
    reloads, successions = counts
    for name, load in loads.items():
        tally = load.tally
        found.claim(f"no request fails: {name}", tally.asked > 0 and not tally.failures, tally.describe())
    through, over = registers
    through.judge(trial, f"over {reloads} reloads", min(10, reloads // 2))
    over.judge(trial, f"from supervisor to supervisor, {successions} times", 0)
    complaints = server.list_complaints()
    found.claim("the error log has no complaint", not complaints, complaints[0] if complaints else "none")
    columns = ("when", "pid", *FIGURE_COLUMNS)
    found.tables.append(Table("The supervisor over reloads", columns, through.pick()))
    found.tables.append(Table("The supervisors over successions", columns, over.pick()))
    found.courses += [through.course, over.course]
