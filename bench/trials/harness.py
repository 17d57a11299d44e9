"""What every trial stands on: a real `gateways serve`, a front server before it, figures of processes, and a clock.

Everything that is started here is ended here, by its pid. Knows no trial.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import fronts
from bench.proc import MIB, read_pss, read_table, select_family
from bench.progress import TextProgress
from bench.servers import LOG_BYTES, Server, ServerFailed, find_free_port, start_server
from bench.trials.findings import Findings

ROOT = Path(__file__).resolve().parent.parent.parent
APP = Path(__file__).with_name("app.py")
PATIENCE = 30.0
"""Seconds that an event is waited for before a trial gives up."""


class TrialFailed(ServerFailed):
    """A trial could not go on; the message says what it waited for."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial is handed: how long it may take, where it says how far it is, and what it fills in.

    ``quick``: a first look. ``minutes``: how long, for trials that can be any length; 0 for their usual one.
    """

    findings: Findings
    progress: TextProgress
    quick: bool = False
    minutes: float = 0.0

    def tell(self, text: str, done: float = 0, total: float = 0) -> None:
        """Show a step."""
        self.progress.tell(text, int(done), max(int(total), 1))


def wait_until(condition: Callable[[], object], what: str, patience: float = PATIENCE, pause: float = 0.02) -> None:
    """Look again and again until ``condition()`` holds; raise ``TrialFailed`` after ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TrialFailed(f"waited {patience:g} s for {what}")
        time.sleep(pause)


class Gateways:
    """A supervisor and all who come after it, with a status port, a pid file and an error log of its own.

    ``ports``: wire -> port. ``folder``: everything's place; it is removed by whoever made it.
    """

    def __init__(self, folder: Path, pool: str, wires: tuple[str, ...] = ("http",), status: bool = True) -> None:
        self.folder = folder
        self.ports = {wire: find_free_port() for wire in wires}
        self.status_port = find_free_port() if status else 0
        self.log_path, self.pid_path = folder / "error.log", folder / "pid"
        self.file = folder / "gateways.toml"
        self.file.write_text(self._format(pool), encoding="utf-8")
        command = [sys.executable, "-m", "gateways", "serve", "--config", str(self.file)]
        with (folder / "output").open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        try:
            wait_until(lambda: self.process.poll() is not None or self.is_ready(), "the server")
            if self.process.poll() is not None:
                raise TrialFailed((folder / "output").read_text("utf-8", "replace") + self.read_log()[-LOG_BYTES:])
        except BaseException:
            self.stop()
            raise

    def _format(self, pool: str) -> str:
        listen = ", ".join(f'"{wire}://127.0.0.1:{port}"' for wire, port in self.ports.items())
        shown = f'StatusListen = "127.0.0.1:{self.status_port}"\n' if self.status_port else ""
        return (
            f'ErrorLog = "{self.log_path}"\nPidFile = "{self.pid_path}"\n{shown}[pool.main]\nListen = [{listen}]\n'
            f'{pool}\n[[pool.main.Mount]]\nTarget = "{APP}"\n'
        )

    @property
    def pid(self) -> int:
        """The supervisor's, who may be another than the first."""
        try:
            return int(self.pid_path.read_text("ascii") or 0)
        except (OSError, ValueError):
            return 0

    def is_ready(self) -> bool:
        """True when a worker answers."""
        try:
            return bool(self.get("/pid"))
        except OSError:
            return False

    def get(self, path: str) -> bytes:
        """Return the body of one HTTP answer. Raise ``OSError``."""
        return fetch(self.ports["http"], path)

    def status(self) -> dict[str, Any]:
        """Return what the status port says of the pool, ``{}`` while nobody answers there."""
        try:
            report = json.loads(fetch(self.status_port, "/status.json"))
        except (OSError, ValueError):
            return {}
        return {"pid": report["pid"], **report["pools"][0]}

    def signal(self, number: int) -> None:
        """Send the supervisor a signal."""
        os.kill(self.pid, number)

    def read_log(self) -> str:
        """Return the error log."""
        try:
            return self.log_path.read_text("utf-8", "replace")
        except OSError:
            return ""

    def wait_for_log(self, pattern: str, count: int = 1, patience: float = PATIENCE) -> None:
        """Wait until the error log has ``count`` matches."""
        wait_until(lambda: len(re.findall(pattern, self.read_log())) >= count, f"{pattern!r} in the log", patience)

    def list_complaints(self) -> list[str]:
        """Return the lines of the error log that are above info."""
        return [line for line in self.read_log().splitlines() if not re.search(r"\] (info|debug): ", line)]

    def stop(self) -> None:
        """End the supervisor, and whatever is left of its session."""
        if pid := (self.pid if is_alive(self.pid) else self.process.pid if self.process.poll() is None else 0):
            end_process(pid)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()


