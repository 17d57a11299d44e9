"""What a death means and how it is told."""

from __future__ import annotations

import signal

import pytest

from gateways.process.backoff import Backoff
from gateways.process.children import Child, Death, Verdict, format_death, format_status, judge_death
from gateways.process.limits import PoolLimits
from gateways.process.pool import Generation, Pool
from gateways.process.scoreboard import Scoreboard, State


def exited(code: int) -> int:
    return code << 8


KILLED, ENDED, BROKEN = int(signal.SIGKILL), int(signal.SIGTERM), int(signal.SIGSEGV)
FINE = Verdict(False, False, False)
QUIT, TERM = int(signal.SIGQUIT), int(signal.SIGTERM)

DEATHS = [
    # id, told, state, wait status, age, requests -> verdict(loud, failed, boot)
    ("told to stop, stopped", TERM, State.CLOSING, exited(0), 9.0, 5, FINE),
    ("told to retire, retired", QUIT, State.CLOSING, exited(0), 0.2, 0, FINE),
    ("told to stop while starting", TERM, State.STARTING, ENDED, 0.1, 0, FINE),
    ("killed by us, overdue", KILLED, State.BUSY, KILLED, 90.0, 5, FINE),
    ("told to stop, crashed instead", TERM, State.BUSY, BROKEN, 9.0, 5, Verdict(True, False, False)),
    ("told to stop, failed instead", TERM, State.BUSY, exited(1), 9.0, 5, Verdict(True, False, False)),
    ("served its requests and left", 0, State.CLOSING, exited(0), 60.0, 50, FINE),
    ("P06 served its requests in no time and left", 0, State.CLOSING, exited(0), 0.01, 1, FINE),
    ("left by itself before the first request, by a signal from outside", 0, State.CLOSING, exited(0), 9.0, 0, FINE),
    ("P04 never ready: an exception", 0, State.STARTING, exited(1), 0.1, 0, Verdict(True, True, True)),
    ("P04 never ready: no error at all", 0, State.STARTING, exited(0), 0.1, 0, Verdict(True, True, True)),
    ("P04 never ready: killed after a minute", 0, State.STARTING, KILLED, 60.0, 0, Verdict(True, True, True)),
    ("P03 killed in a request", 0, State.BUSY, KILLED, 60.0, 9, Verdict(True, False, False)),
    ("P04 killed in a request, at once", 0, State.BUSY, KILLED, 0.5, 0, Verdict(True, True, False)),
    ("P04 killed in its second request, at once", 0, State.BUSY, KILLED, 0.5, 1, Verdict(True, True, False)),
    ("P03 os._exit in a request", 0, State.BUSY, exited(3), 60.0, 9, Verdict(True, False, False)),
    ("ready, and gone at once without a reason", 0, State.IDLE, exited(0), 0.1, 0, Verdict(False, True, False)),
]


@pytest.mark.parametrize(
    ("told", "state", "status", "age", "requests", "verdict"), [row[1:] for row in DEATHS], ids=[r[0] for r in DEATHS]
)
def test_what_a_death_means(told: int, state: State, status: int, age: float, requests: int, verdict: Verdict) -> None:
    assert judge_death(told, state, status, age, requests) == verdict


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (exited(0), "exited with status 0"),
        (exited(3), "exited with status 3"),
        (KILLED, "was killed by SIGKILL"),
        (BROKEN | 0x80, "was killed by SIGSEGV (core dumped)"),
        (40, f"was killed by {signal.Signals(40).name}" if 40 in set(signal.Signals) else "was killed by signal 40"),
    ],
)
def test_a_wait_status_in_words(status: int, words: str) -> None:
    assert format_status(status) == words


def make_child(board: Scoreboard) -> Child:
    board.open_line(0, 3, 10.0)
    return Child(4711, Generation(3, Pool("app", PoolLimits(), [], lambda worker: None), 5), board, 0, 10.0)


def test_a_death_is_one_line_that_says_who_how_and_doing_what() -> None:
    board = Scoreboard(1)
    child = make_child(board)
    slot = board.slot(0)
    slot.idle()
    slot.count_request()
    slot.set_up(True, 0, lambda: None)
    slot.begin("GET", "/slow?x=1")
    child.observe(11.0)
    assert format_death(child, Death(4711, KILLED, 30 * 1024), board.read_line(0), 22.34) == (
        "worker 4711 (pool app, generation 3, slot 0) was killed by SIGKILL while busy with GET /slow?x=1"
        " after 1 request and 12.3 s, peak 30 MiB"
    )


def test_a_death_tells_the_workers_last_words() -> None:
    board = Scoreboard(1)
    child = make_child(board)
    board.slot(0).note("ImportError: no\nsuch module")
    line = format_death(child, Death(4711, exited(1), 0), board.read_line(0), 10.0)
    assert line.endswith("while starting after 0 requests and 0.0 s, peak 0 MiB: ImportError: no?such module")


def test_p14_a_state_that_cannot_follow_is_not_believed() -> None:
    board = Scoreboard(1)
    child = make_child(board)
    board.slot(0).idle()
    assert child.observe(11.0) is State.IDLE
    board.open_line(0, 3, 10.0)  # back to starting: no worker does that
    assert child.observe(11.0) is State.IDLE
    board.close_line(0)  # nor does a dead one live
    assert child.observe(11.0) is State.IDLE


def test_a_generation_is_hopeless_after_five_failed_starts_unless_it_has_served() -> None:
    generation = make_child(Scoreboard(1)).generation
    for _ in range(5):
        assert not generation.hopeless
        generation.fail("worker 1 exited with status 1", True, 0.0)
    assert generation.hopeless
    assert generation.despair() == (
        "no worker of pool app could start, 5 in a row died before they were ready;"
        " the last: worker 1 exited with status 1"
    )
    generation.proven = True
    assert not generation.hopeless
    assert isinstance(generation.backoff, Backoff)
    assert generation.backoff.failures == 5
