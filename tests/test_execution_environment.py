"""The environment of a script, the lines of its log, its held reply, and what is imported ahead."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gateways.core.errors import ConnectionLost, LocalProtocolError, ScriptError
from gateways.core.mounts import Mount
from gateways.core.request import Endpoint, VariableRequest
from gateways.execution.environment import PASSED, EnvironmentPlan, list_inherited
from gateways.execution.loading import load_imports
from gateways.execution.recipes import is_foreign, make_recipe
from gateways.execution.reply import HOLD, Reply
from gateways.execution.scriptlog import MAX_LINE, MAX_TOTAL, ScriptLog, escape_line
from gateways.execution.sources import Script, SingleScript
from gateways.execution.warm import list_foreign_imports, list_imports
from tests.exchanges import FakeExchange, ListLog, make_request
from tests.script_runs import IN_PROCESS, Call, make_script_model, run_calls, write_script

HEAD = 'print("Content-Type: text/plain\\n")\n'
SCRIPT = Script("/srv/a.py")


# The environment.


def test_c02_only_the_listed_variables_are_inherited() -> None:
    own = {"PATH": "/bin", "LC_TIME": "C", "LANG": "C", "TZ": "UTC", "AWS_KEY": "k", "LC": "x", "PYTHONPATH": "/x"}
    folder = str(Path(sys.executable).parent)
    assert list_inherited(own, PASSED) == {"PATH": f"{folder}:/bin", "LC_TIME": "C", "LANG": "C", "TZ": "UTC"}
    assert list_inherited(own, ("AWS_*",))["AWS_KEY"] == "k"
    assert list_inherited({}, PASSED)["PATH"].startswith(folder)
    assert list_inherited({"PATH": f"{folder}:/bin"}, PASSED)["PATH"] == f"{folder}:/bin"


def make_front_request(variables: dict[str, str]) -> VariableRequest:
    return VariableRequest(Endpoint("h", "80"), "", {"REQUEST_METHOD": "GET", **variables}, 0)


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "PERL5LIB", "BASH_ENV", "IFS"])
def test_f02_a_front_cannot_choose_the_code_a_script_loads(name: str) -> None:
    request = make_front_request({name: "/evil", "PATH": "/evil", "OWN": "x", "SCRIPT_FILENAME": "/evil.py"})
    variables = EnvironmentPlan().format_environment(request, SCRIPT, 0)
    assert "/evil" not in variables.values()
    assert variables["OWN"] == "x"
    assert variables["SCRIPT_FILENAME"] == "/srv/a.py"


def test_what_a_mount_says_wins_over_the_server_and_the_front() -> None:
    request = make_front_request({"PERL5LIB": "/evil", "OWN": "x"})
    request.mount = Mount("", None, {"PERL5LIB": "/lib", "PATH": "/own", "OWN": "mine"})  # type: ignore[arg-type]
    variables = EnvironmentPlan().format_environment(request, SCRIPT, 0)
    assert (variables["PERL5LIB"], variables["PATH"], variables["OWN"]) == ("/lib", "/own", "mine")


@pytest.mark.parametrize(("passes", "seen"), [(False, None), (True, "Basic x")])
def test_credentials_are_passed_only_when_asked_for(passes: bool, seen: str | None) -> None:
    plan = EnvironmentPlan(pass_authorization=passes)
    request = make_request(fields=[("Authorization", "Basic x")])
    assert plan.format_environment(request, SCRIPT, 0).get("HTTP_AUTHORIZATION") == seen


def test_h15_httpoxy_is_stopped_whatever_the_wire_let_through() -> None:
    request = make_front_request({"HTTP_PROXY": "http://evil/"})
    assert "HTTP_PROXY" not in EnvironmentPlan().format_environment(request, SCRIPT, 0)


def test_a_folders_script_has_its_own_split_of_the_path_and_a_spooled_body_its_length() -> None:
    script = Script("/srv/\xe9.py", "/cgi-bin/x.py", "/more", split_here=True)
    variables = EnvironmentPlan().format_environment(make_request(content_length=None), script, 12)
    assert (variables["SCRIPT_NAME"], variables["PATH_INFO"]) == ("/cgi-bin/x.py", "/more")
    assert (variables["SCRIPT_FILENAME"], variables["CONTENT_LENGTH"]) == ("/srv/\xc3\xa9.py", "12")
    encoded = EnvironmentPlan().encode_environment(make_request(), script, 0)
    assert encoded[b"SCRIPT_FILENAME"] == b"/srv/\xc3\xa9.py"


@pytest.mark.parametrize("model", IN_PROCESS)
def test_a_child_made_by_multiprocessing_sees_the_scripts_variables(model: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("import os\ndef job(pipe): pipe.send(os.environ.get('OWN'))\n")
    script = (
        "import multiprocessing, os, job\n"
        "if __name__ == '__main__':\n"
        "    os.environ['OWN'] = 'yes'\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    near, far = context.Pipe()\n"
        "    process = context.Process(target=job.job, args=(far,))\n"
        "    process.start()\n"
        "    print('Content-Type: text/plain\\n\\n' + near.recv())\n"
        "    process.join()\n"
    )
    path = write_script(tmp_path / "script.py", script)
    assert run_calls(IN_PROCESS[model], SingleScript(str(path)))[0].text == "yes\n"


# The log.


def test_lines_are_named_escaped_and_ended() -> None:
    log = ListLog()
    lines = ScriptLog(log, "/srv/a.py")
    for data in (b"one\ntw", b"o\r\n\n", b"\x1b[31m\xff", b"\tend"):
        lines.write(data)
    lines.note("ended")
    assert log.text.splitlines() == [
        "/srv/a.py: one", "/srv/a.py: two", "/srv/a.py: \\x1b[31m\\xff\\tend", "/srv/a.py: ended",
    ]  # fmt: skip


def test_c08_the_log_is_bounded_in_length_and_in_all() -> None:
    log = ListLog()
    lines = ScriptLog(log, "s")
    lines.write(b"x" * (MAX_LINE + 5) + b"\n")
    assert [len(text) for _, text in log.records] == [MAX_LINE + 8]
    lines.write(b"y" * (MAX_LINE + 5))
    lines.write(b"z" * MAX_TOTAL)
    lines.finish()
    assert sum(len(text) for _, text in log.records) < MAX_TOTAL + 2000
    assert f"{2 * MAX_LINE + 11} more bytes of standard error were dropped" in log.text


@pytest.mark.parametrize(
    ("text", "escaped"), [("plain \xe9", "plain \xe9"), ("a\nb", "a\\nb"), ("\u2028\x85\x7f", "\\u2028\\x85\\x7f")]
)
def test_b135_no_character_can_begin_a_line_of_its_own(text: str, escaped: str) -> None:
    assert escape_line(text) == escaped


# The reply.

TYPE = b"Content-Type: text/plain\n\n"


def test_a_short_reply_is_one_response() -> None:
    exchange = FakeExchange()
    reply = Reply(exchange, "s")
    for piece in (b"Content-Type: text/plain\n", b"\nhel", b"lo"):
        reply.write(piece)
    reply.finish()
    assert (exchange.whole, exchange.pieces) == (True, [b"hello"])


def test_a_long_reply_is_streamed_before_it_ends() -> None:
    exchange = FakeExchange()
    reply = Reply(exchange, "s")
    reply.write(TYPE)
    reply.write(b"x" * HOLD)
    assert exchange.pieces == [b"x" * HOLD]
    reply.write(b"y")
    assert exchange.pieces[1:] == [b"y"]
    reply.finish()
    assert not exchange.whole


def test_a_flush_before_the_head_is_complete_sends_nothing() -> None:
    exchange = FakeExchange()
    reply = Reply(exchange, "s")
    reply.write(b"Content-")
    reply.flush()
    assert not exchange.started
    reply.write(b"Type: a/b\n\n")
    reply.flush()
    assert exchange.committed


def test_a_flushed_body_that_has_its_content_length_is_one_response() -> None:
    exchange = FakeExchange()
    reply = Reply(exchange, "s")
    reply.write(b"Content-Length: 5\n" + TYPE + b"hello")
    reply.flush()
    assert (exchange.whole, exchange.pieces) == (True, [b"hello"])
    reply.write(b"more than was announced")
    reply.finish()
    assert exchange.pieces == [b"hello"]


def test_a_head_request_may_announce_a_body_and_send_none() -> None:
    exchange = FakeExchange(make_request("HEAD"))
    reply = Reply(exchange, "s")
    reply.write(b"Content-Length: 5\n" + TYPE)
    reply.flush()
    reply.finish()
    assert (exchange.status, exchange.body) == ("200 OK", b"")
    assert ("Content-Length", "5") in exchange.fields


def test_a_body_without_a_type_is_refused_when_its_first_byte_comes() -> None:
    exchange = FakeExchange()
    reply = Reply(exchange, "/srv/a.py")
    reply.write(b"Status: 200 OK\n\n")
    reply.flush()
    assert not exchange.started
    reply.write(b"body")
    with pytest.raises(ScriptError, match=r"/srv/a.py: the script's head has no Content-Type"):
        reply.flush()


class Refuses(FakeExchange):
    """An exchange that cannot send."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def start(self, status: str, fields: object) -> None:
        raise self.error

    def respond(self, status: str, fields: object, body: bytes = b"") -> None:
        raise self.error


