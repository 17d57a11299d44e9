"""How a Python script ends: SystemExit in every form, an exception, its exit functions.

Does what the interpreter does at the end of a script, without ending the process. Knows no request.
"""

from __future__ import annotations

import sys

from gateways.execution.watch import NOTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, TracebackType
    from typing import Any, Protocol

    class ExceptionLog(Protocol):
        """Where an exception that the script did not show itself is written."""

        def write_exception(self, error: BaseException) -> None: ...


class Ending:
    """``status``: the exit status the script would have had as a process. ``raised``: it ended by an exception that
    it had not arranged to show itself, so that what it printed is half a page."""

    __slots__ = ("raised", "status")

    def __init__(self, status: int, raised: bool = False) -> None:
        self.status = status
        self.raised = raised


FINE = Ending(0)
FAILED = Ending(1, raised=True)


def run_code(code: CodeType, namespace: dict[str, Any], log: ExceptionLog) -> Ending:
    """Run a script's code as ``__main__`` and return how it ended."""
    hook = sys.excepthook
    try:
        exec(code, namespace)
    except SystemExit as error:
        return parse_exit(error.code)
    except BaseException as error:  # noqa: BLE001 - the edge around the application: whatever it raised ends here
        return show_exception(error, code.co_filename, hook, log)
    return FINE


def parse_exit(code: Any) -> Ending:
    """Return the ending that ``SystemExit(code)`` stands for; what is no number goes to standard error."""
    if code is None:
        return FINE
    if isinstance(code, int):
        return Ending(code & 0xFF)
    try:
        sys.stderr.write(f"{code}\n")
    except Exception:  # noqa: BLE001 - the script's own __str__ or stderr, at the edge around the application
        pass
    return Ending(1)


def show_exception(error: BaseException, script: str, hook: object, log: ExceptionLog) -> Ending:
    """Show an exception the way the script arranged (``sys.excepthook``, ``sys.stderr``) and in the log.

    ``hook``: what ``sys.excepthook`` was before the script ran; cgitb and others replace it.
    """
    arranged = sys.excepthook is not hook or sys.stderr is not sys.__stderr__
    traceback = skip_frames(error.__traceback__, script)
    error.__traceback__ = traceback
    try:
        sys.excepthook(type(error), error, traceback)
    except BaseException as fault:  # noqa: BLE001 - the script's own hook, at the edge around the application
        log.write_exception(fault)
        log.write_exception(error)
        return Ending(1, raised=True)
    if arranged:
        log.write_exception(error)
    return Ending(1, raised=not arranged)


def skip_frames(traceback: TracebackType | None, script: str) -> TracebackType | None:
    """Return the traceback from the script's own first frame on; the frames before it are ours."""
    first = traceback
    while first is not None and first.tb_frame.f_code.co_filename != script:
        first = first.tb_next
    return first or traceback


def run_exits(log: ExceptionLog) -> None:
    """Call what the run gave to ``atexit.register``, last in first out; a fault is logged and the next one called."""
    while NOTES.exits:
        function, args, kwargs = NOTES.exits.pop()
        try:
            function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - the edge around the application, as in atexit itself
            log.write_exception(error)
