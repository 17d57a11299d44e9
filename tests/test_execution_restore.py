"""perlrun and registry: what a script does to its process is undone, whatever it is (C17)."""

from __future__ import annotations

import locale
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateways.execution.sources import ScriptFolder, SingleScript
from tests.script_runs import (
    IN_PROCESS,
    MODELS,
    Call,
    Outcome,
    make_script_model,
    run_apart,
    run_call,
    run_calls,
    write_script,
)

HEAD = 'print("Content-Type: text/plain\\n")\n'
EVERY_MODEL = pytest.mark.parametrize("model", IN_PROCESS)


def see_c_variable(name: str) -> str | None:
    """A variable as the C library has it, which is what a child process would inherit."""
    import ctypes

    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    value = getenv(name.encode())
    return value.decode() if value is not None else None


SEEN: dict[str, Callable[[], Any]] = {
    "environment": lambda: dict(os.environ),
    "environment-bytes": lambda: dict(os.environb),
    "environment-of-c": lambda: [see_c_variable(name) for name in ("PATH", "HOME", "OWN", "SCRIPT_NAME", "TZ")],
    "environment-object": lambda: id(os.environ),
    "folder": os.getcwd,
    "umask": lambda: _see_umask(),
    "arguments": lambda: list(sys.argv),
    "path": lambda: (id(sys.path), list(sys.path)),
    "handlers": lambda: [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGALRM, signal.SIGINT, signal.SIGUSR1)],
    "timers": lambda: [signal.getitimer(n)[0] > 0 for n in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL)],
    "mask": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()),
    "wakeup": lambda: _see_wakeup(),
    "warnings": lambda: (list(warnings.filters), warnings.showwarning),
    "locale": lambda: locale.setlocale(locale.LC_ALL),
    "recursion": sys.getrecursionlimit,
    "hook": lambda: sys.excepthook,
    "streams": lambda: (id(sys.stdin), id(sys.stdout), id(sys.stderr), id(sys.__stdout__)),
    "main": lambda: id(sys.modules["__main__"]),
    "descriptors": lambda: sorted(os.listdir("/proc/self/fd")),
    "standard descriptors": lambda: [os.readlink(f"/proc/self/fd/{number}") for number in range(3)],
}


def _see_umask() -> int:
    mask = os.umask(0o22)
    os.umask(mask)
    return mask


def _see_wakeup() -> int:
    descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor)
    return descriptor


CHANGES = [
    ("environment", "import os\nos.environ['OWN'] = '1'\nos.environ.pop('PATH', None)"),
    ("environment-clear", "import os\nos.environ.clear()"),
    ("environment-replaced", "import os\nos.environ = {}"),
    ("environment-putenv", "import os\nos.putenv('OWN', '1')\nos.unsetenv('PATH')"),
    ("environment-child", "import subprocess\nsubprocess.run(['true'])"),
    ("environment-timezone", "import os, time\nos.environ['TZ'] = 'UTC+3'\ntime.tzset()"),
    ("folder", "import os\nos.chdir('/')"),
    ("folder-by-descriptor", "import os\nd = os.open('/', os.O_RDONLY)\nos.fchdir(d)\nos.close(d)"),
    ("umask", "import os\nos.umask(0)"),
    ("arguments", "import sys\nsys.argv.append('x')\nsys.argv = []"),
    ("path", "import sys\nsys.path.append('/x')"),
    ("path-replaced", "import sys\nsys.path = []"),
    ("handler", "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)"),
    ("handler-of-another", "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)"),
    ("handler-twice", "import signal\nfor _ in '12': signal.signal(signal.SIGTERM, lambda *_: None)"),
    ("timers", "import signal\nsignal.alarm(50)\nsignal.setitimer(signal.ITIMER_VIRTUAL, 50)"),
    ("mask", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})"),
    ("wakeup", "import signal, asyncio\nsignal.set_wakeup_fd(-1)\nasyncio.run(asyncio.sleep(0))"),
    ("warnings", "import warnings\nwarnings.simplefilter('error')\nwarnings.showwarning = print"),
    ("locale", "import locale\nlocale.setlocale(locale.LC_ALL, 'C')\nlocale.setlocale(locale.LC_NUMERIC, 'C.UTF-8')"),
    ("recursion", "import sys\nsys.setrecursionlimit(5000)"),
    ("hook", "import sys\nsys.excepthook = print"),
    ("streams", "import sys\nsys.stdout = sys.stderr\nsys.stdin = None"),
    ("streams-closed", "import sys\nsys.stdout.flush()\nsys.stdin.close()\nsys.stderr.close()\nsys.stdout.close()"),
    ("streams-detached", "import sys\nprint(flush=True)\nsys.stdin.detach()\nsys.stderr.detach()\nsys.stdout.detach()"),
    ("stdout-wrapped", "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer)\nprint('x')"),
    ("stdin-wrapped", "import io, sys\nsys.stdin = io.TextIOWrapper(sys.stdin.buffer)\nsys.stdin.read()"),
    ("stderr-wrapped", "import io, sys\nsys.stderr = io.TextIOWrapper(sys.stderr.buffer, line_buffering=True)"),
    ("stdout-opened-anew", "import sys\nsys.stdout = open(sys.stdout.fileno(), 'w', buffering=1)\nprint('x')"),
    ("descriptor-1-opened", "out = open(1, 'w')\nout.write('x')"),
    ("descriptor-0-opened", "open(0).read()"),
    ("descriptor-1-closed", "import os, sys\nsys.stdout.flush()\nos.close(1)"),
    ("descriptors-0-and-2-closed", "import os\nos.close(0)\nos.close(2)"),
    ("errors-to-the-browser", "import os\nos.dup2(1, 2)"),
    ("descriptor-2-to-a-file", "import os\nos.close(2)\nos.open('/dev/null', os.O_WRONLY)"),
    ("main", "import sys\nsys.modules['__main__'] = sys\ndel sys.modules['__main__']"),
    ("exit", "raise SystemExit(3)"),
    ("exception", "1/0"),
]  # fmt: skip


