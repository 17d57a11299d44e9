"""What a supervisor keeps, as plain data: what the page, the table, the JSON and the metrics are made of.

Pure. Whatever came from a client (the request that a worker runs) is text here; whoever formats it escapes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

from gateways.process.ledger import BOOT, CRASH, KILLED, REASONS, RECYCLED, Ledger
from gateways.process.measures import BOUNDS, OUTCOMES, Measures
from gateways.process.queues import Queue
from gateways.process.scoreboard import SlotReading, State
from gateways.process.weights import Memory, Weight

STATES = ("busy", "idle", "starting", "closing")
QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
LONG = 10.0
"""Seconds after which a request is shown as a long one, where no directive says what is slow."""


class QueueReport(NamedTuple):
    """What a pool's doorman counts.

    ``waiting``: connections that it has handed on and no worker has taken yet. Since the start: ``turned_away``,
    answered 503 because the pool was full, ``timed_out``, those of them that had waited, and ``passed``, taken from a
    busy worker.
    """

    waiting: int = 0
    turned_away: int = 0
    timed_out: int = 0
    passed: int = 0


class PoolReport(NamedTuple):
    """One pool: its name, its generation, how it is kept, the most workers, and its workers' lines.

    ``long``: seconds after which a request is a long one. ``queue``: of the kernel, over all ``addresses``; None when
    it is not known. ``helpers``: pids of its processes that are no workers.
    """

    name: str
    generation: int
    manager: str
    max_servers: int
    workers: Sequence[SlotReading]
    measures: Measures
    ledger: Ledger
    long: float = LONG
    queue: Queue | None = None
    door: QueueReport = QueueReport()
    addresses: Sequence[str] = ()
    helpers: Sequence[int] = ()


class Report(NamedTuple):
    """One supervisor. ``uptime`` and ``now`` are in seconds, ``now`` monotonic as the times of the lines.

    ``weights``: of its processes, by pid. ``reloads``: how many were asked for; ``reload_failed``: the last one did.
    """

    pid: int
    uptime: float
    now: float
    stopping: bool
    pools: Sequence[PoolReport]
    weights: Mapping[int, Weight]
    reloads: int = 0
    reload_failed: bool = False


def describe(report: Report) -> dict[str, Any]:
    """Return a report as plain data: what the JSON holds. Times in seconds, memory in bytes."""
    return {
        "pid": report.pid,
        "uptime": round(report.uptime, 1),
        "stopping": report.stopping,
        "reloads": report.reloads,
        "reload_failed": report.reload_failed,
        "memory": _describe_memory([report.weights.get(report.pid)]),
        "pools": [_describe_pool(pool, report) for pool in report.pools],
    }


def _describe_pool(pool: PoolReport, report: Report) -> dict[str, Any]:
    lines = sorted(pool.workers, key=lambda line: line.number)
    workers = [_describe_worker(line, pool, report) for line in lines]
    states = [worker["state"] for worker in workers]
    measures, ledger = pool.measures, pool.ledger
    weights = [report.weights.get(pid) for pid in (*(line.pid for line in lines), *pool.helpers)]
    return {
        "name": pool.name,
        "generation": pool.generation,
        "manager": pool.manager,
        "max_servers": pool.max_servers,
        "addresses": list(pool.addresses),
        **{state: states.count(state) for state in STATES},
        "requests": measures.requests,
        "rate": round(ledger.find_rate(), 1),
        "seconds": round(measures.seconds, 3),
        "durations": [
            [None if bound == inf else bound, count]
            for bound, count in zip((*BOUNDS, inf), measures.durations, strict=True)
        ],
        **{name: _describe_bound(measures.find_quantile(fraction)) for name, fraction in QUANTILES},
        "outcomes": dict(zip(OUTCOMES, measures.outcomes, strict=True)),
        "refused": measures.refused,
        "slow": ledger.slow,
        "queue": None if pool.queue is None else pool.queue._asdict(),
        **pool.door._asdict(),
        "started": ledger.started,
        "ended": {reason: ledger.ended[reason] for reason in REASONS if ledger.ended[reason]},
        "recycled": ledger.count(RECYCLED),
        "killed": ledger.count(KILLED),
        "crashed": ledger.ended[CRASH],
        "boot_failures": ledger.ended[BOOT],
        "memory": _describe_memory(weights),
        "cpu": round(sum(worker["cpu"] or 0.0 for worker in workers), 3),
        "history": _describe_history(ledger, report.now),
        "workers": workers,
    }


def _describe_worker(line: SlotReading, pool: PoolReport, report: Report) -> dict[str, Any]:
    weight = report.weights.get(line.pid)
    time = max(0.0, report.now - line.since)
    return {
        "slot": line.number,
        "pid": line.pid,
        "state": line.state.name.lower(),
        "generation": line.generation,
        "requests": line.requests,
        "age": round(max(0.0, report.now - line.started), 1),
        "for": round(time, 1),
        "long": line.state is State.BUSY and time >= pool.long,
        "cpu": _describe_share(weight, report.now - line.started),
        "own": weight.memory.own if weight and weight.memory else None,
        "shared": weight.memory.shared if weight and weight.memory else None,
        "request": line.request,
    }


def _describe_memory(weights: Sequence[Weight | None]) -> dict[str, int] | None:
    """Return the memory of processes: their own, the most that one shares, what all hold, and would hold unshared."""
    memories: list[Memory] = [weight.memory for weight in weights if weight and weight.memory]
    if not memories:
        return None
    return {
        "own": sum(memory.own for memory in memories),
        "shared": max(memory.shared for memory in memories),
        "together": sum(memory.part for memory in memories),
        "unshared": sum(memory.own + memory.shared for memory in memories),
    }


def _describe_share(weight: Weight | None, age: float) -> float | None:
    """Return the share of a processor since the look before, or else since the worker's start."""
    if weight is None or weight.cpu is None:
        return None
    return round(weight.cpu / age if weight.share is None and age > 0 else weight.share or 0.0, 3)


