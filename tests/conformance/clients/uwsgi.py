"""The front server's side of the uwsgi protocol: a block of variables, then the body; the answer is in HTTP form."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from tests.conformance.clients.fastcgi import NO_INTERIM, NO_RAW, NO_VERSION
from tests.conformance.clients.scgi import SCGIClient
from tests.conformance.messages import Request


class UWSGIClient(SCGIClient):
    """See ``clients.Client``; one request a connection, as for SCGI."""

    wire = "uwsgi"
    lacks: Mapping[str, str] = {
        "raw": NO_RAW,
        "interim": NO_INTERIM,
        "version": NO_VERSION,
        "chunked": "the uwsgi protocol marks no end of a body without CONTENT_LENGTH",
    }

    def format(self, one: Request) -> bytes:
        """Return a packet with modifiers 0 and 0."""
        body = one.body or b""
        block = b"".join(
            struct.pack("<H", len(name)) + name + struct.pack("<H", len(value)) + value
            for name, value in self.plan_pairs(one, body)
        )
        return struct.pack("<BHB", 0, len(block), 0) + block + body
