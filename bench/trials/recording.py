"""The application of `pinned` and `full`: it sleeps if told to, and writes down who ran which request, and when.

``/sleep/SECONDS/ID`` or ``/ID``; a line of the file RECORD is ``ID PID BEGIN END``, in monotonic nanoseconds, which all
processes of a machine count alike. A WSGI application like any other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

_files: dict[str, int] = {}


def application(environ: dict[str, Any], start_response: Callable[..., Callable[[bytes], object]]) -> Iterable[bytes]:
    """Answer ``ok``."""
    begin = time.monotonic_ns()
    *words, name = environ["PATH_INFO"].split("/")
    if "sleep" in words:
        time.sleep(float(words[-1]))
    path = environ["RECORD"]
    if path not in _files:
        _files[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    os.write(_files[path], f"{name or 0} {os.getpid()} {begin} {time.monotonic_ns()}\n".encode())
    return [b"ok"]
