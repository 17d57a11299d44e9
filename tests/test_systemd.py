"""Under systemd: the unit files, the sockets that are passed on, what the manager is told, and life as process 1."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateways.commands import make_parser
from gateways.process.notify import Notifier
from tests.servers import DEADLINE, ROOT, children, has_ended, read_to_end, wait_until

UNITS = ROOT / "conf" / "systemd"
PROGRAM = "/opt/gateways/bin/gateways"
CONF = """
PidFile = "{folder}/pid"
ErrorLog = "{folder}/error.log"
[pool.main]
Listen = [{listen}]
StartServers = 1
MinSpareServers = 1
[[pool.main.Mount]]
Target = "{target}"
"""


# The unit files.


def read_unit(name: str) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((UNITS / name).read_text())
    return unit


def copy_units(folder: Path) -> Path:
    """The units as they are installed, with a program that is there."""
    for unit in UNITS.iterdir():
        (folder / unit.name).write_text(unit.read_text().replace(PROGRAM, sys.executable))
    for name in ("gateways.service", "gateways@.service"):
        (folder / f"{name}.d").mkdir()
        shutil.copy(folder / "hardening.conf", folder / f"{name}.d")
    (folder / "hardening.conf").unlink()
    return folder


@pytest.mark.front("systemd-analyze")
@pytest.mark.parametrize("name", ["gateways.service", "gateways.socket", "gateways@.service"])
def test_systemd_finds_no_fault(tmp_path: Path, front_program: str, name: str) -> None:
    done = subprocess.run(
        [front_program, "verify", "--man=no", "--recursive-errors=no", str(copy_units(tmp_path) / name)],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}, capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "gateways" in line]
    assert (done.returncode, said) == (0, [])


@pytest.mark.front("systemd-analyze")
def test_systemd_says_that_little_is_exposed(tmp_path: Path, front_program: str) -> None:
    unit = copy_units(tmp_path) / "gateways.service"
    done = subprocess.run(
        [front_program, "security", "--offline=true", "--no-pager", str(unit)],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}, capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    match = re.search(r"Overall exposure level for gateways.service: (\d+\.\d)", done.stdout)
    assert match, done.stdout + done.stderr
    assert float(match[1]) < 3.0


@pytest.mark.parametrize("name", ["gateways.service", "gateways@.service"])
def test_the_commands_of_a_unit_are_ours(name: str) -> None:
    service = read_unit(name)["Service"]
    for directive in ("ExecStartPre", "ExecStart", "ExecReload"):
        program, *words = shlex.split(service[directive])
        assert program == PROGRAM
        options, unknown = make_parser().parse_known_args(words)
        assert not unknown
        assert options.run is not None
    pid_file = shlex.split(service["ExecReload"])[-1]
    assert pid_file.startswith(f"/run/{service['RuntimeDirectory']}/")
    assert f'PidFile = "{pid_file.replace("%i", "shop")}"' in (UNITS / name).read_text()


def test_the_template_means_what_the_unit_means() -> None:
    unit, template = read_unit("gateways.service")["Service"], read_unit("gateways@.service")["Service"]
    assert {name: value.replace("-%i", "").replace("%i", "gateways") for name, value in template.items()} == dict(unit)


# What the manager is told.


class Manager:
    """A service manager, as far as a service sees it: a socket that hears."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "notify")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)
        self.sock.settimeout(DEADLINE)
        self.heard: list[dict[str, str]] = []

    def forget(self) -> None:
        """Take what has come until now."""
        self.sock.setblocking(False)
        try:
            while self.sock.recv(4096):
                pass
        except BlockingIOError:
            self.sock.settimeout(DEADLINE)

    def hear(self, name: str, value: str = "") -> dict[str, str]:
        """Return the next message that has an assignment."""
        while True:
            text = self.sock.recv(4096).decode()
            self.heard.append(dict(line.split("=", 1) for line in text.split("\n")))
            if name in self.heard[-1] and value in self.heard[-1][name]:
                return self.heard[-1]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(tmp_path)
    yield manager
    manager.sock.close()


