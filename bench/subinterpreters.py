"""``python bench/subinterpreters.py``: what a sub-interpreter for each request would be, by this Python.

Runs small scripts, each twice in a sub-interpreter of its own, in a forked process: how they end, what they change of
the process, and what making and ending an interpreter costs. Stands alone, so that any Python from 3.8 on can run it;
``docs/subinterpreters.md`` says what came of it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

NAMES = ("_interpreters", "_xxsubinterpreters")
SCRIPTS = {
    "prints": "print('hello')",
    "exits": "import sys; sys.exit(3)",
    "atexit": "import atexit; atexit.register(len, '')",
    "changes folder": "import os; os.chdir('/')",
    "changes environment": "import os; os.environ['LEAK'] = '1'",
    "handles a signal": "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "forks": "import os\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)",
    "runs a program": "import subprocess; subprocess.run(['true'])",
    "starts a thread": "import threading; t = threading.Thread(target=len, args=('',)); t.start(); t.join()",
    "starts a daemon": "import threading; threading.Thread(target=len, args=('',), daemon=True).start()",
    "datetime": "import datetime; datetime.datetime.strptime('2005', '%Y')",
    "decimal": "import decimal; decimal.Decimal('1.1') * 2",
    "sqlite3": "import sqlite3; sqlite3.connect(':memory:').execute('select 1')",
    "json, re, logging": "import json, re, logging, email.message, urllib.request",
    "numpy": "import numpy",
}
IMPORTS = "import json, re, datetime, logging, urllib.parse, os, sys, html, time"
OUTSIDE: dict[str, Callable[[], str]] = {
    "changes folder": lambda: f"the process is in {os.getcwd()} now",
    "changes environment": lambda: "its child processes see " + (os.popen("echo $LEAK").read().strip() or "nothing"),
}


def find_interpreters() -> Any:
    """Return this Python's own module of sub-interpreters; end when it has none."""
    for name in NAMES:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise SystemExit(f"Python {sys.version.split()[0]} has no sub-interpreters")


def run_once(interpreters: Any, code: str) -> str:
    """Return how one script ends in an interpreter of its own."""
    made = interpreters.create()
    try:
        said = interpreters.run_string(made, code)
        return "fine" if said is None else str(said.formatted).splitlines()[-1]
    except Exception as error:  # noqa: BLE001 - however it ends is the answer
        return str(error).replace("<class '", "").replace("'>", "")
    finally:
        interpreters.destroy(made)


def run_apart(interpreters: Any, name: str, code: str) -> None:
    """Run a script twice in a forked process and print how it ended."""
    pid = os.fork()
    if not pid:
        try:
            ends = [run_once(interpreters, code) for _ in range(2)]
            outside = OUTSIDE.get(name, str)()
            print(
                f"{name:20} {' / then: '.join(dict.fromkeys(ends))}" + (f"; {outside}" if outside else ""), flush=True
            )
        finally:
            os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        print(f"{name:20} THE PROCESS DIED of signal {os.WTERMSIG(status)}", flush=True)


def read_resident() -> int:
    """Return this process's resident KiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def measure(interpreters: Any, code: str, count: int) -> tuple[float, float]:
    """Return (milliseconds, KiB that stay) for making an interpreter, running code in it, and ending it."""
    before, begin = read_resident(), time.process_time()
    for _ in range(count):
        made = interpreters.create()
        interpreters.run_string(made, code)
        interpreters.destroy(made)
    return (time.process_time() - begin) / count * 1e3, (read_resident() - before) / count


def main() -> None:
    """Print everything."""
    interpreters = find_interpreters()
    print(f"Python {sys.version.split()[0]}, {interpreters.__name__}", flush=True)
    for name, code in SCRIPTS.items():
        run_apart(interpreters, name, code)
    for what, code in (("an empty script", "pass"), ("nine usual imports", IMPORTS)):
        spent, stays = measure(interpreters, code, 20)
        print(f"an interpreter for {what}: {spent:.1f} ms of CPU, {stays:.0f} KiB stay", flush=True)


if __name__ == "__main__":
    main()
