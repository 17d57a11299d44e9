"""The command line of the comparison: what was asked for, what is printed, and the exit status."""

from __future__ import annotations

import argparse
import io
import signal
import sys
from pathlib import Path
from types import FrameType

from bench import agreement, commands, compare, models, peers
from bench.outcome import show_run
from bench.progress import TextProgress
from bench.report.picture import format_picture
from bench.results import read_run
from bench.servers import ServerFailed
from bench.trials import command

INTERRUPTED = 130


def run_report(arguments: argparse.Namespace) -> int:
    """Draw a kept result again; return the exit status."""
    path: Path = arguments.file
    try:
        run = read_run(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    if arguments.picture:
        picture = path.with_name(f"{path.stem}-{arguments.picture}.svg")
        picture.write_text(format_picture(run, arguments.picture), encoding="utf-8")
        print(f"picture: {picture}")
        return 0
    show_run(run, path, TextProgress())
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all subcommands."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="What each gateway costs; see bench/README.md."
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    modes = subcommands.add_parser("compare", help="the comparison of 2008 on our modes, or another of bench/scenarios")
    compare.add_arguments(modes)
    modes.set_defaults(run=compare.run_compare)
    least = subcommands.add_parser("floor", help="wsgi and handler against the least Python can cost (about 2 minutes)")
    commands.add_floor_arguments(least)
    others = subcommands.add_parser("wires", help="our wires against flup, uWSGI and gunicorn (about 3 minutes)")
    commands.add_wires_arguments(others)
    steps = subcommands.add_parser("models", help="what each step of the in-process CGI emulation costs (20 s)")
    models.add_arguments(steps)
    steps.set_defaults(run=models.run_models)
    table = subcommands.add_parser("peers", help="which servers of others are installed, and install them")
    peers.add_arguments(table)
    table.set_defaults(run=peers.run_peers)
    trial = subcommands.add_parser("trial", help="what a supervisor has to stand: reloads, spikes and more")
    command.add_arguments(trial)
    trial.set_defaults(run=command.run_trial)
    for name in ("pinned", "full"):
        short = subcommands.add_parser(name, help=f"the same as trial {name}")
        command.add_options(short)
        short.set_defaults(run=command.run_trial, name=name)
    again = subcommands.add_parser("report", help="draw a kept result again")
    again.add_argument("file", type=Path, help="a file that compare, floor or wires wrote")
    again.add_argument(
        "--picture", metavar="CASE", default="", help="only the CPU a request of this case, as an SVG file"
    )
    again.set_defaults(run=run_report)
    two = subcommands.add_parser("agree", help="do two runs agree: which ratios' intervals do not overlap")
    agreement.add_arguments(two)
    two.set_defaults(run=agreement.run_agree)
    return parser


def end_in_order(_signal: int, _frame: FrameType | None) -> None:
    """Turn SIGTERM into an exit that stops every server on its way."""
    raise SystemExit(128 + signal.SIGTERM)


def main() -> int:
    """Run the command line and return the exit status: 0 done, 1 something failed, 2 what was asked for is wrong."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not have µ
    arguments = make_parser().parse_args()
    signal.signal(signal.SIGTERM, end_in_order)
    try:
        status: int = arguments.run(arguments)
    except ValueError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except ServerFailed as error:
        print(f"bench: the server did not start: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nbench: interrupted; every server was stopped", file=sys.stderr)
        return INTERRUPTED
    return status


if __name__ == "__main__":
    sys.exit(main())
