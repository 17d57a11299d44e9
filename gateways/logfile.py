"""A file that several processes append lines to: opened anew when it was moved away, and never a reason to stop.

Knows what is appended as bytes only. Importing it opens nothing.
"""

from __future__ import annotations

import os


class LogFile:
    """A file that is appended to, each piece by one ``write``, so that processes do not mix within a piece.

    ``path``: the file; ``""`` for the descriptor ``standard``, which stays open. Raise ``OSError`` when it cannot be
    opened.
    """

    __slots__ = ("_fd", "_path", "_standard")

    def __init__(self, path: str, standard: int) -> None:
        self._path = path
        self._standard = standard
        self._fd = -1
        self._fd = self._open()

    def _open(self) -> int:
        if not self._path:
            return self._standard
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def reopen(self) -> None:
        """Open the file again under its name, keeping the old one if that fails."""
        if not self._path:
            return
        try:
            fd = self._open()
        except OSError:
            return
        if self._fd < 0:
            self._fd = fd
            return
        os.dup2(fd, self._fd, inheritable=False)
        os.close(fd)

    def follow(self) -> None:
        """Open the file again if its name means another file now, or none: two system calls."""
        if self._path and self._was_moved():
            self.reopen()

    def _was_moved(self) -> bool:
        try:
            return not os.path.samestat(os.stat(self._path), os.fstat(self._fd))
        except OSError:
            return True

    def append(self, data: bytes) -> None:
        """Write ``data``; what cannot be written is lost, because there is no other place to say so."""
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                data = data[written:]
                written = os.write(self._fd, data)
        except OSError:
            pass

    def __del__(self) -> None:
        # A reload drops what the old settings opened, and nobody is left to close it.
        self.close()

    def close(self) -> None:
        """Close the file; a standard descriptor stays open."""
        if self._path and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
