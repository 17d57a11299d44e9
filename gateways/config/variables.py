"""Variables that a configuration gives to the requests of a mount: which may be given, and how they are written."""

from __future__ import annotations

import json
import re

RESERVED = frozenset(
    {
        "AUTH_TYPE", "CONTENT_LENGTH", "CONTENT_TYPE", "GATEWAY_INTERFACE", "GATEWAYS_MODE", "HTTPS", "PATH_INFO",
        "PATH_TRANSLATED", "QUERY_STRING", "REMOTE_ADDR", "REMOTE_HOST", "REMOTE_IDENT", "REMOTE_PORT", "REMOTE_USER",
        "REQUEST_METHOD", "REQUEST_SCHEME", "REQUEST_URI", "SCRIPT_FILENAME", "SCRIPT_NAME", "SERVER_ADDR",
        "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "SERVER_SOFTWARE",
    }
)  # fmt: skip
"""Variables, in capitals, that a request fills and no configuration may (RFC 3875 4.1; C03)."""

RESERVED_BEGINNINGS = ("HTTP_", "REDIRECT_")
"""What stands before the names of a request's fields, and of what it was before an internal redirect."""


def take_environment(value: object) -> tuple[tuple[str, str], ...]:
    """Return variables as (name, value) pairs. No message shows a value: some hold passwords."""
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list) and all(isinstance(item, str) and "=" in item for item in value):
        pairs = [(name, text) for name, _, text in (item.partition("=") for item in value)]
    else:
        raise ValueError('a table such as { NAME = "value" }, or a list of "NAME=value"')
    for name, text in pairs:
        _check_variable(name, text)
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a list that names no variable twice")
    return tuple(pairs)


def _check_variable(name: str, value: object) -> None:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        raise ValueError(f"variables named with letters, digits and _, not {json.dumps(name)}")
    if name.upper() in RESERVED or name.upper().startswith(RESERVED_BEGINNINGS):
        raise ValueError(f"free of {name}: what it says comes from the request (RFC 3875 4.1)")
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"text in quotes for each variable, which the value of {name} is not")


def parse_variable(text: str) -> list[str]:
    """Return one variable as a list of one; commas are part of its value."""
    return [text]
