"""Lowers a limit of the process."""

import resource


def application(environ, start_response):
    """Answer a page."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
