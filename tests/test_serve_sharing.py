"""A worker's side of sharing, against a doorman that a test plays."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gateways.serve.passing import BACK, COPY, FORGOTTEN, KNOCK, MARK, MOST_COPIES, SHARED, close_all, receive
from gateways.serve.sharing import Sharing


@dataclass(eq=False)
class Waiting:
    """A connection, as far as sharing looks at it."""

    fd: int
    origin: int = 0
    mark: int = 0
    is_blank: bool = True


class Doorman:
    """What a worker speaks to. ``shared``: the two words."""

    def __init__(self) -> None:
        self.knocks, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.shared = memoryview(bytearray(16)).cast("q")
        self.sharing = Sharing(3, self.shared, theirs, logging.getLogger("sharing"))
        self.channel: socket.socket | None = None
        self.opened: list[socket.socket] = [self.knocks, theirs]

    def open_door(self) -> socket.socket:
        data, (fd,) = receive(self.knocks, KNOCK.size, 1)
        assert KNOCK.unpack(data) == (3,)
        self.channel = socket.socket(fileno=fd)
        self.opened.append(self.channel)
        return self.channel

    def hear(self) -> tuple[int, list[tuple[int, int]]]:
        assert self.channel is not None
        data, fds = receive(self.channel, 4096, MOST_COPIES)
        close_all(fds)
        return data[0], list(COPY.iter_unpack(data[1:])) if data[0] == SHARED else []

    def connect(self) -> Waiting:
        pair = socket.socketpair()
        self.opened += pair
        waiting = Waiting(pair[0].fileno())
        self.sharing.untold[waiting] = None  # type: ignore[index]
        return waiting

    def close(self) -> None:
        for sock in self.opened:
            sock.close()


@pytest.fixture
def doorman() -> Iterator[Doorman]:
    made = Doorman()
    yield made
    if made.sharing._channel is not None:
        made.sharing._channel.close()
    made.close()


def begin(doorman: Doorman) -> list[Waiting]:
    """Three waiting connections, all told of before a request of the first; the doorman may take."""
    waiting = [doorman.connect() for _ in range(3)]
    doorman.sharing.tell(doorman.connect())  # type: ignore[arg-type]
    doorman.open_door()
    kind, rows = doorman.hear()
    assert (kind, [mark for mark, _ in rows][:3]) == (SHARED, [each.mark for each in waiting])
    doorman.shared[0] = waiting[0].mark
    doorman.shared[1] = 1
    return waiting


def test_what_was_taken_is_given_up_and_the_rest_is_kept(doorman: Doorman) -> None:
    waiting = begin(doorman)
    assert doorman.channel is not None
    doorman.channel.send(bytes((BACK,)) + MARK.pack(waiting[1].mark))
    assert doorman.sharing.rejoin() == [waiting[1]]
    assert (doorman.shared[1], doorman.hear()[0]) == (0, BACK)


def test_what_a_doorman_said_before_it_left_counts_whatever_ends_first(doorman: Doorman) -> None:
    waiting = begin(doorman)
    assert doorman.channel is not None
    doorman.channel.send(bytes((BACK,)) + MARK.pack(waiting[1].mark))
    doorman.channel.close()
    doorman.sharing.forget(waiting[0])  # type: ignore[arg-type]
    assert doorman.sharing.rejoin() == [waiting[1]]


def test_one_that_left_with_messages_unread_is_still_heard(doorman: Doorman) -> None:
    waiting = begin(doorman)
    assert doorman.channel is not None
    doorman.sharing.forget(waiting[2])  # type: ignore[arg-type]
    doorman.channel.send(bytes((BACK,)) + MARK.pack(waiting[1].mark))
    doorman.channel.close()
    doorman.sharing.forget(waiting[0])  # type: ignore[arg-type]
    assert doorman.sharing.rejoin() == [waiting[1]]


def test_without_a_word_all_are_given_up_that_may_have_been_taken(doorman: Doorman) -> None:
    waiting = begin(doorman)
    assert doorman.channel is not None
    doorman.channel.close()
    lost = doorman.sharing.rejoin()
    assert waiting[0] not in lost
    assert {waiting[1], waiting[2]} <= {*lost}


def test_a_successor_is_told_anew(doorman: Doorman) -> None:
    waiting = begin(doorman)
    assert doorman.channel is not None
    doorman.channel.send(bytes((BACK,)))
    assert doorman.sharing.rejoin() == []
    doorman.channel.close()
    doorman.sharing.forget(waiting[0])  # type: ignore[arg-type]
    assert {waiting[1], waiting[2]} <= doorman.sharing.untold.keys()
    doorman.sharing.tell(doorman.connect())  # type: ignore[arg-type]
    doorman.open_door()
    assert doorman.hear()[0] == SHARED


def test_a_connection_that_ends_is_forgotten(doorman: Doorman) -> None:
    waiting = begin(doorman)
    doorman.shared[1] = 0
    doorman.sharing.forget(waiting[1])  # type: ignore[arg-type]
    assert doorman.hear()[0] == FORGOTTEN
