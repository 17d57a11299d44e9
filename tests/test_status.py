"""The status port: answered by the supervisor while its workers are stuck, and safe for whoever reads it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gateways.core.errors import ConfigurationError
from gateways.process.ledger import Ledger, Moment
from gateways.process.measures import BOUNDS, Measures
from gateways.process.page import COLUMNS, format_page
from gateways.process.queues import Queue
from gateways.process.report import (
    PoolReport,
    Report,
    describe,
    format_bound,
    format_count,
    format_json,
    format_share,
    format_size,
    format_time,
)
from gateways.process.scoreboard import SlotReading, State
from gateways.process.status import MOST_CONNECTIONS, StatusPort, plan_answer
from gateways.process.table import format_lines, format_text, plan_rows
from gateways.process.weights import Memory, Weight
from tests.servers import DEADLINE, ROOT, Server, read_to_end, serving, wait_until

APP = "tests/apps/probe.py"
HOSTILE = 'GET /<script>alert("x")</script>?a=\'&amp;\x1b[2J\u2028\xe9'


def make_report(request: str = "GET /", workers: int = 1, since: float = 109.5) -> Report:
    lines = [SlotReading(3 + at, 4711 + at, State.BUSY, 2, 17, 100.0, "", request, since) for at in range(workers)]
    durations = [0] * (len(BOUNDS) + 1)
    durations[0], durations[4], durations[-1] = 14, 2, 1
    measures = Measures(17, 63.5, 1, tuple(durations), (14, 0, 1, 1, 1))
    ledger = Ledger()
    ledger.bury(Measures(), 1.5, "requests")
    ledger.bury(Measures(), 0.5, "request_timeout")
    ledger.started = 3
    for second in range(30):
        ledger.note_moment(Moment(80.0 + second, second * 3, second % 2, 0))
    pool = PoolReport("main", 2, "dynamic", 64, lines, measures, ledger, queue=Queue(3, 2048), addresses=["http://h:1"])
    weight = Weight(110.0, Memory(30 << 20, 20 << 20, 35 << 20), 2.5, 0.25)
    return Report(1, 10.0, 110.0, False, [pool], {4711: weight})


class Cells(HTMLParser):
    """The tags of a page, and the text of its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str | None] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "action")]
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def parse_page(page: str) -> Cells:
    parser = Cells()
    parser.feed(page)
    return parser


def test_B143_a_request_is_text_in_the_page() -> None:
    page = format_page(describe(make_report(HOSTILE)))
    parser = parse_page(page)
    plain = parse_page(format_page(describe(make_report())))
    assert parser.tags == plain.tags
    assert parser.cells[len(COLUMNS) - 1].strip() == HOSTILE
    assert html.escape(HOSTILE) in page


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = format_page(describe(make_report()))
    assert parse_page(page).links == ["data:,", "status.json", "status.txt", "metrics"]
    for word in ("url(", "@import", "://h"):
        assert word not in page.replace("http://h:1", "")
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_the_page_runs_its_own_script_and_no_other() -> None:
    page = format_page(describe(make_report()))
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    head = plan_answer(b"GET /status HTTP/1.1\r\n\r\n", make_report).partition(b"\r\n\r\n")[0].decode()
    assert f"script-src 'sha256-{digest}'" in head
    assert "default-src 'none'" in head


def test_B143_a_request_is_text_in_the_json() -> None:
    text = format_json(describe(make_report(HOSTILE)))
    assert text.isascii()
    assert json.loads(text)["pools"][0]["workers"][0]["request"] == HOSTILE


def test_B143_a_request_is_text_in_the_table() -> None:
    for lines in (
        format_text(describe(make_report(HOSTILE))).splitlines(),
        format_lines(describe(make_report(HOSTILE))),
    ):
        text = "".join(lines)
        assert text.isascii()
        assert text.isprintable()
        assert "\\x1b[2J\\u2028\\xe9" in text


