"""Our workers under a real gunicorn: what it is told, and its life cycle."""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path

import pytest

from tests.clients import fastcgi, scgi
from tests.gunicorn_server import Gunicorn, hosted, run_to_end
from tests.servers import DEADLINE, children, has_ended, read_response, wait_until

pytest.importorskip("gunicorn")

GUEST = "tests.apps.guest:application"
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


def make_gate(folder: Path) -> Path:
    os.mkfifo(folder / "gate")
    return folder / "gate"


def wait_for_runners(folder: Path, count: int = 1) -> list[int]:
    """Wait until so many requests run; return the pids of their workers."""
    file = folder / "running"
    wait_until(lambda: file.exists() and file.read_text().count("\n") >= count, "a request that runs")
    return list(map(int, file.read_text().split()))


def get_pid(server: Gunicorn) -> int:
    status, body = server.get("/")
    assert status == 200
    return int(body)


# What is spoken, and what runs.


def test_the_application_that_gunicorn_loads_is_called_by_wsgi(tmp_path: Path) -> None:
    with hosted(tmp_path, GUEST) as server:
        assert server.get("/mode") == (200, b"wsgi")
        assert get_pid(server) in server.workers()


def test_a_factory_and_a_preloaded_application(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(
        "def make():\n    from tests.apps.guest import application\n    return application\n"
    )
    with hosted(tmp_path, "--preload", "--pythonpath", str(tmp_path), "made:make()") as server:
        assert server.get("/mode") == (200, b"wsgi")


@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("handler", "apps.hello:handler"),
        ("", "apps/hello.py"),
        ("handler", "apps/hello.py"),
        ("cgi", "apps/hello.py"),
        ("zygote", "apps/hello.py"),
        ("perlrun", "apps/hello.py"),
        ("registry", "apps/hello.py"),
    ],
)
def test_every_execution_model(tmp_path: Path, model: str, target: str) -> None:
    options = ["--env", f"GATEWAYS_MODEL={model}"] if model else []
    with hosted(tmp_path, *options, target) as server:
        for _ in range(2):
            status, body = server.get("/gateway")
            assert (status, f"GATEWAYS_MODE: {model or 'wsgi'}\n".encode() in body) == (200, True), body


def test_a_folder_of_programs_and_a_script_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "cgi-bin"
    folder.mkdir()
    script = folder / "one.cgi"
    script.write_text("#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s' \"$GATEWAY_INTERFACE\"\n")
    script.chmod(0o755)
    with hosted(tmp_path, f"{folder}/") as server:
        assert server.get("/one.cgi") == (200, b"CGI/1.1")


def test_several_wires_in_one_worker(tmp_path: Path) -> None:
    bind = [f"unix:{tmp_path}/http", f"unix:{tmp_path}/fastcgi", f"unix:{tmp_path}/scgi"]
    pairs = [(b"REQUEST_METHOD", b"GET"), (b"PATH_INFO", b"/mode"), (b"SCRIPT_NAME", b"")]
    messages = {
        "http": b"GET /mode HTTP/1.0\r\n\r\n",
        "fastcgi": fastcgi.request(pairs),
        "scgi": scgi.request(pairs),
    }
    with hosted(tmp_path, "--env", "GATEWAYS_WIRE=http,fastcgi,scgi", GUEST, bind=bind):
        for name, message in messages.items():
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(DEADLINE)
                sock.connect(str(tmp_path / name))
                sock.sendall(message)
                sock.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: sock.recv(65536), b""))
            assert b"wsgi" in answer, (name, answer)


def test_the_limits_are_gunicorn_s(tmp_path: Path) -> None:
    with hosted(tmp_path, "--limit-request-line", "100", GUEST, wanted=[r"\] warning: .* 414"]) as server:
        assert server.get("/" + "x" * 100)[0] == 414


