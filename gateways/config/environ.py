"""The environment's view of the table of directives: ``GATEWAYS_MODEL=registry`` where another server is the host.

A host (gunicorn) has its own command line and its own names for much of what the table holds; variables are what is
left for ours. Pure: the variables are handed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gateways.config.directives import DIRECTIVES
from gateways.config.options import parse_texts
from gateways.config.sections import Entry, Mistakes, suggest

PREFIX = "GATEWAYS_"
OURS_TO_APPLICATIONS = frozenset({"GATEWAYS_MODE"})
"""Variables that this server sets in the environment of scripts: when it is started by one, they are no settings."""
DIRECTIVE_OF = {PREFIX + directive.attribute.upper(): directive for directive in DIRECTIVES}
"""GATEWAYS_MAX_SERVERS -> its directive."""


def collect_variables(variables: Mapping[str, str], settable: frozenset[str], mistakes: Mistakes) -> list[Entry]:
    """Return the entries that ``variables`` make of the directives in ``settable``; note text that is no value."""
    entries = []
    for name, directive in DIRECTIVE_OF.items():
        if directive.name in settable and name in variables:
            try:
                entries.append(Entry(directive.name, parse_texts(directive, [variables[name]]), spelled=name))
            except ValueError as error:
                mistakes.add(f"{name} must be {error}")
    return entries


def find_unknown(
    variables: Mapping[str, str], settable: frozenset[str], owners: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield (name, sentence) for each variable that looks like a setting and is none here.

    ``owners``: directive -> the host's own setting that stands for it.
    """
    known = {name for name, directive in DIRECTIVE_OF.items() if directive.name in settable}
    for name in sorted(variables):
        if not name.startswith(PREFIX) or name in known or name in OURS_TO_APPLICATIONS:
            continue
        directive = DIRECTIVE_OF.get(name)
        if directive is not None and directive.name in owners:
            yield name, f"{name} is no setting here: {owners[directive.name]} decides that"
        elif directive is not None:
            yield name, f"{name} is no setting here: it means something under our own supervisor only"
        else:
            yield name, f"there is no setting {name}{suggest(name, known)}"
