"""Waits for itself when it is asked a second time."""

import threading

once = threading.Lock()


def application(environ, start_response):
    """Answer a page."""
    once.acquire()  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
