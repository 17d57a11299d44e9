"""The application of the conformance table: one file whose path selects the behaviour, well or badly mannered.

A WSGI application (PEP 3333) that needs nothing but the standard library, so that any server can serve it. The first
segment of the path names a page below; what a page does is said by its query. Every other path is the echo page, which
tells as JSON how the request arrived. Texts in queries are percent-encoded Latin-1, so that any octet can be named.

Pages that must remember something across processes (was ``close`` called?) write words to a file named by the query's
``token`` in a folder of their own below the system's temporary folder; ``/notes`` gives the words and removes the file.
"""

import hashlib
import io
import json
import os
import sys
import tempfile
import time
from urllib.parse import parse_qsl
from wsgiref.validate import validator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Environ = dict[str, Any]
    StartResponse = Callable[..., Callable[[bytes], object]]
    Query = dict[str, str]
    Page = Callable[[Environ, StartResponse, Query], Iterable[bytes]]

TEXT = ("Content-Type", "text/plain")
PATTERN = bytes(range(251))
MAX_SIZE = 1 << 26
SHOWN = ("CONTENT_", "HTTP_", "REMOTE_", "REQUEST_", "SERVER_")
SHOWN_NAMES = (
    "AUTH_TYPE",
    "COOKIE",
    "GATEWAY_INTERFACE",
    "HTTPS",
    "PATH_INFO",
    "QUERY_STRING",
    "RAW_URI",
    "SCRIPT_NAME",
)
"""Variables that the echo page shows, by prefix and by name; a server's environ may hold its whole environment."""
PATIENCE = 5.0
"""Seconds that ``/wait`` waits to be released."""


class PurposelyRaisedError(Exception):
    """What a page that dies raises."""


# Helpers.


def number(query: "Query", name: str, default: int = 0) -> int:
    """Return a whole number of the query, at most ``MAX_SIZE``."""
    return min(int(query.get(name, default)), MAX_SIZE)


def pattern(size: int) -> bytes:
    """Return ``size`` bytes; each is its own place modulo 251."""
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def cut(data: bytes, step: int) -> "list[bytes]":
    """Return ``data`` in pieces of ``step`` bytes; in one piece for 0."""
    return [data[at : at + step] for at in range(0, len(data), step)] if step else [data]


def shape(pieces: "list[bytes]", kind: str) -> "Iterable[bytes]":
    """Return pieces of body as the kind of iterable that a query's ``as`` names."""
    if kind == "iter":
        return iter(pieces)
    if kind == "generator":
        return (piece for piece in pieces)
    return tuple(pieces) if kind == "tuple" else pieces


def text_fields(query: "Query") -> "list[tuple[str, str]]":
    """Return Content-Type, and Content-Length if the query has a ``length``."""
    return [TEXT, ("Content-Length", query["length"])] if "length" in query else [TEXT]


def read_body(environ: "Environ") -> bytes:
    """Read the request body to its end: what the server marks, else CONTENT_LENGTH."""
    if environ.get("wsgi.input_terminated"):
        return bytes(environ["wsgi.input"].read())
    left = int(environ.get("CONTENT_LENGTH") or 0)
    pieces = []
    while left > 0 and (data := environ["wsgi.input"].read(min(left, 65536))):
        pieces.append(data)
        left -= len(data)
    return b"".join(pieces)


def notes_path(token: str) -> str:
    """Return the file of a token's words."""
    if not (token.isascii() and token.isalnum() and len(token) <= 40):
        raise ValueError("a token is letters and digits")
    folder = os.path.join(tempfile.gettempdir(), f"wsgi-conformance-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, token)


def write_note(token: str, word: str) -> None:
    """Append a word to a token's file."""
    if token:
        with open(notes_path(token), "a") as file:
            file.write(word + "\n")


def read_notes(token: str) -> "list[str]":
    """Return a token's words."""
    try:
        with open(notes_path(token)) as file:
            return file.read().split()
    except FileNotFoundError:
        return []


class Closing:
    """An iterable of body that notes when it is closed."""

    def __init__(self, pieces: "Iterable[bytes]", token: str) -> None:
        self._pieces = iter(pieces)
        self._token = token

    def __iter__(self) -> "Iterator[bytes]":
        return self._pieces

    def close(self) -> None:
        write_note(self._token, "closed")


class Memory:
    """A file without a descriptor that notes when it is closed; an ``io`` object closes when freed, too."""

    def __init__(self, data: bytes, token: str) -> None:
        self._file = io.BytesIO(data)
        self._token = token
        self.seek = self._file.seek
        self.tell = self._file.tell

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)

    def close(self) -> None:
        write_note(self._token, "closed")


class ReadOnly:
    """The least that a file wrapper must take: ``read``; with a ``fileno`` that raises if asked for."""

    def __init__(self, data: bytes, token: str) -> None:
        self._file = io.BytesIO(data)
        self._token = token

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)

    def fileno(self) -> int:
        raise OSError("no descriptor")

    def close(self) -> None:
        write_note(self._token, "closed")


# Pages about requests.


