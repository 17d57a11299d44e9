"""The fastcgi wire: FastCGI 1.0, rows F of the security list, and the FastCGI cases, fed in every way."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateways.core.errors import BodyIncomplete, LocalProtocolError, RemoteProtocolError
from gateways.core.limits import WireLimits
from gateways.core.variables import MAX_BLOCK, MAX_VARIABLES
from gateways.wire.fastcgi import FastCGIWire
from gateways.wire.fastcgi_records import format_stream, parse_pairs
from tests.clients.fastcgi import (
    ABORT,
    BEGIN,
    DATA,
    END,
    GET_VALUES,
    GET_VALUES_RESULT,
    PARAMS,
    STDERR,
    STDIN,
    STDOUT,
    UNKNOWN,
    begin,
    nv,
    parse_answer,
    parse_records,
    rec,
    request,
    stream,
)
from tests.clients.fastcgi import (
    parse_pairs as parse_client_pairs,
)
from tests.wire_driver import (
    ENDPOINT,
    FIELDS,
    Driver,
    Outcome,
    Reader,
    drive,
    each_byte,
    read_all,
    read_nothing,
    read_ten,
    split,
)

GET = [
    (b"REQUEST_METHOD", b"GET"), (b"SCRIPT_NAME", b""), (b"PATH_INFO", b"/x"), (b"QUERY_STRING", b"a=1"),
    (b"SERVER_PROTOCOL", b"HTTP/1.1"), (b"CONTENT_LENGTH", b""), (b"HTTP_HOST", b"h"),
]  # fmt: skip
KEEP = 1


def post(size: int | None) -> list[tuple[bytes, bytes]]:
    """A POST's variables; ``None`` leaves CONTENT_LENGTH out."""
    pairs = [(b"REQUEST_METHOD", b"POST"), (b"PATH_INFO", b"/x")]
    return pairs if size is None else [*pairs, (b"CONTENT_LENGTH", b"%d" % size)]


def make_wire(**limits: int) -> FastCGIWire:
    return FastCGIWire(ENDPOINT, "", WireLimits(**limits))


def run(data: bytes, reader: Reader = read_all, end: bool = False, **limits: int) -> Outcome:
    """Feed ``data`` whole and byte by byte; both must come to the same. Return what they come to."""
    whole = drive(make_wire(**limits), [data], reader, end)
    if len(data) < 4000:
        bytewise = drive(make_wire(**limits), each_byte(data), reader, end)
        assert bytewise.seen == whole.seen
    return whole


def started(keep: int = KEEP, pairs: list[tuple[bytes, bytes]] = GET, rid: int = 1) -> FastCGIWire:
    """A wire whose request was taken, for tests of responses."""
    wire = make_wire()
    wire.receive(request(pairs, keep=keep, rid=rid))
    assert wire.take_request() is not None
    return wire


# Requests.


def test_a_request_of_each_part() -> None:
    outcome = run(request(GET))
    (call,) = outcome.calls
    assert call.variables["REQUEST_METHOD"] == "GET"
    assert call.variables["PATH_INFO"] == "/x"
    assert call.variables["QUERY_STRING"] == "a=1"
    assert call.variables["HTTP_HOST"] == "h"
    assert call.variables["SERVER_NAME"] == "server.example"
    assert call.variables["GATEWAY_INTERFACE"] == "CGI/1.1"
    assert call.content_length == 0
    answer = parse_answer(outcome.sent)
    assert answer.ends == [(0, 0)]
    assert answer.document.status == 200
    assert answer.document.body == b"ok 0"
    assert answer.document.get("content-length") == ["4"]


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_request_cut_in_two(cut: int) -> None:
    data = request(post(5), b"hello", keep=KEEP, pad=3)
    assert drive(make_wire(), split(data, [cut])).seen == drive(make_wire(), [data]).seen


def test_requests_follow_on_a_kept_connection() -> None:
    outcome = run(request(post(5), b"hello", keep=KEEP) + request(GET, keep=KEEP) + request(GET, keep=KEEP, rid=7))
    assert [call.body for call in outcome.calls] == [b"hello", b"", b""]
    assert outcome.kept
    records = parse_records(outcome.sent)
    assert [record.rid for record in records if record.kind == END] == [1, 1, 7]


def test_f10_without_keep_conn_we_close_and_later_bytes_are_no_request() -> None:
    outcome = run(request(GET, keep=0) + request(GET, keep=0))
    assert len(outcome.calls) == 1
    assert not outcome.kept


@pytest.mark.parametrize("offset", range(1, 310, 7))
def test_b009_params_cut_at_every_offset(offset: int) -> None:
    params = nv(b"HTTP_X", b"a" * 130) + nv(b"REQUEST_METHOD", b"PUT") + nv(b"HTTP_Y", b"b" * 140)
    head = rec(PARAMS, params[:offset]) + rec(PARAMS, params[offset:]) if offset < len(params) else rec(PARAMS, params)
    outcome = run(begin() + head + rec(PARAMS) + rec(STDIN))
    variables = outcome.calls[0].variables
    assert (variables["HTTP_X"], variables["REQUEST_METHOD"], variables["HTTP_Y"]) == ("a" * 130, "PUT", "b" * 140)


