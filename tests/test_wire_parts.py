"""Blocks of variables read in parts: whatever is remembered, the outcome is that of reading the block as a whole."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.core.errors import RemoteProtocolError
from gateways.core.limits import WireLimits
from gateways.core.variables import MAX_VARIABLES
from gateways.wire import fastcgi_records, parts, scgi, uwsgi

Pairs = list[tuple[bytes, bytes]]


def frame_fastcgi(pairs: Pairs) -> bytes:
    return b"".join(size(len(name)) + size(len(value)) + name + value for name, value in pairs)


def size(count: int) -> bytes:
    return bytes((count,)) if count < 128 else struct.pack(">I", count | 1 << 31)


def frame_scgi(pairs: Pairs) -> bytes:
    pairs = [(b"CONTENT_LENGTH", b"0"), (b"SCGI", b"1"), *pairs]
    return b"".join(name + b"\0" + value + b"\0" for name, value in pairs)


def frame_uwsgi(pairs: Pairs) -> bytes:
    return b"".join(
        struct.pack("<H", len(name)) + name + struct.pack("<H", len(value)) + value for name, value in pairs
    )


LIMITS = WireLimits()
WIRES: dict[str, tuple[Callable[[Pairs], bytes], Callable[[bytes], dict[str, str]], object]] = {
    "fastcgi": (frame_fastcgi, fastcgi_records.parse_variables, fastcgi_records),
    "scgi": (frame_scgi, scgi.parse_variables, scgi),
    "uwsgi": (frame_uwsgi, lambda block: uwsgi.parse_variables(block, LIMITS), uwsgi),
}

PAGE: Pairs = [(b"QUERY_STRING", b"a=1"), (b"REQUEST_METHOD", b"GET"), (b"PATH_INFO", b"/x")]
CLIENT: Pairs = [(b"REMOTE_ADDR", b"192.0.2.1"), (b"REMOTE_PORT", b"50000")]
FIELDS: Pairs = [(b"SERVER_NAME", b"example.com"), (b"HTTP_HOST", b"example.com"), (b"HTTP_ACCEPT", b"*/*")]

CASES: list[tuple[str, Pairs]] = [
    ("nginx' order", [*PAGE, *CLIENT, *FIELDS]),
    ("Apache's order", [*FIELDS, CLIENT[0], *PAGE, CLIENT[1], (b"SCRIPT_NAME", b"")]),
    ("the port first", [CLIENT[1], *PAGE, CLIENT[0]]),
    ("no port", [*PAGE, CLIENT[0], *FIELDS]),
    ("an empty port, as for a UNIX socket", [*PAGE, CLIENT[0], (b"REMOTE_PORT", b""), *FIELDS]),
    ("a port that is no number", [*PAGE, CLIENT[0], (b"REMOTE_PORT", b"x\xff"), *FIELDS]),
    ("the names within a value", [(b"QUERY_STRING", b"REMOTE_ADDR=1&\x0b\x05REMOTE_PORT12345"), *CLIENT, *FIELDS]),
    ("the names within a name", [(b"HTTP_REMOTE_ADDR", b"1"), (b"HTTP_REMOTE_PORT", b"2"), *PAGE, *CLIENT]),
    ("a field in two parts", [(b"HTTP_ACCEPT", b"first"), *PAGE, *CLIENT, *FIELDS]),
    ("another name in two parts", [(b"SERVER_NAME", b"other"), *PAGE, *CLIENT, *FIELDS]),
    ("who the user is, twice", [(b"REMOTE_USER", b"me"), *PAGE, *CLIENT, (b"REMOTE_USER", b"root")]),
    ("a second port", [*PAGE, *CLIENT, (b"REMOTE_PORT", b"1"), *FIELDS]),
    ("a name that is dropped", [*PAGE, *CLIENT, *FIELDS, (b"HTTP_PROXY", b"http://evil.example/")]),
    ("a NUL in a value", [*PAGE, *CLIENT, *FIELDS, (b"HTTP_X", b"a\0b")]),
    ("a long value", [*PAGE, *CLIENT, *FIELDS, (b"HTTP_COOKIE", b"c" * 1500)]),
    ("too many", [*PAGE, *CLIENT, *((b"X%d" % number, b"") for number in range(MAX_VARIABLES))]),
]


def read_whole(name: str, block: bytes) -> object:
    """The outcome of reading a block without cutting it."""
    module = WIRES[name][2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_PARTED", -1)
        return read(name, block)


def read(name: str, block: bytes) -> object:
    try:
        return WIRES[name][1](block)
    except RemoteProtocolError as error:
        return str(error), error.status


def check(name: str, block: bytes) -> None:
    whole = read_whole(name, block)
    assert read(name, block) == whole
    assert read(name, block) == whole, "the second time, from memory"


@pytest.mark.parametrize("pairs", [case[1] for case in CASES], ids=[case[0] for case in CASES])
@pytest.mark.parametrize("name", WIRES)
def test_reading_in_parts_is_reading_as_a_whole(name: str, pairs: Pairs) -> None:
    block = WIRES[name][0](pairs)
    check(name, block)
    for end in range(len(block) - 60, len(block)):
        check(name, block[:end])


NAMES = st.sampled_from(
    [b"REMOTE_ADDR", b"REMOTE_PORT", b"HTTP_HOST", b"HTTP_PROXY", b"QUERY_STRING", b"SERVER_NAME", b"", b"1X"]
)
VALUES = st.sampled_from([b"", b"50000", b"REMOTE_PORT", b"\x0b\x05REMOTE_PORT50000", b"\0", b"a" * 130, b"\xff"])


@given(st.lists(st.tuples(NAMES, VALUES), max_size=8), st.integers(0, 3))
def test_any_pairs_in_any_order(pairs: Pairs, cut: int) -> None:
    for name, (frame, _, _) in WIRES.items():
        block = frame(pairs)
        check(name, block[: len(block) - cut])


@pytest.mark.parametrize("name", WIRES)
def test_no_request_sees_what_another_was_given(name: str) -> None:
    block = WIRES[name][0]([*PAGE, *CLIENT, *FIELDS])
    first = WIRES[name][1](block)
    first["HTTP_HOST"] = "changed"
    first["REMOTE_USER"] = "root"
    second = WIRES[name][1](block.replace(b"50000", b"50001"))
    assert (second["HTTP_HOST"], second["REMOTE_PORT"], "REMOTE_USER" in second) == ("example.com", "50001", False)


def test_what_is_remembered_is_bounded() -> None:
    memo = parts.VariableParts(fastcgi_records.parse_pairs)
    for number in range(1000):
        assert memo[frame_fastcgi([(b"X%d" % number, b"y")])] == {f"X{number}": "y"}
    assert memo[frame_fastcgi([(b"LONG", b"y" * 2000)])] == {"LONG": "y" * 2000}
    assert len(memo) <= 128
    assert max(map(len, memo)) <= 1024
