"""The hello app: as a real CGI process, under two WSGI lints and as a handler it gives the same bytes."""

from __future__ import annotations

import hashlib
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest
from werkzeug.middleware.lint import LintMiddleware

APP = Path(__file__).resolve().parent.parent / "apps" / "hello.py"
HELLO = SimpleNamespace(**runpy.run_path(str(APP), run_name="hello"))

Answer = tuple[str, dict[str, str], bytes]


def run_as_script(path: str, method: str, body: bytes, extra: dict[str, str]) -> Answer:
    """Run the app as a web server runs a CGI script: its shebang, its environment, its standard input."""
    variables = {
        "GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": method, "PATH_INFO": path, "SCRIPT_NAME": "",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]), **extra,
    }  # fmt: skip
    if body:
        variables["CONTENT_LENGTH"] = str(len(body))
    # More than was announced is on its standard input: a script may not read beyond CONTENT_LENGTH (RFC 3875 4.2).
    done = subprocess.run(
        [str(APP)], input=body + b"beyond", env=variables, capture_output=True, timeout=30, check=True
    )
    assert done.stderr == b""
    head, _, rest = done.stdout.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n"))
    return fields.pop("Status", "200 OK"), fields, rest


def run_as_wsgi(path: str, method: str, body: bytes, extra: dict[str, str]) -> Answer:
    """Call ``application`` with both lints around it."""
    import io

    environ: dict[str, Any] = {"REQUEST_METHOD": method, "PATH_INFO": path, "SCRIPT_NAME": "", **extra}
    environ |= {"GATEWAY_INTERFACE": "CGI/1.1", "QUERY_STRING": ""}
    environ["wsgi.input"] = io.BytesIO(body + b"beyond")
    if body:
        environ["CONTENT_LENGTH"] = str(len(body))
    setup_testing_defaults(environ)
    seen: list[Any] = []

    def start_response(status: str, fields: list[tuple[str, str]], exc_info: Any = None) -> Any:
        seen[:] = [status, dict(fields)]
        return lambda data: None

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The second lint takes the Content-Length of HEAD for a promise of bytes, which it is not (RFC 9110 8.6).
        for lint in (validator,) if method == "HEAD" else (validator, LintMiddleware):
            environ["wsgi.input"].seek(0)
            result = lint(HELLO.application)(dict(environ), start_response)
            answer = b"".join(result)
            result.close()
    return seen[0], seen[1], answer


class FakeRequest:
    """What a handler is given, as far as the app uses it. ``asked`` keeps what was looked at."""

    def __init__(self, path: str, method: str, body: bytes, variables: dict[str, str]) -> None:
        self._values = {"path_info": path, "method": method, "metavariables": variables}
        self._body = body
        self.asked: list[str] = []
        self.status = 200
        self.sent: dict[str, str] = {}
        self.written: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return self._values[name]

    def read(self, size: int = -1) -> bytes:
        data, self._body = self._body[:size], self._body[size:]
        return data

    def set_field(self, name: str, value: str) -> None:
        self.sent[name] = value

    def write(self, data: bytes) -> None:
        self.written.append(data)


def run_as_handler(path: str, method: str, body: bytes, extra: dict[str, str]) -> Answer:
    variables = {"GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": method, "PATH_INFO": path, **extra}
    request = FakeRequest(path, method, body, variables)
    assert HELLO.handler(request) is None
    reasons = {200: "200 OK", 400: "400 Bad Request", 404: "404 Not Found"}
    answer = b"".join(request.written)
    if method != "HEAD":
        request.sent.setdefault("Content-Length", str(len(answer)))
    return reasons[request.status], request.sent, answer


WAYS = {"script": run_as_script, "wsgi": run_as_wsgi, "handler": run_as_handler}

PAGE = b"<!DOCTYPE html><html lang=en>\n<title>Hello</title>\n<pre>\n" + b"1234567890\n" * 100 + b"</pre>\n"
BODY = b"\0body" * 30000
DIGITS = b"0123456789abcdef" * 8192
ROWS: list[tuple[str, bytes, str, bytes]] = [
    ("/", b"", "200 OK", PAGE),
    ("", b"", "200 OK", PAGE),
    ("/gateway", b"", "200 OK", b"GATEWAY_INTERFACE: CGI/1.1\nGATEWAYS_MODE: some\n"),
    ("/size/0", b"", "200 OK", b""),
    ("/size/1", b"", "200 OK", b"0"),
    ("/size/65536", b"", "200 OK", DIGITS[:65536]),
    ("/size/65537", b"", "200 OK", DIGITS[:65537]),
    ("/size/131072", b"", "200 OK", DIGITS),
    *[
        (f"/size/{bad}", b"", "400 Bad Request", b"size: a whole number of bytes, at most 1073741824\n")
        for bad in ("", "-1", "+1", "1_0", "0x10", "1073741825", "99999999999999999999", "\u0661", "1/", " 1")
    ],
    ("/post", b"", "200 OK", f"length: 0\nsha256: {hashlib.sha256().hexdigest()}\n".encode()),
    (
        "/post", BODY, "200 OK",
        f"length: 150000\nsha256: {hashlib.sha256(BODY).hexdigest()}\n".encode(),
    ),
    ("/nothing", b"", "404 Not Found", b"no such page; there are / /gateway /env /size/N /post\n"),
    ("//", b"", "404 Not Found", b"no such page; there are / /gateway /env /size/N /post\n"),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("path", "body", "status", "expected"), ROWS, ids=[f"{row[0]}-{len(row[1])}" for row in ROWS])
