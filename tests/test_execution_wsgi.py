"""The wsgi model against PEP 3333, on a fake exchange: what it hands over and what it refuses."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.validate import validator

import pytest
from werkzeug.middleware.lint import LintMiddleware

from gateways.core.errors import LocalProtocolError
from gateways.execution.wsgi import FileWrapper, Input, WSGIModel
from tests.exchanges import FakeExchange, make_request

PLAIN = [("Content-Type", "text/plain")]


def run(application: Callable[..., Iterable[bytes]], exchange: FakeExchange | None = None) -> FakeExchange:
    """Run one exchange through the model; what a driver does at the end (an empty body) is not done here."""
    exchange = exchange or FakeExchange()
    model = WSGIModel(lambda: application)
    model.load()
    model.run(exchange)
    return exchange


class Pieces:
    """An iterable that counts how often it is closed."""

    def __init__(self, *pieces: Any) -> None:
        self.pieces = pieces
        self.closed = 0

    def __iter__(self) -> Iterator[Any]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def close(self) -> None:
        self.closed += 1


def answering(result: Any, status: str = "200 OK", fields: list[tuple[str, str]] = PLAIN) -> Callable[..., Any]:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        start_response(status, list(fields))
        return result

    return application


def test_a_list_of_one_piece_goes_out_whole() -> None:
    exchange = run(answering([b"hello"]))
    assert (exchange.status, exchange.body, exchange.whole) == ("200 OK", b"hello", True)


@pytest.mark.parametrize(
    ("ident", "pieces", "body"),
    [
        ("B080-empty-piece-first", (b"", b"Test"), b"Test"),
        ("B080-zero", (b"0",), b"0"),
        ("B080-only-empty", (b"",), b""),
        ("several", (b"a", b"b", b"c"), b"abc"),
        ("nothing", (), b""),
        ("B083-nul", (b"Hell\0, World!",), b"Hell\0, World!"),
    ],
)
@pytest.mark.parametrize("kind", [list, tuple, iter, lambda pieces: Pieces(*pieces)])
def test_body_pieces(ident: str, pieces: tuple[bytes, ...], body: bytes, kind: Callable[[Any], Any]) -> None:
    exchange = run(answering(kind(pieces)))
    assert exchange.started
    assert exchange.body == body
    assert exchange.status == "200 OK"


def test_close_is_called_once_after_the_body() -> None:
    result = Pieces(b"a", b"b")
    run(answering(result))
    assert result.closed == 1


def test_close_is_called_when_the_application_fails_in_the_middle() -> None:
    result = Pieces(b"a", RuntimeError("broken"))
    with pytest.raises(RuntimeError, match="broken"):
        run(answering(result))
    assert result.closed == 1


def test_close_is_called_when_a_piece_is_not_bytes() -> None:
    result = Pieces("text")
    with pytest.raises(TypeError, match="bytes, not str"):
        run(answering(result))
    assert result.closed == 1


def test_start_response_called_by_the_first_iteration() -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        start_response("200 OK", list(PLAIN))
        yield b"late"

    assert run(application).body == b"late"


def test_no_start_response_is_an_error_of_the_application() -> None:
    with pytest.raises(LocalProtocolError, match="before it called start_response"):
        run(lambda environ, start_response: [b"x"])


def test_start_response_twice_without_exc_info_is_refused() -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [])
        start_response("200 OK", [])
        return []

    with pytest.raises(LocalProtocolError, match="twice"):
        run(application)


def test_exc_info_replaces_a_head_that_has_not_gone() -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [])
        try:
            raise ValueError("oops")
        except ValueError as error:
            start_response("500 Oops", list(PLAIN), (ValueError, error, error.__traceback__))
        return [b"sorry"]

    exchange = run(application)
    assert (exchange.status, exchange.body) == ("500 Oops", b"sorry")


def test_exc_info_after_the_head_has_gone_is_raised_again() -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        start_response("200 OK", [])
        yield b"half"
        try:
            raise ValueError("oops")
        except ValueError as error:
            start_response("500 Oops", [], (ValueError, error, error.__traceback__))

    with pytest.raises(ValueError, match="oops"):
        run(application)


def test_the_write_callable_sends_before_the_iterable() -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        write = start_response("200 OK", list(PLAIN))
        write(b"first ")
        write(b"second ")
        return [b"third"]

    assert run(application).body == b"first second third"


@pytest.mark.parametrize(
    ("ident", "status", "fields", "error"),
    [
        ("B092-status-with-crlf", "200 OK\r\nX: y", [], LocalProtocolError),
        ("status-without-reason-space", "200", [], LocalProtocolError),
        ("status-1xx", "103 Early Hints", [], LocalProtocolError),
        ("fields-not-a-list", "200 OK", (("a", "b"),), TypeError),
    ],
)
def test_a_bad_head_is_refused_at_start_response(ident: str, status: str, fields: Any, error: type[Exception]) -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response(status, fields)
        return [b""]

    with pytest.raises(error):
        run(application)


def test_the_environ_is_a_dict_of_what_pep_3333_names() -> None:
    seen: dict[str, Any] = {}

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        seen.update(environ)
        assert type(environ) is dict
        start_response("200 OK", [])
        return []

    request = make_request("GET", "/a/b?c=%20d", [("X-One", "1"), ("X-One", "2"), ("Cookie", "a=1"), ("Cookie", "b=2")])
    run(application, FakeExchange(request))
    expected = {
        "REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": "/a/b", "QUERY_STRING": "c=%20d",
        "SERVER_NAME": "example.com", "SERVER_PORT": "8000", "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "example.com",
        "HTTP_X_ONE": "1, 2", "HTTP_COOKIE": "a=1; b=2", "wsgi.version": (1, 0), "wsgi.url_scheme": "http",
        "wsgi.multithread": False, "wsgi.run_once": False, "wsgi.input_terminated": True,
    }  # fmt: skip
    assert {name: seen.get(name) for name in expected} == expected
    assert "CONTENT_LENGTH" not in seen
    assert not any(name.startswith("HTTP_CONTENT_") for name in seen)


def test_https_from_the_front_sets_the_scheme() -> None:
    seen: dict[str, Any] = {}
    request = make_request(fields=[("X-Forwarded-Proto", "https")])
    request.endpoint.trusted = lambda address: True

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        seen.update(environ)
        start_response("200 OK", [])
        return []

    run(application, FakeExchange(request))
    assert seen["wsgi.url_scheme"] == "https"


@pytest.mark.parametrize("lint", [validator, LintMiddleware])
@pytest.mark.filterwarnings("error")
def test_the_servers_side_passes_the_linters(lint: Callable[[Any], Any]) -> None:
    """wsgiref's validator and werkzeug's lint check the environ, the input, the errors and the calls."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        data = environ["wsgi.input"].read(5)
        environ["wsgi.input"].read(0)
        environ["wsgi.errors"].write("a message\n")
        environ["wsgi.errors"].flush()
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(data)))])
        return [data]

    request = make_request("POST", "/x", [("Content-Type", "text/plain"), ("Content-Length", "11")], 11)
    exchange = run(lint(application), FakeExchange(request, b"hello world"))
    assert exchange.body == b"hello"
    assert exchange.log.records == [("error", "a message")]