def test_b009_params_beyond_8192_bytes() -> None:
    pairs = [*GET, (b"HTTP_X", b"a" * 9000), (b"HTTP_Y", b"b")]
    outcome = run(request(pairs, size=8184))
    assert outcome.calls[0].variables["HTTP_X"] == "a" * 9000
    assert outcome.calls[0].variables["HTTP_Y"] == "b"


@pytest.mark.parametrize("pad", [0, 1, 7, 8, 255])
def test_b011_f05_full_records_with_padding(pad: int) -> None:
    body = bytes(range(256)) * 512
    assert len(body) == 131072
    data = request(post(131070), body[:131070], keep=KEEP, size=65535, pad=pad) + request(GET, keep=KEEP)
    outcome = drive(make_wire(), split(data, range(0, len(data), 65536)))
    assert hashlib.sha256(outcome.calls[0].body).digest() == hashlib.sha256(body[:131070]).digest()
    assert len(outcome.calls) == 2


def test_b014_nothing_of_one_request_shows_in_the_next() -> None:
    first = [*GET, (b"HTTP_X", b"LONGLONGLONG"), (b"REMOTE_USER", b"root")]
    outcome = run(request(first, keep=KEEP) + request([*GET, (b"HTTP_X", b"ab")], keep=KEEP) + request(GET, keep=KEEP))
    assert [call.variables.get("HTTP_X") for call in outcome.calls] == ["LONGLONGLONG", "ab", None]
    assert [call.variables.get("REMOTE_USER") for call in outcome.calls] == ["root", None, None]


@pytest.mark.parametrize(
    "name", [b"HTTP_PROXY", b"http_proxy", b"wsgi.url_scheme", b"A-B", b"1A", b"A B", b"\xe9", b""]
)
def test_h15_names_that_are_never_passed(name: bytes) -> None:
    outcome = run(request([*GET, (name, b"evil")]))
    assert "evil" not in outcome.calls[0].variables.values()
    assert outcome.calls[0].variables["HTTP_HOST"] == "h"


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(b"HTTP_X", b"1"), (b"HTTP_X", b"2")], ("HTTP_X", "1")),
        ([(b"SCRIPT_NAME", b"/a"), (b"SCRIPT_NAME", b"/b")], ("SCRIPT_NAME", "/b")),
        ([(b"REMOTE_USER", b"a"), (b"REMOTE_USER", b"a")], ("REMOTE_USER", "a")),
        ([(b"REMOTE_USER", b"a"), (b"REMOTE_USER", b"root")], None),
        ([(b"CONTENT_LENGTH", b"3"), (b"CONTENT_LENGTH", b"4")], None),
        ([(b"SSL_CLIENT_VERIFY", b"NONE"), (b"SSL_CLIENT_VERIFY", b"SUCCESS")], None),
    ],
    ids=["field-first", "setting-last", "user-equal", "user-differs", "length-differs", "tls-differs"],
)
def test_s04_names_that_come_twice(pairs: list[tuple[bytes, bytes]], expected: tuple[str, str] | None) -> None:
    outcome = run(request([(b"PATH_INFO", b"/x"), *pairs]))
    if expected is None:
        assert outcome.error is not None
        assert outcome.error.status == 400
        assert not outcome.calls
    else:
        assert outcome.calls[0].variables[expected[0]] == expected[1]


def test_f02_parameters_are_data() -> None:
    pairs = [(b"PHP_VALUE", b"auto_prepend_file=/etc/passwd"), (b"SCRIPT_FILENAME", b"/etc/passwd")]
    assert run(request([*GET, *pairs])).calls[0].variables["SCRIPT_FILENAME"] == "/etc/passwd"


def test_f03_b023_paths_are_taken_as_given() -> None:
    pairs = [
        (b"REQUEST_METHOD", b"GET"), (b"SCRIPT_NAME", b"/a.py"), (b"PATH_INFO", b""),
        (b"SCRIPT_FILENAME", b"/x/a.py/aaaa"), (b"REQUEST_URI", b"/a.py/%0Aaaaa?" + b"Q" * 2000),
    ]  # fmt: skip
    (call,) = run(request(pairs)).calls
    assert (call.variables["SCRIPT_NAME"], call.variables["PATH_INFO"]) == ("/a.py", "")


def test_latin_1_and_nul_in_values() -> None:
    assert run(request([*GET, (b"HTTP_X", b"caf\xc3\xa9")])).calls[0].variables["HTTP_X"] == "caf\xc3\xa9"
    outcome = run(request([*GET, (b"HTTP_X", b"a\0b")]))
    assert outcome.error is not None
    assert outcome.error.status == 400


# F04: name-value pairs.


