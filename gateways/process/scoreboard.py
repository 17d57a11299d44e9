"""The scoreboard: a few words of shared memory for each worker, written by it, read by anyone.

Shared values are hints. Whoever reads them checks their range, and no pid read from here is ever signalled: the
supervisor keeps its own table of children. Knows no process; it is memory.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from enum import IntEnum
from math import inf
from struct import Struct
from typing import NamedTuple

from gateways.core import states


class State(IntEnum):
    """What a worker is doing."""

    DEAD = states.DEAD
    STARTING = states.STARTING
    IDLE = states.IDLE
    BUSY = states.BUSY
    CLOSING = states.CLOSING


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

# One line is 768 bytes, so that no two workers write to one cache line: ten words of 8 bytes, a note, whom the worker
# owes an answer, then the state and the request, which one store sets together, then what is measured (``measures``).
WORD = 8
WORDS = 10
LINE_WORDS = 96
LINE_BYTES = LINE_WORDS * WORD
PID, DUE, CLOSING, REQUESTS, GENERATION, STARTED, NOTE_LENGTH, SINCE, SERVED, TAKING = range(WORDS)
NOTE = WORDS * WORD
STATE = 32
OWED = STATE - 1
MEASURES = 64
MEASURES_BYTES = LINE_BYTES - MEASURES * WORD
NOTE_BYTES = OWED * WORD - NOTE
METHOD_BYTES = 16
MOST_FD = 1 << 30
MOST_REQUEST_ID = 0xFFFF
BEGIN = Struct(f"@qdd{METHOD_BYTES}s{(MEASURES - STATE - 3) * WORD - METHOD_BYTES}s")
"""State, when the request began (monotonic seconds), seconds spent before it; method, target. Zeros if not measured."""
SPENT = STATE + 2
_store_request = BEGIN.pack_into

_WORK = (STATE, CLOSING, REQUESTS, SERVED, GENERATION)
_IDLE = int(State.IDLE)
BUSY = int(State.BUSY)


class SlotReading(NamedTuple):
    """One line as it was found, times in monotonic seconds.

    ``note``: the worker's last words. ``request``: method and target of the last request that was noted, cut, with
    ``?`` for what cannot be printed. ``since``: when the supervisor first saw the worker as it is, to within a second;
    of a busy worker that measures its requests, when the request began.
    """

    number: int
    pid: int
    state: State
    generation: int
    requests: int
    started: float
    note: str
    request: str = ""
    since: float = 0.0


class Slot:
    """The worker's side of one line. Each call is one or two stores: no system call, no clock, no check.

    ``due``: the count of requests at which ``call_due()`` is called, 0 for never. ``notes_requests``: write down what
    is asked for, for the time limits and the status page; without them nobody pays for it. ``shared``: two words that
    the worker and the pool's doorman tell each other: the mark of the connection that is served, and, by the doorman,
    whether it takes this worker's other connections.
    """

    __slots__ = ("_call_due", "_due", "_line", "_notes", "_owed", "_state", "_words", "requests", "shared")

    def __init__(self, line: memoryview) -> None:
        self._line = line
        self._words = line[:NOTE].cast("q")
        self._owed = line[OWED * WORD : STATE * WORD].cast("q")
        self._state = line[STATE * WORD : (STATE + 1) * WORD].cast("q")
        self.shared = line[SERVED * WORD : (TAKING + 1) * WORD].cast("q")
        self._notes = False
        self._due = 0
        self._call_due: Callable[[], None] | None = None
        self.requests = 0

    def set_up(self, notes_requests: bool, due: int, call_due: Callable[[], None]) -> None:
        """Say what ``begin`` and ``count_request`` do beside their stores."""
        self._notes = notes_requests
        self._due = due
        self._call_due = call_due

    def idle(self) -> None:
        """Say that this worker waits for a request."""
        self._state[0] = _IDLE

    def busy(self) -> None:
        """Say that this worker runs the application."""
        self._state[0] = BUSY

    def begin(self, method: str, target: str) -> None:
        """Say that this worker runs the application, and for which request."""
        if self._notes:
            _store_request(self._line, STATE * WORD, BUSY, 0.0, 0.0, method.encode(), target.encode())
        else:
            self._state[0] = BUSY

    def owe(self, fd: int, request_id: int) -> None:
        """Say that a request came on descriptor ``fd``, by the number ``request_id``, and that no answer has gone."""
        self._owed[0] = request_id << 32 | fd + 1

    def answer(self) -> None:
        """Say that the answer is about to go: whatever becomes of this worker, nobody else may give one."""
        self._owed[0] = 0

    def closing(self) -> None:
        """Say that this worker takes no new connection and will leave; it stays said, whatever follows."""
        self._words[CLOSING] = 1

    def count_request(self, status: str = "200 OK") -> None:
        """Count one request; ``requests`` is this worker's own count. ``status`` interests measures only."""
        self.requests = requests = self.requests + 1
        self._words[3] = requests
        if requests == self._due and self._call_due is not None:
            self.ask_for_successor()

    def count_refusal(self) -> None:
        """Count what could not be read as a request: of interest to measures only."""

    def ask_for_successor(self) -> None:
        """Say that this worker is to be replaced."""
        self._words[DUE] = 1
        if self._call_due is not None:
            self._call_due()

    def note(self, text: str) -> None:
        """Leave ``text`` (cut to 168 bytes) for whoever reads the line: why this worker could not start."""
        data = text.encode("utf-8", "replace")[:NOTE_BYTES]
        self._line[NOTE : NOTE + len(data)] = data
        self._words[NOTE_LENGTH] = len(data)


