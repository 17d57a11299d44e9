"""An application that can be held: /hold says who it is and waits until it is let go; anything else answers at once,
/short with less than it promises.

Both by FIFOs in GATE_FOLDER, so that a test waits for events and not for time: ``begun`` gets a line, the pid, and
``gate.PID`` is read until its writer closes it. Every answer is the pid of its process.
"""

from __future__ import annotations

import os


def application(environ, start_response):
    folder = environ["GATE_FOLDER"]
    if environ["PATH_INFO"] == "/hold":
        gate = f"{folder}/gate.{os.getpid()}"
        if not os.path.exists(gate):
            os.mkfifo(gate)
        with open(f"{folder}/begun", "w") as begun:
            begun.write(f"{os.getpid()}\n")
        with open(gate, "rb") as fifo:
            fifo.read()
    elif environ["PATH_INFO"] == "/die":
        os._exit(3)
    elif environ["PATH_INFO"] == "/short":
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "100")])
        return [b"%d" % os.getpid()]
    environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d" % os.getpid()]
