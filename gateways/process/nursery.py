"""A generation's nursery: a process that imports what Preload names and forks the workers, which share that memory.

The supervisor imports no application, because it may be root and outlives every reload; so somebody else has to, before
the workers are forked: one process for each generation, as the user that the workers are. Its workers are no children
of it: each is forked by a process that ends at once, and falls to the supervisor (prctl(2), PR_SET_CHILD_SUBREAPER),
which collects and signals it as any other.

``Nursery`` is the supervisor's side; the functions below it run in the nursery.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from gateways.process.privileges import become
from gateways.process.signals import Bell, signals_blocked
from gateways.process.worker import Worker, run_worker

if TYPE_CHECKING:
    from gateways.core.interfaces import Log
    from gateways.process.pool import Pool

PATIENCE = 10.0
"""Seconds that the supervisor waits for a fork."""
READY = b"ready"
_SET_CHILD_SUBREAPER = 36
_MOST = 4096


class Nursery:
    """The nursery of one generation. ``pid``: its process; ``ready``: it has imported everything; ``reason``: why it
    cannot, ``""`` if it can; ``lost``: it was there, and is gone."""

    def __init__(
        self, pool: Pool, make: Callable[[int, float], Worker], give_up: Callable[[], None], news: Bell, log: Log
    ) -> None:
        """Fork it. ``make(line, chance)`` makes a worker in a process that it has forked; ``give_up()`` closes what is
        the supervisor's; ``news`` rings when it is ready. Raise ``OSError``."""
        adopt_orphans()
        self._line, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ready = False
        self.reason = ""
        self.lost = False
        with signals_blocked():
            self.pid = os.fork()
            if not self.pid:
                self._line.close()
                live(far, pool, make, give_up, news, log)
        far.close()
        self._line.settimeout(PATIENCE)

    def look(self) -> bool:
        """Return whether workers can be had; see what it has said meanwhile."""
        if not (self.ready or self.reason or self.lost):
            poller = select.poll()
            poller.register(self._line, select.POLLIN)
            if poller.poll(0):
                said = self._hear()
                self.ready = said == READY
                self.reason = "" if self.ready else said.decode(errors="replace") or "it ended while it imported"
        return self.ready

    def spawn(self, index: int, chance: float) -> int:
        """Have a worker forked for line ``index`` of the scoreboard; return its pid. Raise ``OSError``."""
        try:
            self._line.send(b"%d %a" % (index, chance))
        except OSError:
            self._lose()
        said = self._hear()
        if not said.isdigit():
            self._lose()
        return int(said)

    def _hear(self) -> bytes:
        try:
            return self._line.recv(_MOST)
        except OSError:
            return b""

    def _lose(self) -> NoReturn:
        self.ready = False
        self.lost = True
        raise OSError("the process that imports what Preload names is gone")

    def close(self) -> None:
        """Let it end; also in a child that has inherited this end of the line."""
        self._line.close()


def adopt_orphans() -> None:
    """Have processes below this one that lose their parent become its children. Raise ``OSError``."""
    from ctypes import CDLL, get_errno

    if CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(get_errno(), "Preload needs prctl(PR_SET_CHILD_SUBREAPER)")


def live(
    line: socket.socket,
    pool: Pool,
    make: Callable[[int, float], Worker],
    give_up: Callable[[], None],
    news: Bell,
    log: Log,
) -> NoReturn:
    """Be a nursery: import, then fork whoever is asked for, until the supervisor hangs up. Signals stay blocked: they
    are for others, and this process ends with its line."""
    status = 1
    try:
        give_up()
        prepare(pool)
        line.send(READY)
        news.ring()
        orphan = replace(pool, identity=None)  # it is that already
        while order := line.recv(_MOST):
            index, chance = order.split()
            fork_worker(line, orphan, make, int(index), float(chance))
        status = 0
    except ConnectionError:
        status = 0
    except BaseException as error:
        log.exception("pool %s cannot preload", pool.name)
        tell(line, str(error) or type(error).__name__)
        news.ring()
    finally:
        sys.stderr.flush()
        os._exit(status)


def prepare(pool: Pool) -> None:
    """Become the workers' user and import. What is there then is kept from the collector, which would write to it."""
    if pool.identity is not None:
        become(pool.identity)
    if pool.preload is not None:
        pool.preload()
    gc.collect()
    gc.freeze()


def tell(line: socket.socket, words: str) -> None:
    """Send words to the supervisor, if it is still there."""
    try:
        line.send(words.encode(errors="replace")[:_MOST])
    except OSError:
        pass


def fork_worker(
    line: socket.socket, pool: Pool, make: Callable[[int, float], Worker], index: int, chance: float
) -> None:
    """Fork a process that forks a worker, tells its pid, and ends."""
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    try:
        pid = os.fork()
        if not pid:
            run_worker(lambda: make(index, chance), pool, line.close)
        tell(line, str(pid))
    except OSError as error:
        tell(line, f"! {error}")
    finally:
        os._exit(0)
