#!/usr/bin/env python3
"""Every variable, sorted, as a definition list, with werkzeug's request and response."""

from __future__ import annotations

from html import escape
from wsgiref.handlers import CGIHandler

from werkzeug.wrappers import Request, Response


@Request.application
def application(request: Request) -> Response:
    """Answer with a response object."""
    variables = {name: value for name, value in request.environ.items() if type(value) is str and "." not in name}
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(variables[name])}</dd>\n" for name in sorted(variables))
    page = f"<!DOCTYPE html><html lang=en>\n<title>Environment</title>\n<dl>\n{rows}</dl>\n"
    return Response(page, content_type="text/html; charset=utf-8")


if __name__ == "__main__":
    CGIHandler().run(application)
