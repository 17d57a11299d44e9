"""What a driver does with a wire of meta-variables, without sockets: the order of calls of ``core.interfaces.Wire``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from gateways.core.errors import BodyIncomplete, RemoteProtocolError
from gateways.core.interfaces import Wire
from gateways.core.request import Endpoint, Request

ENDPOINT = Endpoint("server.example", "8080")
FIELDS = [("Content-Type", "text/plain")]
Reader = Callable[[Callable[[int], bytes | None]], Iterator[bytes | None]]


class Call(NamedTuple):
    """One call of the application."""

    variables: dict[str, str]
    content_length: int | None
    body: bytes
    incomplete: bool


class Outcome(NamedTuple):
    """``calls`` of the application, what was ``sent``, the ``error`` that ended it, and whether the wire was kept."""

    calls: list[Call]
    sent: bytes
    error: RemoteProtocolError | None
    kept: bool

    @property
    def seen(self) -> object:
        """What must not depend on how the input was cut."""
        error = self.error
        return self.calls, self.sent, error and (error.status, error.section), self.kept


def read_all(take: Callable[[int], bytes | None]) -> Iterator[bytes | None]:
    """Read to the end; ``None`` is passed on when more input is needed."""
    while (piece := take(1000)) != b"":
        yield piece


def read_nothing(take: Callable[[int], bytes | None]) -> Iterator[bytes | None]:
    """An application that does not care."""
    return iter(())


def read_ten(take: Callable[[int], bytes | None]) -> Iterator[bytes | None]:
    """An application that reads ten bytes, if there are so many."""
    left = 10
    while left and (piece := take(left)) != b"":
        left -= len(piece or b"")
        yield piece


class Driver:
    """Feeds a wire, calls an application that answers ``ok`` and its body's length, as the connection loop would."""

    def __init__(self, wire: Wire, reader: Reader = read_all) -> None:
        self.wire = wire
        self.reader = reader
        self.calls: list[Call] = []
        self.sent = b""
        self.error: RemoteProtocolError | None = None
        self.open = True
        self._request: Request | None = None
        self._reading: Iterator[bytes | None] | None = None
        self._body = b""

    def feed(self, piece: bytes) -> None:
        """Give the wire a piece of input and do all that can be done then."""
        if not self.open:
            return
        self.wire.receive(piece)
        try:
            while self._step(end=not piece):
                pass
        except RemoteProtocolError as error:
            self.error = error
            self.sent += self.wire.format_response(f"{error.status} Refused", FIELDS, str(error).encode(), True)
            self.open = False
            return
        if self.open:
            self.sent += self.wire.take_output()

    def _step(self, end: bool) -> bool:
        """Take a request a step further. False when more input is needed, or the connection is done with."""
        wire = self.wire
        self._request = self._request or wire.take_request()
        request = self._request
        if request is None:
            return False
        if self._reading is None:
            if request.content_length != 0 and not wire.body_ready():
                return False
            self._reading = self.reader(wire.take_body)
        incomplete = False
        try:
            for piece in self._reading:
                if piece is None:
                    assert not end, "a wire that wants more after the end of input"
                    self.sent += wire.take_output()
                    # A generator resumes where it waited.
                    return False
                self._body += piece
        except BodyIncomplete:
            incomplete = True
        self.calls.append(Call(dict(request.metavariables), request.content_length, self._body, incomplete))
        self.sent += wire.format_response("200 OK", FIELDS, b"ok %d" % len(self._body), False)
        self._request, self._reading, self._body = None, None, b""
        self.open = wire.finish() and not incomplete
        return self.open and bool(wire.buffered)


def drive(wire: Wire, pieces: Iterable[bytes], reader: Reader = read_all, end: bool = False) -> Outcome:
    """Feed the pieces, and the end of input if ``end``."""
    driver = Driver(wire, reader)
    for piece in pieces:
        driver.feed(piece)
    if end:
        driver.feed(b"")
    return Outcome(driver.calls, driver.sent, driver.error, driver.open)


def split(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """``data`` cut at these offsets."""
    places = [0, *sorted({cut for cut in cuts if 0 < cut < len(data)}), len(data)]
    return [data[start:stop] for start, stop in pairwise(places)]


def each_byte(data: bytes) -> list[bytes]:
    """``data`` byte by byte."""
    return [data[at : at + 1] for at in range(len(data))]
