"""What the client of a worker that is killed is told: an answer in the worker's place, if it has given none.

Everything here runs in the supervisor. The connection is copied out of the worker before it is killed (pidfd_getfd(2)),
and written to when it is dead: only then it is certain that it will not answer after all. What is said comes from the
pool; no byte of a client is read here. Where the kernel allows no copy, the connection ends with the worker.
"""

from __future__ import annotations

import os
from math import inf
from socket import MSG_DONTWAIT, MSG_NOSIGNAL, SHUT_WR, SOCK_STREAM, socket
from typing import TYPE_CHECKING, NamedTuple

from gateways.process.listeners import Address, is_wildcard
from gateways.process.scoreboard import Debt

if TYPE_CHECKING:
    from gateways.core.interfaces import Log
    from gateways.process.children import Child
    from gateways.process.pool import Apology, Pool

LINGER = 2.0
"""Seconds from the answer to the close: a close with bytes of the client unread would be a reset, which takes the
answer along (RFC 9112 9.6)."""
MOST_LINGERING = 64
PIDFD_GETFD = 438
"""The number of the system call, the same on every architecture (syscalls(2)); Python has no function for it."""


class Held(NamedTuple):
    """A connection of a worker that is killed during its request number ``requests``, and what it owes there."""

    connection: socket
    requests: int
    debt: Debt


class Apologies:
    """The connections of workers that are killed, from before their death until their clients had time to read."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._held: dict[int, Held] = {}
        self._lingering: list[tuple[float, socket]] = []

    @property
    def deadline(self) -> float:
        """When ``look`` is next to be called (monotonic seconds)."""
        return self._lingering[0][0] if self._lingering else inf

    def hold(self, child: Child) -> None:
        """Keep the connection open on which ``child``, about to be killed, owes an answer."""
        debt = child.board.read_debt(child.index)
        if debt is None or not child.generation.pool.apologies:
            return
        try:
            self._held[child.pid] = Held(copy_socket(child.pid, debt.fd), child.requests, debt)
        except OSError as error:
            self._log.info("worker %d: its client gets no answer: pidfd_getfd: %s", child.pid, error.strerror)

    def speak(self, child: Child, now: float) -> None:
        """Answer in the place of ``child``, which is dead, if it was still at the request for which it was killed."""
        held = self._held.pop(child.pid, None)
        if held is None:
            return
        line = child.board.read_line(child.index)
        apology = find_apology(child.generation.pool, held.connection)
        method = line.request.partition(" ")[0]
        owed = line.requests == held.requests and child.board.read_debt(child.index) == held.debt
        if not owed or apology is None or not send(held.connection, apology(method, held.debt.request_id)):
            held.connection.close()
            return
        self._log.info("worker %d: its client was answered 504", child.pid)
        self._lingering.append((now + LINGER, held.connection))
        if len(self._lingering) > MOST_LINGERING:
            self._lingering.pop(0)[1].close()

    def look(self, now: float) -> None:
        """Close what has been open for long enough."""
        while now >= self.deadline:
            self._lingering.pop(0)[1].close()

    def close(self) -> None:
        """Close every copy: at the end, and in each new child."""
        for connection in (*(held.connection for held in self._held.values()), *(one for _, one in self._lingering)):
            connection.close()
        self._held = {}
        self._lingering = []


def copy_socket(pid: int, fd: int) -> socket:
    """Return a copy of a child's stream socket. Raise ``OSError`` when there is none, or when it may not be had."""
    import ctypes  # only here: few supervisors ever need it

    pidfd = os.pidfd_open(pid)
    try:
        copy = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, pidfd, fd, 0)
        if copy < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(pidfd)
    try:
        found = socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
    if found.type != SOCK_STREAM:
        found.close()
        raise OSError(0, "not a connection")
    return found


def find_apology(pool: Pool, connection: socket) -> Apology | None:
    """Return what is said on a connection that came by one of the pool's listeners; None when it came by none."""
    try:
        name = connection.getsockname()
        for listener, apology in zip(pool.listeners, pool.apologies, strict=True):
            if listener.family == connection.family and is_reached_by(listener.getsockname(), name):
                return apology
    except OSError:
        pass
    return None


def is_reached_by(bound: object, name: object) -> bool:
    """Return True when a connection with ``name`` as its own end may have come by a listener bound to ``bound``."""
    if isinstance(bound, tuple) and isinstance(name, tuple):
        return bound[1] == name[1] and (bound[0] == name[0] or is_wildcard(Address(bound[0], bound[1])))
    return bound == name


def send(connection: socket, data: bytes) -> bool:
    """Send all of ``data``, and that nothing follows, without waiting. Return False when the client has gone."""
    try:
        sent = connection.send(data, MSG_DONTWAIT | MSG_NOSIGNAL)
        connection.shutdown(SHUT_WR)
    except OSError:
        return False
    return sent == len(data)
