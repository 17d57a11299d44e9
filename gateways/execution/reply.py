"""A script's output on its way to the exchange: held while short, streamed when flushed or long.

Knows documents and exchanges; does not know what wrote the bytes.
"""

from __future__ import annotations

from gateways.core.document import DocumentParser, Kind
from gateways.core.errors import GatewayError, ScriptError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import Exchange

HOLD = 65536
"""Bytes of body that are held so that a short document is answered whole, with its length."""


class Reply:
    """Takes the output of one run and answers the exchange. ``name``: the script's path, for what is raised.

    A fault of the exchange or of the document is kept and raised by every later call: a script that catches what its
    ``print`` raised must not get a broken page out.
    """

    __slots__ = ("_body", "_exchange", "_failure", "_held", "_name", "_parser", "streaming")

    def __init__(self, exchange: Exchange, name: str) -> None:
        self._exchange = exchange
        self._name = name
        self._parser = DocumentParser()
        self._body: list[bytes] = []
        self._held = 0
        self._failure: GatewayError | None = None
        self.streaming = False

    @property
    def head_complete(self) -> bool:
        """True once the whole head was taken, so that ``flush`` can send."""
        return self._parser.document is not None

    def write(self, data: bytes) -> None:
        """Take output. Raise ``ScriptError`` when it can be no document, or what the exchange raises."""
        self.raise_failure()
        try:
            body = self._parser.receive(data)
            if not body:
                return
            if self.streaming:
                self._send(body)
                return
            self._body.append(body)
            self._held += len(body)
            if self._held > HOLD:
                self._stream()
        except GatewayError as error:
            self._keep(error)
            raise

    def flush(self) -> None:
        """Send what is held, if the head is complete: the script asked for it or will take its time."""
        self.raise_failure()
        if self.streaming or self._parser.document is None or not self._parser.document.complete:
            return
        try:
            self._stream()
            if self._parser.document.kind is not Kind.LOCAL_REDIRECT:
                self._exchange.flush()
        except GatewayError as error:
            self._keep(error)
            raise

    def finish(self) -> None:
        """Answer with what is there; the output has ended. Raise ``ScriptError`` when it was no document."""
        self.raise_failure()
        try:
            document = self._parser.finish()
        except GatewayError as error:
            self._keep(error)
            raise
        if document.kind is Kind.LOCAL_REDIRECT:
            self._exchange.redirect(document.location)
        elif not self.streaming:
            self._exchange.respond(document.status, document.fields, b"".join(self._body))

    def raise_failure(self) -> None:
        """Raise what went wrong before, if anything did."""
        if self._failure is not None:
            raise self._failure

    def _keep(self, error: GatewayError) -> None:
        self._failure = error
        if isinstance(error, ScriptError):
            error.message = f"{self._name}: {error.message}"
            error.args = (error.message,)

    def _stream(self) -> None:
        """Start the response with what is held; from now on output is passed on as it comes."""
        document = self._parser.document
        if document is None:
            return
        self.streaming = True
        body, self._body = self._body, []
        if document.kind is not Kind.LOCAL_REDIRECT:
            self._exchange.start(document.status, document.fields)
            if body:
                self._exchange.write(b"".join(body))

    def _send(self, body: bytes) -> None:
        document = self._parser.document
        if document is not None and document.kind is not Kind.LOCAL_REDIRECT:
            self._exchange.write(body)
