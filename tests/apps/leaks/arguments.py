"""Uses sys.argv to talk to a parser."""

import sys


def application(environ, start_response):
    """Answer a page."""
    sys.argv = ["program", environ["QUERY_STRING"]]  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
