"""A script's output on its way to the exchange: held while short, streamed when flushed or long.

Knows documents and exchanges; does not know what wrote the bytes.
"""

from __future__ import annotations

from gateways.core.document import DocumentParser, Kind
from gateways.core.errors import GatewayError, ScriptError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.document import Document
    from gateways.core.interfaces import Exchange

LOCAL_REDIRECT = Kind.LOCAL_REDIRECT  # each look at a member through its class runs code of the enum's
HOLD = 65536
"""Bytes of output that are held so that a short document is answered whole, with its length."""


class Reply:
    """Takes the output of one run and answers the exchange. ``name``: the script's path, for what is raised.

    A fault of the exchange or of the document is kept and raised by every later call: a script that catches what its
    ``print`` raised must not get a broken page out.
    """

    __slots__ = ("_answered", "_body", "_exchange", "_failure", "_held", "_name", "_parser", "_sending", "_size")

    def __init__(self, exchange: Exchange, name: str) -> None:
        self._exchange = exchange
        self._name = name
        self._failure: GatewayError | None = None
        self._parser = DocumentParser()
        self._held: list[bytes] = []
        self._body: list[bytes] = []
        self._size = 0
        self._sending = False
        self._answered = False

    def write(self, data: bytes) -> None:
        """Take output. Raise ``ScriptError`` when it can be no document, or what the exchange raises."""
        self._held.append(data)
        self._size += len(data)
        if self._size > HOLD or self._sending or self._failure is not None:
            self.flush()

    def is_waiting(self) -> bool:
        """True when there is a head that may be sent and was not. Raise ``ScriptError`` when there never will be."""
        self.raise_failure()
        try:
            document = None if self._sending else self._parse()
            return document is not None and document.body_allowed
        except GatewayError as error:
            self._keep(error)
            raise

    def flush(self) -> None:
        """Send what is held, if the head is complete: the script asked for it, or goes on, or there is much."""
        if self._failure is not None:
            raise self._failure
        try:
            document = self._parse()
            if document is not None and document.body_allowed:
                self._send(document)
        except GatewayError as error:
            self._keep(error)
            raise

    def finish(self) -> None:
        """Answer with what is there; the output has ended. Raise ``ScriptError`` when it was no document."""
        if self._failure is not None:
            raise self._failure
        if self._answered:
            return
        try:
            self._parse()
            document = self._parser.finish()
        except GatewayError as error:
            self._keep(error)
            raise
        if document.kind is LOCAL_REDIRECT:
            self._exchange.redirect(document.location)
        elif self._sending:
            self._send(document)
        else:
            self._exchange.respond(document.status, document.fields, b"".join(self._body))

    def raise_failure(self) -> None:
        """Raise what went wrong before, if anything did."""
        if self._failure is not None:
            raise self._failure

    def _keep(self, error: GatewayError) -> None:
        if self._failure is None and isinstance(error, ScriptError):
            error.message = f"{self._name}: {error.message}"
            error.args = (error.message,)
        self._failure = error

    def _parse(self) -> Document | None:
        """Give the parser what came; return the head, once it is complete."""
        held = self._held
        if held:
            body = self._parser.receive(held[0] if len(held) == 1 else b"".join(held))
            held.clear()
            if body:
                self._body.append(body)
        return self._parser.document

    def _send(self, document: Document) -> None:
        """Send what is there of the body, and the head before it; from now on output is passed on as it comes.

        A body that has reached its Content-Length is a whole response, and leaves as one.
        """
        body = b"".join(self._body)
        self._body.clear()
        self._size = 0
        begun, self._sending = self._sending, True
        if document.kind is LOCAL_REDIRECT or self._answered:
            return
        if not begun and body and document.length == len(body):
            self._answered = True
            self._exchange.respond(document.status, document.fields, body)
            return
        if not begun:
            self._exchange.start(document.status, document.fields)
        if body:
            self._exchange.write(body)
        else:
            self._exchange.flush()
