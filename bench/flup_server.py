"""flup with a WSGI application, as a program: ``python -P flup_server.py fcgi|scgi|ajp PORT FILE``.

Run by the Python of flup's own environment, so it imports nothing of ours. Threads in one process, flup's defaults.
"""

from __future__ import annotations

import importlib
import logging
import runpy
import sys


def main(wire: str, port: str, file: str) -> int:
    """Serve ``application`` of ``file`` until a signal comes; return the exit status."""
    module = importlib.import_module(f"flup.server.{wire}")
    options = {} if wire == "fcgi" else {"loggingLevel": logging.WARNING}
    application = runpy.run_path(file)["application"]
    module.WSGIServer(application, bindAddress=("127.0.0.1", int(port)), **options).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
