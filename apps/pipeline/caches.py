"""Where results are kept: the interface of a cache, one in memory and one on disk. Knows keys and bytes only.

A key is a SHA-256 in hexadecimal, so that nothing of a request ever becomes part of a path. A cache may forget anything
at any time. Each has a size that it does not outgrow.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

KEY = re.compile(r"[0-9a-f]{64}")
MAX_BYTES = 64 << 20
WAIT = 10.0
"""Seconds that others are waited for while they compute what is asked for; after that it is computed once more."""
PAUSE = 0.002


class Cache(Protocol):
    """What the pipeline asks of a cache."""

    def get(self, key: str) -> bytes | None:
        """Return what was put under a key, ``None`` when there is nothing."""

    def put(self, key: str, value: bytes) -> None:
        """Keep a value, if it has room for it."""

    def computing(self, key: str) -> AbstractContextManager[None]:
        """Return a block that one at a time is in, for one key: whoever had to wait looks again before computing."""


def check_key(key: str) -> str:
    """Return a key; raise ``ValueError`` for what is none."""
    if not KEY.fullmatch(key):
        raise ValueError("a key is a SHA-256 in hexadecimal")
    return key


class MemoryCache:
    """Keeps values in this process; forgets what was not asked for the longest."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self._guard = threading.Lock()
        self._computing: dict[str, tuple[threading.Lock, int]] = {}

    def get(self, key: str) -> bytes | None:
        """See ``Cache``."""
        with self._guard:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: str, value: bytes) -> None:
        """See ``Cache``."""
        with self._guard:
            self.size += len(value) - len(self._values.pop(check_key(key), b""))
            self._values[key] = value
            while self.size > self.max_bytes:
                self.size -= len(self._values.popitem(last=False)[1])

    @contextmanager
    def computing(self, key: str) -> Iterator[None]:
        """See ``Cache``. Other processes have caches of their own, and compute for themselves."""
        with self._guard:
            lock, waiting = self._computing.get(key, (threading.Lock(), 0))
            self._computing[key] = lock, waiting + 1
        held = lock.acquire(timeout=WAIT)
        try:
            yield
        finally:
            if held:
                lock.release()
            with self._guard:
                lock, waiting = self._computing.pop(key)
                if waiting > 1:
                    self._computing[key] = lock, waiting - 1


class DiskCache:
    """Keeps values as files of one folder, for any number of processes.

    A file appears whole, by a rename. Whoever has written a sixteenth of ``max_bytes`` looks through the folder and
    removes what is oldest, so that it grows beyond by at most that much for each process.
    """

    LOCKS = 64
    STALE = 60.0
    """Seconds after which a half-written file is nobody's, and one that is asked for becomes young again."""

    def __init__(self, folder: str, max_bytes: int = MAX_BYTES) -> None:
        self.folder = os.path.abspath(folder)
        self.max_bytes = max_bytes
        self._written = 0
        os.makedirs(self.folder, mode=0o700, exist_ok=True)

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, check_key(key))

    def get(self, key: str) -> bytes | None:
        """See ``Cache``."""
        try:
            with open(self._path(key), "rb", buffering=0) as file:
                if time.time() - os.fstat(file.fileno()).st_mtime > self.STALE:
                    os.utime(file.fileno())
                return file.readall()
        except OSError:
            return None

    def put(self, key: str, value: bytes) -> None:
        """See ``Cache``. What cannot be written, because a disk is full, is not kept."""
        path = self._path(key)
        if len(value) > self.max_bytes // 16:
            return
        try:
            with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".new", delete=False) as file:
                try:
                    file.write(value)
                    file.flush()
                    os.replace(file.name, path)
                except OSError:
                    os.unlink(file.name)
                    raise
        except OSError:
            return
        self._written += len(value) + 4096
        if self._written > self.max_bytes // 16:
            self._written = 0
            self.sweep()

    def sweep(self) -> None:
        """Remove the oldest files until an eighth of the room is free, and files that nobody finished."""
        files = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if KEY.fullmatch(entry.name):
                    files.append((status.st_mtime, status.st_blocks * 512, entry.path))
                elif entry.name.endswith(".new") and time.time() - status.st_mtime > self.STALE:
                    files.append((0.0, 0, entry.path))
        excess = sum(size for _, size, _ in files) - self.max_bytes
        left = excess + self.max_bytes // 8 if excess > 0 else 0
        for modified, size, path in sorted(files):
            if modified and left <= 0:
                return
            left -= size
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass

    @contextmanager
    def computing(self, key: str) -> Iterator[None]:
        """See ``Cache``. Keys share a few locks: two pages may wait for each other, and no lock is ever left over."""
        path = os.path.join(self.folder, f"lock-{int(check_key(key)[:8], 16) % self.LOCKS}")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + WAIT
            while not lock_at_once(descriptor) and time.monotonic() < deadline:
                time.sleep(PAUSE)
            yield
        finally:
            os.close(descriptor)


def lock_at_once(descriptor: int) -> bool:
    """True when nobody else holds the lock on a file, and now we do."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
