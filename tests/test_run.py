"""One entry that starts right everywhere: what a process is to be, decided by tables and seen in real processes."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gateways
from gateways.config.directives import MODELS
from gateways.entry import CALLED_NAMES
from gateways.start import (
    ACTIVATED,
    CGI,
    CLOSED,
    CONNECTED,
    FASTCGI,
    HTTP,
    LISTENING,
    OTHER,
    REFUSED,
    find_callable,
    format_refusal,
    plan_start,
)
from tests.clients import fastcgi
from tests.clients.document import parse_document
from tests.servers import DEADLINE, ROOT, children, read_to_end, serving, wait_until
from tests.wires import variables

ITSELF = "tests/apps/runs_itself.py"
SCRIPT = "tests/apps/plain_script.py"
BY_LINE = [sys.executable, ITSELF]
BY_COMMAND = [sys.executable, "-m", "gateways", "run"]
REQUEST = {"GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": "GET", "PATH_INFO": "/page", "SERVER_PROTOCOL": "HTTP/1.1"}
OURS = {"LISTEN_PID": "7", "LISTEN_FDS": "2"}
NOT_LISTENING = "descriptor 0 is a socket that does not listen: "

PLANS: list[tuple[str, str, dict[str, str], str, tuple[str, ...] | str]] = [
    # id, what descriptor 0 is, the environment, what the process is to be (its pid is 7), the wires or the sentence
    ("terminal", OTHER, {}, HTTP, ()),
    ("closed", CLOSED, {}, HTTP, ()),
    ("listening", LISTENING, {}, FASTCGI, ()),
    ("listening-with-leftovers", LISTENING, {**REQUEST, **OURS}, FASTCGI, ()),
    ("cgi", OTHER, REQUEST, CGI, ()),
    ("cgi-without-stdin", CLOSED, REQUEST, CGI, ()),
    ("cgi-on-a-socket", CONNECTED, REQUEST, CGI, ()),
    ("cgi-of-an-activated-server", OTHER, {**REQUEST, **OURS}, CGI, ()),
    ("leftover-interface", OTHER, {"GATEWAY_INTERFACE": "CGI/1.1"}, HTTP, ()),
    ("leftover-method", OTHER, {"REQUEST_METHOD": "GET"}, HTTP, ()),
    ("leftover-empty", OTHER, {"GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": ""}, HTTP, ()),
    ("leftover-addresses", OTHER, {"FCGI_WEB_SERVER_ADDRS": "127.0.0.1"}, HTTP, ()),
    ("inetd", CONNECTED, {}, REFUSED, NOT_LISTENING),
    ("inetd-with-half-a-request", CONNECTED, {"REQUEST_METHOD": "GET"}, REFUSED, NOT_LISTENING),
    ("inetd-style-activation", CONNECTED, OURS, REFUSED, NOT_LISTENING),
    ("activated", OTHER, OURS, ACTIVATED, ("http", "http")),
    ("activated-closed", CLOSED, OURS, ACTIVATED, ("http", "http")),
    ("activated-for-another", OTHER, {**OURS, "LISTEN_PID": "8"}, HTTP, ()),
    ("activated-for-nobody", OTHER, {"LISTEN_FDS": "2"}, HTTP, ()),
    ("activated-with-none", OTHER, {**OURS, "LISTEN_FDS": "0"}, HTTP, ()),
    ("activated-without-count", OTHER, {"LISTEN_PID": "7"}, HTTP, ()),
    ("activated-names", OTHER, {**OURS, "LISTEN_FDNAMES": "fastcgi:scgi"}, ACTIVATED, ("fastcgi", "scgi")),
    ("activated-other-names", OTHER, {**OURS, "LISTEN_FDNAMES": "app.socket:uwsgi"}, ACTIVATED, ("http", "uwsgi")),
    ("activated-few-names", OTHER, {**OURS, "LISTEN_FDNAMES": "ajp"}, ACTIVATED, ("ajp", "http")),
    ("activated-many-names", OTHER, {**OURS, "LISTEN_FDNAMES": "ajp:::ajp"}, ACTIVATED, ("ajp", "http")),
    ("activated-word", OTHER, {**OURS, "LISTEN_FDS": "two"}, REFUSED, "LISTEN_FDS is not a number from 1 to 100"),
    ("activated-sign", OTHER, {**OURS, "LISTEN_FDS": "+2"}, REFUSED, "LISTEN_FDS is not a number"),
    ("activated-minus", OTHER, {**OURS, "LISTEN_FDS": "-2"}, REFUSED, "LISTEN_FDS is not a number"),
    ("activated-digits", OTHER, {**OURS, "LISTEN_FDS": "\u0662"}, REFUSED, "LISTEN_FDS is not a number"),
    ("activated-101", OTHER, {**OURS, "LISTEN_FDS": "101"}, REFUSED, "LISTEN_FDS is not a number"),
    ("activated-huge", OTHER, {**OURS, "LISTEN_FDS": "9" * 5000}, REFUSED, "LISTEN_FDS is not a number"),
]  # fmt: skip


@pytest.mark.parametrize(("stdin", "given", "way", "more"), [row[1:] for row in PLANS], ids=[row[0] for row in PLANS])
def test_what_a_process_is_to_be(stdin: str, given: dict[str, str], way: str, more: tuple[str, ...] | str) -> None:
    plan = plan_start(stdin, given, 7)
    assert plan.way == way
    if isinstance(more, str):
        assert plan.sentence.startswith(more)
        assert "\n" not in plan.sentence
    else:
        assert (plan.wires, plan.sentence) == (more, "")


SOURCES = [
    ("def application(environ, start_response):\n", "application"), ("x = 1\napp = make()\n", "app"),
    ("class application(object):\n", "application"), ("def handler(request):\n", "handler"),
    ("def handler(request): ...\ndef app(e, s): ...\n", "app"), ("", ""), ("# def application(\n", ""),
    ("if True:\n    def application(e, s): ...\n", ""), ("print(application)\n", ""), ("def applications(e):\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(("source", "name"), SOURCES)
def test_what_a_file_plainly_defines(source: str, name: str) -> None:
    assert find_callable(source.encode()) == name


def test_the_tables_of_models_name_the_same_models() -> None:
    assert tuple(CALLED_NAMES) == MODELS


def test_it_listens_on_the_loopback_address_unless_told_otherwise() -> None:
    from gateways.cli import DEFAULT_BIND

    assert inspect.signature(gateways.run).parameters["bind"].default == DEFAULT_BIND == "127.0.0.1:8000"


# Real processes.


@contextmanager
def running(command: Sequence[str], **more: Any) -> Iterator[subprocess.Popen[str]]:
    """A process with an environment of its own and its output in pipes; ended by its pid if it has not ended."""
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", **more.pop("env", {})}
    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    process = subprocess.Popen(command, cwd=ROOT, env=given, text=True, **more)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(DEADLINE)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str]:
    """Send a signal; the exit status and what was said on standard error."""
    process.send_signal(number)
    _, said = process.communicate(timeout=DEADLINE)
    return process.returncode, said


def complete(command: Sequence[str], **more: Any) -> tuple[int, str, str]:
    """The exit status and all output of a process that ends by itself."""
    with running(command, **more) as process:
        out, err = process.communicate(timeout=DEADLINE)
    return process.returncode, out, err


def listen_tcp(host: str = "127.0.0.1") -> socket.socket:
    return socket.create_server((host, 0), backlog=16)


def listen_unix(folder: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(folder / "s"))
    sock.listen(16)
    return sock


def ask(listener: socket.socket, path: str = "/page", source: str = "", body: bytes = b"") -> dict[str, Any]:
    """One FastCGI request; the page, or an empty one when the connection was closed instead."""
    with socket.socket(listener.family) as sock:
        sock.settimeout(DEADLINE)
        if source:
            sock.bind((source, 0))
        where = listener.getsockname()
        sock.connect(("127.0.0.1", where[1]) if isinstance(where, tuple) else where)
        pairs = [*variables(path, body or None), (b"CONTENT_LENGTH", b"%d" % len(body))]
        try:
            sock.sendall(fastcgi.request(pairs, body))
            data = read_to_end(sock)
        except ConnectionError:
            data = b""
    return json.loads(fastcgi.parse_answer(data).document.body) if data else {}


WAYS = [("line", BY_LINE), ("command", [*BY_COMMAND, ITSELF])]
each_way = pytest.mark.parametrize("command", [row[1] for row in WAYS], ids=[row[0] for row in WAYS])


@each_way
def test_a_listening_socket_as_descriptor_0_is_served_by_fastcgi(command: list[str]) -> None:
    with listen_tcp() as listener, running(command, stdin=listener) as process:
        page = ask(listener, body=b"some body")
        assert (page["pid"], page["path"], page["mode"], page["body"]) == (process.pid, "/page", "wsgi", "some body")
        assert page["descriptors"][0] == "/dev/null"
        assert end(process) == (0, "")


def test_a_unix_socket_as_descriptor_0(tmp_path: Path) -> None:
    with listen_unix(tmp_path) as listener, running(BY_LINE, stdin=listener) as process:
        assert ask(listener)["pid"] == process.pid
        assert end(process) == (0, "")
    assert (tmp_path / "s").exists(), "the socket's file belongs to whoever made it"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGQUIT])
def test_a_process_manager_ends_it_in_order(number: signal.Signals) -> None:
    with listen_tcp() as listener, running(BY_LINE, stdin=listener) as process:
        assert ask(listener)["pid"] == process.pid
        assert end(process, number) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_that_the_parent_has_blocked_are_heard(number: signal.Signals) -> None:
    code = (
        f"import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}]); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    with listen_tcp() as listener, running([sys.executable, "-c", code, *BY_LINE], stdin=listener) as process:
        assert ask(listener)["pid"] == process.pid
        assert end(process, number) == (0, "")


def test_only_descriptor_0_is_open_as_fastcgi_allows() -> None:
    shell = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *BY_LINE]
    with listen_tcp() as listener, running(shell, stdin=listener) as process:
        assert ask(listener)["descriptors"] == ["/dev/null"] * 3
        assert end(process) == (0, "")


def test_a_handler_is_served_too() -> None:
    with listen_tcp() as listener, running(BY_LINE, stdin=listener, env={"RUN_HANDLER": "1"}) as process:
        assert ask(listener) == {"mode": "handler"}
        assert end(process) == (0, "")


@pytest.mark.parametrize(
    ("command", "env"), [(BY_LINE, {"RUN_WORKERS": "2"}), ([*BY_COMMAND, "--start-servers", "2", ITSELF], {})]
)
def test_workers_under_a_supervisor_when_told_so(command: list[str], env: dict[str, str]) -> None:
    with listen_tcp() as listener, running(command, stdin=listener, env=env) as process:
        pid = ask(listener)["pid"]
        assert pid != process.pid
        wait_until(lambda: len(children(process.pid)) == 2, "two workers")
        assert pid in [child for child, _ in children(process.pid)]
        status, said = end(process)
        assert status == 0
        assert not re.search(r"\] (warning|error)", said)


def test_a_file_that_defines_no_application_is_run_as_a_script() -> None:
    with listen_tcp() as listener, running([*BY_COMMAND, SCRIPT], stdin=listener) as process:
        with socket.create_connection(listener.getsockname(), DEADLINE) as sock:
            sock.sendall(fastcgi.request(variables("/page", None)))
            assert fastcgi.read_answer(sock).document.body == b"script /page registry\n"
        assert end(process) == (0, "")
    status, out, err = complete([*BY_COMMAND, SCRIPT], env=REQUEST)
    assert (status, out, err) == (0, "Content-Type: text/plain\n\nscript /page (none)\n", "")


def test_an_application_that_cannot_be_loaded_is_one_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_that_name\ndef application(environ, start_response): ...\n")
    with listen_tcp() as listener:
        status, out, err = complete([*BY_COMMAND, str(broken)], stdin=listener)
    assert (status, out) == (1, "")
    assert err.startswith(f"gateways: {broken} cannot be loaded: ModuleNotFoundError")
    assert err.count("\n") == 1


# CGI.


@each_way
def test_a_cgi_request_is_answered(command: list[str]) -> None:
    status, out, err = complete(command, env=REQUEST)
    document = parse_document(out.replace("\n", "\r\n").encode()) if "\r\n" not in out else parse_document(out.encode())
    page = json.loads(document.body)
    assert (status, err, page["path"], page["mode"]) == (0, "", "/page", "cgi")


def test_a_cgi_program_whose_standard_streams_are_one_socket() -> None:
    """As Apache's mod_cgid starts it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        given = {**REQUEST, "REQUEST_METHOD": "POST", "CONTENT_LENGTH": "4"}
        with running(BY_LINE, stdin=theirs, stdout=theirs, env=given) as process:
            theirs.close()
            ours.settimeout(DEADLINE)
            ours.sendall(b"body and more")
            page = json.loads(parse_document(read_to_end(ours)).body)
            assert page["body"] == "body"
            assert process.wait(DEADLINE) == 0