@pytest.mark.parametrize("error", [ConnectionLost("gone"), LocalProtocolError("bad field")], ids=["gone", "B092"])
def test_a_fault_stays_though_the_script_catches_it(error: Exception) -> None:
    reply = Reply(Refuses(error), "s")
    reply.write(TYPE + b"x")
    for call in (reply.flush, reply.flush, reply.finish, lambda: reply.write(b"x")):
        with pytest.raises(type(error)):
            call()


@pytest.mark.parametrize("model", IN_PROCESS)
def test_b092_a_field_that_may_not_be_sent_is_a_fault_though_the_script_catches_everything(
    model: str, tmp_path: Path
) -> None:
    script = (
        "try:\n    print('Content-Type: a/b\\nX Y: 1\\n\\nbody', flush=True)\nexcept Exception: pass\n"
        "try:\n    print('more', flush=True)\nexcept Exception: pass\n"
    )
    path = write_script(tmp_path / "script.py", script)
    outcomes = run_calls(IN_PROCESS[model], SingleScript(str(path)), Call(), Call())
    assert [outcome.code for outcome in outcomes] == [500, 500]
    assert [outcome.body for outcome in outcomes] == [b"", b""]


# What is imported ahead.


def test_imports_are_read_from_statements_that_run() -> None:
    source = (
        b"import a, b.c as d\nfrom e import f, g as h\nfrom i import *\nfrom . import j\n"
        b"try:\n    import k\nexcept ImportError:\n    import l\nelse:\n    import m\nfinally:\n    import n\n"
        b"if x:\n    import o\nelse:\n    import p\nwith x:\n    import q\n"
        b"def f():\n    import no\nclass C:\n    import no\nasync def g():\n    import no\n"
        b"if TYPE_CHECKING:\n    import no\nelse:\n    import r\nif typing.TYPE_CHECKING:\n    import no\n"
    )
    assert sorted(list_imports(source)) == ["a", "b.c", "e", "e.f", "e.g", "i", *"klmnopqr"]


