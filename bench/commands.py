"""What ``python -m bench compare`` does with scenario files: one comparison, all of them, or one that goes on.

Knows the command line and where results are kept; measures nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.comparison import Options, begin_run, narrow_plan, run_plan
from bench.drivers import open_driver
from bench.outcome import RESULTS, fresh_path, show_run
from bench.plan import list_plans, read_plan
from bench.progress import TextProgress
from bench.results import Run, read_run

ORDER = ("modperl", "interchange", "ajp", "sendfile", "axkit")
"""The comparisons that ``--all`` begins with; the others that have an original follow by name."""
WIRES = ("fastcgi", "scgi", "ajp", "uwsgi")
BUDGET, QUICK_BUDGET, ALL_BUDGET = 8.0, 1.7, 38.0
"""Minutes for one comparison, for a quick one, and for all of them together."""
LONGEST = 24 * 60.0
LEAST_BUDGET = 90.0
"""Seconds that a comparison is given at least."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``compare`` takes for comparisons of scenario files."""
    named = ", ".join(list_plans())
    parser.add_argument("name", nargs="?", default="", help=f"a comparison of bench/scenarios: {named}")
    parser.add_argument("--all", action="store_true", help=f"every comparison, in {ALL_BUDGET:g} minutes or --budget")
    parser.add_argument("--case", default="", help="parts of cases' names, with commas: these only")
    add_common_arguments(parser)


def add_common_arguments(parser: argparse.ArgumentParser, minutes: float | None = None) -> None:
    """Add the options that every comparison takes; ``minutes``: the budget if none is given."""
    said = f"minutes for everything (default {minutes or BUDGET:g}, for all comparisons {ALL_BUDGET:g})"
    parser.add_argument("--budget", type=float, default=minutes, help=said)
    parser.add_argument("--resume", type=Path, help="go on with what was interrupted: a raw file, or a folder of --all")
    parser.add_argument("--quick", action="store_true", help="a first look: fewer and shorter rounds")
    parser.add_argument("--rounds", type=int, help="how often everybody is measured")
    parser.add_argument("--seconds", type=float, help="how long each time")
    parser.add_argument("--only", default="", help="whom to measure, with commas: modes, contenders or their groups")
    parser.add_argument("--load", default="builtin", help="builtin (default), ab or wrk")
    parser.add_argument("--seed", type=int, help="of the order of contenders; drawn and recorded if not given")
    parser.add_argument(
        "--out", type=Path, help=f"the raw result's file, or the folder of --all (default: in {RESULTS})"
    )


def add_floor_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that floor takes."""
    parser.add_argument("--scenario", dest="case", default="", help="part of a case's name: close, keep, c=10")
    add_common_arguments(parser, 1.8)
    parser.set_defaults(name="floor", all=False, run=run_scenarios)


def add_wires_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that wires takes; its ``--only`` names wires."""
    parser.add_argument("--scenario", dest="case", default="", help="part of a case's name: close, keep, c=10")
    add_common_arguments(parser, 3.0)
    parser.set_defaults(name="wires", all=False, run=run_wires)


def run_wires(arguments: argparse.Namespace) -> int:
    """Run the comparison of wires, or of those that ``--only`` names."""
    wires = [name for name in arguments.only.split(",") if name]
    if unknown := [name for name in wires if name not in WIRES]:
        raise ValueError(f"--only: {unknown[0]!r} is none of {', '.join(WIRES)}")
    if wires:
        arguments.case = ",".join(f"{wire}+{arguments.case}" for wire in wires)
    arguments.only = ""
    return run_scenarios(arguments)


def is_scenario(arguments: argparse.Namespace) -> bool:
    """True when scenario files are asked for, and not the comparison of modes alone."""
    return bool(arguments.name or arguments.all or arguments.resume)


