"""From what was seen of a rung to causes and a verdict. Pure: reads records, and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from gateways.audit.expect import Difference
from gateways.audit.growth import measure_growth
from gateways.audit.job import Record, Run
from gateways.audit.kinds import KINDS, OWN_KINDS, Rule

MEMORY_BUDGET = 64 << 20
"""Bytes that a worker may grow by before it is replaced."""
MOST_REQUESTS, LEAST_REQUESTS = 1000, 10
NOT_SET = "(not set)"
_COUNTED = frozenset({"exit function", "thread", "child process"})
_NUMBERS = re.compile(r"[0-9]+")


@dataclass(slots=True)
class Cause:
    """Something that one rung's requests left behind, or did.

    ``fault``: False for what is only worth a note (a cache that has been filled). ``request``, ``previous``: where it
    was first seen. ``recycles``: MaxRequestsPerChild is remedy enough. ``differences``: answers that it may explain.
    """

    kind: str
    name: str
    fault: bool
    request: int = -1
    before: str = ""
    after: str = ""
    times: int = 0
    recycles: bool = False
    differences: list[Difference] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        """What it is, whichever rung it was seen in."""
        return self.kind, self.name


class Standing(Enum):
    """How safe a rung is."""

    YARDSTICK = "yardstick"
    SAFE = "safe"
    SETTING = "safe with a setting"
    UNSAFE = "unsafe"
    UNTRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``settings``: directives with which the rung is safe. ``reason``: one sentence, for what was not tried."""

    rung: str
    standing: Standing
    settings: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    causes: tuple[Cause, ...] = ()


def judge_state(run: Run, rounds: int, requests: int) -> list[Cause]:
    """Return the causes that changes of state are; ``rounds`` times ``requests`` records were asked for."""
    seen: dict[tuple[str, str], list[tuple[Record, str, str, int]]] = {}
    for record in run.records:
        for kind, name, before, after, growth in record.changes:
            key = (kind, _generalise(kind, name, before, after))
            seen.setdefault(key, []).append((record, before, after, growth))
    last = (rounds - 1) * requests
    causes = [_judge_changes(kind, name, changes, last) for (kind, name), changes in seen.items()]
    causes = [cause for cause in causes if cause.fault or cause.kind != "loaded modules"]  # imported when first needed
    order = list(KINDS)
    return sorted(causes, key=lambda cause: (order.index(cause.kind), cause.name))


def _generalise(kind: str, name: str, before: str, after: str) -> str:
    """Return a name under which the same thing is known when it happens again."""
    if kind == "descriptor":
        text = after or before
        return "a pipe" if text.startswith("pipe:") else "a socket" if text.startswith("socket:") else text
    if kind == "loaded modules" and not (before and after):
        return _NUMBERS.sub("N", name)
    return name


def _judge_changes(kind: str, name: str, changes: Sequence[tuple[Record, str, str, int]], last: int) -> Cause:
    row = KINDS[kind]
    late = [change for change in changes if change[0].place >= last]
    grown = sum(growth for *_, growth in late)
    if kind == "descriptor":
        fault = count_opened(late) > 0
        if count_opened(changes) < 0:
            return Cause("closed descriptor", "", True, changes[0][0].request, times=len(changes))
    elif kind in _COUNTED:
        fault = any(_count(after) > _count(before) for _, before, after, _ in late)
    elif kind == "loaded modules":
        fault = bool(late)
    else:
        fault = row.rule is Rule.EACH or bool(late)
    record, before, after, _ = changes[0]
    recycles = row.recycles or (kind in OWN_KINDS and grown > 0)
    return Cause(kind, name, fault, record.request, before, after, len(changes), recycles)


def count_opened(changes: Sequence[tuple[Record, str, str, int]]) -> int:
    """Return how many more descriptors were opened than closed."""
    return sum((not before) - (not after) for _, before, after, _ in changes)


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 0


def judge_ends(run: Run) -> list[Cause]:
    """Return a cause for each request that ended its process, or did not end."""
    found: dict[tuple[str, int], Cause] = {}
    for record in run.records:
        if record.died:
            kind = "no end" if record.died == "no end" else "end of the process"
            cause = found.setdefault((kind, record.request), Cause(kind, "", True, record.request, after=record.died))
            cause.times += 1
            cause.before = cause.before or record.log
    return list(found.values())


