"""The shop's pages. Whoever comes without a session gets one, on every page.

``/blank`` holds nothing but the shop's frame; ``/dbtest`` has a line for every product; ``/session`` tells how many
times this session was new (once) and when. The store is the one that SHOP_STORE names (``apps.shop.stores``); each
process opens its own when the first request comes.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any

from apps.shop.products import format_line
from apps.shop.stores import Store, open_store

FRAME = "<!DOCTYPE html><html lang=en>\n<title>{title}</title>\n{inner}"
NAME = re.compile(r"[0-9a-f]{32}")
COOKIE = "session"


class Site:
    """The shop with the store called ``name``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._store: tuple[int, Store] | None = None

    def open(self) -> Store:
        """Return this process's store: a child does not go on with its parent's connection."""
        if self._store is None or self._store[0] != os.getpid():
            self._store = os.getpid(), open_store(self.name)
        return self._store[1]

    def close(self) -> None:
        """Hold nothing open, until the next request."""
        if self._store is not None and self._store[0] == os.getpid():
            self._store[1].close()
        self._store = None

    def find_session(self, store: Store, environ: dict[str, Any]) -> tuple[str, str, bool]:
        """Return (name, data, whether it is new) of the request's session; a new one is kept."""
        name = read_cookie(environ.get("HTTP_COOKIE", ""))
        data = store.read_session(name) if name else None
        if data is not None:
            return name, data, False
        name, data = secrets.token_hex(16), json.dumps({"begun": int(time.time()), "cart": []})
        store.create_session(name, data)
        return name, data, True

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer as a WSGI application (PEP 3333)."""
        page = PAGES.get(environ.get("PATH_INFO", ""))
        if page is None:
            return answer(environ, start_response, "404 Not Found", f"<p>no such page; there are {', '.join(PAGES)}\n")
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return answer(environ, start_response, "405 Method Not Allowed", "<p>GET only\n", ("Allow", "GET, HEAD"))
        store = self.open()
        try:
            name, data, new = self.find_session(store, environ)
            inner = page(store, data)
        except Exception:
            self.close()  # it may have lost its server: the next request opens another
            raise
        path = environ.get("SCRIPT_NAME") or "/"
        cookie = [("Set-Cookie", f"{COOKIE}={name}; Path={path}; HttpOnly; SameSite=Lax")] if new else []
        return answer(environ, start_response, "200 OK", inner, *cookie)


def read_cookie(text: str) -> str:
    """Return the session's name in a Cookie field, ``""`` when there is none that could be one."""
    try:
        morsel = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel is not None and NAME.fullmatch(morsel.value) else ""


def answer(
    environ: dict[str, Any], start_response: Callable[..., Any], status: str, inner: str, *fields: tuple[str, str]
) -> list[bytes]:
    """Begin an answer and return its body."""
    body = FRAME.format(title="Shop", inner=inner).encode()
    start_response(
        status,
        [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body))), *fields],
    )
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def show_products(store: Store, _data: str) -> str:
    """Return every product, one line each."""
    return f"<pre>\n{''.join(map(format_line, store.read_products()))}</pre>\n"


def show_session(_store: Store, data: str) -> str:
    """Return when the session was begun."""
    session = json.loads(data)
    return f"<p>begun {session['begun']}, {len(session['cart'])} in the cart\n"


PAGES: dict[str, Callable[[Store, str], str]] = {
    "/blank": lambda _store, _data: "",
    "/dbtest": show_products,
    "/session": show_session,
}
"""Path -> what makes the inner part of the page."""

application = Site(os.environ.get("SHOP_STORE", "sqlite:shop.sqlite"))
