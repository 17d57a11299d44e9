"""Opens a file in each request, and never closes it."""

import os


def application(environ, start_response):
    """Answer a page."""
    os.open("/dev/null", os.O_RDONLY)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