@pytest.mark.parametrize("wire", ["http", "fastcgi"])
def test_B137_the_access_log_is_gunicorn_s(tmp_path: Path, wire: str) -> None:
    log = tmp_path / "access.log"
    form = '%(h)s "%(r)s" %(s)s %(B)s "%(a)s" %(U)s'
    pairs = [
        (b"REQUEST_METHOD", b"GET"), (b"REQUEST_URI", b"/mode%0aFAKE"), (b"PATH_INFO", b"/mode"),
        (b"SCRIPT_NAME", b""), (b"SERVER_PROTOCOL", b"HTTP/1.1"), (b"HTTP_USER_AGENT", b'a" "b\r\nc'),
        (b"REMOTE_ADDR", b"127.0.0.1"),
    ]  # fmt: skip
    messages = {
        "http": b'GET /%0aFAKE HTTP/1.0\r\nUser-Agent: a" "b\r\n\r\n',
        "fastcgi": fastcgi.request(pairs),
    }
    options = ["--access-logfile", str(log), "--access-logformat", form, "--env", f"GATEWAYS_WIRE={wire}"]
    with hosted(tmp_path, *options, GUEST) as server:
        server.exchange(messages[wire])
        wait_until(lambda: log.exists() and log.read_text().endswith("\n"), "a line")
    lines = log.read_text().splitlines()
    assert len(lines) == 1, lines
    line = re.compile(r'127\.0\.0\.1 "GET /(mode)?%0aFAKE HTTP/1\.[01]" 200 \d+ "a(\\"|\\x22) (\\"|\\x22)b')
    assert line.match(lines[0]), lines


@pytest.mark.parametrize(
    ("arguments", "variables", "sentence"),
    [
        (["--certfile", "apps/hello.py", "--keyfile", "apps/hello.py"], {}, "there is no TLS here"),
        (["--proxy-protocol", "auto"], {}, "--proxy-protocol is refused"),
        (["--env", "GATEWAYS_WIER=fastcgi"], {}, "there is no setting GATEWAYS_WIER; did you mean GATEWAYS_WIRE?"),
        (["--env", "GATEWAYS_MAX_SERVERS=3"], {}, "GATEWAYS_MAX_SERVERS is no setting here: --workers decides that"),
        ([], {"GATEWAYS_WIRE": "gopher"}, "GATEWAYS_WIRE must be"),
        ([], {"GATEWAYS_WIRE": "http,scgi"}, "names 2 wires, and there are 1 addresses"),
        ([], {"GATEWAYS_MODEL": "perl"}, "GATEWAYS_MODEL must be one of"),
        ([], {"GATEWAYS_WIRE": "scgi", "GATEWAYS_BODY_RATE": "fast"}, "GATEWAYS_BODY_RATE must be"),
        (["--env", "GATEWAYS_MODEL=registry"], {}, "runs a file from its top"),
    ],
)
def test_what_cannot_be_done_is_said_at_the_start(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], sentence: str
) -> None:
    status, said = run_to_end(tmp_path, *arguments, GUEST, variables=variables)
    assert status in (1, 4), said
    assert sentence in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("wire", "secret"), [("fastcgi", ""), ("ajp", "file:/dev/null")])
def test_F01_a_wire_that_believes_its_peer_is_not_open_to_everybody(tmp_path: Path, wire: str, secret: str) -> None:
    variables = {"GATEWAYS_WIRE": wire} | ({"GATEWAYS_SECRET": secret} if secret else {})
    status, said = run_to_end(tmp_path, GUEST, bind="0.0.0.0:0", variables=variables)
    assert status == 1, said
    assert "every interface" in said or "GATEWAYS_SECRET" in said


def test_a_variable_that_is_no_setting_is_told_but_stops_nothing(tmp_path: Path) -> None:
    with hosted(
        tmp_path, GUEST, variables={"GATEWAYS_SERVICE_HOST": "10.0.0.1"}, wanted=["no setting GATEWAYS_SERVICE_HOST"]
    ) as server:
        assert server.get("/")[0] == 200


