"""Changes the recursion limit."""

import sys


def application(environ, start_response):
    """Answer a page."""
    sys.setrecursionlimit(5000)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
