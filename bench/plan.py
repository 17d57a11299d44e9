"""Scenario files: what a comparison is made of, as data. ``bench/SCENARIOS.md`` describes the format.

Parses and checks; starts nothing and knows nothing of results. Whatever is wrong in a file is one sentence with the
place where it stands.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

FOLDER = Path(__file__).with_name("scenarios")
SAME = ("bytes", "own", "pattern")
MEASURES = ("rate", "mbytes", "cpu", "p50", "p90", "p95", "p99", "p100")
WIRES = ("http", "fastcgi", "scgi", "ajp", "uwsgi")
FRONTS = ("", "apache", "apache-worker", "nginx", "lighttpd", "haproxy", "caddy")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.= -]*")


@dataclass(frozen=True, slots=True)
class Page:
    """What is asked for.

    ``same``: ``bytes`` (everybody sends the same body), ``own`` (everybody sends always the body that it sent first) or
    ``pattern`` (every body has a match of ``pattern``). ``app``: a file whose ``application`` tells the right answer;
    without it the first contender that answers does.
    """

    name: str
    path: str = "/"
    title: str = ""
    same: str = "bytes"
    pattern: str = ""
    app: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """A server that is started once and serves one contender or several.

    Exactly one of ``config`` (our configuration file), ``target`` (ours, with ``model`` and ``options``), ``peer`` (a
    row of the peers table, with ``workers``) and ``command`` (any other). ``setup``: commands run once before it
    starts; ``before``: commands run before each sample, untimed. ``needs``: how to install something -> a command that
    succeeds where it is installed.
    """

    name: str
    config: str = ""
    target: str = ""
    model: str = "wsgi"
    options: tuple[str, ...] = ()
    peer: str = ""
    workers: int = 1
    command: str = ""
    wire: str = "http"
    ready: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    setup: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    needs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """One contender: a path of a service. ``pages``: page -> its path, where that is not ``path`` plus the page's.

    ``front``: the front server that it is only reached through, in every case. ``group``: whose it is.
    """

    name: str
    service: str
    label: str = ""
    group: str = ""
    path: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    front: str = ""
    reuse: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One way to ask for one page. ``contenders``: names or groups, everybody who has the page if empty.

    ``count``: requests of a sample, 0 for as many as the time allows. ``front`` and ``reuse``: the front server
    between, and whether it keeps its connections. ``original``: contender -> its figure in the original, a key into
    ``historic.toml``. ``quick``: whether ``--quick`` measures it. ``base``: whose CPU the others' is told in parts of.
    """

    name: str
    title: str = ""
    page: str = ""
    contenders: tuple[str, ...] = ()
    concurrency: int = 1
    keep_alive: bool = False
    count: int = 0
    front: str = ""
    reuse: bool = False
    warm_up: bool = True
    quick: bool = True
    original: dict[str, str] = field(default_factory=dict)
    base: str = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound: the figure of ``name`` is at most ``most`` times that of ``of``, in every case that both take part in.

    With ``most`` of 0 the ratio is told and not judged. ``measure`` as in a ladder.
    """

    name: str
    of: str
    most: float = 0.0
    measure: str = "cpu"


@dataclass(frozen=True, slots=True)
class Ladder:
    """Contenders of a case in the order in which the original (or reason) puts them, the least first.

    A step is ``CONTENDER``, or ``CONTENDER@CASE`` for another case than ``case``. ``base``: what ratios are taken to,
    the first step if empty. ``measure``: ``rate``, ``mbytes`` (10^6 bytes of bodies a second), or, where less is
    better, ``cpu`` and ``p50`` to ``p100``. ``original``: step -> its figure in the original; a ladder of rates has
    those of its cases as well.
    """

    title: str
    case: str
    steps: tuple[str, ...]
    base: str = ""
    measure: str = "rate"
    original: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Series:
    """Contenders of a case whose samples are shown one after the other, by the requests answered until then."""

    title: str
    case: str
    contenders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Head:
    """The entries at a file's top.

    ``source``: the original's table in ``historic.toml``; ``lead``: what is asked; ``found``: what the original found,
    ``shows_not``: what these numbers do not show, a sentence each; ``rounds``: how often everybody is measured.
    """

    title: str
    source: str
    lead: str
    found: tuple[str, ...] = ()
    shows_not: tuple[str, ...] = ()
    rounds: int = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole comparison. ``digest``: of the file's text, which tells whether it is still the same."""

    name: str
    digest: str
    head: Head
    pages: tuple[Page, ...] = ()
    services: tuple[Service, ...] = ()
    contenders: tuple[Part, ...] = ()
    cases: tuple[Case, ...] = ()
    ladders: tuple[Ladder, ...] = ()
    goals: tuple[Goal, ...] = ()
    series: tuple[Series, ...] = ()

    def page(self, name: str) -> Page:
        """Return a page by its name."""
        return next(page for page in self.pages if page.name == name)

    def service(self, name: str) -> Service:
        """Return a service by its name."""
        return next(service for service in self.services if service.name == name)

    def case(self, name: str) -> Case:
        """Return a case by its name."""
        return next(case for case in self.cases if case.name == name)

    def taking_part(self, case: Case) -> list[Part]:
        """Return the contenders of a case, in the file's order."""
        wanted = set(case.contenders)
        return [
            part
            for part in self.contenders
            if (not part.pages or case.page in part.pages) and (not wanted or wanted & {part.name, part.group})
        ]

    def path_of(self, part: Part, page: Page) -> str:
        """Return the path that a contender serves a page at."""
        return part.pages.get(page.name) or part.path.rstrip("/") + page.path


