"""The supervisor's report as a page: everything in one file, nothing from elsewhere, and as good in print.

Pure. Whatever came from a client is text here, and escaped. The page brings itself up to date by asking for itself and
putting the new middle in the place of the old; without scripts, by loading anew.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from typing import Any, NamedTuple

from gateways.process.ledger import HISTORY_TIME, KILLED, REASONS, RECYCLED
from gateways.process.page_style import SCRIPT, STYLE
from gateways.process.report import (
    STATES,
    format_bound,
    format_count,
    format_share,
    format_size,
    format_time,
)

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; frame-ancestors 'none'; "
    f"script-src 'sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}'"
)
"""The Content-Security-Policy of the page: no script but its own, nothing from elsewhere."""


class Column(NamedTuple):
    """A column of the workers' table: its head, its field, and how the field is written."""

    head: str
    field: str
    write: Any = str


COLUMNS = (
    Column("pid", "pid"), Column("state", "state"), Column("for", "for", format_time),
    Column("age", "age", format_time), Column("requests", "requests", format_count),
    Column("cpu %", "cpu", format_share), Column("own", "own", format_size), Column("shared", "shared", format_size),
    Column("request", "request"),
)  # fmt: skip


def format_page(data: dict[str, Any]) -> str:
    """Return a report as a page."""
    title = f"gateways {data['pid']}: {sum(pool['busy'] for pool in data['pools'])} busy"
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
        f'<noscript><meta http-equiv="refresh" content="5"></noscript><style>{STYLE}</style></head><body>'
        f'<header><h1>gateways</h1>{_format_sum(data)}<p id="lost" hidden></p></header>'
        f"<main>{''.join(map(_format_pool, data['pools']))}</main>"
        '<footer><p>The same as <a href="status.json">JSON</a>, <a href="status.txt">text</a>, '
        '<a href="metrics">metrics</a></p><p>Own: memory that no other process has. Shared: memory that others have, '
        "too; a pool's is its fair part. For: how long it is as it is.</p></footer>"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _format_sum(data: dict[str, Any]) -> str:
    words = [f"supervisor {data['pid']}", f"up {format_time(data['uptime'])}"]
    if data["memory"]:
        words.append(f"{format_size(data['memory']['own'])} of its own")
    if data["reloads"]:
        words.append(f"{data['reloads']} {'reload' if data['reloads'] == 1 else 'reloads'}")
    bad = [
        word
        for word, holds in (("the last reload failed", data["reload_failed"]), ("stopping", data["stopping"]))
        if holds
    ]
    text = escape(" · ".join(words)) + "".join(f' · <span class="bad">{word}</span>' for word in bad)
    return f'<p id="sum" class="dim">{text}</p>'


def _format_pool(pool: dict[str, Any]) -> str:
    kept = f"{pool['manager']}, at most {pool['max_servers']} · generation {pool['generation']}"
    where = " · ".join([kept, *pool["addresses"]])
    tiles = (
        _format_rate(pool), _format_workers(pool), _format_waiting(pool), _format_durations(pool),
        _format_outcomes(pool), _format_memory(pool), _format_ends(pool),
    )  # fmt: skip
    return (
        f"<section><h2>{escape(pool['name'])} <small>{escape(where)}</small></h2>"
        f'<div class="tiles">{"".join(tiles)}</div>{_format_table(pool["workers"])}</section>'
    )


def _tile(head: str, number: str, unit: str, picture: str, notes: Iterable[str]) -> str:
    """Return a tile; ``picture`` and ``notes`` are HTML, the rest is text."""
    return (
        f'<div class="tile"><h3>{escape(head)}</h3><b>{escape(number)} <small>{escape(unit)}</small></b>'
        f"{picture}<p>{' '.join(notes)}</p></div>"
    )


def _bar(parts: Iterable[tuple[str, float]], whole: float) -> str:
    cells = (
        f'<i class="{kind}" style="width:{part / whole * 100:.2f}%"></i>' for kind, part in parts if part and whole
    )
    return f'<div class="bar">{"".join(cells)}</div>'


def _key(kind: str, text: str) -> str:
    return f'<span class="key {kind}">{escape(text)}</span>'


def _format_rate(pool: dict[str, Any]) -> str:
    number = f"{pool['rate']:,.1f}" if pool["rate"] < 100 else f"{pool['rate']:,.0f}"
    curve = draw_curve([(entry[0], entry[1]) for entry in pool["history"]])
    return _tile("Requests", number, "a second", curve, [f"{pool['requests']:,} since the start"])


def draw_curve(points: list[tuple[float, float]]) -> str:
    """Return a curve of (seconds ago, height) over the time of the history, as SVG."""
    top = max((height for _, height in points), default=0) or 1
    places = " ".join(f"{HISTORY_TIME - ago:.1f},{27 - height / top * 25:.1f}" for ago, height in points)
    drawn = ""
    if len(points) > 1:
        first, last = HISTORY_TIME - points[0][0], HISTORY_TIME - points[-1][0]
        drawn = (
            f'<path class="area" d="M{first:.1f},28 L{places} L{last:.1f},28 Z"/><path class="curve" d="M{places}"/>'
        )
    return (
        f'<svg viewBox="0 0 {HISTORY_TIME:.0f} 28" preserveAspectRatio="none" role="img" '
        f'aria-label="requests a second in the last two minutes, at most {top:g}">'
        f'<rect class="base" x="0" y="27.5" width="{HISTORY_TIME:.0f}" height=".5"/>{drawn}</svg>'
    )


