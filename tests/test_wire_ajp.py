"""The AJPv13 wire, sans-I/O: each case whole, byte by byte, cut at every place and with bytes behind it.

Ids: A.. are rows of the security checklist, B... public bug reports.
"""

from __future__ import annotations

import itertools
import re
import tracemalloc
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateways.core.errors import BodyIncomplete, ConfigurationError, LocalProtocolError, RemoteProtocolError
from gateways.core.interfaces import FieldList, Wire
from gateways.core.limits import WireLimits
from gateways.core.request import Endpoint, FieldRequest
from gateways.wire.ajp import AJPWire
from gateways.wire.ajp_checks import FrontRules
from gateways.wire.ajp_codes import METHODS, REQUEST_FIELDS
from tests.clients import ajp

ENDPOINT = Endpoint("listener.example", "8009")
PEER = ("127.0.0.1", 40000)
TEXT = [("Content-Type", "text/plain")]


def make_wire(
    limits: WireLimits | None = None, endpoint: Endpoint = ENDPOINT, packet_size: int = 8192, **rules: object
) -> AJPWire:
    return AJPWire(endpoint, PEER, limits or WireLimits(), FrontRules(**rules), packet_size)  # type: ignore[arg-type]


class Outcome(NamedTuple):
    """What the application saw, what went to the front server, and how the connection stands."""

    seen: list[tuple[FieldRequest, bytes]]
    error: RemoteProtocolError | BodyIncomplete | None
    sent: bytes
    kept: bool

    @property
    def essence(self) -> tuple[object, ...]:
        """What must not depend on how the input was cut."""
        requests = [
            (r.method, r.target, r.path, r.query, r.protocol, tuple(r.field_list), r.content_length, body,
             tuple(sorted(r.build_metavariables().items())))
            for r, body in self.seen
        ]  # fmt: skip
        error = self.error
        return requests, error and (type(error), str(error), getattr(error, "status", 0)), self.kept


def read_all(wire: Wire) -> bytes | None:
    """All of the body that has come; ``None`` when more is needed."""
    data = b""
    while piece := wire.take_body(1 << 16):
        data += piece
    return None if piece is None else data


def answer_ok(wire: Wire, status: str = "200 OK", fields: FieldList = TEXT, body: bytes = b"ok") -> bytes:
    return wire.format_response(status, fields, body, False)


def drive(wire: AJPWire, pieces: Iterable[bytes], read: bool = True) -> Outcome:
    """Feed the pieces as a driver would; the application reads its body (or not) and answers ``ok``."""
    seen: list[tuple[FieldRequest, bytes]] = []
    sent = b""
    request: FieldRequest | None = None
    body = b""
    ready = False
    for piece in pieces:
        wire.receive(piece)
        try:
            while True:
                request = request or wire.take_request()
                if request is None:
                    break
                ready = ready or wire.body_ready()
                if not ready:
                    break
                while read and (part := wire.take_body(1 << 16)):
                    body += part
                if read and part is None:
                    break
                seen.append((request, body))
                sent += wire.take_output() + answer_ok(wire)
                request, body, ready = None, b"", False
                if not wire.finish():
                    return Outcome(seen, None, sent, False)
            sent += wire.take_output()
        except (RemoteProtocolError, BodyIncomplete) as error:
            return Outcome(seen, error, sent, False)
    return Outcome(seen, None, sent, True)


def take(data: bytes, **options: object) -> FieldRequest:
    wire = make_wire(**options)  # type: ignore[arg-type]
    wire.receive(data)
    request = wire.take_request()
    assert request is not None
    return request


def refuse(data: bytes, limits: WireLimits | None = None, **options: object) -> RemoteProtocolError:
    """The error that these bytes give, whole and byte by byte; the answer to it is whole and offers no reuse."""
    whole = drive(make_wire(limits, **options), [data])
    assert whole.error is not None
    assert whole.seen == []
    assert drive(make_wire(limits, **options), cut_bytes(data)).essence == whole.essence
    wire = make_wire(limits, **options)
    drive(wire, [data])
    answer = ajp.parse_answer(wire.format_response("400 Bad Request", TEXT, b"no", True))
    assert (answer.status, answer.body, answer.reuse) == (400, b"no", False)
    assert isinstance(whole.error, RemoteProtocolError)
    # Nothing that follows is looked at.
    wire.receive(ajp.forward())
    with pytest.raises(RemoteProtocolError):
        wire.take_request()
    return whole.error


