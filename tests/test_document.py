"""core.document: a CGI script's output as data, whole and in any pieces (RFC 3875 6)."""

from __future__ import annotations

import pytest

from gateways.core.document import DocumentParser, Kind, parse_status
from gateways.core.errors import ScriptError

TYPE = b"Content-Type: text/plain\n"


def parse(pieces: list[bytes]) -> tuple[Kind, str, list[tuple[str, str]], str, bytes]:
    parser = DocumentParser()
    body = b"".join([parser.receive(piece) for piece in pieces])
    document = parser.finish()
    return document.kind, document.status, list(document.fields), document.location, body


def cut(output: bytes) -> list[list[bytes]]:
    """The output whole, byte by byte, and cut in two at every place of its head."""
    halves = [[output[:n], output[n:]] for n in range(1, min(len(output), 80))]
    return [[output], [output[n : n + 1] for n in range(len(output))], *halves]


GOOD = [
    ("RFC3875-6.2.1", TYPE + b"\nhello", Kind.DOCUMENT, "200 OK", [("Content-Type", "text/plain")], b"hello"),
    ("C06-crlf", b"Content-Type: a/b\r\n\r\nx\r\n", Kind.DOCUMENT, "200 OK", [("Content-Type", "a/b")], b"x\r\n"),
    ("C06-mixed-ends", b"A: 1\r\nContent-Type: a/b\n\r\nx", Kind.DOCUMENT, "200 OK",
     [("A", "1"), ("Content-Type", "a/b")], b"x"),
    ("C06-crlf-then-lf", b"Content-Type: a/b\r\n\nx", Kind.DOCUMENT, "200 OK", [("Content-Type", "a/b")], b"x"),
    ("C06-status-without-space", b"Status:404 Not Found\n" + TYPE + b"\n", Kind.DOCUMENT, "404 Not Found",
     [("Content-Type", "text/plain")], b""),
    ("C06-status-code-only", b"Status: 200\n" + TYPE + b"\n", Kind.DOCUMENT, "200 OK",
     [("Content-Type", "text/plain")], b""),
    ("B147-status", b"Status: 404 Not Found\n" + TYPE + b"\nno", Kind.DOCUMENT, "404 Not Found",
     [("Content-Type", "text/plain")], b"no"),
    ("B104-status-alone", b"Status: 404 Not Found\r\n\r\n", Kind.DOCUMENT, "404 Not Found", [], b""),
    ("RFC3875-6.3.1-no-content", b"Status: 204 No Content\n\n", Kind.DOCUMENT, "204 No Content", [], b""),
    ("RFC3875-6.3.1-not-modified", b"Status: 304 Not Modified\nETag: x\n\n", Kind.DOCUMENT, "304 Not Modified",
     [("ETag", "x")], b""),
    ("B015-location-without-status", b"Location: http://h/x\r\n\r\n", Kind.CLIENT_REDIRECT, "302 Found",
     [("Location", "http://h/x")], b""),
    ("B105-redirect-with-status", b"Status: 307 Temporary Redirect\r\nLocation: http://h/\r\n\r\n",
     Kind.CLIENT_REDIRECT, "307 Temporary Redirect", [("Location", "http://h/")], b""),
    ("RFC3875-6.2.4-redirect-with-body", b"Location: http://h/\n\n<a href>", Kind.CLIENT_REDIRECT, "302 Found",
     [("Location", "http://h/")], b"<a href>"),
    ("B015-local-redirect", b"Location: /local?q=1\n\n", Kind.LOCAL_REDIRECT, "302 Found",
     [("Location", "/local?q=1")], b""),
    ("local-with-status", b"Status: 303 See Other\nLocation: /local\n\n", Kind.CLIENT_REDIRECT, "303 See Other",
     [("Location", "/local")], b""),
    ("local-with-cookie", b"Location: /local\nSet-Cookie: a=1\n\n", Kind.CLIENT_REDIRECT, "302 Found",
     [("Location", "/local"), ("Set-Cookie", "a=1")], b""),
    ("network-path-is-not-local", b"Location: //h/x\n\n", Kind.CLIENT_REDIRECT, "302 Found",
     [("Location", "//h/x")], b""),
    ("B146-two-cookies", b"Set-Cookie: a=1\nSet-Cookie: b=2\n" + TYPE + b"\n", Kind.DOCUMENT, "200 OK",
     [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Content-Type", "text/plain")], b""),
    ("C07-nph", b"HTTP/1.1 500 X\r\nContent-Type: a/b\r\nConnection: close\r\n\r\nx", Kind.NPH, "500 X",
     [("Content-Type", "a/b")], b"x"),
    ("C07-nph-without-type", b"HTTP/1.0 400 Bad Request\n\nx", Kind.NPH, "400 Bad Request", [], b"x"),
    ("B083-nul-in-body", TYPE + b"\nHell\0, World!", Kind.DOCUMENT, "200 OK", [("Content-Type", "text/plain")],
     b"Hell\0, World!"),
    ("latin-1", b"Content-Type: a/b\nX: \xe9\n\n", Kind.DOCUMENT, "200 OK", [("Content-Type", "a/b"), ("X", "\xe9")],
     b""),
    ("empty-value", b"X:\n" + TYPE + b"\n", Kind.DOCUMENT, "200 OK", [("X", ""), ("Content-Type", "text/plain")], b""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("output", "kind", "status", "fields", "body"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD]
)
def test_a_document_is_the_same_in_any_pieces(
    output: bytes, kind: Kind, status: str, fields: list[tuple[str, str]], body: bytes
) -> None:
    for pieces in cut(output):
        assert parse(pieces)[:3] == (kind, status, fields)
        assert parse(pieces)[4] == body


def test_a_local_redirect_names_its_path() -> None:
    assert parse([b"Content-Type: text/html\nLocation: /a?b\n\nignored"])[3] == "/a?b"


BAD = [
    ("C06-empty-output", b"", "printed nothing"),
    ("C06-no-head", b"<html>\n\n", "no field"),
    ("C06-no-head-block", b"hello", "within its head"),
    ("C06-unended-head", TYPE, "within its head"),
    ("C06-empty-line-first", b"\n" + TYPE + b"\nx", "empty line"),
    ("C06-empty-line-first-crlf", b"\r\n\r\nx", "empty line"),
    ("C06-status-text", b"Status: abc\n" + TYPE + b"\n", "abc"),
    ("C06-status-number", b"Status: 99\n" + TYPE + b"\n", "99"),
    ("C06-status-interim", b"Status: 100 Continue\n\n", "100"),
    ("C06-status-too-high", b"Status: 600 X\n" + TYPE + b"\n", "600"),
    ("C06-status-glued", b"Status: 200OK\n" + TYPE + b"\n", "200OK"),
    ("C06-status-twice", b"Status: 200 OK\nStatus: 404 No\n" + TYPE + b"\n", "twice"),
    ("C06-type-twice", TYPE + TYPE + b"\n", "twice"),
    ("C06-location-twice", b"Location: /a\nlocation: /b\n\n", "twice"),
    ("C06-location-empty", b"Location:\n\n", "empty"),
    ("C06-folded", TYPE + b" folded\n\n", "folded"),
    ("C06-folded-tab", TYPE + b"\tfolded\n\n", "folded"),
    ("C06-nul", b"X: a\0b\n" + TYPE + b"\n", "NUL"),
    ("C06-bare-cr", b"X: a\rY: b\n" + TYPE + b"\n", "CR"),
    ("C06-no-colon", TYPE + b"nonsense\n\n", "no field"),
    ("C06-space-before-colon", b"Content-Type : a/b\n\n", "no field"),
    ("C06-empty-name", b": a\n" + TYPE + b"\n", "no field"),
    ("RFC3875-6.3.1-no-type", b"X: y\n\n", "no Content-Type"),
    ("RFC3875-6.3.1-body-without-type", b"Status: 200 OK\n\nhello", "no Content-Type"),
    ("C07-nph-malformed", b"HTTP/1.1 OK\n\n", "status line"),
    ("C07-nph-version", b"HTTP/2 200 OK\n\n", "status line"),
    ("C07-nph-interim", b"HTTP/1.1 100 Continue\n\n", "100"),
]


@pytest.mark.parametrize(("output", "said"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_what_is_no_document_is_refused_in_any_pieces(output: bytes, said: str) -> None:
    for pieces in cut(output):
        with pytest.raises(ScriptError, match=said) as raised:
            parse(pieces)
        assert raised.value.status == 500


@pytest.mark.parametrize("step", [1 << 20, 1000], ids=["whole", "in-pieces"])
@pytest.mark.parametrize("end", [b"", b"\n\n"], ids=["endless", "ended"])
def test_c06_a_head_has_a_limit(step: int, end: bytes) -> None:
    output = TYPE + b"X: " + b"a" * 70000 + end
    with pytest.raises(ScriptError, match="longer than 65536"):
        parse([output[n : n + step] for n in range(0, len(output), step)])


def test_a_head_just_within_the_limit_is_taken() -> None:
    head = b"X: " + b"a" * (65536 - 3 - len(TYPE)) + b"\n" + TYPE
    assert parse([head + b"\nbody"])[4] == b"body"


def test_a_status_gets_its_reason() -> None:
    assert parse_status("404") == "404 Not Found"
    assert parse_status("404 Gone fishing") == "404 Gone fishing"
    assert parse_status("299") == "299 Unknown"
