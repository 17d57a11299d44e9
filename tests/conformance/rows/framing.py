"""Requests as bytes: what RFC 9112 lets a server accept, and what it must refuse. For HTTP alone."""

from __future__ import annotations

from tests.conformance.checks import (
    Check,
    at_path,
    body,
    closed,
    echo,
    either,
    framing,
    generated,
    kept,
    no_answer_or,
    no_field,
    no_variable,
    received,
    status,
    variable,
)
from tests.conformance.messages import Request
from tests.conformance.rows.making import build, get, head, raw
from tests.conformance.table import Row

EVIL = head("GET /evil/1 HTTP/1.1")
LAST = head("GET /last/1 HTTP/1.1", "Connection: close")
GET = "GET /first/1 HTTP/1.1"
POST = "POST /body HTTP/1.1"


def refused(name: str, ids: str, data: bytes, *statuses: int) -> Row:
    """One answer of 400 (or another given), then the end of the connection; nothing that follows is served."""
    return raw(name, ids, data + EVIL, (status(*(statuses or (400,))), closed))


def tolerable(name: str, ids: str, data: bytes, *checks: Check) -> Row:
    """Refused with 400, or served as the specification allows; ``data`` ends the connection by itself."""
    return raw(name, ids, data, (either((status(400, 501), closed), checks),))


def body_of(*lines: str, data: bytes = b"") -> bytes:
    """A POST to the body page with these field lines."""
    return head(POST, *lines) + data


def chunks(data: bytes, *lines: str) -> bytes:
    """A chunked POST to the body page."""
    return body_of("Transfer-Encoding: chunked", *lines, data=data)


def old(target: str, *lines: str) -> Request:
    """A request of HTTP/1.0."""
    return Request(
        target=target, version="HTTP/1.0", fields=tuple((n, v) for n, _, v in (x.partition(": ") for x in lines))
    )


