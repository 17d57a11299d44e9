"""What a test needs of a browser: requests over a real connection, cookies kept, forms sent, answers read as they come.

One connection for each request, so that nothing but a cookie ties two of them together.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

TIME_LIMIT = 30.0
"""Seconds without a byte after which a request fails."""
PIECE = 1 << 16
BOUNDARY = "-----------------gateways-boundary"


@dataclass(frozen=True)
class Page:
    """A whole response."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def location(self) -> str:
        return self.headers.get("Location", "")

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def find_links(self) -> list[str]:
        """The targets of the page's links."""
        return re.findall(r'<a [^>]*href="([^"]*)"', self.text)

    def find_hidden(self) -> dict[str, str]:
        """The hidden inputs of the page's forms."""
        return dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', self.text))


class Upload:
    """A form of some texts and one file of ``size`` bytes, never held whole. ``sha256``: of the file."""

    def __init__(self, size: int) -> None:
        self.size = size
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        self.sha256 = digest.hexdigest()

    def pieces(self) -> Iterator[bytes]:
        """The file: each piece begins otherwise, and none is text."""
        filling = bytes(range(256)) * (PIECE // 256)
        for offset in range(0, self.size, PIECE):
            yield (b"\r\n--%d\0" % offset + filling)[: min(PIECE, self.size - offset)]

    def format_form(self, texts: Mapping[str, str]) -> tuple[int, Iterable[bytes]]:
        """Return (length, pieces) of the whole form (RFC 7578)."""
        head = "".join(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in texts.items()
        )
        head += (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        tail = f"\r\n--{BOUNDARY}--\r\n"
        return len(head) + self.size + len(tail), (*[head.encode()], *self.pieces(), tail.encode())


class Browser:
    """Someone who visits ``authority`` (``HOST:PORT``). ``cookies``: what was set and not removed."""

    def __init__(self, authority: str) -> None:
        self.authority = authority
        self.cookies: dict[str, str] = {}

    def get(self, target: str) -> Page:
        """GET, without following a redirect."""
        return self.ask("GET", target)

    def post(self, target: str, texts: Mapping[str, str]) -> Page:
        """POST a form."""
        body = urllib.parse.urlencode(texts).encode()
        return self.ask("POST", target, [body], len(body), "application/x-www-form-urlencoded")

    def send(self, target: str, upload: Upload, texts: Mapping[str, str]) -> Page:
        """POST a form with a file."""
        length, pieces = upload.format_form(texts)
        return self.ask("POST", target, pieces, length, f"multipart/form-data; boundary={BOUNDARY}")

    def ask(self, method: str, target: str, body: Iterable[bytes] = (), length: int = 0, kind: str = "") -> Page:
        """One request, and its whole response."""
        with self.open(method, target, body, length, kind) as response:
            return Page(response.status, response.headers, response.read())

    @contextmanager
    def open(
        self, method: str, target: str, body: Iterable[bytes] = (), length: int = 0, kind: str = ""
    ) -> Iterator[http.client.HTTPResponse]:
        """One request, and its response before its body was read; the connection is cut at the end."""
        connection = http.client.HTTPConnection(self.authority, timeout=TIME_LIMIT)
        headers = {"Content-Length": str(length), "Content-Type": kind} if kind else {}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            connection.request(method, target, body if kind else None, headers)
            response = connection.getresponse()
            self.keep(response.headers.get_all("Set-Cookie") or [])
            yield response
            response.close()
        finally:
            connection.close()

    def keep(self, lines: list[str]) -> None:
        """Take over what a response sets."""
        for line in lines:
            for name, morsel in SimpleCookie(line).items():
                self.cookies.pop(name, None)
                if morsel["max-age"] != "0" and morsel.coded_value:
                    self.cookies[name] = morsel.coded_value
