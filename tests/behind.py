"""A real front server before a real ``gateways serve``, with the configuration that ``gateways conf`` prints for it.

Both keep their files in one folder that the front's own user can reach, and both are ended by their process ids.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gateways.config.reader import read_settings
from gateways.fronts.table import Wishes, format_front
from tests.conftest import find_program
from tests.servers import DEADLINE, Server, serving, wait_until

COMMANDS = {
    "apache": ("-d", "{folder}", "-f", "{file}", "-DFOREGROUND"),
    "nginx": ("-e", "{folder}/error.log", "-c", "{file}"),
    "lighttpd": ("-D", "-f", "{file}"),
}
"""Front -> what its program is told. A front's own error log is ``error.log`` in its folder."""

ORDINARY = r"^$|AH00489|AH00094|AH00493|AH00491|server started|server stopped|graceful shutdown|\[(notice|info)\]"
"""Lines of a front's error log that say only that it came and went."""


class Place:
    """Where programs are reached. ``port``: the front's, or our own without a front. ``server``: ours, if there is one.
    ``front_log``: the front's error log."""

    def __init__(self, port: int, server: Server | None, front_log: Path | None) -> None:
        self.port = port
        self.server = server
        self.front_log = front_log

    @property
    def authority(self) -> str:
        """``HOST:PORT`` as a client writes it."""
        return f"127.0.0.1:{self.port}"

    def complaints(self) -> list[str]:
        """What the front's error log says beyond that it came and went."""
        lines = self.front_log.read_text(errors="replace").splitlines() if self.front_log else []
        return [line for line in lines if not re.search(ORDINARY, line)]


def find_free_port() -> int:
    """A port of the loopback interface that nobody has at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def can_connect(port: int) -> bool:
    """Whether somebody listens."""
    try:
        socket.create_connection(("127.0.0.1", port), DEADLINE).close()
    except ConnectionRefusedError:
        return False
    return True


@contextmanager
def make_open_folder() -> Iterator[Path]:
    """A folder that other users can reach, as a front server's processes are as a rule."""
    folder = Path(tempfile.mkdtemp(prefix="gateways-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def run_front(name: str, folder: Path, text: str, port: int) -> Iterator[Path]:
    """Run a front server with a configuration; yield its error log."""
    program = find_program(name)
    assert program is not None, f"{name} is not installed"
    file = folder / f"{name}.conf"
    file.write_text(text)
    words = [word.format(folder=folder, file=file) for word in COMMANDS[name]]
    with (folder / f"{name}.output").open("wb") as output:
        process = subprocess.Popen([program, *words], stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said = folder / f"{name}.output"
        wait_until(lambda: process.poll() is not None or can_connect(port), name)
        assert process.poll() is None, said.read_text() + text
        yield folder / "error.log"
    finally:
        process.terminate()
        try:
            process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def serve_behind(
    configuration: str,
    front: str,
    wire: str,
    *,
    stream: bool = False,
    wanted: Sequence[str] = (),
    tolerated: Sequence[str] = (),
) -> Iterator[Place]:
    """Serve a configuration over a wire behind a front; with ``front`` empty, over HTTP directly.

    ``configuration``: its pool has the place ``{listen}`` where its address belongs. ``stream``: the front passes
    bodies on as they come. ``wanted``, ``tolerated``: see ``serving``.
    """
    with make_open_folder() as folder, tempfile.TemporaryDirectory(prefix="gateways-") as own:
        file = folder / "gateways.toml"
        file.write_text(configuration.replace("{listen}", f"{wire}://127.0.0.1:0"))
        with serving(Path(own), "--config", str(file), bind=False, wanted=wanted, tolerated=tolerated) as server:
            if not front:
                yield Place(server.port, server, None)
                return
            file.write_text(configuration.replace("{listen}", f"{wire}://127.0.0.1:{server.port}"))
            with before(front, folder, file, wire=wire, stream=stream) as place:
                place.server = server
                yield place


@contextmanager
def start_by(configuration: str, front: str, way: str) -> Iterator[Place]:
    """Let a front start what a configuration serves by itself: ``way`` is ``"cgi"`` or ``"fastcgi"``."""
    with make_open_folder() as folder:
        file = folder / "gateways.toml"
        file.write_text(configuration.replace("{listen}", "127.0.0.1:1"))
        with before(front, folder, file, spawn=way) as place:
            yield place


@contextmanager
def before(
    front: str, folder: Path, file: Path, wire: str = "", spawn: str = "", stream: bool = False
) -> Iterator[Place]:
    """Run the front that a configuration file of ours asks for."""
    port = find_free_port()
    wishes = Wishes(listen=f"127.0.0.1:{port}", wire=wire, spawn=spawn, stream=stream, folder=str(folder))
    with run_front(front, folder, format_front(front, read_settings(str(file)), wishes), port) as log:
        yield Place(port, None, log)
