"""The load generator's protocols, the peers table, who takes part in the comparison of wires."""

from __future__ import annotations

import struct
from hashlib import sha256
from pathlib import Path

import pytest

from bench.__main__ import make_parser
from bench.answers import ask, is_whole
from bench.commands import WIRES
from bench.load import Job
from bench.peers import FOLDER, choose_peers, find_missing, format_stamp, install_peer, parse_peers, read_peers
from bench.plan import read_plan
from bench.servers import Recipe, ServerFailed, serve_command, start_server
from bench.speeches import SPEECHES, Speech, WrongAnswer, check_answer
from gateways.core.interfaces import Wire
from gateways.core.limits import WireLimits
from gateways.core.request import Endpoint
from gateways.wire.ajp import AJPWire
from gateways.wire.fastcgi import FastCGIWire
from gateways.wire.http import HTTPWire
from gateways.wire.scgi import SCGIWire
from gateways.wire.uwsgi import UwsgiWire

ROOT = Path(__file__).resolve().parent.parent
MAKERS = {"http": HTTPWire, "fastcgi": FastCGIWire, "scgi": SCGIWire, "ajp": AJPWire, "uwsgi": UwsgiWire}
BODY = b"0123456789" * 116
FIELDS = [("Content-Type", "text/html; charset=utf-8")]


def make_job(speech: str, keep_alive: bool = False) -> Job:
    return Job(8000, "/a?b=c", len(BODY), sha256(BODY).hexdigest(), 1.0, keep_alive=keep_alive, speech=speech)


def start(speech: str, keep_alive: bool = False) -> Wire:
    """A wire that has taken the generator's request."""
    wire: Wire = MAKERS[speech](Endpoint("server.example", "8000"), ("127.0.0.1", 5000), WireLimits())  # type: ignore[operator]
    wire.receive(SPEECHES[speech].format_request(make_job(speech, keep_alive)))
    request = wire.take_request()
    assert request is not None
    assert request.content_length == 0 or wire.body_ready()
    assert (request.method, request.path, request.query) == ("GET", "/a", "b=c")
    assert request.fields.get("Host") == "127.0.0.1:8000"
    assert request.metavariables["REMOTE_ADDR"] == "127.0.0.1"
    assert not wire.has_partial_request
    assert not wire.buffered
    return wire


speeches = pytest.mark.parametrize("speech", SPEECHES.values(), ids=SPEECHES)


@speeches
def test_a_request_is_one_of_our_wires_and_its_answer_is_read(speech: Speech) -> None:
    job = make_job(speech.name)
    data = start(speech.name).format_response("200 OK", FIELDS, BODY, False)
    check_answer(speech, data, job, True)
    status, head, body = speech.open(data)
    assert (status, speech.find_type(head), body) == (200, "text/html; charset=utf-8", BODY)
    assert speech.find_end(data, len(BODY)) == len(data)


@speeches
def test_an_answer_in_pieces_is_read_too(speech: Speech) -> None:
    wire = start(speech.name)
    data = wire.format_head("200 OK", [*FIELDS, ("Content-Length", str(len(BODY)))], False)
    data += wire.format_body(BODY[:500]) + wire.format_body(BODY[500:]) + wire.format_end()
    check_answer(speech, data, make_job(speech.name), True)
    assert speech.find_end(data, len(BODY)) == len(data)


@speeches
def test_no_beginning_of_an_answer_is_taken_for_a_whole_one(speech: Speech) -> None:
    data = start(speech.name).format_response("200 OK", FIELDS, BODY, False)
    for size in range(len(data)):
        end = speech.find_end(data[:size], len(BODY))
        assert end < 0 or end > size
        assert not is_whole(speech, data[:size])
        with pytest.raises(WrongAnswer):
            check_answer(speech, data[:size], make_job(speech.name), False)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_an_http_answer_in_chunks_is_read_to_its_last_chunk() -> None:
    speech, data = SPEECHES["http"], HEAD + b"3\r\nabc\r\n0a;x=y\r\n0123456789\r\n0\r\n\r\n"
    assert speech.find_end(data, 13) == len(data)
    assert all(speech.find_end(data[:size], 13) < 0 for size in range(len(data)) if size != len(HEAD) - 4)
    assert speech.open(data)[2] == b"abc0123456789"
    for wrong in (HEAD + b"3\r\nabc\r\n", HEAD + b"x\r\n\r\n0\r\n\r\n", data + b"HTTP/1.1 200 OK\r\n\r\n"):
        with pytest.raises(WrongAnswer, match="not a chunk"):
            speech.open(wrong)


