"""The pid file: who runs is said by a lock on it, never by the number in it (P12).

A number may be recycled, foreign, or nonsense; a lock ends with its holder, however it ends. Knows no signal.
"""

from __future__ import annotations

import fcntl
import os
import stat

from gateways.core.errors import ConfigurationError

ATTEMPTS = 10
MODE = 0o644
ASIDE = ".old"
REPORT = ".reload"


class PidFile:
    """The file at ``path``, from ``claim`` to ``release``; ``fd`` holds the lock, and a worker closes it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1
        self._at = path

    def claim(self) -> None:
        """Lock the file and write this process's pid to it. Raise ``ConfigurationError`` when somebody holds it.

        Also when it cannot be written, and then no part of it is left.
        """
        try:
            before = self._lock()
            try:
                self.fd = self._replace()
            except OSError:
                if os.fstat(before).st_size == 0:
                    os.unlink(self.path)
                raise
            finally:
                os.close(before)
        except OSError as error:
            raise ConfigurationError(f"PidFile {self.path} cannot be written: {error.strerror}") from error

    def _lock(self) -> int:
        for _ in range(ATTEMPTS):
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, MODE)
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                os.close(fd)
                raise ConfigurationError(f"PidFile {self.path} is something else than a file")
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = parse_pid(os.pread(fd, 32, 0))
                os.close(fd)
                raise ConfigurationError(f"PidFile {self.path}: process {holder or '?'} is running with it") from None
            if is_at(fd, self.path):
                return fd
            os.close(fd)  # somebody has put another file in its place between our two steps
        raise ConfigurationError(f"PidFile {self.path} changes all the time")

    def _replace(self) -> int:
        name = f"{self.path}.{os.getpid()}"
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            text = b"%d\n" % os.getpid()
            if os.write(fd, text) != len(text):
                raise OSError(28, "No space left on device")
            os.fsync(fd)
            os.rename(name, self.path)
        except OSError:
            os.unlink(name)
            os.close(fd)
            raise
        return fd

    def step_aside(self) -> None:
        """Leave the path to a successor; the lock goes with the file."""
        self._move(self.path + ASIDE)

    def step_back(self) -> None:
        """Take the path again after a successor has failed."""
        self._move(self.path)

    def _move(self, path: str) -> None:
        try:
            if is_at(self.fd, self._at):
                os.rename(self._at, path)
                self._at = path
        except OSError:
            pass  # the directory has become unwritable: the lock holds under the old name as well

    def report(self, number: int, failed: bool) -> None:
        """Leave beside the file how reload ``number`` has gone, for whoever has asked for it (``read_report``)."""
        name = f"{self.path}{REPORT}"
        try:
            fd = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, MODE)
            try:
                os.write(fd, f"{os.getpid()} {number} {'failed' if failed else 'done'}\n".encode())
            finally:
                os.close(fd)
            os.rename(f"{name}.new", name)
        except OSError:
            pass  # who asks waits in vain, and says so

    def release(self) -> None:
        """Remove the file if it is still ours, and let go of the lock."""
        if self.fd >= 0:
            try:
                if is_at(self.fd, self._at):
                    os.unlink(self._at)
                    if self._at == self.path:
                        os.unlink(self.path + REPORT)
            except OSError:
                pass
            os.close(self.fd)
            self.fd = -1


def is_at(fd: int, path: str) -> bool:
    """Return True when the open file ``fd`` is the one at ``path``."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def parse_pid(data: bytes) -> int:
    """Return the pid that a pid file holds, 0 when it holds none."""
    text = data.strip()
    return int(text) if text.isdigit() and len(text) <= 10 else 0


def find_running(path: str) -> int:
    """Return the pid of the supervisor that holds the pid file at ``path``; 0 when none does.

    Raise ``OSError`` when there is no such file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return parse_pid(os.pread(fd, 32, 0))
    finally:
        os.close(fd)
    return 0


def read_report(path: str) -> str:
    """Return what ``PidFile.report`` has left last, ``""`` for nothing yet."""
    try:
        with open(path + REPORT, encoding="ascii") as file:
            return file.read(100)
    except OSError:
        return ""
