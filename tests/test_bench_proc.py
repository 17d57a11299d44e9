"""The accounts of processes: lines of /proc as kept text, and real children whose use is known."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench import proc

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"
STAT = "{pid} ({name}) S 7 7 7 0 -1 4194304 100 0 0 0 {utime} {stime} {cutime} {cstime} 20 0 1 0 100 1000 100"


@contextmanager
def child(program: str) -> Iterator[subprocess.Popen[str]]:
    """A Python child that runs ``program``, then says so and waits until its input ends."""
    code = program + "\nprint('ready', flush=True)\nimport sys\nsys.stdin.read()\n"
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


@pytest.mark.parametrize("name", ["python", "a b", "x) R 1 (y", "((", "))"])
def test_a_name_cannot_disturb_the_line(name: str) -> None:
    text = STAT.format(pid=42, name=name, utime=150, stime=50, cutime=30, cstime=20)
    process = proc.parse_stat(text)
    assert (process.pid, process.parent, process.state) == (42, 7, "S")
    assert process.own == pytest.approx(200 * proc.TICK)
    assert process.ended_children == pytest.approx(50 * proc.TICK)


@pytest.mark.parametrize("text", ["", "42", "42 (x)", "42 (x) S 1 2", "no brackets at all"])
def test_a_malformed_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a line"):
        proc.parse_stat(text)


@pytest.mark.parametrize(
    ("text", "ticks"),
    [("cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 1", 80), ("cpu  1 2 3 4", 0), ("intr 1 2 3 4 5 6 7 8 9", 0), ("", 0)],
)
def test_stolen_time_is_the_eighth_figure(text: str, ticks: int) -> None:
    assert proc.parse_stolen(text) == pytest.approx(ticks * proc.TICK)


def test_pss_is_in_bytes() -> None:
    assert proc.parse_pss("00400000-7ff ---p [rollup]\nRss:  900 kB\nPss:  412 kB\nPss_Anon: 1 kB\n") == 412 * 1024
    with pytest.raises(ValueError, match="no Pss"):
        proc.parse_pss("Rss: 1 kB\n")


def test_a_family_is_a_process_and_its_descendants() -> None:
    rows = [(1, 0), (2, 1), (3, 2), (4, 2), (5, 4), (6, 1)]
    table = {pid: proc.Process(pid, parent, "S", 1.0, 0.5) for pid, parent in rows}
    family = proc.select_family(table, 2)
    assert family[0].pid == 2
    assert sorted(process.pid for process in family) == [2, 3, 4, 5]
    assert proc.sum_cpu(family) == 6.0
    assert proc.select_family(table, 99) == []


def test_a_child_s_own_clock_is_read() -> None:
    with child(BURN.format(seconds=0.05)) as process:
        account = proc.read_account(process.pid, [os.getpid()])
        assert account.family >= 0.05
        assert account.family_pids == {process.pid}
        assert account.everything >= account.family + account.ours


def test_ended_children_stay_in_the_family_s_account() -> None:
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-c', {BURN.format(seconds=0.1)!r}])\n"
    with child(program) as process:
        mine = proc.read_process(process.pid)
        assert mine is not None
        assert mine.ended_children >= 0.1 - 2 * proc.TICK  # user and system time, each cut to whole ticks
        assert proc.read_account(process.pid, []).family >= mine.ended_children + mine.own


def test_memory_of_a_living_family_is_read() -> None:
    with child("data = b'x' * 20_000_000") as process:
        sizes = proc.read_family_memory(process.pid)
        assert len(sizes) == 1
        assert sizes[0] > 20_000_000


def test_a_process_that_has_ended_is_none() -> None:
    with child("") as process:
        pid = process.pid
    assert proc.read_process(pid) is None
    assert proc.read_pss(pid) is None
    with pytest.raises(ProcessLookupError):
        proc.read_account(pid, [])
