"""Request bodies: how they arrive, how they are read, and what becomes of those that are not."""

from __future__ import annotations

from tests.clients import fastcgi
from tests.conformance.addresses import Address
from tests.conformance.checks import (
    at_path,
    body,
    closed,
    echo,
    either,
    given,
    interim,
    no_variable,
    received,
    status,
    variable,
    words,
)
from tests.conformance.clients.ajp import format_forward_request
from tests.conformance.clients.uwsgi import UWSGIClient
from tests.conformance.clients.variables import encode, plan_variables
from tests.conformance.messages import WIDE_TOKEN, Request
from tests.conformance.rows.making import AFTER, FORM, build, chunked, get, head, make, post, raw, synced
from tests.conformance.table import Row

BIG = b"abcdefgh" * 12000
OCTETS = bytes(range(256)) * 256
MEGA = bytes(i % 251 for i in range(300_000))
LINES = b"first\nsecond line\n\nlast without end"
ANYWHERE = Address("http", "h", 80)
FORGERY = Request(target=f"/unread?token={WIDE_TOKEN.decode()}")
FORGED_RECORDS = fastcgi.request([*encode(plan_variables(FORGERY, ANYWHERE, "")), (b"REMOTE_USER", b"root")], keep=1)
FORGED_PACKET = format_forward_request(FORGERY, ANYWHERE)
FORGED_BLOCK = UWSGIClient(ANYWHERE, 1).format(FORGERY)
FORGED = b"GET /unread?token={token} HTTP/1.1\r\nHost: h\r\n\r\n"


def unread(name: str, ids: str, request: Request, **options: object) -> Row:
    """A body that looks like a request and is not read whole: the application is called once, and stays in step."""
    return build(name, ids, [
        (request, status(200)),
        (AFTER, at_path("/after/all")),
        (get("/notes?token={token}"), words("called")),
    ], **options)  # fmt: skip


