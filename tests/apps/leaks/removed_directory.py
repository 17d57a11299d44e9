"""Leaves the process in a directory that is there no more."""

import os
import tempfile


def application(environ, start_response):
    """Answer a page."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
