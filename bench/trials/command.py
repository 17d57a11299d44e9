"""``python -m bench trial``: which trials there are, and running one. Prints; judges nothing."""

from __future__ import annotations

import argparse
import time
from importlib import import_module

from bench.machine import describe_machine
from bench.outcome import fresh_path
from bench.progress import TextProgress
from bench.trials.findings import Findings, format_text, write_findings
from bench.trials.harness import Trial
from bench.trials.page import format_findings

NAMES = ("reload", "spikes", "stuck", "asleep", "pinned", "full", "leaks", "soak")
"""The trials: each a module here, with ``SUMMARY`` (a sentence), ``LENGTH`` (in words) and ``run(trial)``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``trial``."""
    parser.add_argument("name", nargs="?", default="", help=f"one of {', '.join(NAMES)}; without it, what they are")
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every trial."""
    parser.add_argument("--quick", action="store_true", help="a first look: fewer and shorter steps")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long, for a trial that can be any length")


def run_trial(arguments: argparse.Namespace) -> int:
    """Run a trial; return 0 when everything held, 1 when something did not. Raise ``ValueError`` for a wrong name."""
    if not arguments.name:
        return list_trials()
    if arguments.name not in NAMES:
        raise ValueError(f"there is no trial {arguments.name!r}: {', '.join(NAMES)}")
    if not 0 <= arguments.minutes <= 24 * 60:
        raise ValueError("--minutes must be 0 (as long as usual) to 1440")
    module = import_module(f"bench.trials.{arguments.name}")
    options = {"quick": arguments.quick, "minutes": arguments.minutes or "as usual"}
    findings = Findings(arguments.name, module.SUMMARY, describe_machine(), options)
    progress = TextProgress()
    progress.say(f"{arguments.name}: {module.SUMMARY} Takes {module.LENGTH}.")
    began = time.monotonic()
    module.run(Trial(findings, progress, arguments.quick, arguments.minutes))
    findings.options["seconds"] = round(time.monotonic() - began, 1)
    show(findings, progress)
    return 0 if findings.held else 1


def show(findings: Findings, progress: TextProgress) -> None:
    """Print findings, and keep them beside a page."""
    path = fresh_path(f"trial-{findings.name}")
    write_findings(findings, path)
    page = path.with_suffix(".html")
    page.write_text(format_findings(findings), encoding="utf-8")
    progress.say("")
    print(f"{format_text(findings)}\n\npage: {page}\nraw:  {path}")


def list_trials() -> int:
    """Print which trials there are."""
    for name in NAMES:
        module = import_module(f"bench.trials.{name}")
        print(f"{name:<8} {module.SUMMARY} ({module.LENGTH})")
    print("\nnext: python -m bench trial NAME [--quick]")
    return 0
