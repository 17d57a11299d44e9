"""``python -m bench.preloaded MODULES ...``: our server with an application's modules imported before it forks.

``MODULES`` are names with commas between; the rest of the command line is that of ``gateways``. A worker of ours loads
its application after the fork, so that a reload brings new code. Servers that fork for each request had theirs in the
parent: with this, ours has it as well.
"""

from __future__ import annotations

import sys
from importlib import import_module

from gateways import cli


def main(words: list[str]) -> int:
    """Import the modules and run the server; return its exit status."""
    for name in words[0].split(","):
        import_module(name)
    return cli.main(words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
