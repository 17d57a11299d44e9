"""Adds a folder to sys.path in each request."""

import sys


def application(environ, start_response):
    """Answer a page."""
    sys.path.insert(0, "/usr/share/site")  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
