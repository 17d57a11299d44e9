"""RequestTimeout: what the client of a worker that is killed gets: 504 if nothing was sent, on every wire; or a cut."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateways.process.apologies import copy_socket, is_reached_by
from gateways.process.scoreboard import OWED, Debt, Scoreboard
from tests.clients import ajp, fastcgi
from tests.servers import Server, read_response, read_to_end, serving, wait_until
from tests.wires import ASK, Answer, variables

APP = """
import re, threading, time
def application(environ, start_response):
    path = environ["PATH_INFO"]
    fields = [("Content-Type", "text/plain")]
    if path == "/gil":
        re.match("(a+)+$", "a" * 60 + "b")
    if path == "/half":
        start_response("200 OK", [*fields, ("Content-Length", "100")])(b"half")
    if path in ("/slow", "/half"):
        threading.Lock().acquire() and threading.Event().wait()
    if path == "/late":
        return Late(start_response)
    start_response("200 OK", fields)
    return [b"served"]
class Late:
    def __init__(self, start_response):
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "6")])
    def __iter__(self):
        return iter([b"served"])
    def close(self):
        threading.Event().wait()
"""
WIRES = ("http", "fastcgi", "scgi", "ajp", "uwsgi")
KILLED = (r"is slow: ", r"thread \d+, newest call first", r"has taken longer than RequestTimeout")
TEXT = b"504 Gateway Timeout\nthe application took too long\n"


def ask_ajp(server: Server, path: str) -> Answer:
    """One that does not expect the connection to be kept."""
    with server.connect(wire="ajp") as sock:
        answer = ajp.Front(sock).exchange(ajp.forward("GET", path, [("Host", "h")]))
        assert answer.reuse is False
    return Answer(answer.status, answer.body, int(answer.get("Content-Length") or -1))


@pytest.fixture(scope="module", autouse=True)
def _permitted() -> None:
    """Skip where the kernel lets nobody copy a descriptor, not even of a child."""
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen(["cat"], stdin=theirs, stdout=subprocess.DEVNULL) as child:
        theirs.close()
        try:
            copy_socket(child.pid, 0).close()
        except PermissionError:
            pytest.skip("this system does not allow pidfd_getfd")
        finally:
            ours.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("apologies")
    (folder / "app.py").write_text(APP)
    bind = ",".join(f"{wire}://127.0.0.1:0" for wire in WIRES) + f",http://unix:{folder}/http.sock"
    options = ["--bind", bind, "--process-manager", "static", "--max-servers", "8", "--request-timeout", "0.2"]
    with serving(folder, str(folder / "app.py"), *options, tolerated=KILLED) as running:
        yield running


def test_p17_on_every_wire_the_client_gets_504_when_nothing_was_sent(server: Server) -> None:
    answers: dict[str, Answer] = {}

    def ask(wire: str) -> None:
        answers[wire] = ask_ajp(server, "/slow") if wire == "ajp" else ASK[wire](server, "/slow", None)

    threads = [threading.Thread(target=ask, args=(wire,)) for wire in WIRES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == dict.fromkeys(WIRES, Answer(504, TEXT, len(TEXT)))
    server.wait_for_log("its client was answered 504", len(WIRES))


def test_p17_a_fastcgi_request_is_answered_by_its_own_number(server: Server) -> None:
    answer = fastcgi.parse_answer(
        server.exchange(fastcgi.request(variables("/slow", None), rid=4711, keep=1), "fastcgi"), 4711
    )
    assert answer.ends == [(0, 0)]
    assert answer.out.startswith(b"Status: 504 Gateway Timeout\r\n")


@pytest.mark.parametrize("head", ["GET /gil", "HEAD /gil"])
def test_p17_a_worker_that_holds_the_interpreter_is_answered_for(server: Server, head: str) -> None:
    data = server.exchange(f"{head} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    start, _, body = data.partition(b"\r\n\r\n")
    assert start.startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
    assert b"\r\nConnection: close" in start
    assert body == (TEXT if head.startswith("GET") else b"")


def test_p17_the_second_request_of_a_kept_connection_and_a_body_that_nobody_reads(server: Server) -> None:
    with server.connect() as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert read_response(sock)[1] == b"served"
        sock.sendall(b"POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" + bytes(200_000))
        data = read_to_end(sock)
    assert data.startswith(b"HTTP/1.1 504 ")
    assert data.endswith(TEXT)


def test_p17_a_unix_socket(server: Server) -> None:
    path = re.search(r"unix:(\S+)", server.said)
    assert path is not None
    command = ["curl", "-s", "-o", "-", "-w", "%{http_code}", "--unix-socket", path[1], "http://h/slow"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == TEXT + b"504"


@pytest.mark.parametrize(("path", "sent"), [("/half", b"half"), ("/late", b"served")])
@pytest.mark.parametrize("kept", [False, True], ids=["new", "kept"])
def test_p17_nothing_is_added_to_a_response_that_has_begun(server: Server, path: str, sent: bytes, kept: bool) -> None:
    with server.connect() as sock:
        if kept:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            assert read_response(sock)[1] == b"served"
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        data = read_to_end(sock)
    assert data.startswith(b"HTTP/1.1 200 OK\r\n")
    assert data.partition(b"\r\n\r\n")[2] == sent


def list_connections(server: Server) -> set[str]:
    """The sockets of connections to the server that are open at its end (proc_net_tcp(5))."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ports = set(server.ports.values())
    return {f"socket:[{row[9]}]" for row in rows if int(row[1].partition(":")[2], 16) in ports and row[3] != "0A"}


