"""What ``python -m bench compare`` does with scenario files: one comparison, all of them, or one that goes on.

Knows the command line and where results are kept; measures nothing.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bench.comparison import Options, begin_run, digest_plan, narrow_plan, run_plan
from bench.drivers import open_driver
from bench.outcome import RESULTS, fresh_path, show_run
from bench.plan import list_plans, read_plan
from bench.progress import TextProgress
from bench.results import Run, read_run

ORDER = ("modperl", "interchange", "ajp", "sendfile", "axkit")
"""The comparisons that ``--all`` begins with; the others follow by name."""
BUDGET, QUICK_BUDGET, ALL_BUDGET = 8.0, 1.7, 38.0
"""Minutes for one comparison, for a quick one, and for all of them together."""
LONGEST = 24 * 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that every comparison takes."""
    named = ", ".join(list_plans())
    parser.add_argument("name", nargs="?", default="", help=f"a comparison of bench/scenarios: {named}")
    parser.add_argument("--all", action="store_true", help=f"every comparison, in {ALL_BUDGET:g} minutes or --budget")
    parser.add_argument("--budget", type=float, help=f"minutes for everything (default {BUDGET:g} for a comparison)")
    parser.add_argument("--resume", type=Path, help="go on with a comparison that was interrupted: its raw file")
    parser.add_argument("--case", default="", help="part of a case's name: measure these only")
    parser.add_argument("--quick", action="store_true", help="a first look: fewer and shorter rounds")
    parser.add_argument("--rounds", type=int, help="how often everybody is measured")
    parser.add_argument("--seconds", type=float, help="how long each time")
    parser.add_argument("--only", default="", help="modes, or contenders and groups, to measure, with commas")
    parser.add_argument("--load", default="builtin", help="builtin (default), ab or wrk")
    parser.add_argument("--seed", type=int, help="of the order of contenders; drawn and recorded if not given")
    parser.add_argument("--out", type=Path, help=f"the raw result's file (default: {RESULTS}/NAME-DATE.json)")


def is_scenario(arguments: argparse.Namespace) -> bool:
    """True when scenario files are asked for, and not the comparison of modes alone."""
    return bool(arguments.name or arguments.all or arguments.resume)


def read_options(arguments: argparse.Namespace, share: int = 1) -> Options:
    """Return the options, checked; raise ``ValueError`` with a sentence for whoever typed them."""
    usual = QUICK_BUDGET * share if arguments.quick else ALL_BUDGET if arguments.all else BUDGET
    minutes = usual if arguments.budget is None else arguments.budget
    rounds, seconds = arguments.rounds or 0, arguments.seconds or 0.0
    if not 0 <= rounds <= 1000:
        raise ValueError("--rounds must be 1 to 1000")
    if seconds and not 0.05 <= seconds <= 600:
        raise ValueError("--seconds must be 0.05 to 600")
    if not 0 < minutes <= LONGEST:
        raise ValueError(f"--budget must be minutes, more than 0 and at most {LONGEST:g}")
    return Options(
        rounds, seconds, arguments.seed or 0, arguments.load, arguments.quick, 60 * minutes / share,
        tuple(name for name in arguments.only.split(",") if name), arguments.case,
    )  # fmt: skip


def run_scenarios(arguments: argparse.Namespace) -> int:
    """Run what was asked for; return 0, or 1 when one of a comparison's contenders failed."""
    if arguments.resume:
        return resume_scenario(arguments.resume)
    if not arguments.all:
        return run_scenario(arguments.name, read_options(arguments), arguments.out)
    present = list_plans()
    names = [name for name in ORDER if name in present] + [name for name in present if name not in ORDER]
    statuses, options = [], read_options(arguments, len(names))
    for number, name in enumerate(names, 1):
        print(f"\n== {name} ({number} of {len(names)})")
        statuses.append(run_scenario(name, options, arguments.out / f"{name}.json" if arguments.out else None))
    return max(statuses, default=0)


def run_scenario(name: str, options: Options, out: Path | None) -> int:
    """Run one comparison from its beginning."""
    plan = narrow_plan(read_plan(name), options)
    return finish(begin_run(plan, options), options, out or fresh_path(name))


def resume_scenario(path: Path) -> int:
    """Go on with a comparison that was interrupted; raise ``ValueError`` when its file cannot be gone on with."""
    try:
        run = read_run(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    if run.kind != "scenario":
        raise ValueError(f"{path}: only a comparison of a scenario file can be resumed, and this is {run.kind}")
    if run.plan["digest"] != digest_plan(run.plan["name"]):
        raise ValueError(f"{path}: the scenario file {run.plan['name']} has changed since; begin anew")
    given = run.plan["options"]
    options = Options(**{**given, "only": tuple(given["only"])})
    return finish(run, options, path)


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
