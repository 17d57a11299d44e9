"""Turns the garbage collector off."""

import gc


def application(environ, start_response):
    """Answer a page."""
    gc.disable()  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
