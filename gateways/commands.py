"""The commands that people type: their arguments, and those that print what can be known without a server.

``cli`` dispatches what a web server starts before this is imported; ``operate`` holds the commands that serve, or speak
to what serves.
"""

from __future__ import annotations

import argparse
import os
import sys

from gateways.complaint import CGI_USAGE, FAILED, RUN_USAGE, complain, print_mistakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

COMMANDS = ("serve", "run", "reload", "status", "check", "audit", "conf", "cgi", "directives")


def run_command(words: list[str]) -> int:
    """Run any command but ``cgi``."""
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        return complain(f'there is no command "{words[0]}"; the commands are {", ".join(COMMANDS)}')
    parser = make_parser()
    options, unknown = parser.parse_known_args(words)
    if unknown:
        return complain(describe_unknown(unknown[0]))
    if options.run is None:
        return complain(f"say what to do: {', '.join(COMMANDS)} (gateways --help explains each)")
    status: int = options.run(options)
    return status


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    from gateways import __version__
    from gateways.config.options import add_options
    from gateways.operate import run_reload, run_serve, run_status

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise SystemExit(complain(f"{message} ({self.prog} --help explains the options)"))

    parser = Parser(
        prog="gateways", description="One application through every gateway the web has had.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"gateways {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    serve = commands.add_parser(
        "serve",
        help="serve an application, or all of a configuration",
        usage="gateways serve TARGET [options]\n       gateways serve --config FILE [--bind ADDRESS]",
        allow_abbrev=False,
    )
    serve.add_argument("target", nargs="?", metavar="TARGET", help="FILE.py, FILE.py:NAME, MODULE:NAME or a program")
    serve.add_argument("--config", metavar="FILE", help="serve what this configuration says")
    serve.add_argument(
        "--reload", action="store_true", help="for development: new workers whenever a file of the application changes"
    )
    add_options(serve)
    serve.set_defaults(run=run_serve)
    reload = commands.add_parser("reload", help="make a running server reload, and say how it went", allow_abbrev=False)
    reload.add_argument("--pid-file", metavar="FILE", required=True, help="the server's PidFile")
    reload.add_argument(
        "--patience", metavar="SECONDS", type=float, default=60.0, help="how long to wait; 60 if not given"
    )
    reload.set_defaults(run=run_reload)
    status = commands.add_parser("status", help="print what a running server is doing", allow_abbrev=False)
    status.add_argument("address", nargs="?", metavar="ADDRESS", help="the server's StatusListen")
    status.add_argument("--config", metavar="FILE", help="take StatusListen from this configuration")
    status.add_argument("--json", action="store_true", help="once, for programs")
    status.add_argument("--once", action="store_true", help="once; on a terminal it goes on until Ctrl-C if not given")
    status.set_defaults(run=run_status)
    check = commands.add_parser("check", help="name every mistake in a configuration", allow_abbrev=False)
    check.add_argument("--config", metavar="FILE", required=True)
    check.set_defaults(run=run_check)
    add_audit(
        commands.add_parser("audit", help="tell which execution model is safe for an application", allow_abbrev=False)
    )
    commands.add_parser("run", help=f"be what this process was started to be: {RUN_USAGE}")
    add_conf(commands.add_parser("conf", help="print a front server's configuration", allow_abbrev=False))
    commands.add_parser("cgi", help=f"be a CGI script: {CGI_USAGE}")
    directives = commands.add_parser("directives", help="print the reference of all settings", allow_abbrev=False)
    directives.set_defaults(run=run_directives)
    return parser


def describe_unknown(word: str) -> str:
    """Return the sentence for an argument that no command takes."""
    from gateways.config.directives import DIRECTIVES
    from gateways.config.sections import suggest

    if not word.startswith("-"):
        return f'"{word}" is one argument too many (gateways --help)'
    option = word.partition("=")[0]
    known = ["--config", "--reload", *(directive.flag for directive in DIRECTIVES if directive.name != "Target")]
    return f'there is no option "{option}"{suggest(option, known)}'


def add_conf(conf: argparse.ArgumentParser) -> None:
    """Add the arguments of ``gateways conf``."""
    from gateways.fronts.table import FRONTS, SPAWNS, WIRES

    conf.add_argument("front", metavar="FRONT", choices=FRONTS, help=", ".join(FRONTS))
    conf.add_argument("--config", metavar="FILE", required=True, help="the configuration that we serve")
    conf.add_argument("--listen", metavar="ADDRESS", default="127.0.0.1:8080", help="the front's own (%(default)s)")
    conf.add_argument("--wire", choices=WIRES, default="", help="if not given, the first that both sides speak")
    conf.add_argument("--spawn", choices=SPAWNS, default="", help="the front starts us by itself, in this way")
    conf.add_argument("--reuse", action="store_true", help="connections to us are kept for further requests")
    conf.add_argument("--stream", action="store_true", help="bodies are passed on as they come, both ways")
    conf.add_argument("--standalone", metavar="FOLDER", default="", help="a whole server, with all its files there")
    conf.add_argument("--command", metavar="COMMAND", default="", help="starts gateways for --spawn (this program)")
    conf.set_defaults(run=run_conf)


def add_audit(audit: argparse.ArgumentParser) -> None:
    """Add the arguments of ``gateways audit``."""
    from gateways.auditing import PAGES, RUNG_NAMES

    audit.add_argument("target", metavar="TARGET", help="FILE.py, FILE.py:NAME, MODULE:NAME or a folder of scripts")
    audit.add_argument(
        "--request", metavar="REQUEST", action="append", default=[],
        help="any number: 'GET /list?page=2', 'GET /me Cookie:session=1', 'POST /login name=x', 'POST /in @FILE'",
    )  # fmt: skip
    audit.add_argument("--har", metavar="FILE", default="", help="requests that a browser recorded")
    audit.add_argument(
        "--crawl", metavar="N", type=int, default=-1,
        help=f"follow links to N pages more; {PAGES} if no request is given, else none",
    )  # fmt: skip
    audit.add_argument("--model", choices=RUNG_NAMES, default="", help="try, and judge by, this one only")
    audit.add_argument("--seed", metavar="N", type=int, default=1, help="of the orders of requests (%(default)s)")
    audit.add_argument(
        "--time-limit", metavar="SECONDS", type=float, default=10.0, help="for one request (%(default)g)"
    )
    audit.add_argument("--python-path", metavar="FOLDER", action="append", default=[], help="as for serve")
    audit.add_argument("--json", action="store_true", help="for programs")
    audit.set_defaults(run=run_audit)


def run_audit(options: argparse.Namespace) -> int:
    """Audit an application. Exit status 1 when the model asked for, or any model, is not safe as it is."""
    from gateways import auditing
    from gateways.core.errors import ConfigurationError

    if not 0 < options.time_limit <= 3600:
        return complain("--time-limit must be more than 0 and at most 3600 seconds")
    try:
        requests = auditing.read_requests(options.request, options.har)
        plan = auditing.read_plan(
            options.target, os.getcwd(), requests, model=options.model, crawl=options.crawl, seed=options.seed,
            time_limit=options.time_limit, python_path=options.python_path,
        )  # fmt: skip
    except ConfigurationError as error:
        return complain(error.message)
    try:
        outcome = auditing.run_audit(plan, show_progress)
    except KeyboardInterrupt:
        return complain("the audit was interrupted")
    from gateways.audit.report import format_json, format_text, has_passed

    show_progress("", 0, 0)
    text = format_json(outcome, options.model) if options.json else format_text(outcome, os.getcwd())
    sys.stdout.write(text)
    return 0 if has_passed(outcome, options.model) else FAILED


def show_progress(rung: str, done: int, total: int) -> None:
    """Show on a terminal how far an audit is; nothing at its end."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{rung}: {done} of {total}" if rung else "\r\x1b[K")
        sys.stderr.flush()


def run_conf(options: argparse.Namespace) -> int:
    """Print a front server's configuration."""
    from gateways.config.reader import read_configuration
    from gateways.core.errors import ConfigurationError
    from gateways.fronts.table import Wishes, format_front

    settings, mistakes = read_configuration(options.config)
    if settings is None:
        return print_mistakes(mistakes)
    folder = os.path.abspath(options.standalone) if options.standalone else ""
    command = options.command or find_command()
    wishes = Wishes(options.listen, options.wire, options.spawn, options.reuse, options.stream, folder, command)
    try:
        sys.stdout.write(format_front(options.front, settings, wishes))
    except ConfigurationError as error:
        return complain(error.message)
    return 0


def find_command() -> str:
    """Return the command that starts this program from anywhere, as a front server that spawns us needs it."""
    program = os.path.abspath(sys.argv[0])
    if os.path.basename(program) == "gateways" and os.access(program, os.X_OK):
        return program
    package = os.path.dirname(os.path.abspath(__file__))
    return f"/usr/bin/env PYTHONPATH={os.path.dirname(package)} {sys.executable} -m gateways"


def run_directives(_options: argparse.Namespace) -> int:
    """Print the reference of directives."""
    from gateways.config.reference import format_reference

    sys.stdout.write(format_reference())
    return 0


def run_check(options: argparse.Namespace) -> int:
    """Print every mistake of a configuration, or that there is none."""
    from gateways.config.reader import read_configuration

    settings, mistakes = read_configuration(options.config)
    if settings is None:
        return print_mistakes(mistakes)
    mounts = sum(len(pool.mounts) for pool in settings.pools)
    sys.stdout.write(f"{options.config}: no mistakes; pools: {len(settings.pools)}, mounts: {mounts}\n")
    return 0
