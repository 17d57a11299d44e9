"""What a request is answered by a new process, and how another answer differs from that. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateways.audit.job import Record
from gateways.audit.templates import Template, fits, learn

VOLATILE_FIELDS = frozenset({"date", "server", "age"})
MAX_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """One answer that is not what a new process gives.

    ``previous``: the request before it in the same process, -1 for none. ``what``: ``status``, ``field NAME`` or
    ``body``. ``whose``: the request that this, or this line of it, is the answer to, -1 when none is known.
    """

    request: int
    place: int
    previous: int
    what: str
    expected: str
    got: str
    whose: int = -1
    error: str = ""


def group_fields(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return fields by lower-case name, those of one name as lines, without what changes by itself."""
    grouped: dict[str, list[str]] = {}
    for name, value in fields:
        if name.lower() not in VOLATILE_FIELDS:
            grouped.setdefault(name.lower(), []).append(value)
    return {name: "\n".join(values) for name, values in grouped.items()}


class Expectation:
    """What the answers of new processes to one request have in common. ``samples``: at least one."""

    __slots__ = ("_body", "_fields", "_optional", "_statuses", "samples")

    def __init__(self, samples: Sequence[Record]) -> None:
        self.samples: tuple[Record, ...] = tuple(samples)
        grouped = [group_fields(sample.fields) for sample in samples]
        self._statuses = {sample.status[:3] for sample in samples}
        self._body: Template = learn(sample.body for sample in samples)
        names = {name for fields in grouped for name in fields}
        self._optional = {name for name in names if any(name not in fields for fields in grouped)}
        self._fields = {
            name: learn(fields[name].encode() for fields in grouped if name in fields) for name in sorted(names)
        }

    def compare(self, record: Record, alias: tuple[bytes, bytes] = (b"", b"")) -> list[tuple[str, str, str]]:
        """Return (what, expected, got) of each difference. ``alias``: a word of the record that counts as another."""
        found = []
        sample = self.samples[0]
        if record.status[:3] not in self._statuses:
            found.append(("status", sample.status, record.status))
        fields, known = group_fields(record.fields), group_fields(sample.fields)
        for name in sorted(fields.keys() | self._fields.keys()):
            template = self._fields.get(name)
            value = fields.get(name)
            if value is None:
                fine = name in self._optional
            else:
                fine = template is not None and _fits(template, value.encode(), alias)
            if not fine and not (name == "content-length" and record.body != sample.body):
                found.append((f"field {name}", known.get(name, "(none)"), value if value is not None else "(none)"))
        if not _fits(self._body, record.body, alias):
            found.append(("body", *find_lines(sample.body, record.body)))
        return found

    def is_answered_by(self, record: Record) -> bool:
        """True when ``record`` would be right as an answer to this request."""
        return not self.compare(record)


def _fits(template: Template, data: bytes, alias: tuple[bytes, bytes]) -> bool:
    return fits(template, data) or (bool(alias[0]) and fits(template, data.replace(*alias)))


def split_lines(body: bytes) -> list[str]:
    """Return a body's lines, for showing."""
    return [line.strip() for line in body.decode("utf-8", "replace").splitlines() if line.strip()]


def find_lines(expected: bytes, got: bytes) -> tuple[str, str]:
    """Return the first line of each that the other has not."""
    ours, theirs = split_lines(expected), split_lines(got)
    missing = next((line for line in ours if line not in theirs), "(nothing)")
    extra = next((line for line in theirs if line not in ours), "(nothing)")
    return missing[:MAX_EXCERPT], extra[:MAX_EXCERPT]


def find_owner(record: Record, expectations: dict[int, Expectation]) -> tuple[int, str]:
    """Return (the request that ``record``, or a line of it, answers; that line), or (-1, "")."""
    own = {line for sample in expectations[record.request].samples for line in split_lines(sample.body)}
    others = {number: expected for number, expected in expectations.items() if number != record.request}
    for number, expected in others.items():
        if expected.is_answered_by(record):
            return number, ""
    for line in split_lines(record.body):
        if line in own:
            continue
        for number, expected in others.items():
            if any(line in split_lines(sample.body) for sample in expected.samples):
                return number, line[:MAX_EXCERPT]
    return -1, ""


def find_differences(
    records: Sequence[Record], expectations: dict[int, Expectation], alias: tuple[bytes, bytes] = (b"", b"")
) -> list[Difference]:
    """Return every difference of one rung's answers; at most one for each answer."""
    found = []
    previous = -1
    for record in records:
        expected = expectations.get(record.request)
        if expected is not None and not record.died:
            differences = expected.compare(record, alias)
            if differences:
                what, wanted, got = next((d for d in differences if d[0] == "body"), differences[0])
                if differences[0][0] == "status":
                    what, wanted, got = differences[0]
                owner, line = find_owner(record, expectations)
                found.append(
                    Difference(record.request, record.place, previous, what, wanted, line or got, owner, record.error)
                )
        previous = -1 if record.died or record.recycled else record.request
    return found
