"""Counts in a class attribute."""


class Counter:
    """Counts visits."""

    total = 0


def application(environ, start_response):
    """Answer a page."""
    Counter.total += 1  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
