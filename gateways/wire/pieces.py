"""Body bytes that have come and were not read yet: a queue of pieces, each kept as it was cut from the input."""

from __future__ import annotations


class Pieces:
    """A queue of bytes. ``held``: how many are in it. Reading it in small steps copies only what is read."""

    __slots__ = ("_pieces", "_start", "held")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._start = 0
        self.held = 0

    def append(self, data: bytes) -> None:
        """Add ``data``, which is not empty, at the end."""
        self._pieces.append(data)
        self.held += len(data)

    def take(self, size: int) -> bytes:
        """Remove and return at most ``size`` bytes, of the first piece only; ``b""`` when there are none."""
        pieces = self._pieces
        if not pieces:
            return b""
        start = self._start
        stop = start + size
        data = pieces[0][start:stop]
        if stop < len(pieces[0]):
            self._start = stop
        else:
            del pieces[0]
            self._start = 0
        self.held -= len(data)
        return data
