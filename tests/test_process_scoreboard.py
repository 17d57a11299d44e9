"""The scoreboard: what workers store, what readers believe (P14)."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from gateways.process.diagram import STEPS, format_diagram
from gateways.process.scoreboard import (
    CLOSING,
    NOTE_BYTES,
    NOTE_LENGTH,
    REQUESTS,
    SEEN_AFTER,
    STATE,
    TRANSITIONS,
    Scoreboard,
    State,
)
from gateways.process.supervisor import ACTIONS, NO_MEANING


def test_a_line_says_who_does_what_since_when() -> None:
    board = Scoreboard(3)
    board.open_line(1, generation=7, now=12.5)
    board.write_pid(1, 4711)
    slot = board.slot(1)
    slot.idle()
    slot.count_request()
    slot.count_request()
    (line,) = board.read()
    assert line[:7] == (1, 4711, State.IDLE, 7, 2, 12.5, "")
    assert slot.requests == 2


def test_states_as_the_worker_says_them() -> None:
    board = Scoreboard(1)
    slot = board.slot(0)
    seen = [board.read_progress(0).state]
    board.open_line(0, 1, 0.0)
    seen.append(board.read_progress(0).state)
    for say in (slot.idle, slot.busy, slot.idle, slot.busy, slot.closing):
        say()
        seen.append(board.read_progress(0).state)
    board.close_line(0)
    seen.append(board.read_progress(0).state)
    S = State
    assert seen == [S.DEAD, S.STARTING, S.IDLE, S.BUSY, S.IDLE, S.BUSY, S.CLOSING, S.DEAD]
    assert all(after in TRANSITIONS[before] for before, after in pairwise(seen))


def test_a_closing_worker_stays_closing_while_it_answers_kept_connections() -> None:
    board = Scoreboard(1)
    board.open_line(0, 1, 0.0)
    slot = board.slot(0)
    slot.idle()
    slot.closing()
    slot.busy()
    assert board.read_progress(0).state is State.CLOSING
    slot.idle()
    assert board.read_progress(0).state is State.CLOSING


def test_a_line_used_again_remembers_nothing() -> None:
    board = Scoreboard(1)
    board.open_line(0, 1, 1.0)
    slot = board.slot(0)
    slot.idle()
    slot.count_request()
    slot.closing()
    slot.note("tired")
    board.close_line(0)
    assert board.read() == []
    board.open_line(0, 2, 3.0)
    assert board.read_line(0) == (0, 0, State.STARTING, 2, 0, 3.0, "", "", 3.0)


def test_what_a_reader_may_see_next_follows_from_the_legal_steps() -> None:
    for state in State:
        if state is State.DEAD:
            continue
        reachable, fringe = {state}, {state}
        while fringe:
            fringe = {after for before in fringe for after in TRANSITIONS[before]} - reachable - {State.DEAD}
            reachable |= fringe
        assert SEEN_AFTER[state] == reachable


def test_lines_do_not_touch_each_other() -> None:
    board = Scoreboard(3)
    for index in range(3):
        board.open_line(index, index + 1, 0.0)
        board.slot(index).note(f"note {index}" + "x" * 500)
    assert [line.note[:6] for line in board.read()] == ["note 0", "note 1", "note 2"]
    assert {len(line.note) for line in board.read()} == {NOTE_BYTES}


@pytest.mark.parametrize("index", [-1, 2, 1 << 40])
def test_p14_there_is_no_line_outside_the_board(index: int) -> None:
    board = Scoreboard(2)
    for call in (board.slot, board.close_line, board.read_line, board.read_progress):
        with pytest.raises(IndexError, match="no line"):
            call(index)


CORRUPT = [
    ("P14 a state that is none", STATE, 99, "state", State.DEAD),
    ("P14 a negative state", STATE, -1, "state", State.DEAD),
    ("P14 closing as a state word", STATE, 4, "state", State.DEAD),
    ("P14 a flag of any value", CLOSING, -(1 << 63), "state", State.CLOSING),
    ("P14 negative requests", REQUESTS, -5, "requests", 0),
    ("P14 a negative length", NOTE_LENGTH, -5, "note", ""),
    ("P14 an enormous length", NOTE_LENGTH, 1 << 60, "note", "?" * NOTE_BYTES),
]


@pytest.mark.parametrize(
    ("word", "value", "field", "read"), [row[1:] for row in CORRUPT], ids=[row[0] for row in CORRUPT]
)
def test_shared_values_are_forced_into_their_range(word: int, value: int, field: str, read: object) -> None:
    board = Scoreboard(1)
    board.open_line(0, 1, 0.0)
    board._words[word] = value
    assert getattr(board.read_line(0), field) == read


def test_a_note_cannot_write_a_second_log_line() -> None:
    board = Scoreboard(1)
    board.open_line(0, 1, 0.0)
    board.slot(0).note("first\nERROR second\x1b[2J\xff")
    assert board.read_line(0).note == "first?ERROR second?[2J\xff"


def test_a_child_writes_and_its_parent_reads() -> None:
    board = Scoreboard(1)
    board.open_line(0, 1, 0.0)
    pid = os.fork()
    if pid == 0:
        board.slot(0).busy()
        board.slot(0).count_request()
        os._exit(0)
    os.waitpid(pid, 0)
    assert board.read_line(0)[2:5] == (State.BUSY, 1, 1)


def test_a_board_has_a_line() -> None:
    with pytest.raises(ValueError, match="at least one line"):
        Scoreboard(0)


def test_the_documented_diagram_is_the_table_of_steps() -> None:
    assert set(STEPS) == {(before, after) for before, following in TRANSITIONS.items() for after in following}
    page = (Path(__file__).parent.parent / "docs" / "process-model.md").read_text()
    assert page.partition("```mermaid\n")[2].partition("```")[0] == format_diagram()


def test_the_documented_signals_are_those_that_are_obeyed() -> None:
    page = (Path(__file__).parent.parent / "docs" / "process-model.md").read_text()
    table = page.partition("| signal | meaning |\n|---|---|\n")[2].partition("\n\n")[0]
    named = {f"SIG{name.strip()}" for row in table.splitlines() for name in row.split("|")[1].split(",")}
    assert named == {signal.Signals(number).name for number in (*ACTIONS, *NO_MEANING)}
