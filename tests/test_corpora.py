"""Both request corpora, case by case: whole, a byte at a time, and cut at every CR and LF.

The outcome is the one that the corpus names, but for the tables below; each line of them says which rule decides.
"""

from __future__ import annotations

import pytest

from bench.corpora import Seen, load_cases
from tests.http_driver import Outcome, cut_at_line_ends, cut_everywhere, drive, feed, make_wire

STRICTER = {
    # A transfer coding that cannot be decoded, although chunked is the last: the application would see coded bytes.
    "valid-025": (501, "RFC 9112 6.1"),
    "valid-025_line": (501, "RFC 9112 6.1"),
    "valid-rfc9112_smuggle_gzip_chunked_01": (501, "RFC 9112 6.1"),
    "transfer-encoding: POST with `chunked` as last transfer-encoding": (501, "RFC 9112 6.1"),
    "transfer-encoding: POST with `chunked` as last transfer-encoding (multiple headers)": (501, "RFC 9112 6.1"),
    # The coding "identity" was taken out of HTTP (RFC 9112 7, RFC 7230 A.2).
    "valid-029": (501, "RFC 9112 6.1"),
    "valid-030": (501, "RFC 9112 6.1"),
    "valid-rfc9112_smuggle_te_identity_chunked_01": (501, "RFC 9112 6.1"),
    # Transfer-Encoding beside Content-Length: one of the ways to smuggle a request. The other corpus refuses it too.
    "valid-009": (400, "RFC 9112 6.3"),
    # The target * is for OPTIONS only; the other corpus refuses it for GET.
    "method: M-SEARCH request": (400, "RFC 9112 3.2.4"),
    # Other protocols, and HTTP/0.9, which HTTP/1.1 no longer has to speak.
    "method: SOURCE request with ICE": (400, "RFC 9112 3"),
    "method: OPTIONS request with RTSP": (400, "RFC 9112 3"),
    "method: ANNOUNCE request with RTSP": (400, "RFC 9112 3"),
    "sample: No HTTP version": (400, "RFC 9112 3"),
    # The input ends before the announced body does: the head is right, but no application is called for half a request.
    # With ``end=False`` the test shows that only the end is what is wrong.
    "valid-099": (400, "RFC 9112 8"),
    "pipelining: Should parse multiple events": (400, "RFC 9112 8"),
    "content-length: Spaces in `Content-Length` (surrounding)": (400, "RFC 9112 8"),
    "content-length: Tabs in `Content-Length` (surrounding)": (400, "RFC 9112 8"),
    "content-length: Content-Length reset when no body is received": (400, "RFC 9112 8"),
    "transfer-encoding: Parsing and setting flag": (400, "RFC 9112 8"),
    "transfer-encoding: Chunk extensions": (400, "RFC 9112 8"),
    "transfer-encoding: Chunk extensions quoting": (400, "RFC 9112 8"),
}
"""Accepted there, refused here: id -> (status, section)."""

LAXER = {
    # A request line of 4,116 bytes: a server should take 8,000. With a limit of 4,094 it is refused (see below).
    "invalid-006": ("PUT", "RFC 9112 3"),
    # Any token is a method; which ones it knows is the application's matter (RFC 9110 9.1).
    "invalid: HTTP protocol and ANNOUNCE method": ("ANNOUNCE", "RFC 9112 3.1"),
    "invalid: Invalid method": ("MKCOLA", "RFC 9112 3.1"),
    # Raw octets beyond ASCII in a path reach the application as they are; the other corpus accepts them.
    "uri: Disallow UTF-8 in URI path in strict mode": ("GET", "RFC 9112 3.2"),
    # The first request is answered, and the connection closed without a look at what follows. So has the other corpus.
    "connection: No restart when keep-alive is off (1.0)": ("PUT", "RFC 9112 9.6"),
}
"""Refused there, accepted here: id -> (method of the one request that is seen, section)."""

