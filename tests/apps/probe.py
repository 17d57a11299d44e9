"""A WSGI application whose pages behave well and badly in every way that a driver must survive."""

import hashlib
import json
import os
import signal
import tempfile
import time

FIELDS = [("Content-Type", "text/plain")]
COUNT = 0


def echo(environ, start_response):
    body = environ["wsgi.input"].read()
    seen = {name: value for name, value in environ.items() if isinstance(value, str)}
    seen["scheme"] = environ["wsgi.url_scheme"]
    seen["length"] = len(body)
    seen["sha256"] = hashlib.sha256(body).hexdigest()
    start_response("200 OK", list(FIELDS))
    return [json.dumps(seen, sort_keys=True).encode()]


def ignore(environ, start_response):
    """Answer without reading the body."""
    global COUNT
    COUNT += 1
    start_response("200 OK", list(FIELDS))
    return [b"%d %d" % (os.getpid(), COUNT)]


def declared(environ, start_response):
    """/declared/CL/REAL: state one length and send another, in pieces."""
    _, stated, real = environ["PATH_INFO"].strip("/").split("/")
    start_response("200 OK", [*FIELDS, ("Content-Length", stated)])
    real = int(real)
    return iter([b"x" * (real - real // 2), b"x" * (real // 2)])


def listed(environ, start_response):
    """/listed/CL/REAL: the same as a list of one piece."""
    _, stated, real = environ["PATH_INFO"].strip("/").split("/")
    start_response("200 OK", [*FIELDS, ("Content-Length", stated)])
    return [b"x" * int(real)]


def status(environ, start_response):
    """/status/CODE: a status with a body, in pieces, without a length."""
    code = environ["PATH_INFO"].split("/")[2]
    start_response(f"{code} Whatever", list(FIELDS))
    return iter([b"body", b"more"])


def die(environ, start_response):
    raise RuntimeError("died on purpose")


def die_late(environ, start_response):
    start_response("200 OK", list(FIELDS))
    yield b"half"
    raise RuntimeError("died on purpose, late")


def exit_softly(environ, start_response):
    raise SystemExit(3)


def bad_field(environ, start_response):
    start_response("200 OK", [("X-Bad", "a\r\nSet-Cookie: x=1")])
    return [b"never"]


def bad_transfer(environ, start_response):
    start_response("200 OK", [("Transfer-Encoding", "chunked")])
    return [b"5\r\nhello\r\n0\r\n\r\nextra"]


def cookies(environ, start_response):
    start_response("200 OK", [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Date", "then"), ("Server", "mine")])
    return [b"ok"]


def stream(environ, start_response):
    """/stream/N/STEP: N bytes in pieces of STEP, without a length."""
    _, total, step = environ["PATH_INFO"].strip("/").split("/")
    start_response("200 OK", list(FIELDS))
    total, step = int(total), int(step)
    return (b"s" * min(step, total - done) for done in range(0, total, step))


def file(environ, start_response):
    """/file/N/OFFSET: N bytes on disk, sent from OFFSET by the file wrapper."""
    _, total, offset = environ["PATH_INFO"].strip("/").split("/")
    handle = tempfile.TemporaryFile()  # noqa: SIM115 the server closes it
    handle.write(bytes(i % 251 for i in range(1000)) * (int(total) // 1000 + 1))
    handle.truncate(int(total))
    handle.seek(int(offset))
    start_response("200 OK", [("Content-Type", "application/octet-stream")])
    return environ["wsgi.file_wrapper"](handle)


def pid(environ, start_response):
    start_response("200 OK", list(FIELDS))
    return [str(os.getpid()).encode()]


def wait(environ, start_response):
    """/wait/SECONDS"""
    time.sleep(float(environ["PATH_INFO"].split("/")[2]))
    return pid(environ, start_response)


def kill(environ, start_response):
    os.kill(os.getpid(), signal.SIGKILL)


PAGES = {
    "echo": echo, "ignore": ignore, "declared": declared, "listed": listed, "status": status, "die": die,
    "die-late": die_late, "exit": exit_softly, "bad-field": bad_field, "bad-transfer": bad_transfer,
    "cookies": cookies, "stream": stream, "file": file, "pid": pid, "wait": wait, "kill": kill,
}  # fmt: skip


def application(environ, start_response):
    page = PAGES.get(environ["PATH_INFO"].strip("/").split("/")[0], echo)
    return page(environ, start_response)
