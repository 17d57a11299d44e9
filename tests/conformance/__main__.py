"""``python -m tests.conformance URL ...``: hold the table against servers that serve ``apps/conformance.py``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.conformance.addresses import SCHEMES, Address, parse_address
from tests.conformance.clients.stream import Stream
from tests.conformance.matrix import format_markdown, format_text
from tests.conformance.runner import FAIL, LIMIT, Outcome, Target, run_table
from tests.conformance.table import Row, load_table


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance",
        description="Hold the conformance table against servers that serve apps/conformance.py. "
        "Exit status 1 when a row fails.",
    )
    parser.add_argument(
        "url",
        nargs="*",
        metavar="[NAME=]URL",
        help=f"a server: one of {', '.join(SCHEMES)}, then ://HOST:PORT[/PREFIX] or ://unix:PATH[:/PREFIX]",
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run this row (may be repeated)")
    parser.add_argument("--behind", default="", metavar="FRONT", help="the front server that stands before every URL")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the matrix there too, as Markdown")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="SECONDS", help="for each exchange (%(default)g)")
    parser.add_argument("--list", action="store_true", help="print the rows with where each comes from, and end")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    return parser


def take_rows(names: list[str]) -> list[Row]:
    """Return the rows of these names, all for none. Raise ``ValueError`` for a name that no row has."""
    rows = list(load_table())
    unknown = set(names) - {row.name for row in rows}
    if unknown:
        raise ValueError(f"no row is called {', '.join(sorted(unknown))}; --list shows them")
    return [row for row in rows if not names or row.name in names]


def make_target(text: str, front: str) -> Target:
    """Return the target that ``[NAME=]URL`` names."""
    name, found, url = text.partition("=")
    if not found or "://" in name:
        name = url = text
    return Target(name, parse_address(url), front)


def is_reachable(address: Address) -> bool:
    """True when something accepts a connection there."""
    try:
        Stream(address, LIMIT).close()
    except OSError:
        return False
    return True


def report(outcome: Outcome) -> None:
    """Show progress: a dot, an F or an s."""
    sys.stderr.write({"pass": ".", "fail": "F", "skip": "s"}[outcome.result])
    sys.stderr.flush()


def main() -> int:
    """Run the command line. Return its exit status."""
    parser = make_parser()
    options = parser.parse_args()
    try:
        rows = take_rows(options.only)
        targets = [make_target(text, options.behind) for text in options.url]
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        print("\n".join(f"{row.name}: {'; '.join(row.ids)}" for row in rows))
        return 0
    if not targets:
        parser.error("name at least one URL")
    unreachable = [target.name for target in targets if not is_reachable(target.address)]
    if unreachable:
        parser.error(f"nothing listens at {', '.join(unreachable)}")
    results = {}
    for target in targets:
        results[target.name] = run_table(rows, target, options.limit, None if options.quiet else report)
        if not options.quiet:
            sys.stderr.write(f" {target.name}\n")
    print(format_text(results), end="")
    if options.markdown:
        options.markdown.write_text(format_markdown(results))
    return int(any(outcome.result == FAIL for outcomes in results.values() for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
