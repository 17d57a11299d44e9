"""Secrets: written in the configuration or kept in a file of their own, and shown nowhere.

No message of this module holds what it was given.
"""

from __future__ import annotations

import os.path
import re

_FILE = "file:"
_SECRET = re.compile(r"[\x21-\x7e]{16,64}")
_RULE = "16 to 64 ASCII characters without spaces"
_MAX_LINE = 1024


def take_secret(value: object) -> str:
    """Return a secret, or ``file:PATH``. Raise ``ValueError`` with the rest of the sentence "Secret must be ..."."""
    if isinstance(value, str) and value.startswith(_FILE) and len(value) > len(_FILE) and value.isprintable():
        return value
    if not isinstance(value, str) or _SECRET.fullmatch(value) is None:
        raise ValueError(f"{_RULE}, or file:PATH")
    return value


def parse_secret(text: str) -> str:
    """Return ``file:PATH``: every user of the machine can read a command line."""
    if not text.startswith(_FILE):
        raise ValueError("file:PATH on the command line, where everybody can read it")
    return text


def resolve_secret(value: object, folder: str) -> str:
    """Return the secret; a path made absolute."""
    text = str(value)
    return _FILE + os.path.normpath(os.path.join(folder, text[len(_FILE) :])) if text.startswith(_FILE) else text


def read_secret(text: str) -> str:
    """Return the secret that ``text`` is, or that is the first line of the file it names; ``""`` for none.

    Raise ``ValueError`` with the rest of a sentence that begins with the directive's name.
    """
    if not text.startswith(_FILE):
        return text
    path = text[len(_FILE) :]
    try:
        with open(path, "rb") as file:
            line = file.readline(_MAX_LINE)
    except OSError as error:
        raise ValueError(f"cannot be read: {path}: {error.strerror}") from error
    secret = line.removesuffix(b"\n").removesuffix(b"\r").decode("latin-1")
    if _SECRET.fullmatch(secret) is None:
        raise ValueError(f"is not in {path}: its first line must be {_RULE}")
    return secret
