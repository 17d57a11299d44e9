"""Makes a module of its own for each request."""

import itertools
import sys
import types

numbers = itertools.count()


def application(environ, start_response):
    """Answer a page."""
    name = f"page_{next(numbers)}"
    sys.modules[name] = types.ModuleType(name)  # leak
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]
