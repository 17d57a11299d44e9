"""Ties the audit to targets and execution models: which rungs a target has, and the process that runs one of them.

What an application is asked, how it is watched and what follows is the business of ``audit/``.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

from gateways.audit.job import Asked, Rung
from gateways.config import targets
from gateways.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gateways.audit.conduct import Audit, Plan
    from gateways.audit.job import Job
    from gateways.core.interfaces import ExecutionModel
    from gateways.execution.recipes import Recipe

CGI, ZYGOTE = Rung("cgi"), Rung("zygote")
SCRIPT_RUNGS = (ZYGOTE, Rung("perlrun"), Rung("registry"), Rung("registry", "shared"))
RUNG_NAMES = ("zygote", "perlrun", "registry", "registry-shared", "wsgi", "handler")
PAGES = 20
"""Pages that are found by links when no request is given."""
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = (
    f"import sys; sys.path.insert(0, {_ROOT!r}); from gateways.auditing import run_child; "
    "del sys.path[0]; run_child(sys.argv[1])"
)
"""What a process of the audit runs."""


def read_requests(texts: Sequence[str], recording: str) -> list[Asked]:
    """Return the requests of the command line: those written there, then the recorded ones.

    Raise ``ConfigurationError``.
    """
    from gateways.audit.asked import AskedError, parse_har, read_request

    try:
        requests = [read_request(text) for text in texts]
    except AskedError as error:
        raise ConfigurationError(f"--request: {error}") from error
    if recording:
        try:
            with open(recording, "rb") as file:
                requests += parse_har(file.read())
        except OSError as error:
            raise ConfigurationError(f"--har: {recording} cannot be read: {error.strerror}") from error
        except AskedError as error:
            raise ConfigurationError(f"--har: {recording}: {error}") from error
    return requests


def read_plan(
    text: str,
    folder: str,
    requests: Sequence[Asked] = (),
    *,
    model: str = "",
    crawl: int = -1,
    seed: int = 1,
    time_limit: float = 10.0,
    python_path: Sequence[str] = (),
) -> Plan:
    """Return what is to be done for the target ``text``; paths are relative to ``folder``.

    ``model``: the only rung that counts, ``""`` for all. ``crawl``: pages, -1 for ``PAGES`` when nothing is asked
    otherwise. Raise ``ConfigurationError``.
    """
    from gateways.audit.conduct import Plan

    try:
        target = targets.read_target(text, folder)
        ladders, notes = plan_ladders(target)
    except targets.TargetError as error:
        raise ConfigurationError(f"TARGET: {error}") from error
    if model:
        ladders = choose_rung(ladders, model)
    pages = crawl if crawl >= 0 else 0 if requests else PAGES
    script = target.path if target.kind == targets.SCRIPT else ""
    asked = tuple(requests) or (Asked("GET", "/"),)
    return Plan(
        (target.kind, target.path, target.name), text, ladders, asked, script,
        tuple(os.path.join(folder, path) for path in python_path), pages, seed, time_limit, notes,
    )  # fmt: skip


Ladders = tuple[tuple[Rung, tuple[Rung, ...]], ...]


def plan_ladders(target: targets.Target) -> tuple[Ladders, tuple[str, ...]]:
    """Return (yardstick, rungs) for a script and for each callable that a target is, and what to say about it.

    Raise ``TargetError`` for what no rung beyond ``cgi`` can run.
    """
    if target.kind == targets.EXECUTABLE:
        raise targets.TargetError(f"{target.path} is no Python program: model cgi runs it, and keeps nothing of it")
    if target.kind in (targets.CALLABLE_FILE, targets.CALLABLE_MODULE):
        return (plan_called(targets.choose_model(target)[1]),), ()
    if target.kind == targets.FOLDER:
        return plan_script(target.path, list_scripts(target.path))
    names = targets.read_names(target.path)
    called = [
        model
        for model, wanted in (("wsgi", {"application", "app"}), ("handler", {"handler"}))
        if not names.isdisjoint(wanted)
    ]
    ladders, notes = plan_script(target.path, [target.path]) if not called or runs_itself(target.path) else ((), ())
    return (*ladders, *map(plan_called, called)), notes


def plan_called(model: str) -> tuple[Rung, tuple[Rung, ...]]:
    """Return the ladder of something that is called: it is held against itself in new processes."""
    return Rung(model, apart=True), (Rung(model),)


def plan_script(path: str, scripts: Sequence[str]) -> tuple[Ladders, tuple[str, ...]]:
    """Return the ladder of scripts: held against ``cgi`` if the system can execute them."""
    plain = [script for script in scripts if not runs_itself(script)]
    if not plain:
        return ((CGI, SCRIPT_RUNGS),), ()
    note = f"{plain[0]} is not executable (chmod +x, and #!/usr/bin/env python3 as its first line)"
    return ((ZYGOTE, SCRIPT_RUNGS[1:]),), (f"{note}: held against zygote, which is a new process as well",)


def list_scripts(folder: str) -> list[str]:
    """Return the Python scripts of a folder: those files with the ending that say who runs them; all if none does.

    Raise ``TargetError`` when one of them, or the folder, cannot be read.
    """
    try:
        found = sorted(entry.path for entry in os.scandir(folder) if entry.is_file() and entry.name.endswith(".py"))
        return [path for path in found if has_interpreter(path)] or found
    except OSError as error:
        raise targets.TargetError(f"{error.filename} cannot be read: {error.strerror}") from error


def has_interpreter(path: str) -> bool:
    """True when a file's first line says what runs it."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def runs_itself(path: str) -> bool:
    """True when the system can execute a file as a script."""
    return os.access(path, os.X_OK) and has_interpreter(path)


