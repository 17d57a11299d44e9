"""The process that runs an application for the audit: a job's requests one after another, each with a record.

Every line of this module runs in that process. It ends with the job, and with it whatever the application did to it.
"""

from __future__ import annotations

import faulthandler
import os
import traceback
import types
from collections.abc import Callable
from itertools import cycle, islice
from time import monotonic
from typing import IO, TYPE_CHECKING

from gateways.audit.exchange import KeptExchange
from gateways.audit.growth import PARTS, Look, is_growing
from gateways.audit.job import Job, Record, encode, format_record, parse_job
from gateways.audit.kinds import OWN_KINDS
from gateways.audit.own_state import OwnCode
from gateways.audit.process_state import Seeds, count_files, read_memory, read_process
from gateways.core.errors import GatewayError, ScriptError
from gateways.core.mounts import Mount, MountTable
from gateways.execution.apart import run_apart
from gateways.execution.child import describe_status
from gateways.execution.recipes import Program, Recipe

if TYPE_CHECKING:
    from gateways.core.interfaces import ExecutionModel

    MakeModel = Callable[[Job, Callable[[Recipe], Recipe]], ExecutionModel]

MAX_ERROR = 300
SOAK_LIMIT = 5.0
"""Seconds that the soak may take, about, unless memory seems to grow."""
open_file = open
"""The builtin, which an application may replace."""
LEAST_SOAK = 32
"""Requests, at least, until memory is looked at first: with fewer, caches of a hundred entries are still filling."""


class Namespaces:
    """What the globals of a script were when its run ended: a recipe's steps are wrapped to see them."""

    def __init__(self, own: OwnCode) -> None:
        self._own = own
        self.last: dict[str, str] = {}

    def watch(self, recipe: Recipe) -> Recipe:
        """Return ``recipe`` with a ``discard`` that looks first."""

        def discard(module: types.ModuleType) -> None:
            self._own.list_modules()
            self.last = self._own.describe_names(vars(module))
            recipe.discard(module)

        def make(program: Program) -> types.ModuleType:
            self.last = {}
            return recipe.namespace(program)

        return Recipe(recipe.name, recipe.program, make, discard, recipe.before, recipe.modules)


