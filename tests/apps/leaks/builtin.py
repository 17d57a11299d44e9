"""Adds a builtin."""

import builtins


def application(environ, start_response):
    """Answer a page."""
    builtins.translate = str  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
