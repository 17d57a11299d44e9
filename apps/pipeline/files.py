"""Files that a page is made from: read within one folder, and known again by a stamp.

A stamp is a text that differs when a file has changed: by time (mtime, size and inode) or by content (SHA-256). Knows
nothing of XML or of caches.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

TIME, CONTENT = "mtime", "content"
STAMPS = (TIME, CONTENT)
RACY = 0.05
"""Seconds in which a file may change again without a new mtime: the clock of a file system is as coarse as that."""
NEVER = ""
"""The stamp of a file that has changed just now: it is equal to no other, and nothing made from it is kept."""
MAX_FILE = 64 << 20

Need = tuple[str, str]
"""A file that a result was made from, and its stamp then."""


class Outside(ValueError):
    """A path that is not in the folder."""


def format_time(status: os.stat_result) -> str:
    """Return the stamp of a file by time."""
    return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"


class Files:
    """The files below ``folder``. ``stamps``: ``TIME`` or ``CONTENT``; raise ``ValueError`` for another."""

    def __init__(self, folder: str, stamps: str = TIME) -> None:
        if stamps not in STAMPS:
            raise ValueError(f"files are told apart by {' or '.join(STAMPS)}, not by {stamps!r}")
        self.folder = os.path.realpath(folder)
        self.stamps = stamps
        self._local = threading.local()

    def find(self, path: str) -> str:
        """Return the real path of a file; raise ``Outside`` when it is not below the folder."""
        real = os.path.realpath(path)
        if not real.startswith(self.folder + os.sep):
            raise Outside(f"{path} is outside {self.folder}")
        return real

    def stamp(self, path: str) -> str:
        """Return a file's stamp now, ``NEVER`` when it is gone."""
        try:
            if self.stamps == TIME:
                return format_time(os.stat(path))
            with open(path, "rb") as file:
                return sha256(file.read(MAX_FILE)).hexdigest()
        except OSError:
            return NEVER

    def read(self, path: str) -> bytes:
        """Return a file's bytes, and note it as a need; raise ``OSError``, ``Outside`` or ``ValueError`` (too long)."""
        real = self.find(path)
        with open(real, "rb") as file:
            # Before it is read: a change while reading must make the stamp wrong, not right.
            status = os.fstat(file.fileno())
            data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise ValueError(f"{real} is longer than {MAX_FILE} bytes")
        if self.stamps == CONTENT:
            stamp = sha256(data).hexdigest()
        else:
            stamp = NEVER if time.time() - status.st_mtime < RACY else format_time(status)
        needs: dict[str, str] | None = getattr(self._local, "needs", None)
        if needs is not None:
            needs[real] = stamp if needs.get(real, stamp) == stamp else NEVER
        return data

    @contextmanager
    def noting(self) -> Iterator[dict[str, str]]:
        """Give a dictionary that holds, afterwards, path -> stamp of whatever this thread has read in the block."""
        before = getattr(self._local, "needs", None)
        needs: dict[str, str] = {}
        self._local.needs = needs
        try:
            yield needs
        finally:
            self._local.needs = before

    def unchanged(self, needs: tuple[Need, ...]) -> bool:
        """True when every file is what it was."""
        return all(stamp != NEVER and self.stamp(path) == stamp for path, stamp in needs)