def judge_files(run: Run, yardstick: Run, rounds: int, requests: int) -> list[Cause]:
    """Return the cause that temporary files are, when more of them stay than after new processes."""
    grown, usual = _count_files(run, rounds, requests), _count_files(yardstick, 2, requests)
    if grown <= usual:
        return []
    request = next((record.request for record in run.records if record.files), -1)
    # A worker that ends removes them, a forked child of it does not.
    removed = not run.rung.forks
    return [Cause("temporary file", "", True, request, after=f"{grown} more in a round", times=grown, recycles=removed)]


def _count_files(run: Run, rounds: int, requests: int) -> int:
    """Return how many files the last round added."""
    before = [record.files for record in run.records if record.place < (rounds - 1) * requests]
    return run.records[-1].files - (before[-1] if before else 0) if run.records else 0


def judge_memory(run: Run) -> list[Cause]:
    """Return the cause that growing memory is: it grew by as much again when as many requests had been run again."""
    size = measure_growth(run.memory)
    if not size:
        return []
    after = f"{size / 1024:.1f} KiB a request"
    return [Cause("memory", after, True, -1, after=str(int(size)), recycles=True)]


def judge_names(
    run: Run, fresh: dict[int, list[dict[str, str]]], is_read: dict[str, bool] | None = None
) -> list[Cause]:
    """Return the globals of a script that hold an earlier run's value at the end of a run.

    ``fresh``: request -> the globals after runs in new namespaces. ``is_read``: names that are known to be read, or
    not, where the same run has not set them; what is not read is worth a note only.
    """
    found: dict[str, Cause] = {}
    for record in run.records:
        known = fresh.get(record.request)
        if not known or record.error:
            continue
        for name, text in record.names.items():
            values = {names.get(name) for names in known}
            if values == {None}:
                fault = (is_read or {}).get(name, True)
            elif len(values) > 1 or text in values:
                continue
            else:
                fault = True
            before = next(iter(values)) or NOT_SET
            cause = found.setdefault(name, Cause("leftover", name, fault, record.request, before, text))
            cause.fault |= fault
            cause.times += 1
    return [found[name] for name in sorted(found)]


def assign_differences(causes: list[Cause], differences: Sequence[Difference]) -> list[Cause]:
    """Return causes, each with the answers that it may explain; what nothing explains is a cause of its own.

    What the application itself keeps comes first; what only was worth a note is a fault once answers differ.
    """
    if not differences:
        return causes
    likely = [cause for cause in causes if cause.kind in OWN_KINDS and cause.fault]
    likely = likely or [cause for cause in causes if cause.kind in OWN_KINDS]
    likely = likely or [cause for cause in causes if cause.fault]
    for cause in likely:
        cause.fault = True
        cause.recycles = False
        cause.differences = list(differences)
    if likely:
        return causes
    alone: dict[int, Cause] = {}
    for difference in differences:
        cause = alone.setdefault(difference.request, Cause("answer", "", True, difference.request))
        cause.differences.append(difference)
        cause.times += 1
    return [*causes, *alone.values()]


def decide(run: Run, causes: Sequence[Cause], settings: Sequence[tuple[str, str]] = ()) -> Verdict:
    """Return the verdict on a rung. ``settings``: those it was tried with, where it is not safe without."""
    name = run.rung.name
    faults = tuple(cause for cause in causes if cause.fault)
    if run.failed:
        return Verdict(name, Standing.UNTRIED, reason=run.failed)
    if not faults:
        standing = Standing.SETTING if settings else Standing.SAFE
        return Verdict(name, standing, tuple(settings), causes=tuple(causes))
    if all(cause.recycles for cause in faults):
        limit = min(plan_requests(cause) for cause in faults)
        wanted = (*settings, ("MaxRequestsPerChild", str(limit)))
        return Verdict(name, Standing.SETTING, wanted, causes=tuple(causes))
    return Verdict(name, Standing.UNSAFE, causes=tuple(causes))


def plan_requests(cause: Cause) -> int:
    """Return after how many requests a worker should be replaced for something that grows."""
    if cause.kind == "memory":
        most = MEMORY_BUDGET // max(int(cause.after), 1)
        return max(LEAST_REQUESTS, min(MOST_REQUESTS, most // 10 * 10))
    return 300 if cause.kind == "descriptor" else MOST_REQUESTS
