"""Ends the process where it should only end the request."""

import os


def application(environ, start_response):
    """Answer a page."""
    if environ["QUERY_STRING"] == "bob":
        os._exit(0)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