def list_sockets(pid: int) -> set[str]:
    """The sockets that a process holds, none when it is gone."""
    try:
        return {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return set()


def test_p13_no_copy_of_a_connection_stays_open(server: Server) -> None:
    for _ in range(3):
        assert server.exchange(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n").startswith(b"HTTP/1.1 504 ")

    def is_clean() -> bool:
        open_ones = list_connections(server)
        return not any(list_sockets(pid) & open_ones for pid in (server.pid, *server.workers()))

    # Not at once: the supervisor closes a copy after two seconds, and a worker just forked has them all.
    wait_until(is_clean, "the end of the copies")


# What a worker writes into shared memory is a hint (P14).


def test_p14_a_descriptor_that_is_no_connection_is_not_written_to() -> None:
    process = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE)
    try:
        for fd in (0, 99):
            with pytest.raises(OSError, match=r"Bad file|Socket operation|not a connection"):
                copy_socket(process.pid, fd)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize(
    ("word", "debt"),
    [(0, None), (1, Debt(0, 0)), (8, Debt(7, 0)), (4711 << 32 | 8, Debt(7, 4711)), (-1, None), (-(1 << 40), None),
     (1 << 62, None), (1 << 48 | 8, None)],
)  # fmt: skip
def test_p14_a_debt_that_makes_no_sense_is_none(word: int, debt: Debt | None) -> None:
    board = Scoreboard(2)
    board._words[board._start(1) + OWED] = word
    assert board.read_debt(1) == debt
    assert board.read_debt(0) is None
    board.open_line(1, 1, 0.0)
    assert board.read_debt(1) is None


def test_a_debt_is_what_was_owed_until_the_answer() -> None:
    board = Scoreboard(1)
    slot = board.slot(0)
    slot.owe(12, 65535)
    assert board.read_debt(0) == Debt(12, 65535)
    slot.note("x" * 500)
    assert board.read_debt(0) == Debt(12, 65535)
    slot.answer()
    assert board.read_debt(0) is None


@pytest.mark.parametrize(
    ("bound", "name", "reached"),
    [
        (("127.0.0.1", 80), ("127.0.0.1", 80), True),
        (("127.0.0.1", 80), ("127.0.0.1", 81), False),
        (("0.0.0.0", 80), ("192.0.2.1", 80), True),
        (("::", 80, 0, 0), ("2001:db8::1", 80, 0, 0), True),
        (("192.0.2.2", 80), ("192.0.2.1", 80), False),
        ("/run/a.sock", "/run/a.sock", True),
        ("/run/a.sock", "", False),
        ("/run/a.sock", ("127.0.0.1", 80), False),
    ],
)
def test_which_listener_a_connection_came_by(bound: object, name: object, reached: bool) -> None:
    assert is_reached_by(bound, name) is reached


def test_the_log_of_a_killed_worker_says_that_its_client_was_answered(server: Server, tmp_path: Path) -> None:
    del tmp_path
    server.exchange(b"GET /slow?b=2 HTTP/1.1\r\nHost: h\r\n\r\n")
    server.wait_for_log(r"worker \d+ is killed: GET /slow\?b=2 has taken longer than RequestTimeout \(0.2 s\)")
    log = server.read_log()
    killed = re.findall(r"worker (\d+) is killed: GET /slow\?b=2", log)[-1]
    server.wait_for_log(rf"worker {killed}: its client was answered 504")
