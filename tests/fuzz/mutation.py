"""The plain engine: inputs are mutated at random, spliced, and sprinkled with tokens. It needs nothing but Python.

It sees no coverage, so it keeps no inputs of its own; the seeds and the tokens are what gets it into a wire.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.fuzz.choices import SIZE

MAX_SIZE = 4096
_NUMBERS = (0, 1, 2, 7, 8, 127, 128, 254, 255)


class Mutator:
    """Makes inputs of ``seeds`` and ``tokens``; the same ``seed`` makes the same ones."""

    def __init__(self, seeds: Sequence[bytes], tokens: Sequence[bytes], seed: int) -> None:
        self.seeds = seeds
        self.tokens = tokens
        self.random = random.Random(seed)
        self.steps: tuple[Callable[[bytearray], object], ...] = (
            self._flip, self._replace, self._insert_token, self._remove, self._repeat, self._splice, self._number,
        )  # fmt: skip

    def make(self) -> bytes:
        """Return the next input."""
        source = self.random
        data = bytearray(source.choice(self.seeds))
        if source.random() < 0.5:
            data[:SIZE] = source.randbytes(SIZE)
        for _ in range(source.choice((0, 1, 1, 1, 2, 3, 5, 9))):
            source.choice(self.steps)(data)
        return bytes(data[:MAX_SIZE])

    def _place(self, data: bytearray) -> int:
        return self.random.randrange(SIZE, len(data)) if len(data) > SIZE else len(data)

    def _flip(self, data: bytearray) -> None:
        at = self._place(data)
        if at < len(data):
            data[at] ^= 1 << self.random.randrange(8)

    def _replace(self, data: bytearray) -> None:
        at = self._place(data)
        data[at : at + 1] = self.random.randbytes(1)

    def _number(self, data: bytearray) -> None:
        at = self._place(data)
        data[at : at + 1] = bytes((self.random.choice(_NUMBERS),))

    def _insert_token(self, data: bytearray) -> None:
        at = self._place(data)
        data[at : at + self.random.choice((0, 0, 1, 4))] = self.random.choice(self.tokens)

    def _remove(self, data: bytearray) -> None:
        at = self._place(data)
        del data[at : at + self.random.choice((1, 1, 2, 8, 40))]

    def _repeat(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = data[at : at + self.random.choice((1, 4, 30))] * self.random.choice((1, 2, 20))

    def _splice(self, data: bytearray) -> None:
        other = self.random.choice(self.seeds)[SIZE:]
        data[self._place(data) :] = other[self.random.randrange(len(other) + 1) :] if other else b""
