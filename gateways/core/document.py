"""The response document of a CGI script (RFC 3875 6), parsed from a growing buffer.

Pure: takes the bytes a script wrote, gives the head as data and the body as bytes. Knows no process, no descriptor and
no wire; whether a field may be sent is ``core.response``'s to say when it is sent.
"""

from __future__ import annotations

import re
from enum import Enum

from gateways.core.errors import ScriptError
from gateways.core.response import REASONS, format_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import FieldList

MAX_HEAD = 65536
"""The longest head of a script's document, in bytes."""

_HEAD_END = re.compile(rb"\n\r?\n")
_STATUS = re.compile(r"([2-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?")
_STATUS_LINE = re.compile(r"HTTP/1\.[0-9] ([0-9]{3}(?: .*)?)")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LOCAL_PATH = re.compile(r"/(?!/)[\x21-\x7e]*")
_SINGLE = frozenset({"status", "location", "content-type", "content-length"})
_LOCAL_FIELDS = frozenset({"content-type", "content-length"})
_NPH_DROPPED = frozenset({"connection", "keep-alive", "proxy-connection"})
_BODILESS = frozenset({"204", "304"})
_MEMO_ENTRIES = 128
_MEMO_HEAD = 512


class Kind(Enum):
    """What a document asks the server to do."""

    DOCUMENT = "document"
    LOCAL_REDIRECT = "local redirect"
    CLIENT_REDIRECT = "client redirect"
    NPH = "non-parsed head"


class Document:
    """One document head.

    ``kind``: what is asked for. ``status``: ``"404 Not Found"``. ``fields``: names and values in order, without Status.
    ``location``: the path of a local redirect, else ``""``. ``body_allowed``: False when the head has no Content-Type
    and nothing that makes it unnecessary. ``complete``: False when such a head says nothing at all.
    ``length``: the bytes that Content-Length announces; -1 without one, and for one that is no number.
    """

    __slots__ = ("body_allowed", "complete", "fields", "kind", "length", "location", "status")

    def __init__(
        self,
        kind: Kind,
        status: str,
        fields: FieldList,
        location: str = "",
        body_allowed: bool = True,
        complete: bool = True,
        length: str = "",
    ) -> None:
        self.kind = kind
        self.status = status
        self.fields = fields
        self.location = location
        self.body_allowed = body_allowed
        self.complete = complete
        self.length = int(length) if length.isascii() and length.isdigit() and len(length) < 19 else -1


def parse_status(value: str) -> str:
    """Return ``"404 Not Found"`` for itself or for ``"404"``; raise ``ScriptError`` otherwise (RFC 3875 6.3.3)."""
    match = _STATUS.fullmatch(value)
    if match is None:
        raise ScriptError(f"the script's status {value[:80]!r} is not a code from 200 to 599 and a reason")
    code, reason = match.groups()
    if reason:
        return f"{code} {reason}"
    return format_status(int(code)) if int(code) in REASONS else f"{code} Unknown"


def parse_field(line: str) -> tuple[str, str]:
    """Return (name, value) of one field line; raise ``ScriptError`` when it is none (RFC 3875 6.3)."""
    if line[0] in " \t":
        raise ScriptError(f"the script's head has a folded line {line[:80]!r}")
    if "\r" in line or "\0" in line:
        raise ScriptError(f"the script's head has a CR or NUL in {line[:80]!r}")
    name, colon, value = line.partition(":")
    if not colon or _TOKEN.fullmatch(name) is None:
        raise ScriptError(f"the script's head has a line that is no field: {line[:80]!r}")
    return name, value.strip(" \t")


def parse_head(head: bytes) -> Document:
    """Return the document that a head (without its empty line; LF or CRLF) stands for; raise ``ScriptError``."""
    lines = [line[:-1] if line.endswith("\r") else line for line in head.decode("latin-1").split("\n")]
    if not lines[0]:
        raise ScriptError("the script's output begins with an empty line instead of a head")
    raw = _parse_status_line(lines[0])
    fields: list[tuple[str, str]] = []
    single: dict[str, str] = {}
    for line in lines[1:] if raw else lines:
        name, value = parse_field(line)
        key = name.lower()
        if key in _SINGLE:
            if key in single:
                raise ScriptError(f"the script's head has {name} twice")
            single[key] = value
        if key != "status":
            fields.append((name, value))
    if raw:
        kept = tuple(pair for pair in fields if pair[0].lower() not in _NPH_DROPPED)
        return Document(Kind.NPH, raw, kept, length=single.get("content-length", ""))
    return _classify(tuple(fields), single)


