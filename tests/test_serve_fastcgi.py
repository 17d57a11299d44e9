"""FastCGI on real sockets: the driver, the wire and a WSGI application together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest

from tests.clients.fastcgi import (
    ABORT,
    END,
    GET_VALUES,
    GET_VALUES_RESULT,
    PARAMS,
    STDIN,
    Answer,
    begin,
    nv,
    parse_answer,
    parse_pairs,
    parse_records,
    read_answer,
    read_record,
    rec,
    request,
    stream,
)
from tests.loop_process import LoopProcess, looping

WIRE = "gateways.wire.fastcgi:FastCGIWire"
KEEP = 1
PROVOKED = [
    "longer than its Content-Length", "shorter than its Content-Length", "died on purpose", "may not send",
    "refused a request with 431", "refused a request with 400", "looks like HTTP", "role 99", "Traceback", "^  ",
    "^RuntimeError",
]  # fmt: skip


@pytest.fixture(scope="module", params=["unix", "tcp"])
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[LoopProcess]:
    folder = tmp_path_factory.mktemp("fastcgi")
    with looping(folder, WIRE, "tcp" if request.param == "tcp" else "", PROVOKED) as process:
        yield process


def get(path: bytes, *more: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return [
        (b"REQUEST_METHOD", b"GET"), (b"SCRIPT_NAME", b""), (b"PATH_INFO", path), (b"QUERY_STRING", b""),
        (b"SERVER_PROTOCOL", b"HTTP/1.1"), (b"CONTENT_LENGTH", b""), *more,
    ]  # fmt: skip


def post(path: bytes, size: int, *more: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return [(b"REQUEST_METHOD", b"POST"), (b"PATH_INFO", path), (b"CONTENT_LENGTH", b"%d" % size), *more]


def ask(server: LoopProcess, data: bytes) -> Answer:
    return parse_answer(server.exchange(data))


def test_one_request(server: LoopProcess) -> None:
    answer = ask(server, request(get(b"/echo", (b"HTTP_X", b"1"), (b"REMOTE_USER", b"joe"), (b"HTTPS", b"on"))))
    seen = json.loads(answer.document.body)
    assert answer.ends == [(0, 0)]
    assert answer.document.status == 200
    assert (seen["PATH_INFO"], seen["HTTP_X"], seen["REMOTE_USER"], seen["scheme"]) == ("/echo", "1", "joe", "https")
    assert seen["FCGI_ROLE"] == "RESPONDER"


@pytest.mark.parametrize("size", [0, 5, 65535, 65536, 1_000_000])
def test_b011_b026_bodies_arrive_whole(server: LoopProcess, size: int) -> None:
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    with server.connect() as sock:
        for pad in (0, 255):
            sock.sendall(request(post(b"/echo", size), body, keep=KEEP, pad=pad))
            seen = json.loads(read_answer(sock).document.body)
            assert (seen["length"], seen["sha256"]) == (size, hashlib.sha256(body).hexdigest())


def test_f12_a_body_without_length(server: LoopProcess) -> None:
    body = bytes(300_000)
    pairs = [(b"REQUEST_METHOD", b"POST"), (b"PATH_INFO", b"/echo")]
    with server.connect() as sock:
        for some in (b"", b"hello", body):
            sock.sendall(request(pairs, some, keep=KEEP, size=8184))
            assert json.loads(read_answer(sock).document.body)["length"] == len(some)


def test_f12_a_short_body_is_an_error_to_who_reads_it(server: LoopProcess) -> None:
    assert ask(server, request(post(b"/echo", 9), b"short")).document.status in (400, 408)
    assert ask(server, request(post(b"/ignore", 9), b"short")).document.status == 200


@pytest.mark.parametrize("page", [b"/echo", b"/ignore"])
def test_b141_f10_a_forged_request_in_a_body(server: LoopProcess, page: bytes) -> None:
    forged = request(get(b"/ignore", (b"REMOTE_USER", b"root")), keep=KEEP)
    with server.connect() as sock:
        sock.sendall(request(post(page, len(forged)), forged, keep=KEEP) + request(get(b"/echo"), keep=KEEP))
        assert read_answer(sock).document.status == 200
        seen = json.loads(read_answer(sock).document.body)
        assert "REMOTE_USER" not in seen
        sock.sendall(request(get(b"/echo"), keep=KEEP))
        assert read_answer(sock).document.status == 200


def test_b141_f10_a_long_unread_body_ends_the_connection(server: LoopProcess) -> None:
    forged = request(get(b"/ignore"), keep=KEEP)
    body = forged * (200_000 // len(forged))
    with server.connect() as sock:
        data = request(post(b"/ignore", len(body)), body, keep=KEEP, size=len(forged))
        sock.sendall(data[:150_000])
        assert read_answer(sock).document.status == 200
        assert read_record(sock) == b""


def test_f10_many_requests_on_one_connection_and_none_after_an_unkept_one(server: LoopProcess) -> None:
    with server.connect() as sock:
        for number in range(20):
            sock.sendall(request(get(b"/echo", (b"HTTP_N", b"%d" % number)), keep=KEEP, rid=1 + number % 3))
            assert json.loads(read_answer(sock, 1 + number % 3).document.body)["HTTP_N"] == str(number)
        sock.sendall(request(get(b"/echo"), keep=0))
        assert read_answer(sock).ends == [(0, 0)]
        assert read_record(sock) == b""


def test_f10_the_last_record_of_a_body_may_come_late(server: LoopProcess) -> None:
    params = stream(PARAMS, b"".join(nv(*pair) for pair in post(b"/echo", 5)))
    with server.connect() as sock:
        sock.sendall(begin(KEEP) + params + rec(STDIN, b"hello"))
        assert json.loads(read_answer(sock).document.body)["length"] == 5
        sock.sendall(rec(STDIN) + request(get(b"/echo"), keep=KEEP))
        assert json.loads(read_answer(sock).document.body)["length"] == 0


def test_f07_multiplexing_is_refused(server: LoopProcess) -> None:
    params = stream(PARAMS, b"".join(nv(*pair) for pair in post(b"/echo", 5)))
    with server.connect() as sock:
        sock.sendall(begin(KEEP) + params + request(get(b"/echo"), keep=KEEP, rid=2))
        assert read_answer(sock, 2).ends == [(0, 1)]
        sock.sendall(rec(STDIN, b"hello") + rec(STDIN))
        assert json.loads(read_answer(sock, 1).document.body)["length"] == 5


@pytest.mark.parametrize("when", ["alone", "in-body", "before-unkept"])
def test_f08_b002_values_are_answered_before_we_wait(server: LoopProcess, when: str) -> None:
    query = rec(GET_VALUES, nv(b"FCGI_MPXS_CONNS", b"") + nv(b"NOPE", b""), 0)
    params = stream(PARAMS, b"".join(nv(*pair) for pair in post(b"/echo", 5)))
    sent = {
        "alone": query,
        "in-body": begin(KEEP) + params + query,
        "before-unkept": query + request(get(b"/echo")),
    }[when]
    with server.connect() as sock:
        sock.sendall(sent)
        (record,) = parse_records(read_record(sock))
        assert (record.kind, record.rid) == (GET_VALUES_RESULT, 0)
        assert parse_pairs(record.content) == [(b"FCGI_MPXS_CONNS", b"0")]
        if when == "in-body":
            sock.sendall(rec(STDIN, b"hello") + rec(STDIN))
        if when != "alone":
            assert read_answer(sock).document.status == 200


def test_f06_an_aborted_request_is_ended(server: LoopProcess) -> None:
    params = stream(PARAMS, b"".join(nv(*pair) for pair in post(b"/echo", 5)))
    with server.connect() as sock:
        sock.sendall(begin(KEEP) + params + rec(STDIN, b"he"))
        sock.sendall(rec(ABORT))
        answer = read_answer(sock)
        assert (answer.ends, answer.out) == ([(0, 0)], b"")


def test_f06_a_front_that_goes_away_costs_nothing(server: LoopProcess) -> None:
    params = stream(PARAMS, b"".join(nv(*pair) for pair in post(b"/echo", 500_000)))
    for sent in (
        begin()[:3],
        begin() + params[:20],
        begin() + params,
        begin() + params + rec(STDIN, bytes(60_000)) * 2,
    ):
        with server.connect() as sock:
            sock.sendall(sent)
    assert ask(server, request(get(b"/echo"))).document.status == 200


def test_f09_an_unknown_role(server: LoopProcess) -> None:
    assert ask(server, request(get(b"/echo"), role=99)).ends == [(0, 3)]
    with server.connect() as sock:
        sock.sendall(request(get(b"/echo"), role=99, keep=KEEP) + request(get(b"/echo"), keep=KEEP, rid=2))
        assert read_answer(sock, 1).ends == [(0, 3)]
        assert read_answer(sock, 2).document.status == 200


def test_b017_oversize_variables_get_an_answer(server: LoopProcess) -> None:
    params = nv(b"HTTP_X", bytes(1 << 20))
    with server.connect() as sock:
        sock.sendall(begin(KEEP) + stream(PARAMS, params) + rec(STDIN))
        answer = read_answer(sock)
        assert (answer.document.status, answer.ends) == (431, [(0, 0)])
    assert ask(server, request(get(b"/echo"))).document.status == 200


def test_http_on_this_port(server: LoopProcess) -> None:
    assert server.exchange(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").startswith(b"HTTP/1.0 400 Bad Request\r\n")


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
@pytest.mark.parametrize("page", [b"declared", b"listed"])
@pytest.mark.parametrize(
    ("stated", "real", "body"), [(8, 21, 8), (0, 8, 0), (100, 8, None), (100, 0, None)], ids=["a", "b", "c", "d"]
)
def test_b018_bodies_that_are_not_as_long_as_stated(
    server: LoopProcess, method: bytes, page: bytes, stated: int, real: int, body: int | None
) -> None:
    pairs = [*get(b"/%s/%d/%d" % (page, stated, real))[1:], (b"REQUEST_METHOD", method)]
    with server.connect() as sock:
        sock.sendall(request(pairs, keep=KEEP))
        answer = read_answer(sock)
        assert answer.document.get("content-length") == [str(stated)]
        if method == b"GET" and body is None:
            assert answer.ends == []
            assert len(answer.document.body) == real
            return
        assert answer.ends == [(0, 0)]
        assert len(answer.document.body) == (body or 0 if method == b"GET" else 0)
        sock.sendall(request(get(b"/pid"), keep=KEEP))
        assert read_answer(sock).document.status == 200


@pytest.mark.parametrize(("total", "step"), [(200_000, 200_000), (1_263_680, 31592), (70_000, 1000), (0, 1)])
def test_b008_b012_long_bodies(server: LoopProcess, total: int, step: int) -> None:
    answer = ask(server, request(get(b"/stream/%d/%d" % (total, step))))
    assert answer.document.body == b"s" * total
    assert answer.ends == [(0, 0)]


@pytest.mark.parametrize(("total", "offset"), [(10, 0), (65535, 0), (65536, 0), (300_000, 7)])
def test_f13_files(server: LoopProcess, total: int, offset: int) -> None:
    whole = (bytes(i % 251 for i in range(1000)) * (total // 1000 + 1))[:total]
    with server.connect() as sock:
        for _ in range(2):
            sock.sendall(request(get(b"/file/%d/%d" % (total, offset)), keep=KEEP))
            assert read_answer(sock).document.body == whole[offset:]


@pytest.mark.parametrize("code", [204, 304])
@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_h23_responses_without_a_body_stay_in_step(server: LoopProcess, code: int, method: bytes) -> None:
    with server.connect() as sock:
        for _ in range(2):
            sock.sendall(request([*get(b"/status/%d" % code)[1:], (b"REQUEST_METHOD", method)], keep=KEEP))
            answer = read_answer(sock)
            assert (answer.document.status, answer.document.body, answer.ends) == (code, b"", [(0, 0)])


def test_failures_before_and_within_the_response(server: LoopProcess) -> None:
    assert ask(server, request(get(b"/die"))).document.status == 500
    assert ask(server, request(get(b"/bad-transfer"))).document.status == 500
    with server.connect() as sock:
        sock.sendall(request(get(b"/die-late"), keep=KEEP))
        answer = read_answer(sock)
        assert (answer.document.body, answer.ends) == (b"half", [])


def test_pipelined_requests_are_answered_in_order(server: LoopProcess) -> None:
    with server.connect() as sock:
        sock.sendall(b"".join(request(get(b"/echo", (b"HTTP_N", b"%d" % n)), keep=KEEP) for n in range(3)))
        for number in range(3):
            assert json.loads(read_answer(sock).document.body)["HTTP_N"] == str(number)


def test_f11_a_silent_connection_and_foreign_records(server: LoopProcess) -> None:
    with server.connect() as sock:
        sock.sendall(rec(STDIN, b"x", 9) + rec(END, bytes(8), 9) + request(get(b"/echo"), keep=KEEP))
        assert read_answer(sock).document.status == 200
