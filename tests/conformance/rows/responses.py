"""What an application gives and what the client gets: statuses, fields, bodies in every shape."""

from __future__ import annotations

from tests.conformance.checks import (
    at_most_one,
    body,
    field,
    generated,
    joined_field,
    length_is,
    no_field,
    reason,
    status,
    words,
)
from tests.conformance.rows.making import build, get, make, synced
from tests.conformance.table import Row

TEXT = ("Content-Type", "text/plain")
NO_BODY = (body(b""), no_field("Transfer-Encoding"))
AJP_REASON = {"ajp": "front servers for AJP write the reason phrase themselves"}
BIG_FILE = 1_079_593
SHAPES = ("list", "tuple", "iter", "generator")


def shapes(name: str, ids: str, query: str, data: bytes) -> Row:
    """The same pieces as a list, a tuple, an iterator and a generator."""
    return build(name, ids, [
        (get(f"/pieces?as={shape}{query}"), status(200), body(data), length_is(len(data))) for shape in SHAPES
    ])  # fmt: skip


def close_called(name: str, ids: str, target: str, *checks: object, method: str = "GET", cut: bool = False) -> Row:
    """``close`` is called exactly once, whatever happened before."""
    return build(name, ids, [
        (get(target, method=method), *checks),  # type: ignore[arg-type]
        (get("/notes?token={token}"), words("closed")),
    ], patient=True, cut=cut)  # fmt: skip


