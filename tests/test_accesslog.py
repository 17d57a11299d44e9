"""The access log: what a line tells, that no client can write one, and who opens the file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gateways.accesslog import Entry, escape_word, format_clf_time, format_combined, format_common, format_json
from gateways.core.request import Endpoint, FieldRequest, Request, VariableRequest
from tests.clients import fastcgi
from tests.servers import ROOT, Server, read_response, serving, wait_until

APP = "tests/apps/probe.py"
LINE = re.compile(
    r'(?P<address>[!-~]+) - (?P<user>[!-~]+) \[(?P<time>[^]]+)\] "(?P<request>[ !#-~]*)" (?P<status>\d\d\d|-) '
    r'(?P<bytes>\d+|-)(?: "(?P<referer>[ !#-~]*)" "(?P<agent>[ !#-~]*)")? (?P<spent>\d+) (?P<pid>\d+) (?P<mode>[a-z-]+)'
)
ENDPOINT = Endpoint("h", "80")


def make_fields(target: str, *pairs: tuple[str, str]) -> Request:
    return FieldRequest(ENDPOINT, ("192.0.2.1", 5), "GET", target, "/", "", "HTTP/1.1", list(pairs), 0)


def make_variables(**variables: str) -> Request:
    return VariableRequest(ENDPOINT, "", {"REQUEST_METHOD": "GET", "PATH_INFO": "/", **variables}, 0)


def make_entry(request: Request | None) -> Entry:
    address = "" if request is None else request.remote_address
    return Entry(request, address, "200", 12, 345, "wsgi", True)


def take_line(text: str) -> re.Match[str]:
    """The parts of a line; it is one line, of nothing but printable ASCII."""
    assert text.endswith("\n")
    match = LINE.fullmatch(text[:-1])
    assert match is not None, text
    return match


HOSTILE = [
    ("B135-percent", make_fields("/%0d%0aFAKE:%20LINE"), "request", "GET /%0d%0aFAKE:%20LINE HTTP/1.1"),
    ("B135-raw", make_variables(REQUEST_URI="/\r\nFAKE: LINE", SERVER_PROTOCOL="HTTP/1.0"), "request",
     r"GET /\x0d\x0aFAKE: LINE HTTP/1.0"),
    ("B137-agent", make_fields("/", ("User-Agent", 'a" "b')), "agent", r"a\x22 \x22b"),
    ("B137-variable", make_variables(HTTP_USER_AGENT='a" "b'), "agent", r"a\x22 \x22b"),
    ("B140-line", make_fields('/"'), "request", r"GET /\x22 HTTP/1.1"),
    ("B140-agent", make_fields("/", ("user-AGENT", 'My Quoted " Agent')), "agent", r"My Quoted \x22 Agent"),
    ("backslash", make_fields("/", ("Referer", "http://h/\\")), "referer", r"http://h/\x5c"),
    ("latin-1", make_fields("/\xe9"), "request", r"GET /\xe9 HTTP/1.1"),
    ("unicode", make_variables(HTTP_REFERER="\u2028\udc80"), "referer", r"\xe2\x80\xa8\xed\xb2\x80"),
    ("escape-sequence", make_fields("/", ("User-Agent", "\x1b[2J\x9b")), "agent", r"\x1b[2J\x9b"),
    ("address-with-spaces", make_variables(REMOTE_ADDR="1.2.3.4 - root"), "address", r"1.2.3.4\x20-\x20root"),
    ("user", make_variables(REMOTE_USER='a b" [x]\n'), "user", r"a\x20b\x22\x20[x]\x0a"),
    ("nothing", make_fields("/"), "agent", "-"),
    ("no-address", make_variables(), "address", "-"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "part", "shown"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_what_was_sent_stays_in_its_place(request_: Request, part: str, shown: str) -> None:
    entry = make_entry(request_)
    parts = take_line(format_combined(entry, "T", "7"))
    assert parts[part] == shown
    assert (parts["status"], parts["bytes"], parts["spent"], parts["pid"]) == ("200", "12", "345", "7")
    take_line(format_common(entry, "T", "7"))


@pytest.mark.parametrize("request_", [row[1] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_B137_a_json_line_is_json_and_says_what_came(request_: Request) -> None:
    text = format_json(make_entry(request_), "T", "7")
    assert text.isascii()
    assert text.count("\n") == 1
    said = json.loads(text)
    assert said["target"] == request_.target
    assert said["agent"] == request_.find_field("user-agent")
    assert said["user"] == request_.remote_user
    assert (said["status"], said["bytes"], said["microseconds"], said["pid"], said["mode"]) == (200, 12, 345, 7, "wsgi")


def test_a_request_that_could_not_be_read_has_a_line() -> None:
    entry = Entry(None, "192.0.2.1", "400", 30, 0, "", True)
    assert take_line(format_combined(entry, "T", "7"))["request"] == "-"
    assert json.loads(format_json(entry, "T", "7"))["status"] == 400


def test_words_and_times() -> None:
    assert escape_word("") == "-"
    assert re.fullmatch(r"\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}", format_clf_time(0.0))


# Real servers.

PAGES = [
    ("whole", "GET", "/pid", "200", None, True),
    ("head", "HEAD", "/stream/5000/100", "200", 0, True),
    ("stream", "GET", "/stream/100000/7000", "200", 100000, True),
    ("file", "GET", "/file/100000/50", "200", 99950, True),
    ("file-head", "HEAD", "/file/100000/50", "200", 0, True),
    ("no-body", "GET", "/status/304", "304", 0, True),
    ("error-page", "GET", "/die", "500", 26, True),
    ("stated-too-little", "GET", "/declared/5/10", "200", 5, True),
    ("stated-too-little-in-one", "GET", "/listed/5/10", "200", 5, True),
    ("stated-too-much", "GET", "/declared/10/6", "200", 6, False),
    ("died-late", "GET", "/die-late", "200", 4, False),
    ("bad-field", "GET", "/bad-field", "500", 26, True),
]
PROVOKED = ["^    ", r"\] (error|warning): (GET|HEAD) /", r"\] warning: refused a request with 400"]


def read_lines(log: Path, count: int) -> list[str]:
    """Wait for so many lines; there are no more."""
    wait_until(lambda: log.exists() and log.read_text().count("\n") >= count, f"{count} lines")
    lines = log.read_text().splitlines()
    assert len(lines) == count, lines
    return lines


def test_status_bytes_and_wholeness_of_every_kind_of_response(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    options = ["--access-log", str(log), "--access-log-format", "json", "--path", "/app"]
    with serving(tmp_path, APP, *options, tolerated=PROVOKED) as server:
        for at, (name, method, page, status, size, whole) in enumerate(PAGES):
            server.exchange(f"{method} /app{page} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
            said = json.loads(read_lines(log, at + 1)[-1])
            assert said["pid"] in server.workers()
            assert (said["status"], said["whole"], said["mode"]) == (int(status), whole, "wsgi"), name
            assert size is None or said["bytes"] == size, name
            assert said["target"] == f"/app{page}"
        server.get("/elsewhere")
        assert json.loads(read_lines(log, len(PAGES) + 1)[-1])["status"] in (200, 404)
        server.exchange(b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n")
        said = json.loads(read_lines(log, len(PAGES) + 2)[-1])
        assert (said["status"], said["address"], "target" in said) == (400, "127.0.0.1", False)


@pytest.mark.parametrize("form", ["common", "combined", "json"])
def test_B135_B137_B140_over_the_wire(tmp_path: Path, form: str) -> None:
    log = tmp_path / "access.log"
    options = ["--access-log", str(log), "--access-log-format", form]
    sent = [b"GET /%0d%0aFAKE:%20LINE HTTP/1.0\r\n\r\n", b'GET / HTTP/1.0\r\nUser-Agent: a" "b\r\n\r\n']
    with serving(tmp_path, APP, *options, "--bind", "127.0.0.1:0", "--bind", "fastcgi://127.0.0.1:0") as server:
        for data in sent:
            server.exchange(data)
        pairs = [(b"REQUEST_METHOD", b"GET"), (b"REQUEST_URI", b'/\r\nFAKE "LINE'), (b"REMOTE_ADDR", b"192.0.2.7")]
        server.exchange(fastcgi.request([*pairs, (b"PATH_INFO", b"/pid"), (b"SCRIPT_NAME", b"")]), "fastcgi")
        lines = read_lines(log, 3)
    if form == "json":
        assert json.loads(lines[1])["agent"] == 'a" "b'
        assert (json.loads(lines[2])["address"], json.loads(lines[2])["target"]) == ("192.0.2.7", '/\r\nFAKE "LINE')
    else:
        assert [take_line(line + "\n")["address"] for line in lines] == ["127.0.0.1", "127.0.0.1", "192.0.2.7"]
        assert r"GET /\x0d\x0aFAKE \x22LINE " in lines[2]


def ask_often(server: Server, agent: str, count: int) -> None:
    for _ in range(count):
        assert server.get("/wait/0.001", f"User-Agent: {agent}")[0] == 200


def test_lines_of_several_workers_never_mix(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with serving(tmp_path, APP, "--access-log", str(log), "--start-servers", "4") as server:
        agents = [letter * size for letter, size in (("a", 10), ("b", 1000), ("c", 4090), ("d", 8000))]
        threads = [threading.Thread(target=ask_often, args=(server, agent, 50)) for agent in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = [take_line(line + "\n") for line in read_lines(log, 200)]
    assert sorted({line["agent"] for line in lines}) == agents
    assert len({line["pid"] for line in lines}) > 1


def test_B132_P18_a_file_that_was_moved_is_opened_again(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with serving(tmp_path, APP, "--access-log", str(log), "--start-servers", "2") as server:
        server.get("/pid")
        read_lines(log, 1)
        log.rename(tmp_path / "moved.log")
        wait_until(lambda: server.get("/pid")[0] == 200 and log.exists() and log.read_text() != "", "the new file")


def test_a_reload_takes_another_file_and_leaves_no_descriptor(tmp_path: Path) -> None:
    conf = tmp_path / "gateways.toml"
    text = (
        '[pool.main]\nListen = "127.0.0.1:0"\nStartServers = 1\nAccessLog = "{}"\n[[pool.main.Mount]]\nTarget = "{}"\n'
    )
    conf.write_text(text.format("0.log", ROOT / APP))

    def count() -> int:
        return len(os.listdir(f"/proc/{server.pid}/fd"))

    with serving(tmp_path, "--config", str(conf), bind=False) as server:
        server.get("/pid")
        read_lines(tmp_path / "0.log", 1)
        before = count() + 1  # the first pool's file may stay open, no other
        for turn in (1, 2, 3, 4):
            conf.write_text(text.format(f"{turn}.log", ROOT / APP))
            server.process.send_signal(signal.SIGHUP)
            server.wait_for_log(f"generation {turn + 1} of pool main serves")
            log = tmp_path / f"{turn}.log"
            wait_until(lambda: server.get("/pid")[0] == 200 and log.read_text() != "", "a line in the new file")  # noqa: B023
        wait_until(lambda: count() <= before, "the old descriptors' end")


def test_standard_output(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gateways", "serve", APP, "--bind", "127.0.0.1:0", "--access-log", "-"]
    output, log = tmp_path / "output", tmp_path / "error.log"
    with output.open("wb") as stdout:
        process = subprocess.Popen([*command, "--error-log", str(log)], cwd=ROOT, stdout=stdout)
    try:
        wait_until(lambda: "stop:" in output.read_text(), "the announcement")
        server = Server(process, log, output.read_text())
        server.get("/pid")
        wait_until(lambda: "GET /pid" in output.read_text(), "the line")
        take_line(output.read_text().splitlines()[-1] + "\n")
        assert server.stop() == 0
        assert server.complaints() == []
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [("there-is-no/access.log", 2, "is in a folder that does not exist"), (".", 1, "the access log cannot be opened")],
)
def test_a_file_that_cannot_be_opened_stops_the_start(tmp_path: Path, path: str, status: int, sentence: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateways", "serve", str(ROOT / APP), "--bind", "127.0.0.1:0", "--access-log", path],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (status, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


# wsgi.errors.

LENGTHS = [*range(1015, 1036), 4095, 4096, 4097, 65535, 65536, 65537]


def test_B138_lines_of_wsgi_errors_keep_every_byte(tmp_path: Path) -> None:
    """Two workers at a time; each record is prefixed once, has its bytes, and ends where a line ends."""
    (tmp_path / "errors.py").write_text(
        "import string\n"
        "def application(environ, start_response):\n"
        "    start, size = environ['PATH_INFO'][1], int(environ['PATH_INFO'][2:])\n"
        "    letters = string.ascii_letters + string.digits\n"
        "    environ['wsgi.errors'].write(start + (letters * (size // 62 + 1))[: size - 1])\n"
        "    start_response('200 OK', [])\n"
        "    return []\n"
    )

    def ask(start: str) -> None:
        with server.connect() as sock:
            for size in LENGTHS:
                sock.sendall(f"GET /{start}{size} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
                read_response(sock)

    record = re.compile(r"[-0-9]{10} [:.0-9]{12}Z \[(\d+)\] error: ([+=])([A-Za-z0-9]+)")
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    options = ["--start-servers", "2", "--max-servers", "2"]
    with serving(tmp_path, str(tmp_path / "errors.py"), *options, tolerated=[r"\] error: [+=]"]) as server:
        threads = [threading.Thread(target=ask, args=(start,)) for start in "+="]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = [line for line in server.read_log().splitlines() if not re.search(r"\] info: ", line)]
    found: dict[str, list[int]] = {"+": [], "=": []}
    for line in lines:
        match = record.fullmatch(line)
        assert match is not None, line[:200]
        assert match[3] == (letters * (len(match[3]) // 62 + 1))[: len(match[3])]
        found[match[2]].append(len(match[3]) + 1)
    assert found == {"+": LENGTHS, "=": LENGTHS}
