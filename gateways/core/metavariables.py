"""Field names to CGI meta-variable names and back (RFC 3875 4.1.18), and which fields are never passed.

Knows names only; values pass through other hands. One rule for every wire:

- a name with anything but letters, digits and ``-`` is dropped, so that ``X_Forwarded_For`` cannot pose as
  ``X-Forwarded-For`` (both become ``HTTP_X_FORWARDED_FOR``);
- ``Proxy`` is dropped: ``HTTP_PROXY`` is a setting of HTTP clients (httpoxy);
- what a trusted proxy says of its client (``X-Forwarded-*``, ``Forwarded`` ...) is dropped unless the peer is trusted.
"""

from __future__ import annotations

DROPPED = ""
"""The meta-variable name of a field that is never passed."""

FORWARDED = frozenset(
    {
        "forwarded",
        "x-client-ip",
        "x-real-ip",
        "x-forwarded",
        "x-forwarded-by",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-proto",
        "x-forwarded-protocol",
        "x-forwarded-scheme",
        "x-forwarded-server",
        "x-forwarded-ssl",
        "x-original-host",
        "x-url-scheme",
    }
)
"""Fields, in lower case, that only a trusted peer may send."""

FORWARDED_VARIABLES = frozenset("HTTP_" + name.upper().replace("-", "_") for name in FORWARDED)

_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_MEMO_ENTRIES = 1024
_MEMO_NAME = 64


def format_variable_name(field_name: str) -> str:
    """Return the meta-variable name of a field name (``"User-Agent"`` -> ``"HTTP_USER_AGENT"``), or ``DROPPED``."""
    if not field_name or not _ALLOWED.issuperset(field_name):
        return DROPPED
    name = field_name.upper().replace("-", "_")
    if name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        return name
    if name == "PROXY":
        return DROPPED
    return "HTTP_" + name


def format_field_name(variable: str) -> str:
    """Return the field name of a meta-variable (``"HTTP_USER_AGENT"`` -> ``"User-Agent"``), or ``""`` if it is none."""
    if variable in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        return variable.replace("_", "-").title()
    if not variable.startswith("HTTP_"):
        return ""
    return variable[5:].replace("_", "-").title()


class VariableNames(dict[str, str]):
    """A bounded memo of ``format_variable_name``: ``names["Host"] == "HTTP_HOST"``.

    Peers choose the keys, so it stops learning at 1,024 names of at most 64 characters.
    """

    def __missing__(self, field_name: str) -> str:
        variable = format_variable_name(field_name)
        if len(self) < _MEMO_ENTRIES and len(field_name) <= _MEMO_NAME:
            self[field_name] = variable
        return variable


VARIABLE_NAMES = VariableNames()
