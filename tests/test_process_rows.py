"""Rows of the checklist that no single part answers for: descriptors beyond 1024, files, limits, the status."""

from __future__ import annotations

import json
import re
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gateways.process.visiting import read_status
from tests.clients import fastcgi, uwsgi
from tests.servers import DEADLINE, Server, read_to_end, serving, wait_until
from tests.wires import ASK, Answer, variables

APP = """
import os, resource, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if hard > 0 else 8192, hard))
KEPT = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
def application(environ, start_response):
    path = environ["PATH_INFO"]
    fields = [("Content-Type", "text/plain")]
    if path == "/file":
        start_response("200 OK", fields)
        return environ["wsgi.file_wrapper"](open(__file__, "rb"))
    if path == "/offer":
        fields.append(("X-Sendfile", "/etc/passwd"))
    if path == "/log":
        environ["wsgi.errors"].write("first\\n2026-11-30 00:00:00.000Z [1] error: FORGED\\r\\x1b[2J\\n")
    if path == "/slow":
        time.sleep(0.2)
    size = len(environ["wsgi.input"].read())
    start_response("200 OK", fields)
    return [b"%d %d %d" % (os.getpid(), size, os.dup(0))] if path == "/fd" else [b"%d %d" % (os.getpid(), size)]
def handler(request):
    request.add_cleanup(lambda: time.sleep(0.1))  # there is more to do between the answer and the connection's end
    request.write(b"done")
    return 200
"""
SAID = (r"\] (warning|error): .*(first|FORGED)",)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "app.py"
    path.write_text(APP)
    return path


@pytest.fixture(scope="module")
def server(app: Path) -> Iterator[Server]:
    bind = ",".join(f"{wire}://127.0.0.1:0" for wire in ("http", "fastcgi", "uwsgi"))
    options = ["--bind", bind, "--process-manager", "static", "--max-servers", "2"]
    with serving(app.parent, str(app), *options, tolerated=SAID) as running:
        yield running


needs_descriptors = pytest.mark.skipif(
    0 <= resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2000, reason="this system allows no 2000 descriptors"
)


@needs_descriptors
@pytest.mark.parametrize("wire", ["http", "fastcgi", "uwsgi"])
def test_F15_descriptors_beyond_1024_are_served(server: Server, wire: str) -> None:
    answer = ASK[wire](server, "/fd", bytes(300_000))
    pid, size, fd = map(int, answer.body.split())
    assert (answer.status, size) == (200, 300_000)
    assert fd > 1024
    assert pid in server.workers()


@needs_descriptors
def test_F15_a_body_is_waited_for_on_a_descriptor_beyond_1024(server: Server) -> None:
    with server.connect(wire="fastcgi") as sock:
        data = fastcgi.request([*variables("/fd", b""), (b"CONTENT_LENGTH", b"200000")], bytes(200_000))
        sock.sendall(data[:100_000])
        sock.sendall(data[100_000:])
        answer = fastcgi.parse_answer(read_to_end(sock))
    assert answer.out.split()[-2] == b"200000"


def test_F16_no_more_processes_than_allowed_serve_fastcgi(server: Server) -> None:
    answers: list[Answer] = []

    def ask() -> None:
        answers.append(ASK["fastcgi"](server, "/slow", None))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert [answer.status for answer in answers] == [200] * 8
    assert len({answer.body.split()[0] for answer in answers}) <= 2


@pytest.mark.parametrize("wire", ["http", "fastcgi", "uwsgi"])
def test_F16_what_an_application_logs_forges_no_record(server: Server, wire: str) -> None:
    before = len(re.findall("FORGED", server.read_log()))
    assert ASK[wire](server, "/log", None).status == 200
    server.wait_for_log("FORGED", before + 1)
    lines = [line for line in server.read_log().splitlines() if "FORGED" in line]
    # Its own stamp and the worker's pid come first, and nothing that a terminal would obey is left.
    assert all(re.match(r"\S+ \S+ \[(?!1\])\d+\] \w+: ", line) for line in lines), lines
    assert "\x1b" not in server.read_log()
    assert "\r" not in server.read_log()


def list_states(status: str) -> list[str]:
    """What each worker does, as the status port says."""
    return [worker["state"] for worker in read_status(status)["pools"][0]["workers"]]


