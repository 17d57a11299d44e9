"""Puts a serving process into the state a script expects, and back into its own afterwards.

What has no cheap way to be noticed is compared (a word or a short list each); the rest comes from ``watch``'s notes.
Knows the process, and no request's meaning.
"""

from __future__ import annotations

import os
import sys
import warnings

from gateways.execution.run_environment import RunEnvironment
from gateways.execution.watch import NOTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from gateways.execution.watch import Repairs


class ProcessState:
    """What a script may change of its process; ``enter`` before a run, ``leave`` after it, in the same process."""

    __slots__ = (
        "_argv", "_environment", "_filters", "_folder", "_hook", "_main", "_path", "_path_entries", "_recursion",
        "_showwarning", "_streams", "_umask",
    )  # fmt: skip

    def __init__(self) -> None:
        self._environment = RunEnvironment()
        NOTES.before_child = self._environment.publish
        self._umask = os.umask(0o022)
        os.umask(self._umask)
        self._folder = -1

    def enter(self, variables: dict[str, str], main: ModuleType, script: str, folder: str) -> None:
        """Set environment, working directory, ``sys.argv``, ``sys.path`` and ``__main__`` for a run."""
        notes = NOTES
        if notes.moved or self._folder < 0:
            self._remember_folder()
        self._streams = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)
        self._hook = sys.excepthook
        self._argv = sys.argv
        self._path = path = sys.path
        self._path_entries = path[:]
        self._main = sys.modules["__main__"]
        self._recursion = sys.getrecursionlimit()
        self._filters = warnings.filters[:]
        self._showwarning = warnings.showwarning
        os.chdir(folder)
        notes.before_child = self._environment.publish
        notes.children = notes.moved = notes.opened = notes.redirected = False
        notes.active = True
        sys.argv = [script]
        path.insert(0, folder)
        sys.modules["__main__"] = main
        self._environment.enter(variables)

    def _remember_folder(self) -> None:
        """Hold the worker's own working directory open: ``fchdir`` is half the price of ``getcwd`` and ``chdir``."""
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = os.open(".", os.O_PATH | os.O_DIRECTORY)

    def leave(self) -> None:
        """Put everything back that the run, or ``enter``, changed."""
        notes = NOTES
        notes.active = False
        sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc]
        sys.excepthook = self._hook
        sys.argv = self._argv
        sys.path = path = self._path
        if path != self._path_entries:
            path[:] = self._path_entries
        sys.modules["__main__"] = self._main
        if sys.getrecursionlimit() != self._recursion:
            sys.setrecursionlimit(self._recursion)
        if warnings.filters != self._filters:
            warnings.filters[:] = self._filters  # type: ignore[index]
            warnings._filters_mutated()  # type: ignore[attr-defined]
        warnings.showwarning = self._showwarning
        os.umask(self._umask)
        os.fchdir(self._folder)
        notes.moved = False
        self._environment.leave()
        if notes.repairs:
            repair(notes.repairs)
        if notes.variables:
            notes.variables.clear()
        if notes.exits:
            notes.exits.clear()


def repair(repairs: Repairs) -> None:
    """Undo what was noted, and forget it. Timers first: one must not expire when its handler is gone."""
    for timers in (True, False):
        for what, (function, arguments) in repairs.items():
            if (what[0] == "timer") is timers:
                function(*arguments)
    repairs.clear()


EXECUTORS = (("concurrent.futures.thread", "_shutdown"), ("concurrent.futures.process", "_global_shutdown"))
"""(module, what it sets when it ends its executors, so that no other can be made)."""


def join_threads() -> bool:
    """Wait for the threads that are no daemons, as a Python process does before it ends. True when some of them had to
    be told: those of executors, which may belong to a module that goes on."""
    threading: Any = sys.modules.get("threading")
    if threading is None:
        return False
    told = False
    for name, flag in EXECUTORS:
        module: Any = sys.modules.get(name)
        if module is not None:
            told = told or bool(getattr(module, "_threads_queues", None) or getattr(module, "_threads_wakeups", None))
            module._python_exit()
            setattr(module, flag, False)
    current = threading.current_thread()
    for thread in threading.enumerate():
        if thread is not current and not thread.daemon:
            thread.join()
    return told