def test_what_a_report_says() -> None:
    (pool,) = describe(make_report())["pools"]
    assert (pool["busy"], pool["idle"]) == (1, 0)
    assert pool["workers"] == [
        {"slot": 3, "pid": 4711, "state": "busy", "generation": 2, "requests": 17, "age": 10.0, "for": 0.5,
         "long": False, "cpu": 0.25, "own": 30 << 20, "shared": 20 << 20, "request": "GET /"}
    ]  # fmt: skip
    assert pool["memory"] == {"own": 30 << 20, "shared": 20 << 20, "together": 35 << 20, "unshared": 50 << 20}
    assert (pool["recycled"], pool["killed"], pool["started"], pool["rate"]) == (1, 1, 3, 3.0)
    assert (pool["p50"], pool["p90"], pool["p99"]) == (0.0001, 0.005, 60.0)
    assert pool["ended"] == {"requests": 1, "request_timeout": 1}


def test_a_request_of_more_than_its_time_is_long() -> None:
    (pool,) = describe(make_report(since=99.0))["pools"]
    assert pool["workers"][0]["long"]


# The table.


@pytest.mark.parametrize("width", [20, 80, 110, 160])
@pytest.mark.parametrize("colour", [False, True])
def test_the_table_keeps_to_its_width(width: int, colour: bool) -> None:
    lines = format_lines(describe(make_report("GET /" + "x" * 300, 5)), width, 0, colour)
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert all(len(line) <= width for line in plain)
    assert (plain != lines) == colour
    assert sum("GET" in line for line in plain) == (5 if width > 40 else 0)


def test_the_table_keeps_to_its_height_and_shows_the_longest_first() -> None:
    lines = format_lines(describe(make_report(workers=50)), 80, 24)
    assert len(lines) <= 24
    assert "and 34 more" in lines[-1]
    assert len(format_lines(describe(make_report(workers=50)), 80, 2)) == 2


@pytest.mark.parametrize(
    ("counts", "room", "rows"),
    [([], 9, []), ([3, 4], 9, [3, 4]), ([3, 40], 9, [3, 6]), ([40, 3, 40], 9, [3, 3, 3]), ([5, 5], 0, [0, 0]),
     ([5, 5], -3, [0, 0])],
)  # fmt: skip
def test_rows_are_shared_out(counts: list[int], room: int, rows: list[int]) -> None:
    assert plan_rows(counts, room) == rows


UNITS = [
    (format_time, 0.04, "0.0s"), (format_time, 59.6, "60s"), (format_time, 600, "10m"), (format_time, 86400, "24h"),
    (format_time, 1e7, "116d"), (format_size, 999, "1K"), (format_size, 12_900_000, "12.3M"), (format_size, None, "-"),
    (format_size, 3 << 30, "3.0G"), (format_count, 999_999, "999999"), (format_count, 1_250_000, "1.2M"),
    (format_count, 3e9, "3.0G"), (format_bound, 0.0001, "0.1 ms"), (format_bound, 2.5, "2.5 s"),
    (format_bound, None, "-"), (format_share, 0.256, "26"), (format_share, None, "-"),
]  # fmt: skip


@pytest.mark.parametrize(("write", "value", "text"), UNITS)
def test_units(write: Callable[[float | None], str], value: float | None, text: str) -> None:
    assert write(value) == text


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (b"GET /ping HTTP/1.1\r\n\r\n", 200), (b"GET /status?x HTTP/1.0\n\n", 200), (b"HEAD / HTTP/1.1\r\n\r\n", 200),
        (b"GET /status.json HTTP/1.1\r\nHost: h\r\n\r\n", 200), (b"GET /status.txt HTTP/1.1\r\n\r\n", 200),
        (b"GET /<script> HTTP/1.1\r\n\r\n", 404), (b"POST /ping HTTP/1.1\r\n\r\n", 400), (b"GET /ping\r\n\r\n", 400),
        (b"GET /\0 HTTP/1.1\r\n\r\n", 400), (b"GET http://h/ping HTTP/1.1\r\n\r\n", 400), (b"\r\n\r\n", 400),
        (b"x" * 9000, 400),
    ],
)  # fmt: skip
def test_answers(asked: bytes, status: int) -> None:
    answer = plan_answer(asked, make_report)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"<script>" not in answer or b"text/html" in head
    length = re.search(rb"Content-Length: (\d+)", head)
    assert length is not None
    assert len(body) == (0 if asked.startswith(b"HEAD") else int(length[1]))


# The port by itself.


@pytest.fixture
def port() -> Iterator[tuple[StatusPort, tuple[str, int]]]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = StatusPort(lambda: listener)
    port.open()
    yield port, listener.getsockname()
    port.close()
    assert port.closed


