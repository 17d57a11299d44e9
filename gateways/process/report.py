"""What a supervisor keeps, for people and programs: the same report as HTML, JSON and text.

Pure. Whatever came from a client (the request that a worker runs) is text here, and escaped in each of the three.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from gateways.process.scoreboard import SlotReading

COLUMNS = ("slot", "pid", "state", "generation", "requests", "age", "for", "request")
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:70rem}"
    "table{border-collapse:collapse}th,td{padding:.15rem .8rem .15rem 0;text-align:left;border-bottom:1px solid #ddd;"
    "font-variant-numeric:tabular-nums}.busy{font-weight:600}td:last-child{overflow-wrap:anywhere}"
)


_QUEUE_WORDS = (("waiting", "waiting"), ("turned_away", "answered 503"), ("passed", "passed to a free worker"))


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
    """One pool: its name, its generation, how it is kept, the most workers, its workers' lines, and who waits."""

    name: str
    generation: int
    manager: str
    max_servers: int
    workers: Sequence[SlotReading]
    queue: QueueReport = QueueReport()


class Report(NamedTuple):
    """One supervisor. ``uptime`` and ``now`` are in seconds, ``now`` monotonic as the times of the lines."""

    pid: int
    uptime: float
    now: float
    stopping: bool
    pools: Sequence[PoolReport]


def describe(report: Report) -> dict[str, Any]:
    """Return a report as plain data: what the JSON holds."""
    return {
        "pid": report.pid,
        "uptime": round(report.uptime, 1),
        "stopping": report.stopping,
        "pools": [_describe_pool(pool, report.now) for pool in report.pools],
    }


def _describe_pool(pool: PoolReport, now: float) -> dict[str, Any]:
    workers = [_describe_worker(line, now) for line in sorted(pool.workers, key=lambda line: line.number)]
    states = [worker["state"] for worker in workers]
    return {
        "name": pool.name,
        "generation": pool.generation,
        "manager": pool.manager,
        "max_servers": pool.max_servers,
        "starting": states.count("starting"),
        "idle": states.count("idle"),
        "busy": states.count("busy"),
        "closing": states.count("closing"),
        **pool.queue._asdict(),
        "workers": workers,
    }


def _describe_worker(line: SlotReading, now: float) -> dict[str, Any]:
    return {
        "slot": line.number,
        "pid": line.pid,
        "state": line.state.name.lower(),
        "generation": line.generation,
        "requests": line.requests,
        "age": round(max(0.0, now - line.started), 1),
        "for": round(max(0.0, now - line.since), 1),
        "request": line.request,
    }


def format_json(data: dict[str, Any]) -> str:
    """Return plain data as JSON: ASCII only."""
    return json.dumps(data, indent=1) + "\n"


def _format_head(data: dict[str, Any]) -> str:
    return f"supervisor {data['pid']}, up {data['uptime']:g} s{', stopping' if data['stopping'] else ''}"


def _format_pool_head(pool: dict[str, Any]) -> str:
    counts = ", ".join(f"{pool[state]} {state}" for state in ("busy", "idle", "starting", "closing"))
    queue = ", ".join(f"{pool[name]} {words}" for name, words in _QUEUE_WORDS if pool[name])
    return f"pool {pool['name']}: {pool['manager']}, at most {pool['max_servers']}; {counts}{queue and f'; {queue}'}"


def format_text(data: dict[str, Any]) -> str:
    """Return plain data as a table for a terminal: one line a worker, nothing that a terminal would obey."""
    lines = [_format_head(data)]
    for pool in data["pools"]:
        rows = [COLUMNS, *(tuple(make_plain(str(worker[column])) for column in COLUMNS) for worker in pool["workers"])]
        widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
        lines += ["", make_plain(_format_pool_head(pool))]
        lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"


def make_plain(text: str) -> str:
    """Return text in which everything but printable ASCII is escaped."""
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode("ascii") for c in text)


def format_html(data: dict[str, Any]) -> str:
    """Return plain data as a page."""
    title = f"gateways {data['pid']}"
    head = f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
    parts = [f"{head}<h1>gateways</h1><p>{escape(_format_head(data))} (<a href=status.json>JSON</a>)"]
    for pool in data["pools"]:
        parts.append(f"<h2>{escape(_format_pool_head(pool))}</h2>\n<table><tr>")
        parts.extend(f"<th>{column}" for column in COLUMNS)
        for worker in pool["workers"]:
            cells = "".join(f"<td>{escape(str(worker[column]))}" for column in COLUMNS)
            parts.append(f"\n<tr class={escape(worker['state'])}>{cells}")
        parts.append("\n</table>")
    return "".join(parts) + "\n"
