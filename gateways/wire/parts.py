"""Blocks of variables in parts that come again: what two requests differ in is cut out, the rest is remembered.

Two requests for a page from one browser differ in REMOTE_PORT only, those from two browsers in REMOTE_ADDR and the
fields. Front servers keep the order: so a block is cut before these two names, and each part is parsed once. Knows
names and values; not how a wire frames them.
"""

from __future__ import annotations

from gateways.core.variables import DROPPED, VARIABLE_KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PARTED = 3072
"""The longest block, in bytes, that is looked at in parts: shorter than any with ``MAX_VARIABLES`` different names."""
ADDRESS, PORT = b"REMOTE_ADDR", b"REMOTE_PORT"
NAME_SIZE = len(PORT)

_MEMO_ENTRIES = 128
_MEMO_PART = 1024


class UnusualError(Exception):
    """A block is not to be read in parts: the wire's own way through it decides what it is, or what is wrong."""


class VariableParts(dict[bytes, dict[str, str]]):
    """A bounded memo: the bytes of whole name-value pairs -> their variables; treat these as read-only.

    ``parse_pairs`` returns the names and the values of such bytes and raises for others. Raise ``UnusualError`` for a
    part in which a name is dropped or repeated, or a value holds NUL.
    """

    __slots__ = ("_parse_pairs",)

    def __init__(self, parse_pairs: Callable[[bytes], tuple[list[str], list[str]]]) -> None:
        super().__init__()
        self._parse_pairs = parse_pairs

    def __missing__(self, part: bytes) -> dict[str, str]:
        names, values = self._parse_pairs(part)
        variables = dict(zip(map(VARIABLE_KEYS.__getitem__, names), values, strict=True))
        if len(variables) != len(names) or DROPPED in variables or "\0" in "".join(values):
            raise UnusualError
        if len(part) <= _MEMO_PART:
            if len(self) >= _MEMO_ENTRIES:
                del self[next(iter(self))]
            self[part] = variables
        return variables

    def join(self, before: bytes, address: bytes, port: bytes, after: bytes) -> dict[str, str]:
        """Return new variables of a block: the parts before, from and after two names, and the value of REMOTE_PORT.

        Raise ``UnusualError`` for a port that is no number and for a name that is in two parts.
        """
        if not port.isdigit():
            raise UnusualError
        first, second, last = self[before], self[address], self[after]
        variables = {**first, **second, "REMOTE_PORT": port.decode(), **last}
        if len(variables) != len(first) + len(second) + len(last) + 1:
            raise UnusualError
        return variables
