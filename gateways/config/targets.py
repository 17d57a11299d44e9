"""Targets: which application a configuration means, and how it is run if no model is named.

Reads a file to see what it defines, and never imports or runs it. Imports nothing but ``os.path``.
"""

from __future__ import annotations

import os

MODULE_SUFFIX = ".py"
PYTHON_SUFFIXES = (MODULE_SUFFIX, ".wsgi")
"""How the name of a file ends that is Python whatever its first line says; the second is mod_wsgi's custom."""
SCRIPT, CALLABLE_FILE, CALLABLE_MODULE, EXECUTABLE, FOLDER = (
    "script", "callable_file", "callable_module", "executable", "folder",
)  # fmt: skip
_ONLY_AST = 0x400
_MAX_SOURCE = 16 << 20


class TargetError(ValueError):
    """A target cannot be what it says; the message is one sentence."""


class Target:
    """An application on disk.

    ``kind``: ``script`` (a Python file), ``callable_file`` (a Python file and a name in it), ``callable_module`` (a
    module and a name in it), ``executable`` (any program) or ``folder`` (of programs). ``path``: absolute path, or the
    dotted module name. ``name``: the callable's name, ``""`` where there is none.
    """

    __slots__ = ("kind", "name", "path")

    def __init__(self, kind: str, path: str, name: str = "") -> None:
        self.kind = kind
        self.path = path
        self.name = name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Target):
            return NotImplemented
        return (self.kind, self.path, self.name) == (other.kind, other.path, other.name)

    def __hash__(self) -> int:
        return hash((self.kind, self.path, self.name))

    def __repr__(self) -> str:
        return f"Target({self.kind!r}, {self.path!r}, {self.name!r})"

    def __str__(self) -> str:
        return f"{self.path}:{self.name}" if self.name else self.path


def split_target(text: str) -> tuple[str, str]:
    """Return (place, name) of ``PLACE:NAME``; the name is ``""`` when none is written.

    Raise ``TargetError`` when a colon is followed by nothing that can be a name.
    """
    place, colon, name = text.rpartition(":")
    if not colon:
        return text, ""
    if not place or not all(part.isidentifier() for part in name.split(".")):
        raise TargetError(f'"{text}" is not FILE:NAME or MODULE:NAME: what follows the colon must be a Python name')
    return place, name


def read_target(text: str, base_folder: str) -> Target:
    """Return the target that ``text`` means; paths are relative to ``base_folder``. Looks at the disk.

    Raise ``TargetError`` when there is no such file, or it is no program and no Python.
    """
    place, name = split_target(text)
    path = os.path.normpath(os.path.join(base_folder, place))
    if name and not place.endswith(MODULE_SUFFIX) and os.sep not in place:
        if all(part.isidentifier() for part in place.split(".")):
            return Target(CALLABLE_MODULE, place, name)
        raise TargetError(f'"{place}" is neither a Python file nor a module name')
    if os.path.isdir(path):
        return _plain(Target(FOLDER, path), name)
    if not os.path.isfile(path):
        raise TargetError(f"there is no file {path}" + ("" if name else _module_hint(place)))
    if not os.access(path, os.R_OK):
        raise TargetError(f"{path} cannot be read: permission denied")
    if place.endswith(PYTHON_SUFFIXES) or _is_python(path):
        return Target(CALLABLE_FILE, path, name) if name else Target(SCRIPT, path)
    if os.access(path, os.X_OK):
        return _plain(Target(EXECUTABLE, path), name)
    raise TargetError(f"{path} is no Python file and cannot be executed: chmod +x it")


def choose_model(target: Target) -> tuple[Target, str]:
    """Return (target, model) for a target that no model was named for. Reads the file of a script.

    A Python file that defines ``application`` or ``app`` becomes a callable run by wsgi, one that defines only
    ``handler`` one run by handler, any other a script run by registry.
    """
    if target.kind in (CALLABLE_FILE, CALLABLE_MODULE):
        return target, "handler" if target.name == "handler" else "wsgi"
    if target.kind in (EXECUTABLE, FOLDER):
        return target, "cgi"
    for name, model in (("application", "wsgi"), ("app", "wsgi"), ("handler", "handler")):
        if name in read_names(target.path):
            return Target(CALLABLE_FILE, target.path, name), model
    return target, "registry"


def choose_name(target: Target, model: str) -> Target:
    """Return the target with the name that a calling model (wsgi, handler) looks for. Reads the file of a script.

    Raise ``TargetError`` when the file defines none.
    """
    if target.kind in (CALLABLE_FILE, CALLABLE_MODULE):
        return target
    if target.kind != SCRIPT:
        raise TargetError(f"model {model} calls a Python function, and {target.path} is no Python file")
    candidates = ("handler",) if model == "handler" else ("application", "app")
    names = read_names(target.path)
    for name in candidates:
        if name in names:
            return Target(CALLABLE_FILE, target.path, name)
    wanted = " or ".join(candidates)
    raise TargetError(f"{target.path} defines no {wanted} at its top level: name the callable, as in FILE.py:NAME")


def read_names(path: str) -> frozenset[str]:
    """Return the names that a Python file defines at its top level, without running it.

    Raise ``TargetError`` when the file cannot be read or is not Python.
    """
    try:
        with open(path, "rb") as file:
            source = file.read(_MAX_SOURCE + 1)
        if len(source) > _MAX_SOURCE:
            raise TargetError(f"{path} is longer than {_MAX_SOURCE} bytes")
        return defined_names(compile(source, path, "exec", _ONLY_AST, dont_inherit=True))
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror}") from error
    except SyntaxError as error:
        raise TargetError(f"{path} is not valid Python: line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise TargetError(f"{path} is not valid Python: {error}") from error


def defined_names(tree: object) -> frozenset[str]:
    """Return the names that a module's syntax tree binds at its top level, also inside ``if``, ``try`` and ``with``."""
    names: set[str] = set()
    pending = [tree]
    while pending:
        node = pending.pop()
        kind = type(node).__name__
        if kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
            names.add(getattr(node, "name", ""))
        elif kind in ("Import", "ImportFrom"):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in getattr(node, "names", ()))
        elif kind in ("Assign", "AnnAssign"):
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            if getattr(node, "value", None) is not None:
                names.update(getattr(target, "id", "") for target in targets)
        else:
            for field in ("body", "orelse", "finalbody", "handlers"):
                inner = getattr(node, field, ())
                pending.extend(inner if isinstance(inner, list) else ())
    return frozenset(names - {""})


def _plain(target: Target, name: str) -> Target:
    if name:
        raise TargetError(f"{target.path} is not a Python file: the name {name} means nothing in it")
    return target


def _is_python(path: str) -> bool:
    """True when a file's first line starts a Python interpreter, or us (``#!/usr/bin/env -S gateways run``)."""
    try:
        with open(path, "rb") as file:
            line = file.readline(256)
    except OSError:
        return False
    return line.startswith(b"#!") and (b"python" in line or b"gateways" in line)


def _module_hint(place: str) -> str:
    if os.sep not in place and place.replace(".", "_").isidentifier() and not place.endswith(MODULE_SUFFIX):
        return f" (a module is written with the name of its callable: {place}:application)"
    return ""
