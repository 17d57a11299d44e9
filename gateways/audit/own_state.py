"""What the application's own modules hold: globals, attributes of classes and objects, closures, defaults.

Own is what lies below the application's folder and belongs neither to Python nor to an installed package. Knows the
process it runs in, and no request.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import types
from collections.abc import Iterator
from typing import Any

from gateways.audit.describe import Description, list_attributes

Key = tuple[str, str]
"""Kind (see ``kinds``) and name."""
State = dict[Key, tuple[str, int]]
"""Key -> text and size."""

_CONTAINERS = (list, dict, set, str)
MAX_VALUES = 5000
MAX_DEPTH = 3
_FOREIGN_FOLDERS = ("/site-packages/", "/dist-packages/")
_FOREIGN_ROOTS = tuple(
    os.path.join(path, "")
    for path in {
        sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"),
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    }
)  # fmt: skip


class OwnCode:
    """The application's code. ``roots``: folders; what is below one of them is the application's."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = tuple(os.path.join(os.path.realpath(root), "") for root in roots)
        self._known: dict[str, bool] = {}
        self._names: frozenset[str] = frozenset()
        self.files: set[str] = set()

    def has_file(self, path: str) -> bool:
        """True when a file is the application's."""
        found = self._known.get(path)
        if found is None:
            real = os.path.realpath(path)
            found = self._known[path] = (
                real.startswith(self._roots)
                and not real.startswith(_FOREIGN_ROOTS)
                and not any(folder in real for folder in _FOREIGN_FOLDERS)
            )
        return found

    def list_modules(self) -> list[tuple[str, types.ModuleType]]:
        """Return the loaded modules that are the application's, but for the program itself."""
        found = []
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and name != "__main__" and self.has_file(file):
                found.append((name, module))
                self.files.add(os.path.realpath(file))
        self._names = frozenset(name for name, _ in found)
        return found

    def is_own(self, kind: type) -> bool:
        """True when a class is the application's; so are those of a script that runs."""
        module = type.__getattribute__(kind, "__module__")
        return module in self._names or module == "__main__"

    def read_state(self) -> State:
        """Return what the application's modules hold now."""
        modules = self.list_modules()
        walk = _Walk(self)
        for name, module in modules:
            walk.visit_module(name, module)
        return walk.state

    def describe_names(self, names: dict[str, Any]) -> dict[str, str]:
        """Return the texts of a script's globals; they compare with those of another process."""
        return {
            name: Description(value, self.is_own, identity=False).text
            for name, value in list(names.items())[:MAX_VALUES]
            if not name.startswith("__") and not issubclass(type(value), types.ModuleType)
        }


class _Walk:
    """One reading of the state."""

    def __init__(self, own: OwnCode) -> None:
        self._own = own
        self._seen: set[int] = set()
        self.state: State = {}

    def visit_module(self, name: str, module: types.ModuleType) -> None:
        for attribute, value in list(vars(module).items()):
            if not attribute.startswith("__") and not issubclass(type(value), types.ModuleType):
                self.visit("global", f"{name}.{attribute}", value, 0)

    def visit(self, kind: str, path: str, value: Any, depth: int) -> None:
        """Note a value, and what can be reached through it."""
        if len(self.state) >= MAX_VALUES:
            return
        kind_of = type(value)  # never isinstance: a lazy object's __class__ is code that would run
        if kind_of in (types.FunctionType, functools._lru_cache_wrapper):
            self._note(kind, path, f"<{value.__name__} {id(value):x}>", 1)
            self._visit_function(value)
        elif issubclass(type(value), type):
            self._note(kind, path, f"<{value.__name__} {id(value):x}>", 1)
            if self._own.is_own(value):
                self._visit_class(value, depth)
        elif issubclass(type(value), (classmethod, staticmethod, property)):
            for function in _list_functions(value):
                self._visit_function(function)
        elif (
            self._own.is_own(type(value)) and depth < MAX_DEPTH and not issubclass(type(value), (list, dict, set, str))
        ):
            self._note(kind, path, f"<{type(value).__name__} {id(value):x}>", 1)
            self._visit_object(path, value, depth)
        else:
            description = Description(value, self._own.is_own, identity=True)
            self._note(kind, path, description.text, description.size)

    def _note(self, kind: str, path: str, text: str, size: int) -> None:
        self.state[kind, path] = (text, size)

    def _first_visit(self, value: object) -> bool:
        if id(value) in self._seen:
            return False
        self._seen.add(id(value))
        return True

    def _visit_object(self, path: str, value: object, depth: int) -> None:
        if self._first_visit(value):
            for name, item in list_attributes(value):
                self.visit("attribute", f"{path}.{name}", item, depth + 1)

    def _visit_class(self, kind: type, depth: int) -> None:
        if depth >= MAX_DEPTH or not self._first_visit(kind):
            return
        path = f"{kind.__module__}.{kind.__qualname__}"
        for name, value in list(vars(kind).items()):
            if not name.startswith(("__", "_abc_")):
                self.visit("class attribute", f"{path}.{name}", value, depth + 1)

    def _visit_function(self, function: Any) -> None:
        if type(function) is functools._lru_cache_wrapper:  # what it keeps is a cache, and caches are fine
            function = function.__wrapped__
        if type(function) is not types.FunctionType or not self._first_visit(function):
            return
        if not self._own.has_file(function.__code__.co_filename):
            return
        path = f"{function.__module__}.{function.__qualname__}"
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                self.visit("closure", f"{path}: {name}", cell.cell_contents, MAX_DEPTH)
            except ValueError:  # not bound yet
                continue
        for name, value in _list_defaults(function):
            self._note_default(path, name, value)
        for name, value in list(vars(function).items()):
            if name == "__wrapped__":
                self._visit_function(value)
            else:
                self.visit("function attribute", f"{path}.{name}", value, MAX_DEPTH)

    def _note_default(self, path: str, name: str, value: object) -> None:
        description = Description(value, self._own.is_own, identity=True)
        self._note("default argument", f"{path}({name}=)", description.text, description.size)


def _list_defaults(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    yield from zip(positional[len(positional) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def _list_functions(value: Any) -> list[Any]:
    if issubclass(type(value), property):
        return [function for function in (value.fget, value.fset, value.fdel) if function is not None]
    return [value.__func__]
