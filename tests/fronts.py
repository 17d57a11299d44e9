"""Real front servers for tests: started with a generated configuration, waited for, stopped, and their logs read.

A front runs in a folder of its own directly below the folder of temporary files, which its own user (www-data, when
the tests run as root) can reach; it listens on a free port of 127.0.0.1, and is no service of this machine.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.fronts import TABLE
from gateways.config.settings import ServerSettings
from gateways.fronts.table import Wishes, format_front
from tests.conftest import find_program
from tests.servers import DEADLINE, ROOT, wait_until

USER = "www-data"
SHORTER = {"apache": "KeepAliveTimeout 300ms\n", "lighttpd": "server.max-keep-alive-idle = 1\n"}
"""Front -> what makes it end a connection sooner whose answer it could not complete."""
QUIET = {
    # mod_fcgid's process manager now and then crashes when it is told to end soon after its start.
    "apache": r"AH00489|AH00094|AH00491|AH00492|AH00493|AH00052: child pid \d+ exit signal Segmentation fault",
    "nginx": r"^$",
    "lighttpd": r"server started|server stopped|info: ",
    "haproxy": r"^$",
    "caddy": r'"level":"info"|endpoint disabled|automatic HTTPS is completely disabled|exiting; byeee',
}
"""Front -> lines of its log that say that all is well."""


@dataclass(frozen=True, slots=True)
class Front:
    """A running front server."""

    name: str
    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """Its root."""
        return f"http://127.0.0.1:{self.port}"

    def exchange(self, data: bytes) -> bytes:
        """Send bytes on a new connection and return everything up to its end."""
        with socket.create_connection(("127.0.0.1", self.port), DEADLINE) as sock:
            sock.sendall(data)
            pieces = []
            while piece := sock.recv(65536):
                pieces.append(piece)
        return b"".join(pieces)

    def complaints(self) -> list[str]:
        """What it has to say, in its error log and on its standard error, beyond that all is well."""
        lines = []
        for name in ("error.log", "output"):
            path = self.folder / name
            lines += path.read_text("utf-8", "replace").splitlines() if path.exists() else []
        return [line for line in lines if line and not re.search(QUIET[self.name], line)]


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that a front's user can read and write; removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="gateways-front-"))
    try:
        give_away(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def give_away(folder: Path) -> None:
    """Let a front's user own a folder; without the right to, that user is our own."""
    folder.chmod(0o755)
    if os.geteuid() == 0:
        owner = pwd.getpwnam(USER)
        os.chown(folder, owner.pw_uid, owner.pw_gid)


def find_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def front(
    name: str,
    settings: ServerSettings,
    wanted: str = "",
    *,
    wire: str = "",
    spawn: str = "",
    reuse: bool = False,
    stream: bool = False,
    command: str = "",
) -> Iterator[Front]:
    """Run a front server for ``settings``; see ``Wishes``. Afterwards stop it and look at its log.

    ``wanted``: a pattern of complaints that the test provokes; nothing else may be in the log.
    """
    with open_folder() as folder:
        port = find_port()
        wishes = Wishes(f"127.0.0.1:{port}", wire, spawn, reuse, stream, str(folder), command)
        file = folder / "front.conf"
        file.write_text(format_front(name, settings, wishes) + SHORTER.get(name, ""))
        process = start(name, folder, file)
        try:
            wait_until(lambda: process.poll() is not None or is_open(port), f"{name} on port {port}")
            running = Front(name, port, folder, process)
            assert process.poll() is None, running.complaints()
            yield running
            assert process.poll() is None, running.complaints()
        finally:
            stop(process)
        left = [line for line in running.complaints() if not (wanted and re.search(wanted, line))]
        assert left == [], "\n".join(left)


def start(name: str, folder: Path, file: Path) -> subprocess.Popen[bytes]:
    """Start a front server's program in a process group of its own."""
    program = find_program(name)
    assert program is not None, f"{name} is not installed"
    arguments = [word.format(folder=folder, file=file) for word in TABLE[name].arguments]
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(folder))
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            [program, *arguments], cwd=folder, env={**os.environ, **homes}, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip


def is_open(port: int) -> bool:
    """True when somebody accepts connections on a port of 127.0.0.1."""
    with socket.socket() as sock:
        sock.settimeout(DEADLINE)
        return sock.connect_ex(("127.0.0.1", port)) == 0


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a front server by its pid, and whatever it started if it does not do that itself."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def find_python() -> str:
    """An interpreter, 3.11 or later, that a front's user may run; the tests' own may be in a home folder."""
    if os.geteuid() != 0 or is_reachable(Path(sys.executable).resolve()):
        return sys.executable
    found = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    assert found is not None, "no python3 that www-data may run"
    return found


def is_reachable(path: Path) -> bool:
    """True when everybody may enter every folder on the way to ``path``."""
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)


def copy_package(folder: Path) -> str:
    """Copy the package where a front's user can read it, and compile it; return the command that runs it there."""
    shutil.copytree(ROOT / "gateways", folder / "gateways", ignore=shutil.ignore_patterns("__pycache__"))
    python = find_python()
    subprocess.run([python, "-m", "compileall", "-q", str(folder / "gateways")], check=True)
    return f"/usr/bin/env PYTHONPATH={folder} {python} -m gateways"


def write_program(path: Path, source: Path, command: str) -> Path:
    """Copy a Python file and make it a program that ``gateways run`` runs."""
    text = source.read_text()
    path.write_text(
        f"#!/usr/bin/env -S {command.removeprefix('/usr/bin/env ')} run\n{text.removeprefix('#!/usr/bin/env python3')}"
    )
    path.chmod(0o755)
    return path


__all__: Sequence[str] = ["Front", "copy_package", "find_python", "front", "open_folder", "write_program"]
