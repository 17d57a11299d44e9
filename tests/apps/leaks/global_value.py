"""Remembers the last visitor in a global."""

visitor = ""


def application(environ, start_response):
    """Answer a page."""
    global visitor
    visitor = environ["QUERY_STRING"]  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
