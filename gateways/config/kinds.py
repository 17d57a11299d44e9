"""The kinds of values a directive can have: what a file may hold, how the command line spells it, what is refused.

A kind takes the value as TOML gives it (``take``) or as text (``parse_text``, which only turns text into what TOML
would have given). Knows no directive and no file; paths are made absolute by whoever knows the folder.
"""

from __future__ import annotations

import difflib
import grp
import json
import os.path
import pwd
import re
from collections.abc import Callable
from dataclasses import dataclass

from gateways.config.addresses import ListenAddress, PeerRule, parse_listen
from gateways.config.secrets import parse_secret, resolve_secret, take_secret
from gateways.config.variables import parse_variable, take_environment


def show(value: object) -> str:
    """Return a value as a configuration file would spell it, without control characters."""
    if isinstance(value, PeerRule):
        return show(list(value.written))
    if isinstance(value, tuple):
        value = value[0] if len(value) == 1 else list(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, default=str)


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of value: its name in the reference, the function that checks it, and the one that reads it from text.

    ``take(value)`` returns the setting's value or raises ``ValueError`` with the rest of the sentence
    "NAME must be ...". ``parse_text(text)`` returns what a file would hold; it raises ``ValueError`` in the same way.
    ``short``: what stands for the value after an option. ``listed``: several values make one setting, so an option may
    be repeated.
    ``resolve(value, folder)``: the value with its relative paths made absolute from ``folder``.
    """

    name: str
    take: Callable[[object], object]
    parse_text: Callable[[str], object]
    short: str
    listed: bool = False
    resolve: Callable[[object, str], object] | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """A check of a number: ``least`` to ``most`` (``None``: no bound)."""

    least: float
    most: float | None = None

    def check(self, value: float) -> None:
        """Raise ``ValueError`` when ``value`` is outside."""
        if value < self.least or (self.most is not None and value > self.most):
            raise ValueError(f"{self}, not {show(value)}")

    def __str__(self) -> str:
        return f"at least {show(self.least)}" if self.most is None else f"{show(self.least)} to {show(self.most)}"


def whole(least: int = 0, most: int | None = None) -> Kind:
    """A whole number from ``least`` to ``most``."""
    limits = Range(least, most)

    def take(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"a whole number, not {show(value)}")
        limits.check(value)
        return value

    return Kind(f"whole number, {limits}", take, parse_whole, "N")


def number(name: str, least: float = 0.0, most: float | None = None) -> Kind:
    """A number, whole or with decimals; ``name`` says what it counts."""
    limits = Range(least, most)

    def take(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise ValueError(f"a number, not {show(value)}")
        limits.check(value)
        return float(value)

    return Kind(f"{name}, {limits}", take, parse_decimal, "N")


def choice(*names: str) -> Kind:
    """One of several words."""
    known = ", ".join(names)

    def take(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            near = difflib.get_close_matches(str(value).lower(), names, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"one of {known}; not {show(value)}{hint}")
        return value

    return Kind(f"one of {known}", take, str, "|".join(names))


def take_boolean(value: object) -> bool:
    """Return a truth value; only TOML's own two are taken."""
    if not isinstance(value, bool):
        raise ValueError(f"true or false, not {show(value)}")
    return value


def take_text(value: object) -> str:
    """Return text without control characters."""
    if not isinstance(value, str):
        raise ValueError(f"text in quotes, not {show(value)}")
    if not value or not value.isprintable():
        raise ValueError(f"text that is not empty and has no control characters, not {show(value)}")
    return value


def take_prefix(value: object) -> str:
    """Return a URL path below which a mount serves: it starts with a slash and needs no decoding."""
    path = take_text(value)
    if re.fullmatch(r"(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*/?", path) is None or not path.startswith("/"):
        raise ValueError(f'a plain URL path that starts with one slash, such as "/app/", not {show(value)}')
    if any(part in (".", "..") for part in path.split("/")):
        raise ValueError(f"a URL path without . and .., not {show(value)}")
    return path


