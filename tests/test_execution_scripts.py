"""What a script may rely on under every execution model alike: one table, each row run under each model."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gateways.execution.sources import SingleScript
from tests.script_runs import (
    FORKED,
    IN_PROCESS,
    MODELS,
    Call,
    Outcome,
    run_apart,
    run_call,
    run_calls,
    run_one,
    write_script,
)

HEAD = 'print("Content-Type: text/plain\\n")\n'
FLUSHED_HEAD = 'print("Content-Type: text/plain\\n", flush=True)\n'
FORK = FLUSHED_HEAD + "import os\npid = os.fork()\nif not pid:\n"
CODEC = "import codecs, sys\nsys.stdout = codecs.getwriter('utf-16-le')(sys.stdout.buffer)\n"
HOOK = "import sys\ndef show(kind, value, trace): print('sorry:', value)\nsys.excepthook = show\n"
EVERY_MODEL = pytest.mark.parametrize("model", MODELS)


def run(model: str, path: Path, text: str | bytes, call: Call | None = None) -> Outcome:
    return run_one(MODELS[model], write_script(path / "script.py", text), call)


ANSWERS = [
    ("plain", HEAD + 'print("hello")', "200 OK", "hello\n"),
    ("B147-status", 'print("Status: 404 Not Found\\nContent-Type: text/plain\\n\\ngone")', "404 Not Found", "gone\n"),
    ("B104-status-alone", 'print("Status: 404 Not Found\\n")', "404 Not Found", ""),
    ("B147-nph", 'print("HTTP/1.1 500 X\\nContent-Type: text/plain\\n\\nbad")', "500 X", "bad\n"),
    ("B015-redirect", 'print("Location: http://h/x\\n")', "302 Found", ""),
    ("B105-redirect-with-status", 'print("Status: 307 Temporary Redirect\\nLocation: http://h/\\n")',
     "307 Temporary Redirect", ""),
    ("B104-head-in-two-writes",
     'import sys\nsys.stdout.write("Sta"); sys.stdout.flush(); sys.stdout.write("tus: 404 Not Found\\r\\n\\r\\n")',
     "404 Not Found", ""),
    ("B104-byte-by-byte", 'import os\nfor c in b"Status: 404 Not Found\\r\\n\\r\\n": os.write(1, bytes([c]))',
     "404 Not Found", ""),
    ("B083-nul-in-body", HEAD + 'print("Hell\\0, World!", end="")', "200 OK", "Hell\0, World!"),
    ("exit-none", HEAD + "raise SystemExit", "200 OK", ""),
    ("exit-zero", HEAD + "import sys; sys.exit(0)", "200 OK", ""),
    ("exit-number", HEAD + "import sys; sys.exit(3)", "200 OK", ""),
    ("exit-true", HEAD + "import sys; sys.exit(True)", "200 OK", ""),
    ("exit-text", HEAD + 'import sys; sys.exit("that is all")', "200 OK", ""),
    ("exit-closes-stdin", HEAD + "exit()", "200 OK", ""),
    ("exit-in-a-function", HEAD + 'def f():\n    try: exit(0)\n    finally: print("end")\nf()', "200 OK", "end\n"),
    ("descriptor-1", 'import os\nos.write(1, b"Content-Type: text/plain\\n\\nraw")', "200 OK", "raw"),
    ("descriptor-1-before-buffer", 'import os\nprint("late")\nos.write(1, b"Content-Type: text/plain\\n\\nearly\\n")',
     "200 OK", "early\nlate\n"),
    ("flush-then-descriptor-1", FLUSHED_HEAD + 'print("a", flush=True)\nimport os\nos.write(1, b"b\\n")\nprint("c")',
     "200 OK", "a\nb\nc\n"),
    ("child-process", 'import os\nprint("Content-Type: text/plain\\n", flush=True)\nos.system("echo from sh")',
     "200 OK", "from sh\n"),
    ("child-given-stdout", FLUSHED_HEAD + "import subprocess, sys\nsubprocess.run(['echo', 'x'], stdout=sys.stdout)",
     "200 OK", "x\n"),
    ("stdout-replaced", 'import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="latin-1")\n'
     + HEAD + 'print("\\xe9", end="")', "200 OK", b"\xe9"),
    ("stdout-opened-anew", HEAD + 'import sys\nsys.stdout.flush()\n'
     'sys.stdout = open(sys.stdout.fileno(), "w", encoding="latin-1")\nprint("\xe9", end="")', "200 OK", b"\xe9"),
    ("descriptor-1-opened", 'with open(1, "wb") as out: out.write(b"Content-Type: a/b\\n\\n\\xff")', "200 OK", b"\xff"),
    ("stdout-detached", 'import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="latin-1")\n'
     + HEAD + 'print("\\xe9", end="")', "200 OK", b"\xe9"),
    ("stdout-codec", FLUSHED_HEAD + CODEC + 'print("x", end="")', "200 OK", b"x\0"),
    ("stdout-reconfigured", 'import sys\nsys.stdout.reconfigure(encoding="latin-1")\n' + HEAD
     + 'print("\\xe9", end="")', "200 OK", b"\xe9"),
    ("stdout-binary", 'import sys\nsys.stdout.buffer.write(b"Content-Type: a/b\\n\\n\\xff\\0")', "200 OK", b"\xff\0"),
    ("stdout-dunder", 'import sys\nsys.__stdout__.write("Content-Type: a/b\\n\\nx")', "200 OK", "x"),
    ("stdout-not-a-terminal", HEAD + "import sys\nprint(sys.stdout.isatty(), sys.stdin.isatty())", "200 OK",
     "False False\n"),
    ("stdout-number", HEAD + "import sys\nprint(sys.stdout.fileno())", "200 OK", "1\n"),
    ("atexit-lifo", HEAD + 'import atexit\natexit.register(print, "first")\natexit.register(print, "second")',
     "200 OK", "second\nfirst\n"),
    ("atexit-after-exit", HEAD + 'import atexit, sys\natexit.register(print, "at exit")\nsys.exit()', "200 OK",
     "at exit\n"),
    ("atexit-unregistered", HEAD + "import atexit\ndef f(): print('no')\natexit.register(f)\natexit.unregister(f)",
     "200 OK", ""),
    ("atexit-as-decorator", HEAD + "import atexit\n@atexit.register\ndef f(): print('yes')", "200 OK", "yes\n"),
    ("atexit-fault", HEAD + 'import atexit\natexit.register(print, "still")\natexit.register(lambda: 1/0)', "200 OK",
     "still\n"),
    ("main", HEAD + 'import sys, __main__\nprint(__name__, __main__.__file__ == __file__ == sys.argv[0])', "200 OK",
     "__main__ True\n"),
    ("pickle-finds-its-classes", HEAD + "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))",
     "200 OK", "<class '__main__.A'>\n"),
    ("dont-inherit-flags", HEAD + "def f(a: int) -> int: ...\nprint(f.__annotations__['a'])", "200 OK",
     "<class 'int'>\n"),
    ("coding-line", b"# -*- coding: latin-1 -*-\n" + HEAD.encode() + b"print(ascii('\xe9'))", "200 OK", "'\\xe9'\n"),
    ("own-hook-shows-it", HEAD + HOOK + "1/0", "200 OK", "sorry: division by zero\n"),
    ("finally-runs", HEAD + 'try:\n    raise SystemExit\nfinally:\n    print("finally")', "200 OK", "finally\n"),
    ("thread-is-joined", HEAD + "import threading\ne = threading.Event()\n"
     "threading.Thread(target=lambda: (e.wait(5), print('thread'))).start()\ne.set()", "200 OK", "thread\n"),
    ("executor-is-ended", HEAD + "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
     "print(*pool.map(str, [1, 2]))", "200 OK", "1 2\n"),
    ("forked-child-ends", FORK + '    print("child")\n    raise SystemExit(0)\nos.waitpid(pid, 0)\nprint("parent")',
     "200 OK", "child\nparent\n"),
    ("forked-child-raises", FORK + "    1/0\nprint(os.waitpid(pid, 0)[1] >> 8)", "200 OK", "1\n"),
]  # fmt: skip


@EVERY_MODEL
@pytest.mark.parametrize(("script", "status", "body"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_a_script_is_answered(model: str, script: str | bytes, status: str, body: str | bytes, tmp_path: Path) -> None:
    outcome = run(model, tmp_path, script)
    assert (outcome.status, outcome.error) == (status, ""), (outcome.message, outcome.log)
    assert outcome.body == (body if isinstance(body, bytes) else body.encode()), outcome.log


FAILURES = [
    ("C06-prints-nothing", "pass", "printed nothing"),
    ("C06-bad-status", 'print("Status: abc\\n")', "abc"),
    ("C06-two-statuses", 'print("Status: 200 OK\\nStatus: 404 No\\nContent-Type: a/b\\n")', "twice"),
    ("C06-no-type", 'print("X: y\\n\\nbody")', "no Content-Type"),
    ("C06-no-head", 'print("<html>")', "within its head"),
    ("C06-long-head", 'print("X: " + "a" * 70000 + "\\n\\n")', "longer than"),
    ("C06-folded", 'print("Content-Type: a/b\\n b\\n")', "folded"),
    ("C06-nul", 'print("Content-Type: a/b\\nX: \\0\\n")', "NUL"),
    ("B092-cr-in-a-value", 'print("Content-Type: a/b\\nX: a\\rSet-Cookie: x=1\\n")', "CR"),
    ("raises", HEAD + "print('half')\n1/0", "exception"),
    ("raises-before-output", "1/0", "exception"),
    ("raises-keyboard-interrupt", "raise KeyboardInterrupt", "exception"),
    ("does-not-compile", "def", "compile"),
    ("nul-in-source", b"\0", "compile"),
]


@EVERY_MODEL
@pytest.mark.parametrize(("script", "said"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_a_fault_is_500_and_names_the_script(model: str, script: str | bytes, said: str, tmp_path: Path) -> None:
    outcome = run(model, tmp_path, script)
    if model == "cgi" and said in ("exception", "compile"):
        # The interpreter is another program: what it printed before it ended is all that is known.
        assert "Error" in outcome.log or "KeyboardInterrupt" in outcome.log
        return
    assert (outcome.status, outcome.error, outcome.code) == ("", "ScriptError", 500) or outcome.error == "CompileError"
    assert said in outcome.message
    assert str(tmp_path / "script.py") in outcome.message


@EVERY_MODEL
def test_a_traceback_is_logged_with_the_scripts_own_lines_only(model: str, tmp_path: Path) -> None:
    outcome = run(model, tmp_path, "def f():\n    return 1 / 0\nf()")
    assert "ZeroDivisionError: division by zero" in outcome.log
    assert "return 1 / 0" in outcome.log
    assert "gateways/execution" not in outcome.log


LOGGED = [
    ("stderr", 'import sys\nprint("a warning", file=sys.stderr)', "script.py: a warning"),
    ("stderr-without-newline", 'import sys\nsys.stderr.write("unended")', "script.py: unended"),
    ("B135-stderr-control-characters", 'import sys\nprint("a\\rb\\x1b[31m", file=sys.stderr)', "a\\rb\\x1b[31m"),
    ("exit-number", "raise SystemExit(3)", "exit status 3"),
    ("exit-text", "raise SystemExit('that is all')", "script.py: that is all"),
    ("exit-text-status", "raise SystemExit('that is all')", "exit status 1"),
    ("atexit-fault", "import atexit\natexit.register(lambda: 1/0)", "division by zero"),
    ("warnings", "import warnings\nwarnings.warn('beware')", "beware"),
]


@EVERY_MODEL
@pytest.mark.parametrize(("script", "said"), [row[1:] for row in LOGGED], ids=[row[0] for row in LOGGED])
def test_what_a_script_says_is_logged_with_its_name(model: str, script: str, said: str, tmp_path: Path) -> None:
    outcome = run(model, tmp_path, HEAD + script)
    assert outcome.status == "200 OK"
    assert said in outcome.log


@EVERY_MODEL
@pytest.mark.parametrize("size", [4097, 1 << 20])
def test_c08_b102_a_flood_on_stderr_does_not_stop_the_reply(model: str, size: int, tmp_path: Path) -> None:
    outcome = run(model, tmp_path, f'import sys\nsys.stderr.write("e" * {size} + "\\n"); sys.stderr.flush()\n' + HEAD)
    assert outcome.status == "200 OK"
    assert len(outcome.log) < 300_000
    if size > 300_000:
        assert "bytes of standard error were dropped" in outcome.log


BODIES = [
    ("B096-no-body", Call("GET"), b""),
    ("body", Call("POST", body=b"abc\0def\n" * 5), b"abc\0def\n" * 5),
    ("long-body", Call("POST", body=bytes(range(256)) * 4000), bytes(range(256)) * 4000),
    ("chunked-body", Call("POST", body=b"x" * 100_000, chunked=True), b"x" * 100_000),
    ("chunked-body-beyond-memory", Call("POST", body=b"x" * 3_000_000, chunked=True), b"x" * 3_000_000),
    ("chunked-without-a-byte", Call("POST", chunked=True), b""),
]


@EVERY_MODEL
@pytest.mark.parametrize(("call", "body"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
def test_stdin_ends_at_content_length(model: str, call: Call, body: bytes, tmp_path: Path) -> None:
    script = HEAD + (
        "import hashlib, os, sys\ndata = sys.stdin.buffer.read()\n"
        "print(os.environ.get('CONTENT_LENGTH', ''), hashlib.sha256(data).hexdigest(), sys.stdin.buffer.read())"
    )
    outcome = run(model, tmp_path, script, call)
    assert outcome.text == f"{len(body) or ''} {hashlib.sha256(body).hexdigest()} b''\n"


@pytest.mark.parametrize("model", FORKED)
def test_c02_a_module_that_copies_the_environment_when_it_is_imported_finds_the_locale(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else of the server's: wsgiref.handlers makes such a copy, Mercurial looks for the encoding."""
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("OWN_OF_THE_SERVER", "x")
    script = HEAD + (
        "from wsgiref.handlers import BaseHandler\n"
        "print(BaseHandler.os_environ.get('LANG'), 'OWN_OF_THE_SERVER' in BaseHandler.os_environ)"
    )
    assert run(model, tmp_path, script).text == "C.UTF-8 False\n"


