"""What the audit and the process that runs an application say to each other: a job, and a record for each request.

Both are JSON in files: an application may close, or write to, any descriptor that its process has.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

MAX_BODY = 1 << 20
"""Bytes of a response's body that are kept."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. ``target``: path and query, as sent. ``fields``: beside Host and Content-Length."""

    method: str
    target: str
    fields: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    @property
    def label(self) -> str:
        """The request in a few words."""
        body = self.body[:40].decode("ascii", "replace") + ("..." if len(self.body) > 40 else "")
        cookie = next((f"Cookie:{value[:40]}" for name, value in self.fields if name.lower() == "cookie"), "")
        return " ".join(part for part in (self.method, self.target, cookie, body) if part)


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of the ladder: an execution model with its settings.

    ``apart``: every request in a new process, which is what a ``wsgi`` or ``handler`` application is held against.
    """

    model: str
    namespace: str = "fresh"
    stdio: str = "object"
    apart: bool = False

    @property
    def name(self) -> str:
        """What the rung is called on the command line and in a report."""
        if self.apart:
            return f"{self.model} apart"
        return "registry-shared" if (self.model, self.namespace) == ("registry", "shared") else self.model

    @property
    def forks(self) -> bool:
        """True when each request has a process of its own."""
        return self.apart or self.model in ("cgi", "zygote")


@dataclass(frozen=True, slots=True)
class Job:
    """A rung, and what is asked of it in which order.

    ``target``: (kind, path, name) as in ``config.targets``. ``sequence``: numbers of ``requests``. ``start``: the place
    in it to begin at. ``soak``: further requests until memory is looked at first, 0 for never. ``files``: the folder
    that TMPDIR names. ``results``: where records are written. ``python_path``: where modules are looked for first.
    """

    target: tuple[str, str, str]
    rung: Rung
    requests: tuple[Asked, ...]
    sequence: tuple[int, ...]
    results: str
    files: str
    python_path: tuple[str, ...] = ()
    start: int = 0
    soak: int = 0
    time_limit: float = 10.0


Change = tuple[str, str, str, str, int]
"""kind, name, before, after, growth: one thing that a request left otherwise than it was; see ``kinds``."""


@dataclass(slots=True)
class Record:
    """One request that was answered, or not. ``place``: in the sequence. ``died``: how the process ended instead.

    ``error``: what the application raised. ``seconds``: from the call to the end. ``body``: at most ``MAX_BODY`` of
    ``size`` bytes. ``names``: the globals of a script when its run ended. ``files``: temporary files there are now.
    """

    place: int
    request: int
    status: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    size: int = 0
    error: str = ""
    seconds: float = 0.0
    died: str = ""
    recycled: bool = False
    changes: list[Change] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    files: int = 0
    log: str = ""


@dataclass(slots=True)
class Run:
    """All that was seen of one rung. ``failed``: why it could not begin. ``memory``: (requests run, blocks of small
    objects, bytes resident) at some moments. ``own``: the application's files. ``cut``: it died too often."""

    rung: Rung
    records: list[Record] = field(default_factory=list)
    failed: str = ""
    memory: list[tuple[int, int, int]] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    cut: bool = False


encode = json.JSONEncoder(
    separators=(",", ":"), default=lambda data, _encode=base64.b64encode: _encode(data).decode("ascii")
).encode
"""Value -> JSON; bytes as Base64. Made now: an application may replace ``json.dumps``."""


def format_job(job: Job) -> str:
    """Return a job as JSON."""
    return encode(dataclasses.asdict(job))


def parse_job(text: str) -> Job:
    """Return the job of ``format_job``'s text."""
    values: dict[str, Any] = json.loads(text)
    requests = tuple(
        Asked(
            asked["method"],
            asked["target"],
            tuple((name, value) for name, value in asked["fields"]),
            base64.b64decode(asked["body"]),
        )
        for asked in values["requests"]
    )
    target = tuple(values["target"])
    return Job(
        **{
            **values,
            "target": target,
            "rung": Rung(**values["rung"]),
            "requests": requests,
            "sequence": tuple(values["sequence"]),
            "python_path": tuple(values["python_path"]),
        }
    )


def format_record(record: Record) -> str:
    """Return a record as one line of JSON."""
    return encode(dataclasses.asdict(record))


def parse_record(values: dict[str, Any]) -> Record:
    """Return the record of a parsed line."""
    return Record(
        **{
            **values,
            "fields": [(name, value) for name, value in values["fields"]],
            "body": base64.b64decode(values["body"]),
            "changes": [tuple(change) for change in values["changes"]],
        }
    )
