"""The sample data: the same products, in the same order, for every store. Pure."""

from __future__ import annotations

from typing import NamedTuple

KINDS = ("Brush", "Saw", "Hammer", "Ladder", "Paint", "Plane", "Rule", "Chisel", "Vice", "Drill")
MAKES = ("small", "plain", "good", "heavy", "fine", "large", "old", "short", "long", "best")
COUNT = 500


class Product(NamedTuple):
    """``price``: in cents."""

    code: str
    description: str
    price: int


def make_products(count: int = COUNT) -> list[Product]:
    """Return ``count`` products, by code."""
    return [
        Product(
            f"os{number:05d}",
            f"{KINDS[number % len(KINDS)]}, {MAKES[number // len(KINDS) % len(MAKES)]}, no. {number}",
            100 + number * 7919 % 9900,
        )
        for number in range(count)
    ]


def format_line(product: Product) -> str:
    """Return a product as a line of the test page: code, description, price."""
    return f"{product.code} {product.description} {product.price // 100}.{product.price % 100:02d}\n"
