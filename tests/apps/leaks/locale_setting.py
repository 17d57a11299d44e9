"""Changes the locale."""

import locale

locale.setlocale(locale.LC_ALL, "C")


def application(environ, start_response):
    """Answer a page."""
    locale.setlocale(locale.LC_ALL, "C.UTF-8")  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
