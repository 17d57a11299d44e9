"""Registers an exit function in each request."""

import atexit


def application(environ, start_response):
    """Answer a page."""
    atexit.register(print, "end")  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
