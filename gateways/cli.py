"""The command line: what was asked for, what is printed, and the exit status.

``gateways cgi`` is a CGI program: it is dispatched before anything is imported that a single request does not need.
So is ``gateways run``. What people type is in ``commands``; the two, and ``operate``, alone print or exit.
Exit status: 0 done; 1 the server could not run; 2 what was given is wrong, and nothing was started.
"""

from __future__ import annotations

import sys

from gateways.complaint import CGI_USAGE, FAILED, RUN_USAGE, complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gateways.config.settings import ServerSettings
    from gateways.entry import FileEntry, ObjectEntry
    from gateways.start import Start

DEFAULT_BIND = "127.0.0.1:8000"
_RUN_OPTIONS = ("--model", "--bind", "--start-servers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (without the program's name) and return the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words and words[0] == "cgi":
        return run_cgi(words[1:])
    if words and words[0] == "run":
        return run_file(words[1:])
    from gateways.commands import run_command

    return run_command(words)


def run_cgi(words: list[str]) -> int:
    """Run the application once, as the CGI script that a web server started (RFC 3875)."""
    target, model = parse_cgi(words)
    if not target:
        return complain(f"cgi needs one target and nothing but --model beside it: {CGI_USAGE}")
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
        return refuse(f"run needs a file, and its own options before it: {RUN_USAGE}")
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
