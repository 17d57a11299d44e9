"""Preload: what is imported once, before the workers are forked, and by whom; what a reload and a loss do to it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.script_runs import write_script
from tests.servers import Server, has_ended, serving, wait_until

HEAD = 'print("Content-Type: text/plain\\n")\n'
SHARED = "import os\nPID = os.getpid()\nVERSION = 1\n"
SCRIPT = HEAD + "import os, shared\nprint(os.getpid(), os.getppid(), shared.PID, shared.VERSION)"
SITE = """
[pool.site]
Listen = "127.0.0.1:0"
ProcessManager = "static"
MaxServers = 2
PythonPath = "lib"
Preload = ["shared", "json.tool"]
[[pool.site.Mount]]
Path = "/registry/"
Target = "script.py"
Model = "registry"
[[pool.site.Mount]]
Path = "/zygote/"
Target = "script.py"
Model = "zygote"
[[pool.site.Mount]]
Path = "/wsgi/"
Target = "app.py:application"
Model = "wsgi"
"""
APP = """
import os, shared
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {os.getppid()} {shared.PID} {shared.VERSION}".encode()]
"""


@contextmanager
def serving_site(folder: Path, wanted: tuple[str, ...] = (), tolerated: tuple[str, ...] = ()) -> Iterator[Server]:
    (folder / "lib").mkdir()
    (folder / "lib" / "shared.py").write_text(SHARED)
    (folder / "app.py").write_text(APP)
    write_script(folder / "script.py", SCRIPT)
    config = folder / "site.toml"
    config.write_text(SITE)
    with serving(folder, "--config", str(config), bind=False, wanted=wanted, tolerated=tolerated) as server:
        yield server


def ask(server: Server, model: str) -> list[int]:
    """(its own pid, its parent's, who imported the shared module, its version) of whoever runs ``model``."""
    status, body = server.get(f"/{model}/")
    assert status == 200, server.read_log()
    return [int(word) for word in body.split()]


def test_a_module_is_imported_once_by_neither_supervisor_nor_worker(tmp_path: Path) -> None:
    with serving_site(tmp_path) as server:
        seen = [ask(server, model) for model in ("wsgi", "registry", "zygote") * 4]
        importers = {row[2] for row in seen}
        assert len(importers) == 1
        nursery = importers.pop()
        assert nursery in server.workers(), "the nursery is a child of the supervisor"
        workers = {row[0] for row in seen[0::3]}
        assert nursery not in workers
        assert {row[1] for row in seen[0::3]} == {server.pid}, "so are the workers"
        assert {row[0] for row in seen[1::3]} <= set(server.workers())
    wait_until(lambda: has_ended(nursery), "the nursery's end")


def test_a_worker_that_is_killed_is_forked_again_with_what_was_imported(tmp_path: Path) -> None:
    with serving_site(tmp_path, wanted=("was killed by SIGKILL",)) as server:
        pid, _, nursery, _ = ask(server, "wsgi")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: pid not in server.workers() and len(server.workers()) == 3, "another worker")
        assert {ask(server, "wsgi")[2] for _ in range(4)} == {nursery}


def test_a_nursery_that_is_lost_is_started_again_when_a_worker_is_needed(tmp_path: Path) -> None:
    with serving_site(tmp_path, wanted=("was killed by SIGKILL", "imports what Preload names is gone")) as server:
        pid, _, nursery, _ = ask(server, "wsgi")
        os.kill(nursery, signal.SIGKILL)
        wait_until(lambda: nursery not in server.workers(), "its end")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len({ask(server, "wsgi")[2] for _ in range(4)} - {nursery}) == 1, "a worker of another")


def test_a_reload_imports_anew_and_a_module_that_fails_keeps_the_old_workers(tmp_path: Path) -> None:
    traces = ("RuntimeError|LoadError|Traceback|^ |^The above|^$",)
    wanted = ("pool site cannot preload", r"reload given up, the old workers stay: .*shared.py, line 2\)")
    with serving_site(tmp_path, wanted=wanted, tolerated=traces) as server:
        before, old = ask(server, "wsgi"), set(server.workers())
        shared = tmp_path / "lib" / "shared.py"
        shared.write_text(SHARED.replace("VERSION = 1", "VERSION = 22"))
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("generation 2 of pool site serves")
        wait_until(lambda: not old & set(server.workers()), "the end of the old workers")
        wait_until(lambda: {ask(server, "wsgi")[3] for _ in range(4)} == {22}, "the new code everywhere")
        after = ask(server, "wsgi")
        assert after[2] != before[2]
        wait_until(lambda: has_ended(before[2]), "the old nursery's end")
        shared.write_text("# no\nraise RuntimeError('broken')")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("reload given up")
        assert ask(server, "wsgi")[2:] == after[2:]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "shared cannot be imported: ModuleNotFoundError"),
        ("x = 1\n1/0\n", r"shared cannot be imported: ZeroDivisionError: division by zero \(.*lib/shared.py, line 2\)"),
        ("raise SystemExit('no')", r"shared cannot be imported: SystemExit: no"),
        ("import os\nos._exit(3)", "it ended while it imported"),
    ],
    ids=["absent", "raises", "exits", "ends-its-process"],
)
def test_a_pool_whose_module_cannot_be_imported_does_not_start(text: str | None, said: str, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    if text is not None:
        (tmp_path / "lib" / "shared.py").write_text(text)
    (tmp_path / "app.py").write_text(APP)
    write_script(tmp_path / "script.py", SCRIPT)
    (tmp_path / "site.toml").write_text(SITE)
    command = [sys.executable, "-m", "gateways", "serve", "--config", str(tmp_path / "site.toml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1, done
    assert re.search(f"pool site is given up: pool site cannot preload: {said}", done.stderr), done.stderr


def test_the_supervisor_leaves_nobody_behind_when_it_is_killed(tmp_path: Path) -> None:
    with serving_site(tmp_path) as server:
        zygotes = {ask(server, "zygote")[1] for _ in range(6)}
        family = [*server.workers(), *zygotes]
        assert len(server.workers()) == 3
        server.process.kill()
        wait_until(lambda: all(map(has_ended, family)), "everybody's end")
