"""The load generator against a small server that says exactly what each case wants said."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from bench.load import Job, Result, run_job

ROOT = Path(__file__).resolve().parent.parent
BODY = b"x" * 100
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n"
GOOD = HEAD + b"\r\n" + BODY
CLOSING = HEAD + b"Connection: close\r\n\r\n" + BODY

Script = Callable[[socket.socket], None]


def answer_once(*pieces: bytes) -> Script:
    """A connection's script: read one request, send pieces, end."""

    def script(connection: socket.socket) -> None:
        if read_request(connection):
            for piece in pieces:
                connection.sendall(piece)

    return script


def answer_always(answer: bytes) -> Script:
    """A connection's script: answer each request until the client ends."""

    def script(connection: socket.socket) -> None:
        while read_request(connection):
            connection.sendall(answer)

    return script


def read_request(connection: socket.socket) -> bytes:
    """Read up to the end of a request's head; ``b""`` at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(4096)
        if not more:
            return b""
        data += more
    return data


@contextmanager
def serve(script: Script) -> Iterator[int]:
    """Run a script for each connection, each in its thread; give the port, and end with everything joined."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def run(connection: socket.socket) -> None:
        with connection:
            try:
                script(connection)
            except ConnectionError:
                pass

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            if stopping.is_set():
                connection.close()
                return
            threads.append(threading.Thread(target=run, args=(connection,)))
            threads[-1].start()

    stopping = threading.Event()
    port = listener.getsockname()[1]
    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield port
    finally:
        stopping.set()
        socket.create_connection(("127.0.0.1", port)).close()
        acceptor.join()
        listener.close()
        for thread in threads:
            thread.join()


def make_job(port: int, **changes: object) -> Job:
    """A job of few requests that is bounded by their number, not by time."""
    settings: dict[str, object] = {
        "port": port, "path": "/", "length": 100, "digest": sha256(BODY).hexdigest(), "seconds": 20.0, "count": 20,
        "timeout": 10.0,
    }  # fmt: skip
    return Job(**{**settings, **changes})  # type: ignore[arg-type]


def total(result: Result) -> int:
    return sum(count for _, count in result.latencies)


@pytest.mark.parametrize("concurrency", [1, 5])
def test_every_request_has_a_connection_without_keep_alive(concurrency: int) -> None:
    with serve(answer_once(GOOD)) as port:
        result = run_job(make_job(port, concurrency=concurrency))
    assert (result.error, result.requests, result.connections, total(result)) == ("", 20, 20, 20)


@pytest.mark.parametrize("concurrency", [1, 5])
def test_connections_are_kept_with_keep_alive(concurrency: int) -> None:
    with serve(answer_always(GOOD)) as port:
        result = run_job(make_job(port, concurrency=concurrency, keep_alive=True))
    assert (result.error, result.requests, result.connections) == ("", 20, concurrency)


@pytest.mark.parametrize("concurrency", [1, 5])
def test_a_server_that_closes_kept_connections_is_asked_on_new_ones(concurrency: int) -> None:
    with serve(answer_once(CLOSING)) as port:
        result = run_job(make_job(port, concurrency=concurrency, keep_alive=True))
    assert (result.error, result.requests, result.connections) == ("", 20, 20)


@pytest.mark.parametrize("keep_alive", [False, True])
def test_an_answer_in_pieces_is_put_together(keep_alive: bool) -> None:
    with serve(answer_once(*[CLOSING[i : i + 7] for i in range(0, len(CLOSING), 7)])) as port:
        result = run_job(make_job(port, keep_alive=keep_alive))
    assert (result.error, result.requests) == ("", 20)


WRONG = [
    ("body too short", HEAD + b"\r\n" + BODY[:99], "a body of 99 bytes, not 100"),
    ("body too long", GOOD + b"!", "a body of 101 bytes, not 100"),
    ("other bytes", HEAD + b"\r\n" + b"y" * 100, "the body has the right length and wrong bytes"),
    ("status", GOOD.replace(b"200 OK", b"503 No"), "status 503, not 200"),
    ("no answer", b"", "the connection was closed without an answer"),
    ("cut in the head", HEAD, "the connection was closed inside the head"),
    ("not HTTP", b"hello\r\n\r\n" + BODY, "not an HTTP answer"),
]


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("keep_alive", [False, True])
@pytest.mark.parametrize(("answer", "error"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_answer_ends_the_job_with_its_reason(
    answer: bytes, error: str, keep_alive: bool, concurrency: int
) -> None:
    with serve(answer_once(answer)) as port:
        result = run_job(make_job(port, keep_alive=keep_alive, concurrency=concurrency))
    assert error in result.error
    assert result.requests == 0


def test_a_refused_connection_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    result = run_job(make_job(port))
    assert result.error == "Connection refused (after 0 answers)"


@pytest.mark.parametrize("concurrency", [1, 3])
def test_an_answer_that_never_comes_is_an_error(concurrency: int) -> None:
    with serve(lambda connection: connection.recv(1) and connection.recv(4096) and connection.recv(1)) as port:  # type: ignore[arg-type,return-value]
        result = run_job(make_job(port, concurrency=concurrency, seconds=0.1, timeout=0.1))
    assert "still missing" in result.error


def test_the_process_takes_a_job_a_line() -> None:
    with serve(answer_once(GOOD)) as port:
        job = {"port": port, "path": "/", "length": 100, "digest": sha256(BODY).hexdigest(), "seconds": 20, "count": 3}
        lines = json.dumps(job) + "\n" + json.dumps({**job, "length": 101}) + "\n"
        done = subprocess.run(
            [sys.executable, "-m", "bench.load"], input=lines, capture_output=True, text=True, cwd=ROOT, timeout=60,
            check=True,
        )  # fmt: skip
    good, bad = map(json.loads, done.stdout.splitlines())
    assert (good["requests"], good["error"]) == (3, "")
    assert bad["error"] == "a body of 100 bytes, not 101"
    assert done.stderr == ""
