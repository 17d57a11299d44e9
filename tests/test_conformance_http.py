"""The conformance table over our own server: every row as a case, once a wire, at the root and below a prefix.

One line in ``WIRES`` is one wire. flup's clients run where flup is installed.
"""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import fastcgi
from tests.conformance.addresses import parse_address
from tests.conformance.clients import make_client
from tests.conformance.runner import SKIP, Target, run_row
from tests.conformance.table import NEEDS, Row, load_table
from tests.servers import DEADLINE, serving
from tests.support_matrix import BY_FLUP, DIRECTLY, Record, note_rows

APP = "apps/conformance.py"
WIRES = {
    "http": "http",
    "fastcgi": "fastcgi",
    "scgi": "scgi",
    "uwsgi": "uwsgi",
    "ajp": "ajp",
    "flup+fastcgi": "fastcgi",
    "flup+scgi": "scgi",
}
"""The client's scheme -> the wire that the server is told to speak."""
POOL = [
    "--start-servers", "2", "--min-spare-servers", "2", "--max-spare-servers", "2", "--max-servers", "2",
]  # fmt: skip
PROVOKED = [
    r"\] error: (a line of forty bytes, from the table\.\.|a|b|one|two)$",
    r"\] (error|warning): (GET|HEAD) /(gen|file)\?[^ ]*: the body is .* its Content-Length",
    r"\] error: GET /(close|die|fields|gen|replace|silent|status|twice|unicode|wide-field)[? :]",
    r"\] warning: refused a request with (400|414|417|431|501|505): ",
    "^    ",
]
"""What is logged of applications and clients that misbehave, and the lines of tracebacks; nothing else may be."""
ROWS = load_table()


def list_cases() -> list[tuple[str, Row]]:
    """(scheme, row) for every row that makes sense over the scheme."""
    clients = {scheme: make_client(parse_address(f"{scheme}://127.0.0.1:1/"), 1) for scheme in WIRES}
    return [
        (scheme, row)
        for scheme, client in clients.items()
        for row in ROWS
        if "prefix" not in row.needs and not row.find_skip(client.wire, client.lacks)
    ]


CASES = list_cases()


@pytest.fixture(scope="module")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server with two workers that speaks a wire, and how to reach it."""
    scheme = str(request.param)
    if scheme.startswith("flup+") and importlib.util.find_spec("flup") is None:
        pytest.skip("flup is not installed")
    folder = tmp_path_factory.mktemp(WIRES[scheme])
    with serving(folder, APP, "--wire", WIRES[scheme], *POOL, tolerated=PROVOKED) as server:
        yield Target(scheme, parse_address(f"{scheme}://127.0.0.1:{server.port}/"))


@pytest.mark.parametrize(
    ("target", "row"), CASES, indirect=["target"], scope="module", ids=[f"{scheme}-{row.name}" for scheme, row in CASES]
)
def test_row(row: Row, target: Target, record_property: Record) -> None:
    note_rows(record_property, BY_FLUP if target.name.startswith("flup") else DIRECTLY, WIRES[target.name], 1)
    assert run_row(row, target).reason == ""


PREFIX = "/app/v1"
MOUNTED = {
    "http": ("http", ("--path", PREFIX)),
    "ajp": ("ajp", ("--path", PREFIX)),
    "fastcgi": ("fastcgi", ()),
    "scgi": ("scgi", ()),
    "uwsgi": ("uwsgi", ()),
}
"""Scheme -> (wire, options) of a server asked below a prefix: the front says so in SCRIPT_NAME, where it can."""
MAPPED = [row for row in ROWS if row.requests and row.group == "mapping"]


@pytest.fixture(scope="module", params=list(MOUNTED))
def mounted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The application below a prefix."""
    wire, options = MOUNTED[request.param]
    with serving(tmp_path_factory.mktemp("mounted"), APP, "--wire", wire, *options, *POOL) as server:
        yield Target("mounted", parse_address(f"{request.param}://127.0.0.1:{server.port}{PREFIX}"))


@pytest.mark.parametrize("row", MAPPED, ids=[row.name for row in MAPPED])
def test_row_below_a_prefix(row: Row, mounted: Target) -> None:
    outcome = run_row(row, mounted)
    assert outcome.result == SKIP or outcome.reason == ""


@pytest.fixture(scope="module", params=["http", "fastcgi"])
def unix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The application on a UNIX socket (B065)."""
    folder = tmp_path_factory.mktemp("unix")
    with serving(folder, APP, "--wire", request.param, "--bind", f"unix:{folder}/sock", *POOL):
        yield Target("unix", parse_address(f"{request.param}://unix:{folder}/sock"))


@pytest.mark.parametrize("row", MAPPED, ids=[row.name for row in MAPPED])
def test_row_over_a_unix_socket(row: Row, unix: Target) -> None:
    outcome = run_row(row, unix)
    assert outcome.result == SKIP or outcome.reason == ""


def test_a_stream_that_the_client_ends_after_the_answer_costs_none_of_it(tmp_path: Path) -> None:
    """flup's client ends a DATA stream that no responder waits for, possibly when the answer has been sent already."""
    one = ["--start-servers", "1", "--min-spare-servers", "1", "--max-spare-servers", "1", "--max-servers", "1"]
    pairs = [(b"REQUEST_METHOD", b"GET"), (b"SCRIPT_NAME", b""), (b"PATH_INFO", b"/gen"), (b"QUERY_STRING", b"n=30000")]
    with serving(tmp_path, APP, "--wire", "fastcgi", *one) as server, socket.socket() as slow:
        slow.settimeout(DEADLINE)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(fastcgi.request(pairs))
        with server.connect() as other:
            # The only worker answers this when it is done with the first.
            other.sendall(fastcgi.request(pairs))
            assert len(fastcgi.read_answer(other).document.body) == 30000
        slow.sendall(fastcgi.rec(fastcgi.DATA))
        assert len(fastcgi.read_answer(slow).document.body) == 30000


# The table itself.


def test_names_are_unique() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)


def test_every_row_says_where_it_comes_from_and_expects_something() -> None:
    for row in ROWS:
        assert all(row.ids), row.name
        assert bool(row.requests) != bool(row.raw), row.name
        assert row.raw or len(row.requests) == len(row.expected), row.name
        assert any(row.expected), row.name
        assert row.needs <= set(NEEDS), row.name


PLACK_KINDS = {
    "% double encoding in PATH_INFO", "% encoding in PATH_INFO", "% encoding in PATH_INFO (outside of URI characters)",
    "CRLF output and FCGI parse bug", "Do not crash when the app dies", "Do not set $env->{COOKIE}", "GET", "POST",
    "REQUEST_URI is set", "SCRIPT_NAME should not be undef", "SERVER_PROTOCOL is required",
    "a big header value > 128 bytes", "big POST", "bigger file", "call close after read IO::Handle-like",
    "coderef res", "coderef streaming", "filehandle", "filehandle with path()", "handle Authorization header",
    "handle HTTP-Cookie", "handle HTTP-Header", "has errors", "multi headers (request)", "multi headers (response)",
    "newlines", "no entity headers on 304", "psgi.url_scheme", "repeated slashes", "request->content on GET",
    "request->input seekable", "return glob", "status line", "test 404", "validate env",
}  # fmt: skip
"""The kinds of Plack::Test::Suite, by their names there."""


def test_the_table_covers_every_kind_of_plack_s_shared_suite() -> None:
    covered = {text.removeprefix("plack: ") for row in ROWS for text in row.ids}
    assert covered >= PLACK_KINDS, PLACK_KINDS - covered
