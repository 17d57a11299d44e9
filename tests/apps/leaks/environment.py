"""Tells child processes the user by a variable, and leaves it there."""

import os


def application(environ, start_response):
    """Answer a page."""
    os.environ["SITE_USER"] = environ["QUERY_STRING"]  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
