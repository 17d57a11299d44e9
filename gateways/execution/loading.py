"""Loading an application object from a file or a module; the only place that imports application code by name.

Knows no gateway, no request and no PEP 3333.
"""

from __future__ import annotations

import sys

from gateways.core.errors import LoadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from gateways.core.interfaces import Log


def load_file(path: str, *names: str) -> Any:
    """Return the first of ``names`` in the Python file at ``path``, run once as a module named after the file.

    The file's folder is put first on ``sys.path``, as when Python runs a script. Raise ``LoadError``.
    """
    folder, _, file_name = path.rpartition("/")
    if folder not in sys.path:
        sys.path.insert(0, folder or ".")
    module_name = file_name.removesuffix(".py")
    module = type(sys)(module_name)
    module.__file__ = path
    known = sys.modules.get(module_name)
    sys.modules[module_name] = module
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, module.__dict__)
    except BaseException as error:
        if known is None:
            del sys.modules[module_name]
        else:
            sys.modules[module_name] = known
        if isinstance(error, KeyboardInterrupt):
            raise
        raise LoadError(f"{path} cannot be loaded: {describe_error(error)}") from error
    return find_attribute(module, next((name for name in names if hasattr(module, name)), names[0]), path)


def load_module(module_name: str, name: str) -> Any:
    """Import ``module_name`` and return its attribute ``name`` (dots allowed). Raise ``LoadError``."""
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    try:
        __import__(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(f"{module_name} cannot be imported: {describe_error(error)}") from error
    return find_attribute(sys.modules[module_name], name, module_name)


def find_attribute(module: object, name: str, where: str) -> Any:
    """Return the callable ``name`` of a loaded module; ``name`` may hold dots. Raise ``LoadError`` when it is none."""
    found = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise LoadError(f"{where} has no {name!r}: name the application, as in {where}:application") from None
    if not callable(found):
        raise LoadError(f"{name!r} of {where} is not callable")
    return found


def describe_error(error: BaseException) -> str:
    """Return ``"SyntaxError: invalid syntax"`` in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def make_loader(path: str, module_name: str, *names: str) -> Callable[[], Any]:
    """Return a function that loads one of ``names`` from the file ``path`` if given, else from ``module_name``."""
    if path:
        return lambda: load_file(path, *names)
    return lambda: load_module(module_name, names[0])


def load_preloads(names: Iterable[str]) -> None:
    """Import modules that must be there. Raise ``LoadError``, which says in which file and line it went wrong."""
    for name in names:
        try:
            __import__(name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise LoadError(f"{name} cannot be imported: {describe_error(error)}{describe_place(error)}") from error


def describe_place(error: BaseException) -> str:
    """Return ``" (FILE, line N)"`` for the last line of application code that an exception came through, or ``""``."""
    place = ""
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith("<frozen ") and file != __file__:
            place = f" ({file}, line {traceback.tb_lineno})"
        traceback = traceback.tb_next
    return place


def load_imports(names: list[str], log: Log | None = None) -> None:
    """Import modules; what cannot be imported is left to the script, which may do without it."""
    for name in names:
        parent = name.rpartition(".")[0]
        if name in sys.modules or (parent in sys.modules and not hasattr(sys.modules[parent], "__path__")):
            continue
        try:
            __import__(name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the edge around application code
            if log is not None:
                log.info("%s could not be imported ahead: %s", name, error)
