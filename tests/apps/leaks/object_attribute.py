"""Keeps the user in an object that all requests share."""


class Session:
    """Who is there."""

    user = ""


session = Session()


def application(environ, start_response):
    """Answer a page."""
    session.user = environ["QUERY_STRING"]  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
