"""The protocols through which the three axes meet; for type checkers and readers, never imported at run time.

A wire, an execution model and a process model know each other only as far as these few methods say.
Import this module under ``TYPE_CHECKING`` only: ``typing`` is not free, and plain CGI pays for every import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, Protocol

from gateways.core.request import Request
from gateways.core.tally import Tally

if TYPE_CHECKING:
    from socket import socket

FieldList = Sequence[tuple[str, str]]
"""Response fields in order: names and values are ``str`` of Latin-1 characters."""


class Log(Protocol):
    """What this package asks of a log; a ``logging.Logger`` fits."""

    def info(self, msg: str, *args: object) -> None: ...
    def warning(self, msg: str, *args: object) -> None: ...
    def error(self, msg: str, *args: object) -> None: ...
    def exception(self, msg: str, *args: object) -> None: ...


class AccessLog(Protocol):
    """Takes a note of each request once its response is sent (``serve.logged.LoggedExchange``), or was refused."""

    def write(self, exchange: Any) -> None: ...
    def write_refused(self, peer: object, status: str, sent: int) -> None: ...


class Wire(Protocol):
    """One connection's protocol state: bytes in, requests and body bytes out; response in, bytes out.

    Coarse-grained on purpose: one call takes a whole request head, one call formats a whole response.
    ``take_`` methods return ``None`` when more bytes are needed. Input can cause output (100-continue, GET_VALUES,
    CPong, Get Body Chunk): whoever drives a wire sends ``take_output()`` before it waits for input.

    The order of calls for one exchange:
    ``receive* take_request (body_ready | receive)* [take_body*]``, then
    ``(format_response | format_head format_body* format_end) finish``.
    """

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer; ``b""`` means that the peer will send no more."""

    def take_request(self) -> Request | None:
        """Return the next request once its head is complete. Raise ``RemoteProtocolError`` if it never can be.

        After end of input between requests it returns ``None``; in the middle of a head it raises.
        """

    def body_ready(self) -> bool:
        """True when the application may be called without waiting for the peer.

        That is: the body is complete, or ``limits.buffered_body`` bytes of it are held, or the peer waits for
        100-continue. Raise ``RemoteProtocolError`` for a malformed body, so that the application is never called.
        """

    def take_body(self, size: int) -> bytes | None:
        """Return at most ``size`` bytes of the request body; ``b""`` at its end; ``None`` when more input is needed.

        The first call may queue output (100-continue, Get Body Chunk). Raise ``RemoteProtocolError`` when the body is
        malformed and ``BodyIncomplete`` when the input ended before the body did.
        """

    def body_complete(self) -> bool:
        """True when the whole request body has arrived (whether or not it was taken)."""

    def take_output(self) -> bytes:
        """Return, and forget, the bytes that input has caused to be sent; ``b""`` when there are none."""

    @property
    def has_partial_request(self) -> bool:
        """True when some bytes of a request have arrived and its head is not complete: the head's time limit runs."""

    @property
    def buffered(self) -> int:
        """Bytes received and not yet consumed (the next pipelined request, unread body)."""

    @property
    def request_id(self) -> int:
        """The number that the peer has given to the present request; 0 where the protocol numbers none."""

    def format_response(self, status: str, fields: FieldList, body: bytes, close: bool) -> bytes:
        """Return a whole response: head with its length, body, end.

        ``status`` is ``"200 OK"``. ``body`` is complete. Content-Length is added when it is missing and may be sent.
        For HEAD, 204 and 304 the body is dropped. ``close`` asks that the connection ends after this exchange.
        Raise ``LocalProtocolError`` for a status, name or value that may not be sent, and ``LengthMismatch`` when a
        Content-Length among ``fields`` is not the body's: nothing is changed then, and the driver sends it in pieces.
        """

    def format_head(self, status: str, fields: FieldList, close: bool) -> bytes:
        """Return the response head of a body that follows in pieces.

        Framing is chosen here: by the Content-Length among ``fields``, chunked, or the end of the connection.
        """

    def format_body(self, data: bytes) -> bytes:
        """Return one piece of body, framed. ``b""`` gives ``b""``. Never called for a response that has no body.

        ``format_frame(size)`` is used instead when the driver sends the piece itself (sendfile).
        """

    def format_frame(self, size: int) -> tuple[bytes, bytes] | None:
        """Return what goes before and after ``size`` body bytes that the driver sends by itself (``sendfile``).

        ``None`` when the wire cannot frame so many bytes in one piece: then ``format_body`` is used.
        """

    def format_end(self) -> bytes:
        """Return what ends a body sent in pieces."""

    def format_abort(self) -> bytes:
        """Return what tells the peer that a started response is incomplete (often nothing: the cut tells)."""

    def finish(self) -> bool:
        """End the exchange and forget everything of it. Return True when the connection can carry another request.

        An unread body that has arrived is discarded; one that has not makes the connection end, so that body bytes
        are never parsed as a request.
        """

    @property
    def peer_is_done(self) -> bool:
        """True when the peer has said, or its protocol says, that it sends nothing after the last request taken."""

    @property
    def announces_end(self) -> bool:
        """True when the peer is told, before or with a response, that its connection ends afterwards."""

    @property
    def cut_needs_reset(self) -> bool:
        """True when some peers can tell an incomplete response only by a connection reset (close-delimited HTTP).

        Where a connection cannot be reset, ``format_abort`` is what is left.
        """


