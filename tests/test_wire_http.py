"""The HTTP/1.1 wire, without a socket: rows of id, section, input, outcome, each whole, cut, and with bytes behind."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateways.core.errors import BodyIncomplete, LengthMismatch, LocalProtocolError, RemoteProtocolError
from gateways.core.metavariables import format_variable_name
from gateways.wire.http import HTTPWire
from tests.http_driver import DATE, Outcome, cut_at_line_ends, cut_everywhere, drive, feed, make_wire

HOST = b"Host: a\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def get(target: bytes, fields: bytes = HOST) -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\n" + fields + b"\r\n"


def post(fields: bytes, body: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\n" + HOST + fields + b"\r\n" + body


REFUSED: list[tuple[str, str, bytes, int]] = [
    # Content-Length and Transfer-Encoding.
    ("H01 CL.TE", "RFC 9112 6.3", post(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"), 400),
    ("H01 TE.CL", "RFC 9112 6.3", post(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n"), 400),
    ("B069 CL and TE", "RFC 9112 6.3", post(b"content-length: 0\r\ntransfer-encoding: chunked\r\n"), 400),
    ("B069 TE twice", "RFC 9112 6.1", post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400),
    ("H02 VT chunked", "RFC 9110 5.5", post(b"Transfer-Encoding:\x0bchunked\r\n"), 400),
    ("H02 NBSP chunked", "RFC 9112 6.1", post(b"Transfer-Encoding: \xa0chunked\r\n"), 400),
    ("H02 comma first", "RFC 9112 6.1", post(b"Transfer-Encoding: ,chunked\r\n"), 400),
    ("H02 comma last", "RFC 9112 6.1", post(b"Transfer-Encoding: chunked,\r\n"), 400),
    ("H02 quoted", "RFC 9112 6.1", post(b'Transfer-Encoding: "chunked"\r\n'), 400),
    ("H02 xchunked", "RFC 9112 6.1", post(b"Transfer-Encoding: xchunked\r\n"), 501),
    ("H02 identity", "RFC 9112 6.1", post(b"Transfer-Encoding: identity\r\n"), 501),
    ("H02 chunked, identity", "RFC 9112 6.1", post(b"Transfer-Encoding: chunked, identity\r\n"), 400),
    ("H02 gzip, chunked", "RFC 9112 6.1", post(b"Transfer-Encoding: gzip, chunked\r\n"), 501),
    ("H02 two lines", "RFC 9112 6.1", post(b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 501),
    ("H02 space before colon", "RFC 9112 5.1", post(b"Transfer-Encoding : chunked\r\n"), 400),
    ("H02 tab before colon", "RFC 9112 5.1", post(b"Transfer-Encoding\t: chunked\r\n"), 400),
    ("H02 CR before value", "RFC 9112 2.2", post(b"Transfer-Encoding: \rchunked\r\n"), 400),
    ("H02 empty", "RFC 9112 6.1", post(b"Transfer-Encoding:\r\n"), 400),
    ("H02 parameter", "RFC 9112 6.1", post(b"Transfer-Encoding: chunked;q=1\r\n"), 400),
    ("H02 on HTTP/1.0", "RFC 9112 6.1", b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("H03 two equal", "RFC 9112 6.3", post(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"hello"), 400),
    ("H03 list", "RFC 9110 8.6", post(b"Content-Length: 5, 5\r\n", b"hello"), 400),
    ("B078 two different", "RFC 9112 6.3", post(b"Content-Length: 5\r\nContent-Length: 6\r\n", b"hello!"), 400),
    *[
        (f"H04 {value!r}", "RFC 9110 8.6", post(b"Content-Length: " + value + b"\r\n", b"0123456789"), 400)
        for value in (
            b"+10", b"-1", b"1_0", b"0x10", b"10 x", b"1Z", b"", b"1" * 40, b"\xef\xbc\x91\xef\xbc\x90", b"1.0", b'"5"',
            b"0 1", b"\xb2",
        )
    ],
    ("B089 empty length", "RFC 9110 8.6", post(b"Content-Length: \r\n", NEXT), 400),
    # Chunks.
    *[
        (f"H05 {size!r}", "RFC 9112 7.1", CHUNKED + size + b"\r\nhello\r\n0\r\n\r\n", 400)
        for size in (b"+5", b"-5", b"0x5", b"5_0", b" 5", b"5 ", b"\t5", b"", b"5Z", b"0" * 16 + b"5", b"5\t", b"5\xa0")
    ],
    ("H05 overflow", "RFC 9110 15.5.14", CHUNKED + b"100000004\r\nhello\r\n", 413),
    ("H05 sixteen digits", "RFC 9110 15.5.14", CHUNKED + b"ffffffffffffffff\r\nhello\r\n", 413),
    ("H06 LF in extension", "RFC 9112 7.1", CHUNKED + b"5;a\nb\r\nhello\r\n0\r\n\r\n", 400),
    ("H06 CR in extension", "RFC 9112 7.1", CHUNKED + b"5;a\rb\r\nhello\r\n0\r\n\r\n", 400),
    ("H06 quoted LF", "RFC 9112 7.1", CHUNKED + b'5;a="\n"\r\nhello\r\n0\r\n\r\n', 400),
    ("H06 NUL", "RFC 9112 7.1", CHUNKED + b"5;a=\0\r\nhello\r\n0\r\n\r\n", 400),
    ("H06 long", "RFC 9112 7.1.1", CHUNKED + b"5;" + b"a" * 5000 + b"\r\nhello\r\n0\r\n\r\n", 400),
    ("H06 long in sum", "RFC 9112 7.1.1", CHUNKED + (b"1;" + b"a" * 4000 + b"\r\nx\r\n") * 5 + b"0\r\n\r\n", 400),
    ("H07 data too long", "RFC 9112 7.1", CHUNKED + b"5\r\nhelloXX0\r\n\r\n", 400),
    ("H07 LF after size", "RFC 9112 7.1", CHUNKED + b"5\nhello\r\n0\r\n\r\n", 400),
    ("H07 LF after data", "RFC 9112 7.1", CHUNKED + b"5\r\nhello\n0\r\n\r\n", 400),
    ("H07 LF at the end", "RFC 9112 2.2", CHUNKED + b"5\r\nhello\r\n0\r\n\n", 400),
    ("H07 end in a name", "RFC 9110 5.1", CHUNKED + b"0\r\nX@:\r\n\r\n", 400),
    ("B075 H08 request after a bad chunk", "RFC 9112 7.1", CHUNKED + b"ZZ\r\n" + NEXT, 400),
    ("H09 Content-Length", "RFC 9110 6.5.1", CHUNKED + b"0\r\nContent-Length: 5\r\n\r\n", 400),
    ("H09 Transfer-Encoding", "RFC 9110 6.5.1", CHUNKED + b"0\r\nTransfer-encoding: chunked\r\n\r\n", 400),
    ("H09 Host", "RFC 9110 6.5.1", CHUNKED + b"0\r\nX: y\r\nhost: b\r\n\r\n", 400),
    ("H09 too long", "RFC 9112 7.1.2", CHUNKED + b"0\r\n" + (b"X: " + b"a" * 4000 + b"\r\n") * 3 + b"\r\n", 431),
    ("H09 too many", "RFC 9112 7.1.2", CHUNKED + b"0\r\n" + b"X: y\r\n" * 101 + b"\r\n", 431),
    ("H09 malformed", "RFC 9112 5", CHUNKED + b"0\r\nfoo\r\n\r\n", 400),
    ("H09 folded", "RFC 9112 5.2", CHUNKED + b"0\r\nX: a\r\n b\r\n\r\n", 400),
    # Line ends, folding, names, values.
    ("H10 LF after the request line", "RFC 9112 2.2", b"GET / HTTP/1.1\nHost: a\r\n\r\n", 400),
    ("H10 LF after a field", "RFC 9112 2.2", b"GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
    ("H10 only LF", "RFC 9112 2.2", b"GET / HTTP/1.1\nHost: a\n\n", 400),
    ("H10 CR in a value", "RFC 9112 2.2", get(b"/", b"Host: a\r\nX: b\rY: c\r\n"), 400),
    ("H10 CR in the request line", "RFC 9112 3", b"GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("H10 CRLF CR X", "RFC 9112 2.2", b"GET / HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n", 400),
    ("H11 folded", "RFC 9112 5.2", get(b"/", b"Host: a\r\nX: b\r\n c\r\n"), 400),
    ("B077 H11 first line folded", "RFC 9112 5.2", get(b"/", b" Host: a\r\n"), 400),
    ("H11 tab", "RFC 9112 5.2", get(b"/", b"Host: a\r\n\tX: b\r\n"), 400),
    ("H11 name over lines", "RFC 9112 5", get(b"/", b"Host: a\r\nX\r\n: b\r\n"), 400),
    ("H12 no colon", "RFC 9112 5", get(b"/", b"Host: a\r\nfoo\r\n"), 400),
    ("H12 empty name", "RFC 9110 5.1", get(b"/", b"Host: a\r\n: b\r\n"), 400),
    *[
        (f"H12 {name!r}", "RFC 9110 5.1", get(b"/", b"Host: a\r\n" + name + b": b\r\n"), 400)
        for name in (b"\x85X", b"X\xa0", b"X Y", b"X(", b"X\x7f", b'"X"', b"X/Y", b"\x00X", b"X\x00Y")
    ],
    ("H12 space before colon", "RFC 9112 5.1", get(b"/", b"Host: a\r\nX : b\r\n"), 400),
    *[
        (f"H13 {octet!r} in a value", "RFC 9110 5.5", get(b"/", b"Host: a\r\nX: b" + octet + b"c\r\n"), 400)
        for octet in (b"\0", b"\x01", b"\x0b", b"\x1f", b"\x7f")
    ],
    *[
        (f"H13 {octet!r} in the target", "RFC 9112 3", get(b"/a" + octet + b"b"), 400)
        for octet in (b"\0", b"\x01", b"\x0b", b"\x1f", b"\x7f", b"\t")
    ],
    ("H19 a value that ends badly", "RFC 9110 5.5", get(b"/", b"Host: a\r\nBad: " + b"x" * 50 + b"\x10\r\n"), 400),
    ("H19 long", "RFC 9110 5.5", get(b"/", b"Host: a\r\nBad: " + b" x" * 4000 + b"\x10\r\n"), 400),
    ("B074 H20", "RFC 9112 5", b"GET / HTTP/1.1\r\nHost: a\r\nBad Header\r\n\r\n", 400),
    # Targets.
    ("H24 * for GET", "RFC 9112 3.2.4", get(b"*"), 400),
    ("H24 no slash", "RFC 9112 3.2", get(b"foo"), 400),
    ("H24 authority for GET", "RFC 9112 3.2", get(b"a:80"), 400),
    ("H24 space", "RFC 9112 3", get(b"/foo bar"), 400),
    ("H24 %00", "RFC 3986 7.3", get(b"/a%00b"), 400),
    ("H24 CONNECT to a path", "RFC 9112 3.2", b"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("H24 CONNECT without port", "RFC 9112 3.2.3", b"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("H24 other scheme", "RFC 9112 3.2", get(b"ftp://a/"), 400),
    ("H24 no authority", "RFC 9112 3.2", get(b"http:///x"), 400),
    ("B068 another host", "RFC 9112 3.2", get(b"http://h:80/p?q=1", b"Host: other\r\n"), 400),
    ("B068 another port", "RFC 9112 3.2", get(b"http://h:81/p?q=1", b"Host: h\r\n"), 400),
    ("B086 %uD83D", "RFC 3986 2.1", get(b"/%uD83D"), 400),
    ("B086 half an escape", "RFC 3986 2.1", get(b"/%C"), 400),
    ("B086 % alone", "RFC 3986 2.1", get(b"/100%"), 400),
    # Host and other fields that come once.
    ("H25 missing", "RFC 9112 3.2", get(b"/", b"X: y\r\n"), 400),
    ("H25 no field at all", "RFC 9112 3.2", get(b"/", b""), 400),
    ("B062 H25 twice", "RFC 9112 3.2", get(b"/", b"Host: a\r\nHost: a\r\n"), 400),
    ("H25 empty", "RFC 9112 3.2", get(b"/", b"Host:\r\n"), 400),
    ("H25 only a port", "RFC 9112 3.2", get(b"/", b"Host: :80\r\n"), 400),
    ("H25 list", "RFC 9112 3.2", get(b"/", b"Host: a, b\r\n"), 400),
    ("H25 userinfo", "RFC 9112 3.2", get(b"/", b"Host: u@a\r\n"), 400),
    ("H25 path", "RFC 9112 3.2", get(b"/", b"Host: a/b\r\n"), 400),
    ("H25 NUL", "RFC 9110 5.5", get(b"/", b"Host: a\0b\r\n"), 400),
    ("H25 malformed on HTTP/1.0", "RFC 9112 3.2", b"GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", 400),
    ("B062 Content-Type twice", "RFC 9110 5.3", post(b"Content-Type: a/b\r\nContent-Type: c/d\r\n"), 400),
    ("expectation", "RFC 9110 10.1.1", post(b"Expect: the-unexpected\r\n"), 417),
    # Versions and request lines.
    ("H27 HTTP/2 preface", "RFC 9112 2.3", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("H27 HTTP/1.32", "RFC 9112 2.3", b"GET / HTTP/1.32\r\nHost: a\r\n\r\n", 505),
    ("H27 HTTP/4294967295.255", "RFC 9112 2.3", b"GET / HTTP/4294967295.255\r\nHost: a\r\n\r\n", 505),
    ("H27 HTTP/1.2", "RFC 9112 2.3", b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
    ("H27 HTTP/0.9", "RFC 9112 3", b"GET /\r\n\r\n", 400),
    ("H27 http/1.1", "RFC 9112 3", b"GET / http/1.1\r\nHost: a\r\n\r\n", 400),
    ("method in lower case", "RFC 9112 3", b"get / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("two spaces", "RFC 9112 3", b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("space before the method", "RFC 9112 3", b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("two empty lines first", "RFC 9112 3", b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("TLS", "RFC 9112 3", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    # Limits.
    ("H17 request line", "RFC 9112 3", get(b"/" + b"a" * 9000), 414),
    ("H17 field", "RFC 9110 5.4", get(b"/", HOST + b"X: " + b"a" * 9000 + b"\r\n"), 431),
    ("H17 fields", "RFC 9110 5.4", get(b"/", HOST + b"X: y\r\n" * 100), 431),
    ("H17 head", "RFC 9110 5.4", get(b"/", HOST + (b"X: " + b"a" * 8000 + b"\r\n") * 9), 431),
    ("H17 body", "RFC 9110 15.5.14", post(b"Content-Length: 1073741825\r\n"), 413),
]  # fmt: skip


@pytest.mark.parametrize(("section", "data", "status"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(section: str, data: bytes, status: int) -> None:
    whole = feed(data)
    assert whole.error is not None
    assert (whole.error.section, whole.error.status) == (section, status)
    assert whole.requests == []
    assert whole.sent.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nConnection: close\r\n" in whole.sent
    # However it is cut, and whatever stands behind it, the answer is the same one answer.
    assert drive(make_wire(), cut_everywhere(data)).seen == whole.seen
    for pieces in cut_at_line_ends(data):
        assert drive(make_wire(), pieces).seen == whole.seen
    assert feed(data + NEXT).seen == whole.seen
    assert drive(make_wire(), [data, NEXT, NEXT], end=False).seen == whole.seen


@pytest.mark.parametrize("data", [row[2] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_without_waiting_for_the_end_of_input(data: bytes) -> None:
    assert feed(data, end=False).error is not None


def seen(
    target: str, path: str, query: str = "", body: bytes = b"", method: str = "GET"
) -> tuple[str, str, str, str, bytes]:
    return method, target, path, query, body


def posted(body: bytes) -> tuple[str, str, str, str, bytes]:
    return seen("/", "/", "", body, "POST")


ACCEPTED: list[tuple[str, str, bytes, tuple[str, str, str, str, bytes]]] = [
    ("plain", "RFC 9112 3", get(b"/"), seen("/", "/")),
    ("H04 leading zero is ten", "RFC 9110 8.6", post(b"Content-Length: 010\r\n", b"0123456789"), posted(b"0123456789")),
    ("H04 whitespace around", "RFC 9110 5.5", post(b"Content-Length: \t 5 \t\r\n", b"hello"), posted(b"hello")),
    ("CL 0", "RFC 9112 6.2", post(b"Content-Length: 0\r\n"), posted(b"")),
    ("no length", "RFC 9112 6.3", post(b""), posted(b"")),
    ("H02 chunked", "RFC 9112 7.1", CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", posted(b"hello")),
    ("H02 Chunked", "RFC 9112 7", post(b"TRANSFER-ENCODING:\tChunked \r\n", b"1\r\na\r\n0\r\n\r\n"), posted(b"a")),
    ("chunks", "RFC 9112 7.1", CHUNKED + b"5\r\nhello\r\n00006\r\n world\r\n000\r\n\r\n", posted(b"hello world")),
    ("hexadecimal", "RFC 9112 7.1", CHUNKED + b"1A\r\n" + b"x" * 26 + b"\r\n0\r\n\r\n", posted(b"x" * 26)),
    ("empty chunked", "RFC 9112 7.1", CHUNKED + b"0\r\n\r\n", posted(b"")),
    ("extensions", "RFC 9112 7.1.1", CHUNKED + b'5;a;b=c ; d = "e\\"; f"\r\nhello\r\n0;z\r\n\r\n', posted(b"hello")),
    ("H09 trailers dropped", "RFC 9112 7.1.2", CHUNKED + b"0\r\nX-Forwarded-For: 6.6.6.6\r\nX:\r\n\r\n", posted(b"")),
    ("B083 NUL", "RFC 9112 6", post(b"Content-Length: 14\r\n", b"Hell\0, World!."), posted(b"Hell\0, World!.")),
    ("B089 body is a request", "RFC 9112 6.2", post(b"Content-Length: %d\r\n" % len(NEXT), NEXT), posted(NEXT)),
    ("H10 an empty line first", "RFC 9112 2.2", b"\r\n" + get(b"/"), seen("/", "/")),
    ("H24 double slash", "RFC 9112 3.2.1", get(b"//host/x"), seen("//host/x", "//host/x")),
    ("B020 repeated slashes", "RFC 3986 3.3", get(b"//foo///bar"), seen("//foo///bar", "//foo///bar")),
    ("B021 H24 fragment", "RFC 9112 3.2", get(b"/foo?a=1#bar"), seen("/foo?a=1#bar", "/foo", "a=1")),
    ("B021 fragment with a query", "RFC 9112 3.2", get(b"/foo#b?a=1"), seen("/foo#b?a=1", "/foo")),
    ("two question marks", "RFC 3986 3.4", get(b"/a?b?c"), seen("/a?b?c", "/a", "b?c")),
    ("empty query", "RFC 3986 3.4", get(b"/a?"), seen("/a?", "/a")),
    ("B068 absolute", "RFC 9112 3.2.2", get(b"http://h:80/p?q", b"Host: h:80\r\n"), seen("http://h:80/p?q", "/p", "q")),
    ("B068 default port", "RFC 9110 4.2.3", get(b"HTTP://H:80/p", b"Host: h\r\n"), seen("HTTP://H:80/p", "/p")),
    ("B068 https", "RFC 9110 4.2.3", get(b"https://h/p", b"Host: h:443\r\n"), seen("https://h/p", "/p")),
    ("B068 no path", "RFC 9110 4.2.3", get(b"http://h?q#f", b"Host: h\r\n"), seen("http://h?q#f", "/", "q")),
    ("B068 escape", "RFC 3986 2.1", get(b"http://h/%41?%41", b"Host: h\r\n"), seen("http://h/%41?%41", "/A", "%41")),
    ("B071 IPv6", "RFC 3986 3.2.2", get(b"/", b"Host: [::1]:8080\r\n"), seen("/", "/")),
    ("H25 odd name", "RFC 3986 3.2.2", get(b"/", b"Host: 0.0.0.0=5000\r\n"), seen("/", "/")),
    ("H24 OPTIONS *", "RFC 9112 3.2.4", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", seen("*", "", method="OPTIONS")),
    ("B086 octets", "RFC 3986 2.1", get(b"/%C3%A5%c3%a5%E5"), seen("/%C3%A5%c3%a5%E5", "/\xc3\xa5\xc3\xa5\xe5")),
    ("B086 raw UTF-8", "PEP 3333", get(b"/\xc3\xa5?\xc3"), seen("/\xc3\xa5?\xc3", "/\xc3\xa5", "\xc3")),
    ("B086 decoded once", "RFC 3986 2.4", get(b"/a%2Fb%252F+%2B"), seen("/a%2Fb%252F+%2B", "/a/b%2F++")),
    ("B086 query as it is", "RFC 3986 2.4", get(b"/?%00%zz+%41"), seen("/?%00%zz+%41", "/", "%00%zz+%41")),
    ("B086 half a character", "RFC 3986 2.5", get(b"/%C3"), seen("/%C3", "/\xc3")),
    ("B086 prefix in disguise", "RFC 3986 2.3", get(b"/%61pp/x"), seen("/%61pp/x", "/app/x")),
    ("B135 CRLF in the path", "RFC 3986 2.1", get(b"/%0d%0aFAKE:%20L"), seen("/%0d%0aFAKE:%20L", "/\r\nFAKE: L")),
    ("B140 quote", "RFC 9112 3.2", get(b'/"'), seen('/"', '/"')),
    ("any token as method", "RFC 9110 9.1", b"MKCOL-2 / HTTP/1.1\r\nHost: a\r\n\r\n", seen("/", "/", method="MKCOL-2")),
    ("100 fields", "RFC 9110 5.4", get(b"/", HOST + b"X: y\r\n" * 99), seen("/", "/")),
    ("longest request line", "RFC 9112 3", get(b"/" + b"a" * 8174), seen("/" + "a" * 8174, "/" + "a" * 8174)),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), [row[2:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_accepted(data: bytes, expected: tuple[str, str, str, str, bytes]) -> None:
    whole = feed(data)
    assert whole.error is None
    assert whole.kept
    assert [(r.method, r.target, r.path, r.query, body) for r, body in whole.requests] == [expected]
    assert drive(make_wire(), cut_everywhere(data)).seen == whole.seen
    for pieces in cut_at_line_ends(data):
        assert drive(make_wire(), pieces).seen == whole.seen
    # The next request on the connection is found where this one ends.
    for pieces in ([data + NEXT + data], [data, NEXT, data], cut_everywhere(data + NEXT + data)):
        after = drive(make_wire(), pieces)
        assert [request.path for request, _ in after.requests] == [expected[2], "/next", expected[2]]
        assert after.kept


# Fields.


def pairs_of(data: bytes) -> list[tuple[str, str]]:
    outcome = feed(data)
    return outcome.requests[0][0].field_list


def test_values_lose_the_whitespace_around_them_and_nothing_else() -> None:
    data = get(b"/", b"Host: a\r\nX:\t b \t c \t\r\nY:\r\nZ: \r\nW:\xe9\xff\r\nx: d\r\n")
    pairs = [("Host", "a"), ("X", "b \t c"), ("Y", ""), ("Z", ""), ("W", "\xe9\xff"), ("x", "d")]
    assert pairs_of(data) == pairs


@pytest.mark.parametrize("first", [b"X-Forwarded-For: 1.1.1.1\r\n", b"X_Forwarded_For: 6.6.6.6\r\n"])
def test_B095_H14_a_name_with_underscore_never_poses_as_another(first: bytes) -> None:
    second = {b"-": b"X_Forwarded_For: 6.6.6.6\r\n", b"_": b"X-Forwarded-For: 1.1.1.1\r\n"}[first[1:2]]
    data = get(b"/", HOST + first + second + b"X.Forwarded.For: 7.7.7.7\r\nContent_Length: 5\r\n")
    assert pairs_of(data) == [("Host", "a"), ("X-Forwarded-For", "1.1.1.1"), ("X.Forwarded.For", "7.7.7.7")]
    assert format_variable_name("X.Forwarded.For") == ""


def test_H15_proxy_and_H16_forwarded_fields_are_not_passed() -> None:
    request = feed(get(b"/", HOST + b"Proxy: http://evil/\r\nX-Forwarded-For: 6.6.6.6\r\n")).requests[0][0]
    assert [name for name in request.metavariables if "PROXY" in name or "FORWARDED" in name] == []
    assert [name for name, _ in request.fields] == ["Host"]


def test_absolute_target_of_http_1_0_gives_the_host() -> None:
    assert pairs_of(b"GET http://h:81/ HTTP/1.0\r\n\r\n") == [("Host", "h:81")]


def test_content_length_of_a_request_says_what_is_to_come() -> None:
    lengths = [feed(data).requests[0][0].content_length for data in (get(b"/"), post(b"Content-Length: 1\r\n", b"x"))]
    assert lengths == [0, 1]
    assert feed(CHUNKED + b"0\r\n\r\n").requests[0][0].content_length is None


# Limits.


@pytest.mark.parametrize(
    ("limits", "data", "status"),
    [
        ({"request_line": 30}, get(b"/" + b"a" * 14), 0),
        ({"request_line": 30}, get(b"/" + b"a" * 15), 414),
        ({"field": 10}, get(b"/", b"Host: abc\r\n"), 431),
        ({"field": 11}, get(b"/", b"Host: abc\r\n"), 0),
        ({"fields": 2}, get(b"/", HOST + b"X: y\r\n"), 0),
        ({"fields": 2}, get(b"/", HOST + b"X: y\r\n" * 2), 431),
        ({"head": 27}, get(b"/"), 0),
        ({"head": 26}, get(b"/"), 431),
        ({"body": 4}, post(b"Content-Length: 5\r\n", b"hello"), 413),
        ({"body": 5}, post(b"Content-Length: 5\r\n", b"hello"), 0),
        ({"body": 4}, CHUNKED + b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", 413),
        ({"body": 5}, CHUNKED + b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", 0),
        ({"chunk_line": 5}, CHUNKED + b"1;a\r\nx\r\n0\r\n\r\n", 0),
        ({"chunk_line": 4}, CHUNKED + b"1;a\r\nx\r\n0\r\n\r\n", 400),
        ({"trailer": 8}, CHUNKED + b"0\r\nX: y\r\n\r\n", 0),
        ({"trailer": 7}, CHUNKED + b"0\r\nX: y\r\n\r\n", 431),
        ({"trailer": 5}, CHUNKED + b"0\r\nX: y\r\n\r\n", 431),
        # B063: zero means unlimited.
        ({"request_line": 0}, get(b"/" + b"a" * 9000), 0),
        ({"field": 0, "head": 0}, get(b"/", HOST + b"X: " + b"a" * 90000 + b"\r\n"), 0),
        ({"fields": 0}, get(b"/", HOST + b"X: y\r\n" * 200), 0),
        ({"body": 0}, post(b"Content-Length: 5\r\n", b"hello"), 0),
        ({"trailer": 0, "chunk_line": 0}, CHUNKED + b"0;" + b"a" * 9000 + b"\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 0),
    ],
)
def test_H17_B063_limits(limits: dict[str, int], data: bytes, status: int) -> None:
    whole = feed(data, **limits)
    assert (whole.error.status if whole.error else 0) == status
    assert drive(make_wire(**limits), cut_everywhere(data[:300])).seen == feed(data[:300], **limits).seen


def test_B072_a_limit_trips_alike_whole_and_in_pieces_of_100() -> None:
    line = b"X: " + b"a" * 95 + b"\r\n"
    data = get(b"/", HOST + line * 12)
    pieces = [data[i : i + 100] for i in range(0, len(data), 100)]
    for limit in range(len(data) - 110, len(data) + 2, 11):
        whole = feed(data, head=limit)
        assert drive(make_wire(head=limit), pieces).seen == whole.seen
        assert (whole.error is not None) == (limit < len(data))


def test_H17_no_more_is_held_than_a_limit_allows() -> None:
    wire = make_wire()
    for _ in range(8):
        wire.receive(b"a" * 1000)
        assert wire.take_request() is None
    wire.receive(b"a" * 1000)
    with pytest.raises(RemoteProtocolError):
        wire.take_request()
    wire.receive(b"a" * 1000)
    assert wire.buffered == 0


# Bodies.


def start(data: bytes, **limits: int) -> HTTPWire:
    """Return a wire that has taken the request at the start of ``data``."""
    wire = make_wire(**limits)
    wire.receive(data)
    assert wire.take_request() is not None
    return wire


@pytest.mark.parametrize("end", [b"", b"X"])
@pytest.mark.parametrize("data", [post(b"Content-Length: 5\r\n", b"hel"), CHUNKED + b"5\r\nhel"])
def test_a_body_that_ends_early_is_refused_before_the_application_is_called(data: bytes, end: bytes) -> None:
    outcome = feed(data + end)
    assert outcome.error is not None
    assert (outcome.error.status, outcome.error.section) == (400, "RFC 9112 8")
    assert outcome.requests == []


def test_a_body_that_ends_early_after_the_application_was_called_is_incomplete() -> None:
    for data, body in ((post(b"Content-Length: 5\r\n"), b"hel"), (CHUNKED, b"5\r\nhel")):
        wire = start(data, buffered_body=3)
        assert not wire.body_ready()
        wire.receive(body)
        assert wire.body_ready()
        wire.receive(b"")
        assert not wire.body_complete()
        assert wire.take_body(10) == b"hel"
        with pytest.raises(BodyIncomplete):
            wire.take_body(10)
        assert b"Connection: close" in wire.format_response("200 OK", [], b"", False)
        assert not wire.finish()


@pytest.mark.parametrize("data", [CHUNKED + b"5\r\nhelloXX", CHUNKED + b"ZZ\r\n"])
def test_a_malformed_body_stays_malformed(data: bytes) -> None:
    wire = start(data, buffered_body=0)
    errors = []
    for read in (lambda: wire.take_body(10), lambda: wire.take_body(10), wire.body_ready):
        with pytest.raises(RemoteProtocolError) as caught:
            read()
        errors.append(caught.value)
    assert errors[0] is errors[1] is errors[2]
    assert not wire.body_complete()
    assert not wire.finish()


def test_a_refused_body_stays_refused() -> None:
    wire = start(post(b"Content-Length: 5\r\n", b"hel"))
    wire.receive(b"")
    for read in (wire.body_ready, lambda: wire.take_body(10)):
        with pytest.raises(RemoteProtocolError):
            read()


def test_the_input_may_end_before_a_body_is_read() -> None:
    wire = start(post(EXPECT + b"Content-Length: 5\r\n"))
    assert wire.body_ready()
    wire.receive(b"")
    with pytest.raises(BodyIncomplete):
        wire.take_body(10)


def test_B081_a_body_is_read_to_its_end_and_no_further() -> None:
    wire = start(post(b"Content-Length: 4\r\n", b"abcd" + NEXT))
    assert [wire.take_body(100), wire.take_body(100), wire.take_body(1)] == [b"abcd", b"", b""]


def test_small_reads() -> None:
    for data in (post(b"Content-Length: 5\r\n", b"hello"), CHUNKED + b"4\r\nhell\r\n1\r\no\r\n0\r\n\r\n"):
        wire = start(data + NEXT)
        assert [wire.take_body(2) for _ in range(4)] == [b"he", b"ll", b"o", b""]
        assert wire.body_complete()
        wire.format_response("200 OK", [], b"", False)
        assert wire.finish()
        request = wire.take_request()
        assert request is not None
        assert request.path == "/next"


@pytest.mark.parametrize("taken", [0, 2])
@pytest.mark.parametrize("data", [post(b"Content-Length: 5\r\n", b"hello"), CHUNKED + b"5\r\nhello\r\n0\r\n\r\n"])
def test_B141_an_unread_body_that_has_arrived_is_discarded(data: bytes, taken: int) -> None:
    wire = start(data + NEXT)
    if taken:
        assert wire.take_body(taken) == b"he"
    assert b"Connection" not in wire.format_response("200 OK", [], b"", False)
    assert wire.finish()
    request = wire.take_request()
    assert request is not None
    assert request.path == "/next"


@pytest.mark.parametrize(
    "data", [post(b"Content-Length: %d\r\n" % (len(NEXT) + 1)), CHUNKED, CHUNKED + b"5\r\nhel", CHUNKED + b"ZZ\r\n"]
)
def test_B141_an_unread_body_that_has_not_arrived_ends_the_connection(data: bytes) -> None:
    wire = start(data)
    assert b"\r\nConnection: close\r\n" in wire.format_response("200 OK", [], b"", False)
    wire.receive(NEXT)
    assert not wire.finish()
    wire.receive(NEXT)
    assert wire.take_request() is None
    assert not wire.has_partial_request


# 100-continue.

EXPECT = b"Expect: 100-continue\r\n"


def test_100_continue_is_sent_when_the_application_first_reads() -> None:
    wire = start(post(EXPECT + b"Content-Length: 5\r\n"))
    assert wire.body_ready()
    assert wire.take_output() == b""
    assert wire.take_body(10) is None
    assert wire.take_output() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert wire.take_body(10) is None
    assert wire.take_output() == b""
    wire.receive(b"hello")
    assert wire.take_body(10) == b"hello"


def test_100_continue_is_not_sent_when_the_body_comes_unasked() -> None:
    wire = start(post(EXPECT + b"Content-Length: 5\r\n", b"hel"))
    assert not wire.body_ready()
    wire.receive(b"lo")
    assert wire.body_ready()
    assert wire.take_body(10) == b"hello"
    assert wire.take_output() == b""


def test_100_continue_is_not_sent_after_the_response_or_without_a_body_or_to_http_1_0() -> None:
    wire = start(post(EXPECT + b"Content-Length: 5\r\n"))
    assert b"\r\nConnection: close\r\n" in wire.format_head("403 Forbidden", [], False)
    assert wire.take_body(10) is None
    assert wire.take_output() == b""
    wire = start(post(EXPECT + b"Content-Length: 0\r\n"))
    assert (wire.take_body(10), wire.take_output()) == (b"", b"")
    wire = start(b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    assert not wire.body_ready()
    assert (wire.take_body(10), wire.take_output()) == (None, b"")


def test_100_continue_for_a_chunked_body() -> None:
    outcome = drive(make_wire(), [CHUNKED[:-2] + EXPECT + b"\r\n", b"5\r\nhello\r\n0\r\n\r\n"])
    assert outcome.requests[0][1] == b"hello"
    assert outcome.sent.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


# Keeping the connection.


@pytest.mark.parametrize(
    ("line", "fields", "kept", "said"),
    [
        (b"HTTP/1.1", b"", True, b""),
        (b"HTTP/1.1", b"Connection: close\r\n", False, b"close"),
        (b"HTTP/1.1", b"Connection: Close\r\n", False, b"close"),
        (b"HTTP/1.1", b"Connection: keep-alive\r\n", True, b""),
        (b"HTTP/1.1", b"Connection: keep-alive, close\r\n", False, b"close"),
        (b"HTTP/1.1", b"Connection: keep-alive\r\nConnection: close\r\n", False, b"close"),
        (b"HTTP/1.1", b"Connection: TE,,Keep-Alive\r\n", True, b""),
        (b"HTTP/1.1", b"Connection: upgrade\r\nUpgrade: h2c\r\n", True, b""),
        (b"HTTP/1.0", b"", False, b"close"),
        (b"HTTP/1.0", b"Connection: Keep-Alive\r\n", True, b"keep-alive"),
        (b"HTTP/1.0", b"Connection: TE , keep-alive\r\n", True, b"keep-alive"),
        (b"HTTP/1.0", b"Connection: keep-alive, close\r\n", False, b"close"),
    ],
)
def test_persistence(line: bytes, fields: bytes, kept: bool, said: bytes) -> None:
    outcome = feed(b"GET / " + line + b"\r\n" + HOST + fields + b"\r\n")
    assert outcome.kept == kept
    assert outcome.sent.partition(b"\r\nConnection: ")[2].partition(b"\r\n")[0] == said


def test_the_driver_can_end_the_connection() -> None:
    wire = start(get(b"/") + NEXT)
    assert b"\r\nConnection: close\r\n" in wire.format_response("200 OK", [], b"", True)
    assert not wire.finish()
    assert wire.take_request() is None


def test_B090_garbage_after_a_last_request_is_not_looked_at() -> None:
    outcome = feed(get(b"/", HOST + b"Connection: close\r\n") + b"\0garbage\r\n\r\n")
    assert outcome.error is None
    assert [request.path for request, _ in outcome.requests] == ["/"]


def test_B074_H20_after_an_error_nothing_is_parsed() -> None:
    wire = start(get(b"/first") + get(b"/bad", b"Host: a\r\nBad Header\r\n") + get(b"/evil"))
    wire.format_response("200 OK", [], b"", False)
    assert wire.finish()
    errors = []
    for _ in range(2):
        with pytest.raises(RemoteProtocolError) as caught:
            wire.take_request()
        errors.append(caught.value)
        wire.receive(get(b"/evil"))
    assert errors[0] is errors[1]
    assert b"\r\nConnection: close\r\n" in wire.format_response("400 Bad Request", [], b"", False)
    assert not wire.finish()
    assert wire.take_request() is None


def test_B089_pipelined_after_an_empty_body_and_a_byte_after_a_chunked_one() -> None:
    inner = get(b"/inner")
    data = post(b"Content-Length: 0\r\n") + post(b"Content-Length: %d\r\n" % len(inner), inner)
    assert [body for _, body in feed(data).requests] == [b"", inner]
    outcome = feed(CHUNKED + b"0\r\n\r\n\0")
    assert len(outcome.requests) == 1
    assert outcome.error is not None
    assert outcome.error.status == 400


def test_partial_request_is_told_from_silence() -> None:
    wire = make_wire()
    assert not wire.has_partial_request
    wire.receive(b"\r\n")
    assert wire.take_request() is None
    assert not wire.has_partial_request
    wire.receive(b"G")
    assert wire.take_request() is None
    assert wire.has_partial_request
    wire.receive(get(b"/")[1:])
    assert wire.take_request() is not None
    assert not wire.has_partial_request


def test_the_end_of_input_between_requests_is_no_error() -> None:
    for data in (b"", b"\r\n", NEXT, NEXT + b"\r\n"):
        assert feed(data).error is None
    for data in (b"G", b"\r", NEXT + b"G", NEXT[:-1]):
        assert feed(data).error is not None


# Responses.


def respond(
    data: bytes, status: str, fields: list[tuple[str, str]], body: bytes, close: bool = False
) -> tuple[bytes, bytes, bool]:
    """Return (head, rest, kept) of the response to the request ``data``."""
    wire = start(data)
    head, _, rest = wire.format_response(status, fields, body, close).partition(b"\r\n\r\n")
    return head, rest, wire.finish()


def test_a_response_in_full() -> None:
    wire = start(get(b"/"))
    expected = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n"
        f"Date: {DATE}\r\nServer: gateways\r\n\r\nok"
    )
    assert wire.format_response("200 OK", [("Content-Type", "text/plain")], b"ok", False) == expected.encode()


def test_without_a_clock_there_is_no_date() -> None:
    wire = make_wire()
    wire = HTTPWire(wire._endpoint, ("127.0.0.1", 1), wire._limits)
    wire.receive(get(b"/"))
    wire.take_request()
    assert wire.format_response("200 OK", [], b"", False) == (
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nServer: gateways\r\n\r\n"
    )


def test_B146_fields_of_the_application_stand_as_they_are() -> None:
    fields = [("Set-Cookie", "a=1"), ("X", "y"), ("Set-Cookie", "b=2"), ("date", "then"), ("Server", "mine")]
    head, _, _ = respond(get(b"/"), "200 OK", fields, b"")
    assert head.split(b"\r\n")[1:] == [
        b"Set-Cookie: a=1", b"X: y", b"Set-Cookie: b=2", b"date: then", b"Server: mine", b"Content-Length: 0",
    ]  # fmt: skip


HEAD = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
SIZE = [("Content-Length", "4")]


@pytest.mark.parametrize(
    ("request_head", "status", "fields", "length"),
    [
        (HEAD, "200 OK", [], b"4"),
        (HEAD, "200 OK", [("Content-Length", "10")], b"10"),
        (HEAD, "404 Not Found", SIZE, b"4"),
        (HEAD, "204 No Content", SIZE, b""),
        (b"HEAD /%20 HTTP/1.1\r\nHost: a\r\n\r\n", "200 OK", SIZE, b"4"),
        (HEAD, "304 Not Modified", [], b""),
        (get(b"/"), "204 No Content", [], b""),
        (get(b"/"), "204 No Content", SIZE, b""),
        (get(b"/"), "304 Not Modified", [], b""),
        (get(b"/"), "304 Not Modified", SIZE, b"4"),
    ],
)
def test_B059_B060_H23_no_body_and_the_connection_kept(
    request_head: bytes, status: str, fields: list[tuple[str, str]], length: bytes
) -> None:
    for closing in (False, True):
        head, rest, kept = respond(request_head, status, fields, b"body", closing)
        assert rest == b""
        assert kept is not closing
        assert b"Transfer-Encoding" not in head
        assert head.partition(b"\r\nContent-Length: ")[2].partition(b"\r\n")[0] == length
    wire = start(request_head)
    head = wire.format_head(status, fields, False)
    assert b"Transfer-Encoding" not in head
    assert [wire.format_body(b"body"), wire.format_frame(4), wire.format_end()] == [b"", (b"", b""), b""]
    assert wire.finish()


def test_a_head_response_without_a_known_length_has_none() -> None:
    head, rest, kept = respond(HEAD, "200 OK", [], b"")
    assert b"Content-Length" not in head
    assert (rest, kept) == (b"", True)


@pytest.mark.parametrize("status", ["100 Continue", "101 Switching Protocols", "103 Early Hints"])
def test_H23_an_interim_status_as_final_answer_has_no_body_and_ends_the_connection(status: str) -> None:
    head, rest, kept = respond(get(b"/"), status, SIZE, b"body")
    assert b"Content-Length" not in head
    assert b"\r\nConnection: close" in head
    assert (rest, kept) == (b"", False)


def test_a_connect_ends_the_connection() -> None:
    connect = b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"
    head, rest, kept = respond(connect, "200 OK", SIZE, b"body")
    assert b"Content-Length" not in head
    assert (rest, kept) == (b"body", False)
    head, rest, kept = respond(connect, "405 Method Not Allowed", SIZE, b"body")
    assert b"Content-Length: 4" in head
    assert (rest, kept) == (b"body", False)


@pytest.mark.parametrize(("length", "size"), [("8", 21), ("0", 8), ("100", 8), ("100", 0), ("24", 26)])
def test_B018_B084_a_whole_body_that_is_not_as_long_as_said_is_left_to_the_driver(length: str, size: int) -> None:
    wire = start(get(b"/"))
    fields = [("Content-Length", length)]
    with pytest.raises(LengthMismatch):
        wire.format_response("200 OK", fields, b"x" * size, False)
    assert f"\r\nContent-Length: {length}\r\n".encode() in wire.format_head("200 OK", fields, False)
    assert wire.finish()


def test_pieces_are_chunks_in_http_1_1() -> None:
    wire = start(get(b"/"))
    head = wire.format_head("200 OK", [], False)
    assert b"\r\nTransfer-Encoding: chunked\r\n" in head
    assert b"Content-Length" not in head
    assert wire.format_body(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"
    assert wire.format_body(b"") == b""  # B080: no chunk of no bytes, which would be the last.
    assert wire.format_frame(255) == (b"ff\r\n", b"\r\n")
    assert wire.format_frame(0) == (b"", b"")
    assert wire.format_end() == b"0\r\n\r\n"
    assert not wire.cut_needs_reset
    assert wire.finish()


def test_pieces_end_with_the_connection_in_http_1_0() -> None:
    wire = start(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    head = wire.format_head("200 OK", [], False)
    assert b"Transfer-Encoding" not in head
    assert b"\r\nConnection: close\r\n" in head
    assert [wire.format_body(b"abc"), wire.format_frame(9), wire.format_end()] == [b"abc", (b"", b""), b""]
    assert wire.cut_needs_reset
    assert not wire.finish()


def test_pieces_of_known_length() -> None:
    for line in (b"HTTP/1.0", b"HTTP/1.1"):
        wire = start(b"GET / " + line + b"\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        head = wire.format_head("200 OK", SIZE, False)
        assert b"\r\nContent-Length: 4\r\n" in head
        assert [wire.format_body(b"abcd"), wire.format_frame(4), wire.format_end()] == [b"abcd", (b"", b""), b""]
        assert not wire.cut_needs_reset
        assert wire.finish()


def test_an_aborted_response_ends_the_connection() -> None:
    wire = start(get(b"/"))
    wire.format_head("200 OK", [], False)
    assert wire.format_abort() == b""
    assert not wire.finish()


def test_an_error_can_be_answered_in_pieces_too() -> None:
    wire = make_wire()
    wire.receive(b"bad\r\n")
    with pytest.raises(RemoteProtocolError):
        wire.take_request()
    assert b"Transfer-Encoding" not in wire.format_head("400 Bad Request", [], False)
    assert wire.cut_needs_reset


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        ("200 OK\r\nX: y", []),
        ("200", []),
        ("abc", []),
        ("200 \0", []),
        ("99 Low", []),
        ("200 OK", [("X", "a\r\nSet-Cookie: x=1")]),
        ("200 OK", [("X", "a\nb")]),
        ("200 OK", [("X", "a\rb")]),
        ("200 OK", [("X", "a\0b")]),
        ("200 OK", [("X", "\u20ac")]),
        ("200 OK", [("A\nB", "c")]),
        ("200 OK", [("A:B", "c")]),
        ("200 OK", [("", "c")]),
        ("200 OK", [("Transfer-Encoding", "chunked")]),
        ("200 OK", [("Connection", "close")]),
        ("200 OK", [("Content-Length", "x")]),
        ("200 OK", [("Content-Length", "-1")]),
        ("200 OK", [("Content-Length", "1"), ("Content-Length", "2")]),
        ("200 OK", [("X", "a" * 70000)]),
    ],
)
def test_B092_H22_what_may_not_be_sent_raises_and_the_wire_can_still_answer(
    status: str, fields: list[tuple[str, str]]
) -> None:
    for data in (get(b"/"), HEAD):
        wire = start(data)
        with pytest.raises(LocalProtocolError):
            wire.format_response(status, fields, b"", False)
        with pytest.raises(LocalProtocolError):
            wire.format_head(status, fields, False)
        assert wire.format_response("500 Internal Server Error", [], b"", False).startswith(b"HTTP/1.1 500 ")
        assert wire.finish()


# Whatever comes, however it is cut.

SEEDS = [
    get(b"/a%20b?c=d"),
    get(b"http://a/x", HOST + b"Connection: close\r\nCookie: a=b \r\n"),
    b"HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    post(b"Content-Length: 5\r\nContent-Type: text/plain\r\n", b"hello"),
    CHUNKED + b"5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
    post(EXPECT + b"Content-Length: 5\r\n", b"hello"),
    b"\r\n" + NEXT + NEXT,
]
TOKENS = [
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b"0",
    b"5",
    b"\0",
    b"Host: a\r\n",
    b"HTTP/1.1",
    b"chunked",
    b";",
    b"%",
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid connection's bytes with a few places replaced, removed or added to."""
    data = b"".join(draw(st.lists(st.sampled_from(SEEDS), min_size=1, max_size=3)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 3)))
        data = data[:start] + draw(st.sampled_from(TOKENS) | st.binary(max_size=2)) + data[end:]
    return data


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in pairwise(bounds)]


