"""The store in one SQLite file, which needs nothing that Python has not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from apps.shop.products import Product

SCHEMA = """
DROP TABLE IF EXISTS sessions;
DROP TABLE IF EXISTS products;
CREATE TABLE sessions (name TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE products (code TEXT PRIMARY KEY, description TEXT NOT NULL, price INTEGER NOT NULL) WITHOUT ROWID;
"""
WAIT = 10.0


class SqliteStore:
    """``path``: the file. Written in WAL mode, so that who reads waits for nobody."""

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=NORMAL")

    def fill(self, products: Iterable[Product]) -> None:
        """See ``Store``."""
        self.connection.executescript(SCHEMA)
        self.connection.executemany("INSERT INTO products VALUES (?, ?, ?)", products)

    def zero(self) -> None:
        """See ``Store``."""
        self.connection.execute("DELETE FROM sessions")

    def create_session(self, name: str, data: str) -> None:
        """See ``Store``."""
        self.connection.execute("INSERT INTO sessions VALUES (?, ?)", (name, data))

    def read_session(self, name: str) -> str | None:
        """See ``Store``."""
        row = self.connection.execute("SELECT data FROM sessions WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def count_sessions(self) -> int:
        """See ``Store``."""
        return int(self.connection.execute("SELECT count(*) FROM sessions").fetchone()[0])

    def read_products(self) -> list[Product]:
        """See ``Store``."""
        rows = self.connection.execute("SELECT code, description, price FROM products ORDER BY code")
        return [Product(*row) for row in rows]

    def close(self) -> None:
        """See ``Store``."""
        self.connection.close()