def test_an_application_that_cannot_be_loaded_stops_the_arbiter(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('broken on purpose')\n")
    for target in ("broken:application", f"{tmp_path}/broken.py:application"):
        status, said = run_to_end(tmp_path, "--pythonpath", str(tmp_path), target, variables={})
        assert status in (3, 4), said
        assert "broken on purpose" in said


# The life cycle.


def test_a_worker_that_waits_gives_signs_of_life_and_one_that_is_stuck_is_ended(tmp_path: Path) -> None:
    make_gate(tmp_path)
    wanted = [r"\] critical: WORKER TIMEOUT", r"\] error: GET /block: the application failed: SystemExit"]
    tolerated = ["^    ", r"\] error: Worker .* exited with code 1"]
    with hosted(tmp_path, "--workers", "2", "--timeout", "3", GUEST, wanted=wanted, tolerated=tolerated) as server:
        wait_until(lambda: len(server.workers()) == 2, "two workers")
        before = set(server.workers())
        status, body = server.get("/block")
        assert (status, body) == (500, b"500 Internal Server Error\n")
        (stuck,) = wait_for_runners(tmp_path)
        wait_until(lambda: stuck not in server.workers() and len(server.workers()) == 2, "a new worker")
        (idle,) = before - {stuck}
        assert idle in server.workers(), "the idle one was taken for stuck"


def test_a_stuck_application_that_swallows_the_order_is_ended_all_the_same(tmp_path: Path) -> None:
    make_gate(tmp_path)
    tolerated = [r"WORKER TIMEOUT", r"\] error: Worker .* was sent SIGKILL"]
    with hosted(tmp_path, "--timeout", "2", GUEST, wanted=tolerated) as server, server.connect() as sock:
        sock.sendall(b"GET /swallow HTTP/1.1\r\nHost: h\r\n\r\n")
        (stuck, _) = wait_for_runners(tmp_path, 2)
        wait_until(lambda: stuck not in server.workers(), "its end")
        server.wait_for_log("was sent SIGKILL")


def test_TERM_lets_a_request_finish(tmp_path: Path) -> None:
    gate = make_gate(tmp_path)
    with hosted(tmp_path, GUEST) as server, server.connect() as sock:
        sock.sendall(b"GET /block HTTP/1.1\r\nHost: h\r\n\r\n")
        wait_for_runners(tmp_path)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_log("Handling signal: term")
        gate.write_bytes(b"go")
        assert read_response(sock)[1] == b"done"
        assert server.process.wait(DEADLINE) == 0


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGINT])
def test_QUIT_and_INT_end_a_request_with_500(tmp_path: Path, number: signal.Signals) -> None:
    make_gate(tmp_path)
    wanted = [r"\] error: GET /block: the application failed: SystemExit"]
    with hosted(tmp_path, GUEST, wanted=wanted, tolerated=["^    "]) as server, server.connect() as sock:
        sock.sendall(b"GET /block HTTP/1.1\r\nHost: h\r\n\r\n")
        wait_for_runners(tmp_path)
        assert server.stop(number) == 0
        assert read_response(sock)[0].startswith(b"HTTP/1.1 500 ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGINT])
def test_idle_workers_end_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with hosted(tmp_path, "--workers", "2", "--keep-alive", "5", GUEST) as server:
        assert server.get("/")[0] == 200
        assert server.stop(number) == 0


def test_max_requests_with_jitter_replaces_the_worker_and_loses_nothing(tmp_path: Path) -> None:
    with hosted(tmp_path, "--max-requests", "3", "--max-requests-jitter", "2", GUEST) as server:
        pids = [get_pid(server) for _ in range(20)]
        runs = [pids.count(pid) for pid in dict.fromkeys(pids)]
        assert all(3 <= run <= 5 for run in runs[:-1]), runs
        assert len(runs) >= 4
        server.wait_for_log("Autorestarting worker after current request", len(runs) - 1)


def test_HUP_renews_the_workers_and_their_code_and_a_kept_connection_is_answered(tmp_path: Path) -> None:
    code = "def application(environ, start_response):\n    start_response('200 OK', [])\n    return [b'%s']\n"
    (tmp_path / "renewed.py").write_text(code % "old")
    os.utime(tmp_path / "renewed.py", (1, 1))
    options = ["--keep-alive", "20", "--pythonpath", str(tmp_path), "renewed:application"]
    with hosted(tmp_path, *options) as server, server.connect() as sock:
        sock.sendall(GET)
        assert read_response(sock)[1] == b"old"
        old = server.workers()
        (tmp_path / "renewed.py").write_text(code % "new")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("Booting worker", 2)
        wait_until(lambda: server.get("/")[1] == b"new", "the new code")
        sock.sendall(GET)
        head, body, _ = read_response(sock)
        if body == b"old":
            assert b"\r\nConnection: close" in head or old[0] in server.workers()
        wait_until(lambda: not set(old) & set(server.workers()), "the end of the old worker", 30)


def test_workers_end_when_the_arbiter_is_killed(tmp_path: Path) -> None:
    with hosted(tmp_path, "--workers", "2", GUEST) as server:
        wait_until(lambda: len(server.workers()) == 2, "two workers")
        workers = server.workers()
        server.process.kill()
        server.process.wait()
        wait_until(lambda: all(map(has_ended, workers)), "their end")
        assert len(re.findall("Parent changed, shutting down", server.read_log())) == 2


def test_TTIN_and_TTOU_change_the_number_of_workers(tmp_path: Path) -> None:
    with hosted(tmp_path, GUEST) as server:
        server.process.send_signal(signal.SIGTTIN)
        wait_until(lambda: len(server.workers()) == 2, "a second worker")
        server.process.send_signal(signal.SIGTTOU)
        wait_until(lambda: len(server.workers()) == 1, "one worker")
        assert server.get("/")[0] == 200
        assert children(server.pid)
