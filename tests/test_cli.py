"""The command line as a real process: what it prints, its exit status, and what it imports for one CGI request."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateways import __version__
from gateways.announcement import format_announcement
from gateways.cli import parse_cgi
from gateways.commands import COMMANDS
from gateways.config.reader import read_settings

ROOT = Path(__file__).resolve().parent.parent
MODES = "conf/modes.toml"
DEADLINE = 30


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``gateways WORDS`` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "gateways", *words], cwd=ROOT, env={**os.environ, **variables}, capture_output=True,
        stdin=subprocess.DEVNULL, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip


RUN = (
    "run needs a file, and its own options before it: "
    "gateways run [--model MODEL] [--bind ADDRESS] [--start-servers N] FILE [ARGUMENT ...]"
)
WRONG = [
    ([], f"gateways: say what to do: {', '.join(COMMANDS)} (gateways --help explains each)"),
    (["srve"], f'gateways: there is no command "srve"; the commands are {", ".join(COMMANDS)}'),
    (["--what"], 'gateways: there is no option "--what"'),
    (["serve"], "gateways: serve needs a TARGET or --config FILE, and not both"),
    (["serve", "apps/hello.py", "--config", MODES], "gateways: serve needs a TARGET or --config FILE, and not both"),
    (["serve", "apps/none.py"], f"gateways: TARGET: there is no file {ROOT}/apps/none.py"),
    (["serve", "apps/hello.py", "extra"], 'gateways: "extra" is one argument too many (gateways --help)'),
    (["serve", "apps/hello.py", "--start-server", "3"],
     'gateways: there is no option "--start-server"; did you mean --start-servers?'),
    (["serve", "apps/hello.py", "--start-servers", "x"], 'gateways: --start-servers must be a whole number, not "x"'),
    (["serve", "apps/hello.py", "--start-servers"],
     "gateways: argument --start-servers: expected one argument (gateways serve --help explains the options)"),
    (["serve", "--config", MODES, "--max-servers", "3"],
     f"gateways: --max-servers cannot be given with --config: write MaxServers in {ROOT}/{MODES}"),
    (["serve", "--config", "none.toml"], "none.toml: the configuration cannot be read: No such file or directory"),
    (["serve", "apps/hello.py", "--error-log", "/"], "gateways: the error log cannot be opened: /: Is a directory"),
    (["serve", "apps/hello.py", "--slow-log", "/"], "gateways: the slow log cannot be opened: /: Is a directory"),
    (["check"],
     "gateways: the following arguments are required: --config (gateways check --help explains the options)"),
    (["check", "--config", "none.toml"], "none.toml: the configuration cannot be read: No such file or directory"),
    (["run"], f"gateways: {RUN}"),
    (["run", "--what", "apps/hello.py"], f"gateways: {RUN}"),
    (["run", "--model", "wsgi", "--model", "wsgi", "apps/hello.py"], f"gateways: {RUN}"),
    (["run", "--model=", "apps/hello.py"], f"gateways: {RUN}"),
    (["run", "--start-servers", "x", "apps/hello.py"], "gateways: --start-servers must be 0 to 9999, not 'x'"),
    (["run", "--bind", "x", "apps/hello.py"],
     'gateways: --bind must be HOST:PORT, [IPV6]:PORT or unix:PATH, not "x"'),
    (["run", "apps/none.py"], f"gateways: there is no file {ROOT}/apps/none.py"),
    (["run", "--model", "wsgj", "apps/hello.py"],
     'gateways: --model must be one of cgi, zygote, perlrun, registry, wsgi, handler; not "wsgj"'),
    (["run", "Makefile"], f"gateways: {ROOT}/Makefile is not valid Python: line 2: invalid syntax"),
    (["cgi"], "gateways: cgi needs one target and nothing but --model beside it: gateways cgi TARGET [--model MODEL]"),
    (["cgi", "apps/hello.py", "--model", "wsgj"],
     "gateways: there is no model 'wsgj': a CGI program offers wsgi and handler"),
    (["cgi", "a.py", "b.py"],
     "gateways: cgi needs one target and nothing but --model beside it: gateways cgi TARGET [--model MODEL]"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[" ".join(row[0]) or "nothing" for row in WRONG])
def test_wrong_usage_is_one_sentence_and_status_2(words: list[str], sentence: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence + "\n")


def test_check_names_no_mistake_in_the_shipped_configuration() -> None:
    done = run("check", "--config", MODES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "conf/modes.toml: no mistakes; pools: 1, mounts: 6\n"


def test_check_names_every_mistake_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("LogLevel = 1\n[pool.a]\nStartServer = 1\n")
    done = run("check", "--config", str(path))
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert [line.removeprefix(f"{path}:").partition(":")[0] for line in lines] == ["1", "2", "3"]


def test_version_and_help() -> None:
    assert run("--version").stdout == f"gateways {__version__}\n"
    usage = run("serve", "--help", COLUMNS="100")
    assert usage.returncode == 0
    assert "--max-requests-per-child N" in usage.stdout
    assert "--model cgi|zygote|perlrun|registry|wsgi|handler" in usage.stdout


def test_directives_prints_the_reference() -> None:
    assert run("directives").stdout == (ROOT / "docs" / "directives.md").read_text()


CGI_WORDS = [
    (["app.py"], ("app.py", "")), (["app.py", "--model", "wsgi"], ("app.py", "wsgi")),
    (["--model=handler", "m:h"], ("m:h", "handler")), ([], ("", "")), (["a", "b"], ("", "")), (["--x"], ("", "")),
    (["a", "--model"], ("", "")), (["a", "--model="], ("", "")), (["a", "--model", "--x"], ("", "")),
]  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), CGI_WORDS)
def test_the_words_of_a_cgi_program(words: list[str], expected: tuple[str, str]) -> None:
    assert parse_cgi(words) == expected


@pytest.mark.parametrize(
    "words", [["apps/hello.py"], ["apps/hello.py", "--model", "handler"], ["apps/hello.py:handler"]]
)
def test_cgi_answers_the_request_in_its_environment(words: list[str]) -> None:
    done = run("cgi", *words, REQUEST_METHOD="GET", PATH_INFO="/gateway", SERVER_PROTOCOL="HTTP/1.1")
    head, _, body = done.stdout.partition("\n\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Content-Type: text/plain; charset=utf-8" in head
    assert body == "GATEWAY_INTERFACE: CGI/1.1\nGATEWAYS_MODE: cgi\n"


FORBIDDEN = {
    "argparse", "ast", "dataclasses", "email", "gateways.config", "http", "inspect", "logging", "selectors", "socket",
    "subprocess", "tempfile", "threading", "tomllib", "traceback", "typing", "urllib",
}  # fmt: skip
"""What one CGI request must not pay for."""

MOST_MODULES = {"import gateways": 1, "cgi": 48, "run": 50}
"""Modules beyond those of a bare interpreter; a change that needs more has to say so here."""


def count_modules(program: str) -> set[str]:
    """Return the modules that a program imports beyond a bare interpreter's (no site, no environment)."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); known = set(sys.modules)\n{program}\n"
    code += "sys.stderr.write(' '.join(set(sys.modules) - known))"
    variables = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/",
        "SERVER_PROTOCOL": "HTTP/1.1",
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=ROOT, env=variables, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=DEADLINE, check=True,
    )  # fmt: skip
    return set(done.stderr.split())


