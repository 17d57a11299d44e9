"""Adds a handler to a logger in each request."""

import logging


def application(environ, start_response):
    """Answer a page."""
    log = logging.getLogger("site")
    log.addHandler(logging.NullHandler())  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