def cut_bytes(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


# Requests.


def test_a_request_as_httpd_sends_it() -> None:
    fields = [("Host", "www.example.com"), ("User-Agent", "curl/8"), ("X-Own", "a"), ("x-own", "b"), ("Cookie", "c=d")]
    request = take(
        ajp.forward(
            "GET", "/a%20b/c", fields, host="client.example", port=8443, secure=1,
            attributes=ajp.attribute(ajp.QUERY, "q=%31") + ajp.named("AJP_REMOTE_PORT", "50000")
            + ajp.named("AJP_LOCAL_ADDR", "10.0.0.1") + ajp.named("AJP_SSL_PROTOCOL", "TLSv1.3")
            + ajp.attribute(ajp.CIPHER, "TLS_AES_256_GCM_SHA384") + ajp.attribute(ajp.SESSION, "0a0b")
            + bytes((ajp.KEY_SIZE, 1, 0)) + ajp.attribute(ajp.ROUTE, "node1") + ajp.attribute(ajp.CONTEXT, "/ctx"),
        )
    )  # fmt: skip
    assert (request.method, request.target, request.path, request.query) == ("GET", "/a%20b/c?q=%31", "/a b/c", "q=%31")
    assert request.content_length == 0
    assert request.fields.get_all("x-own") == ["a", "b"]
    assert request.remote_address == "192.0.2.7"
    assert request.scheme == "https"
    assert request.build_metavariables() == {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_SOFTWARE": "gateways",
        "SERVER_NAME": "www.example.com",
        "SERVER_PORT": "8443",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REQUEST_METHOD": "GET",
        "REQUEST_URI": "/a%20b/c?q=%31",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/a b/c",
        "QUERY_STRING": "q=%31",
        "REMOTE_ADDR": "192.0.2.7",
        "REMOTE_HOST": "client.example",
        "REMOTE_PORT": "50000",
        "HTTPS": "on",
        "SSL_CIPHER": "TLS_AES_256_GCM_SHA384",
        "SSL_SESSION_ID": "0a0b",
        "SSL_CIPHER_USEKEYSIZE": "256",
        "HTTP_HOST": "www.example.com",
        "HTTP_USER_AGENT": "curl/8",
        "HTTP_X_OWN": "a, b",
        "HTTP_COOKIE": "c=d",
    }


def test_what_the_front_leaves_out_comes_from_the_listener() -> None:
    request = take(ajp.forward(address=None, name=None, port=0, attributes=ajp.attribute(ajp.CIPHER, "x")))
    variables = request.build_metavariables()
    assert (variables["SERVER_NAME"], variables["SERVER_PORT"]) == ("listener.example", "8009")
    assert (variables["REMOTE_ADDR"], variables["REMOTE_PORT"]) == ("", "")
    assert {"HTTPS", "SSL_CIPHER", "REMOTE_HOST"}.isdisjoint(variables), "TLS words without TLS mean nothing"
    assert ENDPOINT.variables["SERVER_NAME"] == "listener.example"
    assert "HTTPS" not in ENDPOINT.variables


@pytest.mark.parametrize("code", range(1, len(METHODS)), ids=METHODS[1:])
def test_coded_methods(code: int) -> None:
    assert take(ajp.forward(code)).method == METHODS[code]
    assert ajp.METHODS.get(METHODS[code], code) == code


def test_a_stored_method_comes_as_an_attribute() -> None:
    assert take(ajp.forward(255, attributes=ajp.attribute(ajp.STORED_METHOD, "PATCH"))).method == "PATCH"


@pytest.mark.parametrize("code", range(1, len(REQUEST_FIELDS)), ids=REQUEST_FIELDS[1:])
def test_coded_fields(code: int) -> None:
    name = REQUEST_FIELDS[code]
    value = "5" if name == "Content-Length" else "v"
    assert take(ajp.forward(fields=[(name, value)])).field_list == [(name, value)]
    assert ajp.FIELDS[name.lower()] == code
    by_name = ajp.string(name.lower()) + ajp.string(value)
    assert take(ajp.forward(raw_fields=by_name, count=1)).field_list == [(name.lower(), value)]


TARGETS = [
    ("plain", "/x", None, "/x", "/x", ""),
    ("empty-query", "/x", "", "/x?", "/x", ""),
    ("B048-decoded-once", "/a%2520b", None, "/a%2520b", "/a%20b", ""),
    ("octets", "/%C3%A5%e5+%2B%2F", "%41", "/%C3%A5%e5+%2B%2F?%41", "/Ã¥å++/", "%41"),
    ("A11-no-normalisation", "/app;x=/..;/admin", None, "/app;x=/..;/admin", "/app;x=/..;/admin", ""),
    ("A11-slashes-stay", "//x///y", None, "//x///y", "//x///y", ""),
    ("raw-octets", "/\xe5", "\xe5", "/\xe5?\xe5", "/\xe5", "\xe5"),
]


@pytest.mark.parametrize(
    ("uri", "query", "target", "path", "seen"), [row[1:] for row in TARGETS], ids=[r[0] for r in TARGETS]
)
def test_targets(uri: str, query: str | None, target: str, path: str, seen: str) -> None:
    attributes = b"" if query is None else ajp.attribute(ajp.QUERY, query)
    request = take(ajp.forward(uri=uri, attributes=attributes))
    assert (request.target, request.path, request.query) == (target, path, seen)


def test_options_of_the_whole_server() -> None:
    assert take(ajp.forward("OPTIONS", "*")).target == "*"


FIELD = ajp.string("X-A") + ajp.string("v")
CL5 = ("Content-Length", "5")
REFUSED: list[tuple[str, bytes, int]] = [
    # A04: a packet's frame.
    ("A04-magic", b"\x12\x35\0\x01\x02", 400),
    ("A04-http", b"GET / HTTP/1.1\r\n\r\n", 400),
    ("A04-length-0", ajp.EMPTY, 400),
    ("A04-longer-than-a-packet", b"\x12\x34\x1f\xfd", 431),
    ("A04-longest-length", b"\x12\x34\xff\xff", 431),
    ("A04-unknown-prefix", ajp.packet(b"\x03"), 400),
    ("A04-reply-prefix", ajp.packet(b"\x05\x01"), 400),
    ("A04-only-a-prefix", ajp.packet(b"\x02"), 400),
    ("A04-cping-with-more", ajp.packet(b"\x0a\0"), 400),
    # A04: its content.
    ("A04-string-past-the-end", ajp.packet(b"\x02\x02\x7f\xffHTTP/1.1\0"), 400),
    ("A04-null-protocol", ajp.packet(b"\x02\x02\xff\xff" + ajp.forward()[4 + 2 + 11 :]), 400),
    ("A04-null-uri", ajp.packet(b"\x02\x02" + ajp.string("HTTP/1.1") + b"\xff\xff" * 4 + b"\0" * 5 + b"\xff"), 400),
    ("A04-null-value", ajp.forward(raw_fields=ajp.string("X-A") + b"\xff\xff", count=1), 400),
    ("A04-value-without-nul", ajp.forward(raw_fields=ajp.string("X-A") + b"\0\1vv", count=1), 400),
    ("A04-name-without-nul", ajp.forward(raw_fields=b"\0\3X-AA" + ajp.string("v"), count=1), 400),
    ("A04-uri-without-nul", ajp.packet(b"\x02\x02" + ajp.string("HTTP/1.1") + b"\0\2/xx"), 400),
    ("A04-unknown-field-code-FF", ajp.forward(raw_fields=b"\xa0\xff" + ajp.string("v"), count=1), 400),
    ("A04-unknown-field-code-0", ajp.forward(raw_fields=b"\xa0\0" + ajp.string("v"), count=1), 400),
    ("A04-fewer-fields-than-said", ajp.forward(raw_fields=FIELD, count=2), 400),
    ("A04-more-fields-than-said", ajp.forward(raw_fields=FIELD + FIELD, count=1), 400),
    ("A04-more-fields-than-allowed", ajp.forward(raw_fields=FIELD, count=101), 431),
    ("A04-65535-fields", ajp.forward(raw_fields=FIELD, count=65535), 431),
    ("A04-no-terminator", ajp.forward(end=b""), 400),
    ("A04-bytes-after-the-terminator", ajp.forward(end=b"\xff\0"), 400),
    ("A04-unknown-attribute", ajp.forward(attributes=b"\x0e" + ajp.string("v")), 400),
    ("A04-attribute-0", ajp.forward(attributes=b"\0" + ajp.string("v")), 400),
    ("A04-is-ssl-2", ajp.forward(secure=2), 400),
    ("method-0", ajp.forward(0), 400),
    ("method-28", ajp.forward(28), 400),
    ("method-stored-but-absent", ajp.forward(255), 400),
    ("method-stored-no-token", ajp.forward(255, attributes=ajp.attribute(ajp.STORED_METHOD, "A B")), 400),
    ("protocol", ajp.forward(protocol="HTTP/1.1\r\nX: y"), 400),
    # What a name, a value and a target may hold.
    ("H12-name-no-token", ajp.forward(fields=[("X A", "v")]), 400),
    ("H12-name-empty", ajp.forward(fields=[("", "v")]), 400),
    ("H12-name-latin", ajp.forward(fields=[("X\xe5", "v")]), 400),
    ("H13-value-cr", ajp.forward(fields=[("X-A", "a\rb")]), 400),
    ("H13-value-lf", ajp.forward(fields=[("X-A", "a\nb")]), 400),
    ("H13-value-nul", ajp.forward(fields=[("X-A", "a\0b")]), 400),
    ("H13-value-del-beside-latin", ajp.forward(fields=[("X-A", "\xe5\x7f")]), 400),
    ("H24-no-slash", ajp.forward(uri="x"), 400),
    ("H24-absolute", ajp.forward(uri="http://h/x"), 400),
    ("H24-star-for-get", ajp.forward(uri="*"), 400),
    ("H24-raw-space", ajp.forward(uri="/a b"), 400),
    ("H24-raw-newline", ajp.forward(uri="/a\nb"), 400),
    ("H24-nul-escape", ajp.forward(uri="/a%00b"), 400),
    ("H24-half-escape", ajp.forward(uri="/a%C"), 400),
    ("H24-no-escape", ajp.forward(uri="/a%zz"), 400),
    ("B021-fragment", ajp.forward(uri="/foo#bar"), 400),
    ("raw-question-mark", ajp.forward(uri="/foo?a"), 400),
    ("query-newline", ajp.forward(attributes=ajp.attribute(ajp.QUERY, "a\r\nb")), 400),
    ("query-twice", ajp.forward(attributes=ajp.attribute(ajp.QUERY, "a") * 2), 400),
    ("address-newline", ajp.forward(address="1.2.3.4\n"), 400),
    ("server-name-space", ajp.forward(name="a b"), 400),
    ("remote-port", ajp.forward(attributes=ajp.named("AJP_REMOTE_PORT", "80 x")), 400),
    ("B062-two-hosts", ajp.forward(fields=[("Host", "a"), ("host", "a")]), 400),
    ("B062-two-content-types", ajp.forward(fields=[("Content-Type", "a"), ("Content-Type", "b")]), 400),
    # A07: framing.
    ("A07-B039-two-lengths", ajp.forward("POST", fields=[CL5, ("Content-Length", "6")]), 400),
    ("A07-two-equal-lengths", ajp.forward("POST", fields=[CL5, CL5]), 400),
    ("A07-a-coded-and-a-named-length", ajp.forward("POST", count=2, raw_fields=b"\xa0\x08" + ajp.string("5")
        + ajp.string("CONTENT-length") + ajp.string("5")), 400),
    ("A07-length-and-coding", ajp.forward("POST", fields=[CL5, ("Transfer-Encoding", "chunked")]), 400),
    ("A07-unknown-coding", ajp.forward("POST", fields=[("Transfer-Encoding", "gzip, chunked")]), 501),
    ("A07-coding-twice", ajp.forward("POST", fields=[("Transfer-Encoding", "chunked")] * 2), 501),
    ("A07-empty-coding", ajp.forward("POST", fields=[("Transfer-Encoding", "")]), 501),
    *[(f"H04-length-{text!r}", ajp.forward("POST", fields=[("Content-Length", text)]), 400)
      for text in ("", "+5", "-1", "1_0", "0x10", " 5", "5 ", "5, 5", "1" * 19, "\xb2")],
    ("A08-body-over-the-limit", ajp.forward("POST", fields=[("Content-Length", str((1 << 30) + 1))]), 413),
    ("A10-shutdown", ajp.SHUTDOWN, 403),
    # A02: request attributes.
    ("A02-B042-servlet-path",
     ajp.forward(attributes=ajp.named("javax.servlet.include.servlet_path", "/WEB-INF/web.xml")), 403),
    ("A02-B042-REMOTE_USER", ajp.forward(attributes=ajp.named("REMOTE_USER", "root")), 403),
    ("A02-B042-url_scheme", ajp.forward(attributes=ajp.named("wsgi.url_scheme", "https")), 403),
    ("A02-AJP", ajp.forward(attributes=ajp.named("AJP_OTHER", "x")), 403),
    ("A02-twice", ajp.forward(attributes=ajp.named("AJP_LOCAL_ADDR", "x") * 2), 400),
]  # fmt: skip


@pytest.mark.parametrize(("data", "status"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(data: bytes, status: int) -> None:
    error = refuse(data)
    assert error.status == status
    assert error.section


@pytest.mark.parametrize("size", range(4, len(ajp.forward()) - 1))
def test_A04_a_request_cut_short_inside_its_packet(size: int) -> None:
    assert refuse(ajp.packet(ajp.forward(fields=[("Host", "a")])[4:][: size - 4])).status == 400


def test_http_on_the_ajp_port_is_named() -> None:
    assert "not AJP" in refuse(b"GET / HTTP/1.1\r\n\r\n").message


LIMITS: list[tuple[str, WireLimits, bytes, int]] = [
    ("fields", WireLimits(fields=2), ajp.forward(fields=[("A", "a")] * 3), 431),
    ("field", WireLimits(field=100), ajp.forward(fields=[("X-A", "a" * 98)]), 431),
    ("head", WireLimits(head=60), ajp.forward(uri="/" + "x" * 60), 431),
    ("target", WireLimits(request_line=20), ajp.forward(uri="/" + "x" * 20), 414),
    ("target-with-query", WireLimits(request_line=20), ajp.forward(attributes=ajp.attribute(ajp.QUERY, "q" * 20)), 414),
    ("body", WireLimits(body=4), ajp.forward("POST", fields=[CL5]), 413),
    ("chunked-body", WireLimits(body=4),
     ajp.forward("POST", fields=[("Transfer-Encoding", "chunked")]) + ajp.body(b"hello"), 413),
]  # fmt: skip


@pytest.mark.parametrize(("limits", "data", "status"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_limits(limits: WireLimits, data: bytes, status: int) -> None:
    assert refuse(data, limits).status == status
    assert drive(make_wire(WireLimits(fields=0, field=0, head=0, request_line=0, body=0)), [data]).error is None


def test_B044_zero_is_unlimited_and_a_packet_bounds_a_head_still() -> None:
    wire = make_wire(WireLimits(head=0, field=0, request_line=0), packet_size=65536)
    wire.receive(ajp.forward(uri="/" + "x" * 60000))
    request = wire.take_request()
    assert request is not None
    assert len(request.path) == 60001


# A01: the secret.


def secret(*values: str) -> bytes:
    return ajp.forward(attributes=b"".join(ajp.attribute(ajp.SECRET, value) for value in values))


@pytest.mark.parametrize(
    "data",
    [secret(), secret("wrong"), secret(""), secret("s3cret "), secret("s3cret", "s3cret"), secret("s3cret", "x")],
    ids=["missing", "wrong", "empty", "longer", "twice", "then-wrong"],
)
def test_A01_without_the_secret_nothing_is_served(data: bytes) -> None:
    assert refuse(data, secret="s3cret").status == 403


def test_A01_the_secret_wherever_it_stands() -> None:
    attributes = ajp.attribute(ajp.SECRET, "s3cret") + ajp.attribute(ajp.QUERY, "a")
    request = take(ajp.forward(attributes=attributes), secret="s3cret")
    assert request.query == "a"
    assert "s3cret" not in str(request.build_metavariables())


def test_A01_a_secret_that_nobody_asked_for_is_ignored() -> None:
    assert "x" not in take(secret("x")).build_metavariables().values()


def test_A01_no_error_says_more_to_those_without_the_secret() -> None:
    data = ajp.forward("POST", fields=[CL5, CL5], attributes=ajp.named("REMOTE_USER", "root"))
    assert refuse(data, secret="s3cret").message == "the front server does not know the secret"


# A02, A03: what the front is believed.


def test_A02_an_attribute_that_is_let_in_is_told_apart_from_every_other_variable() -> None:
    pattern = re.compile(r"[A-Z_]+|own\..*|HTTP.*|bad=.*")
    data = ajp.forward(attributes=ajp.named("SHIB", "v") + ajp.named("own.x", "w") + ajp.named("REMOTE_USER", "r"))
    variables = take(data, attributes=pattern).build_metavariables()
    assert (variables["AJP_SHIB"], variables["AJP_own.x"], variables["AJP_REMOTE_USER"]) == ("v", "w", "r")
    assert {"SHIB", "own.x", "REMOTE_USER"}.isdisjoint(variables)
    for name, value in [("other.x", "v"), ("bad=x", "v"), ("", "v"), ("xSHIB", "v")]:
        assert refuse(ajp.forward(attributes=ajp.named(name, value)), attributes=pattern).status == 403
    assert refuse(ajp.forward(attributes=ajp.named("SHIB", "a\0b")), attributes=pattern).status == 400


def test_A02_what_fronts_send_of_themselves_is_let_in_and_not_passed_on() -> None:
    names = ("AJP_LOCAL_ADDR", "AJP_SSL_PROTOCOL", "JK_LB_ACTIVATION")
    variables = take(ajp.forward(attributes=b"".join(ajp.named(name, "x") for name in names))).build_metavariables()
    assert "x" not in variables.values()


PEM = "-B-\nQ\n-E-\n"
USER = ajp.attribute(ajp.REMOTE_USER, "ann") + ajp.attribute(ajp.AUTH_TYPE, "Basic") + ajp.attribute(ajp.CERT, PEM)


def test_A03_who_the_user_is_counts_only_where_configured() -> None:
    data = ajp.forward(attributes=USER, secure=1)
    names = ("REMOTE_USER", "AUTH_TYPE", "SSL_CLIENT_CERT")
    assert set(names).isdisjoint(take(data).build_metavariables())
    variables = take(data, believes_user=True).build_metavariables()
    assert [variables[name] for name in names] == ["ann", "Basic", PEM]
    twice = ajp.forward(attributes=USER + ajp.attribute(ajp.REMOTE_USER, "root"))
    assert refuse(twice, believes_user=True).status == 400
    split = ajp.forward(attributes=ajp.attribute(ajp.REMOTE_USER, "a\nb"))
    assert refuse(split, believes_user=True).status == 400


def test_H14_B095_a_name_with_an_underscore_is_dropped() -> None:
    request = take(ajp.forward(fields=[("X_Own", "6"), ("X-Own", "1"), ("Content_Length", "9")]))
    assert request.fields.get("x-own") == "1"
    assert "X_Own" not in request.fields
    assert request.content_length == 0
    assert request.build_metavariables()["HTTP_X_OWN"] == "1"


def test_H15_proxy_is_dropped() -> None:
    request = take(ajp.forward(fields=[("Proxy", "http://evil/")]))
    assert "HTTP_PROXY" not in request.build_metavariables()
    assert "proxy" not in request.fields


@pytest.mark.parametrize("trusted", [True, False])
def test_H16_forwarded_fields_count_when_the_client_of_the_front_is_a_trusted_proxy(trusted: bool) -> None:
    # The front's own address is trusted either way: what it relays is its client's word, not its own.
    good = {"127.0.0.1"} | ({"192.0.2.7"} if trusted else set())
    endpoint = Endpoint("h", "80", good.__contains__)
    fields = [("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "198.51.100.1")]
    request = take(ajp.forward(fields=fields), endpoint=endpoint)
    assert ("HTTP_X_FORWARDED_FOR" in request.build_metavariables()) is trusted
    assert ("X-Forwarded-For" in request.fields) is trusted
    assert request.scheme == ("https" if trusted else "http")


# Bodies.

POST5 = ajp.forward("POST", fields=[CL5])
CHUNKED = ajp.forward("POST", fields=[("Transfer-Encoding", "chunked")])


def test_the_first_body_packet_is_not_asked_for_and_a_later_one_is() -> None:
    data = bytes(range(256)) * 80
    wire = make_wire(WireLimits(buffered_body=0))
    wire.receive(ajp.forward("POST", fields=[("Content-Length", str(len(data)))]))
    assert wire.take_request() is not None
    assert wire.body_ready(), "with nothing to be buffered the application is called at once"
    assert wire.take_body(100) is None
    assert wire.take_output() == b"", "the first packet comes by itself"
    wire.receive(ajp.body(data[:8186]))
    got = wire.take_body(10_000)
    assert got == data[:8186]
    for at in range(8186, len(data), 8186):
        assert wire.take_body(10_000) is None
        assert wire.take_output() == b"AB\0\x03\x06\x1f\xfa"
        assert wire.take_body(10_000) is None
        assert wire.take_output() == b"", "asked once"
        wire.receive(ajp.body(data[at : at + 8186]))
        piece = wire.take_body(10_000)
        assert piece
        got += piece
    assert wire.take_body(1) == b""
    assert got == data
    assert wire.body_complete()


def test_body_ready_asks_until_enough_is_held() -> None:
    wire = make_wire(WireLimits(buffered_body=16000))
    wire.receive(ajp.forward("POST", fields=[("Content-Length", "100000")]))
    request = wire.take_request()
    assert request is not None
    assert request.content_length == 100000
    assert not wire.body_ready()
    assert wire.take_output() == b""
    wire.receive(ajp.body(b"a" * 8186))
    assert not wire.body_ready()
    assert wire.take_output() == b"AB\0\x03\x06\x1f\xfa"
    wire.receive(ajp.body(b"b" * 8186))
    assert wire.body_ready()
    assert wire.take_output() == b"", "no more is asked for than may be held"
    assert wire.buffered == 2 * 8186
    assert not wire.body_complete()


def test_the_packet_size_is_what_is_asked_for() -> None:
    wire = make_wire(WireLimits(buffered_body=0), packet_size=65536)
    wire.receive(ajp.forward("POST", fields=[("Content-Length", "70000")]) + ajp.body(b"a" * 65530))
    assert wire.take_request() is not None
    assert len(wire.take_body(1 << 20) or b"") == 65530
    assert wire.take_body(1) is None
    assert wire.take_output() == b"AB\0\x03\x06\xff\xfa"


def test_a_body_of_unknown_length_is_asked_for_and_ends_with_an_empty_packet() -> None:
    wire = make_wire()
    wire.receive(CHUNKED)
    request = wire.take_request()
    assert request is not None
    assert request.content_length is None
    assert "transfer-encoding" not in request.fields
    assert "CONTENT_LENGTH" not in request.build_metavariables()
    for data in (b"hello", b" world"):
        assert not wire.body_ready()
        assert wire.take_output() == b"AB\0\x03\x06\x1f\xfa"
        wire.receive(ajp.body(data))
    assert not wire.body_ready()
    assert wire.take_output()
    wire.receive(ajp.EMPTY)
    assert wire.body_ready()
    assert read_all(wire) == b"hello world"
    assert ajp.parse_answer(answer_ok(wire)).reuse is True
    assert wire.finish()


def test_an_empty_packet_may_also_say_that_it_is_empty() -> None:
    outcome = drive(make_wire(), [CHUNKED + ajp.body(b"hello") + ajp.body(b"")])
    assert [body for _, body in outcome.seen] == [b"hello"]
    assert outcome.kept


def test_A06_content_length_0_waits_for_nothing() -> None:
    outcome = drive(make_wire(), [ajp.forward("POST", fields=[("Content-Length", "0")])])
    assert [body for _, body in outcome.seen] == [b""]
    assert outcome.kept


def test_A06_B038_without_a_body_packet_the_application_is_not_called() -> None:
    wire = make_wire()
    wire.receive(ajp.forward("POST", fields=[("Content-Length", "10")]))
    assert wire.take_request() is not None
    assert not wire.body_ready()
    assert wire.take_output() == b""
    answer = ajp.parse_answer(wire.format_response("408 Request Timeout", TEXT, b"slow", True))
    assert (answer.status, answer.reuse) == (408, False)


@pytest.mark.parametrize(
    ("packet", "status"),
    [
        (ajp.body(b"hello!"), 400),
        (ajp.packet(b"\0\6hello"), 400),
        (ajp.packet(b"\0\4hello"), 400),
        (ajp.packet(b"\0"), 400),
        (ajp.packet(b"\xff\xffhello"), 400),
        (b"\x12\x34\xff\xff", 400),
        (b"hello", 400),
    ],
    ids=["A06-longer-than-content-length", "says-more", "says-less", "no-size", "null", "longest", "raw"],
)
def test_A06_malformed_body_packets(packet: bytes, status: int) -> None:
    error = refuse(POST5 + packet)
    assert error.status == status


def test_A06_a_body_that_its_front_ends_early() -> None:
    assert refuse(POST5 + ajp.EMPTY).status == 400
    wire = make_wire(WireLimits(buffered_body=0))
    wire.receive(POST5 + ajp.EMPTY)
    assert wire.take_request() is not None
    with pytest.raises(BodyIncomplete):
        wire.take_body(5)
    assert wire.take_output() == b""
    assert ajp.parse_answer(answer_ok(wire)).reuse is False
    assert not wire.finish()


def test_B036_a_body_whose_connection_ends() -> None:
    assert refuse_end(make_wire(), [ajp.forward("POST", fields=[("Content-Length", "100")]), b""]) == 400
    wire = make_wire(WireLimits(buffered_body=0))
    wire.receive(POST5)
    wire.receive(b"")
    assert wire.take_request() is not None
    with pytest.raises(BodyIncomplete):
        wire.take_body(5)


def refuse_end(wire: AJPWire, pieces: Sequence[bytes]) -> int:
    outcome = drive(wire, pieces)
    assert outcome.seen == []
    assert isinstance(outcome.error, RemoteProtocolError)
    return outcome.error.status


def test_the_end_of_input_between_requests_is_no_fault_and_inside_one_is() -> None:
    wire = make_wire()
    wire.receive(b"")
    assert wire.take_request() is None
    for size in range(1, len(POST5)):
        wire = make_wire()
        wire.receive(POST5[:size])
        assert wire.take_request() is None
        assert wire.has_partial_request
        wire.receive(b"")
        with pytest.raises(RemoteProtocolError, match="middle of a packet"):
            wire.take_request()


# A05: a body is never a request.

FORGED = ajp.forward("GET", "/forged", attributes=ajp.attribute(ajp.REMOTE_USER, "root"))


@pytest.mark.parametrize("read", [0, 10], ids=["unread", "ten-bytes-read"])
@pytest.mark.parametrize(
    "content", [FORGED[4:], FORGED, FORGED * 2, b"\x02\x02" + FORGED[6:]], ids=["payload", "packet", "two", "codes"]
)
def test_A05_B035_B141_an_unread_body_is_never_a_request(content: bytes, read: int) -> None:
    head = ajp.forward("POST", "/first", fields=[("Content-Length", str(len(content)))])
    wire = make_wire()
    wire.receive(head + ajp.body(content) + ajp.forward(uri="/second"))
    first = wire.take_request()
    assert first is not None
    assert first.path == "/first"
    if read:
        wire.take_body(read)
    assert ajp.parse_answer(answer_ok(wire)).reuse is True, "the body has arrived: the connection is in step"
    assert wire.finish()
    second = wire.take_request()
    assert second is not None
    assert second.path == "/second"
    answer_ok(wire)
    wire.finish()
    assert wire.take_request() is None


@pytest.mark.parametrize("arrived", [0, 3, 30], ids=["nothing", "part-of-its-head", "part-of-its-data"])
def test_A05_a_body_packet_that_comes_after_the_answer_ends_the_connection(arrived: int) -> None:
    packet = ajp.body(FORGED)
    wire = make_wire(WireLimits(buffered_body=0))
    wire.receive(ajp.forward("POST", fields=[("Content-Length", str(len(FORGED)))]) + packet[:arrived])
    assert wire.take_request() is not None
    assert ajp.parse_answer(answer_ok(wire)).reuse is False
    assert not wire.finish()
    assert not wire.body_complete(), "there is something to wait for before closing"
    wire.receive(packet[arrived:] + FORGED)
    assert wire.take_request() is None
    assert wire.buffered == 0


def test_A05_a_body_with_a_rest_that_was_never_asked_for_ends_the_connection() -> None:
    wire = make_wire(WireLimits(buffered_body=0))
    wire.receive(ajp.forward("POST", fields=[("Content-Length", "9000")]) + ajp.body(b"a" * 8186) + FORGED)
    assert wire.take_request() is not None
    assert ajp.parse_answer(answer_ok(wire)).reuse is False
    assert not wire.finish()
    assert wire.take_request() is None


def test_A05_a_body_of_unknown_length_that_nobody_read_ends_the_connection() -> None:
    wire = make_wire(WireLimits(buffered_body=0))
    wire.receive(CHUNKED + FORGED)
    assert wire.take_request() is not None
    assert ajp.parse_answer(answer_ok(wire)).reuse is False
    assert not wire.finish()
    assert wire.take_request() is None


def test_an_empty_packet_may_end_a_body_that_was_none() -> None:
    outcome = drive(make_wire(), [(ajp.forward(uri="/1") + ajp.EMPTY) * 2 + ajp.forward(uri="/3")])
    assert [request.path for request, _ in outcome.seen] == ["/1", "/1", "/3"]
    assert outcome.error is None
    for data in (ajp.forward() + ajp.EMPTY * 2, POST5 + ajp.body(b"hello") + ajp.EMPTY):
        outcome = drive(make_wire(), [data])
        assert len(outcome.seen) == 1
        assert isinstance(outcome.error, RemoteProtocolError)


# A10: signals.


def test_A10_cping_is_answered_between_requests_and_before_the_first() -> None:
    wire = make_wire()
    wire.receive(ajp.CPING)
    assert wire.take_request() is None
    assert wire.take_output() == ajp.CPONG
    assert not wire.has_partial_request
    wire.receive(ajp.CPING + ajp.PING + ajp.CPING + ajp.forward())
    assert wire.take_request() is not None
    answer = ajp.parse_answer(answer_ok(wire))
    assert (answer.pongs, answer.status, answer.reuse) == (2, 200, True), "in the order they were asked for"
    assert wire.take_output() == b""
    assert wire.finish()
    wire.receive(ajp.CPING)
    assert wire.take_request() is None
    assert wire.take_output() == ajp.CPONG


def test_A10_ping_is_ignored() -> None:
    wire = make_wire()
    wire.receive(ajp.PING)
    assert wire.take_request() is None
    assert wire.take_output() == b""


def test_A10_shutdown_is_refused_with_the_secret_too() -> None:
    assert refuse(ajp.SHUTDOWN, secret="s").status == 403
    outcome = drive(make_wire(), [ajp.forward() + ajp.SHUTDOWN])
    assert len(outcome.seen) == 1
    assert isinstance(outcome.error, RemoteProtocolError)


# Responses.


def respond(
    method: str = "GET",
    status: str = "200 OK",
    fields: FieldList = TEXT,
    body: bytes = b"",
    close: bool = False,
    packet_size: int = 8192,
) -> ajp.Answer:
    wire = make_wire(packet_size=packet_size)
    wire.receive(ajp.forward(method))
    assert wire.take_request() is not None
    answer = ajp.parse_answer(wire.format_response(status, fields, body, close))
    assert answer.reuse is not close
    assert wire.finish() is not close
    assert all(size <= packet_size for size in answer.sizes)
    return answer


def in_pieces(
    method: str = "GET",
    status: str = "200 OK",
    fields: FieldList = TEXT,
    pieces: Sequence[bytes] = (),
    packet_size: int = 8192,
) -> ajp.Answer:
    wire = make_wire(packet_size=packet_size)
    wire.receive(ajp.forward(method))
    assert wire.take_request() is not None
    data = wire.format_head(status, fields, False)
    data += b"".join(wire.format_body(piece) for piece in pieces) + wire.format_end()
    assert wire.finish()
    answer = ajp.parse_answer(data)
    assert all(size <= packet_size for size in answer.sizes)
    return answer


def test_response_fields_are_coded_and_repeated_in_order() -> None:
    fields = [
        ("content-type", "text/html"), ("Set-Cookie", "a=1"), ("X-Own", "\xe5"), ("set-cookie", "b=2"),
        ("WWW-Authenticate", "Basic"), ("Location", "/x"), ("Last-Modified", "d"), ("Content-Language", "en"),
    ]  # fmt: skip
    answer = respond(fields=fields, status="401 Unauthorized", body=b"x")
    assert (answer.status, answer.reason) == (401, "Unauthorized")
    assert answer.fields == [
        ("Content-Type", "text/html"), ("Set-Cookie", "a=1"), ("X-Own", "\xe5"), ("Set-Cookie", "b=2"),
        ("WWW-Authenticate", "Basic"), ("Location", "/x"), ("Last-Modified", "d"), ("Content-Language", "en"),
        ("Content-Length", "1"),
    ]  # fmt: skip


def test_B146_one_date_one_server_and_no_invented_type() -> None:
    fields = [("Date", "d1"), ("Server", "s1"), ("date", "d2"), ("SERVER", "s2")]
    assert respond(fields=fields).fields == [("Date", "d1"), ("Server", "s1"), ("Content-Length", "0")]


SIZES = [0, 1, 8183, 8184, 8185, 8192, 16368, 16369, 100_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("packet_size", [8192, 65536])
def test_A09_B033_a_body_is_cut_at_the_packet_boundary(size: int, packet_size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    answer = respond(body=body[:size], packet_size=packet_size)
    assert answer.body == body[:size]
    assert answer.get("Content-Length") == str(size)
    assert len(answer.chunks) == -(-size // (packet_size - 8))
    assert in_pieces(pieces=[body[:size]], packet_size=packet_size).chunks == answer.chunks


def test_pieces_without_a_length_state_none() -> None:
    answer = in_pieces(pieces=[b"a", b"", b"bc"])
    assert (answer.chunks, answer.get("Content-Length")) == ([b"a", b"bc"], None)
    assert in_pieces(fields=[("Content-Length", "3")], pieces=[b"abc"]).get("Content-Length") == "3"


def test_a_frame_for_sendfile_fits_one_packet_or_is_none() -> None:
    wire = make_wire()
    wire.receive(ajp.forward())
    assert wire.take_request() is not None
    head = wire.format_head("200 OK", TEXT, False)
    frame = wire.format_frame(8184)
    assert frame is not None
    assert ajp.parse_answer(head + frame[0] + b"x" * 8184 + frame[1] + wire.format_end()).sizes[1] == 8192
    assert wire.format_frame(8185) is None


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_B041_no_body_where_none_may_be(status: str) -> None:
    for answer in (respond(status=status, body=b"x"), in_pieces(status=status)):
        assert (answer.chunks, answer.get("Content-Length")) == ([], None)
    stated = respond(status=status, fields=[("Content-Length", "5")], body=b"x")
    assert stated.get("Content-Length") == (None if status.startswith("204") else "5")


def test_B059_B060_head_states_what_get_would_send() -> None:
    assert respond("HEAD", body=b"abc").get("Content-Length") == "3"
    assert respond("HEAD").get("Content-Length") is None
    assert respond("HEAD", fields=[("Content-Length", "10")]).get("Content-Length") == "10"
    assert in_pieces("HEAD", fields=[("Content-Length", "10")]).get("Content-Length") == "10"
    assert respond("HEAD", body=b"abc").chunks == []


def test_A08_errors_before_any_request_are_whole_answers_without_reuse() -> None:
    answer = ajp.parse_answer(make_wire().format_response("503 Service Unavailable", TEXT, b"full", False))
    assert (answer.status, answer.body, answer.reuse) == (503, b"full", False)


@pytest.mark.parametrize("fields", [[("X-A", "a" * 8192)], [("X-A", "a" * 70000)], [("X-A", "a" * 4000)] * 5],
                         ids=["one-packet", "beyond-16-bits", "together"])  # fmt: skip
def test_A09_a_head_longer_than_a_packet_is_a_500_of_ours(fields: FieldList) -> None:
    wire = make_wire()
    wire.receive(ajp.forward())
    assert wire.take_request() is not None
    with pytest.raises(LocalProtocolError, match="does not fit") as caught:
        wire.format_head("200 OK", fields, False)
    assert caught.value.status == 500
    with pytest.raises(LocalProtocolError, match="does not fit"):
        answer_ok(wire, fields=fields)
    answer = ajp.parse_answer(answer_ok(wire, "500 Internal Server Error"))
    assert (answer.status, answer.reuse) == (500, True)


@pytest.mark.parametrize("packet_size", [8192, 65536])
def test_A09_a_head_that_just_fits(packet_size: int) -> None:
    # Prefix code, status, reason, number of fields, one field name, its length and its NUL.
    room = packet_size - 4 - 1 - 2 - (2 + 2 + 1) - 2 - (2 + 3 + 1) - (2 + 1)
    answer = in_pieces(fields=[("X-A", "a" * room)], packet_size=packet_size)
    assert answer.sizes[0] == packet_size
    with pytest.raises(LocalProtocolError, match="does not fit"):
        in_pieces(fields=[("X-A", "a" * (room + 1))], packet_size=packet_size)


BAD_FIELDS: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("value-crlf", "200 OK", [("X-A", "a\r\nSet-Cookie: x=1")]),
    ("value-nul", "200 OK", [("X-A", "a\0")]),
    ("value-beyond-latin", "200 OK", [("X-A", "\u20ac")]),
    ("name-lf", "200 OK", [("A\nB", "v")]),
    ("name-empty", "200 OK", [("", "v")]),
    ("status-crlf", "200 OK\r\nX: y", []),
    ("status-nul", "200 O\0K", []),
    ("status-text", "OK", []),
    ("transfer-encoding", "200 OK", [("Transfer-Encoding", "chunked")]),
    ("connection", "200 OK", [("Connection", "close")]),
    ("length-text", "200 OK", [("Content-Length", "+2")]),
    ("two-lengths", "200 OK", [("Content-Length", "2"), ("Content-Length", "3")]),
    ("length-and-body-differ", "200 OK", [("Content-Length", "3")]),
]


@pytest.mark.parametrize(("status", "fields"), [row[1:] for row in BAD_FIELDS], ids=[row[0] for row in BAD_FIELDS])
def test_B092_H22_what_an_application_may_not_send(status: str, fields: FieldList) -> None:
    wire = make_wire()
    wire.receive(ajp.forward() + ajp.forward())
    assert wire.take_request() is not None
    with pytest.raises(LocalProtocolError):
        answer_ok(wire, status, fields)
    assert ajp.parse_answer(answer_ok(wire, "500 Internal Server Error")).reuse is True
    assert wire.finish()
    assert wire.take_request() is not None


def test_an_incomplete_response_gets_no_end() -> None:
    wire = make_wire()
    wire.receive(ajp.forward())
    assert wire.take_request() is not None
    data = wire.format_head("200 OK", [("Content-Length", "9")], False) + wire.format_body(b"abc")
    data += wire.format_abort()
    assert ajp.parse_answer(data).reuse is None
    assert not wire.cut_needs_reset
    assert not wire.finish()


def test_packet_sizes_have_bounds() -> None:
    for size in (0, 8191, 65537):
        with pytest.raises(ConfigurationError):
            make_wire(packet_size=size)


# However it is cut.

STREAM = (
    ajp.CPING
    + ajp.forward("GET", "/1", [("Host", "h")], ajp.attribute(ajp.QUERY, "q"))
    + ajp.forward("POST", "/2", [("Content-Length", "11"), ("Content-Type", "t/t")])
    + ajp.body(b"hello")
    + ajp.body(b" world")
    + ajp.CPING
    + ajp.forward("PUT", "/3", [("Transfer-Encoding", "chunked")])
    + ajp.body(b"\x12\x34\0\x01\x0a")
    + ajp.EMPTY
    + ajp.forward("GET", "/4")
)


def test_a_stream_whole() -> None:
    outcome = drive(make_wire(), [STREAM])
    assert [(request.path, body) for request, body in outcome.seen] == [
        ("/1", b""),
        ("/2", b"hello world"),
        ("/3", b"\x12\x34\0\x01\x0a"),
        ("/4", b""),
    ]
    answers = ajp.parse_answers(ajp.split_packets(outcome.sent))
    assert [(answer.status, answer.reuse) for answer in answers] == [(200, True)] * 4
    assert [answer.pongs for answer in answers] == [1, 0, 1, 0]
    assert [len(answer.asked) for answer in answers] == [0, 1, 2, 0]


def test_a_stream_byte_by_byte_and_cut_at_every_place() -> None:
    whole = drive(make_wire(), [STREAM])
    assert drive(make_wire(), cut_bytes(STREAM)).essence == whole.essence
    for at in range(1, len(STREAM)):
        assert drive(make_wire(), [STREAM[:at], STREAM[at:]]).essence == whole.essence


@pytest.mark.parametrize(
    "tail", [b"\0", b"GET / HTTP/1.1\r\n\r\n", b"\x12\x34\xff\xff"], ids=["nul", "http", "longest"]
)
def test_bytes_behind_a_request_do_not_change_it(tail: bytes) -> None:
    outcome = drive(make_wire(), [POST5 + ajp.body(b"hello") + tail])
    assert [body for _, body in outcome.seen] == [b"hello"]
    assert len(ajp.parse_answers(ajp.split_packets(outcome.sent))) == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_split_gives_the_same(places: list[int]) -> None:
    cuts = sorted({0, len(STREAM), *places})
    pieces = [STREAM[a:b] for a, b in itertools.pairwise(cuts)]
    assert drive(make_wire(), pieces).essence == drive(make_wire(), [STREAM]).essence


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=4), st.booleans())
def test_arbitrary_bytes_never_raise_anything_unexpected(pieces: list[bytes], framed: bool) -> None:
    data = [ajp.packet(b"\x02" + piece) if framed else piece for piece in pieces if piece or framed]
    outcome = drive(make_wire(), data)
    assert drive(make_wire(), cut_bytes(b"".join(data))).essence == outcome.essence


@settings(max_examples=300, deadline=None)
@given(st.integers(4, len(FORGED) - 1), st.integers(0, 255), st.booleans())
def test_a_changed_byte_is_a_request_or_a_refusal(at: int, byte: int, longer: bool) -> None:
    data = bytearray(FORGED)
    data[at] = byte
    if longer:
        data += ajp.body(b"x")
    outcome = drive(make_wire(WireLimits(buffered_body=1)), [bytes(data)])
    for request, _ in outcome.seen:
        variables = request.build_metavariables()
        assert "REMOTE_USER" not in variables
        assert not re.search(r"[\0\r\n]", "".join(variables.values()))


def test_memory_is_bounded_whatever_a_peer_sends() -> None:
    wire = make_wire(WireLimits(buffered_body=1 << 16))
    wire.receive(ajp.forward("POST", fields=[("Transfer-Encoding", "chunked")]))
    assert wire.take_request() is not None
    tracemalloc.start()
    try:
        ready = 0
        for _ in range(2000):
            if wire.body_ready():
                ready += 1
                while wire.take_body(8192) and wire.buffered:
                    pass
            wire.receive(ajp.body(b"x" * 8186))
        assert ready > 100
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        wire = make_wire()
        for _ in range(20):
            wire.receive(ajp.CPING * 10_000)
            assert wire.take_request() is None
            assert len(wire.take_output()) == 50_000
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


# What is remembered of a packet: the outcome is that of reading it for the first time.

_PORT_IN_VALUE = "\x0a\x00\x0fAJP_REMOTE_PORT\x00\x00\x0550001\x00"


def from_port(port: str | None, **options: object) -> bytes:
    """A request of a browser whose client's port is ``port``; without one for ``None``."""
    attributes = ajp.named("AJP_REMOTE_PORT", port) if port is not None else b""
    attributes = ajp.attribute(ajp.QUERY, "a=1") + attributes + ajp.named("AJP_LOCAL_ADDR", "127.0.0.1")
    fields = [("Host", "www.example.com"), ("X-Note", str(options.pop("note", "")))]
    return ajp.forward(fields=fields, attributes=attributes, **options)  # type: ignore[arg-type]


RECALLED: list[tuple[str, bytes]] = [
    ("another port", from_port("50002")),
    ("a shorter port", from_port("80")),
    ("no port", from_port(None)),
    ("an empty port", from_port("")),
    ("a port of six digits", from_port("123456")),
    ("a port that is no number", from_port("5000x")),
    ("another client", from_port("50000", address="192.0.2.8")),
    ("another page", from_port("50000", uri="/y")),
    ("a bad target", from_port("50000", uri="/%zz")),
    ("another protocol", from_port("50000", protocol="HTTP/1.0")),
    ("no protocol", from_port("50000", protocol="FTP")),
    ("another method", from_port("50000", method="HEAD")),
    ("over TLS", from_port("50000", secure=1)),
    ("an is_ssl of 2", from_port("50000", secure=2)),
    ("the port's bytes within a field", from_port("50000", note=_PORT_IN_VALUE)),
    ("the port's bytes within a field only", from_port(None, note=_PORT_IN_VALUE)),
    ("a second port", from_port("50000") [:-1] + ajp.named("AJP_REMOTE_PORT", "1") + b"\xff"),
    ("bytes after the end", from_port("50000") + b"\0"),
]  # fmt: skip


@pytest.mark.parametrize("data", [row[1] for row in RECALLED], ids=[row[0] for row in RECALLED])
def test_a_recalled_packet_is_a_read_one(data: bytes) -> None:
    limits = WireLimits()
    fresh = drive(AJPWire(ENDPOINT, PEER, limits, FrontRules()), [data]).essence
    rules = FrontRules()
    for packet in (from_port("50000"), data, from_port("50001", note=_PORT_IN_VALUE), data):
        outcome = drive(AJPWire(ENDPOINT, PEER, limits, rules), [packet])
        if packet is data:
            assert outcome.essence == fresh


def test_what_is_remembered_of_packets_is_bounded_and_free_of_secrets_that_failed() -> None:
    rules = FrontRules("right")
    limits = WireLimits()
    for number in range(300):
        attributes = ajp.attribute(ajp.SECRET, "right" if number % 2 else f"wrong{number}")
        data = ajp.forward(fields=[("X-N", str(number))], attributes=attributes + ajp.named("AJP_REMOTE_PORT", "1"))
        outcome = drive(AJPWire(ENDPOINT, PEER, limits, rules), [data])
        assert (outcome.error is None) is bool(number % 2)
    assert len(rules.known) == 128
    assert not any(b"wrong" in key[1] for key in rules.known)
