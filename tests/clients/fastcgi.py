"""The front server's side of FastCGI 1.0: records made and read, from the specification alone."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

from tests.clients.document import Document, parse_document

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR, DATA, GET_VALUES, GET_VALUES_RESULT, UNKNOWN = range(1, 12)
Pairs = Iterable[tuple[bytes, bytes]]


def rec(kind: int, content: bytes = b"", rid: int = 1, pad: int = 0) -> bytes:
    """One record."""
    return struct.pack(">BBHHBB", 1, kind, rid, len(content), pad, 0) + content + bytes(pad)


def ln(size: int) -> bytes:
    """A length of a name-value pair: one byte up to 127, four beyond."""
    return bytes([size]) if size < 128 else struct.pack(">I", size | 0x80000000)


def nv(name: bytes, value: bytes) -> bytes:
    """One name-value pair."""
    return ln(len(name)) + ln(len(value)) + name + value


def begin(keep: int = 0, role: int = 1, rid: int = 1) -> bytes:
    """A BEGIN_REQUEST record."""
    return rec(BEGIN, struct.pack(">HB5x", role, keep), rid)


def stream(kind: int, content: bytes, rid: int = 1, size: int = 65535, pad: int = 0) -> bytes:
    """A whole stream, in records of at most ``size`` bytes, with its empty record."""
    cuts = range(0, len(content), size)
    return b"".join(rec(kind, content[at : at + size], rid, pad) for at in cuts) + rec(kind, b"", rid)


def request(
    pairs: Pairs, body: bytes = b"", keep: int = 0, role: int = 1, rid: int = 1, size: int = 65535, pad: int = 0
) -> bytes:
    """A whole request: BEGIN_REQUEST, PARAMS, STDIN."""
    params = b"".join(nv(name, value) for name, value in pairs)
    return begin(keep, role, rid) + stream(PARAMS, params, rid, size, pad) + stream(STDIN, body, rid, size, pad)


class Record(NamedTuple):
    """One record as it was read."""

    kind: int
    rid: int
    content: bytes
    pad: int = 0


def parse_records(data: bytes) -> list[Record]:
    """Return the records of ``data``, which must end where one ends."""
    records = []
    at = 0
    while at < len(data):
        assert at + 8 <= len(data), f"a header cut short: {data[at:]!r}"
        version, kind, rid, size, pad, _ = struct.unpack_from(">BBHHBB", data, at)
        assert version == 1, version
        assert at + 8 + size + pad <= len(data), "a record cut short"
        records.append(Record(kind, rid, data[at + 8 : at + 8 + size], pad))
        at += 8 + size + pad
    return records


class Answer(NamedTuple):
    """What came for one request. ``ends``: (application status, protocol status) of each END_REQUEST."""

    out: bytes
    err: bytes
    ends: list[tuple[int, int]]
    others: list[Record]

    @property
    def document(self) -> Document:
        return parse_document(self.out)


def parse_answer(data: bytes, rid: int = 1) -> Answer:
    """Return what ``data`` holds for request ``rid``, and check the order of its records.

    No STDOUT or STDERR record follows the empty one of its stream, and none at all follows END_REQUEST.
    """
    texts = {STDOUT: b"", STDERR: b""}
    closed = set()
    ends: list[tuple[int, int]] = []
    others = []
    for record in parse_records(data):
        if record.rid != rid:
            others.append(record)
            continue
        assert not ends, f"{record} after END_REQUEST"
        if record.kind == END:
            application, protocol = struct.unpack(">IB3x", record.content)
            ends.append((application, protocol))
            continue
        assert record.kind in texts, record
        assert record.kind not in closed, f"{record} after the end of its stream"
        texts[record.kind] += record.content
        if not record.content:
            closed.add(record.kind)
    assert not (texts[STDERR] and ends and STDERR not in closed), "STDERR was never ended"
    return Answer(texts[STDOUT], texts[STDERR], ends, others)


def parse_pairs(content: bytes) -> list[tuple[bytes, bytes]]:
    """Return name-value pairs."""
    pairs = []
    at = 0
    while at < len(content):
        sizes = []
        for _ in range(2):
            if content[at] < 128:
                sizes.append(content[at])
                at += 1
            else:
                sizes.append(struct.unpack_from(">I", content, at)[0] & 0x7FFFFFFF)
                at += 4
        name, value = content[at : at + sizes[0]], content[at + sizes[0] : at + sum(sizes)]
        assert len(name) + len(value) == sum(sizes)
        pairs.append((name, value))
        at += sum(sizes)
    return pairs


def read_record(sock: socket.socket) -> bytes:
    """The bytes of one record; ``b""`` at the end of the connection."""
    header = read_exactly(sock, 8)
    if not header:
        return b""
    size, pad = struct.unpack_from(">HB", header, 4)
    return header + read_exactly(sock, size + pad)


def read_exactly(sock: socket.socket, size: int) -> bytes:
    """``size`` bytes, or ``b""`` when the connection ended before the first."""
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            assert not data, f"the connection ended within {data!r}"
            break
        data += piece
    return data


def read_answer(sock: socket.socket, rid: int = 1) -> Answer:
    """Read up to END_REQUEST for ``rid``, or to the end of the connection, which a reset is, too."""
    data = b""
    try:
        while record := read_record(sock):
            data += record
            if record[1] == END and int.from_bytes(record[2:4]) == rid:
                break
    except ConnectionResetError:
        pass
    return parse_answer(data, rid)