def test_local_modules_are_followed_and_never_imported(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import far_one")
    (tmp_path / "package" / "inner.py").write_text("import far_two, script, broken")
    (tmp_path / "broken.py").write_text("def")
    path = write_script(tmp_path / "script.py", "from package import inner\nimport far_three")
    assert list_foreign_imports(str(path)) == ["far_three", "far_one", "far_two"]


def test_what_cannot_be_imported_ahead_is_left_to_the_script() -> None:
    log = ListLog()
    load_imports(["no_such_module_anywhere", "os.path.join", "colorsys"], log)
    assert "no_such_module_anywhere could not be imported ahead" in log.text
    assert "colorsys" in sys.modules


# Settings.


def test_unknown_settings_are_refused() -> None:
    from gateways.core.errors import ConfigurationError

    source = SingleScript("/srv/a.py")
    for make in (
        lambda: make_recipe("registry", "half"),
        lambda: make_recipe("cgi"),
        lambda: make_script_model(source, "perlrun", stdio="paper"),
    ):
        with pytest.raises(ConfigurationError):
            make()


@pytest.mark.parametrize(
    ("path", "source", "foreign"),
    [
        ("a.py", b"print(1)", False),
        ("a", b"print(1)", False),
        ("a", b"#!/usr/bin/env python3\n", False),
        ("a", b"#!/bin/sh\n# python", True),
        ("a.pl", b"#!/usr/bin/perl", True),
        ("a", b"\x7fELF\x02", True),
    ],
)
def test_what_is_no_python(path: str, source: bytes, foreign: bool) -> None:
    assert is_foreign(path, source) is foreign
