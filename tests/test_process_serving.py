"""The process model as `gateways serve` has it: directives in, real loops and applications behind them."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.gate import APP as GATED
from tests.gate import Gate
from tests.servers import DEADLINE, Server, read_response, serving, wait_until

APP = """
import os, subprocess, sys, time
count, born = 0, time.monotonic()
def application(environ, start_response):
    global count
    count += 1
    path = environ["PATH_INFO"]
    text = f"{os.getpid()} {count} {os.getuid()}"
    if path == "/slow":
        while True:
            time.sleep(60)
    if path == "/child":
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
        text = str(child.pid)
        globals().setdefault("kept", []).append(child)
    if path == "/waited":
        subprocess.run([sys.executable, "-c", "bytearray(100_000_000)"], check=True)
    if path == "/end":
        os.close(1)
        os.close(2)
        subprocess.Popen(["sleep", "2"], close_fds=False)
        while time.monotonic() < born + 1.5:  # a worker that dies younger makes the next one wait
            time.sleep(0.1)
        os.kill(os.getpid(), 9)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
    return [text.encode()]
"""
REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture
def app(tmp_path: Path) -> str:
    path = tmp_path / "app.py"
    path.write_text(APP)
    return str(path)


def ask(server: Server, path: str = "/") -> list[int]:
    status, body = server.get(path)
    assert status == 200
    return [int(word) for word in body.split()]


def test_fork_a_kept_connection_keeps_its_process_and_ends_with_it(tmp_path: Path, app: str) -> None:
    with serving(tmp_path, app, "--process-manager", "fork", "--max-servers", "3") as server:
        with server.connect() as kept:
            seen = []
            for _ in range(3):
                kept.sendall(REQUEST)
                seen.append(read_response(kept)[1].split()[:2])
            assert seen == [[seen[0][0], b"1"], [seen[0][0], b"2"], [seen[0][0], b"3"]]
            others = [ask(server) for _ in range(4)]
            assert len({pid for pid, _, _ in others} | {int(seen[0][0])}) == 5
            assert {count for _, count, _ in others} == {1}
        wait_until(lambda: int(seen[0][0]) not in server.workers(), "the end of the process")


def test_fork_silent_connections_take_no_more_than_max_servers(tmp_path: Path, app: str) -> None:
    wanted = [r"MaxServers \(2\) reached", "refused a request with 400: the input ended"]
    with serving(tmp_path, app, "--process-manager", "fork", "--max-servers", "2", wanted=wanted) as server:
        silent = [server.connect() for _ in range(2)]
        for client in silent:
            client.sendall(b"G")
        with server.connect() as third:
            third.sendall(REQUEST)
            server.wait_for_log("reached")
            silent[0].close()
            assert read_response(third)[0].startswith(b"HTTP/1.1 200 ")
        silent[1].close()


def test_ondemand_serves_and_rests(tmp_path: Path, app: str) -> None:
    options = ["--process-manager", "ondemand", "--process-idle-timeout", "0.2"]
    with serving(tmp_path, app, *options) as server:
        for _ in range(2):
            wait_until(lambda: server.workers() == [], "rest")
            assert ask(server)[1] == 1


def test_p17_request_timeout_names_the_request_and_shows_the_application(tmp_path: Path, app: str) -> None:
    wanted = [
        r"worker \d+ \(pool main\) is slow: GET /slow\?a=1 for",
        r"worker \d+, thread 1, newest call first: application \(.*app.py:\d+\)",
        r"worker \d+ is killed: GET /slow\?a=1 has taken longer than RequestTimeout \(0.5 s\)",
    ]
    options = ["--process-manager", "static", "--max-servers", "2", "--request-timeout", "0.5"]
    with serving(tmp_path, app, *options, wanted=wanted) as server:
        data = server.exchange(b"GET /slow?a=1 HTTP/1.1\r\nHost: h\r\n\r\n")
        assert data.startswith(b"HTTP/1.1 504 ")
        server.wait_for_log(r"killed by SIGKILL while busy with GET /slow\?a=1 after 0 requests")
        assert ask(server)[0] > 0
        wait_until(lambda: len(server.workers()) == 2, "the replacement")


def test_p06_b113_no_request_is_lost_while_workers_are_succeeded(tmp_path: Path, app: str) -> None:
    options = ["--process-manager", "static", "--max-servers", "4", "--max-requests-per-child", "60"]
    with serving(tmp_path, app, *options) as server:
        failed: list[object] = []

        def client() -> None:
            try:
                for _ in range(100):
                    ask(server)
            except (AssertionError, OSError) as error:
                failed.append(error)

        threads = [threading.Thread(target=client) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        assert failed == []
        server.wait_for_log("exited with status 0", 8)
        wait_until(lambda: len(server.workers()) == 4, "four workers")
        assert re.search(r"after 5[4-9] requests|is replaced by", server.read_log())


def is_open_to_all(path: str) -> bool:
    """True when a user without rights can reach a file."""
    return all(folder.stat().st_mode & 0o001 for folder in Path(path).resolve().parents)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(not is_open_to_all(os.__file__), reason="nobody else can read this Python's library")
def test_p15_the_user_of_a_pool(tmp_path: Path, app: str) -> None:
    # The application stands where nobody can read it: outside the test's own folder, which is root's.
    module = ["tests.process_app:application", "--python-path", str(Path(__file__).parent.parent)]
    del app
    with serving(tmp_path, *module, "--user", "65534", "--group", "65534", "--start-servers", "1") as server:
        assert server.get("/") == (200, b"65534 65534")
    assert server.process.returncode == 0


def test_several_pools_are_announced_and_served(tmp_path: Path, app: str) -> None:
    (tmp_path / "gateways.toml").write_text(
        "".join(
            f'[pool.{name}]\nListen = "{wire}://127.0.0.1:0"\nStartServers = 1\nMinSpareServers = 1\n'
            f'PythonPath = ["."]\n[[pool.{name}.Mount]]\nTarget = "{app}"\n'
            for name, wire in (("one", "http"), ("two", "scgi"))
        )
    )
    with serving(tmp_path, "--config", str(tmp_path / "gateways.toml"), bind=False) as server:
        assert set(server.ports) == {"http", "scgi"}
        assert 'pool "one"' in server.said
        assert 'pool "two"' in server.said
        first = ask(server)[0]
        fields = b"CONTENT_LENGTH\x000\x00SCGI\x001\x00REQUEST_METHOD\x00GET\x00REQUEST_URI\x00/\x00PATH_INFO\x00/\x00"
        answer = server.exchange(b"%d:%s," % (len(fields), fields), wire="scgi")
        assert int(answer.rpartition(b"\r\n")[2].split()[0]) not in (0, first)


def test_p18_b132_a_log_that_was_moved_away_is_written_anew_by_everybody(tmp_path: Path, app: str) -> None:
    with serving(tmp_path, app, "--process-manager", "static", "--max-servers", "1") as server:
        server.log.rename(tmp_path / "error.log.1")
        server.process.send_signal(signal.SIGUSR1)
        with server.connect() as client:
            client.sendall(b"no request at all\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 400 ")
        wait_until(server.log.exists, "the new log")
        server.wait_for_log("refused a request with 400")
        (worker,) = server.workers()
        os.kill(worker, signal.SIGKILL)
        server.wait_for_log(rf"\[{server.pid}\] error: worker {worker} .* was killed by SIGKILL")
        assert f"[{worker}] warning: refused a request with 400" in server.read_log()
        assert "refused" not in (tmp_path / "error.log.1").read_text()
        assert ask(server)[0] > 0
        server.log.write_text("")  # what was provoked was looked at


def test_b129_p01_a_busy_listener_does_not_starve_another(tmp_path: Path, app: str) -> None:
    options = ["--bind", "http://127.0.0.1:0,http://localhost:0", "--process-manager", "static", "--max-servers", "1"]
    with serving(tmp_path, app, *options) as server:
        busy, calm = (int(port) for port in re.findall(r"http://127\.0\.0\.1:([0-9]+)", server.said))
        wait_until(server.workers, "the worker")
        (worker,) = server.workers()
        os.kill(worker, signal.SIGSTOP)
        clients = [socket.create_connection(("127.0.0.1", busy), DEADLINE) for _ in range(50)]
        clients.append(socket.create_connection(("127.0.0.1", calm), DEADLINE))
        for client in clients:
            client.sendall(REQUEST)
        os.kill(worker, signal.SIGCONT)
        places = [int(read_response(client)[1].split()[1]) for client in clients]
        assert places[-1] <= 5, places
        for client in clients:
            client.close()


def test_b134_a_program_that_the_application_starts_has_none_of_our_listeners(tmp_path: Path, app: str) -> None:
    with serving(tmp_path, app, "--process-manager", "static", "--max-servers", "1") as server:
        (child,) = ask(server, "/child")
        held = {os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")}
        assert not {name for name in held if name.startswith(("socket:", "/memfd:"))}, held
        os.kill(child, signal.SIGKILL)


def test_b144_workers_that_close_their_output_and_die_leave_the_supervisor_as_it_was(tmp_path: Path, app: str) -> None:
    dead = [r"was killed by SIGKILL while busy"]
    options = ["--process-manager", "static", "--max-servers", "10"]
    with serving(tmp_path, app, *options, wanted=dead) as server:
        wait_until(lambda: len(server.workers()) == 10, "the workers")
        counts = []
        for done in range(20):
            assert server.exchange(b"GET /end HTTP/1.1\r\nHost: h\r\n\r\n") == b""
            server.wait_for_log("was killed by SIGKILL", done + 1)
            assert ask(server)[0] > 0
            counts.append(len(os.listdir(f"/proc/{server.pid}/fd")))
        assert len(set(counts)) == 1
        wait_until(lambda: read_state(server.pid) == "S", "sleep, and no busy loop")


def test_p03_a_peak_that_may_be_a_child_s_is_said_to_be(tmp_path: Path, app: str) -> None:
    options = ["--process-manager", "static", "--max-servers", "1"]
    with serving(tmp_path, app, *options, wanted=[r"was killed by SIGKILL while"]) as server:
        for path, peak in (("/waited", r"peak 1\d\d MiB \(of it or a child\)"), ("/", r"peak \d\d MiB\n")):
            worker = ask(server, path)[0]
            os.kill(worker, signal.SIGKILL)
            server.wait_for_log(rf"worker {worker} .* was killed by SIGKILL .*, {peak}")


def read_state(pid: int) -> str:
    """The state letter of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_slow_log_is_a_file_of_its_own(tmp_path: Path) -> None:
    slow = tmp_path / "slow.log"
    slow.write_text("")
    options = ("--slow-log", str(slow), "--slow-request-timeout", "0.2", "--start-servers", "1", "--max-servers", "1")
    gate = Gate(tmp_path)
    with closing(gate), serving(tmp_path, GATED, *gate.options, *options) as server:
        line = gate.connect(server, "http")
        slow.rename(tmp_path / "slow.log.1")
        server.process.send_signal(signal.SIGUSR1)
        line.ask("/hold")
        held = gate.wait()
        stack = r"newest call first: application \(\S+gate.py:\d+\)"
        wait_until(lambda: slow.exists() and re.search(stack, slow.read_text()), "the stack")
        gate.open(held)
        assert line.answer().pid == held
        record = slow.read_text().splitlines()[0]
        assert re.search(rf"Z \[\d+\] warning: worker {held} \(pool main\) is slow: GET /hold for \d+\.\d s$", record)
        assert (tmp_path / "slow.log.1").read_text() == ""
