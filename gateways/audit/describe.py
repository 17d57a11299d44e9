"""Values as short texts that are equal when the values are. Runs no code of the application: no ``repr`` of its own.

Knows Python's own containers and the classes it is told are the application's; of anything else, only what it is.
"""

from __future__ import annotations

import array
import collections
import io
import itertools
import threading
import types
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

MAX_DEPTH = 8
MAX_NODES = 20_000
"""Objects that are looked at for one value."""
MAX_TEXT = 60
_PLAIN = (int, float, complex, bool, type(None), type(...), range, slice)
_COUNTERS = (itertools.count, itertools.cycle, itertools.repeat)


class Description:
    """A value's text and size. ``is_own``: tells whether a class is the application's. ``identity``: objects that are
    not looked into are told apart by their address, within one process."""

    __slots__ = ("_identity", "_inside", "_is_own", "_pieces", "size")

    def __init__(self, value: object, is_own: Callable[[type], bool], identity: bool) -> None:
        self._is_own = is_own
        self._identity = identity
        self._pieces: list[str] = []
        self._inside: set[int] = set()
        self.size = 0
        self._add(value, 0)

    @property
    def text(self) -> str:
        """The value, shortened; what was left out has its digest at the end."""
        text = "".join(self._pieces)
        return shorten(text)

    def _add(self, value: Any, depth: int) -> None:
        self.size += 1
        if issubclass(type(value), (str, bytes, bytearray)):
            self.size += len(value) // 64
            kind = str if issubclass(type(value), str) else bytes if issubclass(type(value), bytes) else bytearray
            self._pieces.append(shorten(kind.__repr__(value)))
        elif type(value) in _PLAIN or issubclass(type(value), _COUNTERS):
            self._pieces.append(repr(value))
        elif id(value) in self._inside or depth > MAX_DEPTH or self.size > MAX_NODES:
            self._pieces.append("...")
            self.size += len(value) if issubclass(type(value), (list, dict, set)) else 0
        else:
            self._inside.add(id(value))
            self._add_object(value, depth + 1)
            self._inside.discard(id(value))

    def _add_object(self, value: Any, depth: int) -> None:
        if issubclass(type(value), (list, tuple, collections.deque)):
            self._add_items("[" if issubclass(type(value), list) else "(", list(value), depth)
        elif issubclass(type(value), dict):
            self._add_pairs("{", list(dict.items(value)), depth)
        elif issubclass(type(value), (set, frozenset)):
            inner = [Description(item, self._is_own, self._identity) for item in list(value)]
            self.size += sum(description.size for description in inner)
            self._pieces.append("{" + ", ".join(sorted(description.text for description in inner)) + "}")
        elif issubclass(type(value), (types.ModuleType, types.FunctionType, type)):
            self._pieces.append(f"<{value.__name__}>")
        elif issubclass(type(value), (types.SimpleNamespace, threading.local)) or self._is_own(type(value)):
            self._add_pairs(type(value).__name__ + "(", list_attributes(value), depth)
        else:
            self._add_foreign(value, depth)

    def _add_foreign(self, value: Any, depth: int) -> None:
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind in (io.StringIO, io.BytesIO) and not value.closed:
            self._pieces.append(name)
            self._add(value.getvalue(), depth)
        elif kind is array.array:
            self._pieces.append(name)
            self._add(value.tobytes(), depth)
        elif kind in (types.MethodType, types.BuiltinFunctionType):
            self._pieces.append(f"<{value.__name__}>")
        else:
            self._pieces.append(f"<{name} {id(value):x}>" if self._identity else f"<{name}>")

    def _add_items(self, opening: str, items: Iterable[object], depth: int) -> None:
        self._pieces.append(opening)
        for number, item in enumerate(items):
            self._pieces.append(", " if number else "")
            self._add(item, depth)
        self._pieces.append("]" if opening == "[" else ")")

    def _add_pairs(self, opening: str, pairs: Iterable[tuple[object, object]], depth: int) -> None:
        self._pieces.append(opening)
        for number, (key, value) in enumerate(pairs):
            self._pieces.append(", " if number else "")
            self._add(key, depth)
            self._pieces.append(": ")
            self._add(value, depth)
        self._pieces.append("}" if opening == "{" else ")")


def shorten(text: str) -> str:
    """Return ``text``, or its beginning and the digest of all of it."""
    if len(text) <= MAX_TEXT:
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{text[:MAX_TEXT]}... ({digest})"


def list_attributes(value: object) -> list[tuple[str, object]]:
    """Return an object's own attributes, without asking the object."""
    found: dict[str, object] = {}
    try:
        found.update(
            vars(value) if issubclass(type(value), threading.local) else object.__getattribute__(value, "__dict__")
        )
    except (AttributeError, TypeError):
        pass
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else tuple(slots):
            try:
                found[slot] = object.__getattribute__(value, slot)
            except AttributeError:
                continue
    return [(name, item) for name, item in found.items() if not name.startswith("__")]
