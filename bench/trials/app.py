"""The application of the trials: quick, slow and stuck requests, each by its path. A WSGI application like any other.

``/pid`` its worker; ``/sleep/SECONDS``; ``/upload`` the size of what was sent; ``/size/BYTES``; ``/stuck/WAY`` never.
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any


def hold_by_pattern() -> object:
    """Search for a pattern that tries 2 ** 60 ways, in C, without ever letting go of the interpreter."""
    return re.match("(a+)+$", "a" * 60 + "b")


def hold_by_number() -> object:
    """Multiply numbers for hours in C, without ever letting go of the interpreter."""
    return 3 ** (10**10)


def wait_in_foreign_code() -> object:
    """Sleep in C, holding the interpreter: a signal ends this sleep, as sleep(3) says."""
    return ctypes.PyDLL(None).sleep(600)


def wait_for_lock() -> object:
    """Wait for a lock that nobody gives back."""
    lock = threading.Lock()
    lock.acquire()
    return lock.acquire()


def wait_for_database() -> object:
    """Read from a server that has accepted the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_connection(silent.getsockname()) as client:
        client.sendall(b"SELECT 1")
        return client.recv(1)


WAYS: dict[str, Callable[[], object]] = {
    "sleep": lambda: time.sleep(600),
    "pattern": hold_by_pattern,
    "number": hold_by_number,
    "foreign": wait_in_foreign_code,
    "lock": wait_for_lock,
    "database": wait_for_database,
}


def count_input(environ: dict[str, Any]) -> int:
    """Read the whole request body."""
    size = 0
    while piece := environ["wsgi.input"].read(65536):
        size += len(piece)
    return size


def application(environ: dict[str, Any], start_response: Callable[..., Callable[[bytes], object]]) -> Iterable[bytes]:
    """Answer by path."""
    word, _, rest = environ["PATH_INFO"].lstrip("/").partition("/")
    body = b"%d\n" % os.getpid()
    fields = [("Content-Type", "text/plain"), ("X-Worker", str(os.getpid()))]
    if word == "sleep":
        time.sleep(float(rest))
    elif word == "upload":
        body = b"%d\n" % count_input(environ)
    elif word == "size":
        body = bytes(int(rest))
    elif word == "stuck":
        WAYS[rest]()
    elif word == "half":
        start_response("200 OK", [*fields, ("Content-Length", "100")])(b"half")
        time.sleep(600)
    start_response("200 OK", [*fields, ("Content-Length", str(len(body)))])
    return [body]


if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)