WireFactory = Callable[..., Wire]
"""``factory(endpoint, peer, limits) -> Wire``: a wire for one connection; ``peer`` is the address as accepted."""


class Exchange(Protocol):
    """A request and its response, as an execution model sees it (RFC 9110 3.4).

    Either ``respond`` once, or ``start`` then ``write``/``send_file`` any number of times. What is not sent when the
    model returns is sent by the driver. Raising from a model is the driver's to log and to answer.
    """

    request: Request
    log: Log

    @property
    def committed(self) -> bool:
        """True once a byte of the response has gone to the peer: no other status can be sent any more."""

    @property
    def started(self) -> bool:
        """True once ``start`` or ``respond`` was called."""

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes of the request body, all of it for -1; ``b""`` at its end.

        Blocks within the time limits. Raise ``BodyIncomplete`` when the peer stops early.
        """

    def respond(self, status: str, fields: FieldList, body: bytes = b"") -> None:
        """Send a whole response, with one system call where its size allows."""

    def start(self, status: str, fields: FieldList) -> None:
        """Set the response head. It is sent with the first byte of body, or at the end."""

    def write(self, data: bytes) -> None:
        """Send a piece of body, and the head before it if it has not gone. Bytes beyond Content-Length are not sent."""

    def flush(self) -> None:
        """Send the head now, if it has not gone."""

    def send_file(self, file: IO[bytes], offset: int, count: int) -> None:
        """Send ``count`` bytes from ``offset`` of a file that has a descriptor, by ``sendfile`` where the wire allows.

        The file's own offset is not used and not changed.
        """

    def add_cleanup(self, function: Callable[[], object]) -> None:
        """Call ``function`` after the response, before the worker reports idle; last in, first out."""

    def recycle(self) -> None:
        """Ask that this worker be replaced once the exchange is over."""

    def redirect(self, path: str) -> None:
        """Run ``path`` of this server as a GET request in place of this one (RFC 3875 6.2.2). At most ten in a row."""

    def fileno(self) -> int:
        """The connection's descriptor, for models that watch for the peer going away; -1 when there is none."""


class ExecutionModel(Protocol):
    """What happens to run the application for one request. May not know which wire or process it is in."""

    name: str

    def load(self) -> None:
        """Import or compile the application. Called once in each serving process, before its first request.

        Raise ``LoadError`` when it cannot be.
        """

    def run(self, exchange: Exchange) -> None:
        """Run the application for one exchange."""

    def close(self) -> None:
        """Release what ``load`` and the runs hold; called once, when the serving process ends in order."""


class Slot(Protocol):
    """The serving process's line in the scoreboard; each call is a store to shared memory, never a system call."""

    def idle(self) -> None: ...
    def busy(self) -> None: ...
    def begin(self, method: str, target: str) -> None: ...
    def closing(self) -> None: ...
    def count_request(self, status: str) -> None: ...
    def count_refusal(self) -> None: ...


class Watch(Protocol):
    """Who may have to answer in a serving process's place; each call is a store to shared memory, as a slot's are."""

    def owe(self, fd: int, request_id: int) -> None: ...
    def answer(self) -> None: ...


class Board(Protocol):
    """The scoreboard, as a pool's doorman sees it."""

    def read_works(self, lines: int) -> list[tuple[int, int, int, int, int]]:
        """Return of each of the first lines: state, whether closing, requests, mark served, generation."""

    def write_taking(self, index: int, taking: bool) -> None: ...


class Door(Protocol):
    """What a pool's workers and its doorman share: see ``process.door``."""

    pool: str
    tally: Tally
    knocking: socket
    knocks: socket
    handing: socket
    handed: socket


StartResponse = Callable[..., Callable[[bytes], object]]
WSGIApplication = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]
