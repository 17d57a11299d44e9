"""One supervisor after another on the same listeners, with `gateways serve` itself: USR2, pid file, sd_notify, reload.

Every process of a family holds one end of a pipe; its end of file says that the last of them is gone.
"""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

from gateways.process.pidfile import find_running
from tests.servers import serving

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 30.0
APP = """
import os
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d" % os.getpid()]
"""


class Family:
    """The first supervisor and all who come after it."""

    def __init__(self, folder: Path, *options: str, **variables: str) -> None:
        self.folder = folder
        self.log = folder / "error.log"
        self.pid_file = folder / "pid"
        self.path = str(folder / "http.sock")
        (folder / "app.py").write_text(APP)
        self.family_fd, inherited = os.pipe()
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "gateways", "serve", str(folder / "app.py"), "--bind", f"unix:{self.path}",
                "--start-servers", "2", "--error-log", str(self.log), "--pid-file", str(self.pid_file), *options,
            ],
            cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, pass_fds=(inherited,),
            start_new_session=True,
        )  # fmt: skip
        os.close(inherited)
        wait_until(lambda: self.pid_file.exists() and self.holder() == self.process.pid and self.answers(), "start")

    def holder(self) -> int:
        """The supervisor that holds the pid file."""
        try:
            return find_running(str(self.pid_file))
        except OSError:
            return 0

    def ask(self) -> int:
        """The pid of the worker that answers."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(self.path)
            client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            data = b""
            while piece := client.recv(4096):
                data += piece
        assert data.startswith(b"HTTP/1.1 200 "), data
        return int(data.rpartition(b"\r\n")[2] or 0)

    def answers(self) -> bool:
        try:
            return self.ask() > 0
        except OSError:
            return False

    def wait_for_log(self, pattern: str, count: int = 1) -> None:
        wait_until(lambda: len(re.findall(pattern, self.log.read_text())) >= count, pattern)

    def reload(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gateways", "reload", "--pid-file", str(self.pid_file)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def stop(self) -> None:
        """End whoever holds the pid file, and see that nobody is left."""
        os.kill(self.holder(), signal.SIGTERM)
        assert select.select([self.family_fd], [], [], PATIENCE)[0], self.log.read_text()

    def complaints(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if not re.search(r"\] (info|debug): ", line)]

    def close(self) -> None:
        for pid in {self.holder(), self.process.pid} - {0}:
            if pid != self.process.pid or self.process.poll() is None:
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        os.close(self.family_fd)


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < deadline, f"waited for {what}"
        select.select([], [], [], 0.01)


def read_parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


Begin = Callable[..., Family]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    families: list[Family] = []

    def start(*options: str, **variables: str) -> Family:
        families.append(Family(tmp_path, *options, **variables))
        return families[-1]

    yield start
    for family in families:
        family.close()


def test_b114_b123_p11_usr2_replaces_the_supervisor_and_no_connection_is_lost(begin: Begin) -> None:
    family = begin()
    first = family.process.pid
    inode = os.stat(family.path).st_ino
    for _ in range(10):  # B114
        family.process.send_signal(signal.SIGUSR2)
    asked = 0
    while family.process.poll() is None:
        family.ask()
        asked += 1
    assert family.process.wait(PATIENCE) == 0
    assert asked > 0
    second = family.holder()
    assert second not in (0, first)
    assert os.stat(family.path).st_ino == inode  # B123
    assert family.ask() > 0
    assert len(re.findall("successor [0-9]+ is started", family.log.read_text())) == 1
    os.kill(second, signal.SIGUSR2)
    wait_until(lambda: family.holder() not in (0, second), "the third supervisor")
    third = family.holder()
    family.wait_for_log(f"supervisor {second}: stopped")
    assert third != first
    assert family.ask() > 0
    family.stop()
    assert not os.path.exists(family.path)
    assert not family.pid_file.exists()
    assert all("no successor is started" in line for line in family.complaints())


def test_p13_b116_nothing_grows_from_supervisor_to_supervisor(begin: Begin) -> None:
    family = begin()
    counts = []
    for number in range(6):
        old = family.holder()
        os.kill(old, signal.SIGUSR2)
        wait_until(lambda old=old: family.holder() not in (0, old), "the next supervisor")
        family.wait_for_log(f"supervisor {old}: stopped")
        wait_until(lambda old=old: read_parent(family.holder()) != old, "the end of the old supervisor")
        counts.append(len(os.listdir(f"/proc/{family.holder()}/fd")))
        assert family.log.read_text().count(": stopped") == number + 1
    assert len(set(counts)) == 1, counts
    family.stop()
    assert family.complaints() == []


def test_p11_b123_a_socket_that_left_the_configuration_goes_with_the_predecessor(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    conf, pid_file = tmp_path / "gateways.toml", tmp_path / "pid"
    kept, left = tmp_path / "kept.sock", tmp_path / "left.sock"
    text = f'PidFile = "{pid_file}"\n[pool.main]\nListen = [{{}}]\n[[pool.main.Mount]]\nTarget = "{tmp_path}/app.py"\n'
    conf.write_text(text.format(f'"unix:{kept}", "unix:{left}"'))
    with serving(tmp_path, "--config", str(conf), bind=False) as server:
        assert kept.exists()
        assert left.exists()
        conf.write_text(text.format(f'"unix:{kept}"'))
        server.process.send_signal(signal.SIGUSR2)
        server.process.wait(PATIENCE)
        successor = find_running(str(pid_file))
        try:
            assert kept.exists()
            assert not left.exists()
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(kept))
        finally:
            watch = os.pidfd_open(successor)
            os.kill(successor, signal.SIGTERM)
            assert select.select([watch], [], [], PATIENCE)[0]
            os.close(watch)
        assert not kept.exists()
        (tmp_path / "output").write_text(server.said)  # the successor has announced itself there, too


def test_p11_a_successor_that_cannot_start_leaves_the_old_one(begin: Begin) -> None:
    family = begin()
    (family.folder / "app.py").write_text(APP + "raise RuntimeError('new code')\n")
    family.process.send_signal(signal.SIGUSR2)
    family.wait_for_log(r"successor \d+ exited with status 1, this supervisor stays")
    assert family.holder() == family.process.pid
    assert family.ask() > 0
    family.stop()
    assert not os.path.exists(family.path)


def test_p12_a_second_server_with_the_same_pid_file_is_refused(begin: Begin) -> None:
    family = begin()
    done = subprocess.run(
        [
            sys.executable, "-m", "gateways", "serve", str(family.folder / "app.py"), "--bind", "127.0.0.1:0",
            "--pid-file", str(family.pid_file),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"process {family.process.pid} is running with it" in done.stderr
    assert family.holder() == family.process.pid
    family.stop()
    assert family.complaints() == []


def test_p12_p07_the_lock_ends_with_a_supervisor_that_is_killed(begin: Begin) -> None:
    family = begin()
    family.process.kill()
    assert select.select([family.family_fd], [], [], PATIENCE)[0]
    assert family.pid_file.exists()
    wait_until(lambda: family.holder() == 0, "the end of the lock")


def test_p10_the_exit_status_of_reload_says_how_it_went(begin: Begin) -> None:
    family = begin()
    old = family.ask()
    done = family.reload()
    assert (done.returncode, done.stderr) == (0, "")
    wait_until(lambda: family.ask() != old, "the new workers")
    (family.folder / "app.py").write_text(APP + "raise RuntimeError('new code')\n")
    done = family.reload()
    assert done.returncode == 1
    assert "keeps its old workers; its error log says why" in done.stderr
    assert family.ask() > 0
    family.stop()
    done = family.reload()
    assert done.returncode == 1
    assert "cannot be read: No such file" in done.stderr


def test_the_service_manager_is_told(begin: Begin, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE)
        family = begin(NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="1000000")
        said: list[str] = []

        def hear(word: str) -> str:
            while not said or word not in said[-1]:
                said.append(manager.recv(4096).decode())
            return said[-1]

        assert re.fullmatch(
            rf"READY=1\nMAINPID={family.process.pid}\nSTATUS=\d busy, \d idle; \d+ requests", hear("READY=1")
        )
        hear("WATCHDOG=1")
        family.process.send_signal(signal.SIGHUP)
        assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", hear("RELOADING=1"))
        hear("READY=1")
        family.stop()
        hear("STOPPING=1")
    assert family.complaints() == []
