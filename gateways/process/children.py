"""The children as the supervisor sees them: forked, told, collected, and described for the log.

Everything here runs in the supervisor, but for the one call after the fork that never returns. The only wait for any
child is here.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from math import inf
from typing import NamedTuple

from gateways.process.ledger import APPLICATION, BOOT, CONNECTION, CRASH, REQUESTS
from gateways.process.pool import Generation, Pool
from gateways.process.scoreboard import SEEN_AFTER, Scoreboard, SlotReading, State
from gateways.process.signals import signals_blocked
from gateways.process.worker import Worker, run_worker

QUICK = 1.0
"""A worker that dies less than this many seconds after it was ready, and not by its own good will, has failed."""
PAGE = os.sysconf("SC_PAGE_SIZE")


class Child:
    """One child: its pid, in the supervisor's own memory, and what it was told.

    ``told``: 0 nothing, or the last signal that it was sent. ``kill_at``: when its time is over (monotonic seconds).
    ``ready_at``: when it was first seen ready, or infinite. ``settled``: it has lived long enough since then to say
    that its generation works. ``since``: when it was first seen in this state, with ``requests`` served. ``asked``: how
    often its stack was asked for during this request. ``due``: why it is to be replaced, a row of ``ledger.REASONS``,
    and ``because``, what there is to add; ``why``: the row once it was told to go; ``""`` for none. ``successor``: who
    was started to take its place.
    """

    __slots__ = (
        "asked",
        "because",
        "board",
        "born",
        "due",
        "generation",
        "index",
        "kill_at",
        "pid",
        "ready_at",
        "requests",
        "settled",
        "since",
        "state",
        "successor",
        "told",
        "why",
    )

    def __init__(self, pid: int, generation: Generation, board: Scoreboard, index: int, born: float) -> None:
        self.pid = pid
        self.generation = generation
        self.board = board
        self.index = index
        self.born = born
        self.state = State.STARTING
        self.told = 0
        self.kill_at = inf
        self.ready_at = inf
        self.settled = False
        self.requests = 0
        self.since = born
        self.due = ""
        self.because = ""
        self.asked = 0
        self.successor: Child | None = None
        self.why = ""

    @property
    def leaving(self) -> bool:
        """True when it serves no new connection: told to go, or going by itself."""
        return self.told != 0 or self.state is State.CLOSING

    def observe(self, now: float) -> State:
        """Return its state after a look at the scoreboard; a value that cannot follow the last one is not believed."""
        seen, requests, due = self.board.read_progress(self.index)
        if seen not in SEEN_AFTER[self.state]:
            return self.state
        if self.ready_at == inf and seen is not State.STARTING:
            self.ready_at = now
        if seen is not self.state or requests != self.requests:
            self.state = seen
            self.requests = requests
            self.since = now
            self.asked = 0
            self.board.write_since(self.index, now)
        if due and not self.due:
            self.due = REQUESTS
        return seen

    def excuse(self, lost: float) -> None:
        """Take ``lost`` seconds, in which nobody could look, out of what it has been seen to spend."""
        self.since += lost
        self.ready_at += lost
        self.kill_at += lost

    def retire(self, now: float, why: str) -> None:
        """Tell it to leave once its connections are done; a child that is still starting just ends."""
        self._tell(signal.SIGTERM if self.observe(now) is State.STARTING else signal.SIGQUIT, now, why)

    def stop(self, now: float, why: str) -> None:
        """Tell it to leave after its current request."""
        self._tell(signal.SIGTERM, now, why)

    def kill(self, why: str) -> None:
        """End it now."""
        self._tell(signal.SIGKILL, inf, why)
        self.kill_at = inf

    def _tell(self, number: signal.Signals, now: float, why: str) -> None:
        self.told = number
        self.why = why
        self.kill_at = min(self.kill_at, now + self.generation.pool.limits.graceful_timeout)
        # Its pid is ours to signal until it is reaped, and reap_children is the only place that does.
        os.kill(self.pid, number)


def spawn_child(
    generation: Generation,
    board: Scoreboard,
    index: int,
    now: float,
    make: Callable[[], Worker],
    give_up: Callable[[], None],
    pool: Pool | None = None,
) -> Child:
    """Fork one worker on line ``index``; return what the supervisor knows of it. ``OSError`` if it cannot be forked.

    In the child ``give_up()`` closes what is the supervisor's, and ``make()`` makes the worker that it is. ``pool``:
    what it runs, where that is not its generation's.
    """
    board.open_line(index, generation.number, now)
    try:
        with signals_blocked():
            pid = os.fork()
            if pid == 0:
                run_worker(make, pool or generation.pool, give_up)
    except OSError:
        board.close_line(index)
        raise
    board.write_pid(index, pid)
    return Child(pid, generation, board, index, now)


def adopt_child(generation: Generation, board: Scoreboard, index: int, now: float, spawn: Callable[[], int]) -> Child:
    """Have a worker forked on line ``index`` by the generation's nursery; return what the supervisor knows of it.

    ``spawn()`` returns its pid; it is, or is about to become, a child of ours. Raise ``OSError``.
    """
    board.open_line(index, generation.number, now)
    try:
        pid = spawn()
    except OSError:
        board.close_line(index)
        raise
    board.write_pid(index, pid)
    return Child(pid, generation, board, index, now)


class Death(NamedTuple):
    """A child that was collected: its wait status and its largest resident size in KiB.

    ``shared``: it has waited for children of its own, and ``peak`` may be one of theirs (getrusage(2)). ``cpu``:
    seconds of processor time, with that of children it has waited for.
    """

    pid: int
    status: int
    peak: int
    shared: bool = False
    cpu: float = 0.0


def reap_children() -> Iterator[Death]:
    """Collect every child that has ended, without waiting for one; also children that nobody here has started."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None:
            return
        shared = has_waited(found.si_pid)
        pid, status, usage = os.wait4(found.si_pid, 0)
        yield Death(pid, status, usage.ru_maxrss, shared, usage.ru_utime + usage.ru_stime)


