"""Puts a finder into the import system in each request."""

import sys


class Finder:
    """Finds nothing."""

    def find_spec(self, name, path=None, target=None):
        """Find nothing."""


def application(environ, start_response):
    """Answer a page."""
    sys.meta_path.insert(0, Finder())  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