Row = TypeVar("Row")


def make_row(kind: type[Row], where: str, table: Mapping[str, Any]) -> Row:
    """Return a table as a row of ``kind``; raise ``ValueError`` for an unknown or missing entry, or a wrong value."""
    row: Any = kind
    known = {item.name: item for item in fields(row)}
    if unknown := sorted(table.keys() - known.keys()):
        raise ValueError(f"{where}: unknown entry {unknown[0]!r}; there are {', '.join(known)}")
    values: dict[str, Any] = {}
    for name, item in known.items():
        if name in table:
            values[name] = check_value(f"{where}: {name}", str(item.type), table[name])
        elif item.default is MISSING and item.default_factory is MISSING:
            raise ValueError(f"{where}: {name} is missing")
    return kind(**values)


KINDS: dict[str, tuple[type, str]] = {
    "str": (str, "text"),
    "int": (int, "a whole number"),
    "float": (float, "a number with a point"),
    "bool": (bool, "true or false"),
    "tuple[str, ...]": (list, "a list of texts"),
    "dict[str, str]": (dict, "a table of texts"),
}


def check_value(where: str, kind: str, value: Any) -> Any:
    """Return an entry's value as its row holds it; raise ``ValueError`` when it is of another kind."""
    wanted, said = KINDS[kind]
    inner = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    if type(value) is not wanted or not all(isinstance(item, str) for item in inner):
        raise ValueError(f"{where} must be {said}, not {value!r}")
    return tuple(value) if isinstance(value, list) else value


def make_rows(kind: type[Row], what: str, tables: Any) -> tuple[Row, ...]:
    """Return ``[what.NAME]`` tables as rows; raise ``ValueError``."""
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ValueError(f"{what}: write each as [{what}.NAME]")
    for name in tables:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{what}.{name}: a name is made of a-z, 0-9, '_', '.', '=', '-' and blanks")
    return tuple(make_row(kind, f"{what}.{name}", {**table, "name": name}) for name, table in tables.items())


def parse_plan(text: str, name: str) -> Plan:
    """Return a scenario file's plan; raise ``ValueError`` with one sentence for what is wrong in it."""
    table = tomllib.loads(text)
    rows = {what: table.pop(what, {}) for what in ("page", "service", "contender", "case")}
    ladders, goals, series = (table.pop(what, []) for what in ("ladder", "goal", "series"))
    head = make_row(Head, name, table)
    plan = Plan(
        name,
        sha256(text.encode()).hexdigest(),
        head,
        make_rows(Page, "page", rows["page"]),
        make_rows(Service, "service", rows["service"]),
        make_rows(Part, "contender", rows["contender"]),
        make_rows(Case, "case", rows["case"]),
        tuple(make_row(Ladder, f"ladder {number}", row) for number, row in enumerate(ladders, 1)),
        tuple(make_row(Goal, f"goal {number}", row) for number, row in enumerate(goals, 1)),
        tuple(make_row(Series, f"series {number}", row) for number, row in enumerate(series, 1)),
    )
    for check in (check_pages, check_services, check_contenders, check_cases, check_ladders, check_goals, check_series):
        check(plan)
    return plan


def one_of(where: str, value: str, known: Any) -> None:
    """Raise ``ValueError`` unless ``value`` is among ``known``."""
    if value not in known:
        known = sorted(known) if isinstance(known, set) else known
        raise ValueError(f"{where}: {value!r} is none of {', '.join(repr(name) for name in known)}")


