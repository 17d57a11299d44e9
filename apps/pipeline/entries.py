"""What a cache keeps of one step: the bytes, their type, and which files they were made from. Pure."""

from __future__ import annotations

import json
from typing import NamedTuple

from apps.pipeline.files import NEVER, Need

MARK = b"pipeline 1 "
MAX_HEAD = 1 << 20


class Entry(NamedTuple):
    """One step's result. ``needs``: every file that it and the steps before it were made from."""

    needs: tuple[Need, ...]
    content_type: str
    body: bytes

    @property
    def lasting(self) -> bool:
        """True when it is worth keeping: no file was changing while it was read."""
        return all(stamp != NEVER for _, stamp in self.needs)


def format_entry(entry: Entry) -> bytes:
    """Return an entry as bytes: a line that tells all but the body, and the body."""
    head = json.dumps([entry.content_type, len(entry.body), entry.needs], separators=(",", ":"))
    return MARK + head.encode("ascii") + b"\n" + entry.body


def parse_entry(data: bytes) -> Entry | None:
    """Return the entry that bytes stand for, ``None`` when they are none of ours, or not whole."""
    end = data.find(b"\n", 0, MAX_HEAD)
    if not data.startswith(MARK) or end < 0:
        return None
    try:
        content_type, length, needs = json.loads(data[len(MARK) : end])
        body = data[end + 1 :]
        return Entry(tuple((path, stamp) for path, stamp in needs), content_type, body) if len(body) == length else None
    except (TypeError, ValueError):
        return None
