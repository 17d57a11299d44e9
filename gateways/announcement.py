"""What a server says of itself when it has started: where each mount answers, how many workers, how to stop it.

Pure: settings in, text out.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateways.config.settings import PoolSettings


def format_announcement(
    pools: Sequence[PoolSettings], addresses: Sequence[str], pid: int, reload: str, workers: int = 1, status: str = ""
) -> str:
    """Return what a person wants to know of a server that has started.

    ``addresses``: the bound addresses, in the order of the pools and of each pool's ``Listen``. ``reload``: what HUP
    reads anew, ``""`` for nothing. ``workers``: 0 when this process serves by itself. ``status``: StatusListen.
    """
    from gateways import __version__

    lines = [f"gateways {__version__}"]
    rest = list(addresses)
    for pool in pools:
        bound = [f"{place.wire}://{rest.pop(0) if rest else place.address}" for place in pool.listen]
        lines += ["", *format_pool(pool, bound, format_workers(pool) if workers else "this process alone")]
    if status:
        lines += ["", format_status_place(status)]
    end = f"stop: Ctrl-C, or kill -TERM {pid}"
    lines += ["", f"{end}; reload {reload}: kill -HUP {pid}" if reload else end, ""]
    return "\n".join(lines)


def format_status_place(status: str) -> str:
    """Return where to look at a running server."""
    look = f"gateways status {status}"
    return f"status: {look}" if status.startswith("unix:") else f"status: http://{status}/, or {look}"


def format_workers(pool: PoolSettings) -> str:
    """Return how many workers a pool has."""
    if pool.process_manager != "dynamic":
        counts = {
            "static": "always",
            "ondemand": "as many as there is work for, at most",
            "fork": "one a connection, at most",
        }
        return f"workers: {counts[pool.process_manager]} {pool.max_servers}"
    idle = f"{pool.min_spare_servers} to {pool.max_spare_servers} idle"
    return f"workers: {pool.start_servers} at the start, {idle}, at most {pool.max_servers}"


def format_pool(pool: PoolSettings, addresses: Sequence[str], workers: str) -> list[str]:
    """Return the lines that describe one pool and where each of its mounts answers."""
    rows = []
    for address in addresses:
        for mount in pool.mounts:
            where = f"{address} {mount.path}" if "://unix:" in address else f"{address}{mount.path}"
            rows.append((where, mount.model, str(mount.target)))
    width = max((len(row[0]) for row in rows), default=0)
    lines = [f"  {where:<{width}}  {model:<8}  {target}" for where, model, target in rows]
    wires = ", ".join(dict.fromkeys(place.wire for place in pool.listen))
    return [f'pool "{pool.name}": {wires}; {workers}', *lines]
