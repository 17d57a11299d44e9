"""Replaces a function of the standard library."""

import json


def application(environ, start_response):
    """Answer a page."""
    json.dumps = str  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
