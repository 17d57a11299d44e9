"""A cap on what runs at once in all workers of a pool: record locks on the bytes of one shared memory file.

Locks, because the kernel releases those of a worker that is killed; a counter would never come back. Made before the
workers are forked. Knows nothing of what it counts.
"""

from __future__ import annotations

import os
import select
from contextlib import contextmanager
from time import monotonic

from gateways.core.errors import ScriptError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

QUEUE_LIMIT = 5.0
"""Seconds that a request waits for a permit."""
_TICK = 0.01


class Permits:
    """``limit``: how many may be held at once, 0 for any number."""

    __slots__ = ("_descriptor", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._descriptor = os.memfd_create("permits") if limit else -1

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold one permit. Raise ``ScriptError`` (503) when none comes free within ``QUEUE_LIMIT`` seconds."""
        if not self._limit:
            yield
            return
        place = self._wait_for_place()
        try:
            yield
        finally:
            self._lock(place, release=True)

    def _wait_for_place(self) -> int:
        deadline = monotonic() + QUEUE_LIMIT
        while True:
            for place in range(self._limit):
                if self._lock(place):
                    return place
            if monotonic() >= deadline:
                raise ScriptError(f"{self._limit} scripts run already, and none ended in time", 503)
            select.poll().poll(_TICK * 1000)

    def _lock(self, place: int, release: bool = False) -> bool:
        """Lock or release one byte; return whether that was done."""
        import fcntl

        how = fcntl.LOCK_UN if release else fcntl.LOCK_EX | fcntl.LOCK_NB
        try:
            fcntl.lockf(self._descriptor, how, 1, place)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
