"""One CGI request where standard input and output are one socket, as Apache's mod_cgid starts its programs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from tests.servers import DEADLINE, ROOT

APP = "tests/apps/probe.py:application"


def ask(body: bytes, **variables: str) -> bytes:
    """Run ``gateways cgi`` on a socket, send ``body`` and its end, and return everything up to the answer's end."""
    ours, theirs = socket.socketpair()
    ours.settimeout(DEADLINE)
    environment = {
        "PATH": os.environ["PATH"],
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_PROTOCOL": "HTTP/1.1",
        **variables,
    }
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateways", "cgi", APP], cwd=ROOT, env=environment, stdin=theirs, stdout=theirs,
            stderr=subprocess.PIPE,
        )  # fmt: skip
    with process, ours:
        ours.sendall(body)
        ours.shutdown(socket.SHUT_WR)
        pieces = []
        while piece := ours.recv(65536):
            pieces.append(piece)
        assert process.wait(DEADLINE) in (0, 1)
    return b"".join(pieces)


@pytest.mark.parametrize("size", [1, 100_000, 1_000_000])
def test_an_unread_body_does_not_cost_the_answer(size: int) -> None:
    answer = ask(bytes(size), REQUEST_METHOD="POST", PATH_INFO="/pid", CONTENT_LENGTH=str(size))
    assert answer.startswith(b"Status: 200 OK\r\n")


def test_b030_a_chunked_body_without_a_length_is_refused() -> None:
    answer = ask(bytes(10), REQUEST_METHOD="POST", PATH_INFO="/pid", HTTP_TRANSFER_ENCODING="chunked")
    assert answer.startswith(b"Status: 411 ")


def test_a_malformed_length_is_refused() -> None:
    answer = ask(bytes(10), REQUEST_METHOD="POST", PATH_INFO="/pid", CONTENT_LENGTH="+10")
    assert answer.startswith(b"Status: 400 ")


def test_a_request_without_a_body_does_not_wait_for_one() -> None:
    assert ask(b"", REQUEST_METHOD="GET", PATH_INFO="/pid").startswith(b"Status: 200 OK\r\n")