class Service:
    """``gateways serve --config`` as a service manager starts it."""

    def __init__(
        self, folder: Path, conf: Path, command: Sequence[str], fds: Sequence[int] = (), **variables: str
    ) -> None:
        self.folder = folder
        self.conf = conf
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **variables}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, pass_fds=fds,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """The supervisor's, as its PidFile says."""
        return int((self.folder / "pid").read_text())

    def read_log(self) -> str:
        return (self.folder / "error.log").read_text()

    def end(self) -> None:
        family = [pid for pid, _ in children(self.process.pid)]
        self.process.kill()
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.communicate(timeout=DEADLINE)


@contextmanager
def service(
    folder: Path, listen: str, target: str = "tests/apps/probe.py", prefix: Sequence[str] = (), **variables: str
) -> Iterator[Service]:
    conf = folder / "gateways.toml"
    conf.write_text(CONF.format(folder=folder, listen=listen, target=ROOT / target))
    command = [*prefix, sys.executable, "-m", "gateways", "serve", "--config", str(conf)]
    service = Service(folder, conf, command, **variables)
    try:
        yield service
    finally:
        service.end()


WATCHED = [
    sys.executable, "-c",
    "import os, sys; os.environ['WATCHDOG_PID'] = str(os.getpid()); os.execv(sys.argv[1], sys.argv[1:])",
]  # fmt: skip
"""Asks for signs of life of the first main process, as systemd does; its successor has another number."""


def test_the_manager_hears_of_everything_in_its_order(tmp_path: Path, manager: Manager) -> None:
    with service(tmp_path, '"127.0.0.1:0"', prefix=WATCHED, NOTIFY_SOCKET=manager.path, WATCHDOG_USEC="400000") as it:
        said = manager.hear("READY", "1")
        assert said["MAINPID"] == str(it.process.pid)
        assert re.fullmatch(r"0 busy, 1 idle; 0 requests", said["STATUS"])
        for _ in range(2):
            manager.hear("WATCHDOG", "1")
        before = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
        it.process.send_signal(signal.SIGHUP)
        assert int(manager.hear("RELOADING", "1")["MONOTONIC_USEC"]) >= int(before)
        assert "failed" not in manager.hear("READY", "1")["STATUS"]
        good = it.conf.read_text()
        it.conf.write_text(good + "Nonsense = 1\n")
        it.process.send_signal(signal.SIGHUP)
        manager.hear("RELOADING", "1")
        assert manager.hear("READY", "1")["STATUS"].endswith("; the last reload failed, the old workers serve")
        it.conf.write_text(good)
        it.process.send_signal(signal.SIGUSR2)
        successor = int(manager.hear("MAINPID")["MAINPID"])
        assert successor != it.process.pid
        assert it.process.wait(DEADLINE) == 0
        manager.forget()
        manager.hear("WATCHDOG", "1")
        os.kill(successor, signal.SIGTERM)
        manager.hear("STOPPING", "1")
        wait_until(lambda: has_ended(successor), "the successor's end")


BEATS = [
    ({}, False), ({"WATCHDOG_USEC": "1000000"}, True), ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, False),
    ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": str(os.getpid())}, True), ({"WATCHDOG_USEC": "0"}, False),
    ({"WATCHDOG_USEC": "soon"}, False),
]  # fmt: skip


@pytest.mark.parametrize(("variables", "alive"), BEATS)
def test_signs_of_life_are_given_to_who_asks(manager: Manager, variables: dict[str, str], alive: bool) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.path, **variables})
    for moment, status in ((1.0, "one"), (1.1, "two"), (1.6, "two"), (11.5, "one"), (21.6, "two")):
        notifier.beat(moment, lambda: status)  # noqa: B023
    notifier.send("END=1")
    manager.hear("END")
    names = [name for said in manager.heard for name in said]
    assert names.count("WATCHDOG") == (4 if alive else 0)
    assert [said["STATUS"] for said in manager.heard if "STATUS" in said] == ["one", "two"]
    assert notifier.next_beat == (22.1 if alive else 31.6)


def test_without_a_manager_nobody_is_told() -> None:
    notifier = Notifier({"WATCHDOG_USEC": "1000000"})
    assert notifier.next_beat == float("inf")
    notifier.beat(1.0, lambda: pytest.fail("nobody asks"))


# Sockets that are passed on.

ACTIVATE = """
import os, sys
fds, names = sys.argv[1].split(","), sys.argv[2:]
for at, fd in enumerate(fds):
    os.dup2(int(fd), 3 + at)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)))
os.execv(names[0], names)
"""


