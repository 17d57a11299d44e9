"""The scgi wire: SCGI 1, rows S of the security list, and the SCGI cases, fed in every way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateways.core.errors import BodyIncomplete, LocalProtocolError, RemoteProtocolError
from gateways.core.limits import WireLimits
from gateways.core.variables import MAX_BLOCK, MAX_VARIABLES
from gateways.wire.scgi import SCGIWire, parse_block_size, parse_variables
from tests.clients.document import parse_document
from tests.clients.scgi import headers, netstring, request, scgi
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

GET = [(b"REQUEST_METHOD", b"GET"), (b"PATH_INFO", b"/x"), (b"QUERY_STRING", b"a=1"), (b"HTTP_HOST", b"h")]
FIRST = [(b"CONTENT_LENGTH", b"3"), (b"SCGI", b"1")]


def make_wire(**limits: int) -> SCGIWire:
    return SCGIWire(ENDPOINT, "", WireLimits(**limits))


def run(data: bytes, reader: Reader = read_all, end: bool = False, **limits: int) -> Outcome:
    """Feed ``data`` whole and byte by byte; both must come to the same. Return what they come to."""
    whole = drive(make_wire(**limits), [data], reader, end)
    if len(data) < 4000:
        assert drive(make_wire(**limits), each_byte(data), reader, end).seen == whole.seen
    return whole


def started(method: bytes = b"GET") -> SCGIWire:
    wire = make_wire()
    wire.receive(request([(b"REQUEST_METHOD", method)]))
    assert wire.take_request() is not None
    return wire


# Requests.


def test_the_example_of_the_specification() -> None:
    data = (
        b"70:CONTENT_LENGTH\x0027\x00SCGI\x001\x00REQUEST_METHOD\x00POST\x00REQUEST_URI\x00/deepthought\x00,"
        b"What is the answer to life?"
    )
    outcome = run(data)
    (call,) = outcome.calls
    assert call.body == b"What is the answer to life?"
    assert call.content_length == 27
    assert (call.variables["REQUEST_METHOD"], call.variables["PATH_INFO"]) == ("POST", "/deepthought")
    assert parse_document(outcome.sent).body == b"ok 27"
    assert not outcome.kept


@pytest.mark.parametrize("cut", range(1, 100, 3))
def test_b026_a_request_cut_in_two(cut: int) -> None:
    data = request(GET, b"hello")
    assert drive(make_wire(), split(data, [cut])).seen == drive(make_wire(), [data]).seen


def test_b026_a_long_body_in_one_piece_and_in_many() -> None:
    body = bytes(range(256)) * 400
    data = request(GET, body)
    for pieces in ([data], split(data, range(0, len(data), 65536)), split(data, [60])):
        (call,) = drive(make_wire(), pieces).calls
        assert call.body == body


def test_b029_s03_a_last_variable_with_an_empty_value() -> None:
    (call,) = run(scgi([*FIRST, (b"HTTP_X", b"")], b"abc")).calls
    assert call.variables["HTTP_X"] == ""
    assert call.body == b"abc"


# S01, B032: netstrings.


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"99999999999:", 400),
        (b"999999999999:", 400),
        (b"0123456789", 400),
        (b"-5:", 400),
        (b"-1:,", 400),
        (b"+5:", 400),
        (b"007:", 400),
        (b"00:,", 400),
        (b" 5:", 400),
        (b"5 :", 400),
        (b":", 400),
        (b"5\xb2:", 400),
        (b"1_0:", 400),
        (b"0x5:", 400),
        (b"10:" + b"x" * 10 + b";", 400),
        (b"999999999:", 431),
        (b"%d:" % (MAX_BLOCK + 1), 431),
        (b"0:,", 400),
        (b"\x00\x10\x00\x00", 400),
        (b"\x16\x03\x01", 400),
    ],
)
def test_s01_b032_netstrings_that_are_refused(data: bytes, status: int) -> None:
    outcome = run(data)
    assert outcome.error is not None
    assert outcome.error.status == status
    assert not outcome.calls
    assert parse_document(outcome.sent).status == status


@pytest.mark.parametrize(
    ("start", "place"),
    [(b"", None), (b"2", None), (b"24", None), (b"24:", (3, 24)), (b"9:", (2, 9)), (b"1048576:", (8, MAX_BLOCK))],
)
def test_s01_block_sizes(start: bytes, place: tuple[int, int] | None) -> None:
    assert parse_block_size(start, MAX_BLOCK) == place


def test_s01_the_limit_trips_before_the_bytes_come() -> None:
    wire = make_wire()
    wire.receive(b"1048577:")
    with pytest.raises(RemoteProtocolError):
        wire.take_request()
    wire.receive(bytes(100000))
    assert wire.buffered == 0
    assert wire.take_request() is None


# S02, S03, S04: variables.


@pytest.mark.parametrize(
    ("block", "status"),
    [
        (headers([(b"SCGI", b"1"), (b"CONTENT_LENGTH", b"3")]), 400),
        (headers([(b"SCGI", b"1")]), 400),
        (headers([(b"CONTENT_LENGTH", b""), (b"SCGI", b"1")]), 400),
        (headers([(b"CONTENT_LENGTH", b"x"), (b"SCGI", b"1")]), 400),
        (headers([(b"CONTENT_LENGTH", b"-1"), (b"SCGI", b"1")]), 400),
        (headers([(b"CONTENT_LENGTH", b"+3"), (b"SCGI", b"1")]), 400),
        (headers([(b"CONTENT_LENGTH", b"3 "), (b"SCGI", b"1")]), 400),
        (headers([*FIRST, (b"CONTENT_LENGTH", b"4")]), 400),
        (headers([(b"CONTENT_LENGTH", b"3")]), 400),
        (headers([(b"CONTENT_LENGTH", b"3"), (b"SCGI", b"2")]), 400),
        (headers([(b"CONTENT_LENGTH", b"3"), (b"SCGI", b"")]), 400),
        (headers([(b"content_length", b"3"), (b"SCGI", b"1")]), 400),
        (headers([*FIRST, (b"SCGI", b"2")]), 400),
        (headers(FIRST)[:-1], 400),
        (headers(FIRST) + b"X\0", 400),
        (headers(FIRST) + b"X", 400),
        (headers([*FIRST, (b"", b"x")]), 400),
        (headers([*FIRST, (b"", b"")]), 400),
        (headers([*FIRST, (b"REMOTE_USER", b"a"), (b"REMOTE_USER", b"root")]), 400),
        (headers([*FIRST, (b"REMOTE_ADDR", b"1.2.3.4"), (b"REMOTE_ADDR", b"127.0.0.1")]), 400),
        (headers([*FIRST, *((b"A%d" % n, b"") for n in range(MAX_VARIABLES))]), 431),
        (headers([(b"CONTENT_LENGTH", b"9" * 19), (b"SCGI", b"1")]), 400),
        (headers([(b"CONTENT_LENGTH", b"9" * 18), (b"SCGI", b"1")]), 413),
    ],
    ids=[
        "S02-length-second", "S02-length-absent", "S02-length-empty", "S02-length-text", "S02-length-negative",
        "S02-length-plus", "S02-length-space", "S02-B032-length-twice", "S02-scgi-absent", "S02-scgi-2",
        "S02-scgi-empty", "S02-length-lower-case", "S04-scgi-twice", "S03-no-final-nul", "S03-odd", "S03-rest",
        "S03-empty-name", "S03-empty-pair", "S04-user-twice", "S04-address-twice", "H17-many", "S02-length-long",
        "H17-length-huge",
    ],
)  # fmt: skip
def test_variables_that_are_refused(block: bytes, status: int) -> None:
    outcome = run(netstring(block) + b"abc")
    assert outcome.error is not None
    assert outcome.error.status == status
    assert not outcome.calls
    assert parse_document(outcome.sent).status == status


def test_b032_content_length_second_with_its_netstring() -> None:
    block = headers([(b"SCGI", b"1"), (b"CONTENT_LENGTH", b"0")])
    outcome = run(b"%d:" % len(block) + block + b",")
    assert outcome.error is not None


def test_b030_no_content_length_is_never_a_wait() -> None:
    outcome = run(scgi([(b"SCGI", b"1"), (b"REQUEST_METHOD", b"POST")], b"unannounced"))
    assert outcome.error is not None
    assert outcome.error.status == 400


def test_s04_a_field_that_came_twice_keeps_its_first_value() -> None:
    (call,) = run(request([*GET, (b"HTTP_X", b"1"), (b"HTTP_X", b"2"), (b"HTTP_HOST", b"h")])).calls
    assert (call.variables["HTTP_X"], call.variables["HTTP_HOST"]) == ("1", "h")


@pytest.mark.parametrize("name", [b"HTTP_PROXY", b"http_Proxy", b"wsgi.input", b"A-B", b"1A", b"\xe9"])
def test_h15_names_that_are_never_passed(name: bytes) -> None:
    (call,) = run(request([*GET, (name, b"evil")])).calls
    assert "evil" not in call.variables.values()
    assert call.variables["HTTP_HOST"] == "h"


def test_values_are_bytes_as_latin_1() -> None:
    assert parse_variables(headers([*FIRST, (b"X", b"caf\xc3\xa9 \r\n")]))["X"] == "caf\xc3\xa9 \r\n"


# S05: bodies.


@pytest.mark.parametrize("reader", [read_all, read_nothing, read_ten])
def test_s05_b018_a_body_longer_than_its_length(reader: Reader) -> None:
    outcome = run(request(GET, b"hello") + b"GARBAGE" + request([(b"REMOTE_USER", b"root")]), reader)
    assert len(outcome.calls) == 1
    assert outcome.calls[0].body == (b"" if reader is read_nothing else b"hello")
    assert not outcome.kept


def test_s05_a_body_shorter_than_its_length_never_reaches_the_application() -> None:
    outcome = run(request(GET, b"hello")[:-2], end=True)
    assert outcome.error is not None
    assert outcome.error.status == 400
    assert not outcome.calls
    assert parse_document(outcome.sent).status == 400


def test_f06_the_connection_ends_while_the_application_reads() -> None:
    driver = Driver(make_wire(buffered_body=2))
    driver.feed(request(GET, b"hello")[:-2])
    driver.feed(b"")
    assert (driver.calls[0].body, driver.calls[0].incomplete) == (b"hel", True)
    wire = make_wire()
    wire.receive(request(GET, b"x")[:-1])
    assert wire.take_request() is not None
    assert wire.take_body(1) is None
    wire.receive(b"")
    with pytest.raises(BodyIncomplete):
        wire.take_body(1)


@pytest.mark.parametrize("size", range(1, 30))
def test_the_connection_ends_within_the_head(size: int) -> None:
    outcome = run(request(GET)[:size], end=True)
    assert outcome.error is not None
    assert not outcome.calls


def test_an_empty_connection_is_no_error() -> None:
    assert run(b"", end=True).error is None


def test_h17_a_body_beyond_the_limit() -> None:
    outcome = run(request(GET, bytes(101)), body=100)
    assert outcome.error is not None
    assert outcome.error.status == 413


def test_http_on_this_port_is_recognised() -> None:
    outcome = run(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert outcome.error is not None
    assert "looks like HTTP" in str(outcome.error)
    assert outcome.sent.startswith(b"HTTP/1.0 400 Refused\r\n")


def test_what_is_buffered_is_counted() -> None:
    wire = make_wire()
    data = request(GET, b"hello")
    assert (wire.buffered, wire.has_partial_request, wire.body_complete()) == (0, False, True)
    wire.receive(data[:4])
    assert wire.take_request() is None
    assert (wire.buffered, wire.has_partial_request) == (4, True)
    wire.receive(data[4:-1])
    assert wire.take_request() is not None
    assert wire.take_request() is None
    assert (wire.buffered, wire.has_partial_request, wire.body_complete()) == (4, False, False)
    assert not wire.body_ready()
    assert wire.take_body(3) == b"hel"
    wire.receive(b"oextra")
    assert wire.body_ready()
    assert (wire.take_body(9), wire.take_body(9), wire.take_body(9)) == (b"l", b"o", b"")
    assert (wire.buffered, wire.take_output()) == (0, b"")


# S07: responses.


@pytest.mark.parametrize("size", [0, 1, 100000])
def test_s07_a_whole_response(size: int) -> None:
    wire = started()
    data = wire.format_response("200 OK", FIELDS, bytes(size), False)
    assert data.startswith(b"Status: 200 OK\r\nContent-Type: text/plain\r\n")
    document = parse_document(data)
    assert document.body == bytes(size)
    assert document.get("content-length") == [str(size)]
    assert not wire.finish()


@pytest.mark.parametrize("fields", [[], [("Content-Length", "6")]], ids=["no-length", "length"])
def test_s07_a_response_in_pieces(fields: list[tuple[str, str]]) -> None:
    wire = started()
    sent = wire.format_head("200 OK", [*FIELDS, *fields], False) + wire.format_body(b"abc") + wire.format_body(b"")
    assert wire.cut_needs_reset
    assert wire.format_frame(1 << 40) == (b"", b"")
    document = parse_document(sent + wire.format_body(b"def") + wire.format_end())
    assert document.body == b"abcdef"
    assert wire.format_abort() == b""


@pytest.mark.parametrize(
    ("method", "status", "expected"),
    [
        (b"HEAD", "200 OK", ["4"]),
        (b"GET", "204 No Content", []),
        (b"GET", "304 Not Modified", []),
    ],
)
def test_h23_responses_without_a_body(method: bytes, status: str, expected: list[str]) -> None:
    document = parse_document(started(method).format_response(status, FIELDS, b"body", False))
    assert (document.body, document.get("content-length")) == (b"", expected)


@pytest.mark.parametrize(
    ("fields", "body"),
    [([("Transfer-Encoding", "chunked")], b""), ([("X", "a\nb")], b""), ([("Content-Length", "8")], b"x")],
    ids=["U08", "H22", "B018"],
)
def test_responses_that_may_not_be_sent(fields: list[tuple[str, str]], body: bytes) -> None:
    wire = started()
    with pytest.raises(LocalProtocolError):
        wire.format_response("200 OK", fields, body, False)
    assert parse_document(wire.format_response("500 X", [], b"sorry", False)).status == 500


# Every way of cutting, and everything else that may come.


@st.composite
def conversations(draw: st.DrawFn) -> bytes:
    """A well-formed request with something after it, sometimes spoilt in one byte."""
    text = st.binary(max_size=12).map(lambda value: value.replace(b"\0", b"_"))
    pairs = [(b"HTTP_" + draw(text), draw(text)) for _ in range(draw(st.integers(0, 4)))]
    data = request(pairs, draw(st.binary(max_size=40))) + draw(st.binary(max_size=10))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(data) - 1))
        data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    return data


@settings(max_examples=200, deadline=None)
@given(conversations(), st.lists(st.integers(1, 200), max_size=8), st.sampled_from([read_all, read_nothing, read_ten]))
def test_any_cut_comes_to_the_same(data: bytes, cuts: list[int], reader: Reader) -> None:
    whole = drive(make_wire(), [data], reader, end=True).seen
    for pieces in (split(data, cuts), each_byte(data)):
        assert drive(make_wire(), pieces, reader, end=True).seen == whole


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=8), st.sampled_from([b"", b"24:", b"1:", b"9"]))
def test_arbitrary_bytes_raise_nothing_unexpected(pieces: list[bytes], start: bytes) -> None:
    driver = Driver(make_wire())
    for piece in [start, *pieces]:
        if piece:
            driver.feed(piece)
    driver.feed(b"")
    if driver.sent and not driver.sent.startswith(b"HTTP/1.0"):
        parse_document(driver.sent)
