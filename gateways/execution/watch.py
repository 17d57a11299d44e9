"""What a running script does to its process, noticed when it does it.

One audit hook (it cannot be removed, so it is inert between runs) and a table of wrapped functions that have no audit
event. So nothing that a script left alone is looked at after a run, let alone repaired. Knows no script and no request.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gateways.execution.scriptlog import ScriptLog

    Repairs = dict[tuple[str, int], tuple[Callable[..., object], tuple[Any, ...]]]
    """What was changed, by kind and number -> the function that undoes it, and its arguments."""


class Notes:
    """What the current run has done; ``begin`` forgets the last one's.

    ``active``: a run is on. ``forked``: this process is a child that the script forked. ``moved``: the working
    directory was changed, by whom and when ever. ``children``: a child process was made. ``variables``: names put into
    the C environment, as native strings.
    ``repairs``: what undoes each change, and its arguments. ``exits``: functions for the end of the run.
    ``before_child``: called before a child process is made. ``opened``: a file or a socket was opened, ``before_open``:
    called before the first. ``redirected``: a descriptor was put in another's place. ``folders``: temporary ones that
    were made. ``spoilt``: a run has left a thread. ``log``: the current run's, for a last word.
    """

    __slots__ = (
        "active", "before_child", "before_open", "children", "exits", "folders", "forked", "log", "moved", "opened",
        "redirected", "repairs", "spoilt", "variables",
    )  # fmt: skip

    def __init__(self) -> None:
        self.active = False
        self.forked = False
        self.moved = False
        self.children = False
        self.variables: set[str] = set()
        self.repairs: Repairs = {}
        self.exits: list[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]] = []
        self.before_child: Callable[[], None] | None = None
        self.log: ScriptLog | None = None
        self.opened = False
        self.redirected = False
        self.spoilt = False
        self.before_open: Callable[[], None] | None = None
        self.folders: list[str] = []


_MAX_FOLDERS = 100

NOTES = Notes()
"""The notes of this process: all that is noted is process-wide, and a process has one run at a time."""


def _note_variable(args: tuple[Any, ...]) -> None:
    if NOTES.active:
        NOTES.variables.add(os.fsencode(args[0]).decode("latin-1"))


def _note_child(_args: tuple[Any, ...] = ()) -> None:
    if NOTES.active:
        NOTES.children = True
        if NOTES.before_child is not None:
            NOTES.before_child()


def _note_open(_args: tuple[Any, ...]) -> None:
    if NOTES.active and not NOTES.opened:
        NOTES.opened = True
        if NOTES.before_open is not None:
            NOTES.before_open()


def _note_folder(args: tuple[Any, ...]) -> None:
    if NOTES.active and len(NOTES.folders) < _MAX_FOLDERS:
        NOTES.opened = True
        NOTES.folders.append(os.fsdecode(args[0]))


def _refuse_exec(_args: tuple[Any, ...]) -> None:
    """os.exec would put another program in the serving process's place; in a child of the script's it is right."""
    if NOTES.active and not NOTES.forked:
        raise RuntimeError("os.exec would replace the serving process: this script needs the cgi or the zygote model")
    _note_child()


_EVENTS = {
    "os.putenv": _note_variable,
    "os.unsetenv": _note_variable,
    "os.exec": _refuse_exec,
    "os.fork": _note_child,
    "os.forkpty": _note_child,
    "os.posix_spawn": _note_child,
    "open": _note_open,
    "socket.__new__": _note_open,
    "tempfile.mkdtemp": _note_folder,
    "os.system": _note_child,
    "subprocess.Popen": _note_child,
}


def _audit(event: str, args: tuple[Any, ...], _find: Callable[[str], Any] = _EVENTS.get, _notes: Notes = NOTES) -> None:
    if event == "exec":  # each run begins with one
        return
    if event == "os.chdir":  # and makes two of these
        _notes.moved = True
        return
    action = _find(event)
    if action is not None:
        action(args)


def _mark_forked() -> None:
    NOTES.forked = NOTES.active


def _watch_signal(original: Callable[..., Any]) -> Callable[..., Any]:
    def signal(signalnum: int, handler: Any) -> Any:
        old = original(signalnum, handler)
        if NOTES.active and old is not None:
            NOTES.repairs.setdefault(("signal", signalnum), (original, (signalnum, old)))
        return old

    return signal


def _watch_alarm(original: Callable[..., Any]) -> Callable[..., Any]:
    def alarm(seconds: int) -> Any:
        old = original(seconds)
        if NOTES.active:
            NOTES.repairs.setdefault(("timer", 0), (original, (old,)))
        return old

    return alarm


def _watch_setitimer(original: Callable[..., Any]) -> Callable[..., Any]:
    def setitimer(which: int, seconds: float, interval: float = 0.0) -> Any:
        old = original(which, seconds, interval)
        if NOTES.active:
            NOTES.repairs.setdefault(("timer", which), (original, (which, *old)))
        return old

    return setitimer


def _watch_mask(original: Callable[..., Any]) -> Callable[..., Any]:
    def pthread_sigmask(how: int, mask: Any) -> Any:
        old = original(how, mask)
        if NOTES.active:
            from signal import SIG_SETMASK

            NOTES.repairs.setdefault(("mask", 0), (original, (SIG_SETMASK, old)))
        return old

    return pthread_sigmask


def _watch_wakeup(original: Callable[..., Any]) -> Callable[..., Any]:
    def set_wakeup_fd(fd: int, *, warn_on_full_buffer: bool = True) -> Any:
        old = original(fd, warn_on_full_buffer=warn_on_full_buffer)
        if NOTES.active:
            NOTES.repairs.setdefault(("wakeup", 0), (original, (old,)))
        return old

    return set_wakeup_fd


def _watch_locale(original: Callable[..., Any]) -> Callable[..., Any]:
    def setlocale(category: int, locale: str | None = None) -> Any:
        if NOTES.active and locale is not None and ("locale", 0) not in NOTES.repairs:
            from _locale import LC_ALL

            NOTES.repairs["locale", 0] = (original, (LC_ALL, original(LC_ALL)))
        return original(category, locale)

    return setlocale


def _watch_spawn(original: Callable[..., Any]) -> Callable[..., Any]:
    def fork_exec(*args: Any) -> Any:
        _note_child()
        return original(*args)

    return fork_exec


def _watch_dup2(original: Callable[..., int]) -> Callable[..., int]:
    def dup2(*args: Any, **kwargs: Any) -> int:
        NOTES.redirected = True
        return original(*args, **kwargs)

    return dup2


def _watch_exit(original: Callable[[int], Any]) -> Callable[[int], Any]:
    def _exit(status: int) -> Any:
        if NOTES.active and not NOTES.forked and NOTES.log is not None:
            NOTES.log.note(f"ended its process by os._exit, with exit status {status}: it is the serving process")
        original(status)

    return _exit


def _watch_register(original: Callable[..., Any]) -> Callable[..., Any]:
    def register(func: Callable[..., object], /, *args: Any, **kwargs: Any) -> Any:
        if not NOTES.active or _belongs_to_worker(sys._getframe(1)):
            return original(func, *args, **kwargs)
        NOTES.exits.append((func, args, kwargs))
        return func

    return register


def _watch_unregister(original: Callable[..., Any]) -> Callable[..., Any]:
    def unregister(func: Callable[..., object], /) -> None:
        NOTES.exits[:] = [entry for entry in NOTES.exits if entry[0] != func]
        original(func)

    return unregister


def _belongs_to_worker(frame: Any) -> bool:
    """True when an exit function is registered by a module being imported, which outlives the run.

    ``weakref`` registers once for all finalizers of the process; ran at the end of a run, it would disable them.
    """
    name = frame.f_globals.get("__name__")
    return bool(name == "weakref" or (frame.f_code.co_name == "<module>" and name != "__main__"))


_WRAPPED = (
    ("_signal", "signal", _watch_signal),
    ("signal", "alarm", _watch_alarm),
    ("signal", "setitimer", _watch_setitimer),
    ("_signal", "pthread_sigmask", _watch_mask),
    ("signal", "set_wakeup_fd", _watch_wakeup),
    ("_locale", "setlocale", _watch_locale),
    ("locale", "_setlocale", _watch_locale),
    ("_posixsubprocess", "fork_exec", _watch_spawn),
    ("os", "_exit", _watch_exit),
    ("os", "dup2", _watch_dup2),
    ("atexit", "register", _watch_register),
    ("atexit", "unregister", _watch_unregister),
)
"""(module, function, wrapper). Wrapped where the standard library itself looks them up, so that early importers are
covered: ``signal.signal`` calls ``_signal.signal``, ``locale.setlocale`` calls ``locale._setlocale``."""

_installed: list[str] = []


def install() -> None:
    """Begin to watch this process, once: called when a script model is loaded in a serving process."""
    if _installed:
        return
    _installed.append("yes")
    from importlib import import_module

    for module_name, function, wrap in _WRAPPED:
        module = import_module(module_name)
        original = getattr(module, function, None)
        if original is not None:
            wrapper = wrap(original)
            wrapper.__name__ = wrapper.__qualname__ = function
            wrapper.__doc__ = original.__doc__
            setattr(module, function, wrapper)
    os.register_at_fork(after_in_child=_mark_forked)
    sys.addaudithook(_audit)