def test_every_way_gives_the_same_answer(way: str, path: str, body: bytes, status: str, expected: bytes) -> None:
    method = "POST" if body else "GET"
    native = path.encode().decode("latin-1") if way != "script" else path
    answer = WAYS[way](native, method, body, {"GATEWAYS_MODE": "some"})
    assert answer[0] == status
    assert answer[2] == expected
    assert answer[1]["Content-Length"] == str(len(expected))
    assert answer[1]["Content-Type"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", ["/gateway", "/size/70000", "/nothing"])
def test_head_gives_the_fields_of_get_and_no_body(way: str, path: str) -> None:
    got = WAYS[way](path, "GET", b"", {})
    head = WAYS[way](path, "HEAD", b"", {})
    assert head == (got[0], got[1], b"")


@pytest.mark.parametrize("way", ["script", "wsgi"])
def test_head_of_the_hello_page(way: str) -> None:
    assert WAYS[way]("/", "HEAD", b"", {})[1:] == (
        {"Content-Type": "text/html; charset=utf-8", "Content-Length": "1164"}, b"",
    )  # fmt: skip


def test_the_hello_page_is_the_page_of_2008() -> None:
    assert len(PAGE) == 1164
    assert PAGE.count(b"1234567890\n") == 100


def test_the_hello_page_is_built_anew_for_each_request() -> None:
    first, second = (FakeRequest("/", "GET", b"", {}) for _ in range(2))
    HELLO.handler(first)
    HELLO.handler(second)
    assert first.written == second.written
    assert first.written[0] is not second.written[0]


def test_the_handler_asks_for_nothing_but_the_path_for_the_hello_page() -> None:
    request = FakeRequest("/", "GET", b"", {})
    HELLO.handler(request)
    assert request.asked == ["path_info"]


@pytest.mark.parametrize("way", WAYS)
def test_the_environment_page_is_sorted_and_escaped(way: str) -> None:
    extra = {"HTTP_X": "<script>'\"&</script>", "A_FIRST": "a", "Z_LAST": "z"}
    status, fields, body = WAYS[way]("/env", "GET", b"", extra)
    assert (status, fields["Content-Type"]) == ("200 OK", "text/html; charset=utf-8")
    assert b"<dt>HTTP_X</dt><dd>&lt;script&gt;&#x27;&quot;&amp;&lt;/script&gt;</dd>\n" in body
    names = [line.partition(b"</dt>")[0] for line in body.split(b"\n") if line.startswith(b"<dt>")]
    assert names == sorted(names)
    assert b"<dt>A_FIRST" in names
    assert not any(b"." in name for name in names), "keys of a gateway's own are no variables"


@pytest.mark.parametrize("way", WAYS)
def test_B107_bytes_of_a_variable_are_shown_as_they_came(way: str) -> None:
    raw = b"\xe9\xc3\xa9"
    value = os.fsdecode(raw) if way == "script" else raw.decode("latin-1")
    assert b"<dt>HTTP_X</dt><dd>" + raw + b"</dd>" in WAYS[way]("/env", "GET", b"", {"HTTP_X": value})[2]


def test_the_script_ends_at_the_end_of_a_short_body() -> None:
    variables = {"REQUEST_METHOD": "POST", "PATH_INFO": "/post", "CONTENT_LENGTH": "100"}
    done = subprocess.run(
        [sys.executable, str(APP)], input=b"short", env=variables, capture_output=True, timeout=30, check=True
    )
    assert b"length: 5\n" in done.stdout


def test_the_file_is_executable_and_knows_no_gateway() -> None:
    assert os.access(APP, os.X_OK)
    assert APP.read_text().startswith("#!/usr/bin/env python3\n")
    assert "import gateways" not in APP.read_text()


def test_a_plain_request_imports_nothing_beyond_the_interpreter() -> None:
    program = (
        "import os, sys; known = set(sys.modules)\n"
        f"exec(compile(open({str(APP)!r}).read(), 'hello', 'exec'), {{'__name__': '__main__'}})\n"
        "sys.stderr.write(' '.join(sorted(set(sys.modules) - known)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PATH_INFO": "/"}, capture_output=True, timeout=30, check=True
    )
    assert done.stderr == b""
