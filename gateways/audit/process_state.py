"""What belongs to the whole process: each kind of it read as names and short texts.

What it reads it has imported before the application runs, so that a difference is the application's doing. Nothing is
changed, except that ``random`` is seeded anew by ``Seeds``.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import contextvars
import csv
import decimal
import gc
import gettext
import hashlib
import locale
import logging
import os
import random
import resource
import signal
import socket
import sys
import threading
import time
import tracemalloc
import types
import warnings
from collections.abc import Callable
from typing import Any

Names = dict[str, str]
_CALLABLES = (types.FunctionType, types.BuiltinFunctionType, type)
_UNWATCHED = frozenset({"__main__", "builtins"})
_HOOKS = ("excepthook", "unraisablehook", "displayhook", "breakpointhook")
_HOOK_NAMES = frozenset({*(f"sys.{name}" for name in _HOOKS), "threading.excepthook", "warnings.showwarning"})


def describe_function(value: Any) -> str:
    """Return which function or object it is: where it was written if it is Python's, and its address."""
    code = getattr(value, "__code__", None)
    name = getattr(value, "__qualname__", type(value).__name__)
    where = f" of {code.co_filename}:{code.co_firstlineno}" if isinstance(code, types.CodeType) else ""
    return f"{name}{where} ({id(value):x})"


def read_environment() -> Names:
    return dict(os.environ)


def read_folder() -> Names:
    try:
        return {"the working directory": os.getcwd()}
    except OSError:
        return {"the working directory": "(removed)"}


def read_umask() -> Names:
    mask = os.umask(0o077)
    os.umask(mask)
    return {"umask": f"{mask:03o}"}


def read_argv() -> Names:
    return {"sys.argv": repr(sys.argv)}


def read_path() -> Names:
    return {"sys.path": repr(sys.path)}


def read_modules() -> Names:
    return {name: f"{id(module):x}" for name, module in list(sys.modules.items())}


def read_signals() -> Names:
    handlers = {}
    for number in range(1, signal.NSIG):
        try:
            handler = signal.getsignal(number)
        except ValueError:
            continue
        name = signal.Signals(number).name if number in signal.valid_signals() and number < 32 else str(number)
        plain = handler in (signal.SIG_DFL, signal.SIG_IGN, None)
        handlers[name] = str(handler) if plain else describe_function(handler)
    return handlers


def read_mask() -> Names:
    return {"the signal mask": repr(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))))}


def read_timers() -> Names:
    timers = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
    return {name: "runs" if any(signal.getitimer(getattr(signal, name))) else "" for name in timers}


def read_exits() -> Names:
    return {"functions for the end of the process": str(atexit._ncallbacks())}


def read_threads() -> Names:
    names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    return {"threads": str(max(_thread._count(), len(names)))}


def read_children() -> Names:
    children: list[str] = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children", "rb") as file:
                children += file.read().decode().split()
        except OSError:
            continue
    return {"child processes": str(len(children))}


def read_descriptors() -> Names:
    found = {}
    folder = read_folder()["the working directory"]
    for name in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the one that listed them
            continue
        if link != folder:  # held open by the models of scripts
            found[name] = link
    return found


def read_locale() -> Names:
    return {"the locale": locale.setlocale(locale.LC_ALL)}


def read_zone() -> Names:
    return {"the time zone": repr((time.tzname, time.timezone))}


def read_warnings() -> Names:
    shown = warnings.showwarning
    return {
        "warnings.filters": f"{len(warnings.filters)} filters, {hash(tuple(map(repr, warnings.filters))):x}",
        "warnings.showwarning": describe_function(shown),
    }


def read_logging() -> Names:
    found = {
        "logging.disable": str(logging.root.manager.disable),
        "logging.raiseExceptions": str(logging.raiseExceptions),
        "the class of loggers": logging.getLoggerClass().__qualname__,
    }
    for logger in (logging.root, *list(logging.root.manager.loggerDict.values())):
        if isinstance(logger, logging.Logger) and (logger.handlers or logger.filters or logger is logging.root):
            kinds = ", ".join(type(handler).__name__ for handler in logger.handlers)
            found[f"logger {logger.name}"] = f"{len(logger.handlers)} handlers: {kinds}; {len(logger.filters)} filters"
    found["level of the root logger"] = logging.getLevelName(logging.root.level)
    return found


def read_interpreter() -> Names:
    return {
        "the recursion limit": str(sys.getrecursionlimit()),
        "the switch interval": str(sys.getswitchinterval()),
        "the limit on digits": str(sys.get_int_max_str_digits()),
        "sys.dont_write_bytecode": str(sys.dont_write_bytecode),
        "sys.tracebacklimit": str(getattr(sys, "tracebacklimit", None)),
        "tracemalloc": str(tracemalloc.is_tracing()),
    }


def read_decimal() -> Names:
    context = decimal.getcontext()
    names = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
    traps = ", ".join(sorted(trap.__name__ for trap, on in context.traps.items() if on))
    return {"the decimal context": ", ".join(f"{name} {getattr(context, name)}" for name in names) + f", traps {traps}"}


