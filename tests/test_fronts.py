"""Front servers in front of every wire, with the configurations that ``gateways conf`` prints.

Each pair of a front and a wire is held against the whole conformance table; rows that a front itself changes are listed
below, each with the reason. Paths (B020, B024, B048, B086) have a table of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from gateways.config.reader import read_settings
from gateways.config.settings import ServerSettings
from tests.conformance.addresses import parse_address
from tests.conformance.rows import bodies, mapping, responses
from tests.conformance.runner import FAIL, Outcome, Target, run_row
from tests.conformance.table import Row, load_table
from tests.fronts import Front, copy_package, front, open_folder, write_program
from tests.servers import ROOT, Server, decode_chunks, serving
from tests.support_matrix import Record, note_rows

APP = ROOT / "apps" / "conformance.py"


@dataclass(frozen=True, slots=True)
class Pair:
    """A front and what it speaks, or how it starts us. ``reuse``, ``stream``: as in ``Wishes``; ``unix``: over that."""

    front: str
    wire: str = ""
    spawn: str = ""
    reuse: bool = False
    stream: bool = False
    unix: bool = False

    @property
    def base(self) -> str:
        """Its name without the ways."""
        return f"{self.front}-spawns-{self.spawn}" if self.spawn else f"{self.front}-{self.wire}"

    def __str__(self) -> str:
        return "-".join([self.base, *(name for name in ("reuse", "stream", "unix") if getattr(self, name))])

    def fits(self, pattern: str) -> bool:
        """True when a pattern of pairs means this one, with whatever ways or with these."""
        return bool(re.fullmatch(pattern, self.base) or re.fullmatch(pattern, str(self)))


FULL = (
    *(Pair("apache", wire) for wire in ("http", "fastcgi", "scgi", "ajp", "uwsgi")),
    *(Pair("nginx", wire) for wire in ("http", "fastcgi", "scgi", "uwsgi")),
    *(Pair("lighttpd", wire) for wire in ("http", "fastcgi", "scgi", "uwsgi", "ajp")),
    *(Pair("haproxy", wire) for wire in ("http", "fastcgi")),
    *(Pair("caddy", wire) for wire in ("http", "fastcgi")),
    *(Pair(name, spawn=way) for name in ("apache", "lighttpd") for way in ("fastcgi", "cgi")),
)
"""Pairs that the whole table is held against."""

CHUNKED = ("chunked", "chunked-*", "unread-chunked")
CUT = ("dies-after-first-piece", "head-replaced-too-late")
CUT_SHORT = ("length-100-*", "length-30-*", "length-200000-*", "dies-after-first-piece-with-length")
BODIES = (
    "post", "post-[!e]*", "delete-*", "read-*", "readline*", "head-then-body", "head-with-part", "head-in-parts",
    "unread*", "continue*", "lint-post", "content-type", *CHUNKED,
)  # fmt: skip
CHANGES = (
    ("apache.*", "httpd takes // at the start of a path for /", "repeated-slashes"),
    ("apache.*", "httpd joins Cookie fields with a comma", "cookie-twice"),
    ("apache-(http|ajp)", "httpd passes on the path that it looked at, encoded anew", "request-uri"),
    ("apache-(scgi|uwsgi)", "httpd answers 411 to an upload without a Content-Length", *CHUNKED),
    ("apache-spawns-cgi", "mod_cgid gives a script no length for such an upload: we answer 411", *CHUNKED),
    ("apache-fastcgi", "httpd answers 503 if not even a head has come", "length-100-of-0-*"),
    ("apache-scgi", "httpd adds an error page, and states a length that it does not send", *CUT, *CUT_SHORT),
    ("apache-uwsgi", "mod_proxy_uwsgi takes a reset for the end of an answer", *CUT),
    ("apache-spawns-cgi", "mod_cgid looks at no exit status, and corrects the length of an answer", *CUT, *CUT_SHORT),
    ("apache-spawns-fastcgi", "mod_fcgid adds an error page to half an answer", *CUT, *CUT_SHORT),
    ("nginx-(fastcgi|scgi|uwsgi)", "nginx before 1.23 passes a repeated field as a repeated variable", "field-twice"),
    ("(nginx|apache|caddy)-.*-unix", "no connection can be reset there: not every front sees the cut", *CUT_SHORT),
    ("lighttpd.*", "lighttpd merges slashes", "repeated-slashes"),
    ("lighttpd-(fastcgi|scgi|uwsgi)-stream", "lighttpd answers 411 to an upload without a length", "chunked*"),
    ("lighttpd.*", "lighttpd sends a normalized path, and a normalized path only", "request-uri"),
    ("lighttpd.*", "lighttpd drops empty fields, and an answer's fields beyond ASCII", "field-empty",
     "response-field-empty", "response-field-latin-1"),
    ("lighttpd.*", "lighttpd refuses a body with GET", "get-with-body"),
    ("lighttpd.*", "lighttpd refuses a target with control characters, encoded ones too", "query-undecoded",
     "escape-newline", "body-looks-like-head", "body-newlines", "body-nul", "field-value-*", "field-name-lf",
     "status-crlf"),
    ("lighttpd.*", "lighttpd states a length by itself when the head and the cut come together", *CUT),
    ("lighttpd-spawns-cgi", "lighttpd ends a script that has more to say than was asked for", "close-head"),
    ("lighttpd-ajp", "mod_ajp13 sends bodies as no AJP connector can read them", *BODIES),
    ("lighttpd-ajp", "mod_ajp13 sends the path decoded", "escape-once"),
    ("lighttpd-ajp", "mod_ajp13 has no PATCH", "methods"),
    ("haproxy-fastcgi", "HAProxy 2.6 passes a repeated field as a repeated variable", "field-twice", "cookie-twice"),
    ("haproxy-fastcgi", "HAProxy answers 500 to an encoded newline", "escape-newline"),
    ("haproxy-fastcgi", "HAProxy 2.6 answers 400 to such an upload if its buffer cannot hold it", "chunked-large"),
    ("haproxy-fastcgi", "HAProxy states a length of 0 in a 304", "status-304*"),
    ("haproxy-fastcgi.*", "HAProxy 2.6 may wait for ever with a body that nobody reads", "unread-large"),
    ("apache-fastcgi-reuse.*", "httpd may ask on a kept connection in the moment of its end, and answers 503",
     "chunked*"),
    ("caddy.*", "Caddy guesses a Content-Type", "content-type-not-invented"),
    ("caddy.*", "Caddy 2.6 ends an answer that was cut as if it were whole", *CUT),
    ("caddy-fastcgi", "Caddy joins Cookie fields with a comma", "cookie-twice"),
    ("caddy-fastcgi", "Caddy passes an empty REMOTE_USER, which means none (RFC 3875 4.1)", "authorization"),
    ("caddy-fastcgi", "Caddy 2.6 states a length of -1 for such an upload: we answer 400", *CHUNKED),
)  # fmt: skip
"""(pattern of pairs, reason, patterns of rows): what a front itself makes of a row. These rows are not run."""

PROVOKED = {
    "apache": r"AH(00574|00878|00893|00992|01030|01067|01068|01069|01075|01102|01110|01114|01215|02651|10244)|cgid"
    r"|^gateways: |^Traceback|^ |Raised|^[A-Za-z]+Error: |\] (error|info|warning): ",
    "nginx": r"upstream prematurely closed|Connection reset by peer|upstream sent",
    "lighttpd": r"gw_backend\.c|http-header-glue\.c|mod_fastcgi\.c|mod_ajp13\.c|mod_cgi\.c|mod_scgi\.c|^gateways: "
    r"|^Traceback|^ |Raised|^[A-Za-z]+Error: |\] (error|warning): ",
    "haproxy": r"^$",
    "caddy": r"reading from backend|aborting with incomplete response|reset by peer|fcgi",
}
"""Front -> complaints about the table's ill-behaved pages. What a spawned program says stands in its front's log."""
FAULTS = ["error: |warning: |Traceback|^  |Raised"]


def find_change(pair: Pair, row: str) -> str:
    """Why a front changes a row; ``""`` when it does not."""
    for pairs, reason, *rows in CHANGES:
        if pair.fits(pairs) and any(fnmatchcase(row, pattern) for pattern in rows):
            return reason
    return ""


@pytest.fixture(scope="module")
def sockets() -> Iterator[Path]:
    """A folder that fronts can reach, for UNIX sockets, and for what fronts start."""
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def servers(sockets: Path) -> Iterator[tuple[Server, Server]]:
    """Two servers that speak every wire: the application at the root, and below two paths."""
    with ExitStack() as stack:
        yield (
            stack.enter_context(serve(sockets, "root", ("/",))),
            stack.enter_context(serve(sockets, "mounts", ("/mount", "/end/"))),
        )


def serve(folder: Path, name: str, paths: tuple[str, ...]) -> object:
    """Serve the application of the conformance table below ``paths``, on every wire."""
    inner = folder / name
    inner.mkdir()
    file = inner / "gateways.toml"
    file.write_text(format_pool(name, paths, APP, inner))
    return serving(inner, "--config", str(file), bind=False, tolerated=FAULTS)


WIRES = ("http", "fastcgi", "scgi", "ajp", "uwsgi")


def list_places(folder: Path) -> list[str]:
    """Every wire on a free port and on a UNIX socket."""
    return [f"{wire}://127.0.0.1:0" for wire in WIRES] + [f"{wire}://unix:{folder}/{wire}" for wire in WIRES]


def format_pool(name: str, paths: tuple[str, ...], target: Path, folder: Path) -> str:
    """A configuration: one application below ``paths``, on every wire."""
    mounts = "".join(f'[[pool.{name}.Mount]]\nPath = "{path}"\nTarget = "{target}"\nModel = "wsgi"\n' for path in paths)
    settings = 'ListenMode = "0666"\nTrustedProxies = ["127.0.0.1", "unix"]\nStartServers = 2\nMinSpareServers = 2\n'
    return f"[pool.{name}]\nListen = {json.dumps(list_places(folder))}\n{settings}MaxServers = 8\n{mounts}"


def find_settings(server: Server, pair: Pair) -> ServerSettings:
    """The settings of a running server, with the address that the pair uses and no other."""
    settings = read_settings(str(server.log.parent / "gateways.toml"))
    (pool,) = settings.pools
    place = next(
        place for place in pool.listen if place.wire == pair.wire and place.address.startswith("unix:") == pair.unix
    )
    if not pair.unix:
        place = replace(place, address=f"127.0.0.1:{server.ports[pair.wire]}")
    return replace(settings, pools=(replace(pool, listen=(place,)),))


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, sockets: Path) -> Iterator[tuple[Pair, Front]]:
    """A front server before both servers, or starting three mounts by itself."""
    pair: Pair = request.param
    command = ""
    if pair.spawn:
        settings, command = prepare_spawning(sockets)
    else:
        root, mounts = (find_settings(server, pair) for server in request.getfixturevalue("servers"))
        settings = replace(root, pools=(*root.pools, *mounts.pools))
    with front(
        pair.front, settings, PROVOKED[pair.front], wire=pair.wire, spawn=pair.spawn, reuse=pair.reuse,
        stream=pair.stream, command=command,
    ) as started:  # fmt: skip
        yield pair, started


def prepare_spawning(folder: Path) -> tuple[ServerSettings, str]:
    """The settings of a program that is mounted three times, and the command that a front starts."""
    inner = folder / "spawned"
    if not inner.exists():
        inner.mkdir()
        command = copy_package(inner)
        program = write_program(inner / "conformance.py", APP, command)
        (inner / "gateways.toml").write_text(format_pool("spawned", ("/", "/mount", "/end/"), program, inner))
        (inner / "command").write_text(command)
    return read_settings(str(inner / "gateways.toml")), (inner / "command").read_text()


def each(pairs: tuple[Pair, ...]) -> pytest.MarkDecorator:
    """Run a test for each pair; a front that is not installed is skipped, or fails where it has to be there."""
    return pytest.mark.parametrize(
        "running",
        [pytest.param(pair, marks=pytest.mark.front(pair.front), id=str(pair)) for pair in pairs],
        indirect=True,
    )


def ask_path(started: Front, target: bytes) -> tuple[str, str] | int:
    """Return (SCRIPT_NAME, PATH_INFO) that the application sees for a target, or the status when it is not asked."""
    answer = started.exchange(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        return int(head[9:12] or 0)
    if re.search(rb"\r\ntransfer-encoding: chunked", head, re.IGNORECASE):
        body = decode_chunks(body)
    seen = json.loads(body)
    return seen["script_name"], seen["path_info"]


PATHS: dict[str, tuple[bytes, tuple[str, str] | int]] = {
    "B024-root": (b"/x", ("", "/x")),
    "B024-root-alone": (b"/", ("", "/")),
    "B086-mount": (b"/mount", ("/mount", "")),
    "B086-mount-slash": (b"/mount/", ("/mount", "/")),
    "B086-below": (b"/mount/example", ("/mount", "/example")),
    "B086-slash-at-end": (b"/end", ("/end", "")),
    "B086-slash-at-end-below": (b"/end/x", ("/end", "/x")),
    "B086-beside": (b"/mountain", ("", "/mountain")),
    "B086-encoded-slash": (b"/mount%2Fx", ("/mount", "/x")),
    "B086-encoded-letter": (b"/%6Dount/x", ("/mount", "/x")),
    "B086-utf-8": (b"/mount/%C3%A5", ("/mount", "/\xc3\xa5")),
    "B086-utf-8-small-letters": (b"/mount/%c3%a5", ("/mount", "/\xc3\xa5")),
    "B086-latin-1": (b"/mount/%E5", ("/mount", "/\xe5")),
    "B086-raw-utf-8": (b"/mount/\xc3\xa5", ("/mount", "/\xc3\xa5")),
    "B086-truncated": (b"/mount/%C3", ("/mount", "/\xc3")),
    "B086-slash": (b"/mount/a%2Fb", ("/mount", "/a/b")),
    "B086-encoded-escape": (b"/mount/a%252Fb", ("/mount", "/a%2Fb")),
    "B086-plus": (b"/mount/a+b%2Bc", ("/mount", "/a+b+c")),
    "B086-nul": (b"/mount/a%00b", 400),
    "B086-no-escape": (b"/mount/%uD83D", 400),
    "B020-slashes": (b"/mount//foo///bar", ("/mount", "//foo///bar")),
    "B020-slashes-first": (b"//foo///bar", ("", "//foo///bar")),
    "B020-dots": (b"/mount/a/../b/./c", ("/mount", "/b/c")),
    "B020-dots-above": (b"/mount/../x", ("", "/x")),
    "B048-once": (b"/mount/a%2520b", ("/mount", "/a%20b")),
}
"""Case -> (target, what the application sees, or the status if it is not asked)."""


OTHER_PATHS: tuple[tuple[str, str, dict[str, tuple[str, str] | int]], ...] = (
    ("apache.*", "httpd refuses NUL with 404, and takes // at the start for /",
     {"B086-nul": 404, "B020-slashes-first": ("", "/foo///bar")}),
    ("apache-spawns-.*", "httpd maps the path to a file, and merges slashes",
     {"B020-slashes": ("/mount", "/foo/bar"), "B020-slashes-first": ("", "/foo/bar")}),
    ("lighttpd.*", "lighttpd merges slashes, and takes %u as it is",
     {"B020-slashes": ("/mount", "/foo/bar"), "B020-slashes-first": ("", "/foo/bar"),
      "B086-no-escape": ("/mount", "/%uD83D")}),
    ("lighttpd-ajp", "mod_ajp13 sends the path decoded, and it is decoded again",
     {"B086-encoded-escape": ("/mount", "/a/b"), "B048-once": ("/mount", "/a b"), "B086-no-escape": 400}),
    ("(nginx|haproxy|caddy)-http|haproxy-fastcgi|caddy-fastcgi", "dot segments are refused",
     {"B020-dots": 400, "B020-dots-above": 400}),
    ("haproxy.*", "HAProxy refuses a path beyond ASCII", {"B086-raw-utf-8": 400}),
    ("haproxy-fastcgi", "HAProxy's path-info fails with 500", {"B086-nul": 500, "B086-no-escape": 500}),
)  # fmt: skip
"""(pattern of pairs, why, what is seen instead); a later row counts before an earlier one."""


@each(FULL)
def test_paths(running: tuple[Pair, Front]) -> None:
    pair, started = running
    wanted = {case: expected for case, (_, expected) in PATHS.items()}
    for pairs, _, instead in OTHER_PATHS:
        if pair.fits(pairs):
            wanted |= instead
    assert {case: ask_path(started, target) for case, (target, _) in PATHS.items()} == wanted


def hold(pair: Pair, started: Front, rows: tuple[Row, ...], prefix: str = "") -> list[str]:
    """Run rows that the front does not change; return a sentence for each that fails."""
    target = Target(str(pair), parse_address(started.url + prefix), pair.front)
    left = [row for row in rows if not find_change(pair, row.name)]

    def run(row: Row) -> Outcome:
        return run_row(row, target)

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(run, left))
    return [f"{outcome.row.name}: {outcome.reason}" for outcome in outcomes if outcome.result == FAIL]


@each(FULL)
def test_the_whole_table(running: tuple[Pair, Front], record_property: Record) -> None:
    pair, started = running
    rows = (
        load_table() if pair.spawn != "cgi" else (*mapping.ROWS, *bodies.ROWS, *responses.ROWS)
    )  # others cost minutes
    column = f"spawns {pair.spawn}" if pair.spawn else pair.wire
    note_rows(record_property, pair.front, column, sum(1 for row in rows if not find_change(pair, row.name)))
    failures = hold(pair, started, rows)
    assert failures == [], "\n".join(failures)


@each(FULL)
@pytest.mark.parametrize("prefix", ["/mount", "/end"])
def test_requests_below_a_mount(running: tuple[Pair, Front], prefix: str) -> None:
    pair, started = running
    rows = mapping.ROWS if pair.spawn != "cgi" else mapping.ROWS[:20]
    failures = hold(pair, started, rows, prefix)
    assert failures == [], "\n".join(failures)


VARIANTS = (
    *(Pair("apache", wire, unix=True) for wire in ("http", "fastcgi", "scgi", "ajp", "uwsgi")),
    *(Pair("nginx", wire, unix=True) for wire in ("http", "fastcgi", "scgi", "uwsgi")),
    *(Pair("lighttpd", wire, unix=True) for wire in ("http", "fastcgi", "scgi", "uwsgi")),
    *(Pair(name, wire, unix=True) for name in ("haproxy", "caddy") for wire in ("http", "fastcgi")),
    *(Pair("apache", wire, reuse=True, stream=True) for wire in ("http", "fastcgi", "ajp")),
    *(Pair("nginx", wire, reuse=True, stream=True) for wire in ("http", "fastcgi")),
    *(Pair("nginx", wire, stream=True) for wire in ("scgi", "uwsgi")),
    *(Pair("nginx", wire, reuse=True, unix=True) for wire in ("http", "fastcgi")),
    *(Pair("lighttpd", wire, stream=True) for wire in ("http", "fastcgi", "scgi", "uwsgi")),
    *(Pair("haproxy", wire, reuse=True) for wire in ("http", "fastcgi")),
    Pair("caddy", "http", reuse=True, stream=True),
)
"""Other ways to the same backends, held against a few rows that a way could break."""
FEW = (
    "script-name", "escape-once", "authorization", "post", "post-300-kb", "post-empty", "chunked*", "unread-large",
    "head", "status-304", "status-204", "set-cookie-twice", "head-5000-bytes", "stream-*", "file-large",
    "length-8-of-21-generator", "length-100-of-8-generator", "dies-when-called", "dies-after-first-piece-with-length",
)  # fmt: skip


@each(VARIANTS)
def test_a_few_rows_in_other_ways(running: tuple[Pair, Front]) -> None:
    pair, started = running
    rows = tuple(row for row in load_table() if any(fnmatchcase(row.name, pattern) for pattern in FEW))
    failures = hold(pair, started, rows)
    assert failures == [], "\n".join(failures)


@pytest.mark.front("apache")
def test_an_ajp_secret_goes_with_every_request(tmp_path: Path) -> None:
    file = tmp_path / "gateways.toml"
    file.write_text(
        '[pool.p]\nListen = "ajp://127.0.0.1:0"\nSecret = "0123456789abcdef"\nStartServers = 1\nMinSpareServers = 1\n'
        f'[[pool.p.Mount]]\nTarget = "{ROOT}/apps/hello.py:application"\n'
    )
    settings = read_settings(str(file))
    refused = "refused a request with 403"
    with serving(tmp_path, "--config", str(file), bind=False, wanted=[refused]) as server:
        (pool,) = settings.pools
        place = replace(pool.listen[0], address=f"127.0.0.1:{server.ports['ajp']}")
        for secret, status in ((pool.secret, b"200"), ("another-secret-0", b"403")):
            told = replace(settings, pools=(replace(pool, listen=(place,), secret=secret),))
            with front("apache", told) as started:
                answer = started.exchange(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert answer[9:12] == status


def test_what_fronts_change_is_about_rows_and_pairs_that_there_are() -> None:
    names = [row.name for row in load_table()]
    for pairs, reason, *rows in CHANGES:
        assert any(pair.fits(pairs) for pair in (*FULL, *VARIANTS)), pairs
        assert [row for row in rows if not any(fnmatchcase(name, row) for name in names)] == [], reason
    for pairs, why, instead in OTHER_PATHS:
        assert any(pair.fits(pairs) for pair in FULL), pairs
        assert set(instead) <= set(PATHS), why