def turn(port: StatusPort, now: float = 0.0) -> None:
    port.look(now, make_report)


def test_a_slow_or_silent_visitor_holds_up_nobody(port: tuple[StatusPort, tuple[str, int]]) -> None:
    status, address = port
    visitors = [socket.create_connection(address, DEADLINE) for _ in range(MOST_CONNECTIONS + 8)]
    try:
        for _ in visitors:
            turn(status)
        visitors[-1].sendall(b"GET /pi")
        turn(status)
        visitors[-1].sendall(b"ng HTTP/1.1\r\n\r\n")
        for _ in range(3):
            turn(status)
        assert read_to_end(visitors[-1]).endswith(b"pong\n")
        assert visitors[0].recv(1) == b"", "the oldest gave way"
        turn(status, 100.0)
        assert visitors[20].recv(1) == b"", "its time is over"
    finally:
        for visitor in visitors:
            visitor.close()


def test_a_visitor_that_goes_is_forgotten(port: tuple[StatusPort, tuple[str, int]]) -> None:
    status, address = port
    for data in (b"", b"GET /st", b"GET /status HTTP/1.1\r\n\r\n"):
        with socket.create_connection(address, DEADLINE) as visitor:
            visitor.sendall(data)
        for _ in range(4):
            turn(status)
    assert not status._visits


def test_a_port_that_another_still_has_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answers: list[Exception | socket.socket] = [ConfigurationError("taken"), listener]

        def listen() -> socket.socket:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        status = StatusPort(listen)
        turn(status, 1.0)
        turn(status, 1.5)
        assert len(answers) == 1, "it is not tried all the time"
        turn(status, 2.0)
        assert answers == []
        status.close()
        turn(status, 9.0)


# Under a real supervisor.


def find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


@contextmanager
def watched(folder: Path, *options: str, wanted: Sequence[str] = ()) -> Iterator[tuple[Server, int]]:
    number = find_port()
    pool = ["--start-servers", "2", "--max-servers", "2"]
    with serving(folder, APP, "--status-listen", f"127.0.0.1:{number}", *pool, *options, wanted=wanted) as server:
        yield server, number


def ask(number: int, path: str) -> bytes:
    with socket.create_connection(("127.0.0.1", number), DEADLINE) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        return read_to_end(sock).partition(b"\r\n\r\n")[2]


