"""What a worker counts of its requests, in its own line of shared memory: how long they took, and how they ended.

The common case is a quick success, and it is counted by what is *not* stored: whoever reads takes it as the rest. Its
time is stored with the next request. So it pays for two looks at the clock, an addition and two comparisons. Knows no
process; it is memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from struct import Struct
from time import monotonic
from typing import NamedTuple

from gateways.process.scoreboard import BEGIN, BUSY, MEASURES, MEASURES_BYTES, SPENT, STATE, WORD, Slot

BOUNDS = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the classes of duration, in seconds; one more class is for what takes longer."""
OUTCOMES = ("2xx", "3xx", "4xx", "5xx", "none")
"""How a request ends: the class of its status, or without a response because the client has gone."""
REFUSED, SLOWER, ENDED = 0, 1, 1 + len(BOUNDS)
"""Words of a line's measures: requests refused unread, the durations and the outcomes but the first of each."""
_WORDS = Struct(f"@{1 + len(BOUNDS) + len(OUTCOMES) - 1}q")
_SECONDS = Struct("@d")
_OUTCOME = {"3": 0, "4": 1, "5": 2}
_NO_RESPONSE = 3
_QUICK = BOUNDS[0]
_COMMON = "200 OK"
_store_request = BEGIN.pack_into


class Measures(NamedTuple):
    """Counts since the start: of one worker, or of several together.

    ``durations``: requests in each class of ``BOUNDS``, and of those beyond; ``outcomes``: of each of ``OUTCOMES``.
    ``refused``: what broke the wire's rules and never became a request. ``seconds``: all durations together.
    """

    requests: int = 0
    seconds: float = 0.0
    refused: int = 0
    durations: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    outcomes: tuple[int, ...] = (0,) * len(OUTCOMES)

    def plus(self, other: Measures) -> Measures:
        """Return both together."""
        return Measures(
            self.requests + other.requests,
            self.seconds + other.seconds,
            self.refused + other.refused,
            tuple(map(sum, zip(self.durations, other.durations, strict=True))),
            tuple(map(sum, zip(self.outcomes, other.outcomes, strict=True))),
        )

    def find_quantile(self, fraction: float) -> float | None:
        """Return the upper bound of the class in which the given fraction of requests lies; ``inf`` beyond the last.

        None when there are no requests.
        """
        total = sum(self.durations)
        if not total:
            return None
        seen = 0
        for bound, count in zip((*BOUNDS, float("inf")), self.durations, strict=True):
            seen += count
            if seen >= fraction * total:
                return bound
        return float("inf")


class MeasuringSlot(Slot):
    """A worker's side of a line whose requests are noted and measured.

    Its methods repeat those of ``Slot`` instead of calling them: a call would cost as much as what they do.
    """

    __slots__ = ("_began", "_counts", "_measures", "_seconds", "_spent")

    def __init__(self, line: memoryview) -> None:
        super().__init__(line)
        self._measures = line[MEASURES * WORD :].cast("q")
        self._seconds = line[SPENT * WORD : (SPENT + 1) * WORD].cast("d")
        self._counts = [0] * (ENDED + len(OUTCOMES) - 1)
        self._spent = 0.0
        self._began = monotonic()

    def begin(self, method: str, target: str) -> None:
        """Say that this worker runs the application, for which request, and since when."""
        self._began = began = monotonic()
        _store_request(self._line, STATE * WORD, BUSY, began, self._spent, method.encode(), target.encode())

    def count_request(self, status: str = "200 OK") -> None:
        """Count one request that ended with ``status``, ``""`` when there was no response."""
        took = monotonic() - self._began
        self._spent += took
        if took > _QUICK or status != _COMMON:
            self._count_uncommon(took, status)
        self.requests = requests = self.requests + 1
        self._words[3] = requests
        if requests == self._due and self._call_due is not None:
            self.ask_for_successor()

    def count_refusal(self) -> None:
        """Count what could not be read as a request."""
        self._count(REFUSED)

    def _count_uncommon(self, took: float, status: str) -> None:
        self._seconds[0] = self._spent
        if took > _QUICK:
            self._count(SLOWER + bisect_left(BOUNDS, took) - 1)
        if status >= "3" or not status:
            self._count(ENDED + _OUTCOME.get(status[:1], _NO_RESPONSE))

    def _count(self, word: int) -> None:
        counts = self._counts
        counts[word] += 1
        self._measures[word] = counts[word]


def parse_measures(requests: int, data: memoryview) -> Measures:
    """Return what a line's words from ``SPENT`` on say of ``requests`` requests; never less than nothing."""
    (seconds,) = _SECONDS.unpack_from(data)
    refused, *words = _WORDS.unpack_from(data, (MEASURES - SPENT) * WORD)
    counts = [max(0, word) for word in words]
    slower, ended = counts[: len(BOUNDS)], counts[len(BOUNDS) :]
    return Measures(
        requests,
        seconds if 0.0 <= seconds < float("inf") else 0.0,
        max(0, refused),
        (_find_rest(requests, slower), *slower),
        (_find_rest(requests, ended), *ended),
    )


def _find_rest(requests: int, counts: Sequence[int]) -> int:
    return max(0, requests - sum(counts))


assert _WORDS.size <= MEASURES_BYTES
