"""Clients for the table, one a wire, written from the specifications and apart from ``gateways``.

A client has ``wire`` (its name), ``lacks`` (what it cannot do, each with a sentence), ``exchange(requests, watch)``
and, for HTTP, ``send_raw(data, half_close)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tests.conformance.addresses import Address
from tests.conformance.messages import Request, Response

Watch = Callable[[bytes], None]
"""Called with the body so far each time that some of it has come."""


class Client(Protocol):
    """What the runner asks of a client."""

    wire: str
    lacks: Mapping[str, str]

    def __init__(self, address: Address, limit: float) -> None:
        """``limit``: seconds that any one exchange may take."""

    def exchange(self, requests: Sequence[Request], watch: Watch) -> list[Response]:
        """Send requests one after the other, on one connection where the wire keeps it; raise ``OSError``."""


def make_client(address: Address, limit: float) -> Client:
    """Return the client for an address's scheme."""
    from tests.conformance.clients.ajp import AJPClient
    from tests.conformance.clients.fastcgi import FastCGIClient
    from tests.conformance.clients.http import HTTPClient
    from tests.conformance.clients.scgi import SCGIClient
    from tests.conformance.clients.uwsgi import UWSGIClient

    if address.scheme.startswith("flup+"):
        from tests.conformance.clients.flup_clients import FlupClient

        return FlupClient(address, limit)
    classes: dict[str, type[Client]] = {
        "http": HTTPClient, "fastcgi": FastCGIClient, "scgi": SCGIClient, "uwsgi": UWSGIClient, "ajp": AJPClient,
    }  # fmt: skip
    return classes[address.scheme](address, limit)
