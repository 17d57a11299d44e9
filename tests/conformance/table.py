"""The table: every row in order, and what a row is. Rows stand by kind in ``tests/conformance/rows/``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.conformance.checks import Check
from tests.conformance.messages import Request

Checks = tuple[Check, ...]

NEEDS = {
    "raw": "sends bytes that only HTTP can carry",
    "direct": "is about the server that the client speaks to, and a front server stands before it",
    "cut": "needs to tell an incomplete response from a complete one",
    "stream": "needs to see a response while it arrives",
    "chunked": "sends a body without stating its length",
    "interim": "is about 1xx responses, which only HTTP has",
    "version": "is about HTTP versions",
    "fields": "needs fields to arrive one by one, as the client sent them",
    "prefix": "needs an application that is served below a prefix",
    "octets": "needs the target to arrive as sent",
    "big-head": "needs a response head of more than one 8 KiB packet",
}
"""What a row may need of a client and its wire, each with the sentence that says why a row is skipped."""


@dataclass(frozen=True, slots=True)
class Row:
    """One behaviour.

    ``ids``: public cases (B...), rows of the security table (H...), kinds of Plack's shared suite (``plack: ...``),
    sections of specifications.
    ``requests`` are sent one after the other, on one connection where the wire keeps it, and ``expected`` has the
    checks of each answer. With ``raw``, these bytes are sent as they are instead, and ``expected`` has the checks of
    each answer that must come: no more may. ``half_close``: the client says that it will send no more. ``may_end``: the
    server may end the connection after any answer, and leave the rest of the bytes to a client that tries again.
    ``patient``: the last request is repeated for a while until its checks hold (what it asks about may still be under
    way). ``release``: sent on a connection of its own as soon as the first
    byte of body has come. ``skips``: name of a wire or front server -> why the row makes no sense there.
    ``group``: the kind of rows it stands among.
    """

    name: str
    ids: tuple[str, ...]
    requests: tuple[Request, ...] = ()
    expected: tuple[Checks, ...] = ()
    raw: bytes = b""
    half_close: bool = False
    may_end: bool = False
    patient: bool = False
    release: Request | None = None
    needs: frozenset[str] = frozenset()
    skips: Mapping[str, str] = field(default_factory=dict)
    group: str = ""

    def find_skip(self, wire: str, lacks: Mapping[str, str], front: str = "") -> str:
        """Why the row is skipped on a wire, with what its client lacks, or behind a front; ``""`` if it is run."""
        for place in filter(None, (wire, front)):
            if place in self.skips:
                return self.skips[place]
        if front and "direct" in self.needs:
            return NEEDS["direct"]
        return next((lacks[need] for need in sorted(self.needs) if need in lacks), "")


def load_table() -> tuple[Row, ...]:
    """Every row, in order, with its group's name."""
    from tests.conformance.rows import bodies, failures, framing, lengths, mapping, responses

    groups = {
        "mapping": mapping.ROWS,
        "bodies": bodies.ROWS,
        "responses": responses.ROWS,
        "lengths": lengths.ROWS,
        "failures": failures.ROWS,
        "framing": framing.ROWS,
    }
    return tuple(replace(row, group=name) for name, rows in groups.items() for row in rows)
