"""Starts a thread in each request, and leaves it."""

import threading

forever = threading.Event()


def application(environ, start_response):
    """Answer a page."""
    threading.Thread(target=forever.wait, daemon=True).start()  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
