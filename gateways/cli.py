"""The command line: what was asked for, what is printed, and the exit status. The only module that prints or exits.

``gateways cgi`` is a CGI program: it is dispatched before anything is imported that a single request does not need.
Exit status: 0 done; 1 the server could not run; 2 what was given is wrong, and nothing was started.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from gateways.config.settings import ServerSettings
    from gateways.core.errors import ConfigurationError
    from gateways.core.interfaces import Log
    from gateways.entry import FileEntry, ObjectEntry
    from gateways.start import Start

WRONG_USAGE = 2
FAILED = 1
COMMANDS = ("serve", "run", "reload", "status", "check", "audit", "conf", "cgi", "directives")
DEFAULT_BIND = "127.0.0.1:8000"
_RUN_OPTIONS = ("--model", "--bind", "--start-servers")
_CGI_USAGE = "gateways cgi TARGET [--model MODEL]"
_RUN_USAGE = "gateways run [--model MODEL] [--bind ADDRESS] [--start-servers N] FILE [ARGUMENT ...]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (without the program's name) and return the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words and words[0] == "cgi":
        return run_cgi(words[1:])
    if words and words[0] == "run":
        return run_file(words[1:])
    return run_command(words)


def complain(sentence: str) -> int:
    """Print what is wrong and return the exit status for it."""
    if sys.stderr is not None:  # closed, as FastCGI 2.2 allows
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
        return server.run_cgi(server.make_cgi_model(target, model))
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


def run_file(words: list[str]) -> int:
    """Run a file in whichever way this process was started: ``#!/usr/bin/env -S gateways run`` in its first line."""
    from gateways.entry import FileEntry

    options, rest = parse_run(words)
    if not rest:
        return refuse(f"run needs a file, and its own options before it: {_RUN_USAGE}")
    workers = options.get("--start-servers", "0")
    if not (workers.isascii() and workers.isdigit() and len(workers) < 5):
        return refuse(f"--start-servers must be 0 to 9999, not {workers!r}")
    entry = FileEntry(rest[0], options.get("--model", ""), tuple(rest[1:]))
    return start(entry, options.get("--bind", DEFAULT_BIND), int(workers))