FIRST_LINES = ["#!/usr/bin/env -S gateways run --model wsgi", "#!/usr/bin/env -S start-me"]


@pytest.mark.parametrize("line", FIRST_LINES)
def test_C01_words_of_a_query_do_not_reach_a_cgi_program_as_arguments(tmp_path: Path, line: str) -> None:
    """A web server may append them to the command line (RFC 3875 4.4), after a first line that starts us."""
    for name, words in (("gateways", ""), ("start-me", "run ")):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m gateways {words}"$@"\n')
        (tmp_path / name).chmod(0o755)
    script = tmp_path / "page.fcgi"
    application = (ROOT / ITSELF).read_text().partition("import gateways")[0]
    script.write_text(f"{line}\n{application}")
    script.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    status, out, err = complete([str(script), "--bind", "0.0.0.0:80", "-d"], env=REQUEST | path)
    assert (status, err) == (0, "")
    assert json.loads(out[out.index("{") :])["arguments"] == []
    command = [str(script), "--colour", "red"]
    with listen_tcp() as listener, running(command, stdin=listener, env=path) as process:
        page = ask(listener)
        assert (page["arguments"], page["mode"], page["pid"]) == (["--colour", "red"], "wsgi", process.pid)
        assert end(process) == (0, "")


# HTTP, and what does not change it.


