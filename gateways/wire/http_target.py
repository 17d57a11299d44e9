"""Request targets (RFC 9112 3.2): the four forms, split into path, query and authority.

Pure. Knows nothing of fields; comparing the authority with Host is the head's business.

What becomes of unusual targets:

- a fragment reaches neither path nor query;
- a path is percent-decoded once, octet by octet, to Latin-1: ``%2F`` becomes ``/``, ``%252F`` becomes ``%2F``, ``+``
  stays; ``%00`` and an escape without two hexadecimal digits are refused. A query is never decoded;
- ``*`` and the authority of CONNECT have the path ``""``; an absolute target without a path has ``/``.
"""

from __future__ import annotations

import re

from gateways.core.errors import RemoteProtocolError

_HEX = "0123456789abcdefABCDEF"
_OCTETS = {high + low: chr(int(high + low, 16)) for high in _HEX for low in _HEX}
_HOST = r"(?:\[[0-9A-Za-z:.%]++\]|[0-9A-Za-z._~!$&'()*+,;=%-]++)"
_AUTHORITY = re.compile(rf"{_HOST}(?::[0-9]{{0,5}})?+")
_ABSOLUTE = re.compile(r"(https?)://([^/?#]*+)([^?#]*+)(?:\?([^#]*+))?+(?:#.*+)?+", re.IGNORECASE)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_MEMO_ENTRIES = 256
_MEMO_LENGTH = 64


CHECKED_AUTHORITIES: set[str] = set()
"""Authorities that ``check_authority`` has found right: a bounded memo, because nearly every request names the same."""


def parse_path(path: str) -> str:
    """Return ``path`` percent-decoded once (RFC 3986 2.1); raise for ``%00`` and for an incomplete escape."""
    if "%" not in path:
        return path
    first, *parts = path.split("%")
    decoded = [first]
    for part in parts:
        octet = _OCTETS.get(part[:2])
        if octet is None:
            raise RemoteProtocolError(f"the path has an invalid escape, %{part[:2]}", 400, "RFC 3986 2.1")
        if octet == "\0":
            raise RemoteProtocolError("the path has a NUL, %00", 400, "RFC 3986 7.3")
        decoded.append(octet + part[2:])
    return "".join(decoded)


def parse_target(method: str, target: str) -> tuple[str, str, str, str]:
    """Return (path, query, scheme, authority) of a request-target; the last two are ``""`` when it names no host.

    The authority comes without userinfo. Raise ``RemoteProtocolError`` for a target that ``method`` cannot have.
    """
    if method == "CONNECT":
        return "", "", "https", _parse_connect(target)
    if target[0] == "/":
        path, _, query = target.partition("#")[0].partition("?")
        return parse_path(path), query, "", ""
    if target == "*":
        if method != "OPTIONS":
            raise RemoteProtocolError(f"the target * is for OPTIONS, not {method[:20]}", 400, "RFC 9112 3.2.4")
        return "", "", "", ""
    return _parse_absolute(target)


def _parse_connect(target: str) -> str:
    """Return the host and port that CONNECT asks for (RFC 9112 3.2.3)."""
    check_authority(target)
    if not target.rpartition("]")[2].partition(":")[2]:
        raise RemoteProtocolError("the target of CONNECT has no port", 400, "RFC 9112 3.2.3")
    return target


def _parse_absolute(target: str) -> tuple[str, str, str, str]:
    match = _ABSOLUTE.fullmatch(target)
    if match is None:
        raise RemoteProtocolError("the request-target is neither a path nor an http URI", 400, "RFC 9112 3.2")
    scheme, authority, path, query = match.groups("")
    authority = authority.rpartition("@")[2]
    check_authority(authority)
    return parse_path(path) or "/", query, scheme.lower(), authority


def check_authority(authority: str) -> None:
    """Raise ``RemoteProtocolError`` unless ``authority`` is a host with an optional port (RFC 3986 3.2.2)."""
    if authority in CHECKED_AUTHORITIES:
        return
    if _AUTHORITY.fullmatch(authority) is None:
        raise RemoteProtocolError(f"{authority[:80]!r} is not a host with an optional port", 400, "RFC 9112 3.2")
    if len(CHECKED_AUTHORITIES) < _MEMO_ENTRIES and len(authority) <= _MEMO_LENGTH:
        CHECKED_AUTHORITIES.add(authority)


def normalize_authority(scheme: str, authority: str) -> str:
    """Return an authority in lower case and without its scheme's default port (RFC 9110 4.2.3)."""
    return authority.lower().removesuffix(_DEFAULT_PORTS[scheme]).removesuffix(":")
