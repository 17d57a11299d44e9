"""Counts in an attribute of a function."""


def application(environ, start_response):
    """Answer a page."""
    application.calls = getattr(application, "calls", 0) + 1  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
