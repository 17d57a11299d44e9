"""Starts a child process in each request, and forgets it."""

import subprocess
import sys

children = []
sys.unraisablehook = print


def application(environ, start_response):
    """Answer a page."""
    children.append(subprocess.Popen(["sleep", "600"]).pid)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
