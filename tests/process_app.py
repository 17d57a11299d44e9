"""An application that says who it is, for the test of User and Group; not a test itself."""

from __future__ import annotations

import os


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d %d" % (os.getuid(), os.getgid())]
