"""The index page: what a pool serves, as a page for people. It answers ``/`` where nothing is mounted there.

Knows the names of the execution models and what each does for a request; runs no application.
"""

from __future__ import annotations

from gateways.execution.index_style import STYLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    from gateways.core.interfaces import Exchange

    class MountFacts(Protocol):
        """What the page tells of one mount."""

        @property
        def path(self) -> str: ...
        @property
        def title(self) -> str: ...
        @property
        def model(self) -> str: ...
        @property
        def namespace(self) -> str: ...
        @property
        def target(self) -> Any: ...
        @property
        def pages(self) -> tuple[str, ...]: ...

    class PlaceFacts(Protocol):
        """Where a pool listens and what it speaks there."""

        @property
        def address(self) -> str: ...
        @property
        def wire(self) -> str: ...

    class PoolFacts(Protocol):
        """What the page tells of a pool."""

        @property
        def name(self) -> str: ...
        @property
        def mounts(self) -> Sequence[MountFacts]: ...
        @property
        def listen(self) -> Sequence[PlaceFacts]: ...
        @property
        def start_servers(self) -> int: ...
        @property
        def min_spare_servers(self) -> int: ...
        @property
        def max_spare_servers(self) -> int: ...
        @property
        def max_servers(self) -> int: ...
        @property
        def max_requests_per_child(self) -> int: ...
        @property
        def keep_alive_timeout(self) -> float: ...


STEPS = (
    "new process", "start Python", "import modules", "compile the file", "run the file", "fill variables", "answer",
)  # fmt: skip
"""What may have to be done to answer a request, in the order in which it is done."""

LADDER: tuple[tuple[str, str, str, str], ...] = (
    (
        "cgi", "xxxxxxx",
        ("A new process for every request. The program is started, handed the request in its environment and on its "
        "standard input, and thrown away afterwards."),
        "Nothing is kept.",
    ),
    (
        "zygote", "x...xxx",
        ("A copy of the worker for every request. It is forked, runs the script and ends: as isolated as CGI, but "
        "Python has started before the request came."),
        "The interpreter, the imported modules and the compiled script are kept.",
    ),
    (
        "perlrun", "...xxxx",
        "The worker itself runs the script, in a namespace that is made and thrown away.",
        "Library modules stay imported; the script is compiled every time.",
    ),
    (
        "registry", "....xxx",
        "The worker runs a script that it compiled once.",
        "Imported modules and the compiled script are kept",
    ),
    (
        "wsgi", ".....xx",
        "The file was imported once; its function is called with the request as a dictionary (PEP 3333).",
        "The whole application is kept.",
    ),
    (
        "handler", "......x",
        ("The file was imported once; its function is called with the raw request, and nothing is made that it does "
        "not ask for."),
        "The whole application is kept.",
    ),
)  # fmt: skip
"""Rows (model, which of ``STEPS`` it does for every request, what happens, what is kept), from slow to fast."""

ORDER = [row[0] for row in LADDER]
NAMESPACES = {
    "fresh": "; every run gets a new namespace.",
    "shared": "; so are its globals: a run finds what earlier runs left in them.",
}
FORM_PAGE = "/post"
"""A mount that names this page gets a button on the form that sends a body."""


class IndexRow:
    """One mount on the page."""

    __slots__ = ("kept", "model", "pages", "path", "steps", "target", "title", "what")

    def __init__(self, mount: MountFacts) -> None:
        _, self.steps, self.what, self.kept = LADDER[ORDER.index(mount.model)]
        if mount.model == "registry":
            self.kept += NAMESPACES[mount.namespace]
        self.model = mount.model
        self.path = mount.path
        self.title = mount.title or mount.path
        self.target = _short_target(mount.target)
        self.pages = mount.pages


class IndexRows:
    """What the page shows: ``mounts`` in the order of the ladder, and ``facts``, rows (what, value, directive)."""

    __slots__ = ("facts", "mounts")

    def __init__(self, mounts: list[IndexRow], facts: list[tuple[str, str, str]]) -> None:
        self.mounts = mounts
        self.facts = facts


def make_rows(pool: PoolFacts) -> IndexRows:
    """Return what the index page of a pool shows."""
    mounts = sorted((IndexRow(mount) for mount in pool.mounts), key=lambda row: ORDER.index(row.model))
    requests = pool.max_requests_per_child
    facts = [
        (
            "Listening on",
            ", ".join(map(_public_address, pool.listen)),
            "Listen",
        ),
        ("Workers at the start", str(pool.start_servers), "StartServers"),
        ("Started while fewer are idle than", str(pool.min_spare_servers), "MinSpareServers"),
        ("Retired while more are idle than", str(pool.max_spare_servers), "MaxSpareServers"),
        ("Never more than", str(pool.max_servers), "MaxServers"),
        ("A worker is replaced after", f"{requests:,} requests" if requests else "any number", "MaxRequestsPerChild"),
        ("An idle connection is kept", f"{pool.keep_alive_timeout:g} s", "KeepAliveTimeout"),
    ]
    return IndexRows(mounts, facts)


