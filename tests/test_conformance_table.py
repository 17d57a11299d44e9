"""The conformance table's own parts: what its clients read, what its checks say, what its runner survives."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.conformance import checks
from tests.conformance.addresses import Address, parse_address
from tests.conformance.clients.ajp import PacketReader, format_forward_request
from tests.conformance.clients.documents import parse_response
from tests.conformance.clients.http import HTTPClient, HTTPReader
from tests.conformance.clients.stream import Stream
from tests.conformance.clients.uwsgi import UWSGIClient
from tests.conformance.clients.variables import plan_variables
from tests.conformance.matrix import format_markdown, format_text
from tests.conformance.messages import Broken, Context, Request, Response
from tests.conformance.report import Column, format_report
from tests.conformance.runner import FAIL, PASS, SKIP, Outcome, Target, run_row, run_table
from tests.conformance.table import Row
from tests.servers import ROOT
from tests.support_matrix import add_up, format_matrix, note_rows

HERE = Address("http", "127.0.0.1", 8000, prefix="/app")
GET = Row("get", ("id",), (Request(),), ((checks.whole, checks.status(200)),))
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:8000/", Address("http", "127.0.0.1", 8000)),
        ("http://127.0.0.1:8000/app/", Address("http", "127.0.0.1", 8000, prefix="/app")),
        ("http://h", Address("http", "h", 80)),
        ("ajp://[::1]", Address("ajp", "::1", 8009)),
        ("http://[::1]:81/a/b", Address("http", "::1", 81, prefix="/a/b")),
        ("fastcgi://unix:/run/a.sock", Address("fastcgi", path="/run/a.sock")),
        ("flup+scgi://unix:/run/a.sock:/app", Address("flup+scgi", path="/run/a.sock", prefix="/app")),
    ],
)
def test_an_address_is_a_scheme_a_place_and_a_prefix(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["127.0.0.1:80", "ftp://h:1/", "fastcgi://h", "scgi://unix:", "http://:80/", "http://h:x/"]
)
def test_an_address_that_names_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"://"):
        parse_address(text)


def test_variables_are_what_nginx_would_send() -> None:
    request = Request("POST", "//a%2Fb%25?x=%41", (("Foo", "1"), ("foo", "2"), ("Content-Type", "t/p"), ("X_Y", "z")))
    found = dict(plan_variables(request, HERE, "3"))
    assert found == {
        "QUERY_STRING": "x=%41", "REQUEST_METHOD": "POST", "CONTENT_TYPE": "t/p", "CONTENT_LENGTH": "3",
        "SCRIPT_NAME": "/app", "PATH_INFO": "//a/b%", "REQUEST_URI": "/app//a%2Fb%25?x=%41",
        "DOCUMENT_URI": "/app//a/b%", "DOCUMENT_ROOT": "/usr/share/nginx/html", "SERVER_PROTOCOL": "HTTP/1.1",
        "REQUEST_SCHEME": "http", "GATEWAY_INTERFACE": "CGI/1.1", "SERVER_SOFTWARE": "nginx/1.26.0",
        "REMOTE_ADDR": "192.0.2.7", "REMOTE_PORT": "54321", "SERVER_ADDR": "192.0.2.1", "SERVER_PORT": "80",
        "SERVER_NAME": "127.0.0.1", "HTTP_HOST": "127.0.0.1:8000", "HTTP_FOO": "1, 2", "HTTP_X_Y": "z",
    }  # fmt: skip


def test_requests_as_http_uwsgi_and_ajp_send_them() -> None:
    request = Request("POST", "/p?q=1", (("X", "y"),), b"abc")
    assert HTTPClient(HERE, 1).format(request) == (
        b"POST /app/p?q=1 HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nX: y\r\nContent-Length: 3\r\n\r\n",
        b"abc",
    )
    chunked = Request("POST", "/", (), b"abcde", (2,))
    assert HTTPClient(HERE, 1).format(chunked)[1] == b"2\r\nab\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\n"
    packet = UWSGIClient(HERE, 1).format(request)
    assert packet[:1] == packet[3:4] == b"\0"
    assert len(packet) == 4 + int.from_bytes(packet[1:3], "little") + 3
    assert b"\x09\0PATH_INFO\x02\0/p" in packet
    forward = format_forward_request(request, HERE)
    assert forward[:2] == b"\x12\x34"
    assert int.from_bytes(forward[2:4]) == len(forward) - 4
    assert forward[4:6] == b"\x02\x04"
    assert b"\0\x06/app/p\0" in forward
    assert forward.endswith(b"\x05\0\x03q=1\0\xff")


class Canned(Stream):
    """A connection on which the given bytes came, and then its end."""

    def __init__(self, data: bytes) -> None:
        self.buffer = data
        self.ended = True


@pytest.mark.parametrize(
    ("data", "method", "body", "framing", "kept"),
    [
        (OK, "GET", b"ok", "length", True),
        (OK, "HEAD", b"", "none", True),
        (b"HTTP/1.1 204 No\r\n\r\n", "GET", b"", "none", True),
        (b"HTTP/1.1 200 \r\n\r\nrest", "GET", b"rest", "close", False),
        (
            b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n0\r\nT: 1\r\n\r\n",
            "GET",
            b"ok",
            "chunked",
            True,
        ),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "GET", b"", "length", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, "GET", b"ok", "length", True),
    ],
)
def test_the_http_client_reads_what_rfc_9112_frames(
    data: bytes, method: str, body: bytes, framing: str, kept: bool
) -> None:
    response = HTTPReader(Canned(data)).read(method)
    assert (response.body, response.framing, response.kept) == (body, framing, kept)
    assert response.complete
    assert response.fault == ""


@pytest.mark.parametrize(
    "data",
    [
        b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 200 OK\nA: b\n\n", b"200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n", b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)  # fmt: skip
def test_the_http_client_takes_nothing_else_for_a_head(data: bytes) -> None:
    with pytest.raises(Broken):
        HTTPReader(Canned(data)).read("GET")


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokXX0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n",
    ],
)
def test_the_http_client_can_tell_a_cut_response(data: bytes) -> None:
    response = HTTPReader(Canned(data)).read("GET")
    assert not response.complete
    assert checks.whole(response, Context())
    assert checks.cut(response, Context()) == ""


@pytest.mark.parametrize(
    ("data", "method", "status", "body", "complete"),
    [
        (b"Status: 404 Not Found\r\nA: b\r\n\r\nx", "GET", 404, b"x", True),
        (b"A: b\r\n\r\nx", "GET", 200, b"x", True),
        (b"Location: http://h/\r\n\r\n", "GET", 302, b"", True),
        (b"HTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", "GET", 201, b"x", True),
        (b"Status: 200 OK\r\nContent-Length: 2\r\n\r\nx", "GET", 200, b"x", False),
        (b"Status: 200 OK\r\nContent-Length: 2\r\n\r\n", "HEAD", 200, b"", True),
    ],
)
def test_a_document_is_read_in_cgi_and_in_http_form(
    data: bytes, method: str, status: int, body: bytes, complete: bool
) -> None:
    response = parse_response(data, True, method)
    assert (response.status, response.body, response.complete) == (status, body, complete)


def test_a_document_says_when_it_was_cut_or_has_a_body_where_none_may_be() -> None:
    assert parse_response(b"Status: 200 OK\r\n\r\nx", False, "GET").fault
    assert parse_response(b"Status: 200 OK\r\n\r\nx", True, "HEAD").fault
    assert parse_response(b"Status: 304 Same\r\n\r\nx", True, "GET").fault


def test_an_ajp_string_that_lies_about_its_size_is_told() -> None:
    with pytest.raises(Broken):
        PacketReader(b"\0\xc8\0\x09OK\0\0\0").response_head()


# Checks say a sentence, or nothing.


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (checks.status(200), Response(200), Response(500)),
        (checks.no_answer_or(400), Response(), Response(200)),
        (checks.field("A", "1", "2"), Response(fields=(("a", "1"), ("A", "2"))), Response(fields=(("A", "1, 2"),))),
        (checks.joined_field("A", "1, 2"), Response(fields=(("A", "1, 2"),)), Response(fields=(("A", "1"),))),
        (checks.no_field("A"), Response(), Response(fields=(("a", ""),))),
        (checks.at_most_one("A"), Response(fields=(("A", ""),)), Response(fields=(("A", ""), ("a", "")))),
        (checks.length_is(3), Response(), Response(fields=(("Content-Length", "4"),))),
        (checks.body(b"x"), Response(body=b"x"), Response(body=b"xx")),
        (checks.body_starts(b"half"), Response(body=b"ha"), Response(body=b"half, 500")),
        (checks.generated(5, 2), Response(body=b"\2\3\4"), Response(body=b"\0\1\2\3\4")),
        (checks.given([1]), Response(200, body=b"[1]"), Response(200, body=b"[]")),
        (checks.words("a"), Response(200, body=b"a"), Response(200, body=b"a a")),
        (
            checks.at_path("/x"),
            Response(200, body=b'{"path_info": "/x", "script_name": ""}'),
            Response(200, body=b"{}"),
        ),
        (checks.kept, Response(kept=True), Response()),
        (checks.closed, Response(), Response(kept=True)),
        (checks.interim((100,)), Response(interim=(100,)), Response()),
        (checks.either((checks.status(1),), (checks.status(2),)), Response(2), Response(3)),
    ],
)
def test_a_check_has_nothing_to_say_of_what_is_right(check: checks.Check, right: Response, wrong: Response) -> None:
    assert check(right, Context()) == ""
    assert len(check(wrong, Context())) > 5


# The runner.


@pytest.fixture
def deaf() -> Iterator[Address]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield Address("http", "127.0.0.1", sock.getsockname()[1])


def test_a_hang_fails_its_row_and_the_run_goes_on(deaf: Address) -> None:
    outcomes = run_table([GET, GET], Target("deaf", deaf), limit=0.2)
    assert [outcome.result for outcome in outcomes] == [FAIL, FAIL]
    assert "timed out" in outcomes[0].reason or "time limit" in outcomes[0].reason


def test_a_hang_on_raw_bytes_fails_its_row(deaf: Address) -> None:
    row = Row("raw", ("id",), raw=b"GET / HTTP/1.1\r\n", expected=((checks.status(400),),))
    assert run_row(row, Target("deaf", deaf), limit=0.2).result == FAIL


def test_nobody_there_fails_the_row() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    assert run_row(GET, Target("none", Address("scgi", "127.0.0.1", port)), limit=1).result == FAIL


def test_a_row_is_skipped_with_a_sentence() -> None:
    raw = Row("raw", ("id",), raw=b"x", expected=((checks.status(400),),), needs=frozenset({"raw", "direct"}))
    here = Row("here", ("id",), (Request(),), ((checks.status(200),),), skips={"nginx": "nginx does that itself"})
    assert "HTTP" in run_row(raw, Target("a", Address("ajp", "h", 1))).reason
    assert "front server" in run_row(raw, Target("a", Address("http", "h", 1), "nginx")).reason
    assert "prefix" in run_row(raw, Target("a", Address("http", "h", 1, prefix="/x"))).reason
    assert run_row(here, Target("a", Address("http", "h", 1), "nginx")).reason == "nginx does that itself"


# What is printed.


RESULTS = {
    "one": [Outcome(GET, PASS), Outcome(GET, SKIP, "why|not")],
    "two": [Outcome(GET, FAIL, "a < b"), Outcome(GET, PASS)],
}


def test_the_matrix_has_a_line_a_row_and_says_what_failed() -> None:
    text = format_text(RESULTS)
    assert "get ok  FAIL\n" in text
    assert "one: 1 ok, 0 failed, 1 skipped" in text
    assert "  FAIL get: a < b" in text
    assert "| get | id | ok | FAIL |" in format_markdown(RESULTS)
    page = format_report(
        [Column("one", "http", tuple(RESULTS["one"])), Column("two", "http", tuple(RESULTS["two"]))], "", ""
    )
    assert "- **get**\n  - two: `a < b`" in page
    assert "- why\\|not (HTTP: 1)" in page


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.conformance", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name at least one URL"),
        (["ftp://h/"], "does not begin with one of"),
        (["--only", "nothing", "http://127.0.0.1:1/"], "no row is called nothing"),
        (["http://127.0.0.1:1/"], "nothing listens at"),
    ],
)
def test_a_wrong_command_line_is_told_in_a_sentence(arguments: list[str], said: str) -> None:
    done = run_command(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_exit_status_says_whether_a_row_failed(deaf: Address) -> None:
    url = f"http://127.0.0.1:{deaf.port}/"
    done = run_command("--only", "get", "--limit", "0.2", "--quiet", f"deaf={url}")
    assert done.returncode == 1
    assert done.stderr == ""
    assert "deaf: 0 ok, 1 failed, 0 skipped" in done.stdout
    assert run_command("--list").stdout.startswith("get: plack: GET\n")


def test_the_printed_matrix_adds_up_and_names_what_failed() -> None:
    said: list[tuple[list[tuple[str, object]], bool]] = []
    for front, column, rows, passed in (
        ("no front", "http", 1, True),
        ("no front", "http", 1, True),
        ("nginx", "http", 280, True),
        ("nginx", "scgi", 280, False),
    ):
        properties: list[tuple[str, object]] = [("other", 1)]
        note_rows(lambda name, value, kept=properties: kept.append((name, value)), front, column, rows)
        said.append((properties, passed))
    lines = format_matrix(add_up(said))
    assert [line.split() for line in lines[1:3]] == [
        ["no", "front", "2", "-", "-", "-", "-", "-", "-"],
        ["nginx", "280", "-", "FAILED", "-", "-", "-", "-"],
    ]
    assert lines[3] == "2 of 3 ways hold, 1 of them behind a front server"
