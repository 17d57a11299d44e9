"""The ``handler`` model: a persistent handler on a raw request object; nothing is built that it does not ask for.

``handler(request) -> int | None``: ``None`` or 0 sends what was written, another number answers with that status.
This is the fast end of the ladder, as mod_perl's ``modperl`` handler is.
"""

from __future__ import annotations

from gateways.core.errors import LocalProtocolError
from gateways.core.response import format_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

    from gateways.core.interfaces import Exchange
    from gateways.core.request import Fields

    Handler = Callable[["HandlerRequest"], int | None]

OK = "200 OK"
HELD = 65536
"""Bytes of body that are held back, so that a short response goes out whole with its length."""


class HandlerRequest:
    """A request and its response, for a handler.

    What the request carries is computed when it is first asked for. The response goes out when the handler returns, or
    as soon as ``flush`` is called or more than 64 KiB were written; from then on its status and fields are fixed.
    """

    __slots__ = ("_exchange", "_fields", "_held", "_request", "_size", "_status", "_streaming")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._request = exchange.request
        self._status = OK
        self._fields: list[tuple[str, str]] = []
        self._held: list[bytes] = []
        self._size = 0
        self._streaming = False

    @property
    def method(self) -> str:
        """The method token (``"GET"``)."""
        return self._request.method

    @property
    def target(self) -> str:
        """The request-target as sent."""
        return self._request.target

    @property
    def path_info(self) -> str:
        """The decoded path below the mount."""
        return self._request.path_info

    @property
    def script_name(self) -> str:
        """The path of the mount."""
        return self._request.script_name

    @property
    def query(self) -> str:
        """The query, undecoded; ``""`` when there is none."""
        return self._request.query

    @property
    def protocol(self) -> str:
        """``"HTTP/1.1"``."""
        return self._request.protocol

    @property
    def content_length(self) -> int | None:
        """Bytes of body; 0 for none, ``None`` when only its end will tell."""
        return self._request.content_length

    @property
    def fields(self) -> Fields:
        """The request's fields (``fields.get("user-agent")``)."""
        return self._request.fields

    @property
    def metavariables(self) -> dict[str, str]:
        """The CGI meta-variables."""
        return self._request.metavariables

    @property
    def remote_address(self) -> str:
        """The peer's address; ``""`` for a UNIX socket."""
        return self._request.remote_address

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes of the body, all of it for -1; ``b""`` at its end."""
        return self._exchange.read(size)

    @property
    def status(self) -> int:
        """The response's status code."""
        return int(self._status[:3])

    @status.setter
    def status(self, code: int) -> None:
        self._status = format_status(code)

    def set_field(self, name: str, value: str) -> None:
        """Set a response field, in place of any of that name."""
        fields = self._fields
        if fields:
            lower = name.lower()
            fields[:] = [pair for pair in fields if pair[0].lower() != lower]
        fields.append((name, value))

    def add_field(self, name: str, value: str) -> None:
        """Add a response field, beside any of that name."""
        self._fields.append((name, value))

    def write(self, data: bytes) -> None:
        """Add to the response body."""
        if self._streaming:
            self._exchange.write(data)
            return
        self._held.append(data)
        self._size += len(data)
        if self._size > HELD:
            self.flush()

    def flush(self) -> None:
        """Send the head, and the body so far."""
        exchange = self._exchange
        if not self._streaming:
            self._streaming = True
            exchange.start(self._status, self._fields)
            body = b"".join(self._held)
            self._held = []
            if body:
                exchange.write(body)
        exchange.flush()

    def send_file(self, file: IO[bytes], offset: int = 0, count: int | None = None) -> None:
        """Send ``count`` bytes (None: all) of a file with a descriptor from ``offset``, by ``sendfile``."""
        import os

        if count is None:
            count = max(os.fstat(file.fileno()).st_size - offset, 0)
        if not self._streaming:
            if not self._held and not any(name.lower() == "content-length" for name, _ in self._fields):
                self.add_field("Content-Length", str(count))
            self._streaming = True
            self._exchange.start(self._status, self._fields)
            if self._held:
                self._exchange.write(b"".join(self._held))
        self._exchange.send_file(file, offset, count)

    def redirect(self, path: str) -> None:
        """Let another path of this server answer, as GET."""
        self._streaming = True
        self._exchange.redirect(path)

    def add_cleanup(self, function: Callable[[], object]) -> None:
        """Call ``function`` after the response, before the worker reports idle."""
        self._exchange.add_cleanup(function)

    def recycle(self) -> None:
        """Ask that this worker be replaced after this request."""
        self._exchange.recycle()

    def finish(self, code: int | None) -> None:
        """Send what the handler left: ``code`` is what it returned."""
        if self._streaming:
            return
        held = self._held
        if code and not held:
            self._status = format_status(code)
            held = [f"{self._status}\n".encode()]
            self.set_field("Content-Type", "text/plain; charset=utf-8")
        elif code:
            self._status = format_status(code)
        self._exchange.respond(self._status, self._fields, held[0] if len(held) == 1 else b"".join(held))


class HandlerModel:
    """Calls ``handler(request)``. ``loader`` returns the handler; see ``execution.loading``."""

    name = "handler"

    def __init__(self, loader: Callable[[], Handler]) -> None:
        self._loader = loader

    def load(self) -> None:
        """Import the handler."""
        self._handler = self._loader()

    def close(self) -> None:
        """Nothing is held beyond the process."""

    def run(self, exchange: Exchange) -> None:
        """Call the handler and send what it wrote."""
        request = HandlerRequest(exchange)
        code: Any = self._handler(request)
        if code is not None and not (isinstance(code, int) and (code == 0 or 200 <= code <= 599)):
            raise LocalProtocolError(f"a handler returns None or a status code, not {code!r}")
        request.finish(code)