def read_announcement(process: subprocess.Popen[str]) -> str:
    """What is said up to the line that tells how to stop it."""
    assert process.stdout is not None
    said = ""
    while "stop: " not in said:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        said += line
    return said


def get(said: str, path: str = "/page") -> dict[str, Any]:
    """A page over HTTP from the address in an announcement."""
    match = re.search(r"http://127\.0\.0\.1:([1-9][0-9]*)/ +wsgi ", said)
    assert match, said
    with socket.create_connection(("127.0.0.1", int(match[1])), DEADLINE) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
        return dict(json.loads(read_to_end(sock).partition(b"\r\n\r\n")[2]))


LEFTOVERS = [
    ("none", {}), ("interface", {"GATEWAY_INTERFACE": "CGI/1.1"}), ("method", {"REQUEST_METHOD": "GET"}),
    ("activation", {"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "fastcgi"}),
    ("front", {"FCGI_WEB_SERVER_ADDRS": "192.0.2.1"}),
]  # fmt: skip


@pytest.mark.parametrize("env", [row[1] for row in LEFTOVERS], ids=[row[0] for row in LEFTOVERS])
def test_started_by_a_person_it_serves_http_and_says_where(env: dict[str, str]) -> None:
    with running(BY_LINE, env=env) as process:
        said = read_announcement(process)
        assert f"stop: Ctrl-C, or kill -TERM {process.pid}\n" in said
        assert 'pool "main": http; this process alone\n' in said
        assert get(said)["pid"] == process.pid
        assert end(process, signal.SIGINT) == (0, "")


def test_a_closed_descriptor_0_changes_nothing() -> None:
    shell = ["sh", "-c", 'exec "$@" <&-', "sh", *BY_LINE]
    with running(shell) as process:
        page = get(read_announcement(process))
        assert (page["pid"], page["descriptors"][0]) == (process.pid, "/dev/null")
        assert end(process) == (0, "")


def test_options_come_before_the_file_and_arguments_after_it() -> None:
    command = [*BY_COMMAND, "--bind", "127.0.0.1:0", "--start-servers=1", ITSELF, "--colour", "red"]
    with running(command) as process:
        said = read_announcement(process)
        assert f"reload code: kill -HUP {process.pid}\n" in said
        page = get(said)
        assert (page["arguments"], page["pid"] != process.pid) == (["--colour", "red"], True)
        assert end(process)[0] == 0


# What cannot be.


@each_way
@pytest.mark.parametrize("given", [{}, {"REQUEST_METHOD": "GET"}, {"GATEWAY_INTERFACE": "CGI/1.1"}])
def test_a_socket_that_does_not_listen_is_one_sentence(command: list[str], given: dict[str, str]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        status, out, err = complete(command, stdin=theirs, env={**given, "TOKEN": "not-for-everybody"})
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"gateways: {NOT_LISTENING}")
    sentence = err.removeprefix("gateways: ").removesuffix("\n")
    assert out == (format_refusal(sentence).decode().replace("\r\n", "\n") if given else "")
    assert "not-for-everybody" not in out + err


def test_a_refusal_is_a_cgi_document() -> None:
    document = parse_document(format_refusal("it is so"))
    assert (document.status, document.body) == (500, b"500 Internal Server Error\nit is so\n")


@pytest.mark.parametrize("words", ["", "1", "None", "print, handler=print"])
def test_run_wants_one_callable(tmp_path: Path, words: str) -> None:
    app = tmp_path / "app.py"
    app.write_text(f"import gateways\ngateways.run({words})\n")
    status, out, err = complete([sys.executable, str(app)])
    assert (status, out) == (2, "")
    assert err == "gateways: gateways.run needs one callable: a WSGI application, or handler=...\n"


# Whom a FastCGI application lets connect (FastCGI 3.2).


def test_F01_fcgi_web_server_addrs_is_the_rule_of_peers() -> None:
    given = {"FCGI_WEB_SERVER_ADDRS": "127.0.0.2, 127.0.0.3"}
    with listen_tcp() as listener, running(BY_LINE, stdin=listener, env=given) as process:
        assert ask(listener, source="127.0.0.3")["pid"] == process.pid
        assert ask(listener, source="127.0.0.1") == {}
        status, said = end(process)
    assert status == 0
    assert said.count("\n") == 1
    assert said.endswith("closed a connection from 127.0.0.1, which is not among AllowedPeers\n")


def test_F01_fcgi_web_server_addrs_is_about_tcp(tmp_path: Path) -> None:
    given = {"FCGI_WEB_SERVER_ADDRS": "127.0.0.2"}
    with listen_unix(tmp_path) as listener, running(BY_LINE, stdin=listener, env=given) as process:
        assert ask(listener)["pid"] == process.pid
        assert end(process) == (0, "")


def test_F01_fcgi_web_server_addrs_that_cannot_be_read_lets_nobody_in() -> None:
    with listen_tcp() as listener:
        status, _, err = complete(BY_LINE, stdin=listener, env={"FCGI_WEB_SERVER_ADDRS": "127.0.0.1,localhost"})
    assert status == 1
    assert err == 'gateways: FCGI_WEB_SERVER_ADDRS must be addresses, networks or "unix", not "localhost"\n'


def test_F01_a_socket_on_every_interface_needs_a_word() -> None:
    with listen_tcp("0.0.0.0") as listener:
        status, _, err = complete(BY_LINE, stdin=listener)
        assert (status, err.count("\n")) == (1, 1)
        assert re.match(r"gateways: fastcgi://0\.0\.0\.0:[0-9]+ would be open to every interface", err)
        with running(BY_LINE, stdin=listener, env={"FCGI_WEB_SERVER_ADDRS": "127.0.0.1"}) as process:
            assert ask(listener)["pid"] == process.pid
            assert end(process) == (0, "")


# Socket activation.

ACTIVATE = """
import os, sys
count, names, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
moved = [os.dup(fd) for fd in map(int, os.environ.pop("GIVEN").split())]
high = [os.dup2(fd, 50 + index) for index, fd in enumerate(moved)]
for index, fd in enumerate(high):
    os.dup2(fd, 3 + index)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(count), LISTEN_FDNAMES=names)
os.execv(command[0], command)
"""


@contextmanager
def activated(sockets: Sequence[socket.socket], names: str, count: int = 0) -> Iterator[subprocess.Popen[str]]:
    """The application started as by systemd with ``sockets`` from descriptor 3 on."""
    fds = [sock.fileno() for sock in sockets]
    command = [sys.executable, "-c", ACTIVATE, str(count or len(sockets)), names, *BY_LINE]
    with running(command, pass_fds=fds, env={"GIVEN": " ".join(map(str, fds))}) as process:
        yield process


def test_activated_sockets_are_served_by_their_names() -> None:
    with listen_tcp() as first, listen_tcp() as second, activated([first, second], "fastcgi:web") as process:
        page = ask(first)
        assert (page["pid"], page["activation"]) == (process.pid, [])
        assert get(f"http://127.0.0.1:{second.getsockname()[1]}/ wsgi ")["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=DEADLINE) == ("", "")
        assert process.returncode == 0


def test_an_activated_socket_without_a_name_speaks_http() -> None:
    with listen_tcp() as listener, activated([listener], "") as process:
        assert get(f"http://127.0.0.1:{listener.getsockname()[1]}/ wsgi ")["pid"] == process.pid
        assert end(process) == (0, "")


def test_F01_an_activated_socket_on_every_interface_speaks_http_only() -> None:
    with listen_tcp("0.0.0.0") as listener:
        with activated([listener], "web") as process:
            assert get(f"http://127.0.0.1:{listener.getsockname()[1]}/ wsgi ")["pid"] == process.pid
            assert end(process) == (0, "")
        with activated([listener], "ajp") as process:
            assert process.wait(DEADLINE) == 1
            assert process.stderr is not None
            assert re.match(r"gateways: ajp://0\.0\.0\.0:[0-9]+ would be open", process.stderr.read())


def test_an_activated_socket_that_does_not_listen_is_one_sentence() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, activated([theirs], "") as process:
        assert process.wait(DEADLINE) == 1
        assert process.stderr is not None
        assert process.stderr.read() == "gateways: descriptor 3 is not a listening stream socket: say Accept=no\n"


# The same file, loaded or run by a server of ours.

MODES = [
    ("wsgi", []), ("handler", []), ("cgi", []), ("zygote", []), ("perlrun", []), ("registry", []),
    ("registry", ["--stdio", "descriptor"]),
]  # fmt: skip


@pytest.mark.parametrize(("model", "options"), MODES, ids=["-".join([row[0], *row[1][1:]]) for row in MODES])
def test_a_file_that_runs_itself_is_served_under_every_model(tmp_path: Path, model: str, options: list[str]) -> None:
    app = tmp_path / "app.py"
    app.write_text(f"#!{sys.executable}\n" + (ROOT / ITSELF).read_text().replace("__file__", repr(str(ROOT / ITSELF))))
    app.chmod(0o755)
    few = ["--start-servers", "1", "--min-spare-servers", "1", "--max-spare-servers", "1", "--max-servers", "1"]
    with serving(tmp_path, str(app), "--model", model, *few, *options) as server:
        for _ in range(2):
            status, body = server.get("/page")
            page = json.loads(body)
            assert (status, page["mode"]) == (200, model if model in ("wsgi", "handler") else "cgi")
            assert page.get("path", "/page") == "/page"
            workers = server.workers()
            assert model in ("cgi", "zygote", "handler") or page["pid"] in workers


# A process manager of Debian.


@pytest.mark.front("spawn-fcgi")
@each_way
def test_spawn_fcgi_starts_it(tmp_path: Path, front_program: str, command: list[str]) -> None:
    path = tmp_path / "s"
    with running([front_program, "-n", "-s", str(path), "--", *command]) as process:
        with socket.socket(socket.AF_UNIX) as listener:
            wait_until(path.exists, "the socket's file")
            wait_until(lambda: can_connect(path), "somebody who listens")
            listener.connect(str(path))
            listener.settimeout(DEADLINE)
            listener.sendall(fastcgi.request(variables("/page", None)))
            page = json.loads(fastcgi.parse_answer(read_to_end(listener)).document.body)
        assert page["pid"] == process.pid
        assert end(process) == (0, "")


def can_connect(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(str(path)) == 0


@pytest.mark.front("lighttpd")
def test_lighttpd_starts_it_and_ends_it(tmp_path: Path, front_program: str) -> None:
    with listen_tcp() as probe:
        port = probe.getsockname()[1]
    command = f"/usr/bin/env PYTHONPATH={ROOT} {' '.join(BY_COMMAND)} {ROOT / ITSELF}"
    configuration = tmp_path / "lighttpd.conf"
    configuration.write_text(
        f"""
server.document-root = "{tmp_path}"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{tmp_path}/error.log"
server.modules = ("mod_fastcgi")
fastcgi.server = ("/" => (
    ("bin-path" => "{command}", "socket" => "{tmp_path}/s", "max-procs" => 2, "check-local" => "disable",
     "fix-root-scriptname" => "enable")
))
"""
    )
    with running([front_program, "-D", "-f", str(configuration)]) as process:
        wait_until(lambda: len(children(process.pid)) == 2, "what lighttpd starts")
        wait_until(lambda: can_connect_port(port), "lighttpd")
        pids = [pid for pid, _ in children(process.pid)]
        try:
            with socket.create_connection(("127.0.0.1", port), DEADLINE) as sock:
                sock.sendall(b"GET /page HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                page = json.loads(read_to_end(sock).partition(b"\r\n\r\n")[2])
            assert (page["path"], page["mode"]) == ("/page", "wsgi")
            assert page["pid"] in pids
            end(process)
            wait_until(lambda: not any(map(is_running, pids)), "the end of what it started")
        finally:
            for pid in filter(is_running, pids):
                os.kill(pid, signal.SIGKILL)
    log = (tmp_path / "error.log").read_text().splitlines()
    assert [line for line in log if "server started" not in line and "server stopped" not in line] == []


def is_running(pid: int) -> bool:
    """True while a program that this file has had started runs under ``pid``."""
    try:
        return ITSELF.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def can_connect_port(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
