"""Lets everybody write to whatever is created later."""

import os


def application(environ, start_response):
    """Answer a page."""
    os.umask(0)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
