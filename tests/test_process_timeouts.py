"""RequestTimeout and SlowRequestTimeout: who is named, what is shown, who is killed, and who is not (P17)."""

from __future__ import annotations

import os
import signal

import pytest

from gateways.process.stacks import MAX_FRAMES, MAX_THREADS, format_stacks
from tests.process_server import Start

SLOW = r"WARNING worker {} \(pool app\) is slow: GET /hold for [\d.]+ s"


def test_a_slow_request_is_shown_with_its_stack_and_not_disturbed(start: Start) -> None:
    server = start(manager="static", max_servers=1, slow_timeout=0.3)
    server.started(1)
    client, pid = server.hold()
    server.wait(SLOW.format(pid))
    server.wait(rf"WARNING worker {pid}, thread 1, newest call first: answer \(.*process_driver.py:\d+\), serve \(")
    client.sendall(b".")
    assert client.recv(1) == b"+"
    client.close()
    assert server.ask() == pid
    server.stop()
    assert len(server.errors()) == 2


def test_p17_a_request_beyond_its_time_costs_its_worker_only(start: Start) -> None:
    server = start(manager="static", max_servers=2, request_timeout=0.5)
    workers = server.started(2)
    client, pid = server.hold()
    server.wait(SLOW.format(pid))
    server.wait(rf"WARNING worker {pid}, thread 1, newest call first: answer \(")
    server.wait(rf"ERROR worker {pid} is killed: GET /hold has taken longer than RequestTimeout \(0.5 s\)")
    assert client.recv(1) == b""
    client.close()
    server.wait(rf"worker {pid} .* was killed by SIGKILL while busy with GET /hold after 0 requests")
    server.wait("ready")
    assert server.ask() != pid
    assert len(workers) == 2
    server.stop()


def test_p17_the_stack_of_one_that_holds_the_interpreter_can_be_had(start: Start) -> None:
    server = start(manager="static", max_servers=1, request_timeout=0.3)
    server.started(1)
    client = server.connect()
    client.sendall(b"gil")
    pid = int(client.recv(20))
    server.wait(rf"WARNING worker {pid}, thread 1, newest call first: match .*, hold_interpreter \(")
    server.wait(rf"ERROR worker {pid} is killed: GET /gil")
    client.close()
    server.wait("ready")
    server.stop()


def test_p17_of_one_that_takes_no_signal_the_log_says_so(start: Start) -> None:
    server = start(manager="static", max_servers=1, request_timeout=0.3)
    server.started(1)
    client = server.connect()
    client.sendall(b"stop")
    pid = int(client.recv(20))
    server.wait(rf"WARNING worker {pid}, no stack could be had: it does not answer signals")
    server.wait(rf"ERROR worker {pid} is killed: GET /stop")
    client.close()
    server.wait("ready")
    server.stop()


def test_p17_a_supervisor_that_stood_still_blames_nobody(start: Start) -> None:
    server = start(manager="static", max_servers=1, request_timeout=2.3)
    server.started(1)
    client, pid = server.hold()
    server.signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)
    client.settimeout(3.5)  # nothing comes: this is how long the supervisor stands still
    with pytest.raises(TimeoutError):
        client.recv(1)
    server.signal(signal.SIGCONT)
    server.wait(r"INFO supervisor \d+: stood still for \d+ s, which no worker is blamed for")
    client.sendall(b".")
    assert client.recv(1) == b"+"
    client.close()
    assert server.ask() == pid
    server.stop()
    assert server.errors() == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["no stack could be had: it does not answer signals"]),
        ("\x00 garbage \n File", ["no stack could be had: it does not answer signals"]),
        (
            """Thread 1:\n  File "/a b.py", line 3 in f\n  File "/c.py", line 4 in <module>\n\nCurrent thread 2:
  File "/d.py", line 5 in g\n""",
            [
                "thread 1, newest call first: f (/a b.py:3), <module> (/c.py:4)",
                "thread 2, newest call first: g (/d.py:5)",
            ],
        ),
    ],
    ids=["nothing", "P14 garbage", "two threads"],
)
def test_a_dump_as_lines(text: str, lines: list[str]) -> None:
    assert format_stacks(text) == lines


def test_p14_an_endless_dump_is_cut() -> None:
    lines = format_stacks(("T\n" + '  File "x", line 1 in f\n' * 500 + "\n") * 100)
    assert len(lines) == MAX_THREADS
    assert {line.count("(x:1)") for line in lines} == {MAX_FRAMES}


def test_p17_many_stuck_at_a_time_are_each_killed_in_their_time(start: Start) -> None:
    server = start(manager="static", max_servers=12, slow_timeout=0.2, request_timeout=0.4)
    server.started(12)
    held = [server.hold() for _ in range(12)]
    server.wait(r"ERROR worker \d+ is killed: GET /hold has taken longer than RequestTimeout", 12)
    for client, _ in held:
        assert client.recv(1) == b""
        client.close()
    server.stop()
