"""flup with a WSGI application, as a program: ``python -P flup_server.py MODULE PORT FILE``.

``MODULE`` is one of flup's servers: ``fcgi``, ``scgi`` or ``ajp`` (threads in one process), ``fcgi_fork``,
``scgi_fork`` or ``ajp_fork`` (preforked processes), with flup's defaults. Run by the Python of flup's own environment,
so it imports nothing of ours.
"""

from __future__ import annotations

import importlib
import logging
import runpy
import sys


def main(name: str, port: str, file: str) -> int:
    """Serve ``application`` of ``file`` until a signal comes; return the exit status."""
    module = importlib.import_module(f"flup.server.{name}")
    options = {} if name.startswith("fcgi") else {"loggingLevel": logging.WARNING}
    application = runpy.run_path(file)["application"]
    module.WSGIServer(application, bindAddress=("127.0.0.1", int(port)), **options).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
