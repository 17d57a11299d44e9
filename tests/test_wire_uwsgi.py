"""The uwsgi wire, sans-I/O: each case whole, byte by byte, cut at every place and with bytes behind it.

Ids: U.. are rows of the security checklist, B... public bug reports.
"""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateways.core.errors import BodyIncomplete, LocalProtocolError, RemoteProtocolError
from gateways.core.interfaces import FieldList
from gateways.core.limits import WireLimits
from gateways.core.request import Endpoint, VariableRequest
from gateways.wire.uwsgi import MAGIC_VARIABLES, UwsgiWire
from tests.clients import uwsgi
from tests.wire_driver import ENDPOINT, Outcome, drive, each_byte, read_nothing, read_ten, split

TEXT = [("Content-Type", "text/plain")]
METHOD = (b"REQUEST_METHOD", b"GET")


def make_wire(limits: WireLimits | None = None, endpoint: Endpoint = ENDPOINT) -> UwsgiWire:
    return UwsgiWire(endpoint, "", limits or WireLimits())


def take(data: bytes, wire: UwsgiWire | None = None) -> VariableRequest:
    wire = wire or make_wire()
    wire.receive(data)
    request = wire.take_request()
    assert request is not None
    return request


def run(data: bytes, limits: WireLimits | None = None, end: bool = True) -> Outcome:
    """The outcome of these bytes, which is the same whole and byte by byte."""
    outcome = drive(make_wire(limits), [data], end=end)
    assert drive(make_wire(limits), each_byte(data), end=end).seen == outcome.seen
    return outcome


def refuse(data: bytes, limits: WireLimits | None = None) -> RemoteProtocolError:
    """The error that these bytes give; the application is not called and the answer is whole."""
    outcome = run(data, limits)
    assert outcome.calls == []
    assert outcome.error is not None
    assert outcome.error.section
    assert not outcome.kept
    answer = uwsgi.parse_answer(outcome.sent)
    assert answer.status == outcome.error.status
    assert answer.whole
    return outcome.error


# Requests.


def test_a_request_as_nginx_sends_it() -> None:
    more = [(b"HTTPS", b"on"), (b"HTTP_USER_AGENT", b"curl/8"), (b"HTTP_X_OWN", b"")]
    request = take(uwsgi.request(b"POST", b"/a b/c", b"q=%31", more, b"hello"))
    assert (request.method, request.path, request.query, request.target) == ("POST", "/a b/c", "q=%31", "/a b/c?q=%31")
    assert request.content_length == 5
    assert request.scheme == "https"
    assert request.remote_address == "192.0.2.7"
    assert request.fields.get("user-agent") == "curl/8"
    variables = request.build_metavariables()
    assert {name: variables[name] for name in ("REMOTE_ADDR", "REMOTE_PORT", "SERVER_NAME", "SERVER_PORT",
            "SERVER_PROTOCOL", "CONTENT_LENGTH", "HTTP_HOST", "HTTP_X_OWN", "PATH_INFO", "SCRIPT_NAME",
            "GATEWAY_INTERFACE", "REQUEST_URI", "QUERY_STRING")} == {
        "REMOTE_ADDR": "192.0.2.7", "REMOTE_PORT": "40000", "SERVER_NAME": "www.example.com", "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1", "CONTENT_LENGTH": "5", "HTTP_HOST": "www.example.com", "HTTP_X_OWN": "",
        "PATH_INFO": "/a b/c", "SCRIPT_NAME": "", "GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_URI": "/a b/c?q=%31",
        "QUERY_STRING": "q=%31",
    }  # fmt: skip


def test_B065_a_server_name_is_never_empty() -> None:
    pairs = [METHOD, (b"SERVER_NAME", b""), (b"SERVER_PORT", b"")]
    variables = take(uwsgi.packet(pairs)).build_metavariables()
    assert (variables["SERVER_NAME"], variables["SERVER_PORT"]) == ("server.example", "8080")