def check_outcome(outcome: Outcome) -> None:
    """Assert what holds for any input."""
    assert outcome.sent.count(b"\r\nServer: gateways\r\n") == len(outcome.requests) + (outcome.error is not None)
    if outcome.error is not None:
        assert 400 <= outcome.error.status <= 505
        assert outcome.error.section


@settings(derandomize=True, database=None, deadline=None, max_examples=400)
@given(data=mutated() | st.binary(max_size=80), places=st.lists(st.integers(0, 400), max_size=6))
def test_the_outcome_does_not_depend_on_how_the_input_is_cut(data: bytes, places: list[int]) -> None:
    small = {"head": 200, "request_line": 60, "field": 60, "fields": 5, "trailer": 20, "chunk_line": 12, "body": 9}
    for limits in ({}, small):
        whole = feed(data, **limits)
        check_outcome(whole)
        assert drive(make_wire(**limits), cut(data, places)).seen == whole.seen
        assert drive(make_wire(**limits), cut_everywhere(data)).seen == whole.seen


@settings(derandomize=True, database=None, deadline=None, max_examples=200)
@given(
    status=st.sampled_from(["200 OK", "204 No Content", "304 Not Modified"]) | st.text(max_size=12),
    fields=st.lists(st.tuples(st.text(max_size=6) | st.sampled_from(["Date", "X"]), st.text(max_size=6)), max_size=3),
)
def test_H22_no_field_of_an_application_makes_another_line(status: str, fields: list[tuple[str, str]]) -> None:
    wire = start(get(b"/"))
    try:
        head = wire.format_head(status, fields, False)
    except LocalProtocolError:
        return
    lines = head.split(b"\r\n")
    assert lines[-2:] == [b"", b""]
    assert all(b":" in line for line in lines[1:-2])
    assert len(lines) <= 1 + len(fields) + 4 + 2
    assert not set(head.replace(b"\r\n", b"")) & set(b"\r\n\0")