TAKER = HEAD + (
    "import sys, types\nif 'taker' not in sys.modules:\n"
    "    taker = sys.modules['taker'] = types.ModuleType('taker')\n"
    "    taker.stdin, taker.text, taker.stdout = sys.stdin.buffer, sys.stdin, sys.stdout\n"
    "import taker\ntaker.stdout.write(f'{taker.stdin.read(5)!r} {taker.text.readline()!r}')\n"
)
"""Says what a module reads and writes that took the streams when it was imported, as Mercurial does."""


@pytest.mark.parametrize("model", IN_PROCESS)
def test_a_module_that_took_stdin_when_it_was_imported_reads_the_next_body_too(model: str, tmp_path: Path) -> None:
    """And nothing that an earlier run left unread is in front of it."""
    bodies = [b"12345first\n67890" * 9, b"", b"abcdesecond\nfghij" * 9, b"vwxyzthird\n\xff"]
    calls = [Call("POST", body=body) if body else Call() for body in bodies]
    outcomes = run_calls(IN_PROCESS[model], SingleScript(str(write_script(tmp_path / "script.py", TAKER))), *calls)
    assert [outcome.text for outcome in outcomes] == [
        "b'12345' 'first\\n'", "b'' ''", "b'abcde' 'second\\n'", "b'vwxyz' 'third\\n'",
    ]  # fmt: skip


