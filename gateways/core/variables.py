"""Meta-variables as a peer sends them: which names are kept, what a repeated name means, and CONTENT_LENGTH.

For the wires that carry meta-variables (fastcgi, scgi, uwsgi, cgi). Knows names and values; not how a wire frames them.

Names decide between right and wrong here, because a name becomes a key in an application's environment:

- a name that is not letters, digits and ``_`` is dropped: ``wsgi.url_scheme`` cannot be set from outside;
- ``HTTP_PROXY`` is dropped in any case: it is a setting of HTTP clients (httpoxy).
"""

from __future__ import annotations

from gateways.core.errors import RemoteProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_BLOCK = 1 << 20
"""The most bytes of variables that one request may bring, where its wire sets no lower bound."""
MAX_VARIABLES = 1000
"""The most variables that one request may bring; front servers send some thirty, and one for each field."""

DROPPED = ""
"""The key of every variable that is not passed."""

_DIGITS = "0123456789"
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_" + _DIGITS)
_MEMO_ENTRIES = 1024
_MEMO_NAME = 64
_GUARDED = frozenset({"AUTH_TYPE", "CONTENT_LENGTH", "REMOTE_IDENT", "REMOTE_USER", "REQUEST_METHOD"})


def format_key(name: str) -> str:
    """Return the name under which a peer's variable is kept: itself, or ``DROPPED``."""
    if not name or name[0] in _DIGITS or not _ALLOWED.issuperset(name) or name.upper() == "HTTP_PROXY":
        return DROPPED
    return name


class VariableKeys(dict[str, str]):
    """A bounded memo of ``format_key``: ``keys["HTTP_HOST"] == "HTTP_HOST"``, ``keys["HTTP_PROXY"] == ""``.

    Peers choose the keys, so it stops learning at 1,024 names of at most 64 characters.
    """

    def __missing__(self, name: str) -> str:
        key = format_key(name)
        if len(self) < _MEMO_ENTRIES and len(name) <= _MEMO_NAME:
            self[name] = key
        return key


VARIABLE_KEYS = VariableKeys()


def merge_repeated(pairs: Iterable[tuple[str, str]], strict: bool, section: str) -> dict[str, str]:
    """Return the variables of ``pairs`` where some name came twice or was dropped.

    An ``HTTP_`` name keeps its first value: two fields whose names differ in ``-`` and ``_`` look the same here, and
    joining them would let one pose as the other. Another name, which only the front's own settings can repeat, takes
    its last value, as front servers' users expect of a later line; with ``strict``, and always for a name that says who
    the user is or how long the body is, two different values are refused. Raise ``RemoteProtocolError`` (400).
    """
    variables: dict[str, str] = {}
    for name, value in pairs:
        key = VARIABLE_KEYS[name]
        if not key:
            continue
        first = variables.setdefault(key, value)
        if first == value or key.startswith("HTTP_"):
            continue
        if strict or key in _GUARDED or key.startswith("SSL_"):
            raise RemoteProtocolError(f"{key} came twice with different values", 400, section)
        variables[key] = value
    return variables


def check_values(variables: dict[str, str], section: str) -> None:
    """Raise ``RemoteProtocolError`` (400) when a value holds NUL, which no environment can carry."""
    if "\0" in "".join(variables.values()):
        name = next(name for name, value in variables.items() if "\0" in value)
        raise RemoteProtocolError(f"the value of {name} holds NUL", 400, section)


def parse_content_length(text: str, limit: int) -> int:
    """Return CONTENT_LENGTH as a number of bytes, 0 when it is absent or empty.

    Raise ``RemoteProtocolError``: 400 unless it is digits only (RFC 3875 4.1.2), 413 beyond ``limit`` bytes.
    """
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise RemoteProtocolError(f"CONTENT_LENGTH {text[:40]!r} is not a number", 400, "RFC 3875 4.1.2")
    if int(text) > limit:
        raise RemoteProtocolError(f"the request body is longer than {limit} bytes", 413, "RFC 9110 15.5.14")
    return int(text)
