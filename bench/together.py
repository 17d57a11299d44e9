"""``python -m bench.together COMMAND COMMAND...``: several commands as one server, which ends when one of them does.

For servers that are two programs, such as a front server and the application server behind it. The commands are started
in order and ended in the reverse one.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
from types import FrameType

STOP_SECONDS = 8.0


class Ended(Exception):
    """We were asked to end."""


def end_in_order(_signal: int, _frame: FrameType | None) -> None:
    """Turn SIGTERM into an exception that ends every command on its way."""
    raise Ended


def wait_for_one(processes: list[subprocess.Popen[bytes]]) -> None:
    """Return when one of the processes has ended."""
    watch = select.poll()
    for process in processes:
        watch.register(os.pidfd_open(process.pid), select.POLLIN)
    watch.poll()


def main(commands: list[str]) -> int:
    """Run the commands; return 0 when we were asked to end, 1 when one of them ended by itself."""
    signal.signal(signal.SIGTERM, end_in_order)
    signal.signal(signal.SIGINT, end_in_order)
    processes: list[subprocess.Popen[bytes]] = []
    status = 1
    try:
        for command in commands:
            processes.append(subprocess.Popen(shlex.split(command)))
        wait_for_one(processes)
    except Ended:
        status = 0
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for process in reversed(processes):
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