@pytest.mark.parametrize(
    ("params", "status"),
    [
        (b"\xff\xff\xff\xff\xff\xff\xff\xff", 400),
        (b"\x7f\xff\xff\xff", 400),
        (b"\x05\x05HTTP_", 400),
        (b"\x05", 400),
        (b"\x80\x00\x00", 400),
        (b"\x01\x80\x00\x00", 400),
        (b"\x01\x80\x00\x00\x01a", 400),
        (nv(b"A", b"b") + b"\x00", 400),
        (b"\x00\x00" * (MAX_VARIABLES + 1), 431),
        (b"".join(nv(b"A%d" % n, b"") for n in range(MAX_VARIABLES + 1)), 431),
    ],
    ids=[
        "both-2GiB", "short-names", "past-end", "one-byte", "long-name-cut", "long-value-cut", "value-missing",
        "trailing", "empty-pairs", "many",
    ],
)  # fmt: skip
def test_f04_malformed_pairs(params: bytes, status: int) -> None:
    outcome = run(begin(KEEP) + rec(PARAMS, params) + rec(PARAMS) + rec(STDIN))
    assert outcome.error is not None
    assert outcome.error.status == status
    assert not outcome.calls
    answer = parse_answer(outcome.sent)
    assert answer.document.status == status
    assert answer.ends == [(0, 0)]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 65536])
def test_f04_lengths_of_one_and_four_bytes(size: int) -> None:
    names, values = parse_pairs(nv(b"n" * size, b"v" * 128) + nv(b"", b"v" * size))
    assert names == ["n" * size, ""]
    assert values == ["v" * 128, "v" * size]
    assert parse_pairs(b"\x80\x00\x00\x01\x80\x00\x00\x02abc") == (["a"], ["bc"])


def test_f04_no_pair_at_all() -> None:
    (call,) = run(begin() + rec(PARAMS) + rec(STDIN)).calls
    assert call.variables["REQUEST_METHOD"] == "GET"


def test_b017_params_beyond_the_cap() -> None:
    pair = nv(b"HTTP_X", b"a" * (MAX_BLOCK + 1 - 11))
    assert len(pair) == MAX_BLOCK + 1
    data = begin(KEEP) + stream(PARAMS, pair) + rec(STDIN)
    wire = make_wire()
    outcome = drive(wire, split(data, range(0, len(data), 65536)))
    assert outcome.error is not None
    assert outcome.error.status == 431
    answer = parse_answer(outcome.sent)
    assert (answer.document.status, answer.ends) == (431, [(0, 0)])
    assert wire.buffered == 0


# F05, F11: records.


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" + request(GET)[1:],
        b"\x02" + request(GET)[1:],
        begin() + b"\x09",
        begin() + rec(STDIN, b"x"),
        begin() + rec(DATA, b"x"),
        begin() + rec(PARAMS) + rec(PARAMS, nv(b"A", b"b")),
        begin() + rec(PARAMS) + rec(PARAMS),
        begin() + rec(PARAMS) + rec(DATA, b"x"),
        begin() + begin(),
        begin() + rec(PARAMS) + begin(),
        begin() + rec(STDOUT, b"x"),
        begin() + rec(END, bytes(8)),
        begin() + rec(GET_VALUES, b""),
        rec(BEGIN, bytes(8), 0),
        rec(PARAMS, b"", 0),
        rec(BEGIN, bytes(7)),
        rec(BEGIN, b""),
        rec(GET_VALUES, b"\x05", 0),
    ],
    ids=[
        "version-0", "version-2", "version-9-in-head", "stdin-before-params-end", "data-before-params-end",
        "params-after-end", "params-ended-twice", "data-to-a-responder", "begun-twice", "begun-again-in-body",
        "stdout", "end-request", "values-with-an-id", "begin-with-id-0", "params-with-id-0", "begin-short",
        "begin-empty", "values-malformed",
    ],
)  # fmt: skip
def test_f05_f11_records_out_of_their_order(data: bytes) -> None:
    outcome = run(data, read_nothing)
    assert outcome.error is not None
    assert outcome.error.status == 400
    assert outcome.error.section.startswith("FastCGI")
    assert not outcome.kept
    assert not [call for call in outcome.calls if call.variables["REQUEST_METHOD"] != "GET"]


def test_f05_a_reserved_byte_is_ignored() -> None:
    data = bytearray(request(GET))
    data[7] = 0xFF
    assert len(run(bytes(data)).calls) == 1


def test_f11_records_of_unknown_ids_are_ignored() -> None:
    foreign = rec(PARAMS, nv(b"REMOTE_USER", b"root"), 9) + rec(STDIN, b"x", 9) + rec(ABORT, b"", 9) + rec(20, b"x", 9)
    data = foreign + begin() + foreign + rec(PARAMS, nv(b"A", b"b")) + foreign + rec(PARAMS) + foreign + rec(STDIN)
    (call,) = run(data).calls
    assert call.variables["A"] == "b"
    assert "REMOTE_USER" not in call.variables


def test_f11_a_flood_of_records_for_nobody_ends() -> None:
    wire = FastCGIWire(ENDPOINT, "", WireLimits(), max_params=5000)
    outcome = drive(wire, [rec(STDIN, b"x" * 92, 9)] * 49)
    assert outcome.error is None
    outcome = drive(wire, [rec(STDIN, b"x" * 92, 9)] * 10)
    assert outcome.error is not None
    assert outcome.sent == b""


