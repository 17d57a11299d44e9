"""One request and its answer, whole: the proof before any measurement that every contender sends the same page.

Knows just enough HTTP to read an answer that ends with its connection, and ``bench.speeches`` for the other protocols;
nothing of servers or rounds.
"""

from __future__ import annotations

import runpy
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from typing import Any

from bench.load import Job
from bench.speeches import SPEECHES, Data, Speech, WrongAnswer

MAX_ANSWER = 1 << 24
PAGE_LENGTH = 1164


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: status code, content type, body."""

    status: int
    content_type: str
    body: bytes

    @property
    def digest(self) -> str:
        """The body's SHA-256, in hexadecimal."""
        return sha256(self.body).hexdigest()


def parse_answer(data: bytes) -> Answer:
    """Parse everything that one connection brought; raise ``ValueError`` when it is not one complete answer."""
    head, found, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ", 2)
    if not found or not words[0].startswith("HTTP/1.") or len(words) < 2 or not words[1].isdigit():
        raise ValueError(f"not an HTTP answer: {data[:60]!r}")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    if "transfer-encoding" in fields:
        raise ValueError("a transfer coding in an answer to HTTP/1.0 (RFC 9112 6.1)")
    length = fields.get("content-length", str(len(body)))
    if length != str(len(body)):
        raise ValueError(f"Content-Length {length}, but a body of {len(body)} bytes")
    return Answer(int(words[1]), fields.get("content-type", ""), body)


def fetch(port: int, path: str, seconds: float, host: str = "127.0.0.1") -> Answer:
    """Ask once without keep-alive and return the answer; raise ``OSError``, ``TimeoutError`` or ``ValueError``."""
    request = f"GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode("ascii")
    return parse_answer(exchange((host, port), request, seconds))


def exchange(
    address: tuple[str, int],
    request: bytes,
    seconds: float,
    is_whole: Callable[[Data], bool] = lambda _: False,
) -> bytes:
    """Send a request on a new connection and return all that comes until its end, or until ``is_whole``.

    Raise ``OSError``, ``TimeoutError`` or ``ValueError``.
    """
    deadline = time.monotonic() + seconds
    with socket.create_connection(address, seconds) as connection:
        connection.sendall(request)
        data = bytearray()
        while not is_whole(data) and (more := connection.recv(65536)):
            data += more
            if len(data) > MAX_ANSWER:
                raise ValueError(f"an answer longer than {MAX_ANSWER} bytes")
            connection.settimeout(max(0.001, deadline - time.monotonic()))
    return bytes(data)


def ask(wire: str, port: int, path: str, seconds: float) -> Answer:
    """Ask once on a new connection in the protocol ``wire``; raise as ``fetch`` does."""
    if wire == "http":
        return fetch(port, path, seconds)
    speech = SPEECHES[wire]
    job = Job(port, path, 0, "", seconds)
    data = exchange((job.host, port), speech.format_request(job), seconds, lambda data: is_whole(speech, data))
    try:
        status, head, body = speech.open(data)
    except WrongAnswer as error:
        raise ValueError(str(error)) from None
    return Answer(status, speech.find_type(head), body)


def is_whole(speech: Speech, data: Data) -> bool:
    """True when an answer that tells its own end is complete; one that does not is complete with its connection."""
    return speech.delimited and 0 <= speech.find_end(data, 0) <= len(data)


def call_application(file: str, path: str = "/") -> Answer:
    """Return what an application answers to ``GET path`` when it is called directly, without any server between.

    Raise ``KeyError`` when ``file`` defines no ``application``.
    """
    said: list[Any] = []
    environ = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "wsgi.input": BytesIO(),
    }

    def start_response(status: str, fields: list[tuple[str, str]], _exc_info: object = None) -> None:
        said[:] = [status, {name.lower(): value for name, value in fields}]

    body = b"".join(runpy.run_path(file)["application"](environ, start_response))
    return Answer(int(said[0][:3]), said[1].get("content-type", ""), body)


def compare_answers(got: Answer, right: Answer) -> str:
    """Return in what an answer differs from the right one, ``""`` when in nothing."""
    if got.status != right.status:
        return f"status {got.status}, not {right.status}"
    if got.content_type != right.content_type:
        return f"Content-Type {got.content_type!r}, not {right.content_type!r}"
    if len(got.body) != len(right.body):
        return f"a body of {len(got.body)} bytes, not {len(right.body)}"
    if got.body != right.body:
        place = next(i for i, (a, b) in enumerate(zip(got.body, right.body, strict=True)) if a != b)
        return f"the body differs at byte {place}: {got.body[place : place + 20]!r}"
    return ""
