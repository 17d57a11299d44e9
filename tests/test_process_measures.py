"""What a worker counts of its requests, and what outlives it: measures, ledger, and a supervisor that keeps both."""

from __future__ import annotations

import signal
from math import inf

import pytest

import gateways.process.measures as measures_module
from gateways.process.children import Child, Verdict, explain_death
from gateways.process.ledger import HISTORY_TIME, REASONS, Ledger, Moment
from gateways.process.limits import PoolLimits
from gateways.process.measures import BOUNDS, OUTCOMES, Measures, MeasuringSlot, parse_measures
from gateways.process.pool import Generation, Pool
from gateways.process.scoreboard import LINE_WORDS, REQUESTS, SPENT, Scoreboard, State


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(measures_module, "monotonic", clock)
    return clock


def serve(board: Scoreboard, clock: Clock, *requests: tuple[float, str]) -> MeasuringSlot:
    """Serve requests that take so long and end so."""
    slot = board.slot(0, MeasuringSlot)
    assert isinstance(slot, MeasuringSlot)
    slot.set_up(True, 0, lambda: None)
    for took, status in requests:
        slot.begin("GET", "/")
        clock.now += took
        slot.count_request(status)
        slot.idle()
    return slot


def open_board() -> Scoreboard:
    board = Scoreboard(1)
    board.open_line(0, 1, 0.0)
    return board


QUICK = 1e-5
ROWS = [
    ("nothing", [], {}, {}),
    ("quick", [(QUICK, "200 OK")], {0: 1}, {"2xx": 1}),
    ("on the bound", [(0.0, "200 OK")], {0: 1}, {"2xx": 1}),
    ("slower", [(0.0003, "200 OK"), (0.75, "204 No Content")], {1: 1, 11: 1}, {"2xx": 2}),
    ("beyond", [(3600.0, "200 OK")], {len(BOUNDS): 1}, {"2xx": 1}),
    ("outcomes", [(QUICK, "304 Not Modified"), (QUICK, "404 Not Found"), (QUICK, "500 Internal Server Error"),
                  (QUICK, ""), (QUICK, "201 Created")],
     {0: 5}, {"2xx": 1, "3xx": 1, "4xx": 1, "5xx": 1, "none": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("requests", "durations", "outcomes"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_requests_are_counted_by_duration_and_outcome(
    clock: Clock, requests: list[tuple[float, str]], durations: dict[int, int], outcomes: dict[str, int]
) -> None:
    board = open_board()
    slot = serve(board, clock, *requests)
    found = parse_measures(*board.read_measures(0))
    assert found.requests == slot.requests == len(requests)
    assert dict(enumerate(found.durations)) == {**dict.fromkeys(range(len(BOUNDS) + 1), 0), **durations}
    assert dict(zip(OUTCOMES, found.outcomes, strict=True)) == {**dict.fromkeys(OUTCOMES, 0), **outcomes}


def test_the_time_of_a_quick_request_is_stored_with_the_next(clock: Clock) -> None:
    board = open_board()
    serve(board, clock, (QUICK, "200 OK"), (0.5, "200 OK"), (QUICK, "200 OK"))
    assert parse_measures(*board.read_measures(0)).seconds == pytest.approx(0.5 + QUICK)


def test_a_refusal_is_no_request(clock: Clock) -> None:
    board = open_board()
    slot = serve(board, clock)
    slot.count_refusal()
    found = parse_measures(*board.read_measures(0))
    assert (found.requests, found.refused) == (0, 1)


def test_a_busy_worker_says_since_when(clock: Clock) -> None:
    board = open_board()
    slot = serve(board, clock)
    clock.now = 2000.5
    slot.begin("GET", "/slow")
    assert board.read_line(0).since == 2000.5
    slot.idle()
    board.write_since(0, 2001.0)
    assert board.read_line(0).since == 2001.0


def test_a_measuring_worker_asks_for_its_successor(clock: Clock) -> None:
    board = open_board()
    slot = board.slot(0, MeasuringSlot)
    called: list[int] = []
    slot.set_up(True, 2, lambda: called.append(slot.requests))
    for _ in range(3):
        slot.begin("GET", "/")
        slot.count_request("200 OK")
    assert called == [2]
    assert board.read_progress(0).due


def test_P14_words_without_sense_count_as_nothing(clock: Clock) -> None:
    board = open_board()
    for word in (REQUESTS, *range(SPENT, LINE_WORDS)):
        board._words[word] = -1
    assert parse_measures(*board.read_measures(0)) == Measures()


def test_a_line_used_again_has_measured_nothing(clock: Clock) -> None:
    board = open_board()
    serve(board, clock, (5.0, "404 Not Found"))
    board.open_line(0, 2, 0.0)
    assert parse_measures(*board.read_measures(0)) == Measures()


@pytest.mark.parametrize(("fraction", "bound"), [(0.5, 0.0001), (0.9, 0.001), (0.99, inf)])
def test_quantiles_are_bounds_of_classes(fraction: float, bound: float) -> None:
    durations = [0] * (len(BOUNDS) + 1)
    durations[0], durations[2], durations[-1] = 60, 35, 5
    assert Measures(100, 1.0, 0, tuple(durations)).find_quantile(fraction) == bound
    assert Measures().find_quantile(fraction) is None


# Why workers end.

ENDS = [
    ("told", "spare", 0, 5, {}, "spare"), ("boot", "", 256, 0, {}, "boot"), ("crash", "", 9, 5, {}, "crash"),
    ("requests", "", 0, 95, {"max_requests_per_child": 100}, "requests"),
    ("application", "", 0, 50, {"max_requests_per_child": 100}, "application"),
    ("no limit", "", 0, 50, {}, "application"), ("fork", "", 0, 1, {"manager": "fork"}, "connection"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("why", "status", "requests", "limits", "reason"), [e[1:] for e in ENDS], ids=[e[0] for e in ENDS]
)
def test_why_a_worker_has_ended(why: str, status: int, requests: int, limits: dict[str, int], reason: str) -> None:
    pool = Pool("main", PoolLimits(**limits), [], lambda worker: None)
    child = Child(1, Generation(1, pool, 1), open_board(), 0, 0.0)
    child.told, child.why = (signal.SIGQUIT, why) if why else (0, "")
    child.state = State.IDLE
    assert explain_death(child, status, Verdict(False, False, reason == "boot"), requests) == reason
    assert reason in REASONS


def test_the_history_has_an_end_and_gives_a_rate() -> None:
    ledger = Ledger()
    assert ledger.find_rate() == 0.0
    for second in range(300):
        assert ledger.wants_moment(float(second))
        ledger.note_moment(Moment(float(second), second * 7, 1, 0))
        assert not ledger.wants_moment(second + 0.5)
    assert len(ledger.history) == HISTORY_TIME + 1
    assert ledger.find_rate() == 7.0