def describe(environ: "Environ", body: bytes) -> "dict[str, Any]":
    """Return what the echo page tells."""
    return {
        "method": environ.get("REQUEST_METHOD"),
        "script_name": environ.get("SCRIPT_NAME"),
        "path_info": environ.get("PATH_INFO"),
        "query_string": environ.get("QUERY_STRING"),
        "request_uri": environ.get("REQUEST_URI", environ.get("RAW_URI")),
        "scheme": environ.get("wsgi.url_scheme"),
        "version": environ.get("wsgi.version"),
        "length": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "environ": {
            key: value
            for key, value in environ.items()
            if type(value) is str and (key.startswith(SHOWN) or key in SHOWN_NAMES)
        },
    }


def echo(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """Tell as JSON how the request arrived. The body is read whole."""
    page = json.dumps(describe(environ, read_body(environ)), sort_keys=True).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(page)))])
    return [page]


def body(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """Send the request body back."""
    data = read_body(environ)
    start_response("200 OK", [("Content-Type", "application/octet-stream"), ("Content-Length", str(len(data)))])
    return [data]


def read_as(source: "Any", order: str) -> "Any":
    """Obey one word of ``/input``'s ``do``: ``read``, ``read:N``, ``readline``, ``readlines:N``, ``iter``."""
    name, _, size = order.partition(":")
    if name == "iter":
        return [line.decode("latin-1") for line in source]
    found = getattr(source, name)(*([int(size)] if size else []))
    return [line.decode("latin-1") for line in found] if name == "readlines" else found.decode("latin-1")


def read_input(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/input?do=ORDER,ORDER: read the body as ordered; tell as JSON what each order gave."""
    found = [read_as(environ["wsgi.input"], order) for order in query["do"].split(",")]
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(found).encode()]


def unread(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/unread?token=T&take=N: note the call, read N bytes of the body at most, answer."""
    write_note(query.get("token", ""), "called")
    taken = environ["wsgi.input"].read(number(query, "take")) if "take" in query else b""
    start_response("200 OK", text_fields(query))
    return [b"took %d" % len(taken)]


def lint(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """Answer through the standard library's lint of PEP 3333; a broken rule is a 500 that says which."""

    def page(environ: "Environ", start_response: "StartResponse") -> "Iterable[bytes]":
        left = int(environ.get("CONTENT_LENGTH") or 0)
        data = environ["wsgi.input"].read(left) if left else b""
        environ["wsgi.errors"].flush()
        start_response("200 OK", [TEXT])
        return [b"clean %d" % len(data)]

    try:
        return validator(page)(environ, start_response)
    except AssertionError as error:
        start_response("500 Not Conforming", [TEXT])
        return [str(error).encode()]


def errors(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/errors?n=N: write to ``wsgi.errors`` in each way there is, N times, between pieces of body."""
    log = environ["wsgi.errors"]

    def pieces() -> "Iterator[bytes]":
        for _ in range(number(query, "n", 1)):
            log.write("a line of forty bytes, from the table..\n")
        log.write("a")
        yield b"be"
        log.write("b")
        log.writelines(["one\n", "two\n"])
        log.flush()
        yield b"gin"
        log.write("")
        yield b"-end"

    start_response("200 OK", [TEXT])
    return pieces()


# Pages about responses.


def gen(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/gen?n=N&step=S&as=KIND&length=L: N bytes in pieces of S."""
    start_response("200 OK", text_fields(query))
    return shape(cut(pattern(number(query, "n")), number(query, "step")), query.get("as", "list"))


def pieces(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/pieces?as=KIND&p=A&p=B: the pieces as the query has them."""
    pairs = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True, encoding="latin-1")
    start_response("200 OK", text_fields(query))
    return shape([value.encode("latin-1") for name, value in pairs if name == "p"], query.get("as", "list"))


def status(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/status?line=L&body=B&length=N&as=KIND&plain=1: that status; with ``plain``, without any field."""
    start_response(query["line"], [] if "plain" in query else text_fields(query))
    return shape([query["body"].encode("latin-1")] if "body" in query else [], query.get("as", "list"))


def fields(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/fields?NAME=VALUE&...: the response fields as the query has them, in order."""
    start_response("200 OK", parse_qsl(environ["QUERY_STRING"], keep_blank_values=True, encoding="latin-1"))
    return [b"fields"]


def wide_field(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """A response field with a character that no byte stands for."""
    start_response("200 OK", [TEXT, ("X-Wide", "\u20ac")])
    return [b"wide"]


def head(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/head?n=N: a response head with N bytes of values, a hundred a field."""
    count = number(query, "n") // 100
    start_response("200 OK", [TEXT, *((f"X-Filler-{i}", f"{i:0100d}") for i in range(count))])
    return [b"head"]


def file(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/file?n=N&offset=O&kind=K&length=L&token=T: a file of N bytes through ``wsgi.file_wrapper``, if there is one.

    ``kind``: ``disk``, ``memory`` (no descriptor), ``pipe`` (not seekable), ``read`` (only ``read``).
    """
    data = pattern(number(query, "n"))
    source = open_file(query.get("kind", "disk"), data, query.get("token", ""))
    if "offset" in query:
        source.seek(number(query, "offset"))
    start_response("200 OK", text_fields(query))
    if "wsgi.file_wrapper" in environ:
        wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](source, 8192)
        return wrapped
    return Closing(iter(lambda: source.read(8192), b""), query.get("token", ""))


def open_file(kind: str, data: bytes, token: str) -> "Any":
    """Return a file of the kind that ``/file`` names."""
    if kind == "memory":
        return Memory(data, token)
    if kind == "read":
        return ReadOnly(data, token)
    if kind == "pipe":
        receiver, sender = os.pipe()
        with open(sender, "wb") as out:
            out.write(data[:60000])
        return open(receiver, "rb")
    disk = tempfile.TemporaryFile()  # noqa: SIM115 - the server closes it
    disk.write(data)
    disk.seek(0)
    return disk


def write(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """Send two pieces by the ``write`` callable, then one by the iterable."""
    send = start_response("200 OK", text_fields(query))
    send(b"one,")
    send(b"two,")
    return [b"three"]


def late(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """Call ``start_response`` only when the first piece is asked for."""
    start_response("200 OK", [TEXT])
    yield b"late"


def wait(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/wait?token=T: one piece; then wait until the token's file says ``go``; then tell whether it did."""
    start_response("200 OK", [TEXT])
    yield b"first,"
    end = time.monotonic() + PATIENCE
    while "go" not in (words := read_notes(query["token"])) and time.monotonic() < end:
        time.sleep(0.01)
    yield b"released" if "go" in words else b"given up"


def note(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/note?token=T&word=W: write a word to the token's file."""
    write_note(query["token"], query["word"])
    start_response("200 OK", [TEXT])
    return [b"noted"]


def notes(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/notes?token=T: the token's words, one space between."""
    words = " ".join(read_notes(query["token"])).encode()
    start_response("200 OK", [TEXT, ("Content-Length", str(len(words)))])
    return [words]


def forget(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/forget?token=T: remove the token's file."""
    if os.path.exists(path := notes_path(query["token"])):
        os.unlink(path)
    start_response("200 OK", [TEXT])
    return [b"forgotten"]


def close(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/close?token=T&die=1: an iterable with a ``close`` that is noted; with ``die`` it raises after a piece."""

    def give() -> "Iterator[bytes]":
        yield b"1234"
        if "die" in query:
            raise PurposelyRaisedError("raised on purpose, before close")

    start_response("200 OK", [TEXT])
    return Closing(give(), query["token"])


# Pages that misbehave.


def die(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/die?when=call|started|first|later&length=L: raise at that moment."""
    when = query["when"]
    if when == "call":
        raise PurposelyRaisedError("raised on purpose, when called")
    start_response("200 OK", text_fields(query))
    if when == "started":
        raise PurposelyRaisedError("raised on purpose, after start_response")
    return die_in_body(when)


def die_in_body(when: str) -> "Iterator[bytes]":
    """Raise before the first piece, or after it."""
    if when == "later":
        yield b"half"
    raise PurposelyRaisedError("raised on purpose, within the body")


def replace(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """/replace?late=1: replace the head with ``exc_info``; with ``late``, when the first piece has gone."""
    send = start_response("200 OK", [TEXT, ("X-First", "1")])
    if "late" in query:
        send(b"half")
    try:
        raise PurposelyRaisedError("raised on purpose, to be replaced")
    except PurposelyRaisedError:
        start_response("503 Replaced", [TEXT, ("X-Second", "1")], sys.exc_info())
    return [b"replaced"]


def twice(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """Call ``start_response`` twice without ``exc_info``, which is an error."""
    start_response("200 OK", [TEXT])
    start_response("201 Created", [TEXT])
    return [b"twice"]


def silent(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[bytes]":
    """Never call ``start_response``, which is an error."""
    return [b"silent"]


def unicode(environ: "Environ", start_response: "StartResponse", query: "Query") -> "Iterable[Any]":
    """Give a body that is not bytes, which is an error."""
    start_response("200 OK", [TEXT])
    return ["text"]


PAGES: "dict[str, Page]" = {
    "body": body, "close": close, "die": die, "errors": errors, "fields": fields, "file": file, "forget": forget,
    "gen": gen, "head": head, "input": read_input, "late": late, "lint": lint, "note": note, "notes": notes,
    "pieces": pieces, "replace": replace, "silent": silent, "status": status, "twice": twice, "unicode": unicode,
    "unread": unread, "wait": wait, "wide-field": wide_field, "write": write,
}  # fmt: skip
"""The path's first segment -> the page; every other path is the echo page."""


def application(environ: "Environ", start_response: "StartResponse") -> "Iterable[bytes]":
    """Answer as the path's first segment says (PEP 3333)."""
    segments = environ.get("PATH_INFO", "").split("/")
    page = PAGES.get(segments[1], echo) if len(segments) == 2 else echo
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True, encoding="latin-1"))
    return page(environ, start_response, query)