PATHS = [
    ("B048-decoded-once-by-the-front", [(b"PATH_INFO", b"/a%20b")], "", "/a%20b"),
    ("B024-script-name-is-a-slash", [(b"SCRIPT_NAME", b"/"), (b"PATH_INFO", b"/x")], "", "/x"),
    ("B024-script-name-ends-in-a-slash", [(b"SCRIPT_NAME", b"/app/"), (b"PATH_INFO", b"/x")], "/app", "/x"),
    ("B107-octets", [(b"PATH_INFO", b"/\xc3\xa5\xe9")], "", "/\xc3\xa5\xe9"),
    ("F03-newline", [(b"PATH_INFO", b"/a\nb")], "", "/a\nb"),
    ("empty", [(b"SCRIPT_NAME", b"/app"), (b"PATH_INFO", b"")], "/app", ""),
    ("no-path-info-at-all", [(b"SCRIPT_NAME", b"/app/x")], "", "/app/x"),
]


@pytest.mark.parametrize(("pairs", "script", "path"), [row[1:] for row in PATHS], ids=[row[0] for row in PATHS])
def test_paths(pairs: list[tuple[bytes, bytes]], script: str, path: str) -> None:
    variables = take(uwsgi.packet([METHOD, *pairs])).build_metavariables()
    assert (variables["SCRIPT_NAME"], variables["PATH_INFO"]) == (script, path)


def length(text: bytes) -> bytes:
    return uwsgi.packet([(b"REQUEST_METHOD", b"POST"), (b"CONTENT_LENGTH", text)], b"hello")


def raw(block: bytes) -> bytes:
    return struct.pack("<BHB", 0, len(block), 0) + block


