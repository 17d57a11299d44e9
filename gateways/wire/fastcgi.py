"""The ``fastcgi`` wire: FastCGI 1.0, one request at a time on a connection that may be kept.

Knows records, streams and the three roles; no socket, no clock, no log, no application.

- Responder and Authorizer requests are served alike; FCGI_ROLE among the variables tells them apart.
- A Filter's body is its STDIN followed by its DATA stream; CONTENT_LENGTH and FCGI_DATA_LENGTH tell where one ends.
- Body bytes are never looked at as records: a connection is kept only when the whole body has arrived, and what is left
  of its stream is dropped record by record.
- A response that cannot be completed gets no END_REQUEST: nginx, Apache, lighttpd and HAProxy all take END_REQUEST for
  success, whatever its application status, and the early end of the connection for failure (``format_abort``).

Section numbers are those of the FastCGI Specification 1.0.
"""

from __future__ import annotations

from gateways.core.errors import RemoteProtocolError
from gateways.core.response import format_document, format_document_head, format_fields
from gateways.wire.fastcgi_input import FastCGIInput
from gateways.wire.fastcgi_records import (
    FULL_CONTENT,
    HEADER,
    MAX_CONTENT,
    PADS,
    STDERR,
    STDOUT,
    VERSION,
    format_completion,
    format_end_request,
    format_stream,
    format_unknown_type,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import FieldList

_PADS_AND_COMPLETION = tuple(pad + format_completion(1) for pad in PADS)
"""What follows a response in one record to request 1: every front server that does not multiplex uses that id."""


class FastCGIWire(FastCGIInput):
    """See ``core.interfaces.Wire``. The input side is ``FastCGIInput``; this is what answers it."""

    __slots__ = ()

    cut_needs_reset = True
    announces_end = False
    # A client may end a DATA stream after the request (flup's does), which nobody here waits for.
    peer_is_done = False

    def _forget(self) -> None:
        super()._forget()
        self._responded = False
        self._errors_sent = False

    def format_response(self, status: str, fields: FieldList, body: bytes, close: bool) -> bytes:
        """Return a whole response: STDOUT records, then END_REQUEST; before them what waits to be sent.

        Only what waits when there is no request to answer, and a plain HTTP response to one who speaks HTTP here.
        """
        request_id = self.request_id
        if not request_id or self._responded:
            return self.take_output() + (self._format_http(status, fields, body) if self._speaks_http else b"")
        if self._aborted:
            return self.take_output() + self.format_end()
        request = self._request
        head, body = format_document(status, fields, body, request.method if request is not None else "GET")
        size = len(head) + len(body)
        self._responded = True
        if request_id == 1 and size <= FULL_CONTENT and not self._errors_sent:
            pad = -size & 7
            data = b"".join((HEADER.pack(VERSION, STDOUT, 1, size, pad), head, body, _PADS_AND_COMPLETION[pad]))
        else:
            pieces = format_stream(STDOUT, request_id, head) + format_stream(STDOUT, request_id, body)
            data = b"".join((*pieces, self._format_completion()))
        return self.take_output() + data if self._output else data

    def _format_http(self, status: str, fields: FieldList, body: bytes) -> bytes:
        self._speaks_http = False
        return f"HTTP/1.0 {status}\r\n{format_fields(fields)[0]}Connection: close\r\n\r\n".encode("latin-1") + body

    def _format_completion(self) -> bytes:
        if self._errors_sent:
            return HEADER.pack(VERSION, STDERR, self.request_id, 0, 0) + format_completion(self.request_id)
        return format_completion(self.request_id)

    def format_head(self, status: str, fields: FieldList, close: bool) -> bytes:
        """Return the response head as a STDOUT record."""
        if self._aborted or self._responded:
            return self.take_output()
        head = format_document_head(status, fields, None)
        return self.take_output() + b"".join(format_stream(STDOUT, self.request_id, head))

    def format_body(self, data: bytes) -> bytes:
        """Return one piece of body as STDOUT records."""
        if self._aborted or self._responded:
            return b""
        return b"".join(format_stream(STDOUT, self.request_id, data))

    def format_frame(self, size: int) -> tuple[bytes, bytes] | None:
        """Return the header of one STDOUT record, which needs no padding; ``None`` for more than it can hold."""
        if size > MAX_CONTENT or self._aborted or self._responded:
            return None
        return HEADER.pack(VERSION, STDOUT, self.request_id, size, 0), b""

    def format_end(self) -> bytes:
        """Return the end of STDOUT and END_REQUEST, once."""
        if self._responded:
            return b""
        self._responded = True
        if self._aborted:
            return format_end_request(self.request_id, 0, 0)
        return self._format_completion()

    def format_abort(self) -> bytes:
        """Return what shows that the response is incomplete, where the connection cannot be reset (a UNIX socket).

        The end of the connection without END_REQUEST should tell. But nginx takes it for the end of the response where
        it keeps no connections or does not buffer, and its client waits for ever when a length was stated. A
        management record makes it see the fault. It is second to a reset, because to Caddy whatever comes is body.
        A front that gave up gets its answer.
        """
        if self._aborted:
            return self.format_end()
        self._responded = True
        self._keep = False
        return format_unknown_type(0)

    def format_error_text(self, text: str) -> bytes:
        """Return ``text`` as STDERR records for the front server's error log (section 5.3); ``""`` gives ``b""``.

        Text of two calls is not told apart by the front server unless it ends in a newline.
        """
        if self._aborted or self._responded or not text:
            return b""
        self._errors_sent = True
        return b"".join(format_stream(STDERR, self.request_id, text.encode("utf-8", "backslashreplace")))

    def finish(self) -> bool:
        """End the exchange. Return True when the front keeps the connection and the whole body has come."""
        if not self._complete or not (self._keep or self._ended):
            try:
                self._parse(to_end=not self._keep)
            except RemoteProtocolError:
                pass  # the connection is closed, and nobody waits for this body
        keep = self._keep and self._responded and self._complete and not self._eof
        if not keep:
            self._closed = True
        if self._at == len(self._buffer):
            # An idle connection holds nothing of what it has received.
            self._buffer = b""
            self._at = 0
        self._forget()
        return keep
