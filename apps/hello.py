#!/usr/bin/env python3
"""The hello app of the comparison: one file that is a CGI script, a WSGI callable and a native handler at once.

``/`` is the page of 2008: 1,164 bytes in which ``1234567890`` stands a hundred times, built anew for each request.
``/gateway`` tells how the request came, ``/env`` shows every variable, ``/size/N`` sends N bytes, ``/post`` tells the
length and SHA-256 of the body it was sent. Every page is the same bytes in every mode, given the same variables.

It imports next to nothing, because as a plain CGI script it pays for every import on every request.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Read = Callable[[int], bytes]
    Answer = tuple[str, str, int, Iterable[bytes]]

LINE = b"1234567890\n"
LINES = 100
HEAD = b"<!DOCTYPE html><html lang=en>\n<title>Hello</title>\n<pre>\n"
TAIL = b"</pre>\n"
HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"
MAX_SIZE = 1 << 30
PIECE = 64 * 1024


def answer(path: str, variables: "Callable[[], dict[str, str]]", read: "Read") -> "Answer":
    """Return (status, content type, length, pieces of body) for a path.

    ``variables()`` gives the meta-variables as Latin-1 text and is called only by pages that show them;
    ``read(size)`` gives the next bytes of the request body, ``b""`` at its end.
    """
    if path == "/" or path == "":
        return "200 OK", HTML, len(HEAD) + len(LINE) * LINES + len(TAIL), [HEAD + LINE * LINES + TAIL]
    if path == "/gateway":
        return whole("200 OK", TEXT, gateway_page(variables()))
    if path == "/env":
        return whole("200 OK", HTML, env_page(variables()))
    if path == "/post":
        return whole("200 OK", TEXT, post_page(read))
    if path.startswith("/size/"):
        digits = path[6:]
        if digits.isascii() and digits.isdigit() and len(digits) <= 10 and int(digits) <= MAX_SIZE:
            size = int(digits)
            return "200 OK", BYTES, size, pieces(size)
        return whole("400 Bad Request", TEXT, b"size: a whole number of bytes, at most 1073741824\n")
    return whole("404 Not Found", TEXT, b"no such page; there are / /gateway /env /size/N /post\n")


def whole(status: str, content_type: str, body: bytes) -> "Answer":
    """Return an answer whose body is one piece."""
    return status, content_type, len(body), [body]


def gateway_page(variables: "dict[str, str]") -> bytes:
    """Return the two variables that tell how a request came."""
    names = ("GATEWAY_INTERFACE", "GATEWAYS_MODE")
    return "".join(f"{name}: {variables.get(name, '(not set)')}\n" for name in names).encode("latin-1")


def env_page(variables: "dict[str, str]") -> bytes:
    """Return every variable, sorted, as an HTML definition list."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(variables[name])}</dd>\n" for name in sorted(variables))
    page = f"<!DOCTYPE html><html lang=en>\n<title>Environment</title>\n<dl>\n{rows}</dl>\n"
    return page.encode("latin-1", "replace")


def post_page(read: "Read") -> bytes:
    """Return the length and SHA-256 of a body, which is read in pieces."""
    from hashlib import sha256

    digest = sha256()
    length = 0
    while data := read(65536):
        digest.update(data)
        length += len(data)
    return f"length: {length}\nsha256: {digest.hexdigest()}\n".encode()


def pieces(size: int) -> "Iterator[bytes]":
    """Yield ``size`` bytes in pieces of at most 64 KiB; each byte's place modulo 16 is its hexadecimal digit."""
    piece = b"0123456789abcdef" * (min(size, PIECE) // 16 + 1)
    for _ in range(size // PIECE):
        yield piece[:PIECE]
    if size % PIECE:
        yield piece[: size % PIECE]


def escape(text: str) -> str:
    """Return text that is safe in HTML; ``html.escape`` would cost an import."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;")


def bounded(read: "Read", length: str) -> "Read":
    """Return a ``read`` that ends after CONTENT_LENGTH bytes (RFC 3875 4.2); none without a valid CONTENT_LENGTH."""
    left = int(length) if length.isascii() and length.isdigit() else 0

    def read_within(size: int) -> bytes:
        nonlocal left
        data = read(min(size, left)) if left else b""
        left -= len(data)
        return data

    return read_within


def application(environ: "dict[str, Any]", start_response: "Callable[..., Any]") -> "Iterable[bytes]":
    """Answer as a WSGI application (PEP 3333)."""
    read = environ["wsgi.input"].read
    if not environ.get("wsgi.input_terminated"):
        read = bounded(read, environ.get("CONTENT_LENGTH", ""))

    def variables() -> "dict[str, str]":
        return {name: value for name, value in environ.items() if type(value) is str and "." not in name}

    status, content_type, length, body = answer(environ.get("PATH_INFO", ""), variables, read)
    start_response(status, [("Content-Type", content_type), ("Content-Length", str(length))])
    return () if environ["REQUEST_METHOD"] == "HEAD" else body


def handler(request: "Any") -> None:
    """Answer as a native handler; the hello page asks the request for its path and nothing else.

    Its length is left to the server, which knows it when the handler returns.
    """
    path = request.path_info
    if path == "/" or path == "":
        request.set_field("Content-Type", HTML)
        request.write(HEAD + LINE * LINES + TAIL)
        return
    status, content_type, length, body = answer(path, lambda: request.metavariables, request.read)
    request.status = int(status[:3])
    request.set_field("Content-Type", content_type)
    request.set_field("Content-Length", str(length))
    if request.method != "HEAD":
        for data in body:
            request.write(data)


def script() -> None:
    """Answer as a CGI script: variables from the environment, body from stdin, document to stdout (RFC 3875 6)."""
    read = bounded(lambda size: sys.stdin.buffer.read(size), os.environ.get("CONTENT_LENGTH", ""))

    def variables() -> "dict[str, str]":
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in os.environb.items()}

    status, content_type, length, body = answer(os.environ.get("PATH_INFO", ""), variables, read)
    head = f"Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    if status != "200 OK":
        head = f"Status: {status}\r\n{head}"
    out = sys.stdout.buffer
    out.write(head.encode("latin-1"))
    if os.environ.get("REQUEST_METHOD") != "HEAD":
        for data in body:
            out.write(data)
    out.flush()


if __name__ == "__main__":
    script()
