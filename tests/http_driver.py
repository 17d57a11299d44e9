"""What a driver does with an HTTP wire, without sockets: for the tests of the wire, and of both corpora."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gateways.core.errors import BodyIncomplete, RemoteProtocolError
from gateways.core.limits import WireLimits
from gateways.core.request import Endpoint, FieldRequest
from gateways.wire.http import HTTPWire

ENDPOINT = Endpoint("server.example", "8080")
PEER = ("127.0.0.1", 40000)
INCOMPLETE = RemoteProtocolError("the input ended in the middle of a request body", 400, "RFC 9112 8")
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


def make_wire(**limits: int) -> HTTPWire:
    """Return a wire with these limits and the date of RFC 9110 5.6.7."""
    return HTTPWire(ENDPOINT, PEER, WireLimits(**limits), lambda: DATE)


class Outcome(NamedTuple):
    """What the application saw, what the client was sent, and how the connection stands at the end."""

    requests: list[tuple[FieldRequest, bytes]]
    error: RemoteProtocolError | None
    kept: bool
    """The connection could carry another request."""
    sent: bytes

    @property
    def seen(self) -> tuple[object, ...]:
        """What must not depend on how the input was cut."""
        error = self.error
        requests = [
            (r.method, r.target, r.path, r.query, r.protocol, tuple(r.field_list), body) for r, body in self.requests
        ]
        return requests, error and (error.status, error.section, error.message), self.kept


def drive(wire: HTTPWire, pieces: Iterable[bytes], end: bool = True) -> Outcome:
    """Feed the pieces, call an application that reads all and answers ``ok``, as a driver would.

    ``end``: the peer closes its side after the last piece.
    """
    requests: list[tuple[FieldRequest, bytes]] = []
    sent = b""
    current: FieldRequest | None = None
    body = bytearray()
    running = False
    for piece in [*pieces, b""] if end else pieces:
        wire.receive(piece)
        try:
            while True:
                current = current or wire.take_request()
                if current is None:
                    break
                running = running or wire.body_ready()
                if not running:
                    break
                while data := wire.take_body(1000):
                    body += data
                sent += wire.take_output()
                if data is None:
                    break
                requests.append((current, bytes(body)))
                sent += wire.format_response("200 OK", [], b"ok", False)
                if not wire.finish():
                    return Outcome(requests, None, False, sent)
                current, running = None, False
                body.clear()
        except (RemoteProtocolError, BodyIncomplete) as raised:
            # Whether an incomplete body is seen before or after the application was called is a matter of timing.
            error = raised if isinstance(raised, RemoteProtocolError) else INCOMPLETE
            sent += wire.format_response(f"{error.status} Refused", [], str(error).encode(), True)
            assert not wire.finish()
            return Outcome(requests, error, False, sent)
    return Outcome(requests, None, True, sent)


def feed(data: bytes, end: bool = True, **limits: int) -> Outcome:
    """Feed ``data`` whole."""
    return drive(make_wire(**limits), [data], end)


def cut_everywhere(data: bytes) -> list[bytes]:
    """Return ``data`` one byte at a time."""
    return [data[i : i + 1] for i in range(len(data))]


def cut_at_line_ends(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield ``data`` in two pieces, cut before and after every CR and LF."""
    places = {place for i, octet in enumerate(data) if octet in b"\r\n" for place in (i, i + 1)}
    for place in sorted(places - {0, len(data)}):
        yield data[:place], data[place:]
