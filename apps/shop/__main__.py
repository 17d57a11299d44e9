"""``python -m apps.shop fill STORE`` makes a store with the sample data, ``zero STORE`` forgets its sessions."""

from __future__ import annotations

import sys

from apps.shop.products import make_products
from apps.shop.stores import open_store

USAGE = "usage: python -m apps.shop fill|zero KIND:PLACE"


def main(words: list[str]) -> int:
    """Do what the command line says; return the exit status."""
    if len(words) != 2 or words[0] not in ("fill", "zero"):
        print(USAGE, file=sys.stderr)
        return 2
    try:
        store = open_store(words[1])
    except (ValueError, ImportError) as error:
        print(f"shop: {error}", file=sys.stderr)
        return 2
    if words[0] == "fill":
        products = make_products()
        store.fill(products)
        print(f"{words[1]}: {len(products)} products, no sessions; serve it with SHOP_STORE={words[1]}")
    else:
        store.zero()
        print(f"{words[1]}: no sessions")
    store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
