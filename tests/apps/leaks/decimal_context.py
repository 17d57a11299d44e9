"""Changes the precision of later sums."""

import decimal


def application(environ, start_response):
    """Answer a page."""
    decimal.getcontext().prec = 6  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
