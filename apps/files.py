#!/usr/bin/env python3
"""Two files, sent in every way that a program has: by the kernel, by reading and writing, or by the front server.

``/WAY/NAME`` sends ``small`` (1,456 bytes, the page of 2004) or ``large`` (10 MiB), ``/WAY/NAME/N`` from its byte N.
Every 16 bytes of a file are their own place in it, in decimal: a file that is sent from the wrong place shows it.

A request names a row of two fixed tables and a number; nothing of it ever becomes part of a path or of a field. The
files are made when they are missing, in the folder that FILES_FOLDER names (one in the folder of temporary files
otherwise). ``python apps/files.py`` makes them and tells where they are.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from mmap import ACCESS_READ, mmap
from typing import Any

FILES = {"small": 1456, "large": 10 << 20}
"""Name -> length; each a multiple of ``STEP``."""
STEP = 16
BLOCK = 65536
INTERNAL = "/internal/"
"""Where nginx keeps the folder for X-Accel-Redirect, out of its clients' reach."""
BYTES = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
DIGITS = 12


def find_folder() -> str:
    """Return the folder of the files, made if it is missing; raise ``OSError`` for a default one that is not ours."""
    if named := os.environ.get("FILES_FOLDER"):
        os.makedirs(named, exist_ok=True)
        return os.path.abspath(named)
    folder = os.path.join(tempfile.gettempdir(), f"files-{os.geteuid()}")
    try:
        os.mkdir(folder, 0o755)
    except FileExistsError:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise PermissionError(f"{folder} belongs to someone else; name another in FILES_FOLDER") from None
    return folder


def format_content(offset: int, count: int) -> bytes:
    """Return what stands in a file at ``offset``, ``count`` bytes of it."""
    first, last = offset // STEP, (offset + count + STEP - 1) // STEP
    lines = "".join(f"{place * STEP:0{STEP - 1}d}\n" for place in range(first, last)).encode("ascii")
    return lines[offset - first * STEP :][:count]


def make_file(folder: str, name: str) -> str:
    """Return a file's path; write it when it is missing, so that whoever looks sees it whole or not at all."""
    path = os.path.join(folder, name)
    if os.path.exists(path) and os.path.getsize(path) == FILES[name]:
        return path
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        for offset in range(0, FILES[name], BLOCK):
            file.write(format_content(offset, min(BLOCK, FILES[name] - offset)))
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)
    return path


PATHS: dict[str, str] = {}
"""Name -> path, once it is known that the file is there."""


def find_path(name: str) -> str:
    """Return the path of a file of the table."""
    if name not in PATHS:
        PATHS[name] = make_file(find_folder(), name)
    return PATHS[name]


class Reading:
    """A body that is read and written, block by block. ``seek``: set the place first, also where it is 0."""

    def __init__(self, path: str, offset: int, seek: bool) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if seek or offset:
            os.lseek(self.descriptor, offset, os.SEEK_SET)

    def __iter__(self) -> Iterator[bytes]:
        while data := os.read(self.descriptor, BLOCK):
            yield data

    def close(self) -> None:
        """Close the file; the server calls this once (PEP 3333)."""
        os.close(self.descriptor)


class Mapping:
    """A body that is copied out of the file's pages in memory."""

    def __init__(self, path: str, offset: int) -> None:
        with open(path, "rb") as file:
            self.pages = mmap(file.fileno(), 0, access=ACCESS_READ)
        self.offset = offset

    def __iter__(self) -> Iterator[bytes]:
        for at in range(self.offset, len(self.pages), BLOCK):
            yield self.pages[at : at + BLOCK]

    def close(self) -> None:
        """Unmap the file."""
        self.pages.close()


BODIES: dict[str, Callable[[str, int], Reading | Mapping]] = {
    "read": lambda path, offset: Reading(path, offset, seek=False),
    "seek": lambda path, offset: Reading(path, offset, seek=True),
    "mmap": Mapping,
}
"""Way -> a body that this program reads itself."""
FRONT: dict[str, Callable[[str], tuple[str, str]]] = {
    "xsendfile": lambda name: ("X-Sendfile", find_path(name)),
    "accel": lambda name: ("X-Accel-Redirect", INTERNAL + name),
}
"""Way -> the field that asks the front server to send a file, whole."""
KERNEL = "sendfile"
"""The way that hands the file to the server as it is: ``wsgi.file_wrapper``, or the native handler's ``send_file``."""
WAYS = (KERNEL, *BODIES, *FRONT)


def parse_path(path: str) -> tuple[str, str, int]:
    """Return (way, name, offset); raise ``LookupError`` for what is not there, ``ValueError`` for a bad offset."""
    way, _, rest = path.strip("/").partition("/")
    name, _, digits = rest.partition("/")
    if way not in WAYS or name not in FILES:
        raise LookupError(f"no such page; there are /WAY/NAME/OFFSET for {', '.join(WAYS)} and {', '.join(FILES)}")
    if not digits:
        return way, name, 0
    if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS and int(digits) < FILES[name]):
        raise ValueError(f"an offset is a number of bytes; {name} has {FILES[name]}")
    if way in FRONT:
        raise ValueError("a front server is given whole files only")
    return way, name, int(digits)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
    """Answer as a WSGI application (PEP 3333)."""
    try:
        way, name, offset = parse_path(environ.get("PATH_INFO", ""))
    except (LookupError, ValueError) as error:
        status = "404 Not Found" if isinstance(error, LookupError) else "400 Bad Request"
        start_response(status, [("Content-Type", TEXT)])
        return [f"{error.args[0]}\n".encode()]
    fields = [("Content-Type", BYTES)]
    if way in FRONT:
        start_response("200 OK", [*fields, FRONT[way](name)])
        return [b""]
    start_response("200 OK", [*fields, ("Content-Length", str(FILES[name] - offset))])
    if environ["REQUEST_METHOD"] == "HEAD":
        return []
    if way in BODIES:
        return BODIES[way](find_path(name), offset)
    file = open(find_path(name), "rb", buffering=0)  # noqa: SIM115 - the server closes what it sends (PEP 3333)
    file.seek(offset)
    return environ["wsgi.file_wrapper"](file, BLOCK)


def handler(request: Any) -> int | None:
    """Answer as a native handler."""
    try:
        way, name, offset = parse_path(request.path_info)
    except LookupError:
        return 404
    except ValueError:
        return 400
    request.set_field("Content-Type", BYTES)
    if way in FRONT:
        request.set_field(*FRONT[way](name))
        return None
    request.set_field("Content-Length", str(FILES[name] - offset))
    if way == KERNEL:
        with open(find_path(name), "rb", buffering=0) as file:
            request.send_file(file, offset, FILES[name] - offset)
        return None
    body = BODIES[way](find_path(name), offset)
    try:
        for data in body:
            request.write(data)
    finally:
        body.close()
    return None


if __name__ == "__main__":
    for each in FILES:
        print(find_path(each))
