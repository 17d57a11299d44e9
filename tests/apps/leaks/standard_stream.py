"""Replaces sys.stderr."""

import io
import sys


def application(environ, start_response):
    """Answer a page."""
    sys.stderr = io.StringIO()  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
