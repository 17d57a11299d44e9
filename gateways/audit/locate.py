"""Where in the application's source a change of state is made: by searching its syntax trees, running nothing.

Knows Python's syntax; the names and patterns to look for come from ``kinds`` and from what was seen to change.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gateways.audit.kinds import KINDS, OWN_KINDS

MAX_PLACES = 4
MAX_SOURCE = 1 << 20
MUTATORS = frozenset(
    (
        "append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "popitem", "remove", "clear", "add",
        "discard", "update", "setdefault", "sort", "reverse", "rotate", "put", "put_nowait", "write", "writelines",
        "difference_update", "intersection_update", "move_to_end", "increment", "set", "__setitem__", "__setattr__",
    )
)  # fmt: skip
"""Methods that change what they are called on."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of source. ``text``: the line itself."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class _Site:
    """Something in a tree that may change state. ``dotted``: its name with imports resolved. ``name``: the last part.

    ``what``: ``store``, ``item`` (a store into it), ``mutate`` (a method call on it) or ``call`` (a call of it).
    ``inside``: names of the functions it stands in. ``global_``: a name that is not the function's own.
    """

    what: str
    dotted: str
    name: str
    line: int
    inside: tuple[str, ...]
    nested: bool
    global_: bool


class Source:
    """One file, searched once."""

    def __init__(self, file: str, data: bytes) -> None:
        self.file = file
        self.lines = data.decode("utf-8", "replace").splitlines()
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError, RecursionError):
            tree = ast.Module([], [])
        self._aliases = dict(_list_aliases(tree))
        self.sites = list(self._search(tree.body, (), frozenset(), frozenset(), False))

    def place(self, line: int) -> Place:
        """Return a line of this file."""
        return Place(self.file, line, self.lines[line - 1].strip() if 0 < line <= len(self.lines) else "")

    def resolve(self, node: ast.expr) -> str:
        """Return an expression as a dotted name, with what imports call it; ``""`` when it is none."""
        if isinstance(node, ast.Name):
            return self._aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self.resolve(node.value)}.{node.attr}"
        if isinstance(node, ast.Call):
            return f"{self.resolve(node.func)}()"
        return f"{self.resolve(node.value)}[]" if isinstance(node, ast.Subscript) else ""

    def _search(
        self,
        nodes: Iterable[ast.AST],
        inside: tuple[str, ...],
        outer: frozenset[str],
        local: frozenset[str],
        nested: bool,
    ) -> Iterator[_Site]:
        for node in nodes:
            yield from self._look(node, inside, outer, local, nested)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                declared = _list_declared(node)
                names = (*inside, getattr(node, "name", "<lambda>"))
                bound = (local | _list_bound(node)) - declared
                yield from self._search(ast.iter_child_nodes(node), names, declared, bound, nested)
            elif isinstance(node, ast.ClassDef):
                yield from self._search(ast.iter_child_nodes(node), (*inside, node.name), outer, local, nested)
            else:
                deeper = nested or isinstance(node, (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match))
                yield from self._search(ast.iter_child_nodes(node), inside, outer, local, deeper)

    def _look(
        self, node: ast.AST, inside: tuple[str, ...], outer: frozenset[str], local: frozenset[str], nested: bool
    ) -> Iterator[_Site]:
        def make(what: str, target: ast.expr) -> _Site:
            dotted = self.resolve(target)
            name = dotted.rpartition(".")[2].removesuffix("[]")
            plain = isinstance(target, ast.Name)
            is_global = not plain or (name in outer or (what != "store" and name not in local) or not inside)
            return _Site(
                what, dotted, name, target.lineno, inside, nested or isinstance(node, ast.AugAssign), is_global
            )

        if isinstance(node, ast.Call):
            yield make("call", node.func)
            if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
                yield make("mutate", node.func.value)
            for argument in node.args[:1] if self.resolve(node.func) in ("setattr", "next", "delattr") else ():
                yield make("mutate", argument)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield make("item", node.value)
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield make("store", node)
            if isinstance(node, ast.Attribute):
                yield make("item", node.value)
        elif isinstance(node, ast.AugAssign):
            yield make("item", node.target)
        elif isinstance(node, ast.alias):
            name = node.asname or node.name
            yield _Site("import", name, name, node.lineno, inside, nested, True)


