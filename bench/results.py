"""Raw results: what was measured, as it was measured. No statistics are kept, so that a file can be judged again.

Knows the file's form; nothing of how it was measured or how it is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1


@dataclass(slots=True)
class Sample:
    """One contender in one round of one scenario.

    ``cpu``: CPU seconds of the server's process family; ``load_cpu``: of the load tool and the harness; ``other_cpu``:
    of every other process; ``stolen``: taken by the host. ``latencies``: a histogram in microseconds.
    ``discarded``: why the sample does not count, ``""`` when it does. ``front_cpu``: CPU seconds of the front server
    between. ``at``: seconds since the run's first sample.
    """

    contender: str
    scenario: str
    round: int
    place: int
    requests: int
    seconds: float
    connections: int
    cpu: float
    load_cpu: float
    other_cpu: float
    stolen: float
    latencies: list[list[int]] = field(default_factory=list)
    discarded: str = ""
    front_cpu: float = 0.0
    at: float = 0.0


@dataclass(slots=True)
class Contender:
    """What was compared. ``failed``: why it has no figures, ``""`` when it has. ``memory``: PSS of workers, bytes.

    ``group``: whose it is. ``missing``: how to install what it needs, ``""`` when that is there.
    """

    name: str
    label: str
    command: str = ""
    failed: str = ""
    memory: list[int] = field(default_factory=list)
    memory_note: str = ""
    group: str = ""
    missing: str = ""


@dataclass(slots=True)
class Scenario:
    """How the load was applied. ``wire``: the protocol that was spoken.

    ``parts``: who takes part, everybody if empty. ``failed``: contender -> why it has no figures here; ``missing``: how
    to install what it needs here, which is no failure. ``page``: the page's name; ``lengths``: contender -> length of
    its body, where that is always the same. ``count``: requests of a sample, 0 for as many as the time allows.
    ``behind``: the front server between, in words. ``base``: whose CPU the others' is told in parts of.
    """

    name: str
    concurrency: int = 1
    keep_alive: bool = False
    wire: str = "http"
    title: str = ""
    page: str = ""
    count: int = 0
    behind: str = ""
    base: str = ""
    parts: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)

    def takes_part(self, name: str) -> bool:
        """True for a contender that this scenario is for."""
        return not self.parts or name in self.parts

    def tell_reason(self, contender: Contender) -> str:
        """Return why a contender has no figures here, ``""`` when nothing speaks against it."""
        here = self.missing.get(contender.name, "") or self.failed.get(contender.name, "")
        return contender.missing or contender.failed or here

    def describe(self) -> str:
        """Return the scenario in words."""
        kept = "connections kept" if self.keep_alive else "a new connection for each request"
        many = f", {self.count} requests a sample" if self.count else ""
        behind = f"; {self.behind}" if self.behind else ""
        return f"{self.concurrency} at a time, {kept}{many}{behind}"


@dataclass(slots=True)
class Run:
    """One run of one comparison: the conditions, the contenders and every sample."""

    kind: str
    machine: dict[str, Any]
    load: str
    seed: int
    rounds: int
    seconds: float
    page: dict[str, Any]
    pinned: list[int | None]
    scenarios: list[Scenario] = field(default_factory=list)
    contenders: list[Contender] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    format: int = FORMAT
    plan: dict[str, Any] = field(default_factory=dict)
    """What a scenario file says that its report needs: words, and ladders with the original's figures."""

    def find(self, name: str) -> Contender:
        """Return a contender by name."""
        return next(contender for contender in self.contenders if contender.name == name)

    def of(self, contender: str, scenario: str) -> list[Sample]:
        """Return a contender's samples that count, by round."""
        return sorted(
            (s for s in self.samples if s.contender == contender and s.scenario == scenario and not s.discarded),
            key=lambda sample: sample.round,
        )

    def discarded(self) -> Iterator[Sample]:
        """Yield the samples that do not count."""
        return (sample for sample in self.samples if sample.discarded)


def write_run(run: Run, path: Path) -> None:
    """Write a run as JSON, one sample a line."""
    plain = asdict(run)
    samples = plain.pop("samples")
    head = json.dumps(plain, indent=1)
    lines = ",\n".join("  " + json.dumps(sample, separators=(",", ":")) for sample in samples)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")  # a run that ends while it writes leaves what there was
    part.write_text(f'{head[:-2]},\n "samples": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    part.replace(path)


def parse_run(text: str) -> Run:
    """Parse a result file; raise ``ValueError`` with one sentence when it is none of ours."""
    try:
        plain = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise ValueError(f"not a result file of format {FORMAT}")
    try:
        plain["scenarios"] = [Scenario(**row) for row in plain["scenarios"]]
        plain["contenders"] = [Contender(**row) for row in plain["contenders"]]
        plain["samples"] = [Sample(**row) for row in plain["samples"]]
        return Run(**plain)
    except (KeyError, TypeError) as error:
        raise ValueError(f"a result file with a missing or unknown entry: {error}") from error


def read_run(path: Path) -> Run:
    """Read a result file; raise ``OSError`` or ``ValueError``."""
    return parse_run(path.read_text(encoding="utf-8"))
