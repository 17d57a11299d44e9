"""Leaves a timer running."""

import signal


def application(environ, start_response):
    """Answer a page."""
    signal.setitimer(signal.ITIMER_REAL, 1000)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
