"""The two sides of a pool's door, put together of parts: what a worker is given, and what its doorman runs.

Holds no logic of its own.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gateways.accesslog import AccessLog
    from gateways.config.settings import PoolSettings
    from gateways.core.interfaces import Board, Door, Log
    from gateways.serve.listener import Listener
    from gateways.serve.sharing import Sharing


def shares_connections(pool: PoolSettings) -> bool:
    """True when a pool's workers let others have their waiting connections."""
    return pool.share_connections and pool.max_servers > 1 and pool.process_manager != "fork"


def limits_queue(pool: PoolSettings) -> bool:
    """True when not every connection may wait for a worker for any time."""
    return pool.max_queue > 0 or pool.queue_timeout > 0


def open_door(
    door: Door, line: int, shared: memoryview, listeners: Sequence[Listener], pool: PoolSettings, log: Log
) -> tuple[Listener, Sharing | None]:
    """Return a worker's side: where connections are handed to it, and how it shares its own, if it does."""
    from gateways.serve.passing import HandedListener
    from gateways.serve.sharing import Sharing

    sharing = Sharing(line, shared, door.knocking, log) if shares_connections(pool) else None
    return HandedListener(door.handed, tuple(listeners)), sharing


def run_doorman(
    worker: Any, pool: PoolSettings, access: AccessLog | None, door: Door, board: Board, generation: int
) -> None:
    """Keep the door of a pool's generation until told to leave. What a doorman runs, from its fork to its end."""
    from gateways.core.mounts import Mount, MountTable
    from gateways.listening import make_listeners
    from gateways.serve.doorman import Doorman, raise_descriptor_limit
    from gateways.serve.loop import ConnectionLoop
    from gateways.serve.queue import Queue, TurnAway

    raise_descriptor_limit()
    if access is not None:
        access.begin()
    limits = pool.wire_limits()
    limits.buffered_body = 0  # who is turned away need not send a body first
    listeners = make_listeners(worker.listeners, pool, worker.log, limits)
    mounts = MountTable([Mount("", TurnAway(pool.queue_timeout))])
    loop = ConnectionLoop([], mounts, pool.time_limits(), worker.slot, worker.log, access=access)
    queue = Queue(loop, listeners, door, pool.max_queue, pool.queue_timeout, worker.log)
    doorman = Doorman(loop, listeners, door, board, generation, queue)

    def obey() -> None:
        worker.clear_wake()
        if worker.stop_requested:
            doorman.leave()

    def follow() -> None:
        loop.unwatch(worker.lifeline_fd)
        doorman.leave()

    loop.watch(worker.wake_fd, obey)
    loop.watch(worker.lifeline_fd, follow)
    worker.ready()
    loop.run()


def make_keeper(pool: PoolSettings, access: AccessLog | None) -> Callable[..., None] | None:
    """Return what a pool's doorman runs; None for a pool that has none."""
    if not (shares_connections(pool) or limits_queue(pool)):
        return None
    return lambda worker, door, board, generation: run_doorman(worker, pool, access, door, board, generation)
