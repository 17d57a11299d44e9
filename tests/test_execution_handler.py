"""The handler model: a raw request object, nothing built that is not asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import pytest

from gateways.core.errors import LocalProtocolError
from gateways.execution.handler import HandlerModel, HandlerRequest
from tests.exchanges import FakeExchange, make_request


def run(handler: Callable[[HandlerRequest], Any], exchange: FakeExchange | None = None) -> FakeExchange:
    exchange = exchange or FakeExchange()
    model = HandlerModel(lambda: handler)
    model.load()
    model.run(exchange)
    return exchange


def test_a_short_page_goes_out_whole() -> None:
    def handler(request: HandlerRequest) -> None:
        request.set_field("Content-Type", "text/plain")
        request.write(b"one ")
        request.write(b"two")

    exchange = run(handler)
    assert (exchange.status, exchange.fields, exchange.body, exchange.whole) == (
        "200 OK", [("Content-Type", "text/plain")], b"one two", True,
    )  # fmt: skip


def test_nothing_is_built_that_is_not_asked_for() -> None:
    request = make_request()
    run(lambda request: request.write(b"x"), FakeExchange(request))
    assert request._metavariables is None
    assert request._fields is None


@pytest.mark.parametrize(
    ("code", "status", "body"),
    [
        (None, "200 OK", b""),
        (0, "200 OK", b""),
        (404, "404 Not Found", b"404 Not Found\n"),
        (503, "503 Service Unavailable", b"503 Service Unavailable\n"),
    ],
)
def test_the_returned_code(code: int | None, status: str, body: bytes) -> None:
    exchange = run(lambda request: code)
    assert (exchange.status, exchange.body) == (status, body)


def test_a_returned_code_keeps_what_was_written() -> None:
    def handler(request: HandlerRequest) -> int:
        request.write(b"my own page")
        return 404

    exchange = run(handler)
    assert (exchange.status, exchange.body) == ("404 Not Found", b"my own page")


@pytest.mark.parametrize("value", [True, "200", 99, 600, b""])
def test_any_other_value_is_refused(value: object) -> None:
    if value is True:
        value = 1
    with pytest.raises(LocalProtocolError, match="returns None or a status code"):
        run(lambda request: value)


def test_status_and_fields() -> None:
    def handler(request: HandlerRequest) -> None:
        request.status = 201
        request.set_field("X-A", "1")
        request.set_field("x-a", "2")
        request.add_field("Set-Cookie", "a=1")
        request.add_field("Set-Cookie", "b=2")
        assert request.status == 201

    exchange = run(handler)
    assert exchange.status == "201 Created"
    assert exchange.fields == [("x-a", "2"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]


def test_more_than_64_KiB_is_streamed() -> None:
    def handler(request: HandlerRequest) -> None:
        for _ in range(10):
            request.write(b"x" * 10000)

    exchange = run(handler)
    assert exchange.body == b"x" * 100000
    assert not exchange.whole


def test_the_request_is_what_the_wire_gave() -> None:
    seen: list[object] = []

    def handler(request: HandlerRequest) -> None:
        seen.extend(
            [request.method, request.target, request.path_info, request.query, request.protocol, request.content_length]
        )
        seen.append(request.fields.get("x-a"))
        seen.append(request.metavariables["HTTP_X_A"])
        seen.append(request.read(3) + request.read())
        seen.append(request.remote_address)

    request = make_request("POST", "/p?q=1", [("X-A", "v")], 5)
    run(handler, FakeExchange(request, b"hello"))
    assert seen == ["POST", "/p?q=1", "/p", "q=1", "HTTP/1.1", 5, "v", "v", b"hello", "127.0.0.1"]


def test_cleanups_and_recycling_reach_the_exchange() -> None:
    def handler(request: HandlerRequest) -> None:
        request.add_cleanup(lambda: None)
        request.recycle()

    exchange = run(handler)
    assert len(exchange.cleanups) == 1
    assert exchange.recycling


def test_send_file_sends_from_the_offset_with_its_length() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"0123456789")
        file.flush()
        exchange = run(lambda request: request.send_file(file, 4))
    assert exchange.files == [(4, 6)]
    assert exchange.fields == [("Content-Length", "6")]
    assert exchange.body == b"456789"


def test_an_internal_redirect_reaches_the_exchange() -> None:
    assert run(lambda request: request.redirect("/other")).redirected == ["/other"]
