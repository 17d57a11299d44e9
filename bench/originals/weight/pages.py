#!/usr/bin/env python3
"""A light page and a heavy one: hello, and a price list of a thousand rows that is made, sorted and added up each time.

One file that is a CGI script, a WSGI callable and a native handler, as ``apps/hello.py`` is.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

ROWS = 1000
HTML = "text/html; charset=utf-8"
HELLO = b"<!DOCTYPE html><html lang=en>\n<title>Hello</title>\n<pre>\n" + b"1234567890\n" * 100 + b"</pre>\n"


def make_page(path: str) -> bytes:
    """Return the page at a path: the price list at ``/heavy``, hello everywhere else."""
    return make_list() if path == "/heavy" else HELLO


def make_list() -> bytes:
    """Return the price list: every row's code, name and price, the cheapest first, and the sum."""
    products = [(number * 7919 % 10000, f"P{number:04d}", f"<Product> & {number}") for number in range(1, ROWS + 1)]
    rows = "".join(
        f"<tr><td>{code}</td><td>{escape(name)}</td><td>{show(price)}</td></tr>\n"
        for price, code, name in sorted(products)
    )
    total = show(sum(price for price, _, _ in products))
    return f"<!DOCTYPE html><html lang=en>\n<title>Prices</title>\n<table>\n{rows}</table>\n<p>{total}\n".encode()


def show(cents: int) -> str:
    """Return an amount as people write it."""
    return f"{cents // 100}.{cents % 100:02d}"


def escape(text: str) -> str:
    """Return text that is safe in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def application(environ: "dict[str, Any]", start_response: "Callable[..., Any]") -> "Iterable[bytes]":
    """Answer as a WSGI application (PEP 3333)."""
    page = make_page(environ.get("PATH_INFO", ""))
    start_response("200 OK", [("Content-Type", HTML), ("Content-Length", str(len(page)))])
    return [page]


def handler(request: "Any") -> None:
    """Answer as a native handler."""
    request.set_field("Content-Type", HTML)
    request.write(make_page(request.path_info))


if __name__ == "__main__":
    body = make_page(os.environ.get("PATH_INFO", ""))
    sys.stdout.buffer.write(f"Content-Type: {HTML}\r\nContent-Length: {len(body)}\r\n\r\n".encode("ascii") + body)
    sys.stdout.buffer.flush()
