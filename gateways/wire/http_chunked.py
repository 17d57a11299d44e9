"""The chunked transfer coding, strictly (RFC 9112 7.1): coded bytes in, body bytes out.

Knows no request and no connection. Trailer fields are checked, bounded and dropped.
"""

from __future__ import annotations

import re

from gateways.core.errors import RemoteProtocolError
from gateways.wire.http_head import TOKEN, find_fields, refuse_field_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gateways.core.limits import WireLimits

_QUOTED = r'"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*+"'
_EXTENSION = rf"[ \t]*+;[ \t]*+{TOKEN}++(?:[ \t]*+=[ \t]*+(?:{TOKEN}++|{_QUOTED}))?+"
_SIZE_LINE = re.compile(rf"([0-9A-Fa-f]{{1,16}}+)((?:{_EXTENSION})*+)\r\n".encode("latin-1"))
_FORBIDDEN = frozenset({"content-length", "transfer-encoding", "host"})
_EXTENSION_LINES = 4
"""All chunk extensions of a body together may be as long as this many longest chunk-size lines."""


class ChunkedDecoder:
    """One chunked body. ``feed`` takes coded bytes, ``take`` gives decoded ones.

    ``complete``: the whole body has been decoded. ``held``: decoded bytes that were not taken.
    """

    __slots__ = ("_data", "_extensions", "_left", "_limits", "_step", "_total", "_trailer", "_trailers", "complete")

    def __init__(self, limits: WireLimits) -> None:
        self._limits = limits
        self._data = bytearray()
        self._left = 0
        self._total = 0
        self._extensions = 0
        self._trailer = 0
        self._trailers = 0
        # A plain function, not a bound method: a decoder is in no reference cycle.
        self._step: Callable[[ChunkedDecoder, bytes | bytearray, int], int] = ChunkedDecoder._decode_size
        self.complete = False

    @property
    def held(self) -> int:
        """Decoded bytes that were not taken yet."""
        return len(self._data)

    def feed(self, data: bytes | bytearray) -> int:
        """Decode what is there; return the number of bytes consumed. Bytes after the body are not.

        Give the rest again, with more behind it. Raise ``RemoteProtocolError`` for a malformed or too long body.
        """
        position = 0
        while not self.complete:
            after = self._step(self, data, position)
            if after == position:
                break
            position = after
        return position

    def take(self, size: int) -> bytes:
        """Return, and forget, at most ``size`` decoded bytes."""
        data = bytes(self._data[:size])
        del self._data[:size]
        return data

    def _decode_size(self, data: bytes | bytearray, start: int) -> int:
        end = _find_line(data, start, self._limits.chunk_line)
        if end < 0:
            raise RemoteProtocolError("a chunk-size line is too long", 400, "RFC 9112 7.1.1")
        if end == start:
            return start
        match = _SIZE_LINE.fullmatch(data, start, end)
        if match is None:
            line = bytes(data[start : min(end, start + 40)])
            raise RemoteProtocolError(f"{line!r} is not a chunk size", 400, "RFC 9112 7.1")
        self._extensions += len(match[2])
        if self._extensions > self._limits.chunk_line * _EXTENSION_LINES:
            raise RemoteProtocolError("the chunk extensions are too long", 400, "RFC 9112 7.1.1")
        self._left = int(match[1], 16)
        self._total += self._left
        if self._total > self._limits.body:
            limit = self._limits.body
            raise RemoteProtocolError(f"the request body is longer than {limit} bytes", 413, "RFC 9110 15.5.14")
        self._step = ChunkedDecoder._decode_data if self._left else ChunkedDecoder._decode_trailer
        return end

    def _decode_data(self, data: bytes | bytearray, start: int) -> int:
        end = min(start + self._left, len(data))
        self._data += data[start:end]
        self._left -= end - start
        if not self._left:
            self._step = ChunkedDecoder._decode_data_end
        return end

    def _decode_data_end(self, data: bytes | bytearray, start: int) -> int:
        found = data[start : start + 2]
        if found == b"\r\n":
            self._step = ChunkedDecoder._decode_size
            return start + 2
        if found and found != b"\r":
            raise RemoteProtocolError("chunk data is not followed by CRLF", 400, "RFC 9112 7.1")
        return start

    def _decode_trailer(self, data: bytes | bytearray, start: int) -> int:
        limit = self._limits.trailer - self._trailer
        end = _find_line(data, start, limit)
        if end < 0:
            raise RemoteProtocolError("the trailer section is too long", 431, "RFC 9112 7.1.2")
        if end == start:
            return start
        line = str(data[start:end], "latin-1")
        self._trailer += len(line)
        self._trailers += 1
        if line == "\r\n":
            self.complete = True
            return end
        if self._trailers > self._limits.fields:
            raise RemoteProtocolError("more trailer fields came than fields may", 431, "RFC 9112 7.1.2")
        check_trailer(line)
        return end


def _find_line(data: bytes | bytearray, start: int, limit: int) -> int:
    """Return where the line from ``start`` ends; ``start`` when it is not complete, -1 when it is beyond ``limit``."""
    end = data.find(b"\n", start) + 1
    if (end or len(data)) - start > limit:
        return -1
    return end or start


def check_trailer(line: str) -> None:
    """Raise unless ``line`` is a field that may come after a body (RFC 9110 6.5.1)."""
    pairs = find_fields(line)
    if len(pairs) != 1:
        raise refuse_field_line(line)
    name = pairs[0][0]
    if name.lower() in _FORBIDDEN:
        raise RemoteProtocolError(f"the field {name} may not be a trailer", 400, "RFC 9110 6.5.1")