GOOD = uwsgi.block([METHOD])
FORGED = uwsgi.packet([METHOD, (b"PATH_INFO", b"/forged"), (b"UWSGI_FILE", b"exec://id")])
REFUSED: list[tuple[str, bytes, int]] = [
    *[(f"U02-modifier-{number}", uwsgi.packet([METHOD], modifier1=number), 400)
      for number in (1, 5, 9, 14, 17, 22, 31, 100, 173, 255)],
    ("U02-B047-modifier-30", uwsgi.packet([METHOD, (b"SCRIPT_NAME", b"/test"), (b"PATH_INFO", b"/test/foo")],
                                          modifier1=30), 400),
    ("U02-modifier2", uwsgi.packet([METHOD], modifier2=1), 400),
    ("U03-no-variables", raw(b""), 400),
    ("U03-no-method", uwsgi.packet([(b"PATH_INFO", b"/")]), 400),
    ("U03-empty-method", uwsgi.packet([(b"REQUEST_METHOD", b"")]), 400),
    ("U03-name-past-the-end", raw(GOOD + b"\xff\xff" + b"A" * 10), 400),
    ("U03-value-past-the-end", raw(GOOD + b"\x01\0A\xff\xffvalue"), 400),
    ("U03-value-size-cut", raw(GOOD + b"\x01\0A\x05"), 400),
    ("U03-value-size-missing", raw(GOOD + b"\x01\0A"), 400),
    ("U03-name-size-cut", raw(GOOD + b"\x01"), 400),
    ("U03-one-byte-too-long", raw(GOOD[:-1]), 400),
    ("U03-1001-variables", uwsgi.packet([METHOD, *[(b"HTTP_X%d" % n, b"") for n in range(1000)]]), 431),
    ("U03-S04-REMOTE_USER-twice", uwsgi.packet([METHOD, (b"REMOTE_USER", b"a"), (b"REMOTE_USER", b"root")]), 400),
    ("U03-CONTENT_LENGTH-twice", uwsgi.packet([METHOD, (b"CONTENT_LENGTH", b"3"), (b"CONTENT_LENGTH", b"4")]), 400),
    ("U03-HTTPS-twice", uwsgi.packet([METHOD, (b"HTTPS", b"on"), (b"HTTPS", b"")]), 400),
    ("U03-PATH_INFO-twice", uwsgi.packet([METHOD, (b"PATH_INFO", b"/a"), (b"PATH_INFO", b"/b")]), 400),
    ("U03-value-with-nul", uwsgi.packet([METHOD, (b"HTTP_X", b"a\0b")]), 400),
    ("U05-B054-http", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("U05-http-post", b"POST / HTTP/1.1\r\n\r\n", 400),
    ("U05-http2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("tls", b"\x16\x03\x01\x02\0\x01", 400),
    *[(f"U06-length-{text.decode('latin-1')!r}", length(text), 400)
      for text in (b"-1", b"+5", b"text", b"0x5", b"5 ", b" 5", b"5,5", b"1" * 19, b"\xb2")],
    ("U07-B050-chunked-without-a-length", uwsgi.request(b"PUT", more=[(b"HTTP_TRANSFER_ENCODING", b"chunked")]), 411),
    ("H17-body-over-the-limit", length(b"%d" % ((1 << 30) + 1)), 413),
    ("method-no-token", uwsgi.packet([(b"REQUEST_METHOD", b"GET /")]), 400),
    ("path-without-a-slash", uwsgi.packet([METHOD, (b"PATH_INFO", b"x")]), 400),
    ("H24-path-that-decodes-to-nul", uwsgi.packet([METHOD, (b"REQUEST_URI", b"/a%00b")]), 400),
]  # fmt: skip


@pytest.mark.parametrize(("data", "status"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(data: bytes, status: int) -> None:
    assert refuse(data).status == status


@pytest.mark.parametrize(("data", "words"), [(b"GET / HTTP/1.1\r\n\r\n", "HTTP"), (b"\x16\x03\x01\0", "TLS")])
def test_U05_B054_the_mistake_is_named(data: bytes, words: str) -> None:
    assert f"this is {words}, sent to a uwsgi port" in refuse(data).message


@pytest.mark.parametrize("data", [b"GET ", b"\x1e\0\0\0"], ids=["http", "modifier-30"])
def test_a_packet_that_cannot_be_served_is_refused_before_more_of_it_comes(data: bytes) -> None:
    wire = make_wire()
    wire.receive(data)
    with pytest.raises(RemoteProtocolError):
        wire.take_request()


# U01: orders to uWSGI.


def test_U01_the_thirteen_names() -> None:
    assert len(MAGIC_VARIABLES) == 13
    assert all(name.startswith("UWSGI_") for name in MAGIC_VARIABLES)


@pytest.mark.parametrize("name", sorted(MAGIC_VARIABLES))
def test_U01_orders_are_dropped_and_noted_once(name: str) -> None:
    wire = make_wire()
    variables = take(uwsgi.request(more=[(name.encode(), b"exec://id")] * 2), wire).build_metavariables()
    assert name not in variables
    assert "exec://id" not in str(variables)
    assert wire.notes == [f"dropped variables that are orders to uWSGI: {name}"]
    assert "exec://id" not in str(wire.notes)


def test_U01_other_variables_of_the_front_stay() -> None:
    wire = make_wire()
    assert take(uwsgi.request(more=[(b"UWSGI_OTHER", b"v")]), wire).build_metavariables()["UWSGI_OTHER"] == "v"
    assert wire.notes == []


@pytest.mark.parametrize("name", [b"HTTP_PROXY", b"http_proxy", b"wsgi.url_scheme", b"wsgi.input", b"A=B", b"", b"X-A"])
def test_H15_names_that_are_never_passed(name: bytes) -> None:
    variables = take(uwsgi.request(more=[(name, b"evil")])).build_metavariables()
    assert "evil" not in variables.values()


def test_a_field_that_comes_twice_keeps_its_first_value() -> None:
    variables = take(uwsgi.request(more=[(b"HTTP_X", b"1"), (b"HTTP_X", b"6")])).build_metavariables()
    assert variables["HTTP_X"] == "1"


@pytest.mark.parametrize("trusted", [True, False])
def test_H16_forwarded_fields_count_when_the_client_of_the_front_is_a_trusted_proxy(trusted: bool) -> None:
    endpoint = Endpoint("h", "80", lambda address: trusted and address == "192.0.2.7")
    more = [(b"HTTP_X_FORWARDED_PROTO", b"https"), (b"HTTP_X_FORWARDED_FOR", b"198.51.100.1")]
    request = take(uwsgi.request(more=more), make_wire(endpoint=endpoint))
    assert ("HTTP_X_FORWARDED_FOR" in request.build_metavariables()) is trusted
    assert request.scheme == ("https" if trusted else "http")


# Limits.


@pytest.mark.parametrize(("size", "fits"), [(65535, True), (0, True), (200, False)])
def test_B044_U03_the_longest_block(size: int, fits: bool) -> None:
    limits = WireLimits(head=size, field=0)
    rest = 65535 - len(uwsgi.block([METHOD])) - 4 - len(b"HTTP_X")
    data = uwsgi.packet([METHOD, (b"HTTP_X", b"x" * rest)])
    assert data[:4] == b"\0\xff\xff\0"
    if fits:
        assert len(take(data, make_wire(limits)).build_metavariables()["HTTP_X"]) == rest
    else:
        wire = make_wire(limits)
        wire.receive(data[:4])
        with pytest.raises(RemoteProtocolError) as caught:
            wire.take_request()
        assert caught.value.status == 431, "refused by its size, before it has come"


def test_H17_one_long_variable() -> None:
    data = uwsgi.packet([METHOD, (b"HTTP_X", b"x" * 8190)])
    assert refuse(data).status == 431
    assert take(data, make_wire(WireLimits(field=0))).build_metavariables()["HTTP_X"] == "x" * 8190


def test_H17_limits_of_a_body() -> None:
    assert refuse(length(b"5"), WireLimits(body=4)).status == 413
    assert run(length(b"5"), WireLimits(body=0)).calls[0].body == b"hello"


# Bodies.


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 100_000])
@pytest.mark.parametrize("buffered", [0, 65536])
def test_B050_B026_bodies_of_every_size(size: int, buffered: int) -> None:
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    data = uwsgi.request(b"PUT", body=body)
    head = len(data) - size
    for pieces in ([data], [data[:head], data[head:]], split(data, range(head - 3, len(data), 3000))):
        outcome = drive(make_wire(WireLimits(buffered_body=buffered)), pieces)
        assert [call.body for call in outcome.calls] == [body]
        assert not outcome.kept


@pytest.mark.parametrize("more", [[], [(b"HTTP_TRANSFER_ENCODING", b"chunked")]], ids=["plain", "buffered"])
def test_U07_what_counts_is_content_length(more: list[tuple[bytes, bytes]]) -> None:
    assert run(uwsgi.request(b"PUT", more=more, body=b"hello")).calls[0].body == b"hello"


@pytest.mark.parametrize("pairs", [[], [(b"CONTENT_LENGTH", b"")], [(b"CONTENT_LENGTH", b"0")]])
def test_U07_without_a_length_there_is_no_body(pairs: list[tuple[bytes, bytes]]) -> None:
    outcome = run(uwsgi.packet([(b"REQUEST_METHOD", b"POST"), *pairs], b"extra"))
    assert [(call.body, call.content_length) for call in outcome.calls] == [(b"", 0)]


def test_S05_what_follows_the_body_is_dropped() -> None:
    assert run(length(b"3")).calls[0].body == b"hel"


@pytest.mark.parametrize("reader", [read_nothing, read_ten])
def test_U_B045_B141_an_unread_body_is_never_a_request(reader: object) -> None:
    data = uwsgi.request(b"POST", b"/first", body=FORGED) + FORGED
    for pieces in ([data], each_byte(data), [data[: -len(FORGED)], FORGED]):
        outcome = drive(make_wire(), pieces, reader, end=True)  # type: ignore[arg-type]
        assert [call.variables["PATH_INFO"] for call in outcome.calls] == ["/first"]
        assert not outcome.kept


def test_B045_after_the_answer_no_byte_is_looked_at() -> None:
    wire = make_wire(WireLimits(buffered_body=0))
    take(uwsgi.request(b"POST", body=FORGED)[: -len(FORGED)], wire)
    wire.format_response("200 OK", TEXT, b"", False)
    assert not wire.finish()
    assert not wire.body_complete(), "there is something to wait for before closing"
    wire.receive(FORGED * 2)
    assert wire.take_request() is None
    assert wire.buffered == 0


def test_F06_the_connection_ends_inside_the_body() -> None:
    data = uwsgi.request(b"POST", body=b"hello")[:-1]
    assert refuse(data).status == 400
    wire = make_wire(WireLimits(buffered_body=0))
    take(data, wire)
    wire.receive(b"")
    assert wire.body_ready(), "with nothing to be buffered the application is called at once"
    assert wire.take_body(10) == b"hell"
    with pytest.raises(BodyIncomplete):
        wire.take_body(10)


def test_the_end_of_input_before_a_request_is_no_fault_and_inside_one_is() -> None:
    wire = make_wire()
    wire.receive(b"")
    assert wire.take_request() is None
    data = uwsgi.request()
    for size in range(1, len(data)):
        wire = make_wire()
        wire.receive(data[:size])
        assert wire.take_request() is None
        assert wire.has_partial_request
        wire.receive(b"")
        with pytest.raises(RemoteProtocolError, match="middle of a request"):
            wire.take_request()


# Responses.


def respond(method: bytes, status: str, fields: FieldList, body: bytes, pieces: bool) -> uwsgi.Answer:
    wire = make_wire()
    take(uwsgi.request(method), wire)
    if pieces:
        data = wire.format_head(status, fields, False) + wire.format_body(body) + wire.format_end()
    else:
        data = wire.format_response(status, fields, body, False)
    assert not wire.finish()
    return uwsgi.parse_answer(data)


def test_U08_a_response_is_http_without_framing_of_its_own() -> None:
    fields = [("Content-Type", "text/plain"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    answer = respond(b"GET", "404 Not Found", fields, b"gone", pieces=False)
    assert answer == (404, [*fields, ("Content-Length", "4")], b"gone")
    assert respond(b"GET", "404 Not Found", fields, b"gone", pieces=True) == (404, fields, b"gone")


@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize(
    ("method", "status", "stated", "seen"),
    [
        (b"HEAD", "200 OK", None, None),
        (b"HEAD", "200 OK", "10", "10"),
        (b"GET", "204 No Content", "3", None),
        (b"GET", "304 Not Modified", "3", "3"),
        (b"GET", "304 Not Modified", None, None),
    ],
)
def test_B059_no_body_where_none_may_be(
    method: bytes, status: str, stated: str | None, seen: str | None, pieces: bool
) -> None:
    fields = [] if stated is None else [("Content-Length", stated)]
    answer = respond(method, status, fields, b"", pieces)
    assert (answer.get("Content-Length"), answer.body) == (seen, b"")


def test_B059_head_states_what_get_would_send() -> None:
    answer = respond(b"HEAD", "200 OK", [], b"abc", pieces=False)
    assert (answer.get("Content-Length"), answer.body) == ("3", b"")
    assert respond(b"GET", "304 Not Modified", [], b"abc", pieces=False).body == b""


def test_U08_an_incomplete_response_can_be_told() -> None:
    for fields, needs in [([], True), ([("Content-Length", "9")], False)]:
        wire = make_wire()
        take(uwsgi.request(), wire)
        assert not wire.cut_needs_reset
        wire.format_head("200 OK", fields, False)
        assert wire.cut_needs_reset is needs
        assert wire.format_abort() == b""


BAD_FIELDS: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("value-crlf", "200 OK", [("X-A", "a\r\nSet-Cookie: x=1")]),
    ("value-nul", "200 OK", [("X-A", "a\0")]),
    ("value-beyond-latin", "200 OK", [("X-A", "\u20ac")]),
    ("name-lf", "200 OK", [("A\nB", "v")]),
    ("status-crlf", "200 OK\r\nX: y", []),
    ("U08-B027-transfer-encoding", "200 OK", [("Transfer-Encoding", "chunked")]),
    ("connection", "200 OK", [("Connection", "keep-alive")]),
    ("head-too-long", "200 OK", [("X-A", "a" * 65536)]),
    ("length-and-body-differ", "200 OK", [("Content-Length", "3")]),
]


@pytest.mark.parametrize(("status", "fields"), [row[1:] for row in BAD_FIELDS], ids=[row[0] for row in BAD_FIELDS])
def test_B092_H22_what_an_application_may_not_send(status: str, fields: FieldList) -> None:
    wire = make_wire()
    take(uwsgi.request(), wire)
    with pytest.raises(LocalProtocolError):
        wire.format_response(status, fields, b"ok", False)
    assert uwsgi.parse_answer(wire.format_response("500 Internal Server Error", TEXT, b"no", True)).status == 500


def test_an_answer_before_any_request() -> None:
    answer = uwsgi.parse_answer(make_wire().format_response("503 Service Unavailable", TEXT, b"full", True))
    assert (answer.status, answer.body, answer.whole) == (503, b"full", True)


def test_a_file_goes_out_without_a_frame() -> None:
    assert make_wire().format_frame(1 << 30) == (b"", b"")


# However it is cut.

WHOLE = uwsgi.request(b"POST", b"/x", b"q", [(b"HTTP_X", b""), (b"UWSGI_FILE", b"f")], b"\0\x01\0\0body")


def test_cut_at_every_place() -> None:
    outcome = run(WHOLE)
    assert [call.body for call in outcome.calls] == [b"\0\x01\0\0body"]
    for at in range(1, len(WHOLE)):
        assert drive(make_wire(), [WHOLE[:at], WHOLE[at:]], end=True).seen == outcome.seen


@pytest.mark.parametrize("tail", [b"\0", FORGED, b"\xff" * 10], ids=["nul", "packet", "ones"])
def test_bytes_behind_a_request_do_not_change_it(tail: bytes) -> None:
    assert run(WHOLE + tail).seen == run(WHOLE).seen


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(WHOLE)), max_size=12))
def test_any_split_gives_the_same(places: list[int]) -> None:
    assert drive(make_wire(), split(WHOLE, places), end=True).seen == drive(make_wire(), [WHOLE], end=True).seen


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=4), st.booleans())
def test_arbitrary_bytes_never_raise_anything_unexpected(pieces: list[bytes], framed: bool) -> None:
    data = b"".join(pieces)
    run(raw(data) if framed else data)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8)), max_size=6))
def test_arbitrary_variables_never_raise_anything_unexpected(pairs: list[tuple[bytes, bytes]]) -> None:
    outcome = run(uwsgi.packet([METHOD, *pairs]))
    for call in outcome.calls:
        assert "\0" not in "".join(call.variables.values())
        assert all(name.replace("_", "a").isalnum() for name in call.variables)


def test_memory_is_bounded_whatever_a_peer_sends() -> None:
    tracemalloc.start()
    try:
        wire = make_wire()
        take(uwsgi.packet([(b"REQUEST_METHOD", b"POST"), (b"CONTENT_LENGTH", b"70000")]), wire)
        for _ in range(1000):
            wire.receive(b"x" * 65536)
        assert wire.buffered == 70000
        wire = make_wire()
        wire.receive(b"\0\xff\xff\0")
        for _ in range(1000):
            try:
                wire.take_request()
            except RemoteProtocolError:
                pass
            wire.receive(b"x" * 65536)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