def _list_aliases(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    yield alias.asname, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _walk_function(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in a function, not what is in functions and classes within it."""
    pending = list(ast.iter_child_nodes(node))
    while pending:
        inner = pending.pop()
        yield inner
        if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(inner))


def _list_declared(node: ast.AST) -> frozenset[str]:
    return frozenset(
        name for inner in _walk_function(node) if isinstance(inner, (ast.Global, ast.Nonlocal)) for name in inner.names
    )


def _list_bound(node: ast.AST) -> frozenset[str]:
    stored = {n.id for n in _walk_function(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return frozenset(stored)


class Sources:
    """The application's files, each read when it is first asked for. ``main``: a script, whose top level runs in each
    request."""

    def __init__(self, files: Iterable[str], main: str = "") -> None:
        self._main = main
        self._files = sorted(files, key=lambda file: (file != main, file))
        self._sources: dict[str, Source] = {}

    def _read_all(self) -> list[Source]:
        for file in self._files:
            if file not in self._sources:
                try:
                    with open(file, "rb") as stream:
                        self._sources[file] = Source(file, stream.read(MAX_SOURCE))
                except OSError:
                    self._sources[file] = Source(file, b"")
        return [self._sources[file] for file in self._files]

    def locate(self, kind: str, name: str) -> list[Place]:
        """Return the lines that make a change of ``kind`` to ``name``; empty when none can be told."""
        if kind in OWN_KINDS:
            return self._locate_name(kind, name)
        if kind == "replaced function":
            attribute = name.rpartition(".")[2]
            return self._collect(lambda site: site.what == "store" and site.dotted == name) or self._collect(
                lambda site: site.what == "store" and site.name == attribute and "." in site.dotted
            )
        row = KINDS[kind]
        found = self._collect(lambda site: _matches(site, row.calls, row.stores))
        named = [place for place in found if name.rpartition(".")[2] in place.text]
        return named or found

    def find_frames(self, stack: str) -> list[Place]:
        """Return the innermost line of the application in a stack that ``faulthandler`` wrote."""
        for file, line in re.findall(r'File "([^"]+)", line ([0-9]+)', stack):
            for source in self._read_all():
                if source.file == os.path.realpath(file):
                    return [source.place(int(line))]
        return []

    def _locate_name(self, kind: str, name: str) -> list[Place]:
        """Places that change a name: in functions, or anywhere at the top of a script that runs in each request."""
        last = name.rstrip("=)").replace("(", ".").replace(": ", ".").rpartition(".")[2]
        owner = name.replace("(", ".").replace(": ", ".").split(".")[-2] if "." in name or "(" in name else ""
        if kind == "leftover":
            ways: list[Callable[[_Site], bool]] = [
                lambda site: site.nested or bool(site.inside),
                lambda site: True,
            ]
        elif kind in ("default argument", "closure"):
            ways = [lambda site: owner in site.inside, lambda site: bool(site.inside)]
        else:
            ways = [lambda site: bool(site.inside) and site.what != "import"]
        for accept in ways:
            found = self._collect(
                lambda site, accept=accept: (
                    site.name == last  # type: ignore[misc]
                    and site.what in ("store", "item", "mutate", "import")
                    and (site.global_ or kind in ("default argument", "closure"))
                    and accept(site)
                    and not (site.what == "store" and site.inside[-1:] == ("__init__",))
                ),
                only=self._main if kind == "leftover" else "",
            )
            if found:
                return found
        return self._find_definition(last)

    def _find_definition(self, last: str) -> list[Place]:
        return self._collect(lambda site: site.name == last and site.what == "store")[:1]

    def _collect(self, accept: Callable[[_Site], bool], only: str = "") -> list[Place]:
        places: dict[Place, None] = {}
        for source in self._read_all():
            if only and source.file != only:
                continue
            for site in source.sites:
                if accept(site):
                    places[source.place(site.line)] = None
        return list(places)[:MAX_PLACES]


def _matches(site: _Site, calls: tuple[str, ...], stores: tuple[str, ...]) -> bool:
    if site.what == "call":
        return any(fnmatchcase(site.dotted, pattern) for pattern in calls)
    if site.what not in ("store", "item", "mutate"):
        return False
    dotted = f"{site.dotted}[]" if site.what == "item" else site.dotted
    plain = [pattern.replace("[]", "[[]]") for pattern in stores]
    return any(fnmatchcase(dotted, pattern) for pattern in plain)


def format_place(place: Place, folder: str) -> str:
    """Return ``file:line``, relative to ``folder`` where it lies below it."""
    relative = os.path.relpath(place.file, folder)
    return f"{place.file if relative.startswith('..') else relative}:{place.line}"
