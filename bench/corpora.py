"""The request corpora of tests/corpora: the cases, and what each expects. Knows no parser."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from pathlib import Path

CORPORA = Path(__file__).resolve().parent.parent / "tests" / "corpora"
FILES = ("http-requests-a.json", "http-requests-b.json")
_REQUEST_LINE = re.compile(rb"(?m)^([^ \r\n]+ (?:https?://(?:[^@ /?]*@)?([^ /?#]+))?[^ \r\n]* HTTP/1\.1\r\n)")


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as a parser reports it; field names in capitals."""

    method: str
    target: str
    protocol: str
    fields: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Case:
    """One byte string and its outcome.

    ``rejected``: the input is to be refused. Otherwise ``methods`` are those of the requests that must come out, and
    ``requests`` the requests in full where the corpus has them.
    """

    name: str
    data: bytes
    rejected: bool
    methods: tuple[str, ...]
    requests: tuple[Seen, ...] | None

    def agrees(self, requests: list[Seen], refused: bool, inserted: bool = False) -> bool:
        """True when a parser's outcome is the corpus'; ``inserted``: the input got a Host that the corpus has not."""
        if refused or self.rejected:
            return refused == self.rejected
        if self.requests is None:
            return tuple(request.method for request in requests) == self.methods
        if len(requests) != len(self.requests):
            return False
        return all(_same(seen, wanted, inserted) for seen, wanted in zip(requests, self.requests, strict=True))

    def insert_host(self) -> bytes:
        """Return the input with a Host in every HTTP/1.1 head without one; a body that looks like a head stays."""
        bodies = [request.body for request in self.requests or ()]
        return self.data if any(map(_REQUEST_LINE.search, bodies)) else insert_host(self.data)


def _same(seen: Seen, wanted: Seen, inserted: bool) -> bool:
    fields = seen.fields
    if inserted and fields[:1] == (("HOST", "example.com"),):
        fields = fields[1:]
    return (seen.method, seen.target, seen.protocol, fields, seen.body) == (
        wanted.method,
        wanted.target,
        wanted.protocol,
        wanted.fields,
        wanted.body,
    )


def load_cases() -> dict[str, Case]:
    """Return the cases of both corpora by name; where a name stands twice, the second gets ``#2``."""
    cases: dict[str, Case] = {}
    for file in FILES:
        for row in json.loads((CORPORA / file).read_text("utf-8")):
            name = row["id"] if row["id"] not in cases else row["id"] + " #2"
            requests = row["expect"] if isinstance(row["expect"], list) else None
            wanted = None if requests is None else tuple(parse_request(request) for request in requests)
            methods = tuple(row.get("methods", [])) if wanted is None else tuple(seen.method for seen in wanted)
            cases[name] = Case(name, base64.b64decode(row["bytes_base64"]), row["expect"] == "reject", methods, wanted)
    return cases


def parse_request(row: dict[str, object]) -> Seen:
    """Return the request that a corpus describes."""
    version, headers = row["version"], row["headers"]
    assert isinstance(version, list)
    assert isinstance(headers, list)
    fields = tuple((str(name), str(value)) for name, value in headers)
    body = base64.b64decode(str(row["body_base64"]))
    return Seen(str(row["method"]), str(row["target"]), "HTTP/{}.{}".format(*version), fields, body)


def insert_host(data: bytes) -> bytes:
    """Return ``data`` with a Host in every HTTP/1.1 head that has none: the target's own, or example.com."""

    def insert(match: re.Match[bytes]) -> bytes:
        head = data[match.end() :].partition(b"\r\n\r\n")[0]
        if re.search(rb"(?mi)^host:", head):
            return match[0]
        return match[1] + b"Host: " + (match[2] or b"example.com") + b"\r\n"

    return _REQUEST_LINE.sub(insert, data)