ROWS: tuple[Row, ...] = (
    # Statuses.
    make("status-200", "plack: status line", get("/gen?n=1"), status(200), reason("OK"), skips=AJP_REASON),
    make("status-404", "plack: test 404; B147", get("/status?line=404%20Not%20Found&body=Not%20Found"),
         status(404), body(b"Not Found"), field(*TEXT)),
    make("status-500", "RFC 9110 15.6.1", get("/status?line=500%20Own%20Page&body=own"), status(500), body(b"own")),
    make("status-unknown", "RFC 9110 15", get("/status?line=299%20Fine&body=ok"), status(299), body(b"ok")),
    make("status-reason", "RFC 9112 4", get("/status?line=200%20All%20right,%20%22then%22&body=ok"), status(200),
         reason('All right, "then"'), needs="direct", skips=AJP_REASON),
    synced("status-307", "B105; RFC 9110 15.4.8",
           get("/status?line=307%20Temporary%20Redirect"), status(307), body(b"")),
    synced("status-304", "plack: no entity headers on 304; RFC 9110 15.4.5",
           get("/status?line=304%20Not%20Modified&plain=1"), status(304), *NO_BODY,
           no_field("Content-Type", "Content-Length")),
    synced("status-304-with-body", "B041; B059; H23", get("/status?line=304%20Not%20Modified&body=x"), status(304),
           *NO_BODY),
    synced("status-304-with-length", "B059; RFC 9110 8.6", get("/status?line=304%20Not%20Modified&length=8"),
           status(304), *NO_BODY, length_is(8)),
    synced("status-304-streamed", "B059; H23", get("/status?line=304%20Not%20Modified&body=xyz&as=generator"),
           status(304), *NO_BODY),
    synced("status-204", "RFC 9110 15.3.5; RFC 9110 8.6", get("/status?line=204%20No%20Content&plain=1"), status(204),
           *NO_BODY, no_field("Content-Length")),
    synced("status-204-with-body", "B059; H23", get("/status?line=204%20No%20Content&body=x&length=1"), status(204),
           *NO_BODY, no_field("Content-Length")),
    synced("status-204-streamed", "B059; H23", get("/status?line=204%20No%20Content&body=xyz&as=generator"),
           status(204), *NO_BODY, no_field("Content-Length")),
    # HEAD.
    synced("head", "B059; H23; RFC 9110 9.3.2", get("/gen?n=100", method="HEAD"), status(200), body(b""),
           length_is(100)),
    synced("head-with-length", "B060; RFC 9110 8.6", get("/gen?n=0&length=10", method="HEAD"), status(200), body(b""),
           length_is(10)),
    synced("head-streamed", "B059; RFC 9110 9.3.2", get("/gen?n=5000&step=1000&as=generator", method="HEAD"),
           status(200), body(b""), length_is(5000)),
    synced("head-write", "B059", get("/write", method="HEAD"), status(200), body(b""), length_is(13)),
    synced("head-file", "B059", get("/file?n=5000", method="HEAD"), status(200), body(b""), length_is(5000)),
    synced("head-404", "B059", get("/status?line=404%20Not%20Found&body=none", method="HEAD"), status(404), body(b"")),
    # Fields.
    make("response-field-twice", "plack: multi headers (response)",
         get("/fields?Content-Type=text/plain&X-Foo=foo&X-Foo=bar,%20baz"), joined_field("X-Foo", "foo, bar, baz")),
    make("set-cookie-twice", "B146; RFC 6265 3", get("/fields?Set-Cookie=a=1&Content-Type=text/plain&Set-Cookie=b=2"),
         field("Set-Cookie", "a=1", "b=2")),
    make("set-cookie-thirty", "B146", get("/fields?" + "&".join(f"Set-Cookie=c{i}={i}" for i in range(30))),
         field("Set-Cookie", *(f"c{i}={i}" for i in range(30)))),
    make("date-and-server", "B146; RFC 9110 6.6.1",
         get("/fields?Date=Tue,%2015%20Nov%201994%2008:12:31%20GMT&Server=mine/1.0"),
         at_most_one("Date"), at_most_one("Server")),
    make("content-type-not-invented", "B146; RFC 9110 8.3", get("/fields?X-Only=1"), status(200), field("X-Only", "1"),
         no_field("Content-Type"), skips={"apache": "Apache httpd adds its default type"}),
    make("response-field-empty", "RFC 9110 5.5", get("/fields?X-Empty=&Content-Type=text/plain"), field("X-Empty", "")),
    make("response-field-latin-1", "RFC 9110 5.5; PEP 3333 Unicode",
         get("/fields?X-Name=J%F6rg&Content-Type=text/plain"), field("X-Name", "J\xf6rg")),
    make("head-5000-bytes", "F14", get("/head?n=5000"), status(200), body(b"head"),
         field("X-Filler-49", "0" * 98 + "49")),
    make("head-20000-bytes", "F14; A09", get("/head?n=20000"), status(200), body(b"head"),
         field("X-Filler-199", "0" * 97 + "199"), needs="big-head direct"),
    # Bodies.
    make("body-looks-like-head", "plack: CRLF output and FCGI parse bug",
         get("/pieces?p=Foo:%20Bar%0D%0A%0D%0AHello%20World"), status(200), body(b"Foo: Bar\r\n\r\nHello World"),
         no_field("Foo")),
    make("body-newlines", "plack: newlines", get("/pieces?p=Bar%0ABaz"), status(200), body(b"Bar\nBaz")),
    make("body-nul", "B083", get("/pieces?p=Hell%00,%20World!%0A&length=14"), status(200), body(b"Hell\0, World!\n")),
    shapes("body-zero", "B080", "&p=0", b"0"),
    shapes("body-empty-piece-first", "B080", "&p=&p=Test", b"Test"),
    shapes("body-empty-pieces-between", "B080; B005", "&p=Te&p=&p=&p=st&p=", b"Test"),
    shapes("body-only-empty-piece", "B080", "&p=", b""),
    shapes("body-no-piece", "B080", "", b""),
    make("body-octets", "B083", get("/gen?n=70000&step=251&as=iter"), status(200), generated(70000)),
    make("body-one-large-piece", "B012; F13", get("/gen?n=200000&as=generator"), status(200), generated(200000)),
    synced("body-large-list", "B012; B033", get("/gen?n=300000"), status(200), generated(300000)),
    build("body-packet-sizes", "B033; A09", [
        (get(f"/gen?n={size}&as={shape}"), status(200), generated(size))
        for size in (8183, 8184, 8185, 8192, 65535, 65536, 100_000) for shape in ("list", "generator")
    ]),
    synced("stream-without-length", "B008; plack: coderef streaming", get("/gen?n=1263680&step=31592&as=generator"),
           status(200), generated(1263680)),
    synced("stream-with-length", "plack: coderef res", get("/gen?n=50000&step=777&as=generator&length=50000"),
           status(200), generated(50000), field("Content-Length", "50000")),
    synced("stream-tiny-pieces", "B005; F13", get("/gen?n=2000&step=1&as=iter"), status(200), generated(2000)),
    make("stream-late-start", "plack: coderef streaming; PEP 3333 start_response", get("/late"), status(200),
         body(b"late"), field(*TEXT)),
    synced("write-callable", "plack: coderef streaming; PEP 3333 write", get("/write"), status(200),
           body(b"one,two,three")),
    synced("write-callable-with-length", "PEP 3333 write", get("/write?length=13"), status(200),
           body(b"one,two,three")),
    make("stream-not-held-back", "PEP 3333 Buffering and Streaming", get("/wait?token={token}"), status(200),
         body(b"first,released"), release=get("/note?token={token}&word=go"), needs="stream direct"),
    synced("errors-between-pieces", "B005; B006; B138; PEP 3333 errors", get("/errors?n=167"), status(200),
           body(b"begin-end")),
    # Files.
    make("file", "plack: return glob; plack: filehandle; PEP 3333 file_wrapper", get("/file?n=4745"), status(200),
         generated(4745)),
    make("file-with-length", "plack: filehandle with path(); plack: filehandle", get("/file?n=4745&length=4745"),
         status(200), generated(4745), field("Content-Length", "4745")),
    synced("file-large", "B056; plack: bigger file", get(f"/file?n={BIG_FILE}"), status(200), generated(BIG_FILE)),
    make("file-offset", "B051", get("/file?n=5000&offset=100"), status(200), generated(5000, 100)),
    make("file-at-end", "B051", get("/file?n=5000&offset=5000"), status(200), body(b"")),
    make("file-empty", "B057", get("/file?n=0"), status(200), body(b"")),
    make("file-in-memory", "B057", get("/file?n=50000&kind=memory"), status(200), generated(50000)),
    make("file-in-memory-offset", "B051; B057", get("/file?n=50000&kind=memory&offset=7"), status(200),
         generated(50000, 7)),
    make("file-pipe", "B057", get("/file?n=30000&kind=pipe"), status(200), generated(30000)),
    make("file-only-read", "B057", get("/file?n=50000&kind=read"), status(200), generated(50000)),
    # close().
    close_called("close", "plack: call close after read IO::Handle-like; PEP 3333 close", "/close?token={token}",
                 status(200), body(b"1234")),
    close_called("close-after-error", "PEP 3333 close", "/close?token={token}&die=1", cut=True),
    close_called("close-head", "PEP 3333 close", "/close?token={token}", status(200), body(b""), method="HEAD"),
    close_called("close-file-in-memory", "B057; PEP 3333 file_wrapper", "/file?n=50000&kind=memory&token={token}",
                 status(200), generated(50000)),
    close_called("close-file-only-read", "B057; PEP 3333 file_wrapper", "/file?n=50000&kind=read&token={token}",
                 status(200), generated(50000)),
)  # fmt: skip
