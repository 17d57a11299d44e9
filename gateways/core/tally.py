"""What a pool's supervisor and its doorman tell each other, as words of memory that both hold."""

from __future__ import annotations


class Word:
    """One word of a tally as an attribute of it: a number of 0 or more."""

    __slots__ = ("_at",)

    def __init__(self, at: int) -> None:
        self._at = at

    def __get__(self, tally: Tally, _owner: type) -> int:
        return max(0, tally.words[self._at])

    def __set__(self, tally: Tally, value: int) -> None:
        tally.words[self._at] = value


class Tally:
    """``words``: eight of 8 bytes.

    The supervisor says ``lines``, how many of the scoreboard are in use, and ``max_servers``, in effect. The doorman
    says ``waiting``, how many connections wait for a worker while it knows of them, and counts ``turned_away``, those
    that were answered 503, ``timed_out``, those of them that had waited, and ``passed``, those taken from busy workers.
    """

    __slots__ = ("words",)

    def __init__(self, words: memoryview) -> None:
        self.words = words

    lines = Word(0)
    max_servers = Word(1)
    waiting = Word(2)
    turned_away = Word(3)
    timed_out = Word(4)
    passed = Word(5)
