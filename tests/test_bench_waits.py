"""What a record says of waits: who waited while a worker was idle, and for how long."""

from __future__ import annotations

import pytest

from bench.trials.waits import IdleTime, Run, find_idle_waits, parse_record

# Two workers: 1 is busy from 10 to 50, 2 from 20 to 30 and from 40 to 45.
RUNS = [Run(-1, 1, 10, 50), Run(7, 2, 20, 30), Run(8, 2, 40, 45)]


@pytest.mark.parametrize(
    ("moment", "idle"), [(0, 0), (10, 10), (20, 20), (25, 20), (30, 20), (40, 30), (45, 30), (60, 45)]
)
def test_time_counts_while_a_worker_is_idle(moment: int, idle: int) -> None:
    assert IdleTime(RUNS, 2).up_to(moment) == idle


def test_a_wait_is_split_by_whether_a_worker_was_idle() -> None:
    # 7 came at 5 and waited for nobody; 8 came at 22, and from 30 on a worker was idle.
    assert find_idle_waits({7: 5, 8: 22, 9: 1}, RUNS, 2) == [(15, 15), (18, 10)]


def test_lines_cut_short_are_left_out_of_a_record() -> None:
    assert parse_record("7 2 20 30\n8 2 40") == [Run(7, 2, 20, 30)]
