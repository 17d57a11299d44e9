"""Replaces sys.excepthook."""

import sys


def application(environ, start_response):
    """Answer a page."""
    sys.excepthook = lambda kind, error, traceback: None  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
