"""SCGI on real sockets: the driver, the wire and a WSGI application together."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator

import pytest

from tests.clients.document import Document, parse_document
from tests.clients.scgi import request, scgi
from tests.loop_process import LoopProcess, looping

WIRE = "gateways.wire.scgi:SCGIWire"
PROVOKED = [
    "longer than its Content-Length", "shorter than its Content-Length", "died on purpose", "may not send",
    "refused a request with 400", "refused a request with 431", "looks like HTTP", "Traceback", "^  ", "^RuntimeError",
]  # fmt: skip


@pytest.fixture(scope="module", params=["unix", "tcp"])
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[LoopProcess]:
    folder = tmp_path_factory.mktemp("scgi")
    with looping(folder, WIRE, "tcp" if request.param == "tcp" else "", PROVOKED) as process:
        yield process


def get(path: bytes, *more: tuple[bytes, bytes], method: bytes = b"GET") -> list[tuple[bytes, bytes]]:
    return [(b"REQUEST_METHOD", method), (b"SCRIPT_NAME", b""), (b"PATH_INFO", path), *more]


def ask(server: LoopProcess, data: bytes) -> Document:
    return parse_document(server.exchange(data))


def test_one_request(server: LoopProcess) -> None:
    document = ask(server, request(get(b"/echo", (b"HTTP_X", b""), (b"REMOTE_ADDR", b"1.2.3.4"))))
    seen = json.loads(document.body)
    assert document.status == 200
    assert (seen["PATH_INFO"], seen["HTTP_X"], seen["REMOTE_ADDR"]) == ("/echo", "", "1.2.3.4")


def test_nginx_with_its_own_scgi_params(server: LoopProcess) -> None:
    pairs = [(b"REQUEST_METHOD", b"GET"), (b"REQUEST_URI", b"/a%20b?c"), (b"DOCUMENT_URI", b"/a b")]
    seen = json.loads(ask(server, request([*pairs, (b"QUERY_STRING", b"c")])).body)
    assert (seen["SCRIPT_NAME"], seen["PATH_INFO"], seen["QUERY_STRING"]) == ("", "/a b", "c")


@pytest.mark.parametrize("size", [0, 5, 65536, 1_000_000])
def test_b026_bodies_arrive_whole(server: LoopProcess, size: int) -> None:
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    seen = json.loads(ask(server, request(get(b"/echo"), body)).body)
    assert (seen["length"], seen["sha256"]) == (size, hashlib.sha256(body).hexdigest())


@pytest.mark.parametrize("page", [b"/echo", b"/ignore"])
def test_s05_b141_nothing_after_the_body_is_a_request(server: LoopProcess, page: bytes) -> None:
    forged = request(get(b"/echo", (b"REMOTE_USER", b"root")))
    answer = server.exchange(request(get(page), forged) + forged)
    assert answer.count(b"Status: ") == 1
    assert b"REMOTE_USER" not in answer


def test_s05_a_short_body_never_reaches_the_application(server: LoopProcess) -> None:
    with server.connect() as sock:
        sock.sendall(request(get(b"/echo"), b"hello")[:-1])
        sock.shutdown(socket.SHUT_WR)
        answer = sock.recv(65536)
    assert parse_document(answer).status == 400


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"-1:,", 400),
        (b"999999999:", 431),
        (b"10:" + b"x" * 10 + b";", 400),
        (scgi([(b"SCGI", b"1"), (b"CONTENT_LENGTH", b"0")]), 400),
        (scgi([(b"SCGI", b"1"), (b"REQUEST_METHOD", b"POST")], b"body"), 400),
    ],
    ids=["negative", "huge", "comma", "B032-second", "B030-absent"],
)
def test_b030_b032_malformed_requests(server: LoopProcess, data: bytes, status: int) -> None:
    assert ask(server, data).status == status


def test_http_on_this_port(server: LoopProcess) -> None:
    assert server.exchange(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").startswith(b"HTTP/1.0 400 Bad Request\r\n")


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
@pytest.mark.parametrize("page", [b"declared", b"listed"])
@pytest.mark.parametrize(
    ("stated", "real", "sent"), [(8, 21, 8), (0, 8, 0), (100, 8, 8), (100, 0, 0)], ids=["a", "b", "c", "d"]
)
def test_b018_bodies_that_are_not_as_long_as_stated(
    server: LoopProcess, method: bytes, page: bytes, stated: int, real: int, sent: int
) -> None:
    data, reset = server.exchange_to_cut(request(get(b"/%s/%d/%d" % (page, stated, real), method=method)))
    assert reset == (method == b"GET" and sent < stated and not isinstance(server.address, str))
    document = parse_document(data)
    assert document.get("content-length") == [str(stated)]
    assert len(document.body) == (sent if method == b"GET" else 0)


@pytest.mark.parametrize(
    ("page", "size"), [(b"/stream/200000/7000", 200_000), (b"/file/300000/7", 299_993), (b"/stream/0/1", 0)]
)
def test_long_bodies(server: LoopProcess, page: bytes, size: int) -> None:
    assert len(ask(server, request(get(page))).body) == size


def test_failures_before_and_within_the_response(server: LoopProcess) -> None:
    assert ask(server, request(get(b"/die"))).status == 500
    assert ask(server, request(get(b"/bad-transfer"))).status == 500
    late = request(get(b"/die-late"))
    if isinstance(server.address, str):
        assert server.exchange(late).endswith(b"half")
        return
    with pytest.raises(ConnectionResetError):
        server.exchange(late)
