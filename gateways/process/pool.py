"""A pool: the listeners, the limits and the function that one set of workers shares, and its generations.

Knows no process; the supervisor makes workers of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from socket import socket
from typing import TYPE_CHECKING

from gateways.process.backoff import Backoff
from gateways.process.limits import PoolLimits
from gateways.process.privileges import Identity

if TYPE_CHECKING:
    from gateways.process.door import Door
    from gateways.process.nursery import Nursery
    from gateways.process.worker import Worker


Apology = Callable[[str, int], bytes]


@dataclass(frozen=True, slots=True)
class Pool:
    """What the workers of a pool run and on what.

    ``listeners`` are open; the supervisor owns them from the moment it is given the pool, and closes them.
    ``serve(worker)`` runs in each worker: it loads the application, calls ``worker.ready()``, serves, and returns
    when the worker is to leave. ``identity``: whom a worker becomes before that; None to stay who the supervisor is.
    ``apologies``: one for each listener, what tells a client there that its request took too long:
    ``apologies[i](method, request_id)`` gives the bytes. Without any, nothing is said. ``keep_door(worker, door=,
    board=, generation=)`` runs in the pool's doorman, if it is to have one; ``always_kept``: from the start, and not
    only once a worker knocks. ``addresses``: of the listeners, each with its wire before it, for people.
    ``preload()`` imports what the workers are to share, in their nursery; None for nothing.
    """

    name: str
    limits: PoolLimits
    listeners: Sequence[socket]
    serve: Callable[[Worker], None]
    identity: Identity | None = None
    apologies: Sequence[Apology] = ()
    keep_door: Callable[..., None] | None = None
    always_kept: bool = False
    addresses: Sequence[str] = ()
    preload: Callable[[], None] | None = None


class Generation:
    """A pool as one ``load`` gave it, and how its workers have fared.

    ``number`` counts from 1. ``target``: how many workers it is first to reach, ``filled`` once it has.
    ``proven``: a worker of it has been ready. ``boot_failures``: workers in a row that died before they were ready;
    ``reason``: how the last of them died. ``door``: what they share with their doorman, if they are to have one.
    ``nursery``: who forks them, where something is preloaded; ``refusal``: why that cannot be, ``""`` if it can.
    """

    __slots__ = (
        "backoff", "boot_failures", "door", "filled", "number", "nursery", "pool", "proven", "reason", "refusal",
        "target",
    )  # fmt: skip

    def __init__(self, number: int, pool: Pool, target: int) -> None:
        self.number = number
        self.pool = pool
        self.target = target
        self.filled = False
        self.proven = False
        self.boot_failures = 0
        self.reason = ""
        self.backoff = Backoff()
        self.door: Door | None = None
        self.nursery: Nursery | None = None
        self.refusal = ""

    @property
    def entrances(self) -> list[socket]:
        """Where connections come from: its listeners, and its door."""
        return [*self.pool.listeners, *((self.door.handed,) if self.door is not None else ())]

    @property
    def hopeless(self) -> bool:
        """True when no worker of it was ever ready and too many have died in a row."""
        return not self.proven and (self.refusal != "" or self.boot_failures >= self.pool.limits.max_boot_failures)

    def fail(self, reason: str, boot: bool, now: float) -> None:
        """Note that a worker of it died of ``reason``; ``boot``: before it was ready."""
        self.boot_failures += boot
        self.reason = reason
        self.backoff.fail(now)

    def despair(self) -> str:
        """Return the sentence that says why it is given up."""
        if self.refusal:
            return f"pool {self.pool.name} cannot preload: {self.refusal}"
        return (
            f"no worker of pool {self.pool.name} could start, {self.boot_failures} in a row died before they were"
            f" ready; the last: {self.reason}"
        )
