"""What a connection leaves behind: a thousand requests of mixed kinds, and memory is where it was.

The wire object is driven in process, by the fuzzers' player, which does what the connection loop does. ``http``,
``fastcgi`` and ``ajp`` carry all requests on one connection; ``scgi`` and ``uwsgi`` have a connection for each.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from itertools import cycle, islice

import pytest

from tests.clients import ajp, fastcgi, scgi, uwsgi
from tests.fuzz.choices import ANSWERS, READS, WHOLE, Choices, parse_choices
from tests.fuzz.player import Player
from tests.fuzz.targets import TARGETS, Target

REQUESTS = 1000
SETTLED = 200
"""Requests after which memos and pools are full."""
GROWTH = 2048
"""Bytes that noise may add in 500 to 800 requests."""
KEPT = [answer for answer in ANSWERS if not answer.close and answer.kind != 2]
LARGE = bytes(range(256)) * 40
SMALL = b"GET / HTTP/1.1\r\n\r\n"


def http_requests() -> list[bytes]:
    start = b"POST /a%20b?c HTTP/1.1\r\nHost: a\r\nCookie: c=d\r\n"
    pieces = [LARGE[at : at + 999] for at in range(0, len(LARGE), 999)]
    chunks = b"".join(b"%x;x=y\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return [
        b"GET /x?y HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\n\r\n",
        start + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE,
        start + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nTrailer: x\r\n\r\n",
        b"\r\nHEAD http://a/x HTTP/1.1\r\nHost: a\r\n\r\n",
        start + b"Expect: 100-continue\r\nContent-Length: 18\r\n\r\n" + SMALL,
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nX: " + b"y" * 3000 + b"\r\n\r\n",
    ]


PAIRS = [(b"REQUEST_METHOD", b"POST"), (b"PATH_INFO", b"/x"), (b"SCRIPT_NAME", b""), (b"HTTP_COOKIE", b"a=b")]


def fastcgi_requests() -> list[bytes]:
    sized = [*PAIRS, (b"CONTENT_LENGTH", b"%d" % len(LARGE))]
    values = fastcgi.rec(fastcgi.GET_VALUES, fastcgi.nv(b"FCGI_MAX_CONNS", b""), 0)
    return [
        fastcgi.request([(b"REQUEST_METHOD", b"GET"), (b"PATH_INFO", b"/x")], keep=1),
        fastcgi.request(sized, LARGE, keep=1, size=1000, pad=5),
        values + fastcgi.rec(99, b"x", 0) + fastcgi.request(PAIRS, SMALL, keep=1, rid=7),
        fastcgi.request([(b"REQUEST_METHOD", b"HEAD"), (b"HTTP_X", b"y" * 3000)], keep=1, size=50),
        fastcgi.request(PAIRS, keep=1, role=3) + fastcgi.stream(fastcgi.DATA, LARGE),
    ]


def ajp_requests() -> list[bytes]:
    sized = [("Content-Length", str(len(LARGE))), ("Cookie", "a=b")]
    return [
        ajp.CPING + ajp.forward("GET", "/a%20b", [("Host", "a")], ajp.attribute(ajp.QUERY, "q")),
        ajp.forward("POST", "/x", sized) + ajp.body(LARGE[:8000]) + ajp.body(LARGE[8000:]),
        ajp.forward("PUT", "/x", [("Transfer-Encoding", "chunked")]) + ajp.body(SMALL) + ajp.EMPTY,
        ajp.PING + ajp.forward("HEAD", "/x", [("X", "y" * 3000)]) + ajp.EMPTY,
    ]


def scgi_requests() -> list[bytes]:
    return [scgi.request(PAIRS), scgi.request(PAIRS, LARGE), scgi.request([*PAIRS, (b"HTTP_X", b"y" * 3000)], SMALL)]


def uwsgi_requests() -> list[bytes]:
    magic = (b"UWSGI_FILE", b"/x")
    return [
        uwsgi.request(), uwsgi.request(b"POST", b"/x", body=LARGE),
        uwsgi.request(b"POST", b"/x", b"q", [magic, (b"HTTP_X", b"y" * 3000)], SMALL),
    ]  # fmt: skip


REQUESTS_OF = {
    "http": http_requests,
    "fastcgi": fastcgi_requests,
    "scgi": scgi_requests,
    "ajp": ajp_requests,
    "uwsgi": uwsgi_requests,
}


def mixed_choices() -> Iterator[Choices]:
    """Applications and answers in turn, none of which ends a connection; each with a piece size of its own."""
    base = parse_choices(b"")[0]
    for number in cycle(range(len(KEPT) * len(READS) * 7)):
        yield base._replace(
            answer=KEPT[number % len(KEPT)],
            read=READS[number % len(READS)],
            early=number % 7 == 3,
            first=number % 2 == 1 and KEPT[number % len(KEPT)].kind != WHOLE,
            sizes=(700 + number, 1),
        )


def serve(target: Target, rounds: Iterator[tuple[bytes, Choices]], count: int, player: Player | None) -> Player | None:
    """Serve ``count`` requests, on the player's connection where it is kept; forget what was seen."""
    for data, choices in islice(rounds, count):
        if player is None or not target.keeps:
            player = Player(target, choices)
        player.choices = choices
        size = choices.sizes[0]
        for at in range(0, len(data), size):
            player.feed(data[at : at + size])
        assert len(player.calls) == 1, (data[:60], player.error)
        assert player.open == target.keeps
        assert not player.wire.buffered
        player.calls.clear()
        player.sent.clear()
    return player