def test_http_on_this_port_is_recognised() -> None:
    outcome = run(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert outcome.error is not None
    assert "looks like HTTP" in str(outcome.error)
    assert outcome.sent.startswith(b"HTTP/1.0 400 Refused\r\n")


def test_what_looks_like_http_behind_records_is_no_http() -> None:
    """Found by fuzzing: an HTTP answer went among the records of one who had spoken FastCGI."""
    for before in (rec(GET_VALUES, b"", 0), request(GET, keep=KEEP)):
        outcome = run(before + b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert outcome.error is not None
        assert str(outcome.error) == "FastCGI version 71 (FastCGI 3.3)"
        parse_records(outcome.sent)


def test_after_a_broken_record_no_request_comes_out() -> None:
    """Found by fuzzing: the head before a broken record was given out when it was asked for again."""
    wire = make_wire()
    wire.receive(
        begin(KEEP) + stream(PARAMS, b"".join(nv(*pair) for pair in post(5))) + rec(STDIN, b"ab") + b"\x02" * 8
    )
    with pytest.raises(RemoteProtocolError, match="version 2"):
        wire.take_request()
    assert wire.take_request() is None
    answer = parse_answer(wire.format_response("400 Bad Request", FIELDS, b"no", True))
    assert answer.document.status == 400
    assert not wire.finish()


# F06: aborts and ends.


def test_f06_an_abort_while_the_application_reads() -> None:
    driver = Driver(make_wire(buffered_body=0))
    driver.feed(begin(KEEP) + stream(PARAMS, b"".join(nv(*pair) for pair in post(100))) + rec(STDIN, b"half"))
    driver.feed(rec(ABORT))
    (call,) = driver.calls
    assert (call.body, call.incomplete) == (b"half", True)
    answer = parse_answer(driver.sent)
    assert answer.ends == [(0, 0)]
    assert answer.out == b""


def test_f06_an_abort_before_the_application_is_called() -> None:
    driver = Driver(make_wire())
    driver.feed(begin(KEEP) + stream(PARAMS, b"".join(nv(*pair) for pair in post(100))) + rec(STDIN, b"half"))
    assert not driver.calls
    driver.feed(rec(ABORT))
    assert driver.calls[0].incomplete
    assert parse_answer(driver.sent).ends == [(0, 0)]


@pytest.mark.parametrize("keep", [0, 1])
def test_f06_an_abort_within_the_head(keep: int) -> None:
    outcome = run(begin(keep) + rec(PARAMS, nv(b"A", b"b")) + rec(ABORT) + request(GET, keep=KEEP, rid=2))
    assert parse_answer(outcome.sent).ends == [(0, 0)]
    assert len(outcome.calls) == keep
    assert outcome.kept == bool(keep)


def test_f06_the_connection_ends_within_the_body() -> None:
    head = begin() + stream(PARAMS, b"".join(nv(*pair) for pair in post(100)))
    wire = make_wire()
    wire.receive(head + rec(STDIN, b"half"))
    assert wire.take_request() is not None
    assert not wire.body_ready()
    wire.receive(b"")
    assert not wire.body_ready()
    assert wire.take_body(100) == b"half"
    with pytest.raises(BodyIncomplete):
        wire.take_body(100)


@pytest.mark.parametrize("size", range(1, 40))
def test_f06_the_connection_ends_within_the_head(size: int) -> None:
    data = begin() + rec(PARAMS, nv(b"REQUEST_METHOD", b"GET")) + rec(PARAMS)
    outcome = run(data[:size], end=True)
    assert outcome.error is not None
    assert not outcome.calls
    assert bool(outcome.sent) == (size >= 16)


def test_the_end_between_requests_is_no_error() -> None:
    assert run(b"", end=True).error is None
    assert run(request(GET, keep=KEEP), end=True).error is None


# F07, F08, F09: the connection itself.


def test_f07_a_second_request_at_the_same_time_is_refused() -> None:
    second = rec(PARAMS, nv(b"PATH_INFO", b"/second"), 2)
    outcome = run(
        begin(KEEP) + rec(PARAMS, nv(b"PATH_INFO", b"/first")) + begin(KEEP, rid=2) + second + rec(PARAMS)
        + rec(PARAMS, b"", 2) + rec(STDIN, b"", 2) + rec(STDIN)
    )  # fmt: skip
    assert [call.variables["PATH_INFO"] for call in outcome.calls] == ["/first"]
    assert parse_answer(outcome.sent, 2).ends == [(0, 1)]
    assert parse_answer(outcome.sent, 1).ends == [(0, 0)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (nv(b"FCGI_MAX_CONNS", b"") + nv(b"NOPE", b""), [(b"FCGI_MAX_CONNS", b"1")]),
        (b"", []),
        (
            nv(b"FCGI_MPXS_CONNS", b"") + nv(b"FCGI_MAX_REQS", b"") + nv(b"FCGI_MPXS_CONNS", b""),
            [(b"FCGI_MPXS_CONNS", b"0"), (b"FCGI_MAX_REQS", b"1")],
        ),
    ],
    ids=["B002-known-only", "empty", "once-each"],
)
@pytest.mark.parametrize("where", ["alone", "before", "within", "after"])
def test_f08_get_values(where: str, content: bytes, expected: list[tuple[bytes, bytes]]) -> None:
    ask = rec(GET_VALUES, content, 0, pad=5)
    parts = {
        "alone": ask,
        "before": ask + request(GET, keep=KEEP),
        "within": begin(KEEP) + ask + request(GET, keep=KEEP)[16:],
        "after": request(GET, keep=KEEP) + ask,
    }
    outcome = run(parts[where])
    assert len(outcome.calls) == (where != "alone")
    (result,) = [record for record in parse_records(outcome.sent) if record.rid == 0]
    assert result.kind == GET_VALUES_RESULT
    assert parse_client_pairs(result.content) == expected
    assert outcome.kept


def test_b003_a_padded_empty_get_values() -> None:
    outcome = run(bytes.fromhex("0109000000000800") + bytes(8) + request(GET, keep=KEEP))
    assert outcome.sent.startswith(bytes.fromhex("010a000000000000"))
    assert len(outcome.calls) == 1


def test_f08_values_are_those_given() -> None:
    wire = FastCGIWire(ENDPOINT, "", WireLimits(), values={"FCGI_MAX_CONNS": "150"})
    outcome = drive(wire, [rec(GET_VALUES, nv(b"FCGI_MAX_CONNS", b""), 0)])
    assert parse_client_pairs(parse_records(outcome.sent)[0].content) == [(b"FCGI_MAX_CONNS", b"150")]


@pytest.mark.parametrize("kind", [10, 11, 12, 99, 255])
def test_f08_an_unknown_management_type(kind: int) -> None:
    outcome = run(rec(kind, b"whatever", 0) + request(GET, keep=KEEP))
    assert parse_records(outcome.sent)[0] == (UNKNOWN, 0, bytes([kind]) + bytes(7), 0)
    assert len(outcome.calls) == 1


def test_f08_answers_go_out_even_when_the_connection_is_not_kept() -> None:
    outcome = run(rec(GET_VALUES, b"", 0) + request(GET))
    assert [record.kind for record in parse_records(outcome.sent)] == [GET_VALUES_RESULT, STDOUT, STDOUT, END]


@pytest.mark.parametrize("role", [0, 4, 99, 65535])
@pytest.mark.parametrize("keep", [0, 1])
def test_f09_an_unknown_role(role: int, keep: int) -> None:
    outcome = run(request(GET, role=role, keep=keep) + request(GET, keep=keep, rid=2))
    assert parse_answer(outcome.sent, 1).ends == [(0, 3)]
    assert len(outcome.calls) == keep
    assert (outcome.error is None) == bool(keep)


@pytest.mark.parametrize(("role", "name"), [(1, "RESPONDER"), (2, "AUTHORIZER"), (3, "FILTER")])
def test_f09_each_role_is_told(role: int, name: str) -> None:
    data = request(GET, role=role) + (stream(DATA, b"") if role == 3 else b"")
    assert run(data).calls[0].variables["FCGI_ROLE"] == name


def test_an_authorizer_has_no_body() -> None:
    params = b"".join(nv(*pair) for pair in GET if pair[0] != b"CONTENT_LENGTH")
    wire = make_wire()
    wire.receive(begin(KEEP, role=2) + stream(PARAMS, params))
    taken = wire.take_request()
    assert taken is not None
    assert taken.content_length == 0
    wire.format_response("200 OK", [("Variable-AUTH", "yes")], b"", False)
    assert wire.finish()


@pytest.mark.parametrize(
    ("pairs", "body", "data", "expected"),
    [
        ([(b"FCGI_DATA_LENGTH", b"4")], b"", b"file", (b"file", 4, False)),
        ([(b"CONTENT_LENGTH", b"2"), (b"FCGI_DATA_LENGTH", b"4")], b"in", b"file", (b"infile", 6, False)),
        ([(b"CONTENT_LENGTH", b"2")], b"in", b"file", (b"infile", 6, False)),
        ([(b"CONTENT_LENGTH", b"2"), (b"FCGI_DATA_LENGTH", b"2")], b"in", b"file", (b"infi", 4, False)),
        ([(b"CONTENT_LENGTH", b"2"), (b"FCGI_DATA_LENGTH", b"9")], b"in", b"file", (b"infile", 11, True)),
    ],
    ids=["data", "both", "no-data-length", "data-longer", "data-shorter"],
)
def test_a_filter_reads_stdin_then_data(
    pairs: list[tuple[bytes, bytes]], body: bytes, data: bytes, expected: tuple[bytes, int, bool]
) -> None:
    (call,) = run(request(pairs, body, role=3) + stream(DATA, data)).calls
    assert (call.body, call.content_length, call.incomplete) == expected


# F10, B141: bodies that nobody reads.

FORGED = (
    begin(KEEP) + rec(PARAMS, nv(b"REMOTE_USER", b"root") + nv(b"REQUEST_METHOD", b"GET")) + rec(PARAMS) + rec(STDIN)
)


@pytest.mark.parametrize("reader", [read_nothing, read_ten, read_all])
@pytest.mark.parametrize("size", [65535, 1, 16])
def test_b141_f10_an_unread_body_is_never_a_request(reader: Reader, size: int) -> None:
    first = begin(KEEP) + stream(PARAMS, b"".join(nv(*p) for p in post(len(FORGED)))) + stream(STDIN, FORGED, size=size)
    outcome = run(first + request(GET, keep=KEEP), reader)
    assert len(outcome.calls) == 2
    assert not any("REMOTE_USER" in call.variables for call in outcome.calls)
    assert outcome.kept


@pytest.mark.parametrize("reader", [read_nothing, read_ten])
def test_b141_f10_a_body_still_to_come_ends_the_connection(reader: Reader) -> None:
    body = FORGED * 20
    data = (
        begin(KEEP) + stream(PARAMS, b"".join(nv(*p) for p in post(len(body)))) + stream(STDIN, body, size=len(FORGED))
    )
    driver = Driver(make_wire(buffered_body=len(FORGED)), reader)
    driver.feed(data[:400])
    assert len(driver.calls) == 1
    assert not driver.open
    assert not driver.wire.body_complete()
    driver.feed(data[400:] + request(GET, keep=KEEP))
    assert len(driver.calls) == 1


def test_f10_a_late_empty_record_does_not_cost_the_connection() -> None:
    driver = Driver(make_wire(), read_nothing)
    params = b"".join(nv(*pair) for pair in post(5))
    driver.feed(begin(KEEP) + stream(PARAMS, params) + rec(STDIN, b"hello"))
    assert driver.open
    driver.feed(rec(STDIN) + request(GET, keep=KEEP))
    assert len(driver.calls) == 2


def test_f10_a_late_empty_record_makes_a_closing_connection_linger() -> None:
    wire = make_wire()
    wire.receive(begin(0) + stream(PARAMS, nv(b"CONTENT_LENGTH", b"0")))
    assert wire.take_request() is not None
    wire.format_response("200 OK", [], b"", True)
    assert not wire.finish()
    assert not wire.body_complete()


# F12: CONTENT_LENGTH and STDIN.


@pytest.mark.parametrize(
    ("length", "body", "expected"),
    [
        (b"5", b"hello", (b"hello", 5, False)),
        (b"5", b"hello and more", (b"hello", 5, False)),
        (b"0", b"hello", (b"", 0, False)),
        (b"9", b"hello", (b"hello", 9, True)),
        (None, b"hello", (b"hello", 5, False)),
        (b"", b"hello", (b"hello", 5, False)),
        (b"", b"", (b"", 0, False)),
        (b"0005", b"hello", (b"hello", 5, False)),
    ],
    ids=["equal", "more", "more-than-none", "fewer", "absent", "empty", "empty-none", "zeros"],
)
def test_f12_content_length_and_the_stream(
    length: bytes | None, body: bytes, expected: tuple[bytes, int, bool]
) -> None:
    pairs = post(None) + ([(b"CONTENT_LENGTH", length)] if length is not None else [])
    whole = drive(make_wire(), [request(pairs, body)])
    bytewise = drive(make_wire(), each_byte(request(pairs, body)))
    for outcome in (whole, bytewise):
        (call,) = outcome.calls
        assert (call.body, call.content_length, call.incomplete) == expected
        assert outcome.error is None


def test_f12_a_body_without_length_gets_one_when_it_came_whole() -> None:
    outcome = run(request(post(None), b"hello"))
    assert outcome.calls[0].variables["CONTENT_LENGTH"] == "5"


def test_f12_a_long_body_without_length_is_read_to_its_end() -> None:
    body = bytes(range(256)) * 800
    data = request(post(None), body, keep=KEEP, size=8184)
    outcome = drive(make_wire(buffered_body=1000), split(data, range(0, len(data), 10000)))
    (call,) = outcome.calls
    assert call.content_length is None
    assert call.body == body
    assert outcome.kept


@pytest.mark.parametrize("length", [b"x", b"-1", b"+5", b"5 ", b" 5", b"1_0", b"0x5", b"5,5", b"\xb2", b"9" * 40])
def test_f12_invalid_lengths(length: bytes) -> None:
    outcome = run(request([(b"CONTENT_LENGTH", length)], b"hello"))
    assert outcome.error is not None
    assert outcome.error.status == 400
    assert not outcome.calls
    assert parse_answer(outcome.sent).document.status == 400


@pytest.mark.parametrize("pairs", [post(101), post(None)], ids=["announced", "unannounced"])
def test_h17_bodies_beyond_the_limit(pairs: list[tuple[bytes, bytes]]) -> None:
    outcome = run(request(pairs, b"x" * 101), body=100)
    assert outcome.error is not None
    assert outcome.error.status == 413
    assert not outcome.calls


def test_what_is_buffered_is_counted() -> None:
    wire = make_wire()
    assert (wire.buffered, wire.has_partial_request) == (0, False)
    data = request(post(5), b"hello")
    wire.receive(data[:20])
    assert wire.take_request() is None
    assert (wire.buffered, wire.has_partial_request) == (4, True)
    wire.receive(data[20:] + b"\x01\x02")
    assert wire.take_request() is not None
    assert (wire.buffered, wire.has_partial_request) == (5 + 8 + 2, False)
    assert wire.take_body(2) == b"he"
    assert wire.take_body(9) == b"llo"
    assert wire.take_body(9) == b""
    assert wire.buffered == 8 + 2


# F13: responses.


@pytest.mark.parametrize("size", [0, 1, 7, 8, 1164, 65400, 65528, 65535, 65536, 131056, 131057, 200000])
@pytest.mark.parametrize("rid", [1, 2, 65535])
def test_b012_f13_whole_responses_of_every_size(size: int, rid: int) -> None:
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    wire = started(rid=rid)
    data = wire.format_response("200 OK", FIELDS, body, False)
    check_records(data)
    answer = parse_answer(data, rid)
    assert answer.document.body == body
    assert answer.document.get("content-length") == [str(size)]
    assert answer.ends == [(0, 0)]
    assert wire.finish()


def check_records(data: bytes) -> None:
    """Aligned records (section 3.3 recommends it), and no empty STDOUT but the last."""
    records = parse_records(data)
    for record in records:
        assert (len(record.content) + record.pad) % 8 == 0
    assert [record.content for record in records if record.kind == STDOUT].count(b"") <= 1


def test_b012_a_body_of_200000_bytes_takes_four_records() -> None:
    data = started().format_response("200 OK", [], bytes(200000), False)
    sizes = [len(record.content) for record in parse_records(data) if record.kind == STDOUT and record.content]
    assert len(sizes) >= 4
    assert max(sizes) <= 65535


@pytest.mark.parametrize("step", [1, 1000, 65535, 65536, 100000])
def test_b008_f13_a_response_in_pieces(step: int) -> None:
    body = bytes(range(250)) * (1 if step == 1 else 1000)
    wire = started()
    sent = wire.format_head("200 OK", FIELDS, False)
    for at in range(0, len(body), step):
        sent += wire.format_body(body[at : at + step])
    assert wire.format_body(b"") == b""
    sent += wire.format_end()
    check_records(sent)
    answer = parse_answer(sent)
    assert answer.document.body == body
    assert answer.document.get("content-length") == []
    assert answer.ends == [(0, 0)]


@pytest.mark.parametrize(
    ("size", "framed"), [(1, True), (65535, True), (65536, False)], ids=["one", "a-full-record", "more"]
)
def test_f13_frames_for_sendfile(size: int, framed: bool) -> None:
    wire = started()
    head = wire.format_head("200 OK", FIELDS, False)
    frame = wire.format_frame(size)
    assert (frame is not None) == framed
    if frame is not None:
        answer = parse_answer(head + frame[0] + bytes(size) + frame[1] + wire.format_end())
        assert answer.document.body == bytes(size)


def test_f13_end_request_is_sent_once() -> None:
    wire = started()
    sent = wire.format_response("200 OK", [], b"", False)
    sent += (
        wire.format_end() + wire.format_abort() + wire.format_response("500 X", [], b"", True) + wire.format_body(b"x")
    )
    assert parse_answer(sent).ends == [(0, 0)]


@pytest.mark.parametrize(
    ("method", "status", "expected"),
    [
        (b"HEAD", "200 OK", ["4"]),
        (b"GET", "204 No Content", []),
        (b"GET", "304 Not Modified", []),
        (b"HEAD", "304 Not Modified", []),
    ],
)
def test_h23_responses_without_a_body(method: bytes, status: str, expected: list[str]) -> None:
    wire = started(pairs=[(b"REQUEST_METHOD", method)])
    document = parse_answer(wire.format_response(status, FIELDS, b"body", False)).document
    assert document.body == b""
    assert document.get("content-length") == expected


def test_h23_head_of_an_application_that_knows_no_length() -> None:
    wire = started(pairs=[(b"REQUEST_METHOD", b"HEAD")])
    assert parse_answer(wire.format_response("200 OK", FIELDS, b"", False)).document.get("content-length") == []


@pytest.mark.parametrize(
    ("status", "fields", "body"),
    [
        ("200 OK", [("X", "a\r\nB: c")], b""),
        ("200 OK\r\nX: y", [], b""),
        ("200 OK", [("Transfer-Encoding", "chunked")], b""),
        ("200 OK", [("Content-Length", "8")], b"123"),
        ("200 OK", [("X", "\u20ac")], b""),
        ("200 OK", [("X", "a" * 70000)], b""),
    ],
    ids=["H22-crlf", "H22-status", "B027-transfer-encoding", "B018-length", "not-latin-1", "F14-long-head"],
)
def test_responses_that_may_not_be_sent_leave_the_exchange_open(
    status: str, fields: list[tuple[str, str]], body: bytes
) -> None:
    wire = started()
    with pytest.raises(LocalProtocolError):
        wire.format_response(status, fields, body, False)
    answer = parse_answer(wire.format_response("500 Internal Server Error", [], b"sorry", False))
    assert (answer.document.status, answer.ends) == (500, [(0, 0)])


def test_b146_repeated_fields() -> None:
    fields = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Date", "then"), ("Date", "now"), ("Server", "mine")]
    document = parse_answer(started().format_response("200 OK", fields, b"", False)).document
    assert document.get("set-cookie") == ["a=1", "b=2"]
    assert document.get("date") == ["then"]
    assert document.get("content-type") == []


@pytest.mark.parametrize("keep", [0, 1], ids=["unkept", "kept"])
@pytest.mark.parametrize("fields", [[], [("Content-Length", "100")]], ids=["no-length", "length"])
def test_b018_an_incomplete_response_has_no_end_request(keep: int, fields: list[tuple[str, str]]) -> None:
    wire = started(keep)
    sent = wire.format_head("200 OK", fields, True) + wire.format_body(b"12345678")
    assert wire.cut_needs_reset
    answer = parse_answer(sent + wire.format_abort())
    assert answer.ends == []
    assert answer.out.endswith(b"12345678")
    assert answer.others == [(UNKNOWN, 0, bytes(8), 0)]
    assert wire.format_end() == b""
    assert not wire.finish()


def test_b005_error_text_between_pieces() -> None:
    wire = started()
    line = "x" * 39 + "\n"
    sent = b"".join(wire.format_error_text(line) for _ in range(167))
    assert wire.format_error_text("") == b""
    sent += wire.format_response("200 OK", FIELDS, b"end", False)
    check_records(sent)
    answer = parse_answer(sent)
    assert answer.document.body == b"end"
    assert answer.err == line.encode() * 167
    assert wire.format_error_text("late") == b""


def test_f13_error_text_is_not_part_of_the_document() -> None:
    wire = started()
    sent = (
        wire.format_head("200 OK", FIELDS, False) + wire.format_error_text("caf\xe9 \udcff\n") + wire.format_body(b"x")
    )
    answer = parse_answer(sent + wire.format_end())
    assert answer.document.body == b"x"
    assert answer.err == b"caf\xc3\xa9 \\udcff\n"


def test_a_stream_of_nothing_has_no_record() -> None:
    assert format_stream(STDERR, 1, b"") == []


def test_refusals_before_any_request_send_nothing() -> None:
    assert make_wire().format_response("400 Bad Request", FIELDS, b"no", True) == b""


# Every way of cutting, and everything else that may come.


@st.composite
def conversations(draw: st.DrawFn) -> bytes:
    """Several well-formed requests with management records between them, sometimes spoilt in one byte."""
    token = st.binary(min_size=0, max_size=12)
    data = b""
    for _ in range(draw(st.integers(1, 3))):
        body = draw(st.binary(max_size=40))
        pairs = [(b"HTTP_" + draw(token), draw(token)) for _ in range(draw(st.integers(0, 3)))]
        if draw(st.booleans()):
            pairs.append((b"CONTENT_LENGTH", b"%d" % len(body)))
        role = draw(st.integers(1, 4))
        data += request(
            pairs, body, draw(st.integers(0, 1)), role, 1, draw(st.integers(1, 30)), draw(st.integers(0, 9))
        )  # fmt: skip
        data += stream(DATA, draw(token)) if role == 3 else b""
        data += draw(st.sampled_from([b"", rec(GET_VALUES, b"", 0), rec(77, b"x", 0), rec(ABORT), begin(1, 1, 3)]))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(data) - 1))
        # A record made into an abort counts from when it is seen, which does depend on the cut.
        data = data[:at] + bytes([draw(st.integers(0, 255).filter(lambda byte: byte != ABORT))]) + data[at + 1 :]
    return data