@contextmanager
def activated(folder: Path, listen: str, *socks: socket.socket) -> Iterator[Service]:
    for sock in socks:
        os.dup2(sock.fileno(), sock.fileno() + 40, inheritable=True)
    given = ",".join(str(sock.fileno() + 40) for sock in socks)
    helper = folder / "activate.py"
    helper.write_text(ACTIVATE)
    conf = folder / "gateways.toml"
    conf.write_text(CONF.format(folder=folder, listen=listen, target=ROOT / "tests/apps/probe.py"))
    command = [sys.executable, str(helper), given, sys.executable, "-m", "gateways", "serve", "--config", str(conf)]
    fds = [sock.fileno() + 40 for sock in socks]
    it = Service(folder, conf, command, fds)
    for fd in fds:
        os.close(fd)
    try:
        yield it
    finally:
        it.end()


def ask(family: int, address: object) -> bytes:
    with socket.socket(family) as sock:
        sock.settimeout(DEADLINE)
        sock.connect(address)
        sock.sendall(b"GET /pid HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        return read_to_end(sock)


def test_the_manager_s_sockets_are_served_and_stay_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as unix, socket.create_server(("127.0.0.1", 0)) as port:
        unix.bind(path)
        unix.listen()
        place = f"127.0.0.1:{port.getsockname()[1]}"
        with activated(tmp_path, f'"{place}", "unix:{path}", "127.0.0.1:0"', port, unix) as it:
            # Before it is ready: the connection waits, and is not refused.
            assert ask(socket.AF_INET, port.getsockname()).startswith(b"HTTP/1.1 200 ")
            assert ask(socket.AF_UNIX, path).startswith(b"HTTP/1.1 200 ")
            os.kill(it.process.pid, signal.SIGTERM)
            assert it.process.wait(DEADLINE) == 0
        assert os.path.exists(path), "the file is the manager's"
        assert port.getsockname()
        with activated(tmp_path, f'"{place}", "unix:{path}"', port, unix) as it:
            assert ask(socket.AF_UNIX, path).startswith(b"HTTP/1.1 200 ")


def test_a_socket_that_no_pool_names_is_a_mistake(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as port, activated(tmp_path, '"127.0.0.1:0"', port) as it:
        output = it.process.communicate(timeout=DEADLINE)[0].decode()
    assert it.process.returncode == 1
    place = f"127.0.0.1:{port.getsockname()[1]}" if port.fileno() >= 0 else "127.0.0.1:"
    assert output.startswith(f"gateways: the service manager has passed a socket on {place}")
    assert output.count("\n") == 1


# Process 1.

ORPHANS = """
import os
def application(environ, start_response):
    if environ["PATH_INFO"] == "/orphan":
        child = os.fork()
        if not child:
            if not os.fork():
                os._exit(3)
            os._exit(0)
        os.waitpid(child, 0)
    states = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getppid():
            states.append(state)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getppid()} {'zombie' if 'Z' in states else 'clean'}".encode()]
"""
SUBREAPER = "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def can_unshare() -> bool:
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, timeout=30, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("as_first", [True, False], ids=["process-1", "subreaper"])
def test_p08_b122_orphans_of_applications_leave_no_zombie(tmp_path: Path, as_first: bool) -> None:
    if as_first and not can_unshare():
        pytest.skip("this user may make no PID namespace")
    (tmp_path / "app.py").write_text(ORPHANS)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        number = probe.getsockname()[1]
    prefix = UNSHARE if as_first else [sys.executable, "-c", SUBREAPER]
    with service(tmp_path, f'"127.0.0.1:{number}"', str(tmp_path / "app.py"), prefix) as it:
        wait_until(lambda: (tmp_path / "error.log").exists() and " workers" in it.read_log(), "the start")

        def visit(path: str) -> bytes:
            with socket.create_connection(("127.0.0.1", number), DEADLINE) as sock:
                sock.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
                return read_to_end(sock).partition(b"\r\n\r\n")[2]

        for _ in range(5):
            visit("/orphan")
        wait_until(lambda: b"clean" in visit("/"), "the last of them to be collected")
        if as_first:
            assert b"1 clean" in visit("/")
        os.kill(it.process.pid if not as_first else children(it.process.pid)[0][0], signal.SIGTERM)
        assert it.process.wait(DEADLINE) == 0
    assert not re.search(r"\] (warning|error): ", it.read_log())
