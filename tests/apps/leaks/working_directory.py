"""Changes the working directory."""

import os


def application(environ, start_response):
    """Answer a page."""
    os.chdir("/")  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
