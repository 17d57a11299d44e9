"""AJPv13 as a front server speaks it: packets to a container, and its packets taken apart. Imports nothing of ours."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

METHODS = {"OPTIONS": 1, "GET": 2, "HEAD": 3, "POST": 4, "PUT": 5, "DELETE": 6, "TRACE": 7}
FIELDS = {
    "accept": 1, "accept-charset": 2, "accept-encoding": 3, "accept-language": 4, "authorization": 5, "connection": 6,
    "content-type": 7, "content-length": 8, "cookie": 9, "cookie2": 10, "host": 11, "pragma": 12, "referer": 13,
    "user-agent": 14,
}  # fmt: skip
RESPONSE_FIELDS = {
    1: "Content-Type", 2: "Content-Language", 3: "Content-Length", 4: "Date", 5: "Last-Modified", 6: "Location",
    7: "Set-Cookie", 8: "Set-Cookie2", 9: "Servlet-Engine", 10: "Status", 11: "WWW-Authenticate",
}  # fmt: skip
CONTEXT, SERVLET_PATH, REMOTE_USER, AUTH_TYPE, QUERY, ROUTE, CERT, CIPHER, SESSION, ATTRIBUTE, KEY_SIZE = range(1, 12)
SECRET, STORED_METHOD = 12, 13

CPING = b"\x12\x34\0\x01\x0a"
PING = b"\x12\x34\0\x01\x08"
SHUTDOWN = b"\x12\x34\0\x01\x07"
EMPTY = b"\x12\x34\0\0"
CPONG = b"AB\0\x01\x09"


def packet(payload: bytes) -> bytes:
    """A packet to the container."""
    return b"\x12\x34" + struct.pack(">H", len(payload)) + payload


def string(value: bytes | str | None) -> bytes:
    """An AJP string; ``None`` is the null string."""
    if value is None:
        return b"\xff\xff"
    data = value.encode("latin-1") if isinstance(value, str) else value
    return struct.pack(">H", len(data)) + data + b"\0"


def field_name(name: str) -> bytes:
    """A field name, coded where AJP has a code for it."""
    code = FIELDS.get(name.lower())
    return string(name) if code is None else bytes((0xA0, code))


def attribute(code: int, *values: str | bytes | None) -> bytes:
    """One attribute with its strings."""
    return bytes((code,)) + b"".join(map(string, values))


def named(name: str, value: str) -> bytes:
    """A request attribute."""
    return attribute(ATTRIBUTE, name, value)


def forward(
    method: str | int = "GET",
    uri: str | bytes = "/x",
    fields: Sequence[tuple[str, str]] = (),
    attributes: bytes = b"",
    protocol: str = "HTTP/1.1",
    address: str | None = "192.0.2.7",
    host: str | None = None,
    name: str | None = "www.example.com",
    port: int = 80,
    secure: int = 0,
    raw_fields: bytes | None = None,
    count: int | None = None,
    end: bytes = b"\xff",
) -> bytes:
    """A forward request packet; ``raw_fields`` and ``count`` say something else of the fields than ``fields`` does."""
    block = b"".join(field_name(key) + string(value) for key, value in fields) if raw_fields is None else raw_fields
    code = METHODS[method] if isinstance(method, str) else method
    return packet(
        bytes((2, code)) + string(protocol) + string(uri) + string(address) + string(host) + string(name)
        + struct.pack(">HBH", port, secure, len(fields) if count is None else count) + block + attributes + end
    )  # fmt: skip


def body(data: bytes) -> bytes:
    """A body packet."""
    return packet(struct.pack(">H", len(data)) + data)


class Answer(NamedTuple):
    """A response as its packets told it. ``chunks``: the data of each Send Body Chunk. ``reuse``: what End Response
    said, ``None`` when none came. ``asked``: the sizes of each Get Body Chunk. ``sizes``: bytes of each packet."""

    status: int
    reason: str
    fields: list[tuple[str, str]]
    chunks: list[bytes]
    reuse: bool | None
    asked: list[int]
    pongs: int
    sizes: list[int]

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    def get(self, name: str) -> str | None:
        """The value of the only field of this name."""
        values = [value for key, value in self.fields if key.lower() == name.lower()]
        assert len(values) < 2
        return values[0] if values else None


def split_packets(data: bytes) -> Iterator[bytes]:
    """The payloads of a container's packets; the bytes must be whole packets."""
    while data:
        assert data[:2] == b"AB", data[:20]
        (size,) = struct.unpack(">H", data[2:4])
        payload, data = data[4 : 4 + size], data[4 + size :]
        assert len(payload) == size, "a packet is cut short"
        yield payload