class Debt(NamedTuple):
    """An answer that a worker owes: on its descriptor ``fd``, to the request that its peer calls ``request_id``."""

    fd: int
    request_id: int


class Progress(NamedTuple):
    """How far a worker is: its state, its requests, and whether it asks to be replaced."""

    state: State
    requests: int
    due: bool


class Scoreboard:
    """The supervisor's and the readers' side: ``size`` lines of anonymous memory that children inherit.

    ``most``: how many it may come to hold. Lines that were never used take no memory.
    """

    def __init__(self, size: int, most: int = 0) -> None:
        if size < 1:
            raise ValueError("a scoreboard has at least one line")
        self.size = size
        self._bytes = memoryview(mmap.mmap(-1, max(size, most) * LINE_BYTES))
        self._words = self._bytes.cast("q")

    def slot(self, index: int, kind: type[Slot] = Slot) -> Slot:
        """Return the worker's side of line ``index``, of a ``kind``; ``IndexError`` if there is none."""
        start = self._start(index) * WORD
        return kind(self._bytes[start : start + LINE_BYTES])

    def open_line(self, index: int, generation: int, now: float) -> None:
        """Clear line ``index`` for a worker that is about to start."""
        word = self._start(index)
        for offset, value in (
            (PID, 0),
            (DUE, 0),
            (CLOSING, 0),
            (REQUESTS, 0),
            (GENERATION, generation),
            (STARTED, int(now * 1e9)),
            (NOTE_LENGTH, 0),
            (SINCE, int(now * 1e9)),
            (TAKING, 0),
            (OWED, 0),
            (STATE, int(State.STARTING)),
        ):
            self._words[word + offset] = value
        self._bytes[(word + STATE + 1) * WORD : (word + LINE_WORDS) * WORD] = bytes((LINE_WORDS - STATE - 1) * WORD)

    def write_pid(self, index: int, pid: int) -> None:
        """Show the pid of line ``index``: for readers, never to be signalled."""
        self._words[self._start(index) + PID] = pid

    def write_since(self, index: int, since: float) -> None:
        """Show when the worker of line ``index`` was first seen as it is: the supervisor's to write."""
        self._words[self._start(index) + SINCE] = int(since * 1e9)

    def close_line(self, index: int) -> None:
        """Mark line ``index`` free."""
        self._words[self._start(index) + STATE] = int(State.DEAD)

    def read_line(self, index: int) -> SlotReading:
        """Return line ``index`` with every value forced into its range."""
        word = self._start(index)
        line = bytes(self._bytes[word * WORD : word * WORD + LINE_BYTES])
        cells = memoryview(line).cast("q")
        state, began, _, method, target = BEGIN.unpack_from(line, STATE * WORD)
        since = cells[SINCE] / 1e9
        return SlotReading(
            index,
            cells[PID],
            _read_state(state, cells[CLOSING]),
            cells[GENERATION],
            max(0, cells[REQUESTS]),
            cells[STARTED] / 1e9,
            _read_text(line[NOTE : NOTE + min(max(cells[NOTE_LENGTH], 0), NOTE_BYTES)]),
            " ".join(filter(None, (_read_text(part.partition(b"\0")[0]) for part in (method, target)))),
            began if state == BUSY and 0.0 < began < inf else since,
        )

    def read_measures(self, index: int) -> tuple[int, memoryview]:
        """Return the requests of line ``index``, and its words from ``SPENT`` on as bytes."""
        word = self._start(index)
        return max(0, self._words[word + REQUESTS]), self._bytes[(word + SPENT) * WORD : (word + LINE_WORDS) * WORD]

    def read_progress(self, index: int) -> Progress:
        """Return only what changes from request to request of line ``index``."""
        word = self._start(index)
        words = self._words
        state = _read_state(words[word + STATE], words[word + CLOSING])
        return Progress(state, max(0, words[word + REQUESTS]), words[word + DUE] != 0)

    def read_works(self, lines: int) -> list[tuple[int, int, int, int, int]]:
        """Return what the workers of the first lines are at: state, whether closing, requests, mark served, generation.

        Two readings of a worker that are equal, and busy, are of one request. A state is not checked here.
        """
        end = lines * LINE_WORDS
        words = self._words
        return list(zip(*(words[at:end:LINE_WORDS].tolist() for at in _WORK), strict=True))

    def write_taking(self, index: int, taking: bool) -> None:
        """Say that the worker's waiting connections may be taken: the doorman's to write."""
        self._words[self._start(index) + TAKING] = taking

    def grow(self, size: int) -> None:
        """Have at least ``size`` lines. Raise ``ValueError`` beyond what it may hold."""
        if size * LINE_BYTES > self._bytes.nbytes:
            raise ValueError(f"this scoreboard cannot hold {size} lines")
        self.size = max(self.size, size)

    def read_debt(self, index: int) -> Debt | None:
        """Return the answer that the worker of line ``index`` owes; None for none, or for a word without sense."""
        request_id, fd = divmod(self._words[self._start(index) + OWED], 1 << 32)
        return Debt(fd - 1, request_id) if 0 < fd <= MOST_FD and 0 <= request_id <= MOST_REQUEST_ID else None

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


def _read_text(data: bytes) -> str:
    return "".join(c if c.isprintable() else "?" for c in data.decode("utf-8", "replace"))