def is_alive(pid: int) -> bool:
    """True when there is a process of that number, dead ones that nobody has collected left out."""
    try:
        return bool(pid) and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def end_process(pid: int) -> None:
    """Tell a process to stop and wait for its end, up to ``PATIENCE`` seconds."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(watch, signal.SIGTERM)
        select.select([watch], [], [], PATIENCE)
    except ProcessLookupError:
        pass
    finally:
        os.close(watch)


def fetch(port: int, path: str, patience: float = PATIENCE) -> bytes:
    """Return the body of an answer to HTTP/1.1 on a connection of its own. Raise ``OSError``."""
    with socket.create_connection(("127.0.0.1", port), patience) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while piece := sock.recv(65536):
            data += piece
    if not data.startswith(b"HTTP/1.1 200 "):
        raise OSError(f"{data[:40]!r}")
    return data.partition(b"\r\n\r\n")[2]


@contextmanager
def open_folder() -> Iterator[Path]:
    """Give a folder that a front server's own user can write to, removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="gateways-trial-"))
    try:
        folder.chmod(0o755)
        if os.geteuid() == 0:
            shutil.chown(folder, "www-data", "www-data")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def serving(pool: str, wires: tuple[str, ...] = ("http",), status: bool = True) -> Iterator[Gateways]:
    """Run a server whose pool has the directives ``pool`` (TOML)."""
    with open_folder() as folder:
        server = Gateways(folder, pool, wires, status)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def fronting(name: str, wire: str, port: int) -> Iterator[tuple[Server, Path]]:
    """Run a front server that keeps its connections to ``port``; give it and its error log's path."""
    with open_folder() as folder:
        front = start_server(fronts.make_recipe(name, wire, port, True, folder, "/pid"), None)
        try:
            yield front, folder / "error.log"
        finally:
            front.stop()


# Figures.


@dataclass(frozen=True, slots=True)
class Figures:
    """What a process holds: descriptors, threads, and bytes that are resident and that are its share."""

    descriptors: int
    threads: int
    resident: int
    share: int

    def row(self) -> tuple[str, ...]:
        """Return the figures as cells."""
        sizes = (f"{size / MIB:.1f} MiB" for size in (self.resident, self.share))
        return str(self.descriptors), str(self.threads), *sizes


FIGURE_COLUMNS = ("descriptors", "threads", "RSS", "PSS")


def read_figures(pid: int) -> Figures:
    """Return a process's figures. Raise ``OSError`` when it is gone."""
    status = Path(f"/proc/{pid}/status").read_text()
    threads, resident = (int(re.findall(rf"^{name}:\s+(\d+)", status, re.M)[0]) for name in ("Threads", "VmRSS"))
    return Figures(len(os.listdir(f"/proc/{pid}/fd")), threads, resident * 1024, read_pss(pid) or 0)


def list_family(pid: int) -> list[int]:
    """Return the pids of a process and its living descendants."""
    return [process.pid for process in select_family(read_table(), pid) if process.state != "Z"]


class Watcher:
    """Calls ``look(seconds)`` every ``pause`` seconds in a thread of its own, for the length of a ``with`` block."""

    def __init__(self, look: Callable[[float], None], pause: float) -> None:
        self._look = look
        self._pause = pause
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.began = time.monotonic()

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    def _run(self) -> None:
        while not self._done.wait(self._pause):
            self._look(self.now)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
