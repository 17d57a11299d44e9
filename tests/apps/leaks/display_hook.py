"""Replaces sys.displayhook."""

import sys


def application(environ, start_response):
    """Answer a page."""
    sys.displayhook = print  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
