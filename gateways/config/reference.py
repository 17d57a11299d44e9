"""The reference of directives, made from the table: ``python -m gateways.config.reference > docs/directives.md``."""

from __future__ import annotations

import sys

from gateways.config.directives import REQUIRED, Directive, Scope, select
from gateways.config.kinds import show

_INTRODUCTION = """\
# Directives

Every setting there is, made from the table in `gateways/config/directives.py` by
`python -m gateways.config.reference > docs/directives.md`; do not edit it by hand.

A configuration is a TOML file. Server directives stand at its top, pool directives in a table `[pool.NAME]`, mount
directives in a table `[[pool.NAME.Mount]]`. On the command line each directive is an option of `gateways serve`.
`gateways check --config FILE` names every mistake in a file, with its line.
"""

_SCOPES = {
    Scope.SERVER: ("Server", "One supervisor with all its pools; at the top of the file."),
    Scope.POOL: ("Pool", "One set of workers and the addresses they serve; in `[pool.NAME]`."),
    Scope.MOUNT: (
        "Mount",
        """One application below one path of a pool; in `[[pool.NAME.Mount]]`. Those marked *shared* may also stand in
the pool: then they hold for all its mounts that do not say otherwise.""",
    ),
}


def format_reference() -> str:
    """Return the reference as Markdown."""
    parts = [_INTRODUCTION]
    for scope, (title, text) in _SCOPES.items():
        parts.append(f"## {title}\n\n{text}\n")
        parts.extend(_format_directive(directive) for directive in select(scope))
    return "\n".join(parts)


def _format_directive(directive: Directive) -> str:
    facts = [f"option: {_format_option(directive)}", f"value: {directive.kind.name}"]
    if directive.unit and directive.unit not in directive.kind.name:
        facts.append(f"unit: {directive.unit}")
    if directive.zero:
        facts.append(f"0: {directive.zero}")
    facts.append(f"default: {_format_default(directive)}")
    if directive.shared:
        facts.append("*shared*")
    lines = "\n".join(f"- {fact}" for fact in facts)
    return f"### {directive.name}\n\n{directive.help}\n\n{lines}\n"


def _format_option(directive: Directive) -> str:
    return "the argument TARGET" if directive.name == "Target" else f"`{directive.flag} {directive.kind.short}`"


def _format_default(directive: Directive) -> str:
    if directive.default is REQUIRED:
        return "none, it must be given"
    shown = show(directive.default)
    return "none" if shown in ('""', "[]") else f"`{shown}`"


if __name__ == "__main__":
    sys.stdout.write(format_reference())
