"""Finds what scripts import, so that it can be imported ahead of them and a forked child finds it done.

Reads import statements; runs no line of a script. Modules of the script's own folder are only read, not imported: they
are the application, and may change. Knows no request.
"""

from __future__ import annotations

import ast
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LOCAL = 200
"""Local modules that are read for one script."""
BLOCKS = ("body", "orelse", "finalbody")


def list_imports(source: bytes) -> list[str]:
    """Return the modules that top-level statements import, in order, also within ``if``, ``try`` and ``with``.

    ``from a import b`` gives ``a`` and ``a.b``, which may be a module too. Raise ``SyntaxError`` or ``ValueError``.
    """
    names: dict[str, None] = {}
    for statement in walk_statements(ast.parse(source).body):
        if isinstance(statement, ast.Import):
            names.update(dict.fromkeys(alias.name for alias in statement.names))
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            module = statement.module
            names[module] = None
            names.update(dict.fromkeys(f"{module}.{alias.name}" for alias in statement.names if alias.name != "*"))
    return list(names)


def walk_statements(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements that run when the module does: not those within functions and classes."""
    for statement in statements:
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        blocks = ("orelse",) if isinstance(statement, ast.If) and is_for_checkers(statement.test) else BLOCKS
        for block in blocks:
            yield from walk_statements(getattr(statement, block, []))
        for handler in getattr(statement, "handlers", []):
            yield from walk_statements(handler.body)


def is_for_checkers(test: ast.expr) -> bool:
    """True for the condition that only type checkers meet: ``TYPE_CHECKING``, ``typing.TYPE_CHECKING``."""
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


def find_local(name: str, folder: str) -> list[str]:
    """Return the files of ``folder`` that make up the module ``name``: its packages' and its own; empty for none."""
    parts = name.split(".")
    found = []
    for length in range(1, len(parts) + 1):
        base = os.path.join(folder, *parts[:length])
        found += [path for path in (f"{base}.py", f"{base}/__init__.py") if os.path.isfile(path)]
    return found


def list_foreign_imports(path: str) -> list[str]:
    """Return what a script and the modules of its folder import from elsewhere, in order."""
    folder = os.path.dirname(path)
    pending, seen = [path], {path}
    names: dict[str, None] = {}
    while pending:
        file_name = pending.pop(0)
        try:
            with open(file_name, "rb") as file:
                imports = list_imports(file.read())
        except (OSError, SyntaxError, ValueError):
            continue
        for name in imports:
            local = find_local(name, folder)
            if not local and not find_local(name.partition(".")[0], folder):
                names[name] = None
            for found in local:
                if found not in seen and len(seen) < MAX_LOCAL:
                    seen.add(found)
                    pending.append(found)
    return list(names)
