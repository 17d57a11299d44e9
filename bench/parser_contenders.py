"""The HTTP parsers that ``bench.parsers`` compares, each behind the same two functions. Measures nothing.

``take`` does what a server does with one head on a new connection, as cheaply as that parser lets it: method, target,
path, query and fields as text. ``read`` gives the outcome of a whole input, pipelined requests and bodies too.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from email.errors import MessageError
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from typing import Any

from bench.corpora import Seen
from gateways.core.errors import GatewayError
from gateways.core.limits import WireLimits
from gateways.core.request import Endpoint
from gateways.wire.http import HTTPWire

Reading = tuple[list[Seen], bool]
"""The requests that came out, and whether the input was refused (or ended in the middle)."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A parser and its version."""

    name: str
    take: Callable[[bytes], object]
    read: Callable[[bytes], Reading]


# gateways.

_ENDPOINT = Endpoint("localhost", "8000")
_LIMITS = WireLimits()


def take_ours(head: bytes) -> object:
    """Return the request of one head, by our wire."""
    wire = HTTPWire(_ENDPOINT, None, _LIMITS)
    wire.receive(head)
    return wire.take_request()


def read_ours(data: bytes) -> Reading:
    """Return the outcome of ``data`` by our wire, with an application that reads each body."""
    wire = HTTPWire(_ENDPOINT, None, _LIMITS)
    wire.receive(data)
    wire.receive(b"")
    seen: list[Seen] = []
    try:
        while (request := wire.take_request()) is not None and wire.body_ready():
            body = b""
            while piece := wire.take_body(65536):
                body += piece
            fields = tuple((name.upper(), value) for name, value in request.field_list)
            seen.append(Seen(request.method, request.target, request.protocol, fields, body))
            wire.format_response("200 OK", [], b"", False)
            if not wire.finish():
                break
    except GatewayError:
        return seen, True
    return seen, False


# httptools.


class Collector:
    """The callbacks of httptools, collecting what a server needs."""

    __slots__ = ("body", "complete", "complete_requests", "fields", "headed", "parser", "target", "tools")

    def __init__(self, tools: Any) -> None:
        self.tools = tools
        self.complete_requests: list[Seen] = []
        self.parser = tools.HttpRequestParser(self)
        self.on_message_begin()

    def on_message_begin(self) -> None:
        self.target = b""
        self.fields: list[tuple[str, str]] = []
        self.body = b""
        self.headed = self.complete = False

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.headed = True

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete = True
        self.headed = False
        fields = tuple((name.upper(), value) for name, value in self.fields)
        method, version = self.parser.get_method().decode("latin-1"), self.parser.get_http_version()
        self.complete_requests.append(Seen(method, self.target.decode("latin-1"), f"HTTP/{version}", fields, self.body))


class HeadCollector(Collector):
    """The same without what only the corpora ask for."""

    __slots__ = ("taken",)

    def on_message_complete(self) -> None:
        url = self.tools.parse_url(self.target)
        path, query = url.path or b"", url.query or b""
        parser = self.parser
        self.taken = (
            parser.get_method().decode("latin-1"),
            self.target.decode("latin-1"),
            path.decode("latin-1"),
            query.decode("latin-1"),
            parser.get_http_version(),
            parser.should_keep_alive(),
            self.fields,
        )


def make_httptools() -> Contender:
    """Return llhttp by way of httptools."""
    tools = import_module("httptools")

    def take(head: bytes) -> object:
        collector = HeadCollector(tools)
        collector.parser.feed_data(head)
        return collector.taken

    def read(data: bytes) -> Reading:
        collector = Collector(tools)
        try:
            collector.parser.feed_data(data)
        except tools.HttpParserUpgrade:
            return collector.complete_requests, False
        except (tools.HttpParserError, ValueError):
            return collector.complete_requests, True
        ended_inside = not collector.complete and (collector.headed or bool(collector.target or collector.fields))
        return collector.complete_requests, ended_inside or not collector.complete_requests

    return Contender(f"httptools {tools.__version__}", take, read)


# h11.


def make_h11() -> Contender:
    """Return h11, which gives events."""
    h11 = import_module("h11")

    def take(head: bytes) -> object:
        connection = h11.Connection(h11.SERVER)
        connection.receive_data(head)
        event = connection.next_event()
        target = event.target.decode("latin-1")
        path, _, query = target.partition("?")
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers]
        return event.method.decode("latin-1"), target, path, query, event.http_version, fields

    def read(data: bytes) -> Reading:
        seen: list[Seen] = []
        connection = h11.Connection(h11.SERVER)
        connection.receive_data(data)
        connection.receive_data(b"")
        request, body = None, b""
        try:
            while True:
                event = connection.next_event()
                if isinstance(event, h11.Request):
                    request, body = event, b""
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage) and request is not None:
                    fields = tuple((n.decode("latin-1").upper(), v.decode("latin-1")) for n, v in request.headers)
                    target, version = request.target.decode("latin-1"), request.http_version.decode("latin-1")
                    seen.append(Seen(request.method.decode("latin-1"), target, f"HTTP/{version}", fields, body))
                    request = None
                    connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                    connection.send(h11.EndOfMessage())
                    if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                        return seen, False
                    connection.start_next_cycle()
                else:
                    return seen, request is not None
        except h11.ProtocolError:
            return seen, True

    return Contender(f"h11 {h11.__version__}", take, read)


def make_ours() -> Contender:
    """Return our wire."""
    return Contender("gateways", take_ours, read_ours)


# The standard library.


class StandardHandler(BaseHTTPRequestHandler):
    """The head parser of ``http.server`` without its socket."""

    def __init__(self, data: bytes) -> None:
        self.rfile = io.BufferedReader(io.BytesIO(data))
        self.wfile = io.BytesIO()
        self.close_connection = True

    def parse_one(self) -> bool:
        """Parse one head; False when it was refused. ``raw_requestline`` is empty at the end of input."""
        self.raw_requestline = self.rfile.readline(65537)
        return bool(self.raw_requestline) and self.parse_request()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.close_connection = True


def make_standard() -> Contender:
    """Return ``http.server``, which leaves bodies to its user: here by Content-Length only."""

    def take(head: bytes) -> object:
        handler = StandardHandler(head)
        handler.parse_one()
        path, _, query = handler.path.partition("?")
        return handler.command, handler.path, path, query, handler.request_version, handler.headers.items()

    def read(data: bytes) -> Reading:
        seen: list[Seen] = []
        handler = StandardHandler(data)
        try:
            while True:
                if not handler.parse_one():
                    return seen, bool(handler.raw_requestline)
                size = int(handler.headers.get("Content-Length") or 0)
                body = handler.rfile.read(size)
                fields = tuple((name.upper(), value) for name, value in handler.headers.items())
                seen.append(Seen(handler.command, handler.path, handler.request_version, fields, body))
                if len(body) < size:
                    return seen, True
                if handler.close_connection:
                    return seen, False
        except (ValueError, OverflowError, MessageError):
            return seen, True

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Contender(f"http.server {python}", take, read)


def find_contenders() -> list[Contender]:
    """Return the parsers that are installed, ours first."""
    found = []
    for make in (make_ours, make_httptools, make_h11, make_standard):
        try:
            found.append(make())
        except ModuleNotFoundError as error:
            print(f"left out: {error.name} is not installed", file=sys.stderr)
    return found
