"""AJPv13 packets to the front server: a response head, body and end as bytes. Pure; keeps no state."""

from __future__ import annotations

import struct

from gateways.core.errors import LocalProtocolError
from gateways.core.response import DATE, FORBIDDEN, LENGTH, ORDINARY, STATUS_CODES, parse_length
from gateways.wire import ajp_codes as codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import FieldList

CPONG = b"AB\0\1\x09"
END_KEPT = b"AB\0\2\5\1"
END_CLOSED = b"AB\0\2\5\0"
"""End Response with reuse true and false."""

_pack_chunk_head = struct.Struct(">2sHBH").pack
_pack_headers_head = struct.Struct(">2sHB").pack


def format_headers(status: str, fields: FieldList, length: int | None, packet_size: int) -> tuple[bytes, int | None]:
    """Return (a Send Headers packet, the Content-Length that the application stated).

    ``length``: the Content-Length to state when the application states none; ``None`` states none.
    Raise ``LocalProtocolError`` for what may not be sent, and for a head that is longer than one packet: AJP has no way
    to continue it.
    """
    code = STATUS_CODES[status]
    own: int | None = None
    dated = served = False
    count = 0
    block = b""
    names = codes.RESPONSE_NAMES
    for name, value in fields:
        kind, coded = names[name]
        if kind != ORDINARY:
            if kind == FORBIDDEN:
                raise LocalProtocolError(f"an application may not send {name}", section="PEP 3333, hop-by-hop")
            if kind == LENGTH:
                own = merge_length(own, value)
                continue
            if dated if kind == DATE else served:
                continue
            dated, served = (True, served) if kind == DATE else (dated, True)
        block += coded + encode_string(value, packet_size)
        count += 1
    stated = length if own is None else own
    if stated is not None and code != 204:
        block += codes.CONTENT_LENGTH_CODE + encode_string(str(stated), packet_size)
        count += 1
    start = code.to_bytes(2) + encode_string(status[4:], packet_size) + count.to_bytes(2)
    size = len(start) + len(block) + 1
    if size > packet_size - 4:
        raise LocalProtocolError(f"the response head does not fit an AJP packet of {packet_size} bytes", 500, "AJPv13")
    return _pack_headers_head(b"AB", size, codes.SEND_HEADERS) + start + block, own


def merge_length(length: int | None, value: str) -> int:
    """Return an application's Content-Length; raise ``LocalProtocolError`` when an earlier one says something else."""
    parsed = parse_length(value)
    if length is not None and parsed != length:
        raise LocalProtocolError("two different Content-Length fields", section="RFC 9112 6.3")
    return parsed


def encode_string(value: str, packet_size: int) -> bytes:
    """Return an AJP string. Raise ``LocalProtocolError`` for CR, LF, NUL, and what is not Latin-1 or too long."""
    if "\n" in value or "\r" in value or "\0" in value:
        raise LocalProtocolError("a response field holds CR, LF or NUL", section="RFC 9110 5.5")
    try:
        data = value.encode("latin-1")
    except UnicodeEncodeError as error:
        raise LocalProtocolError("a response field is not Latin-1", section="PEP 3333, Unicode Issues") from error
    if len(data) > packet_size:
        raise LocalProtocolError(f"the response head does not fit an AJP packet of {packet_size} bytes", 500, "AJPv13")
    return len(data).to_bytes(2) + data + b"\0"


def format_chunk_head(size: int) -> bytes:
    """Return what comes before ``size`` bytes of data in a Send Body Chunk packet; a NUL comes after them."""
    return _pack_chunk_head(b"AB", size + 4, codes.SEND_BODY_CHUNK, size)


def format_chunks(head: bytes, data: bytes, end: bytes, packet_size: int) -> bytes:
    """Return ``head``, ``data`` as Send Body Chunk packets of at most ``packet_size`` bytes, and ``end``."""
    largest = packet_size - 8
    if len(data) <= largest:
        return b"".join((head, format_chunk_head(len(data)), data, b"\0", end)) if data else head + end
    view = memoryview(data)
    parts: list[bytes | memoryview] = [head]
    full = format_chunk_head(largest)
    for at in range(0, len(data), largest):
        piece = view[at : at + largest]
        parts += (full if len(piece) == largest else format_chunk_head(len(piece)), piece, b"\0")
    parts.append(end)
    return b"".join(parts)


def format_get_body_chunk(size: int) -> bytes:
    """Return a Get Body Chunk packet that asks for ``size`` bytes."""
    return b"AB\0\3\6" + size.to_bytes(2)