def _public_address(place: PlaceFacts) -> str:
    return f"{place.wire} on {'a UNIX socket' if place.address.startswith('unix:') else place.address}"


def _short_target(target: Any) -> str:
    """Return a target without its folders: the page is for everybody, and folders are not theirs to know."""
    text = str(target)
    return text.rpartition("/")[2] or text


def escape(text: str) -> str:
    """Return text that is safe in HTML and in quoted attributes; the ``html`` module is large for five characters."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


def format_index(rows: IndexRows, prefix: str) -> str:
    """Return the page. ``prefix``: the path below which the pool is reached, put before every link."""
    targets = {row.target.partition(":")[0] for row in rows.mounts}
    if len(targets) == 1:
        title = f"{targets.pop()}, {_count(len(rows.mounts))} ways"
        lead = "Every rung serves the same application. What differs is how much is done again for each request."
    else:
        title = "Applications"
        lead = "What differs between the ways to run an application is how much is done again for each request."
    ladder = "".join(_format_rung(number, row, prefix) for number, row in enumerate(rows.mounts, 1))
    facts = "".join(
        f'<tr><th scope="row">{escape(what)}</th><td>{escape(value)}</td>'
        f'<td class="name"><code>{escape(name)}</code></td></tr>\n'
        for what, value, name in rows.facts
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n<style>{STYLE}</style>\n<main>\n'
        f'<h1>{escape(title)}</h1>\n<p class="lead">{lead}</p>\n'
        '<div class="legend"><span><span class="step">done</span>for every request</span>'
        '<span><span class="step kept">kept</span>done before, or never needed</span></div>\n'
        f'<ol class="ladder">\n{ladder}</ol>\n{_format_form(rows, prefix)}'
        f"<h2>The workers</h2>\n<table>\n{facts}</table>\n"
        "<footer><code>gateways directives</code> explains every setting.</footer>\n</main>\n</html>\n"
    )


def _count(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six")
    return words[number] if number < len(words) else str(number)


def _format_rung(number: int, row: IndexRow, prefix: str) -> str:
    steps = "".join(_format_step(name, mark) for name, mark in zip(STEPS, row.steps, strict=True))
    model = "" if row.title.lower() == row.model else f", model {row.model}"
    pages = "".join(
        f'<li><a href="{escape(_join(prefix, row.path, page))}">{escape(page)}</a></li>' for page in row.pages
    )
    return (
        f'<li class="rung"><span class="number" aria-hidden="true">{number}</span><article class="card">\n'
        f'<header><h3>{escape(row.title)}</h3><span class="path">{escape(prefix + row.path)} &rarr; '
        f"{escape(row.target)}{model}</span></header>\n"
        f"<p>{escape(row.what)} {escape(row.kept)}</p>\n"
        f'<ul class="steps">{steps}</ul>\n<ul class="pages">{pages}</ul>\n</article></li>\n'
    )


def _format_step(name: str, mark: str) -> str:
    if mark == "x":
        return f'<li class="step">{name}</li>'
    return f'<li class="step kept">{name}<span class="hidden"> (kept)</span></li>'


def _format_form(rows: IndexRows, prefix: str) -> str:
    """Return a form with one button for each mount that takes a body, or ``""``."""
    buttons = "".join(
        f'<button formaction="{escape(_join(prefix, row.path, FORM_PAGE))}">{escape(row.title)}</button>\n'
        for row in rows.mounts
        if FORM_PAGE in row.pages
    )
    if not buttons:
        return ""
    return (
        '<h2>Send a body</h2>\n<form method="post" enctype="text/plain">\n'
        '<label for="body">The application answers with the length and the SHA-256 of what it was sent.</label>\n'
        '<textarea id="body" name="body" rows="3">1234567890</textarea>\n'
        f'<div class="buttons">{buttons}</div>\n</form>\n'
    )


def _join(prefix: str, path: str, page: str) -> str:
    return prefix + path.rstrip("/") + page


class IndexModel:
    """Answers ``/`` with the index page, and every other path below its mount with 404."""

    name = "index"

    def __init__(self, rows: IndexRows) -> None:
        self._rows = rows

    def load(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing is held."""

    def run(self, exchange: Exchange) -> None:
        """Send the page."""
        request = exchange.request
        if request.path_info not in ("", "/"):
            exchange.respond("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")], b"404 Not Found\n")
        elif request.method not in ("GET", "HEAD"):
            fields = [("Content-Type", "text/plain; charset=utf-8"), ("Allow", "GET, HEAD")]
            exchange.respond("405 Method Not Allowed", fields, b"405 Method Not Allowed\n")
        else:
            page = format_index(self._rows, request.script_name)
            exchange.respond("200 OK", [("Content-Type", "text/html; charset=utf-8")], page.encode("utf-8", "replace"))
