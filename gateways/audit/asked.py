"""What an application is asked: requests as a person writes them, or as a browser recorded them (HAR 1.2).

Pure, but for the file that ``@FILE`` names. Knows no application.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlsplit

from gateways.audit.job import Asked

MAX_RECORDED = 500
"""Requests that are taken from one recording."""
FORM = "application/x-www-form-urlencoded"
_METHOD = re.compile(r"[A-Z]+")
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]*):\s*(.*)", re.DOTALL)
_TARGET = re.compile(r"/[\x21-\x7e]*")
_OWN_FIELDS = frozenset({"host", "content-length", "connection", "transfer-encoding", "accept-encoding", "expect"})
"""Fields of a recording that belonged to its connection."""


class AskedError(ValueError):
    """A request cannot be read; the message is one sentence."""


def read_bytes(path: str) -> bytes:
    """Return what a file holds."""
    with open(path, "rb") as file:
        return file.read()


def read_request(text: str, read: Callable[[str], bytes] = read_bytes) -> Asked:
    """Return the request that ``[METHOD] TARGET [NAME:VALUE ...] [BODY ... | @FILE]`` means; quotes as in a shell.

    Body words are joined by ``&``. Raise ``AskedError``.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise AskedError(f"the request {text!r} cannot be read: {error}") from error
    method = words.pop(0) if words and _METHOD.fullmatch(words[0]) else ""
    if not words or not _TARGET.fullmatch(words[0]):
        raise AskedError(f"the request {text!r} is not METHOD /PATH, as in 'GET /list?page=2' or 'POST /login name=x'")
    target = words.pop(0)
    fields = []
    while words and (match := _FIELD.fullmatch(words[0])):
        fields.append((match[1], match[2]))
        words.pop(0)
    body = b"&".join(word.encode("utf-8", "surrogateescape") for word in words)
    kind = "application/json" if body[:1] in (b"{", b"[") else FORM
    if body.startswith(b"@"):
        try:
            body, kind = read(words[0][1:]), "application/octet-stream"
        except OSError as error:
            raise AskedError(f"the body {words[0]!r} cannot be read: {error.strerror}") from error
    if body and not any(name.lower() == "content-type" for name, _ in fields):
        fields.append(("Content-Type", kind))
    return Asked(method or ("POST" if body else "GET"), target, tuple(fields), body)


def parse_har(text: str | bytes) -> list[Asked]:
    """Return the requests of a recording (HAR 1.2, ``log.entries``) to the origin that most of them went to.

    Raise ``AskedError`` when it is none.
    """
    try:
        recorded = [entry["request"] for entry in json.loads(text)["log"]["entries"]]
        pairs = [(urlsplit(request["url"]), request) for request in recorded]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AskedError(f"it is no HAR recording, a JSON object with log.entries: {error!r}") from error
    if not pairs:
        raise AskedError("the recording has no request")
    (origin, _), *_ = Counter(url.netloc for url, _ in pairs).most_common(1)
    chosen = [(url, request) for url, request in pairs if url.netloc == origin]
    try:
        return [
            _convert((url.path or "/") + (f"?{url.query}" if url.query else ""), request)
            for url, request in chosen[:MAX_RECORDED]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AskedError(f"a request of the recording is not as HAR 1.2 says: {error!r}") from error


def _convert(target: str, request: dict[str, object]) -> Asked:
    headers = request.get("headers") or []
    fields = tuple(
        (header["name"], header["value"])
        for header in headers  # type: ignore[attr-defined]
        if not header["name"].startswith(":") and header["name"].lower() not in _OWN_FIELDS
    )
    posted = request.get("postData") or {}
    return Asked(str(request["method"]), target, fields, str(posted.get("text") or "").encode())  # type: ignore[attr-defined]
