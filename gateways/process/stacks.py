"""What a worker is doing for so long: its request, its age and the stack of every thread, for the log.

Everything here runs in the supervisor, which asks one worker at a time by a signal. The worker answers in C
(``faulthandler``), into memory that both hold, without noticing: also inside C code that never lets go of the
interpreter. One that takes no signal (stopped, or waiting for a dead disk) gives no answer, and the log says so.
"""

from __future__ import annotations

import os
import re
from collections import deque
from itertools import islice, takewhile
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from gateways.process.ledger import REQUEST_TIMEOUT
from gateways.process.limits import PoolLimits
from gateways.process.scoreboard import State
from gateways.process.signals import STACK_SIGNAL

if TYPE_CHECKING:
    from gateways.core.interfaces import Log
    from gateways.process.apologies import Apologies
    from gateways.process.children import Child

ANSWER_TIME = 0.25
"""Seconds that a worker has to write its stacks."""
PAUSE = 0.01
"""Seconds between two looks for the answer: mostly it is there at once, and many workers may have to be asked."""
ANSWER_BYTES = 64 << 10
MAX_FRAMES = 40
MAX_THREADS = 20
FIRST_CALL = "run_worker"
"""Where a worker's life begins; the calls below are the supervisor's, from before the fork."""
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


class Case(NamedTuple):
    """One worker to be asked: during which request, and whether it is killed afterwards."""

    child: Child
    requests: int
    kill: bool

    @property
    def open(self) -> bool:
        """True while the worker lives and is still at this request."""
        return self.child.state is State.BUSY and self.child.requests == self.requests


class Question(NamedTuple):
    """What was asked: about which case, what the worker was running, since when, and how long its answer may take."""

    case: Case
    request: str
    since: float
    limit: float


class Interrogator:
    """Asks workers for their stacks, one at a time. ``fd``: the memory that they write to.

    ``apologies``: what answers for those that are killed. ``slow_log``: where the answers are written; a death is
    written to ``log``.
    """

    def __init__(self, log: Log, slow_log: Log, apologies: Apologies) -> None:
        self.fd = os.memfd_create("stacks", os.MFD_CLOEXEC)
        self._log = log
        self._slow_log = slow_log
        self._apologies = apologies
        self._cases: deque[Case] = deque()
        self._question: Question | None = None
        self._size = 0
        self.deadline = inf

    def watch(self, child: Child, limits: PoolLimits, now: float) -> bool:
        """Open a case when ``child`` has spent SlowRequestTimeout, or RequestTimeout, on its request.

        Return whether it has newly become slow.
        """
        if child.state is not State.BUSY or child.told:
            return False
        age = now - child.since
        if limits.request_timeout and age >= limits.request_timeout and child.asked < 2:
            child.asked = 2
            # Before those that are only slow: many may be stuck at a time, and a limit is to be kept to.
            self._cases.insert(sum(case.kill for case in self._cases), Case(child, child.requests, True))
        elif limits.slow_timeout and age >= limits.slow_timeout and child.asked < 1:
            child.asked = 1
            self._cases.append(Case(child, child.requests, False))
            return True
        return False

    def plan(self, child: Child, limits: PoolLimits) -> float:
        """Return when ``watch`` is next to look at ``child`` (monotonic seconds)."""
        if child.state is not State.BUSY or child.told:
            return inf
        times = (limits.slow_timeout if child.asked < 1 else 0, limits.request_timeout if child.asked < 2 else 0)
        return min((child.since + time for time in times if time), default=inf)

    def look(self, now: float) -> None:
        """Close the case whose answer is there or whose time is over, and open the next."""
        if self._question is not None and now >= self.deadline:
            text = os.pread(self.fd, ANSWER_BYTES, 0).decode("ascii", "replace")
            if now >= self._question.limit or (len(text) == self._size and is_whole(text)):
                question, self._question = self._question, None
                self.deadline = inf
                self._close(question, text, now)
            else:
                self._size = len(text)
                self.deadline = min(now + PAUSE, self._question.limit)
        while self._question is None and self._cases:
            case = self._cases.popleft()
            if case.open:
                self._ask(case, now)

    def _ask(self, case: Case, now: float) -> None:
        os.ftruncate(self.fd, 0)
        os.lseek(self.fd, 0, os.SEEK_SET)
        child = case.child
        request = child.board.read_line(child.index).request or "a request"
        os.kill(child.pid, STACK_SIGNAL)
        self._question = Question(case, request, child.since, now + ANSWER_TIME)
        self._size = 0
        self.deadline = now + PAUSE

    def _close(self, question: Question, text: str, now: float) -> None:
        case, request, since, _ = question
        child = case.child
        if child.state is State.DEAD:
            return
        # The question itself ends some calls, and a request may end meanwhile by itself: it was slow all the same.
        self._slow_log.warning(
            "worker %d (pool %s) is slow: %s for %.1f s%s",
            child.pid, child.generation.pool.name, request, now - since, "" if case.open else ", and has just ended",
        )  # fmt: skip
        for line in format_stacks(text):
            self._slow_log.warning("worker %d, %s", child.pid, line)
        if case.kill and case.open:
            self._log.error(
                "worker %d is killed: %s has taken longer than RequestTimeout (%g s)",
                child.pid, request, child.generation.pool.limits.request_timeout,
            )  # fmt: skip
            self._apologies.hold(child)
            child.kill(REQUEST_TIMEOUT)

    def close(self) -> None:
        """Close what was opened here."""
        os.close(self.fd)


def is_whole(text: str) -> bool:
    """Return True when a dump has come to where every worker's life begins: in its first thread, which is its last."""
    return f" in {FIRST_CALL}\n" in text


def format_stacks(text: str) -> list[str]:
    """Return a line for each thread of a dump of ``faulthandler``, the newest call first.

    A worker may have written anything: what does not look like a frame is left out, and of too much only the start
    stays.
    """
    lines: list[str] = []
    for block in re.split(r"\n\n+", text)[:MAX_THREADS]:
        found = takewhile(lambda frame: frame[2] != FIRST_CALL, _FRAME.findall(block))
        frames = [f"{name} ({file}:{line})" for file, line, name in islice(found, MAX_FRAMES)]
        if frames:
            lines.append(f"thread {len(lines) + 1}, newest call first: {', '.join(frames)}")
    return lines or ["no stack could be had: it does not answer signals"]
