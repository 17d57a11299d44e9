"""Puts a serving process into the state a script expects, and back into its own afterwards.

What has no cheap way to be noticed is compared (a word or a short list each); the rest comes from ``watch``'s notes.
Knows the process, and no request's meaning.
"""

from __future__ import annotations

import os
import sys

from gateways.execution.watch import NOTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


class RunEnvironment:
    """``os.environ`` for one run: the same object, with other contents.

    Between runs nothing is copied: the two mappings that ``os.environ`` and ``os.environb`` share are swapped. The C
    library's own environment follows only when a child process is about to be made, because one ``putenv`` for each
    variable costs more than the rest of the run, and glibc never frees the values.
    """

    __slots__ = ("_mine", "_worker")

    def __init__(self) -> None:
        self._worker: dict[bytes, bytes] = {}
        self._mine: dict[bytes, bytes] = {}

    def enter(self, variables: dict[bytes, bytes]) -> None:
        """Show ``variables`` to the script."""
        self._worker = _get_data()
        self._mine = variables
        _set_data(variables)

    def publish(self) -> None:
        """Give the run's environment to the C library, which a child process inherits."""
        worker, mine = self._worker, self._mine
        for name in [name for name in worker if name not in mine and name not in NOTES.variables]:
            os.unsetenv(name)
        for name, value in mine.items():
            os.putenv(name, value)

    def leave(self) -> None:
        """Show the worker's own environment again, to Python and, where it was changed, to the C library."""
        worker = self._worker
        _set_data(worker)
        for name in NOTES.variables:
            if name in worker:
                os.putenv(name, worker[name])
            else:
                os.unsetenv(name)


def _get_data() -> dict[bytes, bytes]:
    data: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]
    return data


def _set_data(data: dict[bytes, bytes]) -> None:
    os.environ._data = data  # type: ignore[attr-defined]
    os.environb._data = data  # type: ignore[attr-defined]


class ProcessState:
    """What a script may change of its process; ``enter`` before a run, ``leave`` after it, in the same process."""

    __slots__ = (
        "_argv",
        "_cwd",
        "_environment",
        "_filters",
        "_hook",
        "_main",
        "_path",
        "_path_entries",
        "_recursion",
        "_showwarning",
        "_streams",
        "_umask",
    )  # fmt: skip

    def __init__(self) -> None:
        self._environment = RunEnvironment()
        self._umask = os.umask(0o022)
        os.umask(self._umask)
        self._cwd = ""

    def enter(self, variables: dict[bytes, bytes], main: ModuleType, script: str, folder: str) -> None:
        """Set environment, working directory, ``sys.argv``, ``sys.path`` and ``__main__`` for a run."""
        import warnings

        notes = NOTES
        self._cwd = os.getcwd()
        self._streams = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)
        self._hook = sys.excepthook
        self._argv = sys.argv
        self._path = sys.path
        self._path_entries = sys.path[:]
        self._main = sys.modules["__main__"]
        self._recursion = sys.getrecursionlimit()
        self._filters = warnings.filters[:]
        self._showwarning = warnings.showwarning
        notes.before_child = self._environment.publish
        notes.children = notes.moved = False
        notes.active = True
        sys.argv = [script]
        sys.path.insert(0, folder)
        sys.modules["__main__"] = main
        self._environment.enter(variables)
        if folder != self._cwd:
            os.chdir(folder)

    def leave(self) -> None:
        """Put everything back that the run, or ``enter``, changed."""
        import warnings

        notes = NOTES
        notes.active = False
        notes.before_child = None
        sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc]
        sys.excepthook = self._hook
        sys.argv = self._argv
        sys.path = self._path
        if sys.path != self._path_entries:
            sys.path[:] = self._path_entries
        sys.modules["__main__"] = self._main
        if sys.getrecursionlimit() != self._recursion:
            sys.setrecursionlimit(self._recursion)
        if warnings.filters != self._filters:
            warnings.filters[:] = self._filters  # type: ignore[index]
            warnings._filters_mutated()  # type: ignore[attr-defined]
        warnings.showwarning = self._showwarning
        os.umask(self._umask)
        os.chdir(self._cwd)
        self._environment.leave()
        if notes.repairs:
            for function, arguments in notes.repairs.values():
                function(*arguments)
        notes.variables.clear()
        notes.repairs.clear()
        notes.exits.clear()


def count_threads() -> int:
    """Return how many threads beside the calling one Python has started in this process."""
    from _thread import _count

    count: int = _count()
    return count


def join_threads() -> None:
    """Wait for the threads that are no daemons, as a Python process does before it ends."""
    threading: Any = sys.modules.get("threading")
    if threading is None:
        return
    current = threading.current_thread()
    for thread in threading.enumerate():
        if thread is not current and not thread.daemon:
            thread.join()