def read_libraries() -> Names:
    return {
        "socket.setdefaulttimeout": str(socket.getdefaulttimeout()),
        "csv.field_size_limit": str(csv.field_size_limit()),
        "csv dialects": repr(sorted(csv.list_dialects())),
        "gettext.textdomain": str(gettext.textdomain()),
    }


def read_collector() -> Names:
    return {
        "gc.isenabled": str(gc.isenabled()),
        "gc.get_threshold": str(gc.get_threshold()),
        "gc.get_debug": str(gc.get_debug()),
        "gc.callbacks": str(len(gc.callbacks)),
    }


def read_streams() -> Names:
    names = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")
    found = {}
    for name in names:
        stream = getattr(sys, name, None)
        closed = "closed" if getattr(stream, "closed", False) else "open"
        found[f"sys.{name}"] = f"{type(stream).__name__} {id(stream):x} {closed}"
    return found


def read_hooks() -> Names:
    found = {f"sys.{name}": describe_function(getattr(sys, name)) for name in _HOOKS}
    found["threading.excepthook"] = describe_function(threading.excepthook)
    found["sys.settrace"] = describe_function(sys.gettrace())
    found["sys.setprofile"] = describe_function(sys.getprofile())
    return found


def read_import_system() -> Names:
    return {
        "sys.meta_path": repr([f"{type(finder).__name__} {id(finder):x}" for finder in sys.meta_path]),
        "sys.path_hooks": repr([describe_function(hook) for hook in sys.path_hooks]),
    }


def read_builtins() -> Names:
    return {name: f"{id(value):x}" for name, value in vars(builtins).items()}


def read_library_functions() -> Names:
    """Return functions and classes of the standard library, by address: who replaces one replaces it for everybody."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in sys.stdlib_module_names and name not in _UNWATCHED and module is not None:
            for attribute, value in list(vars(module).items()):
                if type(value) in _CALLABLES and f"{name}.{attribute}" not in _HOOK_NAMES:
                    found[f"{name}.{attribute}"] = f"{id(value):x}"
    return found


def read_context() -> Names:
    """Return context variables; the decimal context is a kind of its own.

    One named after a loaded module is that library's own storage (asgiref's, in Django): what is put in it shows in
    the answers.
    """
    return {
        variable.name: f"{type(value).__name__} {id(value):x}"
        for variable, value in contextvars.copy_context().items()
        if variable.name != "decimal_context" and variable.name not in sys.modules
    }


def read_limits() -> Names:
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    found = {name: str(resource.getrlimit(getattr(resource, name))) for name in names}
    found["nice"] = str(os.getpriority(os.PRIO_PROCESS, 0))
    found["user and groups"] = str((os.getresuid(), os.getresgid(), os.getgroups()))
    return found


READERS: tuple[tuple[str, Callable[[], Names]], ...] = (
    ("environment", read_environment), ("working directory", read_folder), ("umask", read_umask),
    ("arguments", read_argv), ("module path", read_path), ("loaded modules", read_modules),
    ("signal handler", read_signals), ("signal mask", read_mask), ("timer", read_timers), ("exit function", read_exits),
    ("thread", read_threads), ("child process", read_children), ("descriptor", read_descriptors),
    ("locale", read_locale), ("time zone", read_zone), ("warnings", read_warnings), ("logging", read_logging),
    ("interpreter setting", read_interpreter), ("decimal context", read_decimal),
    ("library setting", read_libraries), ("garbage collector", read_collector), ("standard stream", read_streams),
    ("hook", read_hooks), ("import system", read_import_system), ("builtins", read_builtins),
    ("replaced function", read_library_functions), ("context variable", read_context), ("process limit", read_limits),
)  # fmt: skip
"""Kind -> what reads it."""


def read_process(files: str) -> dict[tuple[str, str], tuple[str, int]]:
    """Return (kind, name) -> (text, 0) of everything above. ``files``: the folder of temporary files."""
    state = {(kind, name): (text, 0) for kind, read in READERS for name, text in read().items()}
    for key, (text, _) in state.items():
        if key[0] == "descriptor" and text.startswith(files):
            state[key] = ("a temporary file", 0)
    return state


class Seeds:
    """Notices who seeds ``random``: after a request it is in a state that it was in after an earlier one."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def scatter(self) -> None:
        """Seed it from the system, so that no two requests begin alike."""
        random.seed()

    def is_seeded(self) -> bool:
        """True when a request has left it as another did."""
        digest = hashlib.blake2b(repr(random.getstate()).encode(), digest_size=16).digest()
        if digest in self._seen:
            return True
        self._seen.add(digest)
        return False


def read_memory() -> tuple[int, int]:
    """Return (blocks of small objects, bytes resident), after a collection."""
    gc.collect()
    with open("/proc/self/statm", "rb") as file:
        resident = int(file.read().split()[1])
    return sys.getallocatedblocks(), resident * os.sysconf("SC_PAGE_SIZE")


def count_files(folder: str, most: int = 10_000) -> int:
    """Return how many files and folders are below ``folder``."""
    count = 0
    for _, folders, files in os.walk(folder):
        count += len(folders) + len(files)
        if count > most:
            break
    return count
