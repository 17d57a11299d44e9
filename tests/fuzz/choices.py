"""How one execution is run, read from the first bytes of the fuzzer's input: limits, application, answer, cuts.

Whatever the bytes are, they are a choice: every input is an execution.
"""

from __future__ import annotations

from typing import NamedTuple

from gateways.core.limits import WireLimits

SIZE = 8
"""Bytes of choices before the connection's own bytes."""

SMALL = {"request_line": 60, "field": 60, "fields": 5, "head": 200, "chunk_line": 12, "trailer": 20, "body": 9}
LIMITS = (
    WireLimits(),
    WireLimits(buffered_body=0),
    WireLimits(buffered_body=5),
    WireLimits(**SMALL),
    WireLimits(**SMALL, buffered_body=4),
)
AMPLE = 3
"""So many of ``LIMITS``, from the first, refuse nothing that a test sends on purpose."""

WHOLE, PIECES, ABORT = range(3)


class Answer(NamedTuple):
    """What the application answers: ``kind`` is ``WHOLE``, or in ``PIECES``, or begun and given up (``ABORT``)."""

    status: str
    kind: int
    size: int
    stated: bool = False
    close: bool = False

    @property
    def code(self) -> int:
        return int(self.status[:3])


ANSWERS = (
    Answer("200 OK", WHOLE, 2),
    Answer("200 OK", PIECES, 30),
    Answer("200 OK", PIECES, 30, stated=True),
    Answer("204 No Content", WHOLE, 0),
    Answer("304 Not Modified", WHOLE, 0),
    Answer("404 Not Found", WHOLE, 8200),
    Answer("200 OK", WHOLE, 2, close=True),
    Answer("200 OK", PIECES, 9, close=True),
    Answer("200 OK", ABORT, 30),
    Answer("200 OK", ABORT, 30, stated=True),
    Answer("204 No Content", PIECES, 0),
    Answer("500 Internal Server Error", PIECES, 20000),
)

READS = (1 << 16, 0, 7)
"""How an application reads: all of the body at once, nothing, all of it in small steps; the fourth stops early."""
EARLY = 10
"""After so many bytes."""

FINE, MANY = 40, 300


class Choices(NamedTuple):
    """``read``: the size of each read, 0 for none; ``early``: the application stops reading after ``EARLY`` bytes.

    ``first``: it begins its answer before it reads. ``end``: the peer's input ends after the last byte. ``wrap``: the
    fuzzer's bytes are a request's body, and ``unsized`` one without a stated length. ``sizes``: of the pieces in which
    the input arrives, from ``place`` on (0 to 255, of 256 parts of the input).
    """

    limits: WireLimits
    ample: bool
    trusted: bool
    strict: bool
    loose: bool
    read: int
    early: bool
    answer: Answer
    end: bool
    first: bool
    wrap: bool
    unsized: bool
    sizes: tuple[int, int]
    place: int

    @property
    def reads_all(self) -> bool:
        """True when the application reads its body to the end."""
        return self.read > 0 and not self.early

    @property
    def waits(self) -> bool:
        """True when the application is called with its whole body only."""
        return self.limits.buffered_body > 1 << 14


def parse_choices(data: bytes) -> tuple[Choices, bytes]:
    """Return the choices and the connection's bytes."""
    head = data[:SIZE].ljust(SIZE, b"\0")
    limits, variant, reader, answer, flags, size, other, place = head
    wrap = bool(flags & 4)
    number = limits % (AMPLE if wrap else len(LIMITS))
    choices = Choices(
        LIMITS[number],
        number < AMPLE,
        bool(variant & 1),
        bool(variant & 2),
        bool(variant & 4),
        READS[reader % 4 % 3],
        reader % 4 == 3,
        ANSWERS[answer % len(ANSWERS)],
        bool(flags & 1),
        bool(flags & 2),
        wrap,
        bool(flags & 8),
        (scale(size), scale(other)),
        place,
    )
    return choices, data[SIZE:]


def scale(size: int) -> int:
    """Return the size that a byte stands for: 1 to 200, then up to 3,584."""
    return size + 1 if size < 200 else (size - 199) * 64


def format_choices(
    limits: int = 0,
    variant: int = 0,
    reader: int = 0,
    answer: int = 0,
    flags: int = 0,
    sizes: tuple[int, int, int] = (0, 0, 0),
) -> bytes:
    """Return the bytes of a choice, for seeds."""  # fmt: skip
    return bytes((limits, variant, reader, answer, flags, *sizes))


def cut(data: bytes, choices: Choices) -> list[bytes]:
    """Return ``data`` in pieces: fine ones of the sizes chosen, over and over, from the place chosen, ``FINE`` at most;
    whole before and behind them. From place 0 there are ``MANY``."""
    first = len(data) * choices.place // 256
    pieces = [data[:first]] if first else []
    at = first
    for turn in range(FINE if choices.place else MANY):
        size = choices.sizes[turn & 1]
        if at < len(data):
            pieces.append(data[at : at + size])
        at += size
    if at < len(data):
        pieces.append(data[at:])
    return pieces