class TestInput:
    """wsgi.input ends where the body ends, and never waits beyond it."""

    def make(self, body: bytes) -> Input:
        return Input(FakeExchange(body=body))

    def test_B081_reading_past_the_end_returns_at_once(self) -> None:
        stream = self.make(b"abcd")
        assert (stream.read(), stream.read(100), stream.read()) == (b"abcd", b"", b"")

    def test_B053_readline_of_a_body_without_newline(self) -> None:
        stream = self.make(b"a" * 5000)
        assert (stream.readline(), stream.readline()) == (b"a" * 5000, b"")

    @pytest.mark.parametrize("size", range(1, 14))
    def test_B053_readline_with_a_size(self, size: int) -> None:
        body = b"one\ntwo\n\nthree"
        ours, theirs = self.make(body), io.BytesIO(body)
        for _ in range(20):
            assert ours.readline(size) == theirs.readline(size)

    def test_B053_readlines_with_a_hint(self) -> None:
        body = b"one\ntwo\nthree\nfour"
        for hint in range(-1, 20):
            assert self.make(body).readlines(hint) == io.BytesIO(body).readlines(hint)

    def test_iteration_gives_lines(self) -> None:
        assert list(self.make(b"a\nb\nc")) == [b"a\n", b"b\n", b"c"]

    def test_mixed_reads_see_every_byte_once(self) -> None:
        stream = self.make(b"line\nrest of it")
        assert (stream.readline(), stream.read(4), stream.read(0), stream.read(None)) == (
            b"line\n",
            b"rest",
            b"",
            b" of it",
        )

    def test_read_fills_its_size_over_short_reads(self) -> None:
        class Trickle(FakeExchange):
            def read(self, size: int = -1) -> bytes:
                return super().read(min(size, 3))

        assert Input(Trickle(body=b"0123456789")).read(8) == b"01234567"


class TestErrors:
    def test_B006_two_writes_are_two_records(self) -> None:
        def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
            environ["wsgi.errors"].write("a")
            environ["wsgi.errors"].writelines(["b", "c\n"])
            print("printed", file=environ["wsgi.errors"])
            start_response("200 OK", [])
            return []

        assert [text for _, text in run(application).log.records] == ["a", "b", "c", "printed"]


class TestFileWrapper:
    def serve(self, file: Any, fields: list[tuple[str, str]] = PLAIN) -> FakeExchange:
        def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
            start_response("200 OK", list(fields))
            return environ["wsgi.file_wrapper"](file, 100)

        return run(application)

    def test_B051_a_file_is_sent_from_its_offset(self) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(b"x" * 100 + b"y" * 50)
            file.flush()
            file.seek(100)
            exchange = self.serve(file)
        assert exchange.files == [(100, 50)]
        assert ("Content-Length", "50") in exchange.fields
        assert exchange.body == b"y" * 50

    def test_a_content_length_bounds_what_is_sent(self) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(b"x" * 100)
            file.flush()
            file.seek(0)
            assert self.serve(file, [("Content-Length", "7")]).body == b"x" * 7

    def test_B057_objects_without_a_regular_file_are_read(self) -> None:
        class Raising(io.BytesIO):
            def fileno(self) -> int:
                raise OSError("no descriptor")

        reading, writing = os.pipe()
        os.write(writing, b"piped")
        os.close(writing)
        for file in (io.BytesIO(b"bytes"), Raising(b"raise"), os.fdopen(reading, "rb")):
            with file:
                exchange = self.serve(file)
                assert exchange.files == []
                assert len(exchange.body) == 5
                assert file.closed

    def test_B057_a_text_file_is_the_applications_error(self) -> None:
        with tempfile.TemporaryFile("w+") as file:
            file.write("text")
            file.seek(0)
            with pytest.raises(TypeError, match="bytes, not str"):
                self.serve(file)

    def test_close_is_called_once(self) -> None:
        class Counting(io.BytesIO):
            closes = 0

            def close(self) -> None:
                self.closes += 1

        file = Counting(b"x")
        self.serve(file)
        assert file.closes == 1

    def test_it_works_as_an_ordinary_iterable(self) -> None:
        assert list(FileWrapper(io.BytesIO(b"abcde"), 2)) == [b"ab", b"cd", b"e"]