def measure(target: Target) -> int:
    """Return the bytes by which memory grew between the first requests and the last."""
    requests = REQUESTS_OF[target.name]()
    rounds = zip(cycle(requests), mixed_choices(), strict=False)
    player = serve(target, rounds, SETTLED, None)
    gc.collect()
    tracemalloc.start()
    try:
        player = serve(target, rounds, 1, player)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        serve(target, rounds, REQUESTS - SETTLED - 1, player)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_a_thousand_requests_of_mixed_kinds_leave_memory_as_it_was(target: Target) -> None:
    """Each body has come whole before the application is called, whether it reads it or not."""
    assert measure(target) < GROWTH


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_peers_that_choose_new_names_each_time_do_not_make_memos_grow(target: Target) -> None:
    """Thousands of requests with a field or variable name of their own: memos stop learning."""
    for number in range(2 * REQUESTS):
        serve_fresh(target, number)
    tracemalloc.start()
    try:
        # A memo that forgets its oldest entries has only traced ones after these.
        for number in range(2 * REQUESTS, 2 * REQUESTS + 200):
            serve_fresh(target, number)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(2 * REQUESTS + 200, 2 * REQUESTS + 700):
            serve_fresh(target, number)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < GROWTH
    finally:
        tracemalloc.stop()


def serve_fresh(target: Target, number: int) -> None:
    """Serve one request on a connection of its own."""
    player = Player(target, parse_choices(b"")[0])
    player.feed(fresh_request(target.name, number))
    assert len(player.calls) == 1


def fresh_request(name: str, number: int) -> bytes:
    """A request with a name, a value and a path that no other has."""
    if name == "http":
        return b"GET /%d HTTP/1.1\r\nHost: h%d\r\nX-%d: %d\r\n\r\n" % (number, number, number, number)
    if name == "ajp":
        return ajp.forward("GET", f"/{number}", [("Host", f"h{number}"), (f"X-{number}", str(number))])
    pairs = [(b"REQUEST_METHOD", b"GET"), (b"PATH_INFO", b"/%d" % number), (b"HTTP_X_%d" % number, b"%d" % number)]
    if name == "scgi":
        return scgi.request(pairs)
    return uwsgi.packet(pairs) if name == "uwsgi" else fastcgi.request(pairs)
