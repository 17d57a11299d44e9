"""The links of an HTML page that lead to other pages of the same application. Pure."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import quote, urljoin, urlsplit

BASE = "http://localhost"
_LINKS = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}
_ENDS = re.compile(r"\b(log|sign)[_-]?(out|off)\b", re.IGNORECASE)
"""Links that end what the others need."""


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "base":
            self.base = values.get("href") or ""
        elif tag in _LINKS:
            self.found.append(values.get(_LINKS[tag]) or "")
        elif tag == "form" and (values.get("method") or "get").lower() == "get":
            self.found.append(values.get("action") or "")


def list_links(html: str, target: str) -> list[str]:
    """Return the targets (path and query) that a page at ``target`` links to by GET, in order, each once."""
    parser = _Links()
    parser.feed(html)
    page = urljoin(BASE + target, parser.base)
    found: dict[str, None] = {}
    for link in parser.found:
        try:
            url = urlsplit(urljoin(page, link.strip()))
        except ValueError:
            continue
        if f"{url.scheme}://{url.netloc}" != BASE or _ENDS.search(url.path):
            continue
        path = quote(url.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = quote(url.query, safe="/%:@!$&'()*+,;=~-._?")
        found[f"{path}?{query}" if query else path] = None
    return list(found)