def _parse_status_line(line: str) -> str:
    """Return the status of a non-parsed-header document's first line, or ``""`` (RFC 3875 5)."""
    if not line.startswith("HTTP/"):
        return ""
    match = _STATUS_LINE.fullmatch(line)
    if match is None:
        raise ScriptError(f"the script's status line {line[:80]!r} is malformed")
    return parse_status(match[1].rstrip(" "))


def _classify(fields: tuple[tuple[str, str], ...], single: dict[str, str]) -> Document:
    """Return the document for parsed fields: which of the four kinds of RFC 3875 6.2 it is."""
    length = single.get("content-length", "")
    location = single.get("location")
    status = parse_status(single["status"]) if "status" in single else ""
    if location is not None:
        if not location:
            raise ScriptError("the script's Location is empty")
        # 6.2.2 allows a local redirect no other field: one that sets a cookie goes by way of the client.
        alone = all(name.lower() in _LOCAL_FIELDS or name.lower() == "location" for name, _ in fields)
        if not status and alone and _LOCAL_PATH.fullmatch(location):
            return Document(Kind.LOCAL_REDIRECT, "302 Found", fields, location)
        return Document(Kind.CLIENT_REDIRECT, status or "302 Found", fields, length=length)
    if "content-type" in single or status[:3] in _BODILESS:
        return Document(Kind.DOCUMENT, status or "200 OK", fields, length=length)
    # 6.3.1: Content-Type is needed when there is a body; without one a Status is answer enough.
    return Document(Kind.DOCUMENT, status or "200 OK", fields, body_allowed=False, complete=bool(status))


class _Heads(dict[bytes, Document]):
    """A bounded memo of ``parse_head``: most scripts print the same few heads again and again."""

    def __missing__(self, head: bytes) -> Document:
        document = parse_head(head)
        if len(head) <= _MEMO_HEAD:
            if len(self) >= _MEMO_ENTRIES:
                self.clear()
            self[head] = document
        return document


_HEADS = _Heads()
_NO_TYPE = "the script's head has no Content-Type, and no Location either"


class DocumentParser:
    """Takes a script's output piece by piece. ``document`` is ``None`` until the head is complete."""

    __slots__ = ("_held", "document", "max_head")

    def __init__(self, max_head: int = MAX_HEAD) -> None:
        self.max_head = max_head
        self.document: Document | None = None
        self._held = b""

    def receive(self, data: bytes) -> bytes:
        """Take output; return the body bytes among it. Raise ``ScriptError`` when it can be no document."""
        document = self.document
        if document is None:
            held = self._held
            start = len(held) - 2 if len(held) > 2 else 0
            held = held + data if held else data
            match = _HEAD_END.search(held, start)
            if (match.start() if match is not None else len(held)) > self.max_head:
                raise ScriptError(f"the script's head is longer than {self.max_head} bytes")
            if match is None:
                self._held = self._check(held)
                return b""
            head = held[: match.start()]
            document = self.document = _HEADS[head[:-1] if head[-1:] == b"\r" else head]
            self._held = b""
            data = held[match.end() :]
        if data and not document.body_allowed:
            raise ScriptError(_NO_TYPE)
        return data

    @staticmethod
    def _check(held: bytes) -> bytes:
        """Refuse output that begins with an empty line as soon as it is seen; else return it."""
        if held[:1] == b"\n" or held[:2] == b"\r\n":
            raise ScriptError("the script's output begins with an empty line instead of a head")
        return held

    def finish(self) -> Document:
        """Return the document once the output has ended; raise ``ScriptError`` when there is none."""
        document = self.document
        if document is None:
            if not self._held:
                raise ScriptError("the script printed nothing")
            raise ScriptError(f"the script's output ended within its head, after {self._held[-80:]!r}")
        if not document.complete:
            raise ScriptError(_NO_TYPE)
        return document
