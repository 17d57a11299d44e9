"""The command line: what was asked for, what is printed, and the exit status. The only module that prints or exits.

``gateways cgi`` is a CGI program: it is dispatched before anything is imported that a single request does not need.
Exit status: 0 done; 1 the server could not run; 2 what was given is wrong, and nothing was started.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import NoReturn

    from gateways.config.settings import PoolSettings, ServerSettings
    from gateways.core.errors import ConfigurationError

WRONG_USAGE = 2
FAILED = 1
COMMANDS = ("serve", "check", "cgi", "directives")
_CGI_USAGE = "gateways cgi TARGET [--model MODEL]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (without the program's name) and return the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words and words[0] == "cgi":
        return run_cgi(words[1:])
    return run_command(words)


def complain(sentence: str) -> int:
    """Print what is wrong and return the exit status for it."""
    sys.stderr.write(f"gateways: {sentence}\n")
    return WRONG_USAGE


def run_cgi(words: list[str]) -> int:
    """Run the application once, as the CGI script that a web server started (RFC 3875)."""
    target, model = parse_cgi(words)
    if not target:
        return complain(f"cgi needs one target and nothing but --model beside it: {_CGI_USAGE}")
    from gateways import server
    from gateways.core.errors import ConfigurationError

    try:
        return server.run_cgi(target, model)
    except ConfigurationError as error:
        return complain(str(error))


def parse_cgi(words: list[str]) -> tuple[str, str]:
    """Return (target, model) of a CGI program's arguments; ("", "") if they are wrong. No ``argparse``: it is slow."""
    targets = []
    model = ""
    rest = iter(words)
    for word in rest:
        if word == "--model":
            model = next(rest, "-")
        elif word.startswith("--model="):
            model = word[8:] or "-"
        else:
            targets.append(word)
    if len(targets) != 1 or targets[0].startswith("-") or model.startswith("-"):
        return "", ""
    return targets[0], model


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
    import argparse

    from gateways import __version__
    from gateways.config.options import add_options

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
    add_options(serve)
    serve.set_defaults(run=run_serve)
    check = commands.add_parser("check", help="name every mistake in a configuration", allow_abbrev=False)
    check.add_argument("--config", metavar="FILE", required=True)
    check.set_defaults(run=run_check)
    commands.add_parser("cgi", help=f"be a CGI script: {_CGI_USAGE}")
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
    known = ["--config", *(directive.flag for directive in DIRECTIVES if directive.name != "Target")]
    return f'there is no option "{option}"{suggest(option, known)}'


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


def print_mistakes(mistakes: Sequence[ConfigurationError]) -> int:
    """Print mistakes, one a line, and return the exit status for them."""
    for mistake in mistakes:
        sys.stderr.write(f"{mistake}\n" if mistake.file else f"gateways: {mistake}\n")
    return WRONG_USAGE


def run_serve(options: argparse.Namespace) -> int:
    """Serve until told to stop."""
    import os

    if (options.target is None) == (options.config is None):
        return complain("serve needs a TARGET or --config FILE, and not both")
    folder = os.getcwd()
    settings, mistakes = read_given(options, folder)
    if settings is None:
        return print_mistakes(mistakes)
    from gateways import server
    from gateways.core.errors import GatewayError
    from gateways.errorlog import open_log

    try:
        log = open_log("gateways", settings.error_log, settings.log_level)
    except OSError as error:
        return complain(f"the error log cannot be opened: {settings.error_log}: {error.strerror}")

    def reload() -> ServerSettings:
        fresh, mistakes = read_given(options, folder)
        for mistake in mistakes[1:]:
            log.error("%s", mistake)
        if fresh is None:
            raise mistakes[0]
        return fresh

    def announce(addresses: list[str]) -> None:
        sys.stdout.write(format_announcement(settings, addresses, os.getpid()))
        sys.stdout.flush()

    try:
        return server.serve(settings, reload=reload, log=log, announce=announce)
    except GatewayError as error:
        complain(str(error))
        return FAILED


def read_given(options: argparse.Namespace, folder: str) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    """Return (settings, mistakes) of what the command line names: a target, or a file with what overrides it."""
    from gateways.config.options import override_settings, read_options
    from gateways.config.reader import read_configuration

    if options.target is not None:
        return read_options(options.target, options, folder)
    settings, mistakes = read_configuration(options.config)
    if settings is None:
        return None, mistakes
    return override_settings(settings, options, folder)


def format_announcement(settings: ServerSettings, addresses: Sequence[str], pid: int) -> str:
    """Return what a person wants to know of a server that has started.

    ``addresses``: the bound addresses, in the order of the pools and of each pool's ``Listen``.
    """
    from gateways import __version__

    lines = [f"gateways {__version__}"]
    rest = list(addresses)
    for pool in settings.pools:
        bound = [f"{place.wire}://{rest.pop(0) if rest else place.address}" for place in pool.listen]
        lines += ["", *format_pool(pool, bound)]
    reload = "configuration and code" if settings.file else "code"
    lines += ["", f"stop: Ctrl-C, or kill -TERM {pid}; reload {reload}: kill -HUP {pid}", ""]
    return "\n".join(lines)


def format_pool(pool: PoolSettings, addresses: Sequence[str]) -> list[str]:
    """Return the lines that describe one pool and where each of its mounts answers."""
    idle = f"{pool.min_spare_servers} to {pool.max_spare_servers} idle"
    workers = f"workers: {pool.start_servers} at the start, {idle}, at most {pool.max_servers}"
    rows = []
    for address in addresses:
        for mount in pool.mounts:
            where = f"{address} {mount.path}" if "://unix:" in address else f"{address}{mount.path}"
            rows.append((where, mount.model, str(mount.target)))
    width = max((len(row[0]) for row in rows), default=0)
    lines = [f"  {where:<{width}}  {model:<8}  {target}" for where, model, target in rows]
    wires = ", ".join(dict.fromkeys(place.wire for place in pool.listen))
    return [f'pool "{pool.name}": {wires}; {workers}', *lines]
