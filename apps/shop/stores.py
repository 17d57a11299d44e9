"""What a store does, and which there are. A store belongs to one process: it is opened by whoever uses it.

A store's name is ``KIND:PLACE``: ``dbm:FOLDER``, ``sqlite:FILE``, ``mysql:SOCKET`` (MariaDB, database ``shop``, user
``root``) or ``postgresql:FOLDER`` (of its socket; database and user ``shop``). The last two are imported when they are
opened: what speaks to them need not be installed for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Protocol

from apps.shop.products import Product

KINDS = {
    "dbm": ("apps.shop.dbm_store", "DbmStore"),
    "sqlite": ("apps.shop.sqlite_store", "SqliteStore"),
    "mysql": ("apps.shop.mysql_store", "MysqlStore"),
    "postgresql": ("apps.shop.postgresql_store", "PostgresqlStore"),
}


class Store(Protocol):
    """Sessions and products."""

    def fill(self, products: Iterable[Product]) -> None:
        """Make the store anew, with these products and no session."""

    def zero(self) -> None:
        """Forget every session."""

    def create_session(self, name: str, data: str) -> None:
        """Keep a new session."""

    def read_session(self, name: str) -> str | None:
        """Return a session's data, ``None`` when there is no such session."""

    def count_sessions(self) -> int:
        """Return how many sessions there are."""

    def read_products(self) -> list[Product]:
        """Return every product, by code."""

    def close(self) -> None:
        """Hold nothing open."""


def open_store(name: str) -> Store:
    """Return the store that ``KIND:PLACE`` names; raise ``ValueError`` for a name that is none.

    Raise ``ImportError`` when what speaks to it is not installed.
    """
    kind, _, place = name.partition(":")
    if kind not in KINDS or not place:
        raise ValueError(f"a store is KIND:PLACE, with one of {', '.join(KINDS)}, not {name!r}")
    module, cls = KINDS[kind]
    opened: Callable[[str], Store] = getattr(import_module(module), cls)
    return opened(place)