class Session:
    """One job in this process. ``roots``: where the application's own code lies."""

    def __init__(self, job: Job, roots: tuple[str, ...], stacks: IO[str]) -> None:
        self._job = job
        self._results = job.results
        self._stacks = stacks
        self._own = OwnCode(roots)
        self._names = Namespaces(self._own)
        self._seeds = Seeds()
        self._mounts = MountTable([])
        self._model: ExecutionModel
        self._moves: list[bool] = []
        self._state: dict[tuple[str, str], tuple[str, int]] = {}
        self._looks = not job.rung.forks

    def load(self, make_model: MakeModel) -> None:
        """Load the application. Raise ``GatewayError`` when it cannot be."""
        model = make_model(self._job, self._names.watch)
        variables = {"GATEWAYS_MODE": self._job.rung.model, "TMPDIR": self._job.files}
        self._mounts = MountTable([Mount("", model, variables)])
        self._model = model
        if not self._job.rung.apart:
            model.load()

    def write(self, text: str) -> None:
        """Add a line to the results. The file is opened each time: a descriptor would be at the application's mercy."""
        with open_file(self._results, "a", encoding="utf-8") as file:
            file.write(text + "\n")

    def run(self) -> None:
        """Run the job's requests, then the soak."""
        self._state = self._read()
        spent = 0.0
        for place in range(self._job.start, len(self._job.sequence)):
            if self._job.rung.apart:
                self._run_apart(place)
                continue
            record = self._run_place(place)
            spent += record.seconds
            if record.recycled:
                return
        last = self._job.sequence[-len(set(self._job.sequence)) :]
        if self._job.soak and not self._moved_in(len(last)):  # otherwise there is more to say than that memory grows
            self._soak(spent / max(len(self._job.sequence) - self._job.start, 1))
        self.write(encode({"done": True, "own": sorted(self._own.files)}))

    def _read(self) -> dict[tuple[str, str], tuple[str, int]]:
        return {**read_process(self._job.files), **self._own.read_state()} if self._looks else {}

    def _run_apart(self, place: int) -> None:
        """Load the application and run one request in a new process; write the record for it if it does not."""

        def live() -> None:
            self._model.load()
            self._run_place(place)

        begun, size = monotonic(), os.path.getsize(self._job.results)
        status = run_apart(live, self._job.time_limit)
        if os.path.getsize(self._job.results) == size:
            said = describe_status(status)[0] or "ended without an answer"
            seconds = monotonic() - begun if status is not None else self._job.time_limit
            number = self._job.sequence[place]
            self.write(format_record(Record(place, number, "500", error=f"its process {said}", seconds=seconds)))
        self.write(encode({"files": count_files(self._job.files)}))

    def _moved_in(self, last: int) -> bool:
        """True when one of the ``last`` requests has left something otherwise than it was."""
        return any(self._moves[-last:])

    def _run_place(self, place: int) -> Record:
        """Run one request, and write and return its record."""
        number = self._job.sequence[place]
        exchange = KeptExchange(self._job.requests[number])
        if self._looks:
            self._seeds.scatter()
        begun = monotonic()
        error = self.answer(exchange)
        record = Record(
            place, number, exchange.status, exchange.fields, exchange.body, exchange.size, error, monotonic() - begun,
            recycled=exchange.recycled, names=self._names.last, files=count_files(self._job.files),
            log=exchange.log.text[-MAX_ERROR:],
        )  # fmt: skip
        if self._looks:
            state = self._read()
            record.changes = [
                (*key, before, after, growth) for key, before, after, growth in compare_states(self._state, state)
            ]
            if self._seeds.is_seeded():
                record.changes.append(("random numbers", "random.seed", "", "as after an earlier request", 0))
            self._state = state
        self._moves.append(bool(record.changes))
        self.write(format_record(record))
        if record.recycled:
            self.write(encode({"own": sorted(self._own.files)}))
        return record

    def answer(self, exchange: KeptExchange) -> str:
        """Run one exchange; return what it raised, and give it the status that a server would send."""
        faulthandler.dump_traceback_later(self._job.time_limit * 0.9, file=self._stacks)
        error = ""
        try:
            mount = self._mounts.take(exchange.request)
            assert mount is not None
            mount.model.run(exchange)  # type: ignore[arg-type]
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - the edge around the application
            error = f"{type(raised).__name__}: {raised}"[:MAX_ERROR]
            if not exchange.committed:
                exchange.status = str(raised.status) if isinstance(raised, ScriptError) else "500"
                exchange.fields.clear()
        finally:
            faulthandler.cancel_dump_traceback_later()
        try:
            exchange.run_cleanups()
        except Exception as raised:  # noqa: BLE001 - the edge around the application
            error = error or f"{type(raised).__name__}: {raised}"[:MAX_ERROR]
        return error

    def _soak(self, seconds: float) -> None:
        """Go on without records, and write how much memory there is at some moments; no longer than it seems to grow.

        ``seconds``: what a request takes. A cache that fills grows less in the longer parts; a leak does not. An
        application that is too slow for that is left alone.
        """
        part = min(self._job.soak, int(SOAK_LIMIT / 7 / max(seconds, 1e-6)))
        if part < LEAST_SOAK:
            return
        numbers = cycle(sorted(set(self._job.sequence)))
        deadline = monotonic() + 4 * SOAK_LIMIT
        run = 0
        looks: list[Look] = []
        for parts in PARTS:
            for number in islice(numbers, parts * part):
                exchange = KeptExchange(self._job.requests[number])
                self.answer(exchange)
                if exchange.recycled or monotonic() > deadline:
                    return
            del exchange
            run += parts * part
            looks.append((run, *read_memory()))
            self.write(encode({"memory": looks[-1]}))
            if len(looks) > 2 and not is_growing(looks):
                return


def compare_states(
    before: dict[tuple[str, str], tuple[str, int]], after: dict[tuple[str, str], tuple[str, int]]
) -> list[tuple[tuple[str, str], str, str, int]]:
    """Return (key, text before, text after, growth) of what differs; ``""`` stands for what is not there."""
    nothing = ("", 0)
    changed = []
    loaded = tuple(
        f"{name}." for kind, name in after.keys() - before.keys() if kind == "loaded modules"
    )  # what a module has when it is loaded was not changed by anybody
    for key in before.keys() | after.keys():
        old, new = before.get(key, nothing), after.get(key, nothing)
        if old == new or (key[0] == "replaced function" and not (old[0] and new[0])):
            continue
        if old is nothing and key[0] in OWN_KINDS and loaded and key[1].startswith(loaded):
            continue
        changed.append((key, old[0], new[0], new[1] - old[1]))
    return sorted(changed)


def run_job(path: str, make_model: MakeModel, roots: Callable[[Job], tuple[str, ...]]) -> None:
    """Do the job in the file ``path`` and end the process; whatever the application left running ends with it."""
    with open_file(path, encoding="utf-8") as file:
        job = parse_job(file.read())
    status = 1
    try:
        with open_file(f"{job.results}.stack", "w", encoding="utf-8") as stacks:
            session = Session(job, roots(job), stacks)
            try:
                session.load(make_model)
                session.write(encode({"loaded": True}))
            except GatewayError as error:
                session.write(encode({"failed": str(error)}))
                return
            session.run()
            status = 0
    except BaseException:  # noqa: BLE001 - the edge of this process's life: nothing above writes it
        traceback.print_exc()
    finally:
        os._exit(status)