def _describe_bound(bound: float | None) -> float | None:
    return BOUNDS[-1] if bound == inf else bound


def _describe_history(ledger: Ledger, now: float) -> list[list[float]]:
    """Return, for each step of the history: seconds ago, requests a second since the step before, busy, waiting."""
    moments = list(ledger.history)
    return [
        [
            round(now - this.time, 1),
            round(max(0, this.requests - before.requests) / (this.time - before.time), 1),
            this.busy,
            this.waiting,
        ]
        for before, this in pairwise(moments)
        if this.time > before.time
    ]


def format_json(data: dict[str, Any]) -> str:
    """Return plain data as JSON: ASCII only."""
    return json.dumps(data, indent=1) + "\n"


def make_plain(text: str) -> str:
    """Return text in which everything but printable ASCII is escaped."""
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode("ascii") for c in text)


def format_time(seconds: float) -> str:
    """Return a length of time in at most five characters: ``0.4s``, ``59s``, ``12m``, ``3h``, ``120d``."""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "m"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f}{name}"
    return f"{seconds / 86400:.0f}d"


def format_bound(seconds: float | None) -> str:
    """Return a bound of a class of durations: ``0.1 ms``, ``250 ms``, ``2.5 s``; ``-`` for none."""
    if seconds is None:
        return "-"
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"


def format_size(size: float | None) -> str:
    """Return bytes in at most five characters: ``512K``, ``12.3M``, ``1.2G``; ``-`` for none."""
    if size is None:
        return "-"
    for limit, unit, name in ((1 << 20, 1 << 10, "K"), (1 << 30, 1 << 20, "M")):
        if size < limit:
            amount = size / unit
            return f"{amount:.0f}{name}" if amount >= 99.95 or name == "K" else f"{amount:.1f}{name}"
    return f"{size / (1 << 30):.1f}G"


def format_count(count: float) -> str:
    """Return a count in at most six characters: ``123456``, ``1.2M``."""
    for limit, unit, name in ((1_000_000, 1, ""), (1_000_000_000, 1_000_000, "M")):
        if count < limit:
            return f"{count:.0f}" if not name else f"{count / unit:.1f}{name}"
    return f"{count / 1e9:.1f}G"


def format_share(share: float | None) -> str:
    """Return a share of one processor in per cent, without a sign; ``-`` for none."""
    return "-" if share is None else f"{share * 100:.0f}"
