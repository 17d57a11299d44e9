"""The commands that serve, and those that speak to a running server: ``serve``, ``reload`` and ``status``."""

from __future__ import annotations

import os
import sys

from gateways.complaint import FAILED, complain, print_mistakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from gateways.config.settings import ServerSettings
    from gateways.core.errors import ConfigurationError
    from gateways.core.interfaces import Log


def run_serve(options: argparse.Namespace) -> int:
    """Serve until told to stop."""
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