def test_b113_p10_the_last_answer_of_a_retiring_worker_arrives_with_the_end_of_its_connection(
    app: Path, tmp_path: Path
) -> None:
    options = ["--bind", "fastcgi://127.0.0.1:0", "--process-manager", "static", "--max-servers", "1"]
    options += ["--model", "handler", "--status-listen", f"unix:{tmp_path}/status"]
    data = fastcgi.request([*variables("/", None), (b"CONTENT_LENGTH", b"")], keep=1)
    with serving(tmp_path, f"{app}:handler", *options) as server, server.connect(wire="fastcgi") as sock:
        for last in (False, True):
            if last:
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: "closing" in list_states(f"unix:{tmp_path}/status"), "the old worker told to leave")
            sock.sendall(data)
            answer = b""
            while not answer.endswith(fastcgi.rec(fastcgi.END, bytes(8))):
                piece = sock.recv(65536)
                assert piece, answer
                answer += piece
        # Not BlockingIOError: a front that asked at once would know that it must not ask here again.
        sock.setblocking(False)
        assert sock.recv(1) == b""


SENDFILE = ("X-Sendfile-Type: X-Accel-Redirect", "X-Accel-Mapping: /=/etc/", "X-Sendfile: /etc/passwd")


@pytest.mark.parametrize("path", ["/file", "/offer"])
def test_H26_a_request_does_not_choose_who_sends_a_file(server: Server, app: Path, path: str) -> None:
    head, _, body = server.exchange(
        f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n".encode()
        + "".join(f"{field}\r\n" for field in SENDFILE).encode() + b"\r\n"
    ).partition(b"\r\n\r\n")  # fmt: skip
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"x-accel" not in head.lower()
    if path == "/file":
        assert app.read_bytes() in body
        assert b"x-sendfile" not in head.lower()
    else:
        assert b"\r\nX-Sendfile: /etc/passwd" in head  # the application's own, for a front that may obey it
        assert b"root:" not in body


@pytest.mark.parametrize("path", ["/passwd", "/../../etc/passwd", "/static/../../../etc/passwd"])
def test_U09_there_is_no_folder_of_static_files(server: Server, path: str) -> None:
    pairs = [*variables(path, None), (b"CONTENT_LENGTH", b""), (b"DOCUMENT_ROOT", b"/etc"),
             (b"UWSGI_STATIC_MAP", b"/=/etc"), (b"SCRIPT_FILENAME", b"/etc/passwd")]  # fmt: skip
    with server.connect(wire="uwsgi") as sock:
        sock.sendall(uwsgi.packet(pairs, b""))
        data = read_to_end(sock)
    assert b"root:" not in data
    assert re.search(rb"\r\n\r\n\d+ 0$", data) or data.startswith(b"HTTP/1.1 400 ")


# P19: what clients have said, shown to somebody else.


class Tags(HTMLParser):
    """A page's text, and what stands in its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tag = self.text = self.scripts = ""

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        self.tag = tag

    def handle_endtag(self, _tag: str) -> None:
        self.tag = ""

    def handle_data(self, data: str) -> None:
        if self.tag == "script":
            self.scripts += data
        else:
            self.text += data


def test_P19_there_is_no_status_unless_it_is_asked_for(server: Server) -> None:
    for path in ("/status", "/status.json", "/ping", "/metrics"):
        assert re.fullmatch(rb"\d+ 0", server.get(path)[1]), path


def test_P19_what_a_client_says_is_text_in_every_form(app: Path, tmp_path: Path) -> None:
    path = tmp_path / "status.sock"
    options = ["--status-listen", f"unix:{path}", "--process-manager", "static", "--max-servers", "1"]

    def visit(request: str) -> str:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(DEADLINE)
            sock.connect(str(path))
            sock.sendall(f"{request} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            return read_to_end(sock).decode()

    with serving(tmp_path, str(app), *options) as server:
        assert path.stat().st_mode & 0o777 == 0o600
        target = "/slow?<script>alert(1)</script>\"'&{}"
        assert server.get(target, "Authorization: Basic PHNjcmlwdD54PC9zY3JpcHQ+Og==")[0] == 200
        data = json.loads(visit("GET /status.json").partition("\r\n\r\n")[2])
        assert data["pools"][0]["workers"][0]["request"] == f"GET {target}"
        page = Tags()
        page.feed(visit("GET /status").partition("\r\n\r\n")[2])
        assert "alert" not in page.scripts
        assert f"GET {target}" in page.text
        text = visit("GET /status.txt").partition("\r\n\r\n")[2]
        assert all(" " <= c <= "~" or c == "\n" for c in text)
        for order in ("POST /status", "GET /stop", "DELETE /status.json"):
            assert visit(order).startswith(("HTTP/1.1 400 ", "HTTP/1.1 404 ")), order
        assert server.get("/")[0] == 200