def choose_rung(ladders: Ladders, name: str) -> Ladders:
    """Return the ladder with only the rung ``name``, and what it is held against. Raise ``ConfigurationError``."""
    for yardstick, rungs in ladders:
        chosen = tuple(rung for rung in rungs if rung.name == name)
        if chosen:
            fresh = (Rung("registry"),) if name == "registry-shared" else ()
            return ((yardstick, (*fresh, *chosen)),)
    known = ", ".join(rung.name for _, rungs in ladders for rung in rungs)
    raise ConfigurationError(f'--model must be one of {known} for this target; not "{name}"')


def run_audit(plan: Plan, progress: Callable[[str, int, int], None]) -> Audit:
    """Do the audit that ``plan`` describes."""
    from gateways.audit.conduct import audit

    return audit(plan, PROGRAM, progress)


# In a process of the audit.


def run_child(path: str) -> None:
    """Do the job in the file ``path``, and end this process."""
    from gateways.audit.child import run_job
    from gateways.server import begin_work

    begin_work()
    run_job(path, make_model, find_roots)


def make_model(job: Job, adapt: Callable[[Recipe], Recipe]) -> ExecutionModel:
    """Return a job's execution model, as a server would make it from its settings."""
    from gateways import server
    from gateways.config.options import read_target_options

    kind, path, name = job.target
    rung = job.rung
    target = targets.Target(kind, path, name)
    if rung.model in server.CALLED_MODELS:
        target = targets.choose_name(target, rung.model)
    given = SimpleNamespace(namespace=[rung.namespace], stdio=[rung.stdio], script_time_limit=[f"{job.time_limit:g}"])
    settings, mistakes = read_target_options(target, rung.model, given, "/")
    if settings is None:
        raise mistakes[0]
    return server.make_model(settings.pools[0].mounts[0], adapt)


def find_roots(job: Job) -> tuple[str, ...]:
    """Return the folders where a job's target keeps its own code."""
    import sys
    from importlib.util import find_spec

    for folder in reversed(job.python_path):
        sys.path.insert(0, folder)
    kind, path, _ = job.target
    if kind == targets.FOLDER:
        return (path,)
    if kind != targets.CALLABLE_MODULE:
        return (os.path.dirname(path),)
    try:
        spec = find_spec(path.partition(".")[0])
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return ()
    if spec.submodule_search_locations:
        return tuple(spec.submodule_search_locations)
    return (os.path.dirname(spec.origin or ""),)
