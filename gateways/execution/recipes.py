"""PerlRun and Registry as rows: which variant of each step a model uses.

A recipe names four steps; ``script`` runs them and does not know which model it runs. Knows files and code objects.

| step | perlrun | registry, shared | registry, fresh |
|---|---|---|---|
| program | compiled for each request | compiled when the file differs | same |
| namespace | new | the program's own, kept | new |
| discard | cleared | left | cleared |
| modules | those of the script's folder are dropped | stay | stay |
"""

from __future__ import annotations

import os
import sys

from gateways.core.errors import ConfigurationError, ScriptError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType

MAX_PROGRAMS = 512
"""Compiled scripts that a worker keeps."""

ModuleKind = type(sys)


class Program:
    """One compiled script. ``stamp``: what its file was then. ``namespace``: its own module, once it was asked for."""

    __slots__ = ("code", "namespace", "path", "stamp")

    def __init__(self, path: str, code: CodeType, stamp: tuple[int, int, int]) -> None:
        self.path = path
        self.code = code
        self.stamp = stamp
        self.namespace: ModuleType | None = None


class CompileError(ScriptError):
    """A script is not valid Python; ``cause`` is what the compiler said."""

    def __init__(self, message: str, cause: Exception) -> None:
        super().__init__(message)
        self.cause = cause


class NotPython(ScriptError):
    """A script is a program in another language."""


def format_stamp(status: os.stat_result) -> tuple[int, int, int]:
    """Return what tells one version of a file from another: an older file differs too (mod_perl's rule)."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_source(path: str) -> tuple[bytes, tuple[int, int, int]]:
    """Return (bytes, stamp) of a script; raise ``ScriptError`` with 404 or 403."""
    try:
        with open(path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            return file.read(), format_stamp(status)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ScriptError(f"the script {path} is not there", 404) from error
    except OSError as error:
        raise ScriptError(f"the script {path} cannot be read: {error.strerror}", 403) from error


def load_program(path: str) -> Program:
    """Read and compile a script. Bytes, so that a coding line counts; nothing of ours is inherited by its code.

    Raise ``ScriptError`` (404, 403) or ``CompileError``.
    """
    source, stamp = read_source(path)
    if is_foreign(path, source):
        raise NotPython(f"the script {path} is no Python program: it needs the cgi model")
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise CompileError(f"the script {path} does not compile: {error}", error.with_traceback(None)) from error
    return Program(path, code, stamp)


def is_foreign(path: str, source: bytes) -> bool:
    """True for a program in another language: a binary, or a ``#!`` line that names no Python."""
    if source.startswith(b"#!"):
        return b"python" not in source.split(b"\n", 1)[0] and not path.endswith(".py")
    return source.startswith(b"\x7fELF")


def compile_each_time(programs: dict[str, Program], path: str) -> Program:
    """Step ``program``: compile for this request."""
    return load_program(path)


def compile_once(programs: dict[str, Program], path: str) -> Program:
    """Step ``program``: compile when first asked for; later changes of the file are not seen."""
    program = programs.get(path)
    return program if program is not None else _remember(programs, load_program(path))


def compile_when_changed(programs: dict[str, Program], path: str) -> Program:
    """Step ``program``: compile again when mtime, size or inode differ."""
    program = programs.get(path)
    if program is not None:
        try:
            status = os.stat(path)
        except OSError as error:
            del programs[path]
            raise ScriptError(f"the script {path} is not there", 404) from error
        stamp = program.stamp
        if status.st_mtime_ns == stamp[0] and status.st_size == stamp[1] and status.st_ino == stamp[2]:
            return program
    return _remember(programs, load_program(path))


def _remember(programs: dict[str, Program], program: Program) -> Program:
    if len(programs) >= MAX_PROGRAMS:
        del programs[next(iter(programs))]
    programs[program.path] = program
    return program


def make_namespace(program: Program) -> ModuleType:
    """Step ``namespace``: a new module object: with a bare dict, pickle would not find the script's classes."""
    module = ModuleKind("__main__")
    module.__file__ = program.path
    return module


def keep_namespace(program: Program) -> ModuleType:
    """Step ``namespace``: the program's own, with whatever earlier runs left in it."""
    if program.namespace is None:
        program.namespace = make_namespace(program)
    return program.namespace


def clear_namespace(module: ModuleType) -> None:
    """Step ``discard``: end the run's objects now, not at some later collection."""
    module.__dict__.clear()


def leave_namespace(module: ModuleType) -> None:
    """Step ``discard``: globals live on."""


def list_modules() -> frozenset[str]:
    """Step ``before``: remember which modules are loaded."""
    return frozenset(sys.modules)


def drop_local_modules(before: frozenset[str], folder: str) -> None:
    """Step ``modules``: forget what the run imported from the script's folder.

    A package with an extension module is kept whole: many of those break when they are initialised twice.
    """
    new = [name for name in sys.modules if name not in before]
    extensions = {name.partition(".")[0] for name in new if _is_extension(name)}
    for name in new:
        if name.partition(".")[0] not in extensions and _lies_in(name, folder):
            module = sys.modules.pop(name)
            parent, _, child = name.rpartition(".")
            if parent in sys.modules and getattr(sys.modules[parent], child, None) is module:
                delattr(sys.modules[parent], child)


def _get_file(name: str) -> str:
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        return file
    locations = list(getattr(module, "__path__", ()))
    return os.path.join(str(locations[0]), "") if locations else ""


def _is_extension(name: str) -> bool:
    return _get_file(name).endswith((".so", ".pyd"))


def _lies_in(name: str, folder: str) -> bool:
    return _get_file(name).startswith(folder.rstrip("/") + "/")


class Recipe:
    """One row: a name and the variant of each step; without ``before`` there is no step ``modules``."""

    __slots__ = ("before", "discard", "modules", "name", "namespace", "program")

    def __init__(
        self,
        name: str,
        program: Callable[[dict[str, Program], str], Program],
        namespace: Callable[[Program], ModuleType],
        discard: Callable[[ModuleType], None],
        before: Callable[[], frozenset[str]] | None = None,
        modules: Callable[[frozenset[str], str], None] = drop_local_modules,
    ) -> None:
        self.name = name
        self.program = program
        self.namespace = namespace
        self.discard = discard
        self.before = before
        self.modules = modules


PERLRUN = Recipe("perlrun", compile_each_time, make_namespace, clear_namespace, list_modules, drop_local_modules)
REGISTRY = {
    ("fresh", True): Recipe("registry", compile_when_changed, make_namespace, clear_namespace),
    ("fresh", False): Recipe("registry", compile_once, make_namespace, clear_namespace),
    ("shared", True): Recipe("registry", compile_when_changed, keep_namespace, leave_namespace),
    ("shared", False): Recipe("registry", compile_once, keep_namespace, leave_namespace),
}
"""(namespace, stat_scripts) -> recipe; without stat it is mod_perl's RegistryBB."""


def make_recipe(model: str, namespace: str = "fresh", stat_scripts: bool = True) -> Recipe:
    """Return the row for ``"perlrun"``, or for ``"registry"`` with its two settings."""
    if model == "perlrun":
        return PERLRUN
    if model != "registry" or (namespace, stat_scripts) not in REGISTRY:
        raise ConfigurationError(f"there is no script model {model!r} with namespace {namespace!r}")
    return REGISTRY[namespace, stat_scripts]
