"""Changes the C library's time zone."""

import os
import time


def application(environ, start_response):
    """Answer a page."""
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