def _format_workers(pool: dict[str, Any]) -> str:
    number = sum(pool[state] for state in STATES)
    late = sum(worker["long"] for worker in pool["workers"])
    parts = [("long", late), ("busy", pool["busy"] - late), *((state, pool[state]) for state in STATES[1:])]
    names = {"long": f"{late} busy for long", "busy": f"{pool['busy'] - late} busy"}
    keys = [_key(kind, names.get(kind, f"{count} {kind}")) for kind, count in parts if count]
    return _tile(
        "Workers", str(number), f"of {pool['max_servers']}", _bar(parts, max(number, pool["max_servers"])), keys
    )


def _format_waiting(pool: dict[str, Any]) -> str:
    queue = pool["queue"]
    waiting = pool["waiting"] + (queue["length"] if queue else 0)
    notes = [
        f"{pool[name]:,} {words}"
        for name, words in (("turned_away", "answered 503"), ("passed", "passed to a free worker"))
        if pool[name]
    ]
    limit = f"of {queue['limit']:,}" if queue else ""
    return _tile(
        "Waiting", f"{waiting:,}", limit, draw_curve([(entry[0], entry[3]) for entry in pool["history"]]),
        [", ".join(notes)],
    )  # fmt: skip


def _format_durations(pool: dict[str, Any]) -> str:
    number, _, unit = format_bound(pool["p50"]).partition(" ")
    notes = (
        [f"90% within {format_bound(pool['p90'])}, 99% within {format_bound(pool['p99'])}"] if pool["requests"] else []
    )
    if pool["slow"]:
        notes.append(f'<span class="bad nowrap">{pool["slow"]:,} slow</span>')
    return _tile("Half within", number, unit, draw_classes(pool["durations"]), notes)


def draw_classes(durations: list[list[Any]]) -> str:
    """Return bars for the classes of duration, as SVG; a class with anything in it is seen."""
    top = max((count for _, count in durations), default=0) or 1
    bars = []
    for at, (bound, count) in enumerate(durations):
        height = max(2.0, count / top * 26) if count else 0.5
        name = f"within {format_bound(bound)}" if bound is not None else "longer"
        kind = "base" if not count else "late" if bound is None or bound > 1 else ""
        bars.append(
            f'<rect class="{kind}" x="{at * 10 + 1}" y="{28 - height:.1f}" width="8" height="{height:.1f}">'
            f"<title>{name}: {count:,}</title></rect>"
        )
    width = len(durations) * 10
    head = f'<svg viewBox="0 0 {width} 28" preserveAspectRatio="none" role="img" aria-label="durations">'
    return f"{head}{''.join(bars)}</svg>"


def _format_outcomes(pool: dict[str, Any]) -> str:
    kinds = {"2xx": "ok", "3xx": "moved", "4xx": "client", "5xx": "server", "none": "none"}
    outcomes = pool["outcomes"]
    total = sum(outcomes.values())
    keys = [
        _key(kinds[name], f"{name if name != 'none' else 'gone'} {format_count(count)}")
        for name, count in outcomes.items()
        if count
    ]
    if pool["refused"]:
        keys.append(f"{pool['refused']:,} refused unread")
    failed = outcomes["5xx"] / total if total else 0.0
    parts = [(kinds[name], count) for name, count in outcomes.items()]
    return _tile("Failed", f"{failed * 100:.2g}%", f"of {format_count(total)}", _bar(parts, total), keys)


def _format_memory(pool: dict[str, Any]) -> str:
    memory = pool["memory"]
    if memory is None:
        return _tile("Memory", "-", "", "", ["no workers" if not pool["workers"] else "not known"])
    own, together, unshared = memory["own"], memory["together"], memory["unshared"]
    shared, saved = max(0, together - own), max(0, unshared - together)
    parts = [("busy", own), ("idle", shared)]
    keys = [_key("busy", f"own {format_size(own)}"), _key("idle", f"shared {format_size(shared)}"),
            f'<span class="nowrap">{format_size(saved)} saved by sharing</span>']  # fmt: skip
    size = format_size(together)
    return _tile("Memory", size[:-1], {"K": "KiB", "M": "MiB", "G": "GiB"}[size[-1]], _bar(parts, unshared), keys)


def _format_ends(pool: dict[str, Any]) -> str:
    counts = (
        ("recycled", pool["recycled"]), ("killed", pool["killed"]), ("crashed", pool["crashed"]),
        ("failed to start", pool["boot_failures"]),
    )  # fmt: skip
    bad = ("killed", "crashed", "failed to start")
    notes = [f'<span class="{"bad" if name in bad else ""}">{count:,} {name}</span>' for name, count in counts if count]
    why = [f"{count} {REASONS[reason]}" for reason, count in pool["ended"].items() if reason in (*RECYCLED, *KILLED)]
    ended = sum(pool["ended"].values())
    picture = f'<p title="{escape("; ".join(why))}">{", ".join(notes) or "none recycled, killed or crashed"}</p>'
    return _tile("Workers ended", f"{ended:,}", f"of {pool['started']:,} started", picture, [])


def _format_table(workers: list[dict[str, Any]]) -> str:
    heads = "".join(f"<th>{escape(column.head)}</th>" for column in COLUMNS)
    rows = "".join(map(_format_row, workers))
    return (
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        if rows
        else '<p class="dim">no workers</p>'
    )


def _format_row(worker: dict[str, Any]) -> str:
    kind = "long" if worker["long"] else worker["state"]
    cells = []
    for column in COLUMNS:
        text = escape(column.write(worker[column.field]))
        if column.field == "state":
            text = f'<span class="key {escape(kind)}">{text}</span>'
        name = "request" if column.field == "request" else ""
        cells.append(f'<td class="{name}" data-name="{escape(column.head)}">{text}</td>')
    title = f"slot {worker['slot']}, generation {worker['generation']}"
    return f'<tr class="{escape(kind)}" title="{title}">{"".join(cells)}</tr>'
