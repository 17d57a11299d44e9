"""Every wire with every execution model, end to end: one pool that speaks all five wires at once, on real sockets.

And who may reach a wire: peers, secrets, the files of UNIX sockets (security rows F01, S06, A01, U01, U04; case B044).
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from gateways.config.directives import MODELS, WIRES
from gateways.config.matrix import ONE_REQUEST, find_reason, format_matrix
from gateways.listening import WIRE_MAKERS
from tests.clients import ajp, fastcgi, scgi, uwsgi
from tests.servers import DEADLINE, ROOT, Server, read_to_end, serving, wait_until
from tests.wires import ASK, variables

HELLO = "apps/hello.py"
EVERY_WIRE = [word for wire in WIRES for word in ("--bind", f"{wire}://127.0.0.1:0")]
FEW = ["--start-servers", "1", "--min-spare-servers", "1", "--max-servers", "2"]
BODY = bytes(range(256)) * 120
"""A body of 30,720 bytes: several packets of AJP."""


def test_the_tables_of_wires_name_the_same_wires() -> None:
    assert tuple(WIRE_MAKERS) == tuple(ASK) == WIRES


def test_the_support_matrix_in_docs_is_fresh() -> None:
    written = (ROOT / "docs" / "support-matrix.md").read_text()
    assert written == format_matrix(), "run: python -m gateways.config.matrix > docs/support-matrix.md"
    assert written.count("| yes") == len(PAIRS) + len(MODELS) - len(ONE_REQUEST)


@pytest.mark.parametrize("model", MODELS)
def test_the_cgi_wire_offers_the_models_that_the_matrix_says(model: str) -> None:
    request = {"REQUEST_METHOD": "GET", "PATH_INFO": "/gateway", "SERVER_PROTOCOL": "HTTP/1.1"}
    done = subprocess.run(
        [sys.executable, "-m", "gateways", "cgi", HELLO, "--model", model], cwd=ROOT, env={**os.environ, **request},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    if reason := ONE_REQUEST.get(model):
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"gateways: a CGI program does not offer model {model}: {reason}\n"
    else:
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith("GATEWAY_INTERFACE: CGI/1.1\nGATEWAYS_MODE: cgi\n")


@pytest.fixture(scope="module")
def modes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The shipped configuration, every execution model below a path of its own, on five wires at once."""
    with serving(tmp_path_factory.mktemp("modes"), "--config", "conf/modes.toml", *EVERY_WIRE) as server:
        yield server


PAIRS = [(wire, model) for wire in WIRES for model in MODELS if not find_reason(wire, model)]


