"""Counts in a closure."""


def make_counter():
    """Return a function that counts."""
    number = 0

    def count():
        nonlocal number
        number += 1  # leak
        return number

    return count


count = make_counter()


def application(environ, start_response):
    """Answer a page."""
    count()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
