"""Adds a warnings filter."""

import warnings


def application(environ, start_response):
    """Answer a page."""
    warnings.simplefilter("ignore", DeprecationWarning)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
