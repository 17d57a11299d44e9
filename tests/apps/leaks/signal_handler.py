"""Leaves its own handler of a signal."""

import signal


def application(environ, start_response):
    """Answer a page."""
    signal.signal(signal.SIGUSR1, lambda number, frame: None)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
