"""Inputs to begin with: what the clients of ``tests.clients`` and the corpora send, under several choices."""

from __future__ import annotations

from collections.abc import Iterator

from bench.corpora import load_cases
from tests.clients import ajp, fastcgi, scgi, uwsgi
from tests.fuzz.choices import ANSWERS, LIMITS, format_choices

BODY = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

PAIRS = [
    (b"QUERY_STRING", b"a=b%20c"), (b"REQUEST_METHOD", b"GET"), (b"CONTENT_TYPE", b""),
    (b"SCRIPT_NAME", b"/app"), (b"REQUEST_URI", b"/app/x?a=b%20c"), (b"DOCUMENT_URI", b"/app/x"),
    (b"PATH_INFO", b"/x"), (b"DOCUMENT_ROOT", b"/srv"), (b"SERVER_PROTOCOL", b"HTTP/1.1"),
    (b"REQUEST_SCHEME", b"https"), (b"HTTPS", b"on"), (b"GATEWAY_INTERFACE", b"CGI/1.1"),
    (b"SERVER_SOFTWARE", b"nginx"), (b"REMOTE_ADDR", b"192.0.2.7"), (b"REMOTE_PORT", b"40000"),
    (b"SERVER_ADDR", b"192.0.2.1"), (b"SERVER_PORT", b"443"), (b"SERVER_NAME", b"www.example.com"),
    (b"HTTP_HOST", b"www.example.com"), (b"HTTP_COOKIE", b"a=b"), (b"HTTP_X_FORWARDED_PROTO", b"https"),
]  # fmt: skip
SHORT = [(b"REQUEST_METHOD", b"POST"), (b"PATH_INFO", b"/x")]
HEAD = [(b"REQUEST_METHOD", b"HEAD"), (b"SCRIPT_NAME", b"/x")]
WHOLE = [(b"REQUEST_METHOD", b"GET"), (b"REQUEST_URI", b"/a%00b?%00")]
"""Without a path: it is decoded from the target."""


def http_streams() -> Iterator[bytes]:
    """Both corpora, and some connections of several requests."""
    for case in load_cases().values():
        if len(case.data) <= 2048:
            yield case.data
    get = b"GET /a%20b?c=d HTTP/1.1\r\nHost: a\r\n\r\n"
    post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 35\r\n\r\n" + BODY
    chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n"
    yield get + post + chunked + get
    yield b"\r\nHEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get
    yield b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello" + get
    yield b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\nGET"
    yield b"OPTIONS * HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Ssl: off\r\n\r\n"


def fastcgi_streams() -> Iterator[bytes]:
    """Roles, streams in records of several sizes, management records, a second request, an abort."""
    request, rec, stream, begin = fastcgi.request, fastcgi.rec, fastcgi.stream, fastcgi.begin
    params = stream(fastcgi.PARAMS, b"".join(fastcgi.nv(*pair) for pair in SHORT))
    yield request(PAIRS)
    yield request(WHOLE, keep=1)
    yield request(PAIRS, BODY, keep=1, size=16, pad=3) + request(HEAD, keep=1)
    yield request([*SHORT, (b"CONTENT_LENGTH", b"35")], BODY, keep=1) + request(SHORT, b"x", keep=1, rid=2)
    yield request([*SHORT, (b"CONTENT_LENGTH", b"40")], BODY, keep=1) + request(SHORT, keep=1)
    yield request([*SHORT, (b"CONTENT_LENGTH", b"10")], BODY, keep=1) + request(SHORT, keep=1)
    values = fastcgi.nv(b"FCGI_MAX_CONNS", b"") + fastcgi.nv(b"FCGI_MPXS_CONNS", b"")
    yield (
        rec(fastcgi.GET_VALUES, values, 0)
        + rec(77, b"x", 0)
        + begin(1, rid=3)
        + begin(1, rid=4)
        + rec(fastcgi.ABORT, rid=3)
    )
    yield begin(1) + params + rec(fastcgi.STDIN, b"ab") + rec(fastcgi.ABORT) + request(SHORT, keep=1)
    yield begin(1, role=3) + params + stream(fastcgi.STDIN, b"abc") + stream(fastcgi.DATA, b"defg")
    lengths = [*SHORT, (b"CONTENT_LENGTH", b"3"), (b"FCGI_DATA_LENGTH", b"4")]
    yield request(lengths, b"abc", keep=1, role=3) + stream(fastcgi.DATA, b"defg") + request(SHORT, keep=1)
    yield request(PAIRS, keep=1, role=2) + request(PAIRS, keep=1, role=9)
    yield begin(1) + rec(fastcgi.PARAMS, fastcgi.nv(b"A" * 200, b"b" * 300)) + rec(fastcgi.PARAMS) + rec(fastcgi.STDIN)
    yield BODY


def scgi_streams() -> Iterator[bytes]:
    """Requests with and without a body, and what is nearly one."""
    yield scgi.request(PAIRS)
    yield scgi.request(WHOLE)
    yield scgi.request(SHORT, BODY)
    yield scgi.request(HEAD) + scgi.request(SHORT)
    yield scgi.scgi([(b"CONTENT_LENGTH", b"99"), (b"SCGI", b"1"), *SHORT], BODY)
    yield scgi.scgi([(b"SCGI", b"1"), (b"CONTENT_LENGTH", b"0"), *SHORT])
    yield scgi.scgi([(b"CONTENT_LENGTH", b"0"), (b"SCGI", b"1"), *SHORT, *SHORT, (b"HTTP_PROXY", b"x")])
    yield BODY


