"""The scoreboard: a few words of shared memory for each worker, written by it, read by anyone.

Shared values are hints. Whoever reads them checks their range, and no pid read from here is ever signalled: the
supervisor keeps its own table of children. Knows no process; it is memory.
"""

from __future__ import annotations

import mmap
from enum import IntEnum
from typing import NamedTuple


class State(IntEnum):
    """What a worker is doing."""

    DEAD = 0
    STARTING = 1
    IDLE = 2
    BUSY = 3
    CLOSING = 4


TRANSITIONS: dict[State, frozenset[State]] = {
    State.DEAD: frozenset({State.STARTING}),
    State.STARTING: frozenset({State.IDLE, State.CLOSING, State.DEAD}),
    State.IDLE: frozenset({State.BUSY, State.CLOSING, State.DEAD}),
    State.BUSY: frozenset({State.IDLE, State.CLOSING, State.DEAD}),
    State.CLOSING: frozenset({State.DEAD}),
}
"""The legal steps of one worker's life. A worker that is closing and answers its kept connections is still closing."""

SEEN_AFTER: dict[State, frozenset[State]] = {
    State.DEAD: frozenset({State.DEAD}),
    State.STARTING: frozenset({State.STARTING, State.IDLE, State.BUSY, State.CLOSING}),
    State.IDLE: frozenset({State.IDLE, State.BUSY, State.CLOSING}),
    State.BUSY: frozenset({State.BUSY, State.IDLE, State.CLOSING}),
    State.CLOSING: frozenset({State.CLOSING}),
}
"""What a reader who looks now and then may find after what it last found, while the worker lives."""

# One line is 256 bytes, so that no two workers write to one cache line: eight words of 8 bytes, then a note.
WORDS = 8
LINE_WORDS = 32
LINE_BYTES = LINE_WORDS * 8
NOTE_BYTES = LINE_BYTES - WORDS * 8
PID, STATE, CLOSING, REQUESTS, GENERATION, STARTED, NOTE_LENGTH = range(7)

_IDLE = int(State.IDLE)
_BUSY = int(State.BUSY)


class SlotReading(NamedTuple):
    """One line as it was found: ``started`` is in monotonic seconds, ``note`` the worker's last words."""

    number: int
    pid: int
    state: State
    generation: int
    requests: int
    started: float
    note: str


class Slot:
    """The worker's side of one line. Each call is one or two stores: no system call, no clock, no check."""

    __slots__ = ("_note", "_words", "requests")

    def __init__(self, words: memoryview, note: memoryview) -> None:
        self._words = words
        self._note = note
        self.requests = 0

    def idle(self) -> None:
        """Say that this worker waits for a request."""
        self._words[1] = _IDLE

    def busy(self) -> None:
        """Say that this worker runs the application."""
        self._words[1] = _BUSY

    def closing(self) -> None:
        """Say that this worker takes no new connection and will leave; it stays said, whatever follows."""
        self._words[2] = 1

    def count_request(self) -> None:
        """Count one request; ``requests`` is this worker's own count."""
        self.requests = requests = self.requests + 1
        self._words[3] = requests

    def note(self, text: str) -> None:
        """Leave ``text`` (cut to 192 bytes) for whoever reads the line: why this worker could not start."""
        data = text.encode("utf-8", "replace")[:NOTE_BYTES]
        self._note[: len(data)] = data
        self._words[NOTE_LENGTH] = len(data)


class Scoreboard:
    """The supervisor's and the readers' side: ``size`` lines of anonymous memory that children inherit."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError("a scoreboard has at least one line")
        self.size = size
        self._bytes = memoryview(mmap.mmap(-1, size * LINE_BYTES))
        self._words = self._bytes.cast("q")

    def slot(self, index: int) -> Slot:
        """Return the worker's side of line ``index``; ``IndexError`` if there is none."""
        word = self._start(index)
        note = word * 8 + WORDS * 8
        return Slot(self._words[word : word + WORDS], self._bytes[note : note + NOTE_BYTES])

    def open_line(self, index: int, generation: int, now: float) -> None:
        """Clear line ``index`` for a worker that is about to start."""
        word = self._start(index)
        for offset, value in (
            (PID, 0),
            (CLOSING, 0),
            (REQUESTS, 0),
            (GENERATION, generation),
            (STARTED, int(now * 1e9)),
            (NOTE_LENGTH, 0),
            (STATE, int(State.STARTING)),
        ):
            self._words[word + offset] = value

    def write_pid(self, index: int, pid: int) -> None:
        """Show the pid of line ``index``: for readers, never to be signalled."""
        self._words[self._start(index) + PID] = pid

    def close_line(self, index: int) -> None:
        """Mark line ``index`` free."""
        self._words[self._start(index) + STATE] = int(State.DEAD)

    def read_line(self, index: int) -> SlotReading:
        """Return line ``index`` with every value forced into its range."""
        word = self._start(index)
        cells = self._words[word : word + WORDS].tolist()
        note = bytes(self._bytes[word * 8 + WORDS * 8 :][: min(max(cells[NOTE_LENGTH], 0), NOTE_BYTES)])
        return SlotReading(
            index,
            cells[PID],
            _read_state(cells[STATE], cells[CLOSING]),
            cells[GENERATION],
            max(0, cells[REQUESTS]),
            cells[STARTED] / 1e9,
            "".join(c if c.isprintable() else "?" for c in note.decode("utf-8", "replace")),
        )

    def read_state(self, index: int) -> State:
        """Return only the state of line ``index``."""
        word = self._start(index)
        return _read_state(self._words[word + STATE], self._words[word + CLOSING])

    def read(self) -> list[SlotReading]:
        """Return every line that is in use."""
        lines = (self.read_line(index) for index in range(self.size))
        return [line for line in lines if line.state is not State.DEAD]

    def _start(self, index: int) -> int:
        if not 0 <= index < self.size:
            raise IndexError(f"the scoreboard has {self.size} lines, no line {index}")
        return index * LINE_WORDS


def _read_state(state: int, closing: int) -> State:
    if not State.STARTING <= state <= State.BUSY:
        return State.DEAD
    return State.CLOSING if closing else State(state)
