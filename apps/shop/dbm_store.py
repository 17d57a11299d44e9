"""The store in two dbm files, as small shops had it: one for sessions, one for products.

A dbm file may be written by one process at a time, so a lock beside each is held while it is open. Which kind of dbm it
is depends on the Python: GNU's, the system's, or (slow) the one written in Python.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from apps.shop.products import Product

FLAVOURS = ("dbm.gnu", "dbm.ndbm", "dbm.dumb")


def load_dbm() -> Any:
    """Return the best dbm module that this Python has."""
    for name in FLAVOURS:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ImportError("this Python has no dbm")


class DbmStore:
    """``folder``: where the files are."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.dbm = load_dbm()

    @contextmanager
    def _open(self, name: str, flag: str) -> Iterator[MutableMapping[bytes, bytes]]:
        """Open a file: ``r`` to read, ``c`` to write, ``n`` anew; nobody writes while it is open, or reads a write."""
        path = os.path.join(self.folder, name)
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH if flag == "r" else fcntl.LOCK_EX)
            with self.dbm.open(path, flag, 0o600) as file:
                yield file
        finally:
            os.close(lock)

    def fill(self, products: Iterable[Product]) -> None:
        """See ``Store``."""
        os.makedirs(self.folder, exist_ok=True)
        with self._open("products", "n") as file:
            for code, description, price in products:
                file[code.encode()] = f"{price} {description}".encode()
        self.zero()

    def zero(self) -> None:
        """See ``Store``."""
        with self._open("sessions", "n"):
            pass

    def create_session(self, name: str, data: str) -> None:
        """See ``Store``."""
        with self._open("sessions", "c") as file:
            file[name.encode()] = data.encode()

    def read_session(self, name: str) -> str | None:
        """See ``Store``."""
        with self._open("sessions", "r") as file:
            key = name.encode()
            return file[key].decode() if key in file else None

    def count_sessions(self) -> int:
        """See ``Store``."""
        with self._open("sessions", "r") as file:
            return len(file.keys())

    def read_products(self) -> list[Product]:
        """See ``Store``."""
        with self._open("products", "r") as file:
            rows = [(key.decode(), file[key].decode().partition(" ")) for key in file.keys()]  # noqa: SIM118 - not iterable
        return sorted(Product(code, description, int(price)) for code, (price, _, description) in rows)

    def close(self) -> None:
        """Nothing is held open between two calls."""