def uwsgi_streams() -> Iterator[bytes]:
    """Requests with and without a body, orders to uWSGI, other packets."""
    yield uwsgi.request()
    yield uwsgi.packet(WHOLE)
    yield uwsgi.request(b"POST", b"/app/x", b"a=b", [(b"HTTP_COOKIE", b"a=b")], BODY)
    yield uwsgi.packet(PAIRS) + uwsgi.packet(SHORT)
    yield uwsgi.packet([*SHORT, (b"UWSGI_FILE", b"/etc/passwd"), (b"UWSGI_SCHEME", b"https")])
    yield uwsgi.packet([*SHORT, (b"HTTP_TRANSFER_ENCODING", b"chunked")], BODY)
    yield uwsgi.packet([*SHORT, (b"CONTENT_LENGTH", b"99")], BODY)
    yield uwsgi.packet(SHORT, b"", 5, 1)
    yield BODY


def ajp_streams() -> Iterator[bytes]:
    """Requests as httpd and lighttpd send them, bodies of both kinds, signals, attributes."""
    fields = [("Host", "www.example.com"), ("User-Agent", "curl/8"), ("X-Own", "a"), ("x-own", "b"), ("Cookie", "c=d")]
    length = ("Content-Length", str(len(BODY)))
    attributes = (
        ajp.attribute(ajp.QUERY, "q=%31") + ajp.named("AJP_REMOTE_PORT", "50000") + ajp.named("LET_IN", "x")
        + ajp.attribute(ajp.REMOTE_USER, "u") + ajp.attribute(ajp.CERT, "-----\r\n") + bytes((ajp.KEY_SIZE, 1, 0))
        + ajp.attribute(ajp.SECRET, "s3cret")
    )  # fmt: skip
    yield ajp.forward("GET", "/app/a%20b", fields, attributes, host="client.example", port=443, secure=1)
    yield ajp.forward("POST", fields=[length]) + ajp.body(BODY) + ajp.CPING + ajp.forward()
    yield ajp.forward("POST", fields=[length]) + ajp.body(BODY[:9]) + ajp.body(BODY[9:]) + ajp.forward("HEAD")
    yield ajp.forward("POST", fields=[length]) + ajp.body(BODY[:9]) + ajp.EMPTY
    yield ajp.forward("PUT", fields=[("Transfer-Encoding", "chunked")]) + ajp.body(BODY) + ajp.EMPTY + ajp.forward()
    yield ajp.CPING + ajp.PING + ajp.forward() + ajp.EMPTY + ajp.forward() + ajp.SHUTDOWN
    yield ajp.forward(0xFF, attributes=ajp.attribute(ajp.STORED_METHOD, "MKCOL"))
    yield ajp.forward("OPTIONS", "*")
    yield BODY


STREAMS = {
    "http": http_streams,
    "fastcgi": fastcgi_streams,
    "scgi": scgi_streams,
    "ajp": ajp_streams,
    "uwsgi": uwsgi_streams,
}

TOKENS = {
    "http": [
        b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\t", b":", b"\0", b"%00", b"%2f", b"Host: a\r\n", b" HTTP/1.1\r\n",
        b" HTTP/1.0\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n",
        b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Expect: 100-continue\r\n", b"0\r\n\r\n", b"5\r\n",
        b"GET ", b"HEAD ", b"POST ", b"CONNECT ", b"OPTIONS * ", b"http://a", b"; a=\"b\"",
        b"X-Forwarded-Proto: https\r\n",
    ],
    "fastcgi": [
        b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0", b"\x01\x04\0\x01\0\0\0\0", b"\x01\x05\0\x01\0\0\0\0",
        b"\x01\x02\0\x01\0\0\0\0", b"\x01\x08\0\x01\0\0\0\0", b"\x01\x09\0\0\0\0\0\0", b"\x0e\x01CONTENT_LENGTH5",
        b"\x80\0\x01\0", b"\x10\x01FCGI_DATA_LENGTH4",
    ],
    "scgi": [b":", b",", b"\0", b"CONTENT_LENGTH\x000\0", b"SCGI\x001\0", b"REQUEST_METHOD\0", b"24:", b"70:"],
    "ajp": [
        b"\x12\x34\0\x01\x0a", b"\x12\x34\0\x01\x08", b"\x12\x34\0\0", b"\x12\x34\0\x03\0\x01a", b"\x12\x34",
        b"\xa0\x08\0\x015\0", b"\xff\xff", b"\xff", b"\0\x01/\0", b"\xa0\x08", b"\x05\0\x01a\0", b"\x0c\0\x06s3cret\0",
    ],
    "uwsgi": [
        b"\x0e\0CONTENT_LENGTH\x01\x005", b"\x0e\0REQUEST_METHOD\x03\0GET", b"\x09\0PATH_INFO\x02\0/x",
        b"\0\x10\0\0", b"\0\0", b"\x0a\0UWSGI_FILE\x01\0x",
    ],
}  # fmt: skip
"""Wire -> pieces that an engine may put into its inputs."""


def make_seeds(wire: str) -> list[bytes]:
    """Return a wire's seeds: each stream under a few choices, and as a body."""
    seeds = []
    for number, stream in enumerate(STREAMS[wire]()):
        answer = number % len(ANSWERS)
        seeds.append(format_choices(answer=answer, flags=number % 4) + stream)
        seeds.append(format_choices(number % len(LIMITS), number, number // 3, answer, 1, (6, 30, 1)) + stream)
        seeds.append(format_choices(number, number, number // 2, answer, 4 + 8 * (number % 2), (3, 90, 210)) + stream)
    return seeds