def test_a_module_that_took_the_streams_serves_every_mount_of_its_process(tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", TAKER)

    def work() -> list[str]:
        models = [make(SingleScript(str(path))) for make in IN_PROCESS.values()]
        for model in models:
            model.load()
        return [run_call(model, Call("POST", body=b"12345line")).text for model in models]

    assert run_apart(work) == ["b'12345' 'line'"] * len(IN_PROCESS)


@EVERY_MODEL
def test_c09_a_body_that_nobody_reads_is_no_hindrance(model: str, tmp_path: Path) -> None:
    outcome = run(model, tmp_path, HEAD + "print('x' * 200_000)", Call("POST", body=b"y" * 10_000_000))
    assert len(outcome.body) == 200_001


@EVERY_MODEL
@pytest.mark.parametrize("query", ["-s", "--version", "+-s", "%AD-s", "-d+allow_url_include%3d1"])
def test_c01_b110_the_query_is_no_argument(model: str, query: str, tmp_path: Path) -> None:
    script = HEAD + "import os, sys\nprint(sys.argv == [__file__], os.environ['QUERY_STRING'])"
    assert run(model, tmp_path, script, Call(target="/?" + query)).text == f"True {query}\n"


@EVERY_MODEL
def test_c02_the_environment_is_the_requests_and_a_short_list(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("LC_TIME", "C")
    script = HEAD + "import os, subprocess\nprint(*sorted(os.environ), flush=True)\nsubprocess.run('env', shell=True)"
    fields = [("Proxy", "http://evil/"), ("Authorization", "Basic x"), ("X-Own", "() { :;}; echo x")]
    lines = run(model, tmp_path, script, Call(fields=fields)).text.splitlines()
    assert "SECRET_TOKEN" not in lines[0]
    assert "HTTP_PROXY" not in lines[0]
    assert "HTTP_AUTHORIZATION" not in lines[0]
    assert {"GATEWAY_INTERFACE", "HTTP_X_OWN", "LC_TIME", "PATH", "SCRIPT_FILENAME"} <= set(lines[0].split())
    assert "HTTP_X_OWN=() { :;}; echo x" in lines[1:]  # C04: a child process of the script sees the same
    assert not [line for line in lines[1:] if "s3cret" in line]


@EVERY_MODEL
def test_c15_b107_octets_of_the_path_reach_the_script_unchanged(model: str, tmp_path: Path) -> None:
    script = HEAD + "import os\nprint(os.environb[b'PATH_INFO'])"
    assert run(model, tmp_path, script, Call(target="/\xe9\xc3\xa5")).text == "b'/\\xe9\\xc3\\xa5'\n"


@EVERY_MODEL
def test_c14_b099_the_working_directory_is_the_scripts_folder(model: str, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("found")
    (tmp_path / "beside.py").write_text("NAME = 'beside'")
    script = HEAD + "import beside, sys\nprint(open('./data.txt').read(), beside.NAME, sys.path[0])"
    assert run(model, tmp_path, script).text == f"found beside {tmp_path}\n"


@EVERY_MODEL
def test_a_long_reply_is_streamed_in_order(model: str, tmp_path: Path) -> None:
    outcome = run(model, tmp_path, HEAD + "for n in range(40_000): print(n)")
    assert not outcome.whole
    assert outcome.text == "".join(f"{n}\n" for n in range(40_000))


@EVERY_MODEL
def test_a_local_redirect_is_run_by_the_server(model: str, tmp_path: Path) -> None:
    outcome = run(model, tmp_path, 'print("Location: /other?q=1\\n")')
    assert outcome.redirected == ["/other?q=1"]
    assert outcome.status == ""


@EVERY_MODEL
def test_a_missing_script_is_404(model: str, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD)

    outcomes = run_calls(MODELS[model], SingleScript(str(path)), Call(), Call(), between=path.unlink)
    assert [outcome.status or outcome.code for outcome in outcomes] == ["200 OK", 404]


@pytest.mark.parametrize("model", [*IN_PROCESS, "zygote"])
def test_an_exception_after_the_first_byte_leaves_the_reply_unfinished(model: str, tmp_path: Path) -> None:
    outcome = run(model, tmp_path, HEAD + "print('half', flush=True)\n1/0")
    assert outcome.error == "ScriptError"
    if outcome.body:
        assert outcome.text == "half\n"
        assert not outcome.whole


@pytest.mark.parametrize("model", IN_PROCESS)
def test_a_flush_sends_what_is_there(model: str, tmp_path: Path) -> None:
    outcome = run(model, tmp_path, HEAD + "print('one', flush=True)\nprint('two')")
    if model != "registry-descriptor":
        assert outcome.pieces == [b"one\n", b"two\n"]
    assert outcome.text == "one\ntwo\n"


@pytest.mark.parametrize("model", FORKED)
def test_a_descriptor_mode_body_reaches_child_processes(model: str, tmp_path: Path) -> None:
    script = 'import os\nprint("Content-Type: a/b\\n", flush=True)\nos.system("cat")'
    assert run(model, tmp_path, script, Call("POST", body=b"abc")).body == b"abc"
    assert run("registry-descriptor", tmp_path, script, Call("POST", body=b"abc")).body == b"abc"
    assert run("registry-fresh", tmp_path, script, Call("POST", body=b"abc")).body == b""
