"""The floor: what little it promises, over a real connection."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.answers import call_application, fetch
from bench.servers import FLOOR, Server, start_server

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        server = start_server(FLOOR, None)
    yield server
    log = server.read_log()
    server.stop()
    assert log.startswith("listening on ")
    assert len(log.splitlines()) == 1


def test_it_sends_the_page_of_2008(server: Server) -> None:
    right = call_application(str(ROOT / "apps" / "hello.py"))
    assert fetch(server.port, "/", 10) == right
    assert len(right.body) == 1164


def test_its_environ_is_a_real_one(server: Server) -> None:
    page = fetch(server.port, "/env?a=b%20c", 10).body.decode()
    for row in ("REQUEST_METHOD</dt><dd>GET", "QUERY_STRING</dt><dd>a=b%20c", "PATH_INFO</dt><dd>/env", "HTTP_HOST"):
        assert row in page


def receive(connection: socket.socket, length: int) -> bytes:
    data = b""
    while (end := data.find(b"\r\n\r\n")) < 0 or len(data) < end + 4 + length:
        more = connection.recv(65536)
        assert more, f"closed after {data!r}"
        data += more
    return data


def test_connections_are_kept(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        for _ in range(3):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"Connection: keep-alive\r\n" in receive(connection, 1164)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"Connection: close\r\n" in receive(connection, 1164)
        assert connection.recv(1) == b""


def test_a_head_in_two_pieces_is_put_together(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(b"GET / HT")
        assert fetch(server.port, "/", 10).status == 200
        connection.sendall(b"TP/1.0\r\n\r\n")
        assert receive(connection, 1164).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_body_that_comes_with_the_head_is_read(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(b"POST /post HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc")
        assert b"length: 3\n" in receive(connection, 10)


def test_a_client_that_goes_away_ends_nothing(server: Server) -> None:
    socket.create_connection(("127.0.0.1", server.port), 10).close()
    assert fetch(server.port, "/", 10).status == 200
