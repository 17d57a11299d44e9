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
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from typing import Any

TIME_LIMIT = 30.0
"""Seconds without a byte after which a request fails."""
PIECE = 1 << 16
MAX_REDIRECTS = 5
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
    """A form of some texts and one file of ``size`` bytes, never held whole. ``field``: the file's. ``sha256``: of the
    file."""

    def __init__(self, size: int, field: str = "file") -> None:
        self.size = size
        self.field = field
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
        text = "".join(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in texts.items()
        )
        text += (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{self.field}"; filename="large.bin"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        head, tail = text.encode(), f"\r\n--{BOUNDARY}--\r\n".encode()
        return len(head) + self.size + len(tail), (head, *self.pieces(), tail)


@dataclass(slots=True)
class Form:
    """A form of a page. ``fields``: what it sends as it stands, without its buttons."""

    action: str
    fields: dict[str, str]


class FormParser(HTMLParser):
    """Collects the forms of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._field = ""
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        name, value = named.get("name", ""), named.get("value", "")
        if tag == "form":
            self.forms.append(Form(named.get("action", ""), {}))
        elif not self.forms:
            return
        elif tag == "input" and name:
            kind = named.get("type", "text").lower()
            if kind not in ("submit", "button", "image", "checkbox", "radio") or "checked" in named:
                self.forms[-1].fields[name] = value
        elif tag in ("select", "textarea"):
            self._field, self._text = name, ""
            if tag == "textarea":
                self.forms[-1].fields[name] = ""
        elif tag == "option" and self._field and ("selected" in named or self._field not in self.forms[-1].fields):
            self.forms[-1].fields[self._field] = value

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self.forms:
            self.forms[-1].fields[self._field] = self._text.removeprefix("\n")
        if tag in ("select", "textarea"):
            self._field = ""


def parse_forms(text: str) -> list[Form]:
    """Every form of a page."""
    parser = FormParser()
    parser.feed(text)
    return parser.forms


def strip_authority(url: str) -> str:
    """What a request line says of a URL."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))


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

    def ask(self, method: str, target: str, body: Iterable[bytes] = (), length: int = 0, kind: str = "",
            fields: Mapping[str, str] | None = None) -> Page:  # fmt: skip
        """One request, and its whole response. ``fields``: further ones of the request's head."""
        with self.open(method, target, body, length, kind, fields) as response:
            return Page(response.status, response.headers, response.read())

    def follow(self, page: Page) -> Page:
        """Go where a redirect leads, to a page of this authority."""
        for _ in range(MAX_REDIRECTS):
            if page.status not in (301, 302, 303):
                break
            assert urllib.parse.urlsplit(page.location).netloc in ("", self.authority), page.location
            page = self.get(strip_authority(page.location))
        return page

    def fill(self, target: str, having: str, texts: Mapping[str, str], upload: Upload | None = None) -> Page:
        """Fill in the form of a page that has a field of that name, send it, and go where that leads."""
        page = self.get(target)
        (form,) = [form for form in parse_forms(page.text) if having in form.fields]
        action = strip_authority(urllib.parse.urljoin(target, form.action))
        filled = {**form.fields, **texts}
        if upload is not None:
            filled.pop(upload.field, None)
            return self.follow(self.send(action, upload, filled))
        return self.follow(self.post(action, filled))

    @contextmanager
    def open(
        self,
        method: str,
        target: str,
        body: Iterable[bytes] = (),
        length: int = 0,
        kind: str = "",
        fields: Mapping[str, str] | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """One request, and its response before its body was read; the connection is cut at the end."""
        connection = http.client.HTTPConnection(self.authority, timeout=TIME_LIMIT)
        headers = {**(fields or {}), **({"Content-Length": str(length), "Content-Type": kind} if kind else {})}
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