def parse_run(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return (options, file and its arguments) of ``gateways run``; no file if they are wrong. No ``argparse``."""
    options: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, given, value = words[at].partition("=")
        if not given:
            at += 1
            value = words[at] if at < len(words) else ""
        if name not in _RUN_OPTIONS or name in options or not value:
            return {}, []
        options[name] = value
        at += 1
    return options, words[at:]


def run_object(
    application: Callable[..., Any] | None,
    handler: Callable[[Any], Any] | None,
    bind: str,
    start_servers: int,
    caller: str | None,
) -> None:
    """Do what ``gateways.run`` says, and exit. ``caller``: the name of the module that called it."""
    from gateways import server
    from gateways.entry import ObjectEntry

    if server.is_at_work() and caller != "__main__":
        return
    served = application if handler is None else handler
    if (application is None) == (handler is None) or not callable(served):
        sys.exit(refuse("gateways.run needs one callable: a WSGI application, or handler=..."))
    streams = (sys.stdin.buffer, sys.stdout.buffer) if server.is_at_work() else None
    entry = ObjectEntry(served, "wsgi" if handler is None else "handler", streams)
    # A script that a worker runs answers that worker's request, and never takes over the worker.
    sys.exit(entry.run_cgi() if streams else start(entry, bind, start_servers))


def start(entry: FileEntry | ObjectEntry, bind: str, workers: int) -> int:
    """Be what this process was started to be, and return the exit status."""
    import os

    from gateways import start
    from gateways.core.errors import ConfigurationError, GatewayError

    plan = start.plan_start(start.look_at_stdin(), os.environ, os.getpid())
    start.open_standard_descriptors()
    try:
        if plan.way == start.CGI:
            return entry.run_cgi()
        if plan.way == start.REFUSED:
            return refuse(plan.sentence)
        settings = entry.read_settings(bind)
    except ConfigurationError as error:
        return refuse(error.message)
    try:
        return serve_started(entry, settings, plan, workers)
    except GatewayError as error:
        complain(str(error))
        return FAILED


def serve_started(entry: FileEntry | ObjectEntry, settings: ServerSettings, plan: Start, workers: int) -> int:
    """Serve on the sockets that this process was given, or on those of the settings."""
    import os

    from gateways import server
    from gateways.entry import fit_pool, take_sockets
    from gateways.errorlog import open_log
    from gateways.listening import format_address
    from gateways.start import HTTP

    pool, sockets = take_sockets(fit_pool(settings.pools[0], workers), plan)

    def announce() -> None:
        if plan.way == HTTP:
            addresses = list(map(format_address, sockets))
            reload = "code" if workers and entry.reloads else ""
            from gateways.announcement import format_announcement

            sys.stdout.write(format_announcement([pool], addresses, os.getpid(), reload, workers))
            sys.stdout.flush()

    log = open_log("gateways", settings.error_log, settings.log_level)
    return server.serve_sockets(pool, sockets, entry.make(pool), supervised=workers > 0, log=log, announce=announce)


def refuse(sentence: str) -> int:
    """Say what is wrong, to a browser too if there is one, and return the exit status for it."""
    import os

    from gateways.start import format_refusal, is_under_web_server

    if is_under_web_server(os.environ):
        try:
            os.write(1, format_refusal(sentence))
        except OSError:
            pass
    return complain(sentence)


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
    commands.add_parser("run", help=f"be what this process was started to be: {_RUN_USAGE}")
    add_conf(commands.add_parser("conf", help="print a front server's configuration", allow_abbrev=False))
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
    import os

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
    import os

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
    import os

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
    from gateways.announcement import format_announcement
    from gateways.core.errors import GatewayError
    from gateways.start import take_activation

    try:
        activated = take_activation(os.getpid())
        log, slow_log = open_logs(settings)
        if options.reload:
            begin_reloading()
    except GatewayError as error:
        return complain(str(error))

    def reload() -> ServerSettings:
        fresh, mistakes = read_given(options, folder)
        for mistake in mistakes[1:]:
            log.error("%s", mistake)
        if fresh is None:
            raise mistakes[0]
        return fresh

    def announce(addresses: list[str]) -> None:
        reloaded = "configuration and code" if settings.file else "code"
        status = settings.status_listen
        sys.stdout.write(format_announcement(settings.pools, addresses, os.getpid(), reloaded, status=status))
        sys.stdout.flush()
        if options.reload:
            from gateways.reloading import spawn_watcher

            spawn_watcher(settings)

    try:
        return server.serve(settings, reload=reload, log=log, announce=announce, slow_log=slow_log, activated=activated)
    except GatewayError as error:
        complain(str(error))
        return FAILED


def open_logs(settings: ServerSettings) -> tuple[Log, Log | None]:
    """Return (error log, slow log if it is another). Raise ``ConfigurationError`` when one cannot be opened."""
    from gateways.core.errors import ConfigurationError
    from gateways.errorlog import open_log

    try:
        log = open_log("gateways", settings.error_log, settings.log_level)
    except OSError as error:
        raise ConfigurationError(f"the error log cannot be opened: {settings.error_log}: {error.strerror}") from error
    if not settings.slow_log:
        return log, None
    try:
        return log, open_log("gateways.slow", settings.slow_log, "info")
    except OSError as error:
        raise ConfigurationError(f"the slow log cannot be opened: {settings.slow_log}: {error.strerror}") from error


def begin_reloading() -> None:
    """See that files can be watched, and that no compiled file hides an edited one. Raise ``ConfigurationError``."""
    from gateways.reloading import check_library

    check_library()
    # A compiled file knows its source by size and whole second: an edit may change neither.
    sys.dont_write_bytecode = True


def run_reload(options: argparse.Namespace) -> int:
    """Reload a running server. Exit status 1 when its old workers stay."""
    from gateways import server
    from gateways.core.errors import GatewayError

    try:
        server.ask_reload(options.pid_file, options.patience)
    except GatewayError as error:
        complain(str(error))
        return FAILED
    return 0


def run_status(options: argparse.Namespace) -> int:
    """Print the status of a running server: once, or on a terminal until interrupted."""
    import os

    from gateways import statusview
    from gateways.config.reader import read_configuration
    from gateways.core.errors import GatewayError

    if (options.address is None) == (options.config is None):
        return complain("status needs an ADDRESS or --config FILE, and not both")
    address = options.address
    if address is None:
        settings, mistakes = read_configuration(options.config)
        if settings is None:
            return print_mistakes(mistakes)
        address = settings.status_listen
        if not address:
            return complain(f"{options.config} has no StatusListen")
    kind = statusview.choose_kind(options.json, options.once, sys.stdout.isatty(), os.environ)
    try:
        for text in statusview.show(address, kind, os.environ):
            sys.stdout.write(text)
            sys.stdout.flush()
    except GatewayError as error:
        complain(str(error))
        return FAILED
    return 0


def read_given(options: argparse.Namespace, folder: str) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    """Return (settings, mistakes) of what the command line names: a target, or a file with what overrides it."""
    from gateways.config.options import override_settings, read_options
    from gateways.config.reader import read_configuration

    if options.target is not None:
        settings, mistakes = read_options(options.target, options, folder)
    else:
        settings, mistakes = read_configuration(options.config)
        if settings is not None:
            settings, mistakes = override_settings(settings, options, folder)
    if settings is not None and options.reload:
        from gateways.reloading import soften

        settings = soften(settings)
    return settings, mistakes