ROWS: tuple[Row, ...] = (
    # Connections.
    build("connection-kept", "RFC 9112 9.3 (should)", [
        (get("/gen?n=10"), status(200), kept), (get("/gen?n=11"), generated(11))], needs="raw direct"),
    build("connection-close", "RFC 9112 9.6", [(get("/gen?n=10", ("Connection", "close")), generated(10), closed)],
          needs="raw direct"),
    raw("pipelined", "RFC 9112 9.3.2",
        head("GET /first/1 HTTP/1.1") + head("POST /body HTTP/1.1", "Content-Length: 5") + b"hello" + LAST,
        (at_path("/first/1"),), (status(200), body(b"hello")), (at_path("/last/1"), closed), may_end=True),
    raw("pipelined-head-and-204", "B059; H23",
        head("HEAD /gen?n=100 HTTP/1.1") + head("GET /status?line=204%20No%20Content&body=x HTTP/1.1")
        + head("GET /status?line=304%20Not%20Modified&body=x HTTP/1.1") + LAST,
        (status(200),), (status(204),), (status(304),), (at_path("/last/1"),), may_end=True),
    raw("pipelined-after-empty-post", "B089",
        head(POST, "Content-Length: 0", "Connection: keep-alive")
        + head(POST, "Content-Length: 34") + b"GET /evil/1 HTTP/1.1\r\nHost: a\r\n\r\n!" + LAST,
        (status(200), body(b"")), (status(200), body(b"GET /evil/1 HTTP/1.1\r\nHost: a\r\n\r\n!"[:34])),
        (at_path("/last/1"),), may_end=True),
    raw("close-then-garbage", "B090", head(GET, "Connection: close") + b"\0\x16garbage", (at_path("/first/1"), closed)),
    raw("empty-line-before", "RFC 9112 2.2", b"\r\n" + LAST, (at_path("/last/1"),)),
    build("http-1.0", "RFC 9112 9.3; RFC 9112 6.1", [
        (old("/gen?n=5000&step=1000&as=generator"), status(200), generated(5000), framing("close", "length"), closed,
         no_field("Transfer-Encoding"))], needs="version raw direct"),
    build("http-1.0-keep-alive", "RFC 9112 9.3; RFC 9112 C.2.2", [
        (old("/gen?n=50&length=50", "Connection: keep-alive"), status(200), generated(50),
         no_field("Transfer-Encoding")),
        (old("/after/all", "Connection: keep-alive"), at_path("/after/all"))], needs="version raw direct"),
    raw("http-1.0-without-host", "RFC 9112 3.2", head("GET /first/1 HTTP/1.0", host=""), (at_path("/first/1"), closed)),
    build("stream-framing", "RFC 9112 6.1", [
        (get("/gen?n=5000&step=1000&as=generator"), status(200), framing("chunked", "close", "length"))],
        needs="raw direct"),
    # The request line.
    raw("absolute-form", "B068; RFC 9112 3.2.2", head("GET http://h/p/1?q=1 HTTP/1.1", "Connection: close"),
        (at_path("/p/1"), echo(query_string="q=1"))),
    raw("absolute-form-other-host", "B068; RFC 9112 3.2.2",
        head("GET http://h:80/p/1?q=1 HTTP/1.1", "Connection: close", host="other"),
        (either((at_path("/p/1"), echo(query_string="q=1"), variable("HTTP_HOST", "h", "h:80")), (status(400),)),)),
    raw("asterisk-form", "H24; RFC 9112 3.2.4", head("OPTIONS * HTTP/1.1", "Connection: close"),
        (either((echo(path_info=""),), (echo(path_info="*"),), (status(204, 400, 404, 405, 501),)),)),
    raw("fragment", "B021; H24", head("GET /foo/1?a=1#bar HTTP/1.1", "Connection: close"),
        (either((at_path("/foo/1"), echo(query_string="a=1")), (status(400),)),)),
    raw("target-octets", "B086; H24; RFC 3986 2.1", head("GET /caf\xc3\xa9/1 HTTP/1.1", "Connection: close"),
        (either((at_path("/caf\xc3\xa9/1"),), (status(400),)),)),
    raw("escaped-nul", "B086; RFC 3986 7.3", head("GET /a%00b/1 HTTP/1.1", "Connection: close"),
        (either((at_path("/a\0b/1"),), (status(400, 404),)),)),
    raw("escape-broken", "B086; RFC 3986 2.1", head("GET /%uD83D/%4 HTTP/1.1", "Connection: close"),
        (either((at_path("/%uD83D/%4"),), (status(400, 404),)),)),
    raw("target-space", "H24; RFC 9112 3.2", head("GET /a b/1 HTTP/1.1", "Connection: close"), (status(400), closed)),
    refused("target-without-slash", "H24; RFC 9112 3.2", head("GET evil/2 HTTP/1.1"), 400),
    refused("target-nul", "H13; RFC 9112 3", head("GET /a\0b/1 HTTP/1.1")),
    raw("request-line-two-words", "H27; RFC 9112 3", b"GET /first/1\r\n\r\n" + EVIL, (status(400, 505), closed)),
    refused("version-1.32", "H27; RFC 9112 2.3", head("GET / HTTP/1.32"), 400, 505),
    refused("version-2", "H27; RFC 9110 15.6.6", head("GET / HTTP/2.0"), 400, 505),
    refused("version-long", "H27", head("GET / HTTP/4294967295.255"), 400, 505),
    refused("request-line-garbage", "RFC 9112 3", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\r\n\r\n"),
    refused("request-line-long", "H17; RFC 9112 3", head("GET /" + "a" * 100_000 + " HTTP/1.1"), 400, 414, 431),
    # Fields.
    refused("host-missing", "H25; RFC 9112 3.2", head("GET / HTTP/1.1", host="")),
    refused("host-twice", "B062; H25; RFC 9112 3.2", head("GET / HTTP/1.1", "Host: other")),
    refused("host-invalid", "H25; RFC 9112 3.2", head("GET / HTTP/1.1", host="a b/c")),
    raw("content-type-twice", "B062",
        head("GET /first/1 HTTP/1.1", "Content-Type: text/a", "Content-Type: text/b", "Connection: close"),
        (either((variable("CONTENT_TYPE", "text/a"),), (status(400), closed)),)),
    refused("space-before-colon", "H12; RFC 9112 5.1", head("GET / HTTP/1.1", "X-A : b")),
    refused("no-colon", "B074; H12; RFC 9112 5", head("GET / HTTP/1.1", "Bad Field")),
    refused("field-name-empty-in-request", "H12; RFC 9110 5.1", head("GET / HTTP/1.1", ": b")),
    refused("field-name-not-a-token", "H12; RFC 9110 5.1", head("GET / HTTP/1.1", "X(A): b")),
    refused("first-field-folded", "B077; H11; RFC 9112 2.2", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
    tolerable("obs-fold", "H11; RFC 9112 5.2", head(GET, "X-A: b", " c", "Connection: close"),
              variable("HTTP_X_A", "b c", "b  c", "b   c")),
    tolerable("field-value-nul-in-request", "H13; RFC 9110 5.5", head(GET, "X-A: b\0c", "Connection: close"),
              variable("HTTP_X_A", "b c")),
    tolerable("bare-cr", "H10; RFC 9112 2.2", head(GET, "X-A: b\rX-B: c", "Connection: close"),
              variable("HTTP_X_A", "b X-B: c"), no_variable("HTTP_X_B")),
    raw("bare-lf", "H10; RFC 9112 2.2", b"GET /first/1 HTTP/1.1\nHost: a\nConnection: close\n\n",
        (either((no_answer_or(400, 408),), (at_path("/first/1"),)),), half_close=True),
    refused("fields-many", "H17; RFC 9110 5.4", head("GET / HTTP/1.1", *(f"X-{i}: {i}" for i in range(5000))),
            400, 431),
    refused("field-long", "H17; RFC 9110 5.4", head("GET / HTTP/1.1", "X-A: " + "a" * 300_000), 400, 431),
    refused("field-regular-expression", "H19; RFC 9110 5.5", head("GET / HTTP/1.1", "Bad: " + "x" * 50 + "\x10")),
    raw("refused-then-valid", "B074; H20", b"GET / HTTP/1.1\r\nHost: a\r\nBad Header\r\n\r\n" + LAST,
        (status(400), closed)),
    # Lengths.
    tolerable("length-and-chunked", "B069; H01; RFC 9112 6.3",
              body_of("Content-Length: 5", "Transfer-Encoding: chunked", data=b"0\r\n\r\n"), body(b""), closed),
    refused("length-twice-different", "B078; B039; H03; RFC 9112 6.3",
            body_of("Content-Length: 5", "Content-Length: 6", data=b"hello!")),
    raw("length-twice-equal", "B078; H03; RFC 9112 6.3",
        body_of("Content-Length: 5", "Content-Length: 5", "Connection: close", data=b"hello"),
        (either((status(400), closed), (status(200), body(b"hello"))),)),
    raw("length-list", "H03; RFC 9112 6.3", body_of("Content-Length: 5, 5", "Connection: close", data=b"hello"),
        (either((status(400), closed), (status(200), body(b"hello"))),)),
    *(refused(f"length-{name}", "H04; B089; RFC 9110 8.6", body_of(f"Content-Length: {text}", data=b"hello"), *more)
      for name, text, more in (
          ("plus", "+5", ()), ("minus", "-1", ()), ("underscore", "1_0", ()), ("hexadecimal", "0x5", ()),
          ("words", "5 x", ()), ("empty", "", ()), ("letters", "5Z", ()), ("superscript", "\xb2", ()),
          ("forty-digits", "9" * 40, (400, 413)))),
    raw("body-cut-short", "RFC 9112 8", body_of("Content-Length: 10", data=b"four"),
        (no_answer_or(400, 408, 500),), half_close=True),
    raw("chunked-cut-short", "RFC 9112 8", chunks(b"5\r\nhel"), (no_answer_or(400, 408, 500),), half_close=True),
    # Transfer codings.
    *(refused(f"coding-{name}", "H02; B069; RFC 9112 6.1", body_of(*lines, data=b"0\r\n\r\n"), 400, 501)
      for name, lines in (
          ("twice", ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")),
          ("vertical-tab", ("Transfer-Encoding: \x0bchunked",)), ("quoted", ('Transfer-Encoding: "chunked"',)),
          ("unknown", ("Transfer-Encoding: xchunked",)), ("identity", ("Transfer-Encoding: identity",)),
          ("identity-last", ("Transfer-Encoding: chunked, identity",)),
          ("gzip-first", ("Transfer-Encoding: gzip, chunked",)), ("nbsp", ("Transfer-Encoding: \xa0chunked",)),
          ("space-before-colon", ("Transfer-Encoding : chunked",)))),
    *(refused(f"chunk-size-{name}", "H05; H08; B075; RFC 9112 7.1", chunks(size + b"\r\nhello\r\n0\r\n\r\n"), *more)
      for name, size, more in (
          ("plus", b"+5", ()), ("minus", b"-5", ()), ("prefix", b"0x5", ()), ("underscore", b"0_5", ()),
          ("empty", b"", ()), ("letters", b"5Z", ()), ("not-hexadecimal", b"ZZ", ()),
          ("overflow", b"1" + b"0" * 16 + b"5", (400, 413)))),
    refused("chunk-without-end", "H07; RFC 9112 7.1", chunks(b"5\r\nhelloXX0\r\n\r\n")),
    refused("chunk-extension-lf", "H06; RFC 9112 7.1.1", chunks(b"5;a\nb\r\nhello\r\n0\r\n\r\n")),
    raw("chunk-followed-by-nul", "B089", chunks(b"5\r\nhello\r\n0\r\n\r\n") + b"\0" + EVIL,
        (status(200), body(b"hello")), (no_answer_or(400), closed)),
    raw("chunk-extension", "H06; RFC 9112 7.1.1",
        chunks(b"5;a=b;c=\"d\"\r\nhello\r\n0;last\r\n\r\n", "Connection: close"), (status(200), body(b"hello"))),
    raw("chunk-size-forms", "RFC 9112 7.1",
        chunks(b"005\r\nhello\r\nA\r\n, octets. \r\n00\r\n\r\n", "Connection: close"),
        (status(200), body(b"hello, octets. "))),
    raw("trailers-dropped", "H09; RFC 9110 6.5.1",
        head("POST /first/1 HTTP/1.1", "Transfer-Encoding: chunked", "Connection: close")
        + b"5\r\nhello\r\n0\r\nX-Trailer: 1\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n",
        (received(b"hello"), no_variable("HTTP_X_TRAILER", "HTTP_X_FORWARDED_FOR"))),
    raw("trailer-content-length", "H09; RFC 9110 6.5.1",
        chunks(b"5\r\nhello\r\n0\r\nContent-Length: 99\r\nHost: evil\r\n\r\n", "Connection: close"),
        (either((status(200), body(b"hello")), (status(400), closed)),)),
    raw("unread-then-pipelined", "B141; H20",
        head("POST /unread HTTP/1.1", "Content-Length: 11", "Connection: close") + b"GET /evil/1",
        (status(200), body(b"took 0"), closed)),
    raw("expectation-unknown", "RFC 9110 10.1.1", head(GET, "Expect: something", "Connection: close"),
        (either((status(417),), (at_path("/first/1"),)),)),
)  # fmt: skip
