"""The store in PostgreSQL, through psycopg on its UNIX socket."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from apps.shop.products import Product

SCHEMA = """
DROP TABLE IF EXISTS sessions, products;
CREATE TABLE sessions (name CHAR(32) PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE products (code VARCHAR(16) COLLATE "C" PRIMARY KEY, description VARCHAR(100) NOT NULL,
                       price INTEGER NOT NULL);
"""


class PostgresqlStore:
    """``folder``: where the server's UNIX socket is; its database and its user are called shop."""

    def __init__(self, folder: str) -> None:
        self.connection = psycopg.connect(host=folder, dbname="shop", user="shop", autocommit=True)

    def fill(self, products: Iterable[Product]) -> None:
        """See ``Store``."""
        self.connection.execute(SCHEMA)
        with self.connection.cursor() as cursor:
            cursor.executemany("INSERT INTO products VALUES (%s, %s, %s)", list(products))

    def zero(self) -> None:
        """See ``Store``."""
        self.connection.execute("TRUNCATE sessions")

    def create_session(self, name: str, data: str) -> None:
        """See ``Store``."""
        self.connection.execute("INSERT INTO sessions VALUES (%s, %s)", (name, data))

    def read_session(self, name: str) -> str | None:
        """See ``Store``."""
        row = self.connection.execute("SELECT data FROM sessions WHERE name = %s", (name,)).fetchone()
        return row[0] if row else None

    def count_sessions(self) -> int:
        """See ``Store``."""
        row = self.connection.execute("SELECT count(*) FROM sessions").fetchone()
        return int(row[0]) if row else 0

    def read_products(self) -> list[Product]:
        """See ``Store``."""
        rows = self.connection.execute("SELECT code, description, price FROM products ORDER BY code")
        return [Product(*row) for row in rows]

    def close(self) -> None:
        """See ``Store``."""
        self.connection.close()