@settings(max_examples=150, deadline=None)
@given(conversations(), st.lists(st.integers(1, 400), max_size=8), st.sampled_from([read_all, read_nothing, read_ten]))
def test_any_cut_comes_to_the_same(data: bytes, cuts: list[int], reader: Reader) -> None:
    whole = drive(make_wire(), [data], reader, end=True).seen
    for pieces in (split(data, cuts), each_byte(data)):
        assert drive(make_wire(), pieces, reader, end=True).seen == whole


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=12), st.booleans())
def test_arbitrary_bytes_raise_nothing_unexpected(pieces: list[bytes], prefixed: bool) -> None:
    driver = Driver(make_wire())
    if prefixed:
        driver.feed(begin(KEEP))
    for piece in pieces:
        if piece:
            driver.feed(piece)
    driver.feed(b"")
    if driver.sent and not driver.sent.startswith(b"HTTP/1.0"):
        parse_records(driver.sent)


headers = st.builds(
    lambda version, kind, rid, content, pad: (
        struct.pack(">BBHHBB", version, kind, rid, len(content), pad, 0) + content + bytes(pad)
    ),
    st.sampled_from([1, 1, 1, 1, 1, 1, 1, 0]),
    st.integers(0, 13),
    st.integers(0, 2),
    st.one_of(st.binary(max_size=20), st.just(b""), st.just(struct.pack(">HB5x", 1, 1))),
    st.integers(0, 3),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(headers, max_size=15), st.sampled_from([read_all, read_nothing]))
def test_arbitrary_records_raise_nothing_unexpected(records: list[bytes], reader: Reader) -> None:
    driver = Driver(make_wire(), reader)
    for record in records:
        driver.feed(record)
    driver.feed(b"")
    parse_records(driver.sent)
    if driver.error is not None:
        driver.wire.receive(request(GET))
        assert driver.wire.take_request() is None


def test_f04_memory_is_bounded_before_a_limit_trips() -> None:
    driver = Driver(make_wire())
    driver.feed(begin(KEEP))
    record = rec(PARAMS, b"\xff\xff\xff\xff" + bytes(65000))
    fed = 0
    while driver.error is None:
        driver.feed(record)
        fed += len(record)
        assert fed < MAX_BLOCK + 2 * len(record)
        assert driver.wire.buffered < 2 * len(record)
    assert driver.wire.buffered == 0
    assert parse_answer(driver.sent).document.status == 431