@speeches
def test_what_follows_an_answer_is_not_part_of_it(speech: Speech) -> None:
    data = start(speech.name).format_response("200 OK", FIELDS, BODY, False)
    assert speech.find_end(data + data, len(BODY)) == len(data)
    with pytest.raises(WrongAnswer):
        check_answer(speech, data + data, make_job(speech.name), False)


@pytest.mark.parametrize(
    ("speech", "asked", "closed"),
    [("http", False, True), ("http", True, False), ("fastcgi", True, False), ("scgi", True, True),
     ("ajp", True, False), ("uwsgi", True, True)],
)  # fmt: skip
def test_whether_a_connection_ends(speech: str, asked: bool, closed: bool) -> None:
    """With FastCGI the request says so, and nothing in the answer."""
    wire = start(speech, asked)
    data = wire.format_response("200 OK", FIELDS, BODY, False)
    assert SPEECHES[speech].closes(data, len(BODY)) == closed
    assert wire.finish() == (asked and not closed)


@speeches
def test_another_status_and_other_bytes_are_wrong(speech: Speech) -> None:
    job = make_job(speech.name)
    for status, body, reason in (
        ("503 Service Unavailable", BODY, "status 503, not 200"),
        ("200 OK", BODY[1:], "a body of 1159 bytes, not 1160"),
        ("200 OK", BODY[1:] + b"x", "wrong bytes"),
    ):
        data = start(speech.name).format_response(status, FIELDS, body, False)
        with pytest.raises(WrongAnswer, match=reason):
            check_answer(speech, data, job, True)
    with pytest.raises(WrongAnswer, match="closed without an answer"):
        check_answer(speech, b"", job, True)


def record(kind: int, content: bytes = b"", version: int = 1) -> bytes:
    return struct.pack(">BBHHBx", version, kind, 1, len(content), 0) + content


DOCUMENT = record(6, b"Status: 200 OK\r\n\r\nx") + record(6)
END = record(3, bytes(8))

WRONG = [
    ("fastcgi", "a request that failed", DOCUMENT + record(3, b"\0\0\0\1\0\0\0\0"), "says that the request failed"),
    ("fastcgi", "overloaded", DOCUMENT + record(3, b"\0\0\0\0\2\0\0\0"), "says that the request failed"),
    ("fastcgi", "error text", record(7, b"oops") + DOCUMENT + END, "oops"),
    ("fastcgi", "no end", DOCUMENT, "do not end with END_REQUEST"),
    ("fastcgi", "HTTP", record(6, b"HTTP/1.1 200 OK\r\n\r\nx") + END, "not a CGI document"),
    ("fastcgi", "another version", DOCUMENT + record(6, b"", 2) + END, "version 2"),
    ("scgi", "HTTP", b"HTTP/1.1 200 OK\r\n\r\nx", "not a CGI document"),
    ("scgi", "a status in words", b"Status: fine\r\n\r\nx", "is no number"),
    ("ajp", "no head", b"AB\0\2\5\1", "not a head, a body"),
    ("ajp", "asks for a body", b"AB\0\3\6\x20\0AB\0\2\5\1", "a packet of type 6"),
    ("ajp", "a packet to the container", b"\x12\x34\0\2\5\1", "begins with"),
    ("uwsgi", "a document", b"Status: 200 OK\r\n\r\nx", "not an HTTP answer"),
]


@pytest.mark.parametrize(("speech", "data", "reason"), [(r[0], r[2], r[3]) for r in WRONG], ids=[r[1] for r in WRONG])
def test_what_is_no_answer_says_why(speech: str, data: bytes, reason: str) -> None:
    with pytest.raises(WrongAnswer, match=reason):
        SPEECHES[speech].open(data)


def test_a_document_without_a_status_is_right_and_padding_is_skipped() -> None:
    padded = struct.pack(">BBHHBx", 1, 6, 1, 5, 3) + b"\r\n\r\nx" + bytes(3)
    assert SPEECHES["fastcgi"].open(padded + END)[0] == 200
    assert SPEECHES["fastcgi"].find_end(padded + END, 1) == len(padded + END)


