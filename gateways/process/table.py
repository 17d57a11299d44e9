"""The supervisor's report as a table of plain text, as wide and as long as there is room; in colour if wanted.

Pure. Everything but printable ASCII is escaped, so that nothing that a client has sent is obeyed by a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gateways.process.report import (
    STATES,
    format_bound,
    format_count,
    format_share,
    format_size,
    format_time,
    make_plain,
)

_RED, _GREEN, _YELLOW, _CYAN, _BOLD, _DIM, _END = (
    "\x1b[1;31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
)  # fmt: skip
_COLOURS = {"busy": _GREEN, "starting": _CYAN, "closing": _YELLOW, "idle": _DIM}


class Column(NamedTuple):
    """A column: its head, its width, what stands in it, and the least width of a table that has it."""

    head: str
    width: int
    value: Callable[[dict[str, Any]], str]
    least: int = 0
    left: bool = False


COLUMNS = (
    Column("SLOT", 4, lambda worker: str(worker["slot"]), least=110),
    Column("PID", 7, lambda worker: str(worker["pid"])),
    Column("STATE", 8, lambda worker: worker["state"] + ("!" if worker["long"] else ""), left=True),
    Column("FOR", 5, lambda worker: format_time(worker["for"])),
    Column("AGE", 5, lambda worker: format_time(worker["age"]), least=60),
    Column("GEN", 4, lambda worker: str(worker["generation"]), least=110),
    Column("REQS", 6, lambda worker: format_count(worker["requests"])),
    Column("CPU%", 4, lambda worker: format_share(worker["cpu"]), least=64),
    Column("OWN", 5, lambda worker: format_size(worker["own"]), least=70),
    Column("SHARED", 6, lambda worker: format_size(worker["shared"]), least=78),
)
"""The columns; the request comes last, and takes what is left."""


def format_text(data: dict[str, Any]) -> str:
    """Return a report as a table of any width: one line a worker."""
    return "\n".join(format_lines(data)) + "\n"


def format_lines(data: dict[str, Any], width: int = 0, height: int = 0, colour: bool = False) -> list[str]:
    """Return a report as lines of at most ``width`` characters, at most ``height`` of them; 0 for as it comes.

    Where there is no room for all workers, the busy ones are shown, longest first, and how many are not.
    """
    paint = _paint if colour else _leave
    lines = [paint(_cut(_format_head(data), width), _BOLD)]
    heads = [[_cut(line, width) for line in _format_pool(pool, width)] for pool in data["pools"]]
    counts = [len(pool["workers"]) for pool in data["pools"]]
    if height:
        heads = _shorten(heads, height - 1 - sum(counts), height * 2 // 3)
        counts = plan_rows(counts, height - 1 - sum(len(head) + 2 for head in heads))
    columns = [column for column in COLUMNS if not width or width >= column.least]
    for pool, head, count in zip(data["pools"], heads, counts, strict=True):
        workers = pool["workers"]
        lines += ["", paint(head[0], _BOLD), *head[1:]]
        if workers:
            lines.append(paint(_cut(_join([column.head for column in columns], columns) + " REQUEST", width), _DIM))
        if count < len(workers):
            workers = sorted(workers, key=_find_rank)[: max(0, count - 1)]
        for worker in workers:
            row = _join([column.value(worker) for column in columns], columns) + " " + make_plain(worker["request"])
            lines.append(
                paint(_cut(row.rstrip(), width), _RED if worker["long"] else _COLOURS.get(worker["state"], ""))
            )
        if len(workers) < len(pool["workers"]):
            lines.append(_cut(f"        and {len(pool['workers']) - len(workers)} more", width))
    return lines[:height] if height else lines


def _shorten(heads: list[list[str]], room: int, most: int) -> list[list[str]]:
    """Return heads of pools that leave the workers their ``room``, or are at most ``most`` lines, if that can be."""
    for kept in (9, 3, 2, 1):
        heads = [head[:kept] for head in heads]
        if sum(len(head) + 2 for head in heads) <= max(room, most):
            break
    return heads


def plan_rows(counts: Sequence[int], room: int) -> list[int]:
    """Return how many rows each pool gets of ``room``: none more than it needs, the small ones all they need."""
    given = [0] * len(counts)
    left = max(room, 0)
    for place, at in enumerate(sorted(range(len(counts)), key=lambda at: counts[at])):
        given[at] = min(counts[at], left // (len(counts) - place))
        left -= given[at]
    return given


def _find_rank(worker: dict[str, Any]) -> tuple[bool, int, float]:
    return not worker["long"], STATES.index(worker["state"]) if worker["state"] in STATES else 9, -worker["for"]


def _format_head(data: dict[str, Any]) -> str:
    workers = sum(len(pool["workers"]) for pool in data["pools"])
    busy = sum(pool["busy"] for pool in data["pools"])
    words = [f"gateways {data['pid']}, up {format_time(data['uptime'])}"]
    words.append(f"{_plural(len(data['pools']), 'pool')}, {_plural(workers, 'worker')}, {busy} busy")
    if data["reload_failed"]:
        words.append("the last reload failed")
    if data["stopping"]:
        words.append("stopping")
    return "; ".join(words)


def _format_pool(pool: dict[str, Any], width: int) -> list[str]:
    """Return the lines above a pool's workers."""
    states = ", ".join(f"{pool[state]} {state}" for state in STATES if pool[state] or state in ("busy", "idle"))
    queue = pool["queue"]
    waiting = (queue["length"] if queue else 0) + pool["waiting"]
    kept = f"{pool['manager']}, at most {pool['max_servers']}"
    parts = [
        f"pool {pool['name']}: {states}; {kept}; generation {pool['generation']}",
        f"{pool['rate']:g} requests/s",
        f"{format_count(pool['requests'])} requests",
        *([_format_quantiles(pool)] if pool["requests"] else []),
        f"4xx {pool['outcomes']['4xx']}, 5xx {pool['outcomes']['5xx']}, refused {pool['refused']}",
        f"{waiting} waiting" + (f" of {queue['limit']}" if queue else ""),
        *([f"turned away {pool['turned_away']}"] if pool["turned_away"] else []),
        *([f"slow {pool['slow']}"] if pool["slow"] else []),
        f"recycled {pool['recycled']}, killed {pool['killed']}, crashed {pool['crashed']}"
        + (f", failed to start {pool['boot_failures']}" if pool["boot_failures"] else ""),
        f"cpu {format_share(pool['cpu'])}%",
        *([_format_memory(pool["memory"])] if pool["memory"] else []),
    ]
    return _wrap([make_plain(part) for part in parts], width)