ROWS: tuple[Row, ...] = (
    make("post", "plack: POST; RFC 3875 4.2", post("/", b"name=tatsuhiko"), received(b"name=tatsuhiko"),
         variable("CONTENT_LENGTH", "14"), variable("CONTENT_TYPE", FORM[1])),
    make("post-read-back", "plack: request->input seekable", post("/body", b"body", ("Content-Type", "text/plain")),
         status(200), body(b"body")),
    make("post-big", "plack: big POST", post("/body", BIG, ("Content-Type", "application/octet-stream")),
         status(200), body(BIG)),
    make("post-octets", "B083", post("/body", OCTETS), status(200), body(OCTETS)),
    make("post-nul", "B083", post("/body", b"Hell\0, World!\n"), status(200), body(b"Hell\0, World!\n")),
    make("post-300-kb", "F12; A05", post("/", MEGA), received(MEGA), variable("CONTENT_LENGTH", "300000")),
    make("post-padding-sizes", "B011", post("/", b"x" * 131070), received(b"x" * 131070)),
    build("post-packet-sizes", "B033; B050", [
        (post("/", b"p" * size, method="PUT"), received(b"p" * size), echo(method="PUT"))
        for size in (1, 4095, 4096, 4097, 8184, 8186, 8187, 65535, 65536)
    ]),
    synced("post-empty", "B089; A06", post("/", b""), received(b""), either(
        (variable("CONTENT_LENGTH", "0", ""),), (no_variable("CONTENT_LENGTH"),))),
    make("get-reads-nothing", "plack: request->content on GET; B096", get("/input?do=read,read:10,readline"),
         given(["", "", ""])),
    make("get-with-body", "RFC 9110 9.3.1", post("/", b"q=1", method="GET"), received(b"q=1"), echo(method="GET")),
    make("delete-with-body", "RFC 9110 9.3.5", post("/", b"q=1", method="DELETE"), received(b"q=1")),
    # Reading.
    synced("read-to-end", "B081; PEP 3333 input", post("/input?do=read,read:100,read", b"abcd"),
           given(["abcd", "", ""])),
    make("read-past-end", "B081; PEP 3333 input", post("/input?do=read:3,read:100,read:1", b"abcd"),
         given(["abc", "d", ""])),
    make("read-nothing", "PEP 3333 input", post("/input?do=read:0,read:2,read:0,read", b"abcd"),
         given(["", "ab", "", "cd"])),
    make("readline", "B053; PEP 3333 input", post("/input?do=readline,readline,readline,readline,readline", LINES),
         given(["first\n", "second line\n", "\n", "last without end", ""])),
    make("readline-without-newline", "B053", post("/input?do=readline,readline", b"a" * 5000), given(["a" * 5000, ""])),
    make("readline-size", "B053; PEP 3333 input", post("/input?do=readline:3,readline:10,readline:0,readline", LINES),
         given(["fir", "st\n", "", "second line\n"])),
    make("readlines", "B053; PEP 3333 input", post("/input?do=readlines,read", LINES),
         given([["first\n", "second line\n", "\n", "last without end"], ""])),
    make("readlines-hint", "B053; PEP 3333 input", post("/input?do=readlines:1,readline", LINES),
         either((given([["first\n"], "second line\n"]),),
                (given([["first\n", "second line\n", "\n", "last without end"], ""]),))),
    make("read-iterate", "B053; PEP 3333 input", post("/input?do=iter,read", LINES),
         given([["first\n", "second line\n", "\n", "last without end"], ""])),
    make("read-mixed", "B053", post("/input?do=read:2,readline,read:6,readlines", LINES),
         given(["fi", "rst\n", "second", [" line\n", "\n", "last without end"]])),
    # How the bytes come.
    make("head-then-body", "B026", post("/", b"hello", sends=-5), received(b"hello")),
    make("head-with-part", "B026", post("/", MEGA[:65536], sends=600), received(MEGA[:65536])),
    make("head-in-parts", "B072", post("/", b"hello", sends=20), received(b"hello")),
    # Without a stated length.
    synced("chunked", "B027; RFC 9112 7.1", chunked("/", b"hello, chunked world", 7), received(b"hello, chunked world"),
           needs="chunked"),
    synced("chunked-2000-times-1", "B027", chunked("/", b"c" * 2000, 1), received(b"c" * 2000), needs="chunked"),
    synced("chunked-large", "B027; B050", chunked("/", MEGA, 100_000), received(MEGA), needs="chunked"),
    synced("chunked-uneven", "B050", chunked("/", MEGA[:50_000], 1, 4095, 4096, 4097), received(MEGA[:50_000]),
           needs="chunked"),
    synced("chunked-empty", "RFC 9112 7.1", chunked("/", b"", 1), received(b""), needs="chunked"),
    # Bodies that the application leaves.
    unread("unread", "B141; B035; B045; H20", post("/unread?token={token}", FORGED)),
    unread("unread-after-ten-bytes", "B141", post("/unread?token={token}&take=10", FORGED)),
    unread("unread-large", "B141; A05", post("/unread?token={token}", FORGED * 8000)),
    unread("unread-chunked", "B141; H20", chunked("/unread?token={token}", FORGED * 20, 500), needs="chunked"),
    unread("unread-fastcgi-request", "B141; F10", post("/unread?token={token}", FORGED_RECORDS)),
    unread("unread-fastcgi-request-in-part", "B141; F10", post("/unread?token={token}&take=10", FORGED_RECORDS)),
    unread("unread-ajp-request", "B035; A05", post("/unread?token={token}", FORGED_PACKET)),
    unread("unread-uwsgi-request", "B045; U01", post("/unread?token={token}", FORGED_BLOCK)),
    unread("unread-exactly-whole", "B141", post("/unread?token={token}&take=4", b"four")),
    # Waiting to be asked (RFC 9110 10.1.1).
    make("continue", "H17; RFC 9110 10.1.1", post("/", b"hello", FORM, ("Expect", "100-continue"), sends=-5),
         received(b"hello"), needs="interim"),
    synced("continue-unread", "RFC 9110 10.1.1",
           post("/unread", b"hello", FORM, ("Expect", "100-continue"), sends=-5), status(200), interim((), (100,)),
           needs="interim"),
    raw("continue-1.0", "RFC 9110 10.1.1",
        head("POST /body HTTP/1.0", "Content-Length: 5", "Expect: 100-continue") + b"hello",
        (status(200), interim(()), body(b"hello"), closed)),
)  # fmt: skip
