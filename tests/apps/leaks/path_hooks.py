"""Puts a hook into the import system in each request."""

import sys


def refuse(path):
    """Import nothing."""
    raise ImportError(path)


def application(environ, start_response):
    """Answer a page."""
    sys.path_hooks.append(refuse)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
