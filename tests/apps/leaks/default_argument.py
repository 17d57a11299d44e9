"""Appends to a default argument."""


def remember(item, items=[]):  # noqa: B006 - on purpose
    """Keep an item."""
    items.append(item)  # leak
    return items


def application(environ, start_response):
    """Answer a page."""
    remember(environ["QUERY_STRING"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
