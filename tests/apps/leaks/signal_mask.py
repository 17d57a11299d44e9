"""Leaves a signal blocked."""

import signal


def application(environ, start_response):
    """Answer a page."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
