"""Closes every descriptor, the server's among them."""

import os


def application(environ, start_response):
    """Answer a page."""
    os.closerange(3, 100)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