def see() -> dict[str, Any]:
    return {name: look() for name, look in SEEN.items()}


@EVERY_MODEL
@pytest.mark.parametrize("change", [row[1] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_c17_a_change_is_undone_and_the_next_script_runs_well(model: str, change: str, tmp_path: Path) -> None:
    """The first run sets up what a process sets up once; the second makes the change; the third must not see it."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    write_script(folder / "fine.py", HEAD + "import locale, signal, warnings\nprint('fine')")
    write_script(folder / "changes.py", HEAD + change)

    def work() -> tuple[list[Outcome], dict[str, Any], dict[str, Any]]:
        own = signal.signal(signal.SIGTERM, lambda *_: None)
        assert own is not None
        _reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        running = IN_PROCESS[model](ScriptFolder(str(folder)))
        running.load()
        run_call(running, Call(target="/fine.py"))
        before = see()
        first = run_call(running, Call(target="/changes.py"))
        after = see()
        return [first, run_call(running, Call(target="/fine.py"))], before, after

    outcomes, before, after = run_apart(lambda: _comparable(work()))
    assert before == after
    assert outcomes[1].text == "fine\n"
    assert outcomes[1].log == ""


def _comparable(result: tuple[list[Outcome], dict[str, Any], dict[str, Any]]) -> Any:
    """Functions do not travel between processes: put their identities in their place."""
    outcomes, before, after = result
    return outcomes, {k: repr(v) for k, v in before.items()}, {k: repr(v) for k, v in after.items()}


@EVERY_MODEL
def test_a_wrapper_of_stdout_that_lives_on_in_a_namespace_ends_nobodys_output(model: str, tmp_path: Path) -> None:
    script = "import io, sys\nout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\n" + HEAD + "print('fine')"
    path = write_script(tmp_path / "script.py", script)
    outcomes = run_calls(IN_PROCESS[model], SingleScript(str(path)), Call(), Call(), Call())
    assert [(outcome.text, outcome.log) for outcome in outcomes] == [("fine\n", "")] * 3


@EVERY_MODEL
def test_an_executor_that_nobody_ended_is_ended_and_the_worker_replaced(model: str, tmp_path: Path) -> None:
    script = HEAD + "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
    path = write_script(tmp_path / "script.py", script + "print(*pool.map(str, [1, 2]))")
    outcomes = run_calls(IN_PROCESS[model], SingleScript(str(path)), Call(), Call())
    assert [(outcome.text, outcome.recycling) for outcome in outcomes] == [("1 2\n", True)] * 2
    assert "script.py: left an executor running" in outcomes[0].log


LEAK = HEAD + (
    "import os\nif os.environ['QUERY_STRING'] == 'admin':\n    allowed = True\nprint(globals().get('allowed', False))\n"
)


@pytest.mark.parametrize(
    ("model", "seen"),
    [("perlrun", "False"), ("registry-fresh", "False"), ("registry-shared", "True")],
)
def test_the_lesson_of_registry_a_global_outlives_its_user_only_in_a_shared_namespace(
    model: str, seen: str, tmp_path: Path
) -> None:
    path = write_script(tmp_path / "script.py", LEAK)
    outcomes = run_calls(IN_PROCESS[model], SingleScript(str(path)), Call(target="/?admin"), Call(target="/?guest"))
    assert [outcome.text for outcome in outcomes] == ["True\n", f"{seen}\n"]


def rewrite(path: Path, text: str, seconds: int) -> Callable[[], None]:
    """Write a script anew, with a time of change so many seconds from now."""

    def write() -> None:
        write_script(path, text)
        now = os.stat(path).st_mtime_ns
        os.utime(path, ns=(now, now + seconds * 10**9))

    return write


@pytest.mark.parametrize("seconds", [-5, 5], ids=["older", "newer"])
@pytest.mark.parametrize(
    ("model", "stat", "seen"),
    [("perlrun", True, "two"), ("registry", True, "two"), ("registry", False, "one")],
    ids=["perlrun", "registry", "registry-bb"],
)
def test_a_changed_script_is_compiled_again(model: str, stat: bool, seen: str, seconds: int, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD + "print('one')")
    outcomes = run_calls(
        lambda source: make_script_model(source, model, stat=stat), SingleScript(str(path)), Call(), Call(),
        between=rewrite(path, HEAD + "print('two')", seconds),
    )  # fmt: skip
    assert [outcome.text for outcome in outcomes] == ["one\n", f"{seen}\n"]


@pytest.mark.parametrize(("model", "seen"), [("perlrun", "two"), ("registry-fresh", "one")])
def test_modules_of_the_scripts_folder_are_dropped_by_perlrun_only(model: str, seen: str, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD + "import helper, package.inner\nprint(helper.NAME)")
    helper = write_script(tmp_path / "helper.py", "NAME = 'one'")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "inner.py").write_text("")
    outcomes = run_calls(
        IN_PROCESS[model], SingleScript(str(path)), Call(), Call(), between=rewrite(helper, "NAME = 'two'", 5)
    )
    assert [outcome.text for outcome in outcomes] == ["one\n", f"{seen}\n"]


def test_perlrun_keeps_a_package_that_has_an_extension_module(tmp_path: Path) -> None:
    import _struct  # an extension module, or built in: then there is nothing to copy

    file = getattr(_struct, "__file__", None)
    if file is None:
        pytest.skip("this interpreter has _struct built in")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("COUNT = []")
    (package / ("_struct" + file[file.index(".", file.rindex("/")) :])).symlink_to(file)
    script = HEAD + "import package, package._struct\npackage.COUNT.append(1)\nprint(len(package.COUNT))"
    path = write_script(tmp_path / "script.py", script)
    outcomes = run_calls(IN_PROCESS["perlrun"], SingleScript(str(path)), Call(), Call())
    assert [outcome.text for outcome in outcomes] == ["1\n", "2\n"]


@EVERY_MODEL
def test_what_an_imported_module_leaves_for_the_end_of_the_process_stays_there(model: str, tmp_path: Path) -> None:
    script = HEAD + (
        "import logging, tempfile, weakref\n"
        "class A: pass\na = A()\nweakref.finalize(a, print, 'finalized')\ndel a\n"
        "folder = tempfile.TemporaryDirectory(); folder.cleanup()"
    )
    path = write_script(tmp_path / "script.py", script)
    outcomes = run_calls(IN_PROCESS[model], SingleScript(str(path)), Call(), Call())
    assert [outcome.text for outcome in outcomes] == ["finalized\n"] * 2


@EVERY_MODEL
def test_exit_functions_do_not_pile_up(model: str, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD + "import atexit\natexit.register(print, 'bye')\n1/0")
    fine = HEAD + "import atexit\natexit.register(print, 'bye')"
    outcomes = run_calls(IN_PROCESS[model], SingleScript(str(path)), Call(), Call(), between=rewrite(path, fine, 5))
    assert outcomes[0].error == "ScriptError"
    assert outcomes[1].text == "bye\n"


@EVERY_MODEL
def test_a_thread_left_behind_has_the_worker_replaced_and_what_it_has_accepted_run_elsewhere(
    model: str, tmp_path: Path
) -> None:
    thread = "import threading\nthreading.Thread(target=threading.Event().wait, args=(60,), daemon=True).start()\n"
    script = HEAD + "import os\nif os.environ['QUERY_STRING']:\n    exec(" + repr(thread) + ")\nprint(os.getpid())"
    path = write_script(tmp_path / "script.py", script)
    calls = (Call(target="/?thread"), Call(), Call())
    first, *others = run_calls(IN_PROCESS[model], SingleScript(str(path)), *calls)
    assert (first.status, first.recycling) == ("200 OK", True)
    assert "script.py: left a thread running" in first.log
    assert [(outcome.status, outcome.log) for outcome in others] == [("200 OK", "")] * 2
    assert len({first.text, *(outcome.text for outcome in others)}) == 3, "each in a process of its own"


@EVERY_MODEL
def test_a_process_with_threads_of_others_runs_no_script(model: str, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD)

    def work() -> Outcome:
        running = IN_PROCESS[model](SingleScript(str(path)))
        running.load()
        threading.Thread(target=threading.Event().wait, args=(60,), daemon=True).start()
        return run_call(running, Call())

    outcome = run_apart(work)
    assert (outcome.error, outcome.code) == ("ScriptError", 500)
    assert "more than one thread" in outcome.message


@EVERY_MODEL
def test_a_child_that_writes_late_reaches_no_other_reply(model: str, tmp_path: Path) -> None:
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    done = tmp_path / "done"
    script = HEAD + (
        "import os, subprocess\n"
        f"if os.environ['QUERY_STRING'] == 'first':\n"
        f"    subprocess.Popen(['sh', '-c', 'read x < {fifo}; echo late; : > {done}'])\n"
        f"else:\n    open('{fifo}', 'w').write('go\\n')\n    while not os.path.exists('{done}'): pass\n"
    )
    path = write_script(tmp_path / "script.py", script)
    first, second = run_calls(
        IN_PROCESS[model], SingleScript(str(path)), Call(target="/?first"), Call(target="/?second")
    )
    assert (first.text, second.text) == ("", "")


@EVERY_MODEL
def test_os_exec_would_take_the_worker_with_it_and_is_refused(model: str, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", "import os\nos.execv('/bin/echo', ['echo', 'x'])")
    outcome = run_calls(IN_PROCESS[model], SingleScript(str(path)))[0]
    assert outcome.code == 500
    assert "cgi or the zygote model" in outcome.log


@EVERY_MODEL
def test_a_forked_child_may_exec(model: str, tmp_path: Path) -> None:
    script = (
        "import os\nprint('Content-Type: a/b\\n', flush=True)\npid = os.fork()\n"
        "if not pid:\n    os.execvp('echo', ['echo', 'from exec'])\nos.waitpid(pid, 0)"
    )
    path = write_script(tmp_path / "script.py", script)
    assert run_calls(IN_PROCESS[model], SingleScript(str(path)))[0].text == "from exec\n"


@EVERY_MODEL
def test_what_is_printed_in_vain_reaches_no_other_reply(model: str, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", "import sys\nsys.stdout.write('half a page')\n1/0")
    outcomes = run_calls(
        IN_PROCESS[model], SingleScript(str(path)), Call(), Call(), between=rewrite(path, HEAD + "print('whole')", 5)
    )
    assert outcomes[1].text == "whole\n"


MAPPING = r"""
import os
os.environ['A'] = '\xe9'; os.environb[b'B'] = b'\xff'
print(ascii(os.environ['A']), os.environb[b'A'], ascii(os.environ['B']), os.getenv('NONE', 'x'))
print('A' in os.environ, 'NONE' in os.environ, b'A' in os.environb, len(os.environ) == len(os.environb))
print(os.environ.pop('A') == '\xe9', os.environ.setdefault('C', '1'), dict(os.environ) == os.environ.copy())
for bad in (lambda: os.environ[1], lambda: os.environ['NONE'], lambda: os.environ.get(1), lambda: os.environ[b'A'],
            lambda: os.environ.get(b'NONE'),
            lambda: os.environ.__setitem__('a', 1), lambda: os.environ.__delitem__('NONE'), lambda: os.environb['x']):
    try: bad()
    except Exception as error: print(type(error).__name__, end=" ", flush=True)
os.system('echo $C')
"""
MAPPED = r"""'\xe9' b'\xc3\xa9' '\udcff' x
True False True True
True 1 True
TypeError KeyError TypeError TypeError TypeError TypeError KeyError TypeError 1
"""


@EVERY_MODEL
def test_what_others_print_between_two_runs_reaches_no_reply(
    model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write_script(tmp_path / "script.py", HEAD + "print('mine')")
    outcomes = run_calls(
        IN_PROCESS[model], SingleScript(str(path)), Call(), Call(), between=lambda: os.write(1, b"another's")
    )
    assert [outcome.text for outcome in outcomes] == ["mine\n"] * 2
    assert "another's" in capfd.readouterr().err


@EVERY_MODEL
def test_the_variables_are_the_mapping_they_always_were(model: str, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD + MAPPING)
    assert run_calls(IN_PROCESS[model], SingleScript(str(path)))[0].text == MAPPED


def test_the_mapping_of_a_real_process_says_the_same(tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD + MAPPING)
    assert run_calls(MODELS["cgi"], SingleScript(str(path)))[0].text == MAPPED
