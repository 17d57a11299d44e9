"""The floor: the least that a pure-Python HTTP server with a WSGI application can cost a request.

One process, one loop: epoll, accept, one read, find the end of the head, a real environ, the application, one write.
It is **not** a server to use. It leaves out what a server owes its clients and its operator: it checks nothing,
limits nothing and times nothing out; it reads no request body beyond what came with the head; it answers one request
a read (no pipelining); a repeated field's last line wins; a slow client blocks it; an application's exception ends it.
It is here so that the price of all that can be read as a difference.

Run: ``python -m bench.floor_server PORT [--app FILE] [--mount /PREFIX ...]``. Knows nothing of the harness.
"""

from __future__ import annotations

import argparse
import gc
import os
import runpy
import select
import socket
import sys
from collections.abc import Callable, Iterable
from io import BytesIO
from time import gmtime, strftime, time
from typing import Any
from urllib.parse import unquote_to_bytes

Application = Callable[[dict[str, Any], Callable[..., object]], Iterable[bytes]]

BACKLOG = 1024
READ_SIZE = 8192


class VariableNames(dict[str, str]):
    """A memo: field name as sent -> its CGI name. Unbounded, as everything here."""

    def __missing__(self, name: str) -> str:
        variable = name.upper().replace("-", "_")
        if variable not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            variable = "HTTP_" + variable
        self[name] = variable
        return variable


def format_template(host: str, port: int) -> dict[str, Any]:
    """Return the part of the environ that is the same for every request (PEP 3333, "environ Variables")."""
    return {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_SOFTWARE": "floor",
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SCRIPT_NAME": "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }


def serve(listener: socket.socket, application: Application) -> None:
    """Answer requests until the process is ended. One function on purpose: a call costs what this file leaves out."""
    host, port = listener.getsockname()[:2]
    template = format_template(host, port)
    names = VariableNames()
    read, write, close = os.read, os.write, os.close
    accept = listener._accept  # type: ignore[attr-defined]  # a descriptor and an address; socket.accept() would build an object for each
    listening = listener.fileno()
    epoll = select.epoll()
    epoll.register(listening, select.EPOLLIN)
    poll, register = epoll.poll, epoll.register
    kept: dict[int, Any] = {}  # descriptor -> peer address, of connections that epoll watches
    partial: dict[int, bytes] = {}
    no_body = BytesIO()
    status = ""
    fields: list[tuple[str, str]] = []
    written: list[bytes] = []
    date, date_second = "", 0

    def start_response(new_status: str, new_fields: list[tuple[str, str]], exc_info: object = None) -> object:
        nonlocal status, fields
        status, fields = new_status, new_fields
        return written.append

    while True:
        for fd, _ in poll(-1, 64):
            if fd == listening:
                fd, peer = accept()
            else:
                peer = kept[fd]
            try:
                # Blocks when the client has connected and not yet sent: TCP_DEFER_ACCEPT makes that rare.
                data = read(fd, READ_SIZE)
            except ConnectionError:
                data = b""
            if not data:
                if kept.pop(fd, None):
                    partial.pop(fd, None)
                close(fd)
                continue
            if partial and fd in partial:
                data = partial.pop(fd) + data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                partial[fd] = data
                if fd not in kept:
                    register(fd, select.EPOLLIN)
                    kept[fd] = peer
                continue

            lines = data[:end].decode("latin-1").split("\r\n")
            method, target, protocol = lines[0].split(" ")
            path, _, query = target.partition("?")
            environ = template.copy()
            environ["REQUEST_METHOD"] = method
            environ["REQUEST_URI"] = target
            environ["PATH_INFO"] = unquote_to_bytes(path).decode("latin-1") if "%" in path else path
            environ["QUERY_STRING"] = query
            environ["SERVER_PROTOCOL"] = protocol
            environ["REMOTE_ADDR"], environ["REMOTE_PORT"] = peer[0], str(peer[1])
            environ["wsgi.input"] = BytesIO(data[end + 4 :]) if len(data) > end + 4 else no_body
            del lines[0]
            for line in lines:
                name, _, value = line.partition(":")
                environ[names[name]] = value.strip()

            result = application(environ, start_response)
            body = b"".join(result)
            if hasattr(result, "close"):
                result.close()
            if written:
                body = b"".join(written) + body
                written.clear()

            token = environ.get("HTTP_CONNECTION")
            keep = protocol == "HTTP/1.1" if token is None else token.lower() == "keep-alive"
            now = time()
            if now >= date_second + 1:
                date_second = int(now)
                date = strftime("%a, %d %b %Y %H:%M:%S GMT", gmtime(now))
            head = f"HTTP/1.1 {status}\r\nDate: {date}\r\nConnection: {'keep-alive' if keep else 'close'}\r\n"
            for name, value in fields:
                head += f"{name}: {value}\r\n"
            if "\nContent-Length:" not in head:
                head += f"Content-Length: {len(body)}\r\n"
            try:
                write(fd, f"{head}\r\n".encode("latin-1") + body)
            except ConnectionError:
                keep = False

            if not keep:
                kept.pop(fd, None)
                close(fd)
            elif fd not in kept:
                register(fd, select.EPOLLIN)
                kept[fd] = peer


def strip_mounts(application: Application, mounts: list[str]) -> Application:
    """Return ``application`` served under each prefix too (``"/wsgi"``), with SCRIPT_NAME and PATH_INFO split."""

    def mounted(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        for mount in mounts:
            if path.startswith(mount + "/"):
                environ["SCRIPT_NAME"], environ["PATH_INFO"] = mount, path[len(mount) :]
                break
        return application(environ, start_response)

    return mounted


def load_application(file: str) -> Application:
    """Run ``file`` as a module and return its ``application``; raise ``KeyError`` when it has none."""
    application: Application = runpy.run_path(file)["application"]
    return application


def open_listener(port: int) -> socket.socket:
    """Return a listener on loopback that wakes the server only once a client has sent something."""
    listener = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
    return listener


def main() -> None:
    """Read the command line, announce the address on standard output, serve."""
    parser = argparse.ArgumentParser(prog="python -m bench.floor_server", description="the least a server can cost")
    parser.add_argument("port", type=int, help="0 lets the system choose")
    parser.add_argument("--app", default="apps/hello.py", help="a file that defines `application`")
    parser.add_argument("--mount", action="append", default=[], help="serve the application under this prefix too")
    arguments = parser.parse_args()
    application = load_application(arguments.app)
    if arguments.mount:
        application = strip_mounts(application, arguments.mount)
    listener = open_listener(arguments.port)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    gc.collect()
    gc.freeze()
    try:
        serve(listener, application)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
