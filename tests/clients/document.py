"""A response document in CGI form, read strictly (RFC 3875 6)."""

from __future__ import annotations

from typing import NamedTuple


class Document(NamedTuple):
    """``status``: the three digits; ``fields``: (name, value) in order, without Status; ``body``: all that follows."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes

    def get(self, name: str) -> list[str]:
        """Every value of a field, by its lower-case name."""
        return [value for key, value in self.fields if key.lower() == name]


def parse_document(data: bytes) -> Document:
    """Return the document; ``Status`` must be its first line, every line must end in CRLF."""
    head, found, body = data.partition(b"\r\n\r\n")
    assert found, f"no end of head in {data[:200]!r}"
    lines = head.decode("latin-1").split("\r\n")
    assert not any("\r" in line or "\n" in line for line in lines), lines
    pairs = []
    for line in lines:
        name, colon, value = line.partition(": ")
        assert colon, line
        pairs.append((name, value))
    assert pairs[0][0] == "Status", pairs
    return Document(int(pairs[0][1][:3]), pairs[1:], body)