def read_options(arguments: argparse.Namespace, several: int = 1) -> Options:
    """Return the options, checked; raise ``ValueError`` with a sentence for whoever typed them."""
    usual = QUICK_BUDGET * several if arguments.quick else ALL_BUDGET if arguments.all else BUDGET
    minutes = usual if arguments.budget is None else arguments.budget
    rounds, seconds = arguments.rounds or 0, arguments.seconds or 0.0
    if not 0 <= rounds <= 1000:
        raise ValueError("--rounds must be 1 to 1000")
    if seconds and not 0.05 <= seconds <= 600:
        raise ValueError("--seconds must be 0.05 to 600")
    if not 0 < minutes <= LONGEST:
        raise ValueError(f"--budget must be minutes, more than 0 and at most {LONGEST:g}")
    return Options(
        rounds, seconds, arguments.seed or 0, arguments.load, arguments.quick, 60 * minutes,
        tuple(name for name in arguments.only.split(",") if name), arguments.case,
    )  # fmt: skip


def run_scenarios(arguments: argparse.Namespace) -> int:
    """Run what was asked for; return 0, or 1 when one of a comparison's contenders failed."""
    if arguments.all:
        names = [name for name in list_plans() if read_plan(name).head.source]
        names = [name for name in ORDER if name in names] + [name for name in names if name not in ORDER]
        folder = arguments.resume or arguments.out or fresh_path("all").with_suffix("")
        return run_all(names, read_options(arguments, len(names)), folder)
    if arguments.resume:
        return go_on(read_part(arguments.resume), arguments.resume)
    options = read_options(arguments)
    plan = narrow_plan(read_plan(arguments.name), options)
    return finish(begin_run(plan, options), options, arguments.out or fresh_path(arguments.name))


def run_all(names: Sequence[str], options: Options, folder: Path) -> int:
    """Run several comparisons into a folder; those that are there already are kept, or gone on with."""
    plans = [narrow_plan(read_plan(name), options) for name in names]
    sizes = [sum(len(plan.taking_part(case)) for case in plan.cases) for plan in plans]
    end, statuses = time.monotonic() + options.budget, []
    for number, plan in enumerate(plans):
        path = folder / f"{plan.name}.json"
        share = max((end - time.monotonic()) * sizes[number] / sum(sizes[number:]), LEAST_BUDGET)
        print(f"\n== {plan.name} ({number + 1} of {len(plans)}; about {share / 60:.0f} minutes)")
        if not path.exists():
            shared = replace(options, budget=share)
            statuses.append(finish(begin_run(plan, shared), shared, path))
        elif (run := read_part(path)).plan.get("done"):
            print(f"{path} is there already")
        else:
            statuses.append(go_on(run, path))
    print(f"\neverything is in {folder}")
    return max(statuses, default=0)


def read_part(path: Path) -> Run:
    """Read a comparison that can be gone on with; raise ``ValueError`` when it is none."""
    try:
        run = read_run(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    if run.kind != "scenario":
        raise ValueError(f"{path}: only a comparison of a scenario file can be resumed, and this is {run.kind}")
    if run.plan["digest"] != read_plan(run.plan["name"]).digest:
        raise ValueError(f"{path}: the scenario file {run.plan['name']} has changed since; begin anew")
    return run


def go_on(run: Run, path: Path) -> int:
    """Go on with a comparison that was interrupted, as it was begun."""
    given = run.plan["options"]
    return finish(run, Options(**{**given, "only": tuple(given["only"])}), path)


def finish(run: Run, options: Options, path: Path) -> int:
    """Measure what is missing of a run and show it."""
    progress, begin = TextProgress(), time.monotonic()
    driver = open_driver(run.load)
    try:
        run_plan(narrow_plan(read_plan(run.plan["name"]), options), run, options.budget, driver, path, progress)
    except KeyboardInterrupt:
        progress.say(f"\ninterrupted; go on with: python -m bench compare --resume {path}" if path.exists() else "")
        raise
    finally:
        driver.close()
    progress.say(f"done in {(time.monotonic() - begin) / 60:.1f} minutes")
    show_run(run, path, progress)
    return 1 if any(contender.failed for contender in run.contenders) or any(s.failed for s in run.scenarios) else 0
