"""AJP and uwsgi end to end: the connection loop in a process of its own, on a UNIX socket and on loopback.

What a wire alone cannot show: the order of the driver's calls, deadlines, the end of a connection, and the log.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import signal
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateways.core.limits import TimeLimits, WireLimits
from gateways.core.mounts import Mount, MountTable
from gateways.core.request import Endpoint
from gateways.execution.wsgi import WSGIModel
from gateways.serve.listener import Listener
from gateways.serve.loop import ConnectionLoop
from gateways.wire.ajp import AJPWire
from gateways.wire.ajp_checks import FrontRules
from gateways.wire.uwsgi import UwsgiWire
from tests.clients import ajp, uwsgi
from tests.servers import DEADLINE, read_to_end

PIECE = b"0123456789abcdef" * 64


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Echoes its request, or misbehaves as its path says."""
    path = environ["PATH_INFO"]
    fields = [("Content-Type", "application/json")]
    kind, _, rest = path[1:].partition("/")
    if kind == "fail":
        raise RuntimeError("died on purpose")
    if kind == "status":
        start_response(f"{rest} Status", [])
        return [b"x"]
    if kind == "size":
        start_response("200 OK", fields)
        return [(PIECE * (int(rest) // len(PIECE) + 1))[: int(rest)]]
    if kind == "pieces":
        start_response("200 OK", fields)
        return (PIECE for _ in range(int(rest)))
    if kind == "length":
        stated, _, sent = rest.partition("/")
        start_response("200 OK", [("Content-Length", stated)])
        return iter([b"x" * int(sent)]) if int(sent) else []
    if kind == "torn":
        start_response("200 OK", fields)
        return tear()
    if kind == "long-head":
        start_response("200 OK", [("X-Long", "a" * 70000)])
        return [b""]
    if kind == "file":
        file = open(__file__, "rb")  # noqa: SIM115 the server closes it
        file.seek(int(rest))
        start_response("200 OK", [])
        return environ["wsgi.file_wrapper"](file)  # type: ignore[no-any-return]
    body = environ["wsgi.input"].read(int(rest) if kind == "read" else -1) if kind != "ignore" else b""
    seen = {name: value for name, value in environ.items() if isinstance(value, str)}
    seen["body"] = f"{len(body)} {hashlib.sha256(body).hexdigest()}"
    start_response("200 OK", fields)
    return [json.dumps(seen).encode()]


def tear() -> Iterator[bytes]:
    yield PIECE
    raise RuntimeError("died on purpose")


def told(body: bytes) -> str:
    return f"{len(body)} {hashlib.sha256(body).hexdigest()}"


class Slot:
    """A line of a scoreboard that nobody reads."""

    def idle(self) -> None: ...
    def busy(self) -> None: ...

    def begin(self, method: str, target: str) -> None: ...
    def closing(self) -> None: ...
    def count_request(self, status: str) -> None: ...
    def count_refusal(self) -> None: ...


class LineLog:
    """A log that writes each record as a line."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def _write(self, level: str, msg: str, args: tuple[object, ...]) -> None:
        self._file.write(f"{level}: {msg % args if args else msg}\n")

    def info(self, msg: str, *args: object) -> None:
        self._write("info", msg, args)

    def warning(self, msg: str, *args: object) -> None:
        self._write("warning", msg, args)

    def error(self, msg: str, *args: object) -> None:
        self._write("error", msg, args)

    def exception(self, msg: str, *args: object) -> None:
        self._write("error", f"{msg} [{sys.exc_info()[1]!r}]", args)


class Running:
    """A serving process: where it listens, and its log."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "error.log"
        self.log.touch()
        self.sockets = {name: socket.socket(socket.AF_UNIX) for name in ("ajp", "secret", "uwsgi")}
        self.paths = {}
        for name, sock in self.sockets.items():
            self.paths[name] = str(folder / name)
            sock.bind(self.paths[name])
            sock.listen()
        self.sockets["tcp"] = socket.create_server(("127.0.0.1", 0))
        self.port = self.sockets["tcp"].getsockname()[1]

    def connect(self, name: str) -> socket.socket:
        if name == "tcp":
            return socket.create_connection(("127.0.0.1", self.port), DEADLINE)
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(DEADLINE)
        sock.connect(self.paths[name])
        return sock

    @contextmanager
    def front(self, name: str = "ajp") -> Iterator[ajp.Front]:
        with self.connect(name) as sock:
            yield ajp.Front(sock)

    def ask(self, data: bytes, name: str = "uwsgi") -> uwsgi.Answer:
        """The answer to a uwsgi packet, read to the connection's end."""
        with self.connect(name) as sock:
            sock.sendall(data)
            return uwsgi.parse_answer(read_to_end(sock))

    def serve(self, until: int) -> None:
        """The child's life: serve until the other end of ``until`` is closed."""
        endpoint, limits = Endpoint("listener.example", "8009"), WireLimits()
        wires = {
            "ajp": lambda peer: AJPWire(endpoint, peer, limits),
            "secret": lambda peer: AJPWire(endpoint, peer, limits, FrontRules("s3cret")),
            "uwsgi": lambda peer: UwsgiWire(endpoint, peer, limits),
            "tcp": lambda peer: UwsgiWire(endpoint, peer, limits),
        }
        model = WSGIModel(lambda: application)
        model.load()
        loop = ConnectionLoop(
            [Listener(sock, wires[name]) for name, sock in self.sockets.items()],
            MountTable([Mount("", model)]),
            TimeLimits(head=0.5, body=0.5, linger=0.5, keep_alive=DEADLINE),
            Slot(),
            LineLog(self.log),
        )
        loop.watch(until, lambda: loop.stop("stop"))
        loop.run()


PROVOKED = [
    "died on purpose", "than its Content-Length", "does not fit an AJP packet", "refused a request with 4",
    "head is longer than 65536",
]  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A serving process for the module; afterwards its log holds nothing but what was provoked."""
    server = Running(tmp_path_factory.mktemp("s"))
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(writing)
            server.serve(reading)
            status = 0
        finally:
            os._exit(status)
    os.close(reading)
    for sock in server.sockets.values():
        sock.close()
    watched = os.pidfd_open(pid)
    try:
        yield server
    finally:
        os.close(writing)
        ended = select.select([watched], [], [], DEADLINE)[0]
        if not ended:
            os.kill(pid, signal.SIGKILL)
        os.close(watched)
        status = os.waitpid(pid, 0)[1]
    assert ended
    assert os.waitstatus_to_exitcode(status) == 0
    lines = [line for line in server.log.read_text().splitlines() if not line.startswith("info: ")]
    assert [line for line in lines if not re.search("|".join(PROVOKED), line)] == []


def sized(path: str, size: int, method: str = "POST") -> bytes:
    return ajp.forward(method, path, [("Content-Length", str(size))])


def in_step(front: ajp.Front) -> None:
    """A second request on the connection gets its own right answer."""
    answer = front.exchange(ajp.forward(uri="/after"))
    assert json.loads(answer.body)["PATH_INFO"] == "/after"
    assert answer.reuse is True


# AJP.


def test_ajp_an_echo_on_a_kept_connection(running: Running) -> None:
    with running.front() as front:
        for number in range(5):
            answer = front.exchange(ajp.forward(uri=f"/{number}", attributes=ajp.attribute(ajp.QUERY, "q")))
            seen = json.loads(answer.body)
            assert (seen["PATH_INFO"], seen["QUERY_STRING"], seen["REMOTE_ADDR"]) == (f"/{number}", "q", "192.0.2.7")
            assert (seen["SERVER_NAME"], seen["SERVER_PORT"]) == ("www.example.com", "80")
            assert answer.reuse is True


@pytest.mark.parametrize("size", [0, 1, 8185, 8186, 8187, 65536, 300_000])
def test_ajp_bodies_by_packet(running: Running, size: int) -> None:
    body = (PIECE * (size // len(PIECE) + 1))[:size]
    with running.front() as front:
        for _ in range(2):
            answer = front.exchange(sized("/echo", size), body)
            assert json.loads(answer.body)["body"] == told(body)
            assert len(answer.asked) == max(-(-size // 8186) - 1, 0)
            assert answer.reuse is True
            chunked = ajp.forward("POST", "/echo", [("Transfer-Encoding", "chunked")])
            answer = front.exchange(chunked, body, chunked=True)
            assert json.loads(answer.body)["body"] == told(body)
            assert len(answer.asked) == -(-size // 8186) + 1
        in_step(front)


@pytest.mark.parametrize("size", [0, 8183, 8184, 8185, 8192, 100_000])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_ajp_A09_B033_responses_of_every_size(running: Running, size: int, method: str) -> None:
    with running.front() as front:
        answer = front.exchange(ajp.forward(method, f"/size/{size}"))
        assert len(answer.body) == (size if method == "GET" else 0)
        assert all(length <= 8192 for length in answer.sizes)
        answer = front.exchange(ajp.forward(method, f"/pieces/{size // 1024}"))
        assert answer.body == (PIECE * (size // 1024) if method == "GET" else b"")
        in_step(front)


@pytest.mark.parametrize("offset", [0, -1, 10**6], ids=["many-packets", "one-packet", "nothing"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_ajp_files(running: Running, offset: int, method: str) -> None:
    whole = Path(__file__).read_bytes()
    start = offset if offset >= 0 else len(whole) - 100
    with running.front() as front:
        answer = front.exchange(ajp.forward(method, f"/file/{start}"))
        assert answer.body == (whole[start:] if method == "GET" else b"")
        assert answer.get("Content-Length") == str(len(whole[start:]))
        in_step(front)


@pytest.mark.parametrize("path", ["/status/204", "/status/304"])
def test_ajp_B041_no_body_where_none_may_be(running: Running, path: str) -> None:
    with running.front() as front:
        answer = front.exchange(ajp.forward(uri=path))
        assert (answer.chunks, answer.get("Content-Length"), answer.reuse) == ([], None, True)
        in_step(front)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("path", "sent"), [("/length/8/21", 8), ("/length/0/8", 0), ("/length/8/8", 8)])
def test_ajp_B018_bodies_longer_than_they_say(running: Running, path: str, sent: int, method: str) -> None:
    with running.front() as front:
        answer = front.exchange(ajp.forward(method, path))
        assert len(answer.body) == (sent if method == "GET" else 0)
        in_step(front)


@pytest.mark.parametrize("path", ["/length/100/8", "/length/100/0", "/torn"])
def test_ajp_B018_A08_incomplete_responses_have_no_end(running: Running, path: str) -> None:
    with running.front() as front:
        answer = front.exchange(ajp.forward(uri=path))
        assert (answer.status, answer.reuse) == (200, None)
        assert front.at_end()


def test_ajp_B059_a_head_request_for_what_states_a_length(running: Running) -> None:
    for path in ("/length/100/0", "/length/100/8"):
        with running.front() as front:
            answer = front.exchange(ajp.forward("HEAD", path))
            assert (answer.get("Content-Length"), answer.chunks, answer.reuse) == ("100", [], True)
            in_step(front)


@pytest.mark.parametrize("path", ["/fail", "/long-head"])
def test_ajp_A08_A09_a_failure_is_a_whole_500(running: Running, path: str) -> None:
    with running.front() as front:
        answer = front.exchange(ajp.forward(uri=path))
        assert (answer.status, answer.reuse) == (500, True)
        in_step(front)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (ajp.forward("POST", fields=[("Content-Length", "5")] * 2), 400),
        (ajp.forward("POST", fields=[("Content-Length", str(1 << 31))]), 413),
        (ajp.forward(attributes=ajp.named("REMOTE_USER", "root")), 403),
        (ajp.SHUTDOWN, 403),
        (b"\x12\x34\xff\xff", 431),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
    ],
    ids=["A07", "A08", "A02", "A10", "A04-too-long", "A04-http"],
)
def test_ajp_A08_refusals_are_one_whole_answer_and_the_end(running: Running, data: bytes, status: int) -> None:
    with running.front() as front:
        answer = front.exchange(data + ajp.forward())
        assert (answer.status, answer.reuse) == (status, False)
        assert front.at_end()


def test_ajp_A01_the_secret(running: Running) -> None:
    with running.front("secret") as front:
        assert front.exchange(ajp.forward()).status == 403
        assert front.at_end()
    with running.front("secret") as front:
        for _ in range(2):
            right = ajp.forward(attributes=ajp.attribute(ajp.SECRET, "s3cret"))
            assert front.exchange(right).status == 200
        assert front.exchange(ajp.forward(attributes=ajp.attribute(ajp.SECRET, "s3creT"))).status == 403
        assert front.at_end()


def test_ajp_A10_cping(running: Running) -> None:
    with running.front() as front:
        for _ in range(3):
            front.sock.sendall(ajp.CPING)
            assert front.read_payload() == b"\x09"
        in_step(front)
        front.sock.sendall(ajp.CPING)
        assert front.read_payload() == b"\x09"
        answer = front.exchange(ajp.CPING + ajp.forward())
        assert (answer.pongs, answer.status) == (1, 200)


FORGED = ajp.forward(uri="/forged", attributes=ajp.attribute(ajp.REMOTE_USER, "root"))


@pytest.mark.parametrize("path", ["/ignore", "/read/10"])
def test_ajp_A05_B035_B141_an_unread_body_is_never_a_request(running: Running, path: str) -> None:
    with running.front() as front:
        answer = front.exchange(sized(path, len(FORGED)), FORGED)
        assert json.loads(answer.body)["PATH_INFO"] == path
        in_step(front)
        large = FORGED * 2000
        answer = front.exchange(sized(path, len(large)), large)
        assert json.loads(answer.body)["PATH_INFO"] == path
        assert answer.reuse is False
        assert front.at_end()


def test_ajp_A06_B036_B038_a_body_that_never_comes_is_a_408(running: Running) -> None:
    fronts = [ajp.Front(running.connect("ajp")) for _ in range(20)]
    for front in fronts:
        front.sock.sendall(sized("/echo", 10))
    with running.front() as other:
        in_step(other)
    for front in fronts:
        with front.sock:
            payloads = list(iter(front.read_payload, None))
            (answer,) = ajp.parse_answers(payloads)
            assert (answer.status, answer.reuse) == (408, False)
    with running.front() as front:
        answer = front.exchange(sized("/echo", 5), b"hello")
        assert json.loads(answer.body)["body"] == told(b"hello")


def test_ajp_a_body_that_stops_while_the_application_reads_is_a_408(running: Running) -> None:
    with running.front() as front:
        request = sized("/echo", 100_000) + ajp.body(b"x" * 8186)
        front.sock.sendall(request)
        for _ in range(8):
            payload = front.read_payload()
            assert payload is not None
            if payload[0] != 6:
                break
            front.sock.sendall(ajp.body(b"x" * 8186))
        answers = ajp.parse_answers(list(iter(front.read_payload, None)))
        assert [(answer.status, answer.reuse) for answer in answers] == [(408, False)]


def test_ajp_A06_a_head_that_comes_too_slowly_is_a_408(running: Running) -> None:
    with running.front() as front:
        answer = front.exchange(ajp.forward()[:20])
        assert (answer.status, answer.reuse) == (408, False)
        assert front.at_end()


@pytest.mark.parametrize(
    "data",
    [ajp.forward()[:20], sized("/x", 10), sized("/x", 10) + ajp.body(b"ab")],
    ids=["head", "before-the-body", "body"],
)
def test_ajp_B036_the_end_of_input_inside_a_request(running: Running, data: bytes) -> None:
    with running.front() as front:
        front.sock.sendall(data)
        front.sock.shutdown(socket.SHUT_WR)
        (answer,) = ajp.parse_answers(list(iter(front.read_payload, None)))
        assert (answer.status, answer.reuse) == (400, False)


def test_ajp_byte_by_byte(running: Running) -> None:
    data = ajp.CPING + sized("/echo", 5) + ajp.body(b"hello") + ajp.forward(uri="/last")
    with running.front() as front:
        for at in range(len(data)):
            front.sock.sendall(data[at : at + 1])
        assert front.read_payload() == b"\x09"
        assert json.loads(front.exchange(b"").body)["body"] == told(b"hello")
        assert json.loads(front.exchange(b"").body)["PATH_INFO"] == "/last"


# uwsgi.


def test_uwsgi_an_echo(running: Running) -> None:
    answer = running.ask(uwsgi.request(b"POST", b"/echo", b"q", [(b"UWSGI_FILE", b"exec://id")], b"hello"))
    seen = json.loads(answer.body)
    assert (seen["PATH_INFO"], seen["QUERY_STRING"], seen["body"]) == ("/echo", "q", told(b"hello"))
    assert "UWSGI_FILE" not in seen
    assert answer.whole


@pytest.mark.parametrize("size", [0, 4095, 4096, 4097, 1_000_000])
def test_uwsgi_B050_bodies_both_ways(running: Running, size: int) -> None:
    body = (PIECE * (size // len(PIECE) + 1))[:size]
    assert json.loads(running.ask(uwsgi.request(b"PUT", b"/echo", body=body)).body)["body"] == told(body)
    answer = running.ask(uwsgi.request(b"GET", b"/size/%d" % size))
    assert (answer.body, answer.get("Content-Length")) == (body, str(size))
    answer = running.ask(uwsgi.request(b"GET", b"/pieces/%d" % (size // 1024)))
    assert len(answer.body) == size // 1024 * 1024


def test_uwsgi_B051_files_from_their_place(running: Running) -> None:
    whole = Path(__file__).read_bytes()
    assert running.ask(uwsgi.request(path=b"/file/100")).body == whole[100:]
    assert running.ask(uwsgi.request(b"HEAD", path=b"/file/100")).body == b""


@pytest.mark.parametrize(("path", "body"), [(b"/length/8/21", b"x" * 8), (b"/length/0/8", b""), (b"/status/304", b"")])
def test_uwsgi_B018_B059_no_more_than_there_may_be(running: Running, path: bytes, body: bytes) -> None:
    answer = running.ask(uwsgi.request(path=path))
    assert answer.body == body


def test_uwsgi_B018_incomplete_responses_can_be_told(running: Running) -> None:
    for path in (b"/length/100/8", b"/length/100/0"):
        assert not running.ask(uwsgi.request(path=path)).whole
    with running.connect("tcp") as sock:
        sock.sendall(uwsgi.request(path=b"/torn"))
        with pytest.raises(ConnectionResetError):
            read_to_end(sock)


@pytest.mark.parametrize(("path", "status"), [(b"/fail", 500), (b"/long-head", 500), (b"/status/404", 404)])
def test_uwsgi_failures(running: Running, path: bytes, status: int) -> None:
    answer = running.ask(uwsgi.request(path=path))
    assert answer.status == status
    assert answer.whole


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (uwsgi.request(b"PUT", more=[(b"HTTP_TRANSFER_ENCODING", b"chunked")]) + b"hello", 411),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (uwsgi.packet([(b"REQUEST_METHOD", b"GET")], modifier1=30), 400),
        (uwsgi.request()[:20], 408),
        (uwsgi.request(b"POST", body=b"hello")[:-1], 408),
    ],
    ids=["U07-B050", "U05-B054", "U02-B047", "slow-head", "slow-body"],
)
def test_uwsgi_refusals_are_answered_and_end(running: Running, data: bytes, status: int) -> None:
    answer = running.ask(data)
    assert answer.status == status
    assert answer.whole


def test_uwsgi_U05_the_mistake_is_in_the_log(running: Running) -> None:
    running.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert "this is HTTP, sent to a uwsgi port" in running.log.read_text()


@pytest.mark.parametrize("path", [b"/ignore", b"/read/10"])
def test_uwsgi_U_B045_B141_one_request_a_connection(running: Running, path: bytes) -> None:
    forged = uwsgi.request(path=b"/forged")
    with running.connect("uwsgi") as sock:
        sock.sendall(uwsgi.request(b"POST", path, body=forged) + forged)
        data = read_to_end(sock)
    assert data.count(b"HTTP/1.1 ") == 1
    assert json.loads(uwsgi.parse_answer(data).body)["PATH_INFO"] == path.decode()
