"""Bounds on what a peer may make us hold or wait for; sizes in bytes, times in seconds.

Every limit is finite by default; ``0`` means unlimited, and is documented so on each directive.
"""

from __future__ import annotations

UNLIMITED = 1 << 62


class WireLimits:
    """Bounds of one connection's parser.

    ``request_line``: bytes of the request line with its CRLF. ``field``: bytes of one field line.
    ``fields``: number of field lines. ``head``: bytes of the whole request head.
    ``chunk_line``: bytes of one chunk-size line with its extensions. ``trailer``: bytes of the trailer section.
    ``body``: bytes of a request body. ``buffered_body``: bytes of body that are held before the application is called.
    Zero means unlimited, except for ``buffered_body`` (zero: call the application as soon as the head is there).
    ``shortest``: a head of at most so many bytes keeps every limit on bytes; parsers look closer only beyond.
    """

    __slots__ = (
        "body",
        "buffered_body",
        "chunk_line",
        "field",
        "fields",
        "head",
        "request_line",
        "shortest",
        "trailer",
    )

    def __init__(
        self,
        request_line: int = 8190,
        field: int = 8190,
        fields: int = 100,
        head: int = 65536,
        chunk_line: int = 4096,
        trailer: int = 8190,
        body: int = 1 << 30,
        buffered_body: int = 65536,
    ) -> None:
        self.request_line = request_line or UNLIMITED
        self.field = field or UNLIMITED
        self.fields = fields or UNLIMITED
        self.head = head or UNLIMITED
        self.chunk_line = chunk_line or UNLIMITED
        self.trailer = trailer or UNLIMITED
        self.body = body or UNLIMITED
        self.buffered_body = buffered_body
        self.shortest = min(self.request_line, self.field, self.head)


class TimeLimits:
    """Time limits of a connection, in seconds; 0 means none.

    ``head``: from the first byte of a request until its head is complete (absolute, not for each read).
    ``body``: the longest silence while a body is read. ``body_rate``: the least bytes a second of a body.
    ``send``: the longest time the peer may take no byte of a response. ``keep_alive``: how long an idle kept
    connection stays open. ``linger``: how long a closing connection is read, so that the peer sees the answer.
    """

    __slots__ = ("body", "body_rate", "head", "keep_alive", "linger", "send")

    def __init__(
        self,
        head: float = 10.0,
        body: float = 30.0,
        body_rate: int = 500,
        send: float = 60.0,
        keep_alive: float = 5.0,
        linger: float = 2.0,
    ) -> None:
        self.head = head
        self.body = body
        self.body_rate = body_rate
        self.send = send
        self.keep_alive = keep_alive
        self.linger = linger
