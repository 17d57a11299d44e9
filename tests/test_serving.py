"""The driver on real sockets: framing, keep-alive, time limits, failures, and what each costs the others.

Rows H and cases B of HTTP that a parser alone cannot decide; each server runs as a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.gate import APP, Gate
from tests.servers import DEADLINE, Server, children, read_response, read_to_end, serving, wait_until

PROBE = "tests/apps/probe.py"


def fixed(count: int) -> list[str]:
    """Options of a pool that neither grows nor shrinks."""
    return [
        "--start-servers", str(count), "--min-spare-servers", str(count), "--max-spare-servers", str(count),
        "--max-servers", str(count),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One worker, generous limits: for everything that is about a single connection."""
    provoked = [
        "longer than its Content-Length", "shorter than its Content-Length", "died on purpose", "SystemExit",
        "holds CR, LF or NUL", "may not send Transfer-Encoding", "refused", "Traceback", "^    ",
    ]  # fmt: skip
    with serving(tmp_path_factory.mktemp("one"), PROBE, *fixed(1), wanted=provoked) as server:
        yield server


def send_on_one_connection(server: Server, *requests: bytes) -> list[tuple[bytes, bytes]]:
    """Send requests one after the other on one connection; return each (head, body)."""
    answers = []
    rest = b""
    with server.connect() as sock:
        for request in requests:
            sock.sendall(request)
            head, body, rest = read_response(sock, rest)
            answers.append((head, body))
    return answers


GET = b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n"
PID = GET % b"/pid"
POST = b"POST /echo HTTP/1.1\r\nHost: h\r\n"


def test_a_connection_is_kept(one: Server) -> None:
    answers = send_on_one_connection(one, PID, PID, PID)
    assert [head.split(b"\r\n")[0] for head, _ in answers] == [b"HTTP/1.1 200 OK"] * 3


def test_H20_pipelined_requests_are_answered_in_order(one: Server) -> None:
    paths = [b"/echo/%d" % number for number in range(20)]
    data = one.exchange(b"".join(GET % path for path in paths[:-1]) + b"GET /echo/19 HTTP/1.0\r\n\r\n")
    assert re.findall(rb'"PATH_INFO": "(/echo/[0-9]+)"', data) == paths


@pytest.mark.parametrize("padding", [0, 65536])
def test_B074_invalid_then_valid_pipelined(one: Server, padding: int) -> None:
    """The second request is never served, even when it begins exactly at the size of one receive."""
    bad = b"GET / HTTP/1.1\r\nHost: a\r\nBad Header\r\n\r\n"
    if padding:
        bad = b"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 65300\r\n\r\n" + b"x" * 65300 + bad
        bad = bad.replace(b"Host: a", b"Host: a\r\nX: " + b"p" * (padding - len(bad) - 5), 1)
        assert len(bad) == padding
    data = one.exchange(bad + b"GET /evil HTTP/1.1\r\nHost: a\r\n\r\n")
    assert data.count(b"HTTP/1.1 400 ") == 1
    assert b"evil" not in data


def test_B089_a_body_of_zero_and_a_request_inside_a_body(one: Server) -> None:
    inner = b"GET /evil HTTP/1.1\r\nHost: b\r\n\r\n"
    answers = send_on_one_connection(
        one,
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(inner), inner),
        PID,
    )
    assert json.loads(answers[1][1])["length"] == len(inner)
    assert answers[2][1].isdigit()


def test_B090_a_last_request_and_garbage_behind_it(one: Server) -> None:
    data = one.exchange(b"GET /pid HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n\x00\xffgarbage")
    assert data.startswith(b"HTTP/1.1 200 OK")
    assert data.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("framing", ["length", "chunked", "length-late", "chunked-late"])
