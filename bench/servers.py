"""The servers that are compared: how each is started, and one way to wait until it answers and to stop it.

Knows command lines, ports and processes; nothing of loads, rounds or figures. A recipe is a row: everything that
differs between servers is in its command line.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.answers import Answer, ask

READY_SECONDS = 20.0
STOP_SECONDS = 10.0
ATTEMPT_SECONDS = 0.02
ANSWER_SECONDS = 5.0
LOG_BYTES = 8192
NOT_YET = (502, 503, 504)
HELLO = "apps/hello.py"
FOLDERS = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin", "/usr/local/sbin"))
"""Where programs are looked for: Debian keeps some servers outside a user's PATH."""


class ServerFailed(Exception):
    """A server did not start or did not answer; the message says what it printed last."""


class ServerMissing(ServerFailed):
    """A server cannot run here; the message says what is missing and how to install it."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start one server: ``command(port)`` is its command line, run from the repository's root.

    ``missing`` tells why it cannot run here, ``""`` when it can. ``ready_path`` is asked for until it answers, in the
    protocol ``wire``. ``stop_signal`` ends it in order. ``prepare(port)`` is done before it starts and may raise
    ``ServerFailed``; ``environment`` is added to ours.
    """

    name: str
    label: str
    command: Callable[[int], list[str]]
    missing: Callable[[], str] = field(default=lambda: "")
    ready_path: str = "/"
    wire: str = "http"
    stop_signal: int = signal.SIGTERM
    prepare: Callable[[int], None] = field(default=lambda _port: None)
    environment: Mapping[str, str] = field(default_factory=dict)


def serve_command(port: int, *words: str, wire: str = "http") -> list[str]:
    """Return the command line of our own server on a port."""
    return [sys.executable, "-m", "gateways", "serve", *words, "--bind", f"{wire}://127.0.0.1:{port}"]


def floor_command(port: int) -> list[str]:
    """Return the command of the floor."""
    return [sys.executable, "-m", "bench.floor_server", str(port), "--app", HELLO]


FLOOR = Recipe("floor", "floor", floor_command)


class Server:
    """A server that was started by us: its process, its port, and what it printed."""

    def __init__(self, recipe: Recipe, core: int | None) -> None:
        self.recipe = recipe
        self.port = find_free_port()
        recipe.prepare(self.port)
        self.command = recipe.command(self.port)
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop()
        self.process = start_process(self.command, core, self.log.fileno(), recipe.environment)

    @property
    def pid(self) -> int:
        """The process that all others of the server descend from."""
        return self.process.pid

    def read_log(self) -> str:
        """Return the end of what the server printed."""
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), LOG_BYTES, max(0, size - LOG_BYTES)).decode("utf-8", "replace")

    def last_words(self) -> str:
        """Return the last line of what the server printed that speaks of an error, or else its very last line."""
        lines = [line.strip() for line in self.read_log().splitlines() if line.strip()] or ["it printed nothing"]
        return next((line for line in reversed(lines) if "error" in line.lower()), lines[-1])

    def wait_ready(self, seconds: float = READY_SECONDS) -> Answer:
        """Return the server's first answer; raise ``ServerFailed`` when it ends or does not answer in time.

        A gateway that has nobody behind it yet (502 to 504) is asked again.
        """
        deadline = time.monotonic() + seconds
        pidfd = os.pidfd_open(self.pid)
        watch = select.poll()
        watch.register(pidfd, select.POLLIN)
        try:
            while time.monotonic() < deadline:
                try:
                    answer = ask(self.recipe.wire, self.port, self.recipe.ready_path, ANSWER_SECONDS)
                    if answer.status not in NOT_YET:
                        return answer
                except OSError:
                    pass  # a refused connection costs nothing
                # The wait ends early when the process does.
                if watch.poll(ATTEMPT_SECONDS * 1000):
                    code = self.process.wait()
                    raise ServerFailed(f"it ended with status {code}: {self.last_words()}")
            raise ServerFailed(f"no answer within {seconds:g} s: {self.last_words()}")
        finally:
            os.close(pidfd)

    def stop(self) -> None:
        """End the server in order; if it does not end in time, kill it and its process group."""
        self.process.send_signal(self.recipe.stop_signal)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.pid, signal.SIGKILL)  # what is left of the group, mostly nothing
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()
        self.log.close()

    def describe(self) -> str:
        """Return the command line for a reader, with ``python`` for the interpreter's path."""
        own = self.command[0] == sys.executable
        return shlex.join(["python", *self.command[1:]] if own else self.command)


def find_free_port() -> int:
    """Return a port that was free a moment ago on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def start_process(
    command: Sequence[str], core: int | None, output: int, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, on one core if given (affinity is inherited: ours is put back)."""
    before = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env={**os.environ, "PATH": FOLDERS, **environment},
        )  # fmt: skip
    finally:
        os.sched_setaffinity(0, before)


def start_server(recipe: Recipe, core: int | None) -> Server:
    """Start a server and wait until it answers; raise ``ServerFailed`` with the reason, and leave nothing running."""
    if reason := recipe.missing():
        raise ServerMissing(reason)
    server = Server(recipe, core)
    try:
        server.wait_ready()
    except BaseException:
        server.stop()
        raise
    return server