HOSTLESS = frozenset(
    {
        "valid-004",
        "valid-005",
        "valid-006",
        "valid-007",
        "valid-009",
        "valid-010",
        "valid-011",
        "valid-012",
        "valid-013",
        "valid-014",
        "valid-018",
        "valid-021",
        "valid-022",
        "valid-023",
        "valid-025",
        "valid-025_line",
        "valid-029",
        "valid-030",
        "valid-031",
        "valid-100",
        "connection: Setting flag",
        "connection: Restarting when keep-alive is explicitly",
        "connection: Setting flag on `close`",
        "connection: Setting flag on `close` followed by tab",
        "content-length: `Content-Length` with zeroes",
        "content-length: `Content-Length` with follow-up headers",
        "content-length: Spaces in `Content-Length` (surrounding)",
        "content-length: Tabs in `Content-Length` (surrounding)",
        "content-length: Content-Length reset when no body is received",
        "method: REPORT request",
        "pipelining: Should parse multiple events",
        "sample: Simple request",
        "sample: Request with method starting with `H`",
        "sample: DUMBPACK",
        "sample: No headers and no body",
        "sample: One header and no body",
        "sample: Prefix newline",
        "sample: Request starting with CRLF",
        "sample: Extended Characters",
        "sample: 255 ASCII in header value",
        "transfer-encoding: Parsing and setting flag",
        "transfer-encoding: Parse chunks with lowercase size",
        "transfer-encoding: Parse chunks with uppercase size",
        "transfer-encoding: POST with `Transfer-Encoding: chunked`",
        "transfer-encoding: Two chunks and triple zero prefixed end chunk",
        "transfer-encoding: Trailing headers",
        "transfer-encoding: Chunk extensions",
        "transfer-encoding: Chunk extensions quoting",
        "transfer-encoding: POST with `chunked` as last transfer-encoding",
        "transfer-encoding: POST with `chunked` as last transfer-encoding (multiple headers)",
        "uri: Quotes in URI",
        "uri: Query URL with question mark",
        "uri: Host terminated by a query string",
        "uri: `host:port` terminated by a query string",
        "uri: Query URL with vertical bar character",
        "uri: `host:port` terminated by a space",
        "uri: Fragment in URI",
        "uri: `host:port` and basic auth",
    }
)
"""Accepted there, refused here because an HTTP/1.1 request has no Host (400, RFC 9112 3.2); run again with one."""

CASES = load_cases()


def lacks_host(outcome: Outcome) -> bool:
    return outcome.error is not None and "has no Host" in outcome.error.message


def drive_all_ways(data: bytes) -> Outcome:
    """Return the outcome of ``data`` sent whole; a byte at a time and cut at each line end it is the same."""
    whole = feed(data)
    assert drive(make_wire(), cut_everywhere(data)).seen == whole.seen
    for pieces in cut_at_line_ends(data):
        assert drive(make_wire(), pieces).seen == whole.seen
    return whole


def report(outcome: Outcome) -> list[Seen]:
    """Return the requests of an outcome as the corpora write them."""
    return [
        Seen(
            request.method,
            request.target,
            request.protocol,
            tuple((name.upper(), value) for name, value in request.field_list),
            body,
        )
        for request, body in outcome.requests
    ]


@pytest.mark.parametrize("name", CASES)
def test_corpus(name: str) -> None:
    case = CASES[name]
    data = case.data
    outcome = drive_all_ways(data)
    inserted = lacks_host(outcome)
    if not case.rejected:
        assert inserted == (name in HOSTLESS)
    if inserted:
        data = case.insert_host()
        outcome = drive_all_ways(data)
    if name in STRICTER:
        assert outcome.error is not None
        assert (outcome.error.status, outcome.error.section) == STRICTER[name]
        if outcome.error.section == "RFC 9112 8":
            assert feed(data, end=False).error is None
    elif name in LAXER:
        assert outcome.error is None
        assert [request.method for request, _ in outcome.requests] == [LAXER[name][0]]
    else:
        assert case.agrees(report(outcome), outcome.error is not None, inserted)
    if outcome.error is not None:
        assert 400 <= outcome.error.status <= 505
        assert not outcome.kept


def test_differences_are_of_cases_that_exist() -> None:
    assert {*STRICTER, *LAXER, *HOSTLESS} <= set(CASES)
    assert all(CASES[name].rejected for name in LAXER)
    assert all(not CASES[name].rejected for name in STRICTER)


def test_the_long_request_line_is_refused_with_the_limit_of_its_corpus() -> None:
    outcome = feed(CASES["invalid-006"].data, request_line=4094)
    assert outcome.error is not None
    assert outcome.error.status == 414
