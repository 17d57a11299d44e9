"""Sets a context variable to a new object, and never resets it."""

import contextvars

current = contextvars.ContextVar("current")


def application(environ, start_response):
    """Answer a page."""
    current.set(dict(environ))  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
