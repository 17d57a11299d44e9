"""Keeps what no module of its own can reach."""

import colorsys


def application(environ, start_response):
    """Answer a page."""
    colorsys.__dict__.setdefault("kept", []).append([bytes(100) for _ in range(20)])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