def take_page(value: object) -> str:
    """Return a path below a mount, with its query if any, as a link would spell it."""
    page = take_text(value)
    if re.fullmatch(r"/[\x21\x23-\x26\x28-\x3b\x3d\x3f-\x7e]*", page) is None:
        raise ValueError(f'a link below the mount that starts with a slash, such as "/env", not {show(value)}')
    return page


def take_module(value: object) -> str:
    """Return the name of a module, dots allowed."""
    name = take_text(value)
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f'the name of a module, such as "package.module", not {show(value)}')
    return name


def take_file_name(value: object) -> str:
    """Return the name of a file that a folder of scripts may show: without a folder, and not hidden."""
    name = take_text(value)
    if "/" in name or name.startswith("."):
        raise ValueError(
            f'a file name without folders that does not begin with a dot, such as "index.py", not {show(value)}'
        )
    return name


def take_listen(value: object) -> ListenAddress:
    """Return a listening address, in its plain form, and its wire."""
    return parse_listen(take_text(value))


def take_log(value: object) -> str:
    """Return the path of a log, ``"-"`` for standard output, or ``""`` for none."""
    return "" if value == "" else take_text(value)


def resolve_log(value: object, folder: str) -> str:
    """Return an absolute path; ``"-"`` and ``""`` stay."""
    return str(value) if value in ("", "-") else resolve_path(value, folder)


def take_status_address(value: object) -> str:
    """Return the address of the status port, ``""`` for none: not every interface, and nothing before it."""
    if value == "":
        return ""
    place = parse_listen(take_text(value))
    if place.wire:
        raise ValueError(f"an address without a wire, not {show(value)}")
    if place.address.rpartition(":")[0] in ("0.0.0.0", "[::]", "*"):
        raise ValueError(f"one address: {show(value)} would show every request to everybody")
    return place.address


def resolve_status_address(value: object, folder: str) -> str:
    """Return an address whose UNIX path, if it has one, is absolute."""
    return resolve_listen(ListenAddress(str(value)), folder).address


def take_server_name(value: object) -> str:
    """Return a host name or address literal as it may stand in a URL (RFC 3986 3.2.2)."""
    name = take_text(value)
    if re.fullmatch(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]", name) is None:
        raise ValueError(f"a host name without port, not {show(value)}")
    return name


def listed(
    name: str,
    short: str,
    take_one: Callable[[object], object],
    resolve_one: Callable[[object, str], object] | None = None,
) -> Kind:
    """A list of values, or one alone; at least one, none twice."""

    def take(value: object) -> tuple[object, ...]:
        values = tuple(take_one(item) for item in (value if isinstance(value, list) else [value]))
        if not values:
            raise ValueError(f"at least one {name}")
        if len(set(values)) != len(values):
            raise ValueError(f"a list that names nothing twice, not {show(value)}")
        return values

    def resolve(value: object, folder: str) -> object:
        assert isinstance(value, tuple)
        return tuple(resolve_one(item, folder) if resolve_one else item for item in value)

    return Kind(f"{name}, or a list of them", take, parse_list, short, listed=True, resolve=resolve)


def take_peers(value: object) -> PeerRule:
    """Return the rule that says which peers are trusted."""
    values = value if isinstance(value, list) else [value]
    return PeerRule.parse([take_text(item) for item in values])


def resolve_path(value: object, folder: str) -> str:
    """Return an absolute path without ``.`` and ``..``."""
    return os.path.normpath(os.path.join(folder, str(value)))


def resolve_listen(value: object, folder: str) -> ListenAddress:
    """Return an address whose UNIX path, if it has one, is absolute."""
    assert isinstance(value, ListenAddress)
    if not value.address.startswith("unix:"):
        return value
    return ListenAddress("unix:" + resolve_path(value.address[5:], folder), value.wire)


def take_allowed_peers(value: object) -> PeerRule:
    """Return the rule that says which peers may connect; one that names nobody would allow nobody."""
    rule = take_peers(value)
    if not rule.written:
        raise ValueError("at least one address or network; leave it out to allow everybody")
    return rule