@pytest.mark.parametrize(("wire", "model"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_every_wire_with_every_model(modes: Server, wire: str, model: str) -> None:
    page = ASK[wire](modes, f"/{model}/", None)
    assert (page.status, page.length, len(page.body)) == (200, 1164, 1164)
    assert page.body.count(b"1234567890\n") == 100
    gateway = ASK[wire](modes, f"/{model}/gateway", None)
    assert gateway.body == f"GATEWAY_INTERFACE: CGI/1.1\nGATEWAYS_MODE: {model}\n".encode()
    posted = ASK[wire](modes, f"/{model}/post", BODY)
    assert posted.body == f"length: {len(BODY)}\nsha256: {sha256(BODY).hexdigest()}\n".encode()
    assert (gateway.status, posted.status) == (200, 200)
    assert ASK[wire](modes, f"/{model}/none", None).status == 404


def test_the_announcement_names_each_address_with_its_wire(modes: Server) -> None:
    assert list(modes.ports) == list(WIRES)
    assert 'pool "modes": http, fastcgi, scgi, ajp, uwsgi; workers: ' in modes.said
    for wire, port in modes.ports.items():
        assert re.search(rf"^  {wire}://127\.0\.0\.1:{port}/registry/ +registry ", modes.said, re.MULTILINE)


def test_two_requests_on_a_kept_fastcgi_connection(modes: Server) -> None:
    with modes.connect(wire="fastcgi") as sock:
        for path in ("/wsgi/gateway", "/handler/gateway"):
            sock.sendall(fastcgi.request(variables(path, None), keep=1))
            assert fastcgi.read_answer(sock).document.status == 200


def test_two_requests_on_a_kept_ajp_connection(modes: Server) -> None:
    with modes.connect(wire="ajp") as sock:
        front = ajp.Front(sock)
        for path in ("/wsgi/post", "/handler/post"):
            answer = front.exchange(ajp.forward("POST", path, [("Content-Length", "3")]), b"abc")
            assert answer.body.startswith(b"length: 3\n")


def test_fastcgi_tells_how_many_workers_there_can_be(modes: Server) -> None:
    question = b"".join(fastcgi.nv(name, b"") for name in (b"FCGI_MAX_CONNS", b"FCGI_MAX_REQS", b"FCGI_MPXS_CONNS"))
    with modes.connect(wire="fastcgi") as sock:
        sock.sendall(fastcgi.rec(fastcgi.GET_VALUES, question, rid=0))
        (answer,) = fastcgi.parse_records(fastcgi.read_record(sock))
    assert dict(fastcgi.parse_pairs(answer.content)) == {
        b"FCGI_MAX_CONNS": b"40", b"FCGI_MAX_REQS": b"40", b"FCGI_MPXS_CONNS": b"0",
    }  # fmt: skip


# Who may connect.


def connect_from(source: str, port: int) -> bytes:
    """Ask for a page over SCGI from an address of this machine; what came back before the connection ended."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE, (source, 0)) as sock:
        try:
            sock.sendall(scgi.request(variables("/", None)))
            return read_to_end(sock)
        except ConnectionError:
            return b""


def test_F01_S06_U04_a_connection_from_another_peer_is_closed_at_once(tmp_path: Path) -> None:
    rule = ["--allowed-peers", "127.0.0.2,127.0.1.0/24,::1", "--wire", "scgi"]
    wanted = [r"warning: closed a connection from 127\.0\.0\.1, which is not among AllowedPeers"]
    with serving(tmp_path, HELLO, *FEW, *rule, wanted=wanted) as server:
        assert connect_from("127.0.0.1", server.port) == b""
        for allowed in ("127.0.0.2", "127.0.1.77"):
            assert connect_from(allowed, server.port).startswith(b"Status: 200 OK\r\n")


def test_F01_a_unix_socket_has_its_own_word_among_the_peers(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(tmp_path, HELLO, *FEW, "--bind", f"scgi://unix:{path}", "--allowed-peers", "unix"):
        assert ask_unix(path).startswith(b"Status: 200 OK\r\n")


def ask_unix(path: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(DEADLINE)
        sock.connect(str(path))
        sock.sendall(scgi.request(variables("/", None)))
        return read_to_end(sock)


def test_F01_a_unix_socket_is_open_to_its_owner_and_group(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(tmp_path, HELLO, *FEW, "--bind", f"scgi://unix:{path}") as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert f"  scgi://unix:{path} /  wsgi " in server.said
    assert not path.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_unix_socket_is_given_to_the_front_servers_user(tmp_path: Path) -> None:
    path = tmp_path / "s"
    user, group = pwd.getpwall()[-1].pw_name, grp.getgrall()[-1].gr_name
    owned = ["--listen-owner", user, "--listen-group", group, "--listen-mode", "0600"]
    with serving(tmp_path, HELLO, *FEW, "--bind", f"scgi://unix:{path}", *owned):
        made = path.stat()
        assert (pwd.getpwuid(made.st_uid).pw_name, grp.getgrgid(made.st_gid).gr_name) == (user, group)
        assert stat.S_IMODE(made.st_mode) == 0o600
        assert ask_unix(path).startswith(b"Status: 200 OK\r\n")


# The secret of AJP, and what else a front server is believed.

SECRET = "correct-horse-battery"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An AJP server with a secret, larger packets, and a front server that is believed."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "secret").write_text(f"{SECRET}\n")
    options = [
        "--wire", "ajp", "--secret", f"file:{folder}/secret", "--packet-size", "16384", "--trust-remote-user", "on",
        "--allowed-attributes", "X-[A-Z]+",
    ]  # fmt: skip
    with serving(folder, HELLO, *FEW, *options, wanted=["refused a request with 403"]) as server:
        yield server
        assert SECRET not in server.said + server.read_log()
        assert SECRET.encode() not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert SECRET.encode() not in Path(f"/proc/{server.workers()[0]}/cmdline").read_bytes()


def ask_guarded(server: Server, attributes: bytes, path: str = "/env") -> ajp.Answer:
    with server.connect() as sock:
        return ajp.Front(sock, 16384).exchange(ajp.forward(uri=path, attributes=attributes))


SHOWN = ajp.attribute(ajp.SECRET, SECRET)
SECRETS = [
    ("right", SHOWN, 200), ("missing", b"", 403), ("wrong", ajp.attribute(ajp.SECRET, "wrong-horse-batteryX"), 403),
    ("longer", ajp.attribute(ajp.SECRET, SECRET + "x"), 403), ("empty", ajp.attribute(ajp.SECRET, ""), 403),
    ("twice", SHOWN + SHOWN, 403),
]  # fmt: skip


@pytest.mark.parametrize(("attributes", "status"), [row[1:] for row in SECRETS], ids=[row[0] for row in SECRETS])
def test_A01_a_request_must_carry_the_secret(guarded: Server, attributes: bytes, status: int) -> None:
    assert ask_guarded(guarded, attributes).status == status


def test_A03_a_front_server_is_believed_where_it_is_said(guarded: Server) -> None:
    user = ajp.attribute(ajp.REMOTE_USER, "alice") + ajp.attribute(ajp.AUTH_TYPE, "Basic")
    page = ask_guarded(guarded, SHOWN + user).body
    assert b"<dt>REMOTE_USER</dt><dd>alice</dd>" in page
    assert b"<dt>AUTH_TYPE</dt><dd>Basic</dd>" in page


def test_A03_a_front_server_is_not_believed_by_default(modes: Server) -> None:
    with modes.connect(wire="ajp") as sock:
        user = ajp.attribute(ajp.REMOTE_USER, "alice")
        page = ajp.Front(sock).exchange(ajp.forward(uri="/wsgi/env", attributes=user)).body
    assert b"<dt>PATH_INFO</dt><dd>/env</dd>" in page
    assert b"REMOTE_USER" not in page


def test_A02_only_attributes_that_the_pattern_names_are_let_in(guarded: Server) -> None:
    assert b"<dt>AJP_X-COLOUR</dt><dd>red</dd>" in ask_guarded(guarded, SHOWN + ajp.named("X-COLOUR", "red")).body
    for name in ("X-COLOUR2", "AX-COLOUR", "javax.servlet.include.servlet_path"):
        assert ask_guarded(guarded, SHOWN + ajp.named(name, "red")).status == 403


def test_A09_packets_are_as_long_as_the_setting_says(guarded: Server) -> None:
    answer = ask_guarded(guarded, SHOWN, "/size/100000")
    assert len(answer.body) == 100000
    assert max(answer.sizes) == 16384


# Limits of a block of variables.


def block_of(size: int) -> bytes:
    """A uwsgi packet whose block of variables has exactly so many bytes."""
    pairs = [*variables("/", None)]
    number = 0
    while (left := size - len(uwsgi.block(pairs))) > 0:
        name = b"HTTP_X_%d" % number
        length = min(left, 4000) - len(name) - 4
        if 0 < left - length - len(name) - 4 < 100:
            length -= 200
        pairs.append((name, b"x" * length))
        number += 1
    packet = uwsgi.packet(pairs)
    assert len(packet) == size + 4
    return packet


B044 = [
    ("65535", 65535, 200), ("65536", 65535, 200), ("0", 65535, 200), ("65534", 65535, 431), ("65534", 65534, 200),
    ("1000", 1001, 431), ("1000", 1000, 200),
]  # fmt: skip


@pytest.mark.parametrize("limit", sorted({row[0] for row in B044}))
def test_B044_what_a_limit_of_a_uwsgi_block_means(tmp_path: Path, limit: str) -> None:
    refused = any(row[0] == limit and row[2] == 431 for row in B044)
    wanted = [rf"refused a request with 431: the variables are longer than {limit} bytes"] if refused else []
    with serving(tmp_path, HELLO, *FEW, "--wire", "uwsgi", "--limit-request-head", limit, wanted=wanted) as server:
        for _, size, status in (row for row in B044 if row[0] == limit):
            assert uwsgi.parse_answer(server.exchange(block_of(size))).status == status, size


def test_U01_orders_to_uwsgi_are_dropped_and_logged_once(tmp_path: Path) -> None:
    order = [(b"UWSGI_FILE", b"exec:///bin/false")]
    note = "dropped variables that are orders to uWSGI: UWSGI_FILE"
    with serving(tmp_path, HELLO, *FEW[:-1], "1", "--wire", "uwsgi", wanted=[note]) as server:
        for _ in range(3):
            answer = uwsgi.parse_answer(server.exchange(uwsgi.request(path=b"/env", more=order)))
            assert answer.status == 200
            assert b"UWSGI" not in answer.body
        assert server.read_log().count(note) == 1


# Addresses that only binding shows.


def test_F01_a_name_that_means_every_interface_is_refused_when_it_is_bound(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateways", "serve", HELLO, "--bind", "scgi://0x0:0"], cwd=ROOT, capture_output=True,
        text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert re.match(r"gateways: scgi://0\.0\.0\.0:[0-9]+ would be open to every interface", done.stderr)


def test_F01_a_reload_that_would_open_too_much_changes_nothing(tmp_path: Path) -> None:
    config = tmp_path / "gateways.toml"
    text = f"""
[pool.a]
Listen = ["scgi://127.0.0.1:0"%s]
StartServers = 1
MinSpareServers = 1
MaxServers = 2
[[pool.a.Mount]]
Target = "{ROOT / HELLO}:application"
"""
    config.write_text(text % "")
    wanted = [r"error: scgi://0\.0\.0\.0:[0-9]+ would be open to every interface", "error: reload failed"]
    with serving(tmp_path, "--config", str(config), wanted=wanted, bind=False) as server:
        before = listening_inodes(server.pid)
        assert len(before) == 1
        config.write_text(text % ', "scgi://0x0:0"')
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("reload failed")
        assert server.exchange(scgi.request(variables("/", None))).startswith(b"Status: 200 OK")
        assert listening_inodes(server.pid) == before


def listening_inodes(pid: int) -> set[str]:
    """The TCP sockets on which a process listens; what else it opens comes and goes."""
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    listening = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
    return listening & {read_link(path) for path in Path(f"/proc/{pid}/fd").iterdir()}


def read_link(path: Path) -> str:
    try:
        return os.readlink(path)
    except FileNotFoundError:  # closed meanwhile
        return ""


def test_a_wire_can_change_on_reload(tmp_path: Path) -> None:
    config = tmp_path / "gateways.toml"
    text = f"""
[pool.a]
Wire = "%s"
Listen = "127.0.0.1:0"
StartServers = 1
MinSpareServers = 1
MaxServers = 2
[[pool.a.Mount]]
Target = "{ROOT / HELLO}:application"
"""
    config.write_text(text % "scgi")
    with serving(tmp_path, "--config", str(config), bind=False) as server:
        assert server.exchange(scgi.request(variables("/", None))).startswith(b"Status: 200 OK")
        config.write_text(text % "http")
        (old,) = server.workers()
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: old not in server.workers(), "the old worker's end")
        assert server.get("/gateway")[0] == 200
