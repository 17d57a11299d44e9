"""The command line's view of the table of directives: one option for each, read into the same settings as a file.

Knows ``argparse``; prints nothing and ends no process.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

from gateways.config.build import build_mount, build_pool, build_server, check_places, settle_listen
from gateways.config.directives import DIRECTIVES, REQUIRED, Directive, Scope, select
from gateways.config.kinds import show
from gateways.config.sections import Entry, Mistakes, take_section
from gateways.config.settings import MountSettings, PoolSettings, ServerSettings
from gateways.config.targets import Target
from gateways.core.errors import ConfigurationError

POOL_NAME = "main"
"""What the pool is called that a command line makes."""

OVERRIDES = ("Listen", "ErrorLog", "LogLevel")
"""Directives whose options may be given beside ``--config``; they win over the file."""

_TITLES = {Scope.SERVER: "the server", Scope.POOL: "the pool of workers", Scope.MOUNT: "the application"}
_FROM_TARGET = "Target"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for every directive but the target, which is an argument."""
    for scope, title in _TITLES.items():
        group = parser.add_argument_group(title)
        for directive in select(scope):
            if directive.name != _FROM_TARGET:
                group.add_argument(
                    directive.flag,
                    dest=directive.attribute,
                    action="append",
                    metavar=directive.kind.short,
                    help=_describe(directive).replace("%", "%%"),
                )


def _describe(directive: Directive) -> str:
    unit = f" {directive.unit}" if directive.unit else ""
    zero = f" (0: {directive.zero})" if directive.zero else ""
    default = "" if directive.default in (REQUIRED, "") else f" Default: {show(directive.default)}{unit}{zero}."
    return directive.help + default


def collect_entries(arguments: object, mistakes: Mistakes) -> list[Entry]:
    """Return the entries that the options make; note an option given twice, and text that is no value."""
    entries = []
    for directive in DIRECTIVES:
        texts = getattr(arguments, directive.attribute, None)
        if not texts or directive.name == _FROM_TARGET:
            continue
        try:
            entries.append(Entry(directive.name, parse_texts(directive, texts), spelled=directive.flag))
        except ValueError as error:
            mistakes.add(f"{directive.flag} must be {error}")
    return entries


def parse_texts(directive: Directive, texts: Sequence[str]) -> object:
    """Return what a file would hold for an option's texts. Raise ``ValueError`` as ``Kind.parse_text`` does."""
    if directive.kind.listed:
        return [item for text in texts for item in directive.kind.parse_text(text)]  # type: ignore[attr-defined]
    if len(texts) > 1:
        raise ValueError("given once")
    return directive.kind.parse_text(texts[0])


def read_options(target: str, arguments: object, folder: str) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    """Return (settings, mistakes) for one target served by one pool; paths are relative to ``folder``.

    ``arguments``: an object that has a list of texts under the code name of each option that was given.
    """
    mistakes = Mistakes()
    entries = collect_entries(arguments, mistakes)
    mount_entries = [Entry(_FROM_TARGET, target, spelled="TARGET"), *_of_scope(entries, Scope.MOUNT)]
    mount = build_mount(take_section(Scope.MOUNT, mount_entries, folder, mistakes), folder, mistakes)
    return _build(entries, mount, folder, mistakes)


def read_target_options(
    target: Target, model: str, arguments: object, folder: str
) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    """Return (settings, mistakes) for a target and a model that are settled; nothing looks whether it is there."""
    mistakes = Mistakes()
    return read_entries(target, model, collect_entries(arguments, mistakes), folder, mistakes)


def read_entries(
    target: Target, model: str, entries: Sequence[Entry], folder: str, mistakes: Mistakes
) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    """The same for ``entries`` from anywhere, with the mistakes that were found in them before."""
    section = take_section(Scope.MOUNT, _of_scope(entries, Scope.MOUNT), folder, mistakes)
    mount = MountSettings(**{**section.values, "target": target, "model": model})
    return _build(entries, mount, folder, mistakes)


def _build(
    entries: Sequence[Entry], mount: MountSettings, folder: str, mistakes: Mistakes
) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    server = take_section(Scope.SERVER, _of_scope(entries, Scope.SERVER), folder, mistakes)
    pool = take_section(Scope.POOL, _of_scope(entries, Scope.POOL), folder, mistakes)
    built = build_pool(POOL_NAME, pool, [mount], mistakes)
    settings = build_server("", server, [(built, pool)], mistakes)
    return (None if mistakes.found else settings), mistakes.found


def _of_scope(entries: Sequence[Entry], scope: Scope) -> list[Entry]:
    names = {directive.name for directive in select(scope)}
    return [entry for entry in entries if entry.name in names]


def override_settings(
    settings: ServerSettings, arguments: argparse.Namespace, folder: str
) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    """Return a file's settings with what the command line says beside ``--config``, and the mistakes in it."""
    mistakes = Mistakes()
    entries = collect_entries(arguments, mistakes)
    for entry in entries:
        if entry.name not in OVERRIDES:
            mistakes.add(f"{entry.label} cannot be given with --config: write {entry.name} in {settings.file}")
    server = take_section(Scope.SERVER, _of_scope(entries, Scope.SERVER), folder, mistakes)
    pool = take_section(Scope.POOL, [entry for entry in entries if entry.name == "Listen"], folder, mistakes)
    if "listen" in pool.given and len(settings.pools) != 1:
        mistakes.add(f"--bind cannot be given: {settings.file} has {len(settings.pools)} pools, each with its Listen")
    pools = settings.pools
    if "listen" in pool.given and not mistakes.found:
        pools = (dataclasses.replace(pools[0], listen=settle_listen(pool.values["listen"], pools[0].wire)),)
        check_override(pools[0], mistakes)
    if mistakes.found:
        return None, mistakes.found
    written = {name: server.values[name] for name in server.given}
    return dataclasses.replace(settings, pools=pools, **written), []


def check_override(pool: PoolSettings, mistakes: Mistakes) -> None:
    """Note what is wrong with addresses that the command line gives to a file's pool."""
    values = {name: getattr(pool, name) for name in ("allow_wildcard", "allowed_peers", "secret")}
    for _, sentence in check_places(pool.listen, values):
        mistakes.add(sentence)
