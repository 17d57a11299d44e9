"""The error log: how a message becomes a line of the file or descriptor that it is appended to.

Stands on ``logging`` and knows nothing of this package but ``logfile``. Importing it installs nothing; ``cli`` and
``operate`` do that.
"""

from __future__ import annotations

import logging
import re
import time

from gateways.logfile import LogFile

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL_BUT_NEWLINE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
STDERR = 2


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def escape_line(text: str) -> str:
    """Return text in which control characters are visible (``\\\\n``), so that no message can forge a second line."""
    return _CONTROL.sub(_escape, text)


class ErrorLogFormatter(logging.Formatter):
    """``2026-11-30 19:47:01.250Z [4711] warning: message``; then the traceback on lines of its own.

    The time is UTC, because an application may set a time zone in its process. Control characters of the message are
    escaped. A traceback keeps its newlines, and each of its lines is indented, so that text from a client in an
    exception cannot pass for a record.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text, without a newline at its end."""
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(record.created))
        milliseconds = int(record.created * 1000) % 1000
        message = escape_line(record.getMessage())
        line = f"{moment}.{milliseconds:03d}Z [{record.process}] {record.levelname.lower()}: {message}"
        for text in (self._traceback(record), record.stack_info):
            if text:
                line += "\n" + _indent(text)
        return line

    def _traceback(self, record: logging.LogRecord) -> str:
        if record.exc_info and record.exc_info[0] is not None:
            return self.formatException(record.exc_info)
        return record.exc_text or ""


def _indent(text: str) -> str:
    return "\n".join("    " + _CONTROL_BUT_NEWLINE.sub(_escape, line) for line in text.rstrip("\n").split("\n"))


class ErrorLogHandler(logging.Handler):
    """Appends each record with one ``write``, so that processes that share the file do not mix within a record.

    ``path``: the file; ``""`` for standard error. A file that was moved away is opened again before the next record,
    in whichever process that happens. A log that cannot be written to never stops the server.
    """

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self._file = LogFile(path, STDERR)
        self.setFormatter(ErrorLogFormatter())

    def reopen(self) -> None:
        """Open the file again under its name, keeping the old one if that fails."""
        self._file.reopen()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        data = (self.format(record) + "\n").encode("utf-8", "backslashreplace")
        self._file.follow()
        self._file.append(data)

    def close(self) -> None:
        """Leave the file open: whoever configures ``logging`` anew, as Django does, closes every handler there is."""

    def release(self) -> None:
        """Close the file; standard error stays open."""
        self._file.close()
        super().close()


class ErrorLog(logging.Logger):
    """A logger that applications cannot reach: their ``logging.config`` and ``logging.disable`` silence what they know.

    It stands outside the tree of loggers, and its own level alone decides.
    """

    def isEnabledFor(self, level: int) -> bool:
        """True when a message of ``level`` is written."""
        return level >= self.level


_LOGS: dict[str, ErrorLog] = {}


def open_log(name: str, path: str, level: str) -> ErrorLog:
    """Return the log ``name``, writing to ``path`` (``""``: standard error) from ``level`` up.

    Handlers it had before are closed, so that a reload never doubles a message. Raise ``OSError`` when the file cannot
    be opened.
    """
    handler = ErrorLogHandler(path)
    log = _LOGS.setdefault(name, ErrorLog(name))
    for old in log.handlers[:]:
        log.removeHandler(old)
        if isinstance(old, ErrorLogHandler):
            old.release()
    log.addHandler(handler)
    log.setLevel(level.upper())
    return log
