"""Whether a script reads a global where the same run may not have set it: only then can an earlier run's value matter.

A store reaches the statements after it in its own block and the blocks within; a reading that no store reaches is one
of a value that may be old. Pure; cautious about functions, whose callers it does not follow.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Use:
    """Where a name is stored or read. ``path``: (block, index of the statement) of each block, outermost first."""

    path: tuple[tuple[int, int], ...]
    in_function: bool


def is_read_unset(source: bytes, name: str) -> bool:
    """True when the script's ``name`` may be read before its run has set it; also when nobody can tell."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return True
    stores: list[_Use] = []
    reads: list[_Use] = []
    _collect(tree.body, (), False, name, stores, reads)
    return any(not any(_reaches(store, read) for store in stores) for read in reads)


def _reaches(store: _Use, read: _Use) -> bool:
    """True when the store comes before the reading in a block that holds both."""
    if store.in_function:
        return False
    *outer, (block, index) = store.path
    depth = len(outer)
    if read.path[:depth] != tuple(outer) or len(read.path) <= depth or read.path[depth][0] != block:
        return False
    # A function is read as if it were called at the end: what the top level always sets is set by then.
    return read.path[depth][1] >= index or (read.in_function and depth == 0)


def _collect(
    statements: list[ast.stmt],
    path: tuple[tuple[int, int], ...],
    in_function: bool,
    name: str,
    stores: list[_Use],
    reads: list[_Use],
) -> None:
    for index, statement in enumerate(statements):
        here = (*path, (id(statements), index))
        blocks: list[list[ast.stmt]] = [getattr(statement, block, []) for block in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(statement, "handlers", [])]
        blocks += [case.body for case in getattr(statement, "cases", [])]
        blocks = [block for block in blocks if isinstance(block, list) and block]
        is_function = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef))
        target_path = here
        if isinstance(statement, (ast.For, ast.AsyncFor)) and blocks:
            target_path = (*here, (id(blocks[0]), -1))  # the loop's variable is set within its body only
        for node in _walk_head(statement):
            if isinstance(node, ast.Name) and node.id == name:
                if isinstance(node.ctx, ast.Store) and not isinstance(statement, ast.AugAssign):
                    stores.append(_Use(target_path, in_function))
                else:
                    reads.append(_Use(_before(here), in_function))
            elif isinstance(node, ast.Constant) and node.value == name:
                reads.append(_Use(_before(here), in_function))
            elif isinstance(node, ast.alias) and (node.asname or node.name).partition(".")[0] == name:
                stores.append(_Use(here, in_function))
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and statement.name == name:
            stores.append(_Use(here, in_function))
        for block in blocks:
            _collect(block, here, in_function or is_function, name, stores, reads)


def _before(path: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return the place just before a statement: what it reads, it reads before it stores."""
    block, index = path[-1]
    return (*path[:-1], (block, index - 1))


def _walk_head(statement: ast.stmt) -> list[ast.AST]:
    """Return the nodes of a statement that are in none of its blocks."""
    pending: list[ast.AST] = [
        child
        for child in ast.iter_child_nodes(statement)
        if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case))
    ]
    found = []
    while pending:
        node = pending.pop()
        found.append(node)
        pending.extend(ast.iter_child_nodes(node))
    return found
