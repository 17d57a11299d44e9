"""The support matrix, wire by execution model: ``python -m gateways.config.matrix > docs/support-matrix.md``.

Every wire that is served on a socket works with every model, because the two axes never meet; ``tests`` runs each pair.
What makes no sense is the ``cgi`` wire with models that live from more than one request.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from gateways.config.addresses import WIRES
from gateways.config.directives import MODELS

ONE_REQUEST: Mapping[str, str] = {
    "cgi": "the web server would start us so that we start the script: let it start the script",
    "zygote": "there is nothing to copy: the process that would be copied for each request lives for one",
    "perlrun": "the interpreter that it keeps is gone after one request",
    "registry": "the code that it keeps is gone after one request",
}
"""Model -> why a CGI program, which is there for one request, does not offer it."""

_INTRODUCTION = """\
# Support matrix

Wire (how a request comes) by execution model (how the application is run for it). Made by
`python -m gateways.config.matrix > docs/support-matrix.md`; do not edit it by hand. `tests/test_wires_serving.py` asks
for pages and posts a body over every pair that says yes.
"""
_PROCESSES = """\
Each of these pairs is served by either process model: workers under the supervisor (`gateways serve`,
`gateways run --start-servers N`) or one process by itself (`gateways run`, as FastCGI process managers start it). The
`cgi` wire is one process for one request, by what it is; `gateways run FILE` with one of the models that it does not
offer steps aside there, and the file is the CGI script.
"""


def find_reason(wire: str, model: str) -> str:
    """Return why ``model`` is not offered on ``wire``; ``""`` where it is."""
    return ONE_REQUEST.get(model, "") if wire == "cgi" else ""


def format_matrix() -> str:
    """Return the matrix as Markdown, with the reasons below it."""
    rows = [["", *MODELS], ["---"] * (len(MODELS) + 1)]
    for wire in ("cgi", *WIRES):
        rows.append([f"**{wire}**", *("no" if find_reason(wire, model) else "yes" for model in MODELS)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    reasons = "\n".join(f"- `cgi` with `{model}`: {reason}." for model, reason in ONE_REQUEST.items())
    return f"{_INTRODUCTION}\n{table}\n\nWhy not:\n\n{reasons}\n\n{_PROCESSES}"


if __name__ == "__main__":
    sys.stdout.write(format_matrix())