def check_pages(plan: Plan) -> None:
    """Raise ``ValueError`` for a page that cannot be asked for."""
    for page in plan.pages:
        one_of(f"page.{page.name}: same", page.same, SAME)
        if (page.same == "pattern") != bool(page.pattern):
            raise ValueError(f'page.{page.name}: same = "pattern" and pattern go together')
        if not page.path.startswith("/"):
            raise ValueError(f"page.{page.name}: path must begin with /")


def check_services(plan: Plan) -> None:
    """Raise ``ValueError`` for a service that cannot be started."""
    for service in plan.services:
        ways = [way for way in ("config", "target", "peer", "command") if getattr(service, way)]
        if len(ways) != 1:
            raise ValueError(f"service.{service.name}: say one of config, target, peer and command")
        one_of(f"service.{service.name}: wire", service.wire, WIRES)
        if service.command and "{port}" not in service.command:
            raise ValueError(f"service.{service.name}: the command does not say {{port}}")


def check_contenders(plan: Plan) -> None:
    """Raise ``ValueError`` for a contender without a service, or with pages that there are not."""
    services, pages = {service.name for service in plan.services}, {page.name for page in plan.pages}
    for part in plan.contenders:
        one_of(f"contender.{part.name}: service", part.service, services)
        one_of(f"contender.{part.name}: front", part.front, FRONTS)
        for page in part.pages:
            one_of(f"contender.{part.name}: pages", page, pages)


def check_cases(plan: Plan) -> None:
    """Raise ``ValueError`` for a case that cannot be measured."""
    names = {part.name for part in plan.contenders} | {part.group for part in plan.contenders}
    for case in plan.cases:
        where = f"case.{case.name}"
        one_of(f"{where}: page", case.page, {page.name for page in plan.pages})
        one_of(f"{where}: front", case.front, FRONTS)
        for name in case.contenders:
            one_of(f"{where}: contenders", name, names)
        present = plan.taking_part(case)
        if not present:
            raise ValueError(f"{where}: nobody takes part")
        for name in (*case.original, *([case.base] if case.base else [])):
            one_of(f"{where}: {'original' if name in case.original else 'base'}", name, {part.name for part in present})
        for part in present:
            if case.front and (part.front or plan.service(part.service).wire != "http"):
                raise ValueError(
                    f"{where}: {part.name} cannot stand behind {case.front}: its own wire or front is said"
                )


def check_ladders(plan: Plan) -> None:
    """Raise ``ValueError`` for a ladder with steps that are not measured."""
    for number, ladder in enumerate(plan.ladders, 1):
        where = f"ladder {number}"
        one_of(f"{where}: measure", ladder.measure, MEASURES)
        if ladder.base and ladder.base not in ladder.steps:
            raise ValueError(f"{where}: base {ladder.base!r} is none of its steps")
        for step in ladder.steps:
            name, case = split_step(ladder, step)
            one_of(f"{where}: case", case, {case.name for case in plan.cases})
            one_of(f"{where}: steps", name, {part.name for part in plan.taking_part(plan.case(case))})
        for step in ladder.original:
            one_of(f"{where}: original", step, ladder.steps)


def check_series(plan: Plan) -> None:
    """Raise ``ValueError`` for a series of what is not measured."""
    for number, series in enumerate(plan.series, 1):
        where = f"series {number}"
        one_of(f"{where}: case", series.case, {case.name for case in plan.cases})
        for name in series.contenders:
            one_of(f"{where}: contenders", name, {part.name for part in plan.taking_part(plan.case(series.case))})


def check_goals(plan: Plan) -> None:
    """Raise ``ValueError`` for a goal between contenders that there are not."""
    for number, goal in enumerate(plan.goals, 1):
        one_of(f"goal {number}: measure", goal.measure, MEASURES)
        for name in (goal.name, goal.of):
            one_of(f"goal {number}", name, {part.name for part in plan.contenders})


def split_step(ladder: Ladder, step: str) -> tuple[str, str]:
    """Return (contender, case) of a step."""
    name, _, case = step.partition("@")
    return name, case or ladder.case


def list_plans(folder: Path = FOLDER) -> list[str]:
    """Return the names of the scenario files."""
    return sorted(file.stem for file in folder.glob("*.toml"))


def read_plan(name: str, folder: Path = FOLDER) -> Plan:
    """Read a scenario file by its name; raise ``ValueError`` when there is none, or it is wrong."""
    file = folder / f"{name}.toml"
    try:
        return parse_plan(file.read_text(encoding="utf-8"), name)
    except FileNotFoundError:
        raise ValueError(f"{name!r} is no comparison: there are {', '.join(list_plans(folder))}") from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
