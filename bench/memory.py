"""Memory a worker: each mode served alone, asked for a while, then its workers' proportional set size.

Alone, because workers that serve all modes at once have loaded what all of them need. Where a request is a process of
its own (cgi, zygote), that process is sampled while requests run, and added. Knows processes and their memory; nothing
of rates.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from bench.drivers import Driver
from bench.load import Job
from bench.proc import Process, read_pss, read_table, select_family
from bench.servers import Recipe, ServerFailed, start_server

PAUSE = 0.002


@dataclass(frozen=True, slots=True)
class Memory:
    """PSS in bytes: of each worker after the load, and the most that a request's own process was seen to hold."""

    workers: list[int]
    request: int = 0


def split_family(table: dict[int, Process], root: int) -> tuple[list[int], list[int]]:
    """Return (the workers' pids, the pids of what the workers started) of a supervisor's family."""
    family = select_family(table, root)
    workers = [process.pid for process in family if process.parent == root and process.state != "Z"]
    deeper = [process.pid for process in family[1:] if process.parent != root and process.state != "Z"]
    return workers, deeper


def sample_requests(root: int, done: threading.Event) -> int:
    """Return the greatest PSS seen of a process that a worker started, until ``done``."""
    most = 0
    while not done.wait(PAUSE):
        for pid in split_family(read_table(), root)[1]:
            most = max(most, read_pss(pid) or 0)
    return most


def measure_memory(recipe: Recipe, driver: Driver, job: Job, core: int | None) -> Memory:
    """Start a server, ask it as ``job`` says (its port is filled in), and read its memory.

    Raise ``ServerFailed`` when it does not start or answers wrongly.
    """
    server = start_server(recipe, core)
    done = threading.Event()
    errors: list[str] = []

    def ask() -> None:
        try:
            errors.append(driver.run(with_port(job, server.port)).error)
        finally:
            done.set()

    thread = threading.Thread(target=ask)
    try:
        thread.start()
        most = sample_requests(server.pid, done)
        thread.join()
        if errors != [""]:
            raise ServerFailed(errors[0] if errors else "the load tool failed")
        sizes = [read_pss(pid) for pid in split_family(read_table(), server.pid)[0]]
        return Memory([size for size in sizes if size], most)
    finally:
        thread.join()
        server.stop()


def with_port(job: Job, port: int) -> Job:
    """Return the job for another port and for the root path, where a mode served alone answers."""
    from dataclasses import replace

    return replace(job, port=port, path="/")