def _format_quantiles(pool: dict[str, Any]) -> str:
    return f"half within {format_bound(pool['p50'])}, 99% within {format_bound(pool['p99'])}"


def _format_memory(memory: dict[str, int]) -> str:
    sizes = {name: format_size(size) for name, size in memory.items()}
    return f"memory {sizes['together']} ({sizes['own']} own; {sizes['unshared']} if nothing were shared)"


def _wrap(parts: Sequence[str], width: int) -> list[str]:
    """Return parts on as few lines as they fit on, all but the first indented; the first part stands alone."""
    lines = [parts[0]]
    line = ""
    for part in parts[1:]:
        if line and len(line) + 2 + len(part) > (width or 118):
            lines.append(line)
            line = ""
        line = f"{line}; {part}" if line else f"  {part}"
    return [*lines, line]


def _join(texts: Sequence[str], columns: Sequence[Column]) -> str:
    cells = zip(texts, columns, strict=True)
    return " ".join(text.ljust(column.width) if column.left else text.rjust(column.width) for text, column in cells)


def _cut(line: str, width: int) -> str:
    return line if not width or len(line) <= width else line[: width - 1] + ">"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _paint(line: str, colour: str) -> str:
    return f"{colour}{line}{_END}" if colour else line


def _leave(line: str, _colour: str) -> str:
    return line