def run_status(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gateways", "status", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)


def test_it_answers_while_every_worker_is_stuck(tmp_path: Path) -> None:
    with watched(tmp_path) as (server, number):
        wait_until(lambda: len(server.workers()) == 2, "two workers")
        stuck = server.workers()
        socks = [server.connect() for _ in range(2)]
        try:
            for at, sock in enumerate(socks):
                sock.sendall(f'GET /wait/0?<{at}>"& HTTP/1.1\r\nHost: h\r\n\r\n'.encode().replace(b"/0", b"/1.5"))
                wait_until(lambda: json.loads(ask(number, "/status.json"))["pools"][0]["busy"] > at, "it")  # noqa: B023
            for pid in stuck:
                os.kill(pid, signal.SIGSTOP)
            assert ask(number, "/ping") == b"pong\n"
            data = json.loads(ask(number, "/status.json"))
            (pool,) = data["pools"]
            assert (data["pid"], pool["busy"], data["stopping"]) == (server.pid, 2, False)
            assert {worker["pid"] for worker in pool["workers"]} == set(stuck)
            assert sorted(worker["request"] for worker in pool["workers"]) == [
                'GET /wait/1.5?<0>"&', 'GET /wait/1.5?<1>"&'
            ]  # fmt: skip
            page = ask(number, "/status")
            assert b"&lt;0&gt;&quot;&amp;" in page
            assert b"<0>" not in page
            said = run_status(f"127.0.0.1:{number}")
            assert (said.returncode, said.stderr) == (0, "")
            assert len(re.findall(r"^ +[01] +\d+ +busy ", said.stdout, re.M)) == 2
            assert json.loads(run_status("--json", f"127.0.0.1:{number}").stdout)["pid"] == server.pid
        finally:
            for pid in stuck:
                os.kill(pid, signal.SIGCONT)
            for sock in socks:
                sock.close()


def test_it_outlives_a_reload_and_leaks_nothing(tmp_path: Path) -> None:
    with watched(tmp_path) as (server, number):
        wait_until(lambda: json.loads(ask(number, "/status.json"))["pools"][0]["idle"] == 2, "two workers")
        before = len(os.listdir(f"/proc/{server.pid}/fd"))
        with socket.create_connection(("127.0.0.1", number), DEADLINE) as held:
            server.process.send_signal(signal.SIGHUP)
            server.wait_for_log("generation 2 of pool main serves")
            held.sendall(b"GET /ping HTTP/1.1\r\n\r\n")
            assert read_to_end(held).endswith(b"pong\n"), "a child that was forked meanwhile has kept it open"
        for _ in range(40):
            ask(number, "/status")
        wait_until(lambda: json.loads(ask(number, "/status.json"))["pools"][0]["generation"] == 2, "generation 2")
        wait_until(lambda: len(os.listdir(f"/proc/{server.pid}/fd")) <= before, "the descriptors' end")


def test_a_reload_moves_it(tmp_path: Path) -> None:
    first, second = find_port(), find_port()
    conf = tmp_path / "gateways.toml"
    text = f'{{}}[pool.main]\nListen = "127.0.0.1:0"\nStartServers = 1\n[[pool.main.Mount]]\nTarget = "{ROOT / APP}"\n'

    def show(*places: str) -> None:
        conf.write_text(text.format("".join(f'StatusListen = "{place}"\n' for place in places)))

    show(f"127.0.0.1:{first}")
    with serving(tmp_path, "--config", str(conf), bind=False, wanted=[r"cannot listen on", "reload failed"]) as server:
        assert ask(first, "/ping") == b"pong\n"
        fds = len(os.listdir(f"/proc/{server.pid}/fd"))
        with socket.create_server(("127.0.0.1", 0)) as taken:
            show(f"127.0.0.1:{taken.getsockname()[1]}")
            server.process.send_signal(signal.SIGHUP)
            server.wait_for_log("reload failed, the old workers stay")
        assert ask(first, "/ping") == b"pong\n"
        for at, places in enumerate(((f"127.0.0.1:{second}",), (), (f"127.0.0.1:{first}",)), 2):
            show(*places)
            server.process.send_signal(signal.SIGHUP)
            server.wait_for_log(f"generation {at} of pool main serves")
            for number in (first, second):
                if f"127.0.0.1:{number}" in places:
                    assert ask(number, "/ping") == b"pong\n"
                else:
                    with pytest.raises(ConnectionRefusedError):
                        ask(number, "/ping")
        assert len(re.findall(r"reload: the status is shown (at 127|no more)", server.read_log())) == 3
        wait_until(lambda: len(os.listdir(f"/proc/{server.pid}/fd")) == fds, "the descriptors' end")


def test_a_unix_socket_is_its_owner_s(tmp_path: Path) -> None:
    path = tmp_path / "status"
    with serving(tmp_path, APP, "--status-listen", f"unix:{path}", "--start-servers", "1") as server:
        said = run_status("--json", f"unix:{path}")
        assert json.loads(said.stdout)["pid"] == server.pid, said.stderr
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_a_port_that_is_taken_stops_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        command = [sys.executable, "-m", "gateways", "serve", APP, "--bind", "127.0.0.1:0", "--status-listen"]
        done = subprocess.run(
            [*command, f"127.0.0.1:{number}"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
        )
    assert done.returncode != 0
    assert f"cannot listen on 127.0.0.1:{number}" in done.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:9", "[::]:9", "http://127.0.0.1:9", "nonsense:"])
def test_an_address_that_everybody_reaches_is_a_mistake(address: str) -> None:
    command = [sys.executable, "-m", "gateways", "serve", APP, "--bind", "127.0.0.1:0", "--status-listen", address]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("gateways: --status-listen must be")


def test_status_of_nobody_is_a_sentence(tmp_path: Path) -> None:
    conf = tmp_path / "gateways.toml"
    conf.write_text(f'[pool.main]\n[[pool.main.Mount]]\nTarget = "{ROOT / APP}"\n')
    for arguments, status, sentence in (
        ([f"127.0.0.1:{find_port()}"], 1, "nobody tells a status at"),
        ([], 2, "status needs an ADDRESS or --config FILE"),
        (["--config", str(conf)], 2, "has no StatusListen"),
    ):
        done = run_status(*arguments)
        assert (done.returncode, done.stdout) == (status, "")
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1
