"""The store in MariaDB or MySQL, through PyMySQL on its UNIX socket."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pymysql

from apps.shop.products import Product

DATABASE = "shop"
SCHEMA = (
    f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4",
    f"USE {DATABASE}",
    "DROP TABLE IF EXISTS sessions, products",
    "CREATE TABLE sessions (name CHAR(32) PRIMARY KEY, data TEXT NOT NULL)",
    "CREATE TABLE products (code VARCHAR(16) PRIMARY KEY, description VARCHAR(100) NOT NULL, price INT NOT NULL)",
)


class MysqlStore:
    """``socket``: the server's UNIX socket. The database is made by ``fill``."""

    def __init__(self, socket: str) -> None:
        self.connection = pymysql.connect(
            unix_socket=socket, user="root", charset="utf8mb4", autocommit=True, ssl_disabled=True
        )
        self._chosen = False

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> tuple[tuple[Any, ...], ...]:
        if not self._chosen:
            self.connection.select_db(DATABASE)
            self._chosen = True
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values)
            rows: tuple[tuple[Any, ...], ...] = cursor.fetchall()
            return rows

    def fill(self, products: Iterable[Product]) -> None:
        """See ``Store``."""
        with self.connection.cursor() as cursor:
            for statement in SCHEMA:
                cursor.execute(statement)
            cursor.executemany("INSERT INTO products VALUES (%s, %s, %s)", list(products))

    def zero(self) -> None:
        """See ``Store``."""
        self._run("TRUNCATE sessions")

    def create_session(self, name: str, data: str) -> None:
        """See ``Store``."""
        self._run("INSERT INTO sessions VALUES (%s, %s)", (name, data))

    def read_session(self, name: str) -> str | None:
        """See ``Store``."""
        rows = self._run("SELECT data FROM sessions WHERE name = %s", (name,))
        return rows[0][0] if rows else None

    def count_sessions(self) -> int:
        """See ``Store``."""
        return int(self._run("SELECT count(*) FROM sessions")[0][0])

    def read_products(self) -> list[Product]:
        """See ``Store``."""
        return [Product(*row) for row in self._run("SELECT code, description, price FROM products ORDER BY code")]

    def close(self) -> None:
        """See ``Store``."""
        self.connection.close()
