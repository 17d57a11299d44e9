"""What a family of processes has used: CPU time and memory, read from /proc (Linux).

A family is a process and everything it started that still has it as an ancestor. Knows no servers and no rounds.

CPU time: of a living process, its own clock, to the nanosecond; of children that ended and were waited for, the
``cutime`` and ``cstime`` of whoever waited, to the tick (mostly 10 ms). Children that the kernel discards because their
parent ignores SIGCHLD are in nobody's account.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

TICK = 1 / os.sysconf("SC_CLK_TCK")
MIB = 1 << 20
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table; times in seconds of CPU, user and system together."""

    pid: int
    parent: int
    state: str
    own: float
    ended_children: float


def parse_stat(text: str) -> Process:
    """Parse /proc/PID/stat (proc(5)); a name may hold blanks and brackets. Raise ``ValueError`` if malformed."""
    before, bracket, after = text.rpartition(")")
    words = after.split()
    if not bracket or len(words) < 15:
        raise ValueError(f"not a line of /proc/PID/stat: {text[:80]!r}")
    own, children = sum(map(int, words[11:13])), sum(map(int, words[13:15]))
    return Process(int(before.split(" ", 1)[0]), int(words[1]), words[0], own * TICK, children * TICK)


def read_clock(pid: int) -> float:
    """Return a process's own CPU time in seconds, all its threads; raise ``OSError`` when it is gone.

    The clock's number is formed as clock_getcpuclockid(3) does.
    """
    return time.clock_gettime((~pid << 3) | 2)


def read_process(pid: int) -> Process | None:
    """Return a process's line with its exact clock, or ``None`` when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            process = parse_stat(file.read())
        return Process(pid, process.parent, process.state, read_clock(pid), process.ended_children)
    except OSError:
        return None


def read_table() -> dict[int, Process]:
    """Return every process that can be seen."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return {process.pid: process for process in map(read_process, pids) if process is not None}


def select_family(table: dict[int, Process], root: int) -> list[Process]:
    """Return ``root`` and all its descendants; the root comes first; empty when it is not in the table."""
    if root not in table:
        return []
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    family, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        family.append(table[pid])
        waiting.extend(children.get(pid, ()))
    return family


def sum_cpu(processes: list[Process]) -> float:
    """Return the CPU seconds of processes and of the children that they have waited for."""
    return sum(process.own + process.ended_children for process in processes)


@dataclass(frozen=True, slots=True)
class Account:
    """CPU seconds used so far: by a family, by ourselves and our tools, by all that is seen; and stolen by the host.

    ``beside``: of a second family, which takes part and is not measured for itself.
    """

    family: float
    ours: float
    everything: float
    stolen: float
    family_pids: frozenset[int]
    beside: float = 0.0


def read_account(root: int, ours: list[int], beside: int = 0) -> Account:
    """Return one consistent reading: taken again when a process of the family ended while it was read.

    ``ours`` are processes of the measuring side: neither the family's nor a stranger's. ``beside`` is the root of a
    second family, 0 for none. Raise ``ProcessLookupError`` when a root is gone.
    """
    table = read_table()
    for _ in range(ATTEMPTS):
        family = select_family(table, root)
        if not family:
            raise ProcessLookupError(f"process {root} has ended")
        if all(os.path.exists(f"/proc/{process.pid}") for process in family):
            break
        table = read_table()
    mine = [table[pid] for pid in ours if pid in table]
    second = select_family(table, beside) if beside else []
    if beside and not second:
        raise ProcessLookupError(f"process {beside} has ended")
    return Account(
        sum_cpu(family),
        sum_cpu(mine),
        sum_cpu(list(table.values())),
        read_stolen(),
        frozenset(process.pid for process in family),
        sum_cpu(second),
    )


def parse_stolen(text: str) -> float:
    """Return the seconds that the host took from this machine, all CPUs, from /proc/stat (proc(5)); 0.0 if unknown."""
    words = text.split("\n", 1)[0].split()
    return int(words[8]) * TICK if len(words) > 8 and words[0] == "cpu" else 0.0


def read_stolen() -> float:
    """Return the seconds that the host took from this machine so far."""
    with open("/proc/stat", encoding="ascii", errors="replace") as file:
        return parse_stolen(file.read(4096))


def parse_pss(text: str) -> int:
    """Return the proportional set size in bytes from smaps_rollup (proc(5)); raise ``ValueError`` without one."""
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise ValueError("no Pss line")


def read_pss(pid: int) -> int | None:
    """Return a process's proportional set size in bytes; ``None`` when it is gone or may not be looked at."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
            return parse_pss(file.read())
    except (OSError, ValueError):
        return None


def read_family_memory(root: int) -> list[int]:
    """Return the PSS in bytes of each process of a family, the root first; those that cannot be read are left out."""
    sizes = [read_pss(process.pid) for process in select_family(read_table(), root) if process.state != "Z"]
    return [size for size in sizes if size]
