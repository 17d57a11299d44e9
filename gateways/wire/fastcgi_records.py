"""FastCGI 1.0 records: what the bytes of one record mean, and records as bytes. Knows no connection and no request.

Section numbers are those of the FastCGI Specification, version 1.0 of 29 April 1996.
"""

from __future__ import annotations

import struct

from gateways.core.errors import RemoteProtocolError
from gateways.core.variables import DROPPED, MAX_VARIABLES, VARIABLE_KEYS, check_values, merge_repeated
from gateways.wire.parts import ADDRESS, MAX_PARTED, NAME_SIZE, PORT, UnusualError, VariableParts

VERSION = 1
# Record types (section 8).
BEGIN_REQUEST, ABORT_REQUEST, END_REQUEST, PARAMS, STDIN, STDOUT, STDERR, DATA, GET_VALUES, GET_VALUES_RESULT = range(
    1, 11
)
UNKNOWN_TYPE = 11
# Roles (section 6) and the only flag (section 5.1).
RESPONDER, AUTHORIZER, FILTER = 1, 2, 3
ROLE_NAMES = {RESPONDER: "RESPONDER", AUTHORIZER: "AUTHORIZER", FILTER: "FILTER"}
KEEP_CONN = 1
# Protocol statuses of END_REQUEST (section 5.5).
REQUEST_COMPLETE, CANT_MPX_CONN, OVERLOADED, UNKNOWN_ROLE = range(4)

HEADER = struct.Struct(">BBHHBx")
"""version, type, request id, content length, padding length (section 3.3)."""
HEADER_SIZE = 8
MAX_CONTENT = 65535
FULL_CONTENT = 65528
"""The most content that we put in one record: the largest multiple of eight, so that a full record needs no padding."""

PADS = tuple(bytes(count) for count in range(8))
_BEGIN = struct.Struct(">HB5x")
_END = struct.Struct(">BBHHBxIB3x")


def format_begin(request_id: int) -> bytes:
    """Return the record that begins a request to a responder whose connection is not kept (section 5.1)."""
    return HEADER.pack(VERSION, BEGIN_REQUEST, request_id, 8, 0) + _BEGIN.pack(RESPONDER, 0)


def parse_begin(content: bytes) -> tuple[int, bool]:
    """Return (role, keep_conn) of BEGIN_REQUEST's content (section 5.1). Raise ``RemoteProtocolError``."""
    if len(content) != 8:
        raise RemoteProtocolError(f"BEGIN_REQUEST with {len(content)} bytes of content", 400, "FastCGI 5.1")
    role, flags = _BEGIN.unpack(content)
    return role, bool(flags & KEEP_CONN)


def parse_pairs(block: bytes) -> tuple[list[str], list[str]]:
    """Return the names and the values of a stream's pairs, in order, as Latin-1 text (section 3.4).

    Raise ``RemoteProtocolError`` (400) when a length runs past the end.
    """
    names: list[str] = []
    values: list[str] = []
    text = block.decode("latin-1")
    at, end = 0, len(block)
    try:
        while at < end:
            name_size = block[at]
            at += 1
            if name_size > 127:
                name_size = (name_size & 127) << 24 | int.from_bytes(block[at : at + 3])
                at += 3
            value_size = block[at]
            at += 1
            if value_size > 127:
                value_size = (value_size & 127) << 24 | int.from_bytes(block[at : at + 3])
                at += 3
            value_at = at + name_size
            names.append(text[at:value_at])
            at = value_at + value_size
            values.append(text[value_at:at])
    except IndexError:
        at = end + 1
    if at != end:
        raise RemoteProtocolError("a name-value pair is longer than its stream", 400, "FastCGI 3.4")
    return names, values


_PARTS = VariableParts(parse_pairs)


