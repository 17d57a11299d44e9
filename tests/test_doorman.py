"""The doorman: no connection waits for one worker alone, and a full pool says so (C16).

Real servers. A worker is held by a request at a gate, so that nothing here depends on time: what is answered while it
is held was answered by another, and every answer says by whom.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateways.process.visiting import read_status
from tests.clients import scgi, uwsgi
from tests.gate import APP, KEEPING, Gate, Line
from tests.servers import Server, children, read_to_end, serving, wait_until
from tests.wires import WIRES, variables

TWO = ["--process-manager", "static", "--max-servers", "2"]
ONE = ["--process-manager", "static", "--max-servers", "1"]


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    found = Gate(tmp_path)
    yield found
    found.close()


@pytest.fixture
def status(tmp_path: Path) -> str:
    """Where the status port is, a UNIX socket."""
    return f"unix:{tmp_path}/status"


def read_pool(status: str) -> dict[str, Any]:
    pool: dict[str, Any] = read_status(status)["pools"][0]
    return pool


def find_doorman(server: Server) -> int:
    (pid,) = re.findall(r"doorman ([0-9]+): pool", server.read_log())[-1:]
    return int(pid)


def open_lines(gate: Gate, server: Server, wire: str, path: str = "", wanted: int = 2) -> list[Line]:
    """Kept connections of one worker, ``wanted`` of them."""
    found: dict[int, list[Line]] = {}
    while True:
        line = gate.connect(server, wire, path)
        pid = line.get().pid
        found.setdefault(pid, []).append(line)
        if len(found[pid]) == wanted:
            for other in [each for key, lines in found.items() if key != pid for each in lines]:
                other.close()
            return found[pid]


# ---- kept connections ----


@pytest.mark.parametrize(
    ("wire", "manager"),
    [("http", TWO), ("fastcgi", TWO), ("ajp", TWO), ("http", ["--start-servers", "2", "--max-servers", "2"]),
     ("http", ["--process-manager", "ondemand", "--max-servers", "2"])],
    ids=["http", "fastcgi", "ajp", "dynamic", "ondemand"],
)  # fmt: skip
def test_a_request_for_a_busy_worker_goes_to_a_free_one(
    tmp_path: Path, gate: Gate, status: str, wire: str, manager: list[str]
) -> None:
    arguments = [APP, *manager, *gate.options, "--bind", f"{wire}://127.0.0.1:0", "--status-listen", status]
    with serving(tmp_path, *arguments) as server:
        first, second = open_lines(gate, server, wire)
        for times in (1, 2):
            first.ask("/hold")
            held = gate.wait()
            other = second.get()
            assert (other.status, other.pid != held) == (200, True)
            assert second.get() == other
            gate.open(held)
            assert first.answer().pid == held
            assert read_pool(status)["passed"] >= 1, times
        assert second.get().status == 200
        assert first.get().status == 200


def test_a_request_for_a_busy_worker_goes_to_a_free_one_on_a_unix_socket(tmp_path: Path, gate: Gate) -> None:
    path = f"{tmp_path}/http"
    with serving(tmp_path, APP, *TWO, *gate.options, "--bind", f"unix:{path}") as server:
        first, second = open_lines(gate, server, "http", path)
        first.ask("/hold")
        held = gate.wait()
        assert second.get().pid != held
        gate.open(held)
        assert first.answer().pid == held


def test_without_sharing_it_waits_for_its_own_worker(tmp_path: Path, gate: Gate) -> None:
    with serving(tmp_path, APP, *TWO, *gate.options, "--share-connections", "off") as server:
        first, second = open_lines(gate, server, "http")
        first.ask("/hold")
        held = gate.wait()
        second.ask()
        gate.open(held)
        assert (first.answer().pid, second.answer().pid) == (held, held)
        assert "doorman" not in server.read_log()


def test_a_request_that_has_begun_stays_with_its_worker(tmp_path: Path, gate: Gate) -> None:
    with serving(tmp_path, APP, *TWO, *gate.options) as server:
        first, second, third = open_lines(gate, server, "http", wanted=3)
        second.sock.sendall(b"GET / HTTP/1.1\r\n")
        # Whoever answers this has looked at the other connection before.
        assert first.get().status == 200
        first.ask("/hold")
        held = gate.wait()
        second.sock.sendall(b"Host: h\r\n\r\n")
        assert third.get().pid != held
        gate.open(held)
        assert (first.answer().pid, second.answer().pid) == (held, held)
        # It may move again once it was answered.
        first.ask("/hold")
        assert gate.wait() == held
        assert second.get().pid != held
        gate.open(held)
        assert first.answer().pid == held


def test_pipelined_requests_stay_in_order_and_with_their_worker(tmp_path: Path, gate: Gate) -> None:
    with serving(tmp_path, APP, *TWO, *gate.options) as server:
        first, second = open_lines(gate, server, "http")
        first.ask("/hold")
        held = gate.wait()
        first.ask()
        assert second.get().pid != held
        first.ask()
        gate.open(held)
        data = b""
        while data.count(b"HTTP/1.1 200 OK") < 3 or not data.endswith(b"%d" % held):
            piece = first.sock.recv(65536)
            assert piece
            data += piece
        assert data.count(b"\r\n\r\n%d" % held) == 3


def test_a_post_whose_body_comes_later_is_answered_once(tmp_path: Path, gate: Gate) -> None:
    with serving(tmp_path, APP, *TWO, *gate.options) as server:
        first, second = open_lines(gate, server, "http")
        for _ in range(3):
            first.ask("/hold")
            held = gate.wait()
            second.sock.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
            second.sock.sendall(b"hello")
            assert second.answer().pid != held
            gate.open(held)
            assert first.answer().pid == held


ENDS = {
    "by its client's wish": (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK", []),
    "cut": (b"GET /short HTTP/1.1\r\nHost: h\r\n\r\n", b"HTTP/1.1 200 OK", ["shorter than its Content-Length"]),
    "refused": (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 ", ["refused a request with 400"]),
    "with its worker": (b"GET /die HTTP/1.1\r\nHost: h\r\n\r\n", b"", ["exit status 3|exited with|ended"]),
}
"""How a connection ends that another worker has taken -> request, beginning of the answer, what is logged."""


@pytest.mark.parametrize("way", ENDS)
def test_the_end_of_a_connection_that_was_taken_is_seen_while_its_worker_is_held(
    tmp_path: Path, gate: Gate, way: str
) -> None:
    request, begins, wanted = ENDS[way]
    with serving(tmp_path, APP, *TWO, *gate.options, wanted=wanted) as server:
        first, second = open_lines(gate, server, "http")
        first.ask("/hold")
        held = gate.wait()
        second.sock.sendall(request)
        assert read_to_end(second.sock).startswith(begins)
        gate.open(held)
        assert first.answer().pid == held
        assert first.get().pid == held


def test_a_connection_goes_from_worker_to_worker_and_is_ended_by_none_of_them(tmp_path: Path, gate: Gate) -> None:
    with serving(tmp_path, APP, *TWO, *gate.options) as server:
        first, second = open_lines(gate, server, "http")
        for _ in range(4):
            first.ask("/hold")
            held = gate.wait()
            other = second.get().pid
            assert other != held
            # Now it is the other's, and goes on when that one is held.
            third = gate.connect(server, "http")
            assert third.get().pid == other
            third.ask("/hold")
            assert gate.wait() == other
            gate.open(held)
            assert first.answer().pid == held
            assert second.get().pid == held
            gate.open(other)
            assert third.answer().pid == other
            assert third.get().status == 200
            assert second.get().pid == held
            third.close()


def test_a_reload_while_a_worker_is_held_loses_no_request(tmp_path: Path, gate: Gate) -> None:
    with serving(tmp_path, APP, *TWO, *gate.options) as server:
        first, second = open_lines(gate, server, "http")
        first.ask("/hold")
        held = gate.wait()
        assert second.get().pid != held
        os.kill(server.pid, signal.SIGHUP)
        server.wait_for_log("generation 2 of pool main serves")
        second.ask()
        gate.open(held)
        assert first.answer().pid == held
        assert second.answer().status == 200
        assert gate.connect(server, "http").get().status == 200


def test_workers_that_leave_after_their_requests_lose_none(tmp_path: Path, gate: Gate) -> None:
    arguments = [APP, *TWO, *gate.options, "--max-requests-per-child", "7", "--max-requests-jitter", "0"]
    with serving(tmp_path, *arguments) as server:
        for _ in range(4):
            lines = [gate.connect(server, "http") for _ in range(6)]
            for line in lines:
                line.ask()
            assert {line.answer().status for line in lines} == {200}
            for line in lines:
                line.close()
            holder = gate.connect(server, "http")
            holder.ask("/hold")
            held = gate.wait()
            assert gate.connect(server, "http").get().pid != held
            gate.open(held)
            assert holder.answer().pid == held


def test_a_doorman_that_is_killed_is_missed_by_nobody_for_long(tmp_path: Path, gate: Gate) -> None:
    wanted = [r"doorman \d+ \(pool main\) was killed by SIGKILL", "the doorman does not answer: closing 2 waiting"]
    with serving(tmp_path, APP, *TWO, *gate.options, wanted=wanted) as server:
        first, second, third = open_lines(gate, server, "http", wanted=3)
        first.ask("/hold")
        held = gate.wait()
        other = second.get().pid
        assert other != held
        os.kill(find_doorman(server), signal.SIGKILL)
        server.wait_for_log("was killed by SIGKILL")
        gate.open(held)
        assert first.answer().pid == held
        # Nobody can say whether the third was taken, so it is closed; the second is another's, the first was served.
        assert first.get().pid == held
        assert third.sock.recv(1) == b""
        assert second.get().pid == other
        first, second = open_lines(gate, server, "http")
        first.ask("/hold")
        held = gate.wait()
        assert second.get().pid != held
        gate.open(held)
        assert first.answer().pid == held


def test_a_worker_that_dies_takes_its_waiting_connections_along(tmp_path: Path, gate: Gate) -> None:
    with serving(tmp_path, APP, *TWO, *gate.options, wanted=[r"exited with status 3"]) as server:
        first, second, third = open_lines(gate, server, "http", wanted=3)
        first.ask("/hold")
        held = gate.wait()
        assert second.get().pid != held
        gate.open(held)
        assert first.answer().pid == held
        first.ask("/die")
        assert first.sock.recv(1) == b""
        assert third.sock.recv(1) == b""
        assert second.get().status == 200


# ---- a full pool ----


def ask_closing(gate: Gate, server: Server, wire: str, path: str) -> bytes:
    """Everything that is answered to a request that is the last of its connection, whatever the wire."""
    if wire in KEEPING:
        line = gate.connect(server, wire)
        said = line.get(path)
        assert line.sock.recv(1) == b"", "the connection of a full pool is closed"
        return f"{said.status} {said.retry_after}".encode()
    pairs = [*variables(path, None), (b"CONTENT_LENGTH", b"0")]
    with server.connect(wire=wire) as sock:
        sock.sendall(scgi.request(variables(path, None), b"") if wire == "scgi" else uwsgi.packet(pairs, b""))
        data = read_to_end(sock)
    status, retry = re.search(rb"[: .1]([0-9]{3}) ", data), re.search(rb"Retry-After: ([0-9]+)", data)
    assert status is not None, data
    return status[1] + b" " + (retry[1] if retry else b"")


@pytest.mark.parametrize("wire", WIRES)
def test_beyond_max_queue_a_full_pool_answers_503_and_the_status_port_still_answers(
    tmp_path: Path, gate: Gate, status: str, wire: str
) -> None:
    arguments = [
        APP,
        *ONE,
        *gate.options,
        "--max-queue",
        "1",
        "--bind",
        "127.0.0.1:0",
        "--bind",
        f"{wire}://127.0.0.1:0",
    ]
    wanted = [r"pool main is full: 1 connections were answered 503; raise MaxServers \(1\), MaxQueue \(1\)"]
    with serving(tmp_path, *arguments, "--status-listen", status, wanted=wanted) as server:
        first, second = gate.connect(server, "http"), gate.connect(server, "http")
        first.ask("/hold")
        held = gate.wait()
        second.ask()
        wait_until(lambda: read_pool(status)["waiting"] == 1, "one that waits")
        assert ask_closing(gate, server, wire, "/") == b"503 1"
        pool = read_pool(status)
        assert (pool["waiting"], pool["turned_away"], pool["timed_out"]) == (1, 1, 0)
        gate.open(held)
        assert (first.answer().pid, second.answer().pid) == (held, held)
        wait_until(lambda: read_pool(status)["waiting"] == 0, "nobody to wait")
        assert gate.connect(server, "http").get().pid == held


def test_nobody_waits_longer_than_queue_timeout(tmp_path: Path, gate: Gate, status: str) -> None:
    arguments = [APP, *ONE, *gate.options, "--queue-timeout", "0.1", "--status-listen", status]
    with serving(tmp_path, *arguments, wanted=["is full: 1 connections"]) as server:
        first, second = gate.connect(server, "http"), gate.connect(server, "http")
        first.ask("/hold")
        held = gate.wait()
        assert second.get()[::2] == (503, "1")
        assert read_pool(status)["timed_out"] == 1
        gate.open(held)
        assert first.answer().pid == held


def test_who_is_turned_away_reads_so_also_with_a_body_on_its_way(tmp_path: Path, gate: Gate) -> None:
    arguments = [APP, *ONE, *gate.options, "--queue-timeout", "0.1"]
    with serving(tmp_path, *arguments, wanted=["is full: 1 connections"]) as server:
        first = gate.connect(server, "http")
        first.ask("/hold")
        held = gate.wait()
        with server.connect() as sock:
            sock.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n")
            sock.sendall(bytes(1_000_000))
            sock.sendall(bytes(2_000_000))
            assert read_to_end(sock).startswith(b"HTTP/1.1 503 ")
        gate.open(held)
        assert first.answer().pid == held


def test_a_stop_while_the_pool_is_full_answers_whoever_waits(tmp_path: Path, gate: Gate, status: str) -> None:
    arguments = [APP, *ONE, *gate.options, "--max-queue", "9", "--status-listen", status]
    with serving(tmp_path, *arguments, tolerated=["pool main is full"]) as server:
        first, second = gate.connect(server, "http"), gate.connect(server, "http")
        first.ask("/hold")
        held = gate.wait()
        second.ask()
        wait_until(lambda: read_pool(status)["waiting"] == 1, "one that waits")
        os.kill(server.pid, signal.SIGQUIT)
        server.wait_for_log("retire")
        gate.open(held)
        assert first.answer().pid == held
        assert second.answer().status in (200, 503)
        gate.close_lines()
        assert server.process.wait(20) == 0
        assert children(server.pid) == []
