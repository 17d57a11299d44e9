"""Appends to a global list."""

seen = []


def application(environ, start_response):
    """Answer a page."""
    seen.append(environ["QUERY_STRING"])  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
