"""A supervisor of ``process_driver.py`` in a process of its own, for tests: its log is waited for line by line."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

DRIVER = Path(__file__).with_name("process_driver.py")
PATIENCE = 30.0
DEATH = r"worker (\d+) \(pool \w+, generation \d+, slot \d+\) "


class Server:
    """A supervisor in a process of its own, and its log as it is written."""

    def __init__(self, directory: Path, addresses: tuple[str, ...], limits: dict[str, Any], **files: str) -> None:
        self.directory = directory
        self.tell(addresses=json.dumps(addresses), **{"limits.json": json.dumps(limits)}, **files)
        # Every process of the family holds the write end: its end of file says that the last of them is gone.
        self.family_fd, inherited = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER), str(directory)],
            cwd=DRIVER.parent.parent,
            env={**os.environ, "PYTHONPATH": str(DRIVER.parent.parent)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(inherited,),
            start_new_session=True,
        )
        os.close(inherited)
        assert self.process.stderr is not None
        self.log_fd = self.process.stderr.fileno()
        self.lines: list[str] = []
        self.position = 0
        self._rest = b""

    def tell(self, **files: str) -> None:
        for name, text in files.items():
            (self.directory / name).write_text(text)

    def wait(self, pattern: str, times: int = 1) -> list[re.Match[str]]:
        """Return the next ``times`` lines that match, passing over those that do not; fail after a deadline."""
        found: list[re.Match[str]] = []
        deadline = monotonic() + PATIENCE
        while len(found) < times:
            while self.position == len(self.lines):
                self._read(deadline, pattern)
            match = re.search(pattern, self.lines[self.position])
            self.position += 1
            if match:
                found.append(match)
        return found

    def pids(self, pattern: str, times: int = 1) -> set[int]:
        return {int(match[1]) for match in self.wait(pattern, times)}

    def _read(self, deadline: float, pattern: str) -> None:
        ready, _, _ = select.select([self.log_fd], [], [], max(0.0, deadline - monotonic()))
        data = os.read(self.log_fd, 65536) if ready else b""
        assert data, f"no line {pattern!r} in:\n" + "\n".join(self.lines)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self.lines += [line.decode() for line in whole]

    def connect(self, address: Any = None) -> socket.socket:
        if address is None:
            address = self.address
        client = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        client.settimeout(PATIENCE)
        try:
            client.connect(address)
        except OSError:
            client.close()
            raise
        return client

    def ask(self, word: bytes = b"pid", address: Any = None) -> int:
        with self.connect(address) as client:
            client.sendall(word)
            return int(client.recv(20) or b"0")

    def hold(self) -> tuple[socket.socket, int]:
        """Keep a worker busy until the returned connection is closed."""
        client = self.connect()
        client.sendall(b"hold")
        return client, int(client.recv(20))

    def started(self, workers: int) -> set[int]:
        host, port = self.wait(r"listening on \('(.*)', (\d+)\)")[0].groups()
        self.address = (host, int(port))
        return self.pids(r"ready (\d+)", workers)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def finish(self) -> int:
        """Wait for the end of the supervisor and of everybody it has forked; return its exit status."""
        deadline = monotonic() + PATIENCE
        while select.select([self.log_fd], [], [], max(0.0, deadline - monotonic()))[0]:
            data = os.read(self.log_fd, 65536)
            if not data:
                break
            self._rest += data
        self.lines += self._rest.decode().splitlines()
        self._rest = b""
        self.wait_for_family()
        return self.process.wait(PATIENCE)

    def wait_for_family(self) -> None:
        assert select.select([self.family_fd], [], [], PATIENCE)[0], "somebody is left:\n" + "\n".join(self.lines)

    def stop(self) -> None:
        self.signal(signal.SIGTERM)
        assert self.finish() == 0, "\n".join(self.lines)

    def errors(self) -> list[str]:
        return [line for line in self.lines if line.startswith(("ERROR", "WARNING", "Traceback", "CRITICAL"))]

    def close(self) -> None:
        if self.process.poll() is None:
            for pid in (*children_of(self.process.pid), self.process.pid):
                os.kill(pid, signal.SIGKILL)
            self.process.wait(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()
        os.close(self.family_fd)


def children_of(pid: int) -> dict[int, str]:
    """The children of a process and their states, as /proc says."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == pid:
                found[int(entry)] = fields[0]
    return found


Start = Callable[..., Server]


def fixed(servers: int, **others: Any) -> dict[str, Any]:
    return {
        "start_servers": servers,
        "min_spare_servers": servers,
        "max_spare_servers": servers,
        "max_servers": servers,
        **others,
    }
