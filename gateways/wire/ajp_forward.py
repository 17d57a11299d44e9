"""AJPv13's forward request: one packet's bytes to a request. Knows no connection.

The front server is believed for what only it can know: the client's address, the server's name and port, TLS. What
follows the client's address in a packet is the same in most of a browser's requests, but for the client's port, and is
read once (``recall_rest``).
"""

from __future__ import annotations

import re

from gateways.core.errors import RemoteProtocolError
from gateways.core.percent import decode_path
from gateways.core.request import FieldPairs, FieldRequest
from gateways.wire import ajp_codes as codes
from gateways.wire.ajp_checks import (
    CONTROL_OR_SPACE,
    SECTION,
    FrontRules,
    check_fields,
    check_secret,
    check_target,
    check_text,
    choose_method,
    choose_variables,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gateways.core.limits import WireLimits
    from gateways.core.request import Endpoint

_NULL = 0xFFFF
_PROTOCOL = re.compile(r"HTTP/[0-9](?:\.[0-9])?")
_PORT_ATTRIBUTE = bytes((codes.REQUEST_ATTRIBUTE, 0, 15)) + b"AJP_REMOTE_PORT\0\0"
"""The attribute up to the first byte of its value's length, of which no port needs more than the second."""
_MEMO_ENTRIES = 128
_MEMO_REST = 1024


class Rest:
    """What follows the client's address in a forward request, read and checked.

    ``variables``: what the front server says beside the fields. ``length``: the body's, ``None`` if not known.
    ``remote_port``: the client's port. ``port_at``: where in the packet that attribute stands, -1 if it does not.
    """

    __slots__ = ("attributes", "length", "pairs", "port_at", "remote_port", "variables")

    attributes: dict[int, str]
    length: int | None
    pairs: list[tuple[str, str]]
    port_at: int
    remote_port: str
    variables: dict[str, str]


class AJPRequest(FieldRequest):
    """A request whose front server says how its client sees the server, and more (``front_variables``)."""

    __slots__ = ("front_variables",)

    front_variables: dict[str, str]

    @property
    def remote_user(self) -> str:
        """The user, as a front server that is believed says."""
        return self.front_variables.get("REMOTE_USER", "")

    def build_metavariables(self, template: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the variables of the fields, with what the front server says in place of the listener's own."""
        variables = super().build_metavariables(template)
        variables.update(self.front_variables)
        return variables


def parse_forward_request(data: bytes, rules: FrontRules, limits: WireLimits, endpoint: Endpoint) -> FieldRequest:
    """Return the request of a whole forward request packet (``data``: its payload, with the prefix code).

    The request's ``content_length`` is ``None`` when its body's length is not known (a chunked request), and 0 when it
    has none. Raise ``RemoteProtocolError``: 403 without the secret or with an attribute that is not let in, 400, 413,
    414, 431 or 501 otherwise.
    """
    text = str(data, "latin-1")
    try:
        protocol, at = _read_string(data, text, 2)
        uri, at = _read_string(data, text, at)
        address, at = _read_string(data, text, at)
        rest, port = recall_rest(data, text, at, rules, limits)
    except IndexError:
        raise RemoteProtocolError("an item is longer than the rest of its packet", 400, SECTION) from None
    method = choose_method(data[1], rest.attributes)
    query = rest.attributes.get(codes.QUERY_STRING)
    target = uri if query is None else f"{uri}?{query}"
    if protocol != "HTTP/1.1" and _PROTOCOL.fullmatch(protocol) is None:
        raise RemoteProtocolError("the protocol is none", 400, SECTION)
    check_target(method, uri, target, limits)
    check_text(address, CONTROL_OR_SPACE)
    path = decode_path(uri)
    request = AJPRequest(
        endpoint, (address, port), method, target, path, query or "", protocol, rest.pairs, rest.length
    )
    request.front_variables = rest.variables
    return request


def recall_rest(data: bytes, text: str, at: int, rules: FrontRules, limits: WireLimits) -> tuple[Rest, str]:
    """Return what follows ``at`` in a packet, and the client's port; raise as ``read_rest`` does.

    Of requests without a body it is remembered, with what stands before and after the port's digits for its key: equal
    bytes read the same, and a part that was read up to a place ends there whatever follows.
    """
    size = len(data)
    port_at = data.find(_PORT_ATTRIBUTE, at)
    if port_at < 0 or size - at > _MEMO_REST or size > limits.field:
        rest = read_rest(data, text, at, rules, limits)
        return rest, rest.remote_port
    value = port_at + len(_PORT_ATTRIBUTE) + 1
    end = value + data[value - 1]
    key = limits, data[at:port_at], data[end:]
    known = rules.known.get(key)
    if known is not None and data[value:end].isdigit() and end - value <= 5:
        return known, text[value:end]
    rest = read_rest(data, text, at, rules, limits)
    if rest.port_at == port_at and rest.length == 0:
        if len(rules.known) >= _MEMO_ENTRIES:
            del rules.known[next(iter(rules.known))]
        rest.pairs = FieldPairs(rest.pairs)
        rules.known[key] = rest
    return rest, rest.remote_port


def read_rest(data: bytes, text: str, at: int, rules: FrontRules, limits: WireLimits) -> Rest:
    """Read and check what follows the client's address; raise ``RemoteProtocolError``, ``IndexError`` past the end."""
    host, at = _read_string(data, text, at)
    name, at = _read_string(data, text, at)
    port = data[at] << 8 | data[at + 1]
    secure = data[at + 2]
    count = data[at + 3] << 8 | data[at + 4]
    if count > limits.fields:
        raise RemoteProtocolError(f"the request has more than {limits.fields} fields", 431, "RFC 6585 5")
    rest = Rest()
    pairs, at = _read_fields(data, text, at + 5, count)
    rest.attributes, named, rest.port_at = _read_attributes(data, text, at)
    check_secret(rest.attributes.get(codes.SECRET), rules.secret)
    rest.variables = variables = choose_variables(rest.attributes, named, rules, bool(secure))
    rest.remote_port = named.get("AJP_REMOTE_PORT", "")
    if secure > 1:
        raise RemoteProtocolError("the is_ssl byte is neither 0 nor 1", 400, SECTION)
    check_text(f"{host}{name}", CONTROL_OR_SPACE)
    rest.pairs, rest.length = check_fields(pairs, len(data), limits)
    if secure:
        variables["HTTPS"] = "on"
    if host:
        variables["REMOTE_HOST"] = host
    if name:
        variables["SERVER_NAME"] = name
    if port:
        variables["SERVER_PORT"] = str(port)
    return rest


def _read_string(data: bytes, text: str, at: int) -> tuple[str, int]:
    """Return the string at ``at`` and where the next item begins; a null string (0xFFFF) gives ``""``."""
    end = at + 2 + (data[at] << 8 | data[at + 1])
    if end == at + 2 + _NULL:
        return "", at + 2
    if data[end]:
        raise RemoteProtocolError("a string of the packet has no NUL at its end", 400, SECTION)
    return text[at + 2 : end], end + 1


def _read_fields(data: bytes, text: str, at: int, count: int) -> tuple[list[tuple[str, str]], int]:
    """Return ``count`` fields from ``at``, and where the attributes begin. Raise ``IndexError`` past the packet."""
    pairs = []
    names = codes.REQUEST_FIELDS
    for _ in range(count):
        # This loop runs ten to twenty times a request: strings are read in place (`bench` ajp, 4 us a request).
        high = data[at]
        if high == codes.CODED:
            code = data[at + 1]
            if not 0 < code < len(names):
                raise RemoteProtocolError(f"unknown field code 0xA0{code:02X}", 400, SECTION)
            name = names[code]
            at += 2
        else:
            end = at + 2 + (high << 8 | data[at + 1])
            name = text[at + 2 : end]
            if data[end]:
                raise RemoteProtocolError("a field name has no NUL at its end", 400, SECTION)
            at = end + 1
        end = at + 2 + (data[at] << 8 | data[at + 1])
        if data[end]:
            raise RemoteProtocolError("a field value has no NUL at its end", 400, SECTION)
        pairs.append((name, text[at + 2 : end]))
        at = end + 1
    return pairs, at


def _read_attributes(data: bytes, text: str, at: int) -> tuple[dict[int, str], dict[str, str], int]:
    """Return the attributes from ``at`` to the packet's end: those with a code, the named request attributes, and where
    the client's port stands, -1 if nowhere."""
    attributes: dict[int, str] = {}
    named: dict[str, str] = {}
    port_at = -1
    while (code := data[at]) != codes.ARE_DONE:
        if code == codes.REQUEST_ATTRIBUTE:
            start = at
            name, at = _read_string(data, text, at + 1)
            value, at = _read_string(data, text, at)
            if name in named:
                raise RemoteProtocolError(f"the request attribute {name[:80]!r} came twice", 400, SECTION)
            named[name] = value
            if name == "AJP_REMOTE_PORT":
                port_at = start
            continue
        if code == codes.SSL_KEY_SIZE:
            value = str(data[at + 1] << 8 | data[at + 2])
            at += 3
        elif 0 < code <= codes.STORED_METHOD_NAME:
            value, at = _read_string(data, text, at + 1)
        else:
            raise RemoteProtocolError(f"unknown attribute code 0x{code:02X}", 400, SECTION)
        if code in attributes:
            status = 403 if code == codes.SECRET else 400
            raise RemoteProtocolError(f"the attribute 0x{code:02X} came twice", status, SECTION)
        attributes[code] = value
    if at + 1 != len(data):
        raise RemoteProtocolError("bytes follow the end of the request in its packet", 400, SECTION)
    return attributes, named, port_at
