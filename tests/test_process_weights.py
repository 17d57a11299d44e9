"""What the kernel tells the supervisor of queues and of its processes: real sockets, real processes."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from gateways.process.queues import Queue, parse_unix, read_queue, read_queues
from gateways.process.weights import Memory, Scales, Weight, parse_rollup, weigh


def test_the_queue_of_a_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=9) as listener:
        assert read_queue(listener) == Queue(0, 9)
        with socket.create_connection(listener.getsockname()), socket.create_connection(listener.getsockname()):
            assert read_queue(listener) == Queue(2, 9)


def test_the_queue_of_a_unix_socket_and_of_several(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.create_server(("127.0.0.1", 0), backlog=9) as other:
        listener.bind(str(tmp_path / "socket"))
        listener.listen(5)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(listener.getsockname())
            assert read_queue(listener) == Queue(1, 5)
            assert read_queues([listener, other]) == Queue(1, 14)
    assert read_queues([]) is None


def test_a_socket_that_is_closed_has_no_queue() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pass
    assert read_queue(listener) is None


@pytest.mark.parametrize("answer", [bytes(20), bytes(16) + b"x" * 40, b"\x40\0\0\0\x14" + bytes(60)])
def test_an_answer_without_a_queue_is_none(answer: bytes) -> None:
    assert parse_unix(answer) is None


ROLLUP = b"""55d0-7ffd ---p 00000000 00:00 0    [rollup]
Rss:               12340 kB
Pss:                6000 kB
Pss_Dirty:          5000 kB
Shared_Clean:       7000 kB
Private_Clean:       340 kB
Private_Dirty:      5000 kB
"""


def test_memory_is_own_shared_and_a_part() -> None:
    assert parse_rollup(ROLLUP) == Memory(5340 << 10, 7000 << 10, 6000 << 10)
    assert parse_rollup(b"") is None


def test_the_weight_of_this_process() -> None:
    before = Weight(1.0, None, 0.0, None)
    weight = weigh(os.getpid(), 3.0, before)
    assert weight.memory is not None
    assert 1 << 20 < weight.memory.own <= weight.memory.part
    assert weight.cpu is not None
    assert weight.share == weight.cpu / 2


def test_a_process_that_is_gone_weighs_nothing() -> None:
    assert weigh(1 << 30, 1.0) == Weight(1.0, None, None, None)


def test_scales_forget_who_is_not_looked_at_and_keep_to_their_budget() -> None:
    scales = Scales()
    first = scales.look([os.getpid(), os.getppid()])
    assert set(first) == {os.getpid(), os.getppid()}
    assert scales.look([os.getpid()]) == {os.getpid(): first[os.getpid()]}, "it is fresh"
    assert scales.look([os.getppid()], budget=-1.0) == {}
