"""What the connection loop does with a wire, without sockets, with an assertion wherever the contract promises one.

The order of calls is that of ``gateways.serve``; the contract is ``gateways.core.interfaces.Wire``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gateways.core.errors import BodyIncomplete, RemoteProtocolError
from gateways.core.interfaces import Wire
from gateways.core.mounts import Mount, MountTable
from gateways.core.request import Request
from gateways.core.response import format_status, has_body
from tests.fuzz.choices import ABORT, EARLY, WHOLE, Answer, Choices
from tests.fuzz.replies import Reply
from tests.fuzz.targets import Target

FIELDS = [("Content-Type", "text/plain"), ("X-Two", "a"), ("X-Two", "b")]
SERVER_FIELDS = [("Content-Type", "text/plain")]
MOUNTS = MountTable([Mount("/app", None), Mount("", None)])  # type: ignore[arg-type]
REQUIRED = (
    "GATEWAY_INTERFACE", "PATH_INFO", "QUERY_STRING", "REMOTE_ADDR", "REQUEST_METHOD", "SCRIPT_NAME", "SERVER_NAME",
    "SERVER_PORT", "SERVER_PROTOCOL", "SERVER_SOFTWARE",
)  # fmt: skip
NEVER_EMPTY = ("REQUEST_METHOD", "SERVER_NAME", "SERVER_PORT")
INCOMPLETE = "the input ended within a body"
_PAGE = bytes(range(256)) * 300


class Call(NamedTuple):
    """One call of the application that read its body as far as it wanted: what it saw."""

    path: str
    head: tuple[object, ...]
    body: bytes


class Outcome(NamedTuple):
    """``calls``; what was ``sent``; the ``error`` that ended the connection; whether it could carry more at the end."""

    calls: list[Call]
    sent: bytes
    error: object
    open: bool


class Player:
    """Plays one connection. ``feed`` takes each piece of input, and ``b""`` at its end.

    ``open``: the loop would read more. ``over``: the wire has said that it takes no other request.
    """

    def __init__(self, target: Target, choices: Choices) -> None:
        self.target = target
        self.choices = choices
        self.wire: Wire = target.make(choices)
        self.calls: list[Call] = []
        self.sent: list[bytes] = []
        self.error: object = None
        self.open = True
        self.over = False
        self.received = 0
        self.steps = 0
        self._request: Request | None = None
        self._running: Iterator[None] | None = None
        self._began = 0

    def feed(self, piece: bytes) -> None:
        """Give the wire a piece of input and do all that can be done then."""
        if not self.open:
            return
        self.wire.receive(piece)
        self.received += len(piece)
        try:
            while self._step(end=not piece):
                self.steps += 1
                assert self.steps <= self.received, "the wire makes requests of nothing"
        except RemoteProtocolError as error:
            self._refuse(error)
            return
        if self.open and piece:
            self._send(self.wire.take_output())
            held, bound = self.wire.buffered, self.target.bound(self.choices)
            assert held <= bound, f"{held} bytes are held while more is awaited, {bound} may be"
        else:
            self.open = False

    @property
    def is_idle(self) -> bool:
        """True when nothing of a request is there."""
        return self.open and self._request is None and not self.wire.has_partial_request and not self.wire.buffered

    def _send(self, data: bytes) -> None:
        if data:
            self.sent.append(data)

    def _step(self, end: bool) -> bool:
        """Take a request as far as it goes. False when more input is needed, or the connection is done with."""
        wire = self.wire
        request = self._request
        if request is None:
            self._request = request = wire.take_request()
            if request is None:
                return False
            assert not wire.has_partial_request
            self._began = self.received - wire.buffered
        if self._running is None:
            if request.content_length != 0 and not wire.body_ready():
                if end:
                    self.error = INCOMPLETE
                return False
            self._running = self._run(request)
        for _ in self._running:
            assert not end, "the wire wants more after the end of input"
            self._send(wire.take_output())
            return False
        self._request = self._running = None
        if self.open and not wire.buffered:
            assert not wire.take_output(), "something is left to send, and nobody will ask for it"
        return self.open and wire.buffered > 0

    # The application.

    def _run(self, request: Request) -> Iterator[None]:
        """One exchange; yields when it needs more input."""
        choices, answer = self.choices, self.choices.answer
        head = self._look_at(request)
        begun = choices.first and answer.kind != WHOLE
        response = self._begin(answer) if begun else []
        body = bytearray()
        failed: BodyIncomplete | RemoteProtocolError | None = None
        try:
            yield from self._read(body)
        except (BodyIncomplete, RemoteProtocolError) as error:
            failed = error
        if failed is not None:
            self._fail(failed, response, begun)
            return
        self.calls.append(Call(request.path, head, bytes(body)))
        if choices.reads_all:
            assert self.wire.body_complete()
            assert self.wire.take_body(5) == b""
        response += self._answer(answer, request.method, begun)
        aborted = answer.kind == ABORT
        carries = has_body(request.method, answer.code)
        body_sent = page(answer.size - 3 if aborted else answer.size) if carries else b""
        reply = self._check(response, request.method, answer.code, body_sent)
        if carries and reply.status:
            assert reply.whole is not True if aborted and not answer.stated else reply.whole is not aborted
        self._finish(request, answer.close or aborted, reply)

    def _read(self, body: bytearray) -> Iterator[None]:
        size = self.choices.read
        while size:
            if self.choices.early:
                size = min(size, EARLY - len(body))
                if not size:
                    return
            piece = self.wire.take_body(size)
            if piece is None:
                yield
                continue
            if not piece:
                return
            assert len(piece) <= size
            body += piece

    def _look_at(self, request: Request) -> tuple[object, ...]:
        """Return what an application can see of a request's head, and check what is promised of it."""
        MOUNTS.take(request)
        try:
            variables = request.metavariables
        except RemoteProtocolError as error:
            assert self.choices.trusted
            return request.method, request.target, str(error)
        fields = request.fields
        for name, value in variables.items():
            assert name
            assert "\0" not in value, name
            value.encode("latin-1")
        assert "HTTP_PROXY" not in variables
        assert "Proxy" not in fields
        assert all(name in variables for name in REQUIRED)
        assert all(variables[name] for name in NEVER_EMPTY)
        assert not request.path or request.path[0] in "/*" or request.method == "CONNECT", request.path
        assert request.scheme in ("http", "https")
        length, text = request.content_length, variables.get("CONTENT_LENGTH", "")
        assert length is None or length >= 0
        if length is not None and variables.get("FCGI_ROLE") in (None, "RESPONDER"):
            assert int(text or "0") == length
        pairs = list(fields)
        if not self.choices.waits:
            # Whether the length of a body that did not state it is known at this moment is a matter of timing.
            variables = {name: value for name, value in variables.items() if name != "CONTENT_LENGTH"}
            pairs = [pair for pair in pairs if pair[0].lower() != "content-length"]
        return (
            request.method, request.target, request.path_info, request.script_name, request.query, request.protocol,
            request.remote_address, sorted(variables.items()), pairs,
        )  # fmt: skip

    # The response.

    def _begin(self, answer: Answer) -> list[bytes]:
        fields = [*FIELDS, ("Content-Length", str(answer.size))] if answer.stated else FIELDS
        return [self.wire.format_head(answer.status, fields, answer.close)]

    def _answer(self, answer: Answer, method: str, begun: bool) -> list[bytes]:
        """Return the bytes of an answer; its head has gone when it was begun."""
        wire = self.wire
        if answer.kind == WHOLE:
            return [wire.format_response(answer.status, FIELDS, page(answer.size), answer.close)]
        pieces = [] if begun else self._begin(answer)
        data = page(answer.size)
        if not has_body(method, answer.code):
            data = b""
        elif answer.kind == ABORT:
            data = data[:-3]
        third = len(data) // 3
        for piece in (data[:third], b"", data[third:]) if third else (data,):
            frame = wire.format_frame(len(piece)) if piece and len(piece) % 2 else None
            pieces += [wire.format_body(piece)] if frame is None else [frame[0], piece, frame[1]]
        if answer.kind == ABORT:
            return [*pieces, self._abort()]
        return [*pieces, wire.format_end()]

    def _abort(self) -> bytes:
        """Return what tells that a response was cut: nothing where a reset does, which a UNIX socket cannot send."""
        resets = self.wire.cut_needs_reset and not self.choices.loose
        return b"" if resets else self.wire.format_abort()

    def _check(self, response: list[bytes], method: str, status: int, body: bytes) -> Reply:
        """Send a response, and check that the peer reads what was meant."""
        data = b"".join(response)
        self._send(data)
        reply = self.target.read_reply(data, method)
        if reply.status:
            assert reply.status == status
            assert reply.body == body
        return reply

    def _fail(self, error: BodyIncomplete | RemoteProtocolError, response: list[bytes], begun: bool) -> None:
        """Answer a request whose body cannot be read, as the loop does; the connection ends."""
        if isinstance(error, RemoteProtocolError) and "ended" not in error.message:
            self.error = describe(error)
            status, text = error.status, error.message
        else:
            self.error = INCOMPLETE
            status, text = 408, ""
        wire = self.wire
        if not begun:
            response = [format_error(wire, status, text)]
        else:
            response = [*response, self._abort()]
        self._send(b"".join(response))
        assert self._request is not None
        kept = wire.finish()
        assert not (kept and self.target.closes), "an error was answered, and the wire goes on"
        self.over = not kept
        self.open = False

    def _finish(self, request: Request, last: bool, reply: Reply) -> None:
        wire = self.wire
        kept = wire.finish()
        assert not kept or self.target.keeps
        assert not (kept and last and self.target.closes)
        assert reply.keep is None or (reply.keep and not last) == (kept and not last), (reply.keep, kept)
        if kept:
            assert reply.whole, "a connection is kept behind a response that has no end"
            assert not wire.has_partial_request or wire.buffered
            if self.target.exact and request.content_length is not None:
                assert self.received - wire.buffered == self._began + request.content_length
        self.over = not kept
        self.open = kept and not last

    def _refuse(self, error: RemoteProtocolError) -> None:
        """Answer what broke the rules, as the loop does; no later byte is parsed."""
        assert 400 <= error.status <= 505
        assert error.section
        assert error.message
        ended = self._request is not None and "ended" in error.message
        self.error = INCOMPLETE if ended else describe(error)
        method = self._request.method if self._request is not None else "GET"
        data = format_error(self.wire, error.status, error.message)
        self._send(data)
        if data:
            reply = self.target.read_reply(data, method)
            assert reply.status in (0, error.status)
            assert not reply.keep
        self.over = True
        self.open = False


def describe(error: RemoteProtocolError) -> object:
    """What must not depend on how the input was cut."""
    return error.status, error.section, error.message


def format_error(wire: Wire, status: int, message: str) -> bytes:
    """The error page of the loop."""
    body = f"{format_status(status)}\n{message}\n".encode("ascii", "backslashreplace")
    return wire.format_response(format_status(status), SERVER_FIELDS, body, True)


def page(size: int) -> bytes:
    """The body of an answer."""
    return _PAGE[:size]


def play(target: Target, choices: Choices, pieces: list[bytes]) -> tuple[Outcome, Player]:
    """Feed the pieces, and the end of input where that was chosen."""
    player = Player(target, choices)
    for piece in pieces:
        player.feed(piece)
    sent = b"".join(player.sent)
    still = player.open
    if choices.end and player.open:
        player.feed(b"")
        sent = b"".join(player.sent)
    return Outcome(player.calls, sent, player.error, still), player
