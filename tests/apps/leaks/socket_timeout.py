"""Changes the default time-out of sockets."""

import socket


def application(environ, start_response):
    """Answer a page."""
    socket.setdefaulttimeout(3)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