def recall_variables(block: bytes) -> dict[str, str]:
    """Return the variables of a PARAMS stream in parts; raise ``UnusualError`` or ``RemoteProtocolError``."""
    at = block.find(ADDRESS) - 2
    port = block.find(PORT, at) - 2
    if not 0 < at < port or block[port] != NAME_SIZE or block[port + 1] > 127:
        raise UnusualError
    value = port + 2 + NAME_SIZE
    end = value + block[port + 1]
    if end > len(block):
        raise UnusualError
    return _PARTS.join(block[:at], block[at:port], block[value:end], block[end:])


def parse_variables(block: bytes) -> dict[str, str]:
    """Return a request's meta-variables from its whole PARAMS stream (section 5.2).

    Raise ``RemoteProtocolError``: 400 for malformed pairs, values with NUL and contradictory repetitions, 431 for more
    than ``MAX_VARIABLES``.
    """
    if len(block) <= MAX_PARTED:
        try:
            return recall_variables(block)
        except (UnusualError, RemoteProtocolError):
            pass
    names, values = parse_pairs(block)
    if len(names) > MAX_VARIABLES:
        raise RemoteProtocolError(f"more than {MAX_VARIABLES} variables", 431, "FastCGI 5.2")
    variables = dict(zip(map(VARIABLE_KEYS.__getitem__, names), values, strict=True))
    if len(variables) != len(names) or DROPPED in variables:
        variables = merge_repeated(zip(names, values, strict=True), strict=False, section="FastCGI 5.2")
    check_values(variables, "FastCGI 5.2")
    return variables


def format_record(kind: int, request_id: int, content: bytes) -> bytes:
    """Return one record of at most 65,535 bytes of content, padded to a multiple of eight."""
    pad = -len(content) & 7
    return HEADER.pack(VERSION, kind, request_id, len(content), pad) + content + PADS[pad]


def format_stream(kind: int, request_id: int, content: bytes) -> list[bytes | memoryview]:
    """Return pieces that make ``content`` a stream's records; views of it, so that joining them is the only copy.

    No content gives no record: an empty one would end the stream (section 3.3).
    """
    size = len(content)
    if size <= FULL_CONTENT:
        if not size:
            return []
        pad = -size & 7
        return [HEADER.pack(VERSION, kind, request_id, size, pad), content, PADS[pad]]
    view = memoryview(content)
    full = HEADER.pack(VERSION, kind, request_id, FULL_CONTENT, 0)
    pieces: list[bytes | memoryview] = []
    at = 0
    while size - at > FULL_CONTENT:
        pieces += (full, view[at : at + FULL_CONTENT])
        at += FULL_CONTENT
    pad = -(size - at) & 7
    pieces += (HEADER.pack(VERSION, kind, request_id, size - at, pad), view[at:], PADS[pad])
    return pieces


def format_end_request(request_id: int, application_status: int, protocol_status: int) -> bytes:
    """Return an END_REQUEST record (section 5.5)."""
    return _END.pack(VERSION, END_REQUEST, request_id, 8, 0, application_status, protocol_status)


def format_completion(request_id: int) -> bytes:
    """Return what ends a complete response: STDOUT's empty record, then END_REQUEST."""
    return HEADER.pack(VERSION, STDOUT, request_id, 0, 0) + format_end_request(request_id, 0, REQUEST_COMPLETE)


def format_values_result(content: bytes, values: dict[str, str]) -> bytes:
    """Return GET_VALUES_RESULT for GET_VALUES's content: each known name once, no unknown one (section 4.1).

    Raise ``RemoteProtocolError`` for malformed pairs.
    """
    asked = dict.fromkeys(name for name in parse_pairs(content)[0] if name in values)
    pairs = (bytes((len(name), len(values[name]))) + f"{name}{values[name]}".encode("ascii") for name in asked)
    return format_record(GET_VALUES_RESULT, 0, b"".join(pairs))


def format_unknown_type(kind: int) -> bytes:
    """Return UNKNOWN_TYPE for a management record of a type that we do not know (section 4.2)."""
    return format_record(UNKNOWN_TYPE, 0, bytes((kind, 0, 0, 0, 0, 0, 0, 0)))
