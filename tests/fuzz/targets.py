"""The wires as rows: how each is made for a fuzzer, what it may hold, how its replies are read, and framed requests."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gateways.core.interfaces import Wire
from gateways.core.limits import WireLimits
from gateways.core.request import Endpoint
from gateways.wire.ajp import AJPWire
from gateways.wire.ajp_checks import FrontRules
from gateways.wire.fastcgi import FastCGIWire
from gateways.wire.http import HTTPWire
from gateways.wire.scgi import SCGIWire
from gateways.wire.uwsgi import UwsgiWire
from tests.clients import ajp, fastcgi, scgi, uwsgi
from tests.fuzz.choices import Choices
from tests.fuzz.replies import Reply, read_ajp, read_fastcgi, read_http, read_scgi, read_uwsgi

PEER = ("127.0.0.1", 40000)
ENDPOINTS = (Endpoint("server.example", "8080"), Endpoint("server.example", "8080", lambda address: True))
SECRET = "s3cret"
SMALL_HEAD = 400
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
LONGEST_RECORD = 8 + 65535 + 255
SLACK = 16
NEVER, UNREAD, ALWAYS = range(3)


@dataclass(frozen=True, slots=True)
class Target:
    """One wire.

    ``bound(choices)``: the most bytes that it may hold while it waits for more. ``wrap(body, choices)``: a POST to
    ``/body``. ``follow(choices)``: a GET of ``/next`` for the same connection. ``keeps``: a connection can carry a
    second request. ``closes``: it ends when the driver asks for that. ``exact``: body bytes stand in the input as they
    are, so that the place of the next request can be computed. ``hasty(stream)``: whether what the input comes to may
    depend on when it comes: ``NEVER``, if a body is left ``UNREAD``, ``ALWAYS``. ``amplifies``: the most bytes that a
    byte of input may cause to be sent.
    """

    name: str
    make: Callable[[Choices], Wire]
    bound: Callable[[Choices], int]
    wrap: Callable[[bytes, Choices], bytes]
    follow: Callable[[Choices], bytes]
    read_reply: Callable[[bytes, str], Reply]
    keeps: bool
    closes: bool
    exact: bool
    hasty: Callable[[bytes], int]
    amplifies: int = 1


def endpoint(choices: Choices) -> Endpoint:
    """The listener, with or without trust in its peers."""
    return ENDPOINTS[choices.trusted]


def never(stream: bytes) -> int:
    """Nothing depends on time."""
    return NEVER


# HTTP.


def make_http(choices: Choices) -> Wire:
    return HTTPWire(endpoint(choices), PEER, choices.limits, lambda: DATE)


def bound_http(choices: Choices) -> int:
    limits: WireLimits = choices.limits
    return max(limits.head, limits.buffered_body + max(limits.chunk_line, limits.trailer)) + SLACK


def wrap_http(body: bytes, choices: Choices) -> bytes:
    head = b"POST /body HTTP/1.1\r\nHost: server.example\r\n"
    if not choices.unsized:
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    size = choices.sizes[0]
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def follow_http(choices: Choices) -> bytes:
    return b"GET /next HTTP/1.1\r\nHost: server.example\r\n\r\n"


def hasty_http(stream: bytes) -> int:
    # The application is called at once for a body that is waited with; it arrives, or does not, before that.
    return UNREAD if b"100-continue" in stream.lower() else NEVER


# FastCGI.

_PAIRS = [
    (b"REQUEST_METHOD", b"POST"), (b"SCRIPT_NAME", b""), (b"PATH_INFO", b"/body"), (b"QUERY_STRING", b""),
    (b"SERVER_PROTOCOL", b"HTTP/1.1"), (b"REMOTE_ADDR", b"192.0.2.7"), (b"SERVER_NAME", b"www.example.com"),
    (b"SERVER_PORT", b"80"),
]  # fmt: skip
_NEXT_PAIRS = [(b"REQUEST_METHOD", b"GET"), (b"SCRIPT_NAME", b""), (b"PATH_INFO", b"/next")]


def make_fastcgi(choices: Choices) -> Wire:
    longest = SMALL_HEAD if choices.strict else 1 << 20
    return FastCGIWire(endpoint(choices), PEER, choices.limits, max_params=longest)


def bound_fastcgi(choices: Choices) -> int:
    return LONGEST_RECORD + choices.limits.buffered_body


def wrap_fastcgi(body: bytes, choices: Choices) -> bytes:
    length = [] if choices.unsized else [(b"CONTENT_LENGTH", b"%d" % len(body))]
    params = b"".join(fastcgi.nv(name, value) for name, value in [*_PAIRS, *length])
    return (
        fastcgi.begin(1)
        + fastcgi.stream(fastcgi.PARAMS, params)
        + fastcgi.stream(fastcgi.STDIN, body, 1, choices.sizes[0], choices.sizes[1] & 7)
    )


def follow_fastcgi(choices: Choices) -> bytes:
    return fastcgi.request(_NEXT_PAIRS, keep=1)


def hasty_fastcgi(stream: bytes) -> int:
    # An abort counts from when it is seen, also by an application that reads all.
    at = 0
    while at + 8 <= len(stream) and stream[at] == 1:
        if stream[at + 1] == fastcgi.ABORT:
            return ALWAYS
        at += 8 + int.from_bytes(stream[at + 4 : at + 6]) + stream[at + 6]
    return NEVER


# SCGI.


def make_scgi(choices: Choices) -> Wire:
    return SCGIWire(endpoint(choices), PEER, choices.limits, SMALL_HEAD if choices.strict else 1 << 20)


def bound_scgi(choices: Choices) -> int:
    return (SMALL_HEAD if choices.strict else 1 << 20) + choices.limits.buffered_body + SLACK


def wrap_scgi(body: bytes, choices: Choices) -> bytes:
    return scgi.request(_PAIRS, body)


def follow_scgi(choices: Choices) -> bytes:
    return scgi.request(_NEXT_PAIRS)


# uwsgi.


def make_uwsgi(choices: Choices) -> Wire:
    return UwsgiWire(endpoint(choices), PEER, choices.limits)


def bound_uwsgi(choices: Choices) -> int:
    return min(choices.limits.head, 65535) + choices.limits.buffered_body + SLACK


def wrap_uwsgi(body: bytes, choices: Choices) -> bytes:
    return uwsgi.packet([*_PAIRS, (b"CONTENT_LENGTH", b"%d" % len(body))], body)


def follow_uwsgi(choices: Choices) -> bytes:
    return uwsgi.packet(_NEXT_PAIRS)


# AJP.


def make_ajp(choices: Choices) -> Wire:
    pattern = re.compile("LET_.*") if choices.loose else None
    secret = SECRET if choices.strict else ""
    return AJPWire(endpoint(choices), PEER, choices.limits, FrontRules(secret, choices.loose, pattern))


def bound_ajp(choices: Choices) -> int:
    return 8192 + choices.limits.buffered_body


def attributes_ajp(choices: Choices) -> bytes:
    return ajp.attribute(ajp.SECRET, SECRET) if choices.strict else b""


def wrap_ajp(body: bytes, choices: Choices) -> bytes:
    size = min(choices.sizes[0], 8186)
    framing = ("Transfer-Encoding", "chunked") if choices.unsized else ("Content-Length", str(len(body)))
    pieces = [ajp.body(body[at : at + size]) for at in range(0, len(body), size)]
    end = [ajp.EMPTY] if choices.unsized else []
    return b"".join([ajp.forward("POST", "/body", [framing], attributes_ajp(choices)), *pieces, *end])


def follow_ajp(choices: Choices) -> bytes:
    return ajp.forward("GET", "/next", attributes=attributes_ajp(choices))


TARGETS = {
    target.name: target
    for target in (
        Target(
            "http", make_http, bound_http, wrap_http, follow_http, read_http,
            keeps=True, closes=True, exact=True, hasty=hasty_http,
        ),
        Target(
            "fastcgi", make_fastcgi, bound_fastcgi, wrap_fastcgi, follow_fastcgi, read_fastcgi,
            keeps=True, closes=False, exact=False, hasty=hasty_fastcgi, amplifies=3,
        ),
        Target(
            "scgi", make_scgi, bound_scgi, wrap_scgi, follow_scgi, read_scgi,
            keeps=False, closes=True, exact=False, hasty=never,
        ),
        Target(
            "ajp", make_ajp, bound_ajp, wrap_ajp, follow_ajp, read_ajp,
            keeps=True, closes=True, exact=False, hasty=never, amplifies=2,
        ),
        Target(
            "uwsgi", make_uwsgi, bound_uwsgi, wrap_uwsgi, follow_uwsgi, read_uwsgi,
            keeps=False, closes=True, exact=False, hasty=never,
        ),
    )
}  # fmt: skip
