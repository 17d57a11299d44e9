"""What a script says on standard error, as lines of the log: named, escaped and bounded.

Knows a log; does not know which execution model runs the script or where the bytes come from.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import Log

MAX_LINE = 16384
MAX_TOTAL = 262144
"""Bytes of standard error that one run may put into the log (C08); the rest is counted and dropped."""


GONE = {"cgi": "legacy-cgi", "cgitb": "legacy-cgi"}
"""Modules that scripts of old import and Python has no more -> the package on PyPI that has them."""
_MISSING = "ModuleNotFoundError: No module named "


def escape_line(text: str) -> str:
    """Return ``text`` with every unprintable character visible, so that it stays one line of a log (B135)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def format_exception(error: BaseException) -> bytes:
    """Return an exception with its traceback as bytes of standard error; source lines are read afresh."""
    import linecache
    import traceback

    linecache.checkcache()
    return "".join(traceback.format_exception(error)).encode("utf-8", "backslashreplace")


def find_hint(line: str) -> str:
    """Return what to do about a missing module that an exception's last line names, ``""`` for any other line."""
    if not line.startswith(_MISSING):
        return ""
    name = line[len(_MISSING) :].strip("'")
    package = GONE.get(name)
    return f"the module {name} is not in Python since 3.13: pip install {package}" if package else ""


class ScriptLog:
    """Lines of one run on their way to the log. ``name`` is the script's path, put before each line. ``hint``: what its
    author may do about what a line said. ``pending``: something came, and ``finish`` has something to say."""

    __slots__ = ("_dropped", "_log", "_partial", "_room", "hint", "name", "pending")

    def __init__(self, log: Log, name: str) -> None:
        self._log = log
        self.name = name
        self.hint = ""
        self.pending = False
        self._partial = b""
        self._room = MAX_TOTAL
        self._dropped = 0

    def write(self, data: bytes) -> None:
        """Take bytes of standard error; each complete line is logged."""
        self.pending = True
        if len(data) > self._room:
            self._dropped += len(data) - self._room
            data = data[: self._room]
        self._room -= len(data)
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        for line in lines:
            self._write_line(line)
        while len(self._partial) > MAX_LINE:
            self._write_line(self._partial[:MAX_LINE])
            self._partial = self._partial[MAX_LINE:]

    def note(self, message: str) -> None:
        """Log one sentence about the script itself (exit status, signal ...)."""
        self.finish()
        self._log.error("%s: %s", self.name, escape_line(message))

    def write_exception(self, error: BaseException) -> None:
        """Log an exception with its traceback, as standard error would have shown it."""
        self.write(format_exception(error))

    def finish(self) -> None:
        """Log what is left: an unended line, and how much was dropped."""
        partial, self._partial = self._partial, b""
        if partial:
            self._write_line(partial)
        if self._dropped:
            self._log.warning("%s: %d more bytes of standard error were dropped", self.name, self._dropped)
            self._dropped = 0

    def _write_line(self, line: bytes) -> None:
        text = line[:-1] if line.endswith(b"\r") else line
        if text:
            said = text.decode("utf-8", "backslashreplace")
            self._log.error("%s: %s", self.name, escape_line(said))
            hint = find_hint(said)
            if hint:
                self.hint = hint
                self._log.error("%s: %s", self.name, hint)