RUN_OBJECT = """
import gateways
sys.path.insert(0, "apps")
import hello
try:
    gateways.run(hello.application)
except SystemExit as end:
    assert end.code == 0
"""


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("import gateways", "import gateways"),
        ("cgi", "from gateways.cli import main\nassert main(['cgi', 'apps/hello.py']) == 0"),
        ("cgi", "from gateways.cli import main\nassert main(['cgi', 'apps/hello.py:handler']) == 0"),
        ("run", "from gateways.cli import main\nassert main(['run', 'apps/hello.py']) == 0"),
        ("run", RUN_OBJECT),
    ],
    ids=["import", "cgi-wsgi", "cgi-handler", "run-file", "run-object"],
)
def test_a_cgi_request_imports_little(name: str, program: str) -> None:
    imported = count_modules(program)
    assert not imported & FORBIDDEN
    assert len(imported) <= MOST_MODULES[name], sorted(imported)


def test_the_announcement_tells_where_to_look_and_how_to_stop() -> None:
    pools = read_settings(str(ROOT / MODES)).pools
    text = format_announcement(pools, ["127.0.0.1:4711"], 99, "configuration and code")
    assert "http://127.0.0.1:4711/cgi/       cgi       " in text
    assert "http://127.0.0.1:4711/handler/   handler   " in text
    assert 'pool "modes": http; workers: 5 at the start, 5 to 10 idle, at most 40' in text
    assert "stop: Ctrl-C, or kill -TERM 99; reload configuration and code: kill -HUP 99" in text


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """``gateways serve apps/hello.py`` on a free port, with its error log in a file."""
    log = tmp_path / "error.log"
    words = ["serve", "apps/hello.py", "--bind", "127.0.0.1:0", "--max-servers", "2", "--error-log", str(log)]
    process = subprocess.Popen(
        [sys.executable, "-m", "gateways", *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process, log
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(DEADLINE)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def test_serve_prints_the_real_port_and_stops_when_told(server: tuple[subprocess.Popen[str], Path]) -> None:
    process, log = server
    assert process.stdout is not None
    printed = ""
    while "stop: " not in printed:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        printed += line
    match = re.search(r"http://(127\.0\.0\.1:[1-9][0-9]*)/ +wsgi +\S+/apps/hello\.py:application\n", printed)
    assert match, printed
    with urllib.request.urlopen(f"http://{match[1]}/", timeout=DEADLINE) as response:
        assert len(response.read()) == 1164
    assert f"kill -TERM {process.pid}" in printed
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert not re.search(r"(warning|error): ", log.read_text()), log.read_text()


def test_an_address_in_use_is_one_sentence_and_status_1(server: tuple[subprocess.Popen[str], Path]) -> None:
    process, _ = server
    assert process.stdout is not None
    address = ""
    while not address:
        line = process.stdout.readline()
        assert line
        found = re.search(r"http://([0-9.:]+)/", line)
        address = found[1] if found else ""
    done = run("serve", "apps/hello.py", "--bind", address)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"gateways: cannot listen on {address}: ")
    assert done.stderr.count("\n") == 1