def take_mode(value: object) -> str:
    """Return the permissions of a file as four octal digits."""
    if not isinstance(value, str) or re.fullmatch(r"0?[0-7]{3}", value) is None:
        raise ValueError(f'three octal digits in quotes, such as "0660", not {show(value)}')
    return value.rjust(4, "0")


def take_user(value: object) -> str:
    """Return the name or number of a user of this machine."""
    return _take_account(value, "user", lambda name: pwd.getpwnam(name))


def take_group(value: object) -> str:
    """Return the name or number of a group of this machine."""
    return _take_account(value, "group", lambda name: grp.getgrnam(name))


def _take_account(value: object, what: str, find: Callable[[str], object]) -> str:
    name = take_text(value)
    if re.fullmatch(r"[0-9]{1,9}", name) is None:
        try:
            find(name)
        except KeyError:
            raise ValueError(f"a {what} of this machine, not {show(name)}") from None
    return name


def take_pattern(value: object) -> str:
    """Return a regular expression."""
    text = take_text(value)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"a regular expression, and {show(text)} is none: {error}") from error
    return text


def parse_whole(text: str) -> int:
    """Return a whole number written in ASCII digits."""
    if re.fullmatch(r"-?[0-9]{1,18}", text) is None:
        raise ValueError(f"a whole number, not {show(text)}")
    return int(text)


def parse_decimal(text: str) -> float:
    """Return a number written in ASCII digits with at most one point."""
    if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,9})?", text) is None:
        raise ValueError(f"a number, not {show(text)}")
    return float(text)


def parse_boolean(text: str) -> bool:
    """Return the truth value of ``true``, ``on``, ``yes`` or their opposites."""
    words = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
    if text.lower() not in words:
        raise ValueError(f"on or off, not {show(text)}")
    return words[text.lower()]


def parse_list(text: str) -> list[str]:
    """Return the items of a list separated by commas."""
    return [item.strip() for item in text.split(",")]


BOOLEAN = Kind("true or false", take_boolean, parse_boolean, "on|off")
TEXT = Kind("text", take_text, str, "TEXT")
PATH = Kind("path", take_text, str, "FILE", resolve=resolve_path)
STATUS = Kind(
    'HOST:PORT, [IPV6]:PORT or unix:PATH, or "" for none', take_status_address, str, "ADDRESS",
    resolve=resolve_status_address,
)  # fmt: skip
LOG = Kind('path, "-" for standard output, or "" for none', take_log, str, "FILE", resolve=resolve_log)
PREFIX = Kind("URL path", take_prefix, str, "/PATH")
SERVER_NAME = Kind("host name", take_server_name, str, "HOST")
LISTEN = listed("HOST:PORT, [IPV6]:PORT or unix:PATH, with WIRE:// before it", "ADDRESS", take_listen, resolve_listen)
PATHS = listed("path", "FOLDER", take_text, resolve_path)
MODULES = listed("module", "MODULE", take_module)
FILE_NAMES = listed("file name", "NAME", take_file_name)
PAGES = listed("path below the mount", "/PATH", take_page)
MODE = Kind('octal digits, such as "0660"', take_mode, str, "MODE")
USER = Kind("user name or number", take_user, str, "USER")
GROUP = Kind("group name or number", take_group, str, "GROUP")
PATTERN = Kind("regular expression", take_pattern, str, "PATTERN")
ALLOWED_PEERS = Kind(
    'addresses or networks, "unix" for UNIX sockets', take_allowed_peers, parse_list, "NETWORK", listed=True
)
ENVIRONMENT = Kind(
    'table { NAME = "value" }, or a list of "NAME=value"', take_environment, parse_variable, "NAME=VALUE", listed=True,
)  # fmt: skip
SECRET = Kind(
    "16 to 64 ASCII characters without spaces; or file:PATH, whose first line it is; on the command line only that",
    take_secret, parse_secret, "file:PATH", resolve=resolve_secret,
)  # fmt: skip
PEERS = Kind('addresses or networks, "unix" for UNIX sockets', take_peers, parse_list, "NETWORK", listed=True)