def test_B141_an_unread_body_is_never_a_request(one: Server, framing: str) -> None:
    """Whatever the application left unread is discarded, or ends the connection."""
    forged = b"GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"
    if framing.startswith("length"):
        head, body = b"Content-Length: %d\r\n" % len(forged), forged
    else:
        head, body = b"Transfer-Encoding: chunked\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(forged), forged)
    with one.connect() as sock:
        sock.sendall(b"POST /ignore HTTP/1.1\r\nHost: a\r\n" + head + b"\r\n")
        if framing.endswith("late"):
            # The application is not called before a short body has arrived, so this changes nothing.
            assert not select.select([sock], [], [], 0.05)[0]
        sock.sendall(body)
        first, _, rest = read_response(sock)
        assert first.startswith(b"HTTP/1.1 200")
        sock.sendall(b"GET /pid HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        data = rest + read_to_end(sock)
    assert data.count(b"HTTP/1.1 ") == 1
    assert b"evil" not in data


def test_an_unread_long_body_ends_the_connection(one: Server) -> None:
    with one.connect() as sock:
        sock.sendall(b"POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 100000)
        head, _, _ = read_response(sock)
    assert b"\r\nConnection: close" in head


@pytest.mark.parametrize(
    ("ident", "path", "method", "body", "complete"),
    [
        ("B018a-streamed", "/declared/8/21", "GET", b"x" * 8, True),
        ("B018a-listed", "/listed/8/21", "GET", b"x" * 8, True),
        ("B018a-head", "/declared/8/21", "HEAD", b"", True),
        ("B018b", "/declared/0/8", "GET", b"", True),
        ("B018b-listed", "/listed/0/8", "GET", b"", True),
        ("B018c-streamed", "/declared/100/8", "GET", b"x" * 8, False),
        ("B018c-listed", "/listed/100/8", "GET", b"x" * 8, False),
        ("B018d", "/declared/100/0", "GET", b"", False),
        ("B018d-listed", "/listed/100/0", "GET", b"", False),
        ("B018d-head", "/declared/100/0", "HEAD", b"", True),
        ("B084-short", "/declared/30/26", "GET", b"x" * 26, False),
        ("B084-long", "/declared/24/26", "GET", b"x" * 24, True),
    ],
)
def test_a_body_of_another_length_than_stated(
    one: Server, ident: str, path: str, method: str, body: bytes, complete: bool
) -> None:
    """Never longer, never padded; when it is shorter, the connection ends, so that the client can tell."""
    with one.connect() as sock:
        sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        if complete:
            sock.sendall(b"GET /pid HTTP/1.0\r\n\r\n")
        data = read_to_end(sock)
    head, _, rest = data.partition(b"\r\n\r\n")
    stated = path.split("/")[2].encode()
    assert b"\r\nContent-Length: " + stated in head
    if complete:
        sent, _, second = rest.partition(b"HTTP/1.1 200 OK")
        assert sent == body
        assert second, "the connection stays in step"
    else:
        assert rest == body


@pytest.mark.parametrize("code", ["204", "304"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_H23_B059_no_body_where_there_may_be_none(one: Server, code: str, method: str) -> None:
    answers = send_on_one_connection(one, f"{method} /status/{code} HTTP/1.1\r\nHost: h\r\n\r\n".encode(), PID)
    head = answers[0][0]
    assert b"Transfer-Encoding" not in head
    if code == "204":
        assert b"Content-Length" not in head
    assert answers[1][1].isdigit()


def test_H23_B060_HEAD_of_a_streamed_body_keeps_the_connection(one: Server) -> None:
    with one.connect() as sock:
        sock.sendall(b"HEAD /stream/1000/100 HTTP/1.1\r\nHost: h\r\n\r\n" + PID)
        data = b""
        while data.count(b"\r\n\r\n") < 2:
            data += sock.recv(65536)
    assert data.count(b"HTTP/1.1 200 OK") == 2
    assert b"sss" not in data


def test_a_streamed_body_is_chunked_for_1_1_and_ends_the_connection_for_1_0(one: Server) -> None:
    head, _, body = one.exchange(b"GET /stream/100000/7000 HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in head
    assert body == b"s" * 100000
    assert one.get("/stream/100000/7000") == (200, b"s" * 100000)
    assert one.get("/stream/0/1") == (200, b"")


def test_an_application_that_dies_is_answered_500_and_kept_going(one: Server) -> None:
    answers = send_on_one_connection(one, GET % b"/die", PID, GET % b"/exit", PID)
    assert [head[9:12] for head, _ in answers] == [b"500", b"200", b"500", b"200"]
    assert answers[1][1] == answers[3][1], "the same worker"


def test_an_application_that_dies_late_is_cut(one: Server) -> None:
    data = one.exchange(GET % b"/die-late")
    assert data.endswith(b"\r\n4\r\nhalf\r\n"), "no last chunk: the client can tell"


def test_an_application_that_dies_late_resets_a_1_0_client(one: Server) -> None:
    with one.connect() as sock:
        sock.sendall(b"GET /die-late HTTP/1.0\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            read_to_end(sock)


@pytest.mark.parametrize("page", ["bad-field", "bad-transfer"])
def test_H22_B092_B093_B027_what_an_application_may_not_send(one: Server, page: str) -> None:
    answers = send_on_one_connection(one, GET % b"/pid", GET % f"/{page}".encode(), GET % b"/pid")
    assert [head[9:12] for head, _ in answers] == [b"200", b"500", b"200"]
    assert b"Set-Cookie" not in answers[1][0]
    assert answers[0][1] == answers[2][1]


def test_B146_repeated_fields_once_each_and_nothing_invented(one: Server) -> None:
    ((head, _),) = send_on_one_connection(one, GET % b"/cookies")
    assert head.split(b"\r\n")[1:] == [
        b"Set-Cookie: a=1", b"Set-Cookie: b=2", b"Date: then", b"Server: mine", b"Content-Length: 2",
    ]  # fmt: skip


@pytest.mark.parametrize("size", [5, 65536, 70000, 3 << 20])
@pytest.mark.parametrize("how", ["one-send", "head-then-body", "chunked"])
def test_B026_B027_bodies_arrive_whole_however_they_are_sent(one: Server, size: int, how: str) -> None:
    body = bytes(i % 256 for i in range(256)) * (size // 256) + b"z" * (size % 256)
    head = b"POST /echo HTTP/1.1\r\nHost: h\r\n"
    with one.connect() as sock:
        if how == "chunked":
            pieces = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[i : i + 4000] for i in range(0, size, 4000)))
            sock.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")
        elif how == "one-send":
            sock.sendall(head + b"Content-Length: %d\r\n\r\n" % size + body)
        else:
            sock.sendall(head + b"Content-Length: %d\r\n\r\n" % size)
            assert not select.select([sock], [], [], 0.05)[0]
            sock.sendall(body)
        seen = json.loads(read_response(sock)[1])
    import hashlib

    assert (seen["length"], seen["sha256"]) == (size, hashlib.sha256(body).hexdigest())


def test_100_continue_is_sent_when_the_application_first_reads(one: Server) -> None:
    with one.connect() as sock:
        sock.sendall(b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"hello")
        assert json.loads(read_response(sock)[1])["length"] == 5


def test_100_continue_is_not_sent_when_the_application_does_not_read(one: Server) -> None:
    with one.connect() as sock:
        sock.sendall(b"POST /ignore HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        head, _, _ = read_response(sock)
    assert head.startswith(b"HTTP/1.1 200")
    assert b"Connection: close" in head


def test_B056_a_long_file_to_a_slow_reader_arrives_whole(one: Server) -> None:
    size = 1079593
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(20)
        sock.connect(("127.0.0.1", one.port))
        sock.sendall(GET % b"/file/%d/0" % size)
        head, body, _ = read_response(sock)
    assert b"Content-Length: %d" % size in head
    assert body == (bytes(i % 251 for i in range(1000)) * (size // 1000 + 1))[:size]


def test_B051_a_file_is_sent_from_its_offset(one: Server) -> None:
    assert one.get("/file/1000/100")[1] == bytes(i % 251 for i in range(100, 1000))


def test_H21_a_client_that_resets_costs_nothing(one: Server) -> None:
    before = one.get("/pid")[1]
    for _ in range(20):
        sock = one.connect()
        sock.sendall(GET % b"/stream/50000000/60000")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.recv(10)
        sock.close()
        one.connect().close()
    assert one.get("/pid")[1] == before
    (worker,) = one.workers()
    wait_until(lambda: len(os.listdir(f"/proc/{worker}/fd")) < 20, "the end of connections that were given up")


def test_a_half_closed_client_gets_its_answer(one: Server) -> None:
    with one.connect() as sock:
        sock.sendall(PID)
        sock.shutdown(socket.SHUT_WR)
        assert read_to_end(sock).startswith(b"HTTP/1.1 200")


def test_H16_B066_forwarded_fields_of_a_stranger_are_dropped(one: Server) -> None:
    seen = json.loads(one.get("/echo", "X-Forwarded-Proto: https", "X-Forwarded-For: 6.6.6.6", "Forwarded: for=x")[1])
    assert seen["scheme"] == "http"
    assert not [name for name in seen if "FORWARDED" in name]


def test_H16_B066_forwarded_fields_of_a_trusted_proxy(tmp_path: Path) -> None:
    refused = "forwarded fields disagree"
    with serving(tmp_path, PROBE, *fixed(1), "--trusted-proxies", "127.0.0.0/8", wanted=[refused]) as server:
        seen = json.loads(server.get("/echo", "X-Forwarded-Proto: https", "X-Forwarded-For: 6.6.6.6")[1])
        assert (seen["scheme"], seen["HTTP_X_FORWARDED_FOR"]) == ("https", "6.6.6.6")
        assert server.get("/echo", "X-Forwarded-Proto: https", "X-Forwarded-Ssl: off")[0] == 400


def test_B065_the_peer_of_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    with serving(tmp_path, PROBE, *fixed(1), "--bind", f"unix:{path}"):
        assert oct(path.stat().st_mode & 0o777) == "0o660"
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(20)
            sock.connect(str(path))
            sock.sendall(GET % b"/echo")
            seen = json.loads(read_response(sock)[1])
    assert (seen["REMOTE_ADDR"], seen["SERVER_NAME"], seen["SERVER_PORT"]) == ("", "localhost", "80")
    assert not path.exists()


def test_B071_an_ipv6_listener_has_a_name_that_makes_a_url(tmp_path: Path) -> None:
    with serving(tmp_path, PROBE, *fixed(1), "--bind", "[::1]:0") as server:
        port = int(re.search(r"http://\[::1\]:([0-9]+)", server.said)[1])  # type: ignore[index]
        with socket.create_connection(("::1", port), 20) as sock:
            sock.sendall(b"GET /echo HTTP/1.0\r\n\r\n")
            seen = json.loads(read_to_end(sock).partition(b"\r\n\r\n")[2])
    assert (seen["SERVER_NAME"], seen["SERVER_PORT"], seen["REMOTE_ADDR"]) == ("[::1]", str(port), "::1")


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One worker with time limits of a second."""
    times = ["--header-timeout", "1", "--body-timeout", "1", "--keep-alive-timeout", "1", "--send-timeout", "1"]
    wanted = ["came too slowly"]
    with serving(tmp_path_factory.mktemp("hasty"), PROBE, *fixed(1), *times, wanted=wanted) as server:
        yield server


class TestTimeLimits:
    """H18: slow clients lose their connection, and never keep the one worker from another client."""

    @pytest.mark.parametrize(
        ("ident", "begin", "status"),
        [
            ("H18-head", b"GET / HTTP/1.1\r\nHost: h\r\nX-A", b"408"),
            ("H18-short-body", POST + b"Content-Length: 5\r\n\r\nabc", b"408"),
            ("H18-chunked-body", POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", b"408"),
            ("H18-nothing", b"", b""),
            ("H18-long-body", POST + b"Content-Length: 99999\r\n\r\n" + b"x" * 70000, b"408"),
        ],
    )
    def test_H18_a_slow_request(self, hasty: Server, ident: str, begin: bytes, status: bytes) -> None:
        with hasty.connect() as slow:
            slow.sendall(begin)
            if ident != "H18-long-body":
                assert hasty.get("/pid")[0] == 200, "another client is answered meanwhile"
            data = read_to_end(slow)
            assert data[9:12] == status

    def test_H18_a_head_that_trickles_has_an_absolute_limit(self, hasty: Server) -> None:
        with hasty.connect() as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n")
            for _ in range(100):
                if select.select([slow], [], [], 0.1)[0]:
                    break
                slow.sendall(b"X")
            assert slow.recv(100)[9:12] == b"408"

    def test_H18_an_idle_kept_connection_is_closed(self, hasty: Server) -> None:
        with hasty.connect() as kept:
            kept.sendall(PID)
            read_response(kept)
            assert read_to_end(kept) == b""

    def test_H18_a_client_that_reads_nothing_frees_the_worker(self, hasty: Server) -> None:
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(20)
            sock.connect(("127.0.0.1", hasty.port))
            sock.sendall(GET % b"/stream/50000000/60000")
            assert hasty.get("/pid")[0] == 200
        hasty.wait_for_log("takes no response bytes for 1 seconds")


@pytest.mark.parametrize("requests", [1, 2])
def test_H18_a_connection_that_was_answered_is_kept_for_KeepAliveTimeout(tmp_path: Path, requests: int) -> None:
    """Also when its only request had come with it, so that it never waited for one."""
    with (
        serving(tmp_path, PROBE, *fixed(1), "--header-timeout", "600", "--keep-alive-timeout", "1") as server,
        server.connect() as kept,
    ):
        for _ in range(requests):
            kept.sendall(PID)
            read_response(kept)
        assert read_to_end(kept) == b""


FORKS = """#!/usr/bin/env python3
import os
print("Content-Type: text/plain\\n\\nforked", end="")
if os.environ["PATH_INFO"] == "/" and os.fork() == 0:
    os.open({gate!r}, os.O_RDONLY)
    os._exit(0)
"""


def count_watched(pid: int) -> int:
    """How many descriptors the epoll of a process watches."""
    numbers = [path.name for path in Path(f"/proc/{pid}/fd").iterdir() if is_epoll(path)]
    return sum(Path(f"/proc/{pid}/fdinfo/{number}").read_text().count("tfd:") for number in numbers)


def is_epoll(path: Path) -> bool:
    try:
        return "eventpoll" in os.readlink(path)
    except FileNotFoundError:  # closed meanwhile
        return False


def test_c13_a_child_that_a_script_leaves_behind_keeps_no_closed_connection_watched(tmp_path: Path) -> None:
    """It has a copy of the connection: closing ours does not take it out of epoll, which would wake us for ever."""
    gate, script = tmp_path / "gate", tmp_path / "forks.py"
    os.mkfifo(gate)
    script.write_text(FORKS.format(gate=str(gate)))
    with serving(tmp_path, str(script), "--model", "registry", *fixed(1)) as server:
        wait_until(server.workers, "a worker")
        [worker] = server.workers()
        with server.connect() as first:
            first.sendall(b"GET /none HTTP/1.0\r\n\r\n")
            read_to_end(first)
        before = count_watched(worker)
        with server.connect() as kept:
            kept.sendall(GET % b"/")
            assert read_response(kept)[1] == b"forked"
            wait_until(lambda: count_watched(worker) == before + 1, "the connection is kept")
        wait_until(lambda: count_watched(worker) == before, "the connection is watched no more")
        os.close(os.open(gate, os.O_WRONLY))


def test_B087_max_requests_counts_requests_and_says_close(tmp_path: Path) -> None:
    """Five requests on a kept connection: the fifth is answered with close, another worker takes over."""
    limits = ["--max-requests-per-child", "5", "--max-requests-jitter", "0"]
    with serving(tmp_path, PROBE, *fixed(1), *limits) as server:
        pids, closes, answered = [], [], 0
        sock = server.connect()
        rest = b""
        while answered < 12:
            sock.sendall(PID)
            head, body, rest = read_response(sock, rest)
            answered += 1
            pids.append(body)
            closes.append(b"\r\nConnection: close" in head)
            if closes[-1]:
                assert read_to_end(sock) == b""
                sock.close()
                sock = server.connect()
        sock.close()
    assert closes == [number % 5 == 0 for number in range(1, 13)]
    assert [pids[i] == pids[i - 1] for i in range(1, 12)] == [i % 5 != 0 for i in range(1, 12)]


def test_an_idle_kept_connection_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Fifty idle kept connections on one worker: it counts as idle, and answers others."""
    with serving(tmp_path, PROBE, *fixed(1)) as server:
        kept = []
        for _ in range(50):
            sock = server.connect()
            sock.sendall(PID)
            read_response(sock)
            kept.append(sock)
        for _ in range(20):
            assert server.get("/pid")[0] == 200
        for sock in kept:
            sock.close()


def test_a_busy_worker_leaves_new_connections_to_the_others(tmp_path: Path) -> None:
    """With one of two workers held in a request, every new client is answered by the other."""
    gate = Gate(tmp_path)
    with closing(gate), serving(tmp_path, APP, *gate.options, *fixed(2)) as server:
        slow = gate.connect(server, "http")
        slow.ask("/hold")
        held = gate.wait()
        answers = {int(server.get("/")[1]) for _ in range(30)}
        assert len(answers) == 1
        assert held not in answers
        gate.open(held)
        assert slow.answer().pid == held


def test_P03_a_worker_killed_in_a_request_costs_only_its_client(tmp_path: Path) -> None:
    with serving(tmp_path, PROBE, *fixed(3), wanted=[r"worker [0-9]+ .*SIGKILL"]) as server:
        with server.connect() as sock:
            sock.sendall(GET % b"/kill")
            assert read_to_end(sock) == b""
        for _ in range(10):
            assert server.get("/pid")[0] == 200
        wait_until(lambda: len(server.workers()) == 3, "three workers again")
        wait_until(lambda: "Z" not in [state for _, state in children(server.pid)], "the dead worker collected")


def test_P02_B131_a_graceful_stop_finishes_what_it_has_begun(tmp_path: Path) -> None:
    """At TERM: the running request is answered with close; the idle kept connection ends; new ones are refused."""
    gate = Gate(tmp_path)
    with closing(gate), serving(tmp_path, APP, *gate.options, *fixed(2)) as server:
        running = gate.connect(server, "http")
        running.ask("/hold")
        held = gate.wait()
        idle = gate.connect(server, "http")  # of the other worker, for the first is held
        assert idle.get().pid != held
        server.process.send_signal(signal.SIGTERM)
        assert read_to_end(idle.sock) == b""
        gate.open(held)
        head, body, _ = read_response(running.sock)
        assert head.startswith(b"HTTP/1.1 200")
        assert int(body) == held
        assert server.process.wait(DEADLINE) == 0
        with pytest.raises(ConnectionRefusedError):
            server.connect()


def test_10000_requests_while_workers_are_killed(tmp_path: Path) -> None:
    """Only requests in flight on a killed worker fail; every death is logged; the pool is whole afterwards."""
    import random
    import threading

    chosen = random.Random(1)
    limits = ["--max-requests-per-child", "100"]
    with serving(tmp_path, PROBE, *fixed(6), *limits, wanted=[r"worker [0-9]+ .*SIGKILL"]) as server:
        lock = threading.Lock()
        left, failed, killed = 10000, 0, 0
        done = threading.Event()

        def client() -> None:
            nonlocal left, failed
            while True:
                with lock:
                    if left == 0:
                        return
                    left -= 1
                try:
                    ok = server.get("/pid")[0] == 200
                except (OSError, ValueError):
                    ok = False
                if not ok:
                    with lock:
                        failed += 1

        clients = [threading.Thread(target=client) for _ in range(8)]
        for thread in clients:
            thread.start()

        def kill() -> None:
            nonlocal killed
            while not done.wait(0.25):
                workers = server.workers()
                if workers:
                    try:
                        os.kill(chosen.choice(workers), signal.SIGKILL)
                        killed += 1
                    except ProcessLookupError:
                        pass

        killer = threading.Thread(target=kill)
        killer.start()
        for thread in clients:
            thread.join()
        done.set()
        killer.join()
        assert failed <= killed, f"{failed} requests failed, {killed} workers were killed"
        assert server.get("/pid")[0] == 200
        wait_until(lambda: len(server.workers()) == 6, "a whole pool")
        wait_until(lambda: "Z" not in [state for _, state in children(server.pid)], "every dead worker collected")
        server.wait_for_log("SIGKILL", max(failed, min(killed, 3)))
