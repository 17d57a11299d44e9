"""The access log: one line for each request, in one of three forms, appended by one ``write``.

Everything that a client or a front server has sent is escaped: a line is one line, a quoted text ends where it seems
to, and JSON is JSON. Knows requests and finished exchanges; not which wire or model they came through.
"""

from __future__ import annotations

import os
import re
import time
from json.encoder import encode_basestring_ascii as quote
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from gateways.core.errors import ConfigurationError
from gateways.core.request import parse_peer
from gateways.logfile import LogFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gateways.core.request import Request

STDOUT = 1
TO_STDOUT = "-"
"""The path that means standard output."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNSAFE = re.compile(r"[^ !#-\[\]-~]")
_UNSAFE_WORD = re.compile(r"[^!#-\[\]-~]")


class Entry(NamedTuple):
    """What one line tells. ``status``: three digits, ``""`` when no response was sent; ``sent``: bytes of its body.

    ``request``: ``None`` when it could not be read. ``spent``: microseconds from when the application was called until
    the response was handed over. ``mode``: the execution model, ``""`` when none ran. ``whole``: not cut short.
    """

    request: Request | None
    address: str
    status: str
    sent: int
    spent: int
    mode: str
    whole: bool


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    data = character.encode("latin-1" if character <= "\xff" else "utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)


def escape_text(text: str) -> str:
    """Return text for between double quotes: quotes, backslashes, controls and all beyond ASCII become ``\\xNN``."""
    return _UNSAFE.sub(_escape, text)


def escape_word(text: str) -> str:
    """Return text that stands without quotes: the same without spaces, and ``-`` for nothing."""
    return _UNSAFE_WORD.sub(_escape, text) or "-"


def format_common(entry: Entry, moment: str, pid: str) -> str:
    """Return a line in the Common Log Format, then microseconds, process and execution model."""
    return f"{_format_start(entry, moment)} {entry.spent} {pid} {entry.mode or '-'}\n"


def format_combined(entry: Entry, moment: str, pid: str) -> str:
    """Return a line in the Combined Log Format, then microseconds, process and execution model."""
    referer = agent = "-"
    if entry.request is not None:
        referer = escape_text(entry.request.find_field("referer")) or "-"
        agent = escape_text(entry.request.find_field("user-agent")) or "-"
    return f'{_format_start(entry, moment)} "{referer}" "{agent}" {entry.spent} {pid} {entry.mode or "-"}\n'


def _format_start(entry: Entry, moment: str) -> str:
    request = entry.request
    user, line = "-", "-"
    if request is not None:
        user = escape_word(request.remote_user)
        line = escape_text(f"{request.method} {request.target} {request.protocol}")
    return f'{escape_word(entry.address)} - {user} [{moment}] "{line}" {entry.status or "-"} {entry.sent or "-"}'


def format_json(entry: Entry, moment: str, pid: str) -> str:
    """Return a line that is one JSON object. Text is what came, each byte one character (Latin-1)."""
    request = entry.request
    text = (
        f'{{"time": "{moment}", "address": {quote(entry.address)}, "status": {int(entry.status or 0)}, '
        f'"bytes": {entry.sent}, "microseconds": {entry.spent}, "pid": {pid}, "mode": {quote(entry.mode)}, '
        f'"whole": {"true" if entry.whole else "false"}'
    )
    if request is None:
        return text + "}\n"
    return (
        f'{text}, "user": {quote(request.remote_user)}, "method": {quote(request.method)}, '
        f'"target": {quote(request.target)}, "protocol": {quote(request.protocol)}, '
        f'"referer": {quote(request.find_field("referer"))}, "agent": {quote(request.find_field("user-agent"))}}}\n'
    )


def format_clf_time(now: float) -> str:
    """``30/Nov/2026:21:10:54 +0000``, local time; month names are English whatever an application's locale says."""
    there = time.localtime(now)
    return f"{there.tm_mday:02d}/{_MONTHS[there.tm_mon - 1]}/{time.strftime('%Y:%H:%M:%S %z', there)}"


def format_iso_time(now: float) -> str:
    """``2026-11-30T21:10:54+00:00``, local time (RFC 3339)."""
    text = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(now))
    return f"{text[:-2]}:{text[-2:]}"


FORMATS: dict[str, tuple[Callable[[Entry, str, str], str], Callable[[float], str]]] = {
    "common": (format_common, format_clf_time),
    "combined": (format_combined, format_clf_time),
    "json": (format_json, format_iso_time),
}
"""Name of a form -> (what makes a line, what makes its time)."""


class AccessLog:
    """Appends a line for each request (``core.interfaces.AccessLog``).

    Once a second the time is formatted, and a file that was moved away is noticed. Raise ``ConfigurationError`` when
    the file cannot be opened.
    """

    __slots__ = ("_file", "_format", "_format_time", "_moment", "_pid", "_second")

    def __init__(self, path: str, form: str) -> None:
        try:
            self._file = LogFile("" if path == TO_STDOUT else path, STDOUT)
        except OSError as error:
            raise ConfigurationError(f"the access log cannot be opened: {path}: {error.strerror}") from error
        self._format, self._format_time = FORMATS[form]
        self._second = 0
        self._moment = ""
        self.begin()

    def begin(self) -> None:
        """Take note of which process this is, in one that was forked since."""
        self._pid = str(os.getpid())

    def write(self, exchange: Any) -> None:
        """Append the line of an exchange that is over (``serve.logged.LoggedExchange``)."""
        request = exchange.first
        self._append(
            Entry(
                request,
                request.remote_address,
                exchange.status[:3],
                exchange.sent,
                int((monotonic() - exchange.began) * 1e6),
                "" if request.mount is None else request.mount.model.name,
                exchange.is_whole,
            )
        )

    def write_refused(self, peer: object, status: str, sent: int) -> None:
        """Append the line of a request that could not be read, or came too slowly."""
        self._append(Entry(None, parse_peer(peer)[0], status[:3], sent, 0, "", True))

    def _append(self, entry: Entry) -> None:
        now = time.time()
        if int(now) != self._second:
            self._second = int(now)
            self._moment = self._format_time(now)
            self._file.follow()
        self._file.append(self._format(entry, self._moment, self._pid).encode("ascii"))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