class Reader:
    """Takes strings and numbers from one payload; ``done`` insists that nothing is left."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.at = 0

    def number(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.payload[self.at - size : self.at], "big")

    def string(self) -> str:
        size = self.number(2)
        value = self.payload[self.at : self.at + size]
        self.at += size
        assert self.number(1) == 0
        return value.decode("latin-1")

    def name(self) -> str:
        if self.payload[self.at] == 0xA0:
            return RESPONSE_FIELDS[self.number(2) & 0xFF]
        return self.string()

    def done(self) -> None:
        assert self.at == len(self.payload), "bytes follow the end of a packet's content"


def parse_answers(payloads: Iterable[bytes]) -> list[Answer]:
    """Every answer among a container's packets; packets after the last End Response make an answer without one."""
    answers: list[Answer] = []
    status, reason, fields = 0, "", list[tuple[str, str]]()
    chunks, asked, sizes = list[bytes](), list[int](), list[int]()
    pongs = 0
    for payload in payloads:
        reader = Reader(payload)
        sizes.append(len(payload) + 4)
        kind = reader.number(1)
        if kind == 4:
            assert not status, "two heads in one answer"
            status, reason = reader.number(2), reader.string()
            fields = [(reader.name(), reader.string()) for _ in range(reader.number(2))]
        elif kind == 3:
            assert status, "body before head"
            size = reader.number(2)
            chunks.append(payload[3 : 3 + size])
            assert size, "an empty body chunk"
            reader.at += size
            assert reader.number(1) == 0
        elif kind == 6:
            asked.append(reader.number(2))
        elif kind == 9:
            pongs += 1
        elif kind == 5:
            reuse = bool(reader.number(1))
            answers.append(Answer(status, reason, fields, chunks, reuse, asked, pongs, sizes))
            status, reason, fields, chunks, asked, pongs, sizes = 0, "", [], [], [], 0, []
        else:
            raise AssertionError(f"unknown packet {payload[:10]!r}")
        reader.done()
    if sizes:
        answers.append(Answer(status, reason, fields, chunks, None, asked, pongs, sizes))
    return answers


def parse_answer(data: bytes) -> Answer:
    """The one answer in ``data``."""
    (answer,) = parse_answers(split_packets(data))
    return answer


class Front:
    """A front server's connection: sends requests and their bodies as they are asked for, and reads the answers."""

    def __init__(self, sock: socket.socket, packet_size: int = 8192) -> None:
        self.sock = sock
        self.packet_size = packet_size

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                break
            data += piece
        return data

    def read_payload(self) -> bytes | None:
        """The next packet's payload; ``None`` at the end of the connection."""
        head = self._read(4)
        if not head:
            return None
        assert head[:2] == b"AB"
        return self._read(int.from_bytes(head[2:], "big"))

    def exchange(self, request: bytes, data: bytes = b"", chunked: bool = False) -> Answer:
        """Send a request and its body, the first packet unasked as a Content-Length asks for; return the answer.

        Without a request, only read the next answer.
        """
        largest = self.packet_size - 6
        rest = data
        if data and not chunked:
            request += body(data[:largest])
            rest = data[largest:]
        if request:
            self.sock.sendall(request)
        payloads = []
        while (payload := self.read_payload()) is not None:
            payloads.append(payload)
            if payload[0] == 6:
                size = min(int.from_bytes(payload[1:], "big"), largest)
                self.sock.sendall(body(rest[:size]) if rest else EMPTY)
                rest = rest[size:]
            if payload[0] == 5:
                break
        (answer,) = parse_answers(payloads)
        return answer

    def at_end(self) -> bool:
        """True when the container has closed the connection and sent nothing more."""
        return self.sock.recv(1) == b""
