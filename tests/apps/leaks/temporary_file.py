"""Keeps temporary folders until the process ends."""

import tempfile

kept = []


def application(environ, start_response):
    """Answer a page."""
    kept.append(tempfile.TemporaryDirectory())  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