@pytest.mark.parametrize("wire", WIRES)
def test_a_real_server_is_asked_in_its_own_protocol(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    recipe = Recipe(
        "ours", "ours", lambda port: serve_command(port, "apps/hello.py:application", wire=wire), wire=wire
    )  # fmt: skip
    server = start_server(recipe, None)
    try:
        answer = ask(wire, server.port, "/", 10)
    finally:
        server.stop()
    assert (answer.status, answer.content_type, len(answer.body)) == (200, "text/html; charset=utf-8", 1164)


# The peers table.

ROW = """
[peer]
label = "A peer"
install = ["peer==1"]
needs = "gcc"
ready = "/"
stop = "INT"
keeps = ["ajp"]
[peer.start]
ajp = "{bin}/peer --port {port} 'two words'"
"""


def test_a_row_becomes_a_recipe() -> None:
    (peer,) = parse_peers(ROW)
    recipe = peer.make_recipe("ajp")
    assert (recipe.name, recipe.label, recipe.wire, recipe.stop_signal.name) == ("peer-ajp", "A peer", "ajp", "SIGINT")
    assert recipe.command(77) == [f"{FOLDER}/peer/bin/peer", "--port", "77", "two words"]
    assert peer.keeps == {"ajp"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('needs = "gcc"\n', "", "peer: a peer has exactly the entries"),
        ("stop", "halt", "peer: a peer has exactly the entries"),
        ('"INT"', '"NOW"', "stop is no signal: 'NOW'"),
        ('["ajp"]', '["gopher"]', "'gopher' is none of http, fastcgi"),
        ("ajp = ", "gopher = ", "'gopher' is none of http, fastcgi"),
        ("{port}", "8009", "the command for ajp does not say {port}"),
        ("[peer.start]\n", "start: ", "(?i)expected"),
    ],
)
def test_a_wrong_table_is_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_peers(ROW.replace(old, new, 1))


def test_a_peer_that_is_not_installed_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (peer,) = parse_peers(ROW)
    assert find_missing(peer) == "not installed: python -m bench peers install peer"
    with pytest.raises(ServerFailed, match="python -m bench peers install peer"):
        start_server(peer.make_recipe("ajp"), None)
    peer.folder.mkdir(parents=True)
    (peer.folder / "installed").write_text("peer==0\n")
    assert find_missing(peer)
    (peer.folder / "installed").write_text(format_stamp(peer))
    assert find_missing(peer) == ""


def test_an_installation_that_fails_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file stands in the folder's place, no environment can be made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / FOLDER).write_text("")
    (peer,) = parse_peers(ROW)
    said: list[str] = []
    failure = install_peer(peer, said.append)
    assert failure.endswith("; it needs gcc")
    assert len(said) == 1
    assert find_missing(peer)


def test_the_table_has_those_whom_the_verdicts_name() -> None:
    peers = read_peers()
    spoken = {peer.name: set(peer.start) - {"http"} for peer in peers}
    assert [spoken[name] for name in ("flup", "uwsgi", "gunicorn")] == [
        {"fastcgi", "scgi", "ajp"}, {"fastcgi", "scgi", "uwsgi"}, {"uwsgi"},
    ]  # fmt: skip
    assert choose_peers(peers, ["uwsgi"])[0].install == ("uWSGI==2.0.*",)
    with pytest.raises(ValueError, match="'apache' is none of flup"):
        choose_peers(peers, ["apache"])


# The comparison.


def test_impossible_wires_are_refused() -> None:
    with pytest.raises(ValueError, match="'gopher' is none of fastcgi"):
        run("wires", "--only", "gopher")
    with pytest.raises(ValueError, match="no case is left"):
        run("wires", "--only", "scgi", "--scenario", "keep")
    with pytest.raises(ValueError, match="'apache' is none of floor"):
        run("floor", "--only", "apache")


def run(*words: str) -> int:
    arguments = make_parser().parse_args(words)
    status: int = arguments.run(arguments)
    return status


def test_everyone_who_speaks_a_wire_takes_part() -> None:
    plan = read_plan("wires")
    assert {
        case.name: [part.name for part in plan.taking_part(case)] for case in plan.cases if "c=10" in case.name
    } == {
        "fastcgi close c=10": ["gateways-fastcgi", "flup-fastcgi", "flup-prefork-fastcgi", "uwsgi-fastcgi"],
        "fastcgi keep c=10": ["gateways-fastcgi", "flup-fastcgi", "flup-prefork-fastcgi"],
        "scgi close c=10": ["gateways-scgi", "flup-scgi", "flup-prefork-scgi", "uwsgi-scgi"],
        "ajp close c=10": ["gateways-ajp", "flup-ajp", "flup-prefork-ajp"],
        "ajp keep c=10": ["gateways-ajp", "flup-ajp", "flup-prefork-ajp"],
        "uwsgi close c=10": ["gateways-uwsgi", "uwsgi-uwsgi", "gunicorn-uwsgi"],
    }
    keeping = {f"{peer.name}-{wire}" for peer in read_peers() for wire in peer.keeps}
    kept = {part.name for case in plan.cases if case.keep_alive for part in plan.taking_part(case)}
    assert {name for name in kept if not name.startswith("gateways")} <= keeping