def has_waited(pid: int) -> bool:
    """Return True when a process, dead but not collected, has waited for children of its own (proc_pid_stat(5))."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            return file.read(4096).rpartition(b")")[2].split()[8] != b"0"
    except (OSError, IndexError):
        return False


class Verdict(NamedTuple):
    """What a death means. ``loud``: an error in the log; ``failed``: the next start waits; ``boot``: never ready."""

    loud: bool
    failed: bool
    boot: bool


def judge_death(told: int, state: State, status: int, age: float, requests: int) -> Verdict:
    """Return what a child's death means, from what it was told and did; pure.

    ``status`` is its wait status, ``age`` is in seconds since it was ready.
    """
    code = os.waitstatus_to_exitcode(status)
    if told:
        return Verdict(code not in (0, -signal.SIGTERM, -signal.SIGKILL), False, False)
    if state is State.STARTING:
        return Verdict(True, True, True)
    if code == 0 and (requests or state is State.CLOSING):
        return Verdict(False, False, False)
    # Requests are no excuse for a crash: an application that crashes in every other one is started again and again.
    return Verdict(code != 0, age < QUICK and (code != 0 or not requests), False)


def explain_death(child: Child, status: int, verdict: Verdict, requests: int) -> str:
    """Return the row of ``ledger.REASONS`` that a child's death belongs to; pure."""
    if child.told:
        return child.why
    if verdict.boot:
        return BOOT
    if os.waitstatus_to_exitcode(status) != 0:
        return CRASH
    limits = child.generation.pool.limits
    if limits.manager == "fork":
        return CONNECTION
    least = limits.plan_max_requests(1 - 1e-9)
    return REQUESTS if least and requests >= least else APPLICATION


def format_status(status: int) -> str:
    """Return a wait status in words."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}" + (" (core dumped)" if os.WCOREDUMP(status) else "")


def format_death(child: Child, death: Death, line: SlotReading, now: float) -> str:
    """Return the log line of a death: who, how, while doing what, after how many requests."""
    requests = "1 request" if line.requests == 1 else f"{line.requests} requests"
    doing = child.state.name.lower() + (f" with {line.request}" if child.state is State.BUSY and line.request else "")
    return (
        f"worker {child.pid} (pool {child.generation.pool.name}, generation {child.generation.number},"
        f" slot {child.index}) {format_status(death.status)} while {doing}"
        f" after {requests} and {now - child.born:.1f} s, peak {death.peak // 1024} MiB"
        + (" (of it or a child)" if death.shared else "")
        + (f": {line.note}" if line.note else "")
    )


def read_resident(pid: int) -> int:
    """Return the resident bytes of a process, 0 when it is gone (proc_pid_statm(5))."""
    try:
        with open(f"/proc/{pid}/statm", "rb", buffering=0) as file:
            return int(file.read(200).split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0
