#!/usr/bin/env python3
"""Every variable, sorted, as a definition list, with what the standard library offers for it: wsgiref and html."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any
from wsgiref.handlers import CGIHandler


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer as a WSGI application (PEP 3333)."""
    variables = {name: value for name, value in environ.items() if type(value) is str and "." not in name}
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(variables[name])}</dd>\n" for name in sorted(variables))
    page = f"<!DOCTYPE html><html lang=en>\n<title>Environment</title>\n<dl>\n{rows}</dl>\n".encode(
        "latin-1", "replace"
    )
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(page)))])
    return [page]


if __name__ == "__main__":
    CGIHandler().run(application)
