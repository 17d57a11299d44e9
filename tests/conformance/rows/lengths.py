"""Bodies that are not as long as the application's Content-Length says, and what the client may conclude."""

from __future__ import annotations

from tests.conformance.checks import (
    Check,
    at_path,
    body,
    body_starts,
    cut,
    either,
    field,
    generated,
    no_field,
    pattern,
    status,
    whole,
)
from tests.conformance.rows.making import AFTER, build, get, synced
from tests.conformance.table import Row

SHAPES = ("list", "generator")
NOT_A_LENGTH = "B092; H22; RFC 9110 8.6"


def long(name: str, ids: str, query: str, length: int, *, method: str = "GET") -> list[Row]:
    """More bytes than stated: the client gets the stated ones or a 500, and the connection stays in step."""
    wanted = b"" if method == "HEAD" else pattern(length)
    return [
        synced(f"{name}-{shape}", ids, get(f"/gen?{query}&as={shape}", method=method),
               either((status(200), body(wanted), field("Content-Length", str(length))), (status(500),)))
        for shape in SHAPES
    ]  # fmt: skip


def short(name: str, ids: str, query: str, sent: int) -> list[Row]:
    """Fewer bytes than stated: the client can tell, nothing is padded, and the next request is right."""
    # 502 is what a front server says when the reset that shows it the cut overtakes the head.
    refused = (status(500, 502), whole)
    told: tuple[Check, ...] = (status(200, 0), body_starts(pattern(sent)), cut)
    return [
        build(f"{name}-{shape}", ids, [
            (get(f"/gen?{query}&as={shape}"), either(told, refused)),
            (AFTER, whole, at_path("/after/all")),
        ], cut=True, needs="cut")
        for shape in SHAPES
    ]  # fmt: skip


ROWS: tuple[Row, ...] = (
    *long("length-8-of-21", "B018", "n=21&length=8", 8),
    *long("length-0-of-8", "B018", "n=8&length=0", 0),
    *long("length-24-of-26", "B084", "n=26&step=13&length=24", 24),
    *long("length-60000-of-200000", "B018", "n=200000&step=50000&length=60000", 60000),
    *long("length-8-of-21-head", "B018; H23", "n=21&length=8", 8, method="HEAD"),
    synced("length-of-file", "B018; PEP 3333 file_wrapper", get("/file?n=50000&length=100"),
           either((status(200), generated(100)), (status(500),))),
    *short("length-100-of-8", "B018; H22", "n=8&length=100", 8),
    *short("length-100-of-0", "B018; H22", "n=0&length=100", 0),
    *short("length-30-of-26", "B084", "n=26&step=13&length=30", 26),
    *short("length-200000-of-100000", "B018", "n=100000&step=1000&length=200000", 100000),
    synced("length-not-a-number", NOT_A_LENGTH, get("/gen?n=4&length=four"), status(500)),
    synced("length-negative", NOT_A_LENGTH, get("/gen?n=4&length=-4"), status(500)),
    synced("length-twice", "H22; RFC 9112 6.3", get("/fields?Content-Length=6&Content-Length=7"), status(500),
           no_field("X-None")),
)  # fmt: skip
