"""flup's ``fcgi_app`` and ``scgi_app`` as clients, so that the two ends of a wire share no bug.

flup is a WSGI application that asks a gateway; here it is called with an environ made of the variables that nginx would
send. It needs ``flup==1.0.3``. It opens a connection for each request, and cannot tell a cut response from a whole one.
"""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.addresses import Address
from tests.conformance.clients.fastcgi import NO_INTERIM, NO_RAW, NO_VERSION
from tests.conformance.clients.variables import plan_variables
from tests.conformance.messages import Request, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tests.conformance.clients import Watch

NOTHING_SAID = b"200 OK"
"""The status that flup takes when there is none."""


def make_app(scheme: str, connect: Any) -> Any:
    """Return flup's application for a scheme, connecting by ``connect``: its own way needs Python 2's ``types``."""
    if scheme == "flup+fastcgi":
        from flup.client.fcgi_app import FCGIApp as App  # type: ignore[import-untyped]
    else:
        from flup.client.scgi_app import SCGIApp as App  # type: ignore[import-untyped]

    class ConnectingApp(App):  # type: ignore[misc]
        def _getConnection(self) -> socket.socket:
            made: socket.socket = connect()
            return made

    return ConnectingApp(connect=("unused", 0), filterEnviron=False)


class FlupClient:
    """See ``clients.Client``."""

    lacks: Mapping[str, str] = {
        "raw": NO_RAW,
        "interim": NO_INTERIM,
        "version": NO_VERSION,
        "chunked": "flup's clients send no body without CONTENT_LENGTH",
        "cut": "flup's clients cannot tell a cut response from a whole one",
        "stream": "flup's clients hold a response until it is whole",
    }

    def __init__(self, address: Address, limit: float) -> None:
        self.wire = address.scheme.replace("+", "-")
        self.address = address
        self.limit = limit

    def _connect(self) -> socket.socket:
        if not self.address.path:
            return socket.create_connection((self.address.host, self.address.port), self.limit)
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(self.limit)
        sock.connect(self.address.path)
        return sock

    def exchange(self, requests: Sequence[Request], watch: Watch) -> list[Response]:
        """Send each request on a connection of its own."""
        return [self._exchange_one(request) for request in requests]

    def _exchange_one(self, request: Request) -> Response:
        body = request.body or b""
        length = "" if request.body is None else str(len(body))
        errors = io.StringIO()
        environ: dict[str, Any] = dict(plan_variables(request, self.address, length))
        environ |= {"wsgi.input": io.BytesIO(body), "wsgi.errors": errors}
        heads: list[tuple[bytes, list[tuple[bytes, bytes]]]] = []
        try:
            # flup closes its socket only when all went well.
            with self._connect() as sock:
                app = make_app(self.address.scheme, lambda: sock)
                data = b"".join(app(environ, lambda status, fields: heads.append((status, fields))))
        except (OSError, EOFError, ValueError, struct.error) as error:
            return Response(fault=f"flup: {type(error).__name__}: {error}")
        if not heads or not (data or heads[0][1] or heads[0][0] != NOTHING_SAID):
            return Response(fault="flup: an empty answer")
        code, _, reason = heads[0][0].decode("latin-1").partition(" ")
        fields = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in heads[0][1])
        return Response(int(code), reason, fields, data, complete=True)
