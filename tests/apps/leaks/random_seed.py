"""Seeds random numbers."""

import random


def application(environ, start_response):
    """Answer a page."""
    random.seed(7)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
