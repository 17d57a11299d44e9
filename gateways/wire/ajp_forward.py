"""AJPv13's forward request: one packet's bytes to a request. Pure; keeps no state.

Knows no connection. The front server is believed for what only it can know (the client's address, the server's name and
port, TLS); for who the client is, and for attributes of its own naming, only where ``FrontRules`` says so.
"""

from __future__ import annotations

import re

from gateways.core.errors import RemoteProtocolError
from gateways.core.percent import decode_path
from gateways.core.request import FieldRequest
from gateways.wire import ajp_codes as codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gateways.core.limits import WireLimits
    from gateways.core.request import Endpoint

_SECTION = "AJPv13, forward request"
_NULL = 0xFFFF
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PROTOCOL = re.compile(r"HTTP/[0-9](?:\.[0-9])?")
_LENGTH = re.compile(r"[0-9]{1,18}")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_CONTROL_OR_SPACE = re.compile(r"[\x00-\x20\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_ATTRIBUTE_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_PORT = re.compile(r"[0-9]{1,5}")


class FrontRules:
    """What a front server must show, and what it is believed.

    ``secret``: text that each request must carry once, ``""`` for none. ``believes_user``: whether remote_user,
    auth_type and ssl_cert become REMOTE_USER, AUTH_TYPE and SSL_CLIENT_CERT. ``attributes``: a pattern of the names of
    further request attributes to let in, each as the meta-variable ``AJP_<name>``; with ``None`` no further one is.
    """

    __slots__ = ("attributes", "believes_user", "secret")

    def __init__(
        self, secret: str = "", believes_user: bool = False, attributes: re.Pattern[str] | None = None
    ) -> None:
        self.secret = secret.encode()
        self.believes_user = believes_user
        self.attributes = attributes


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
        host, at = _read_string(data, text, at)
        name, at = _read_string(data, text, at)
        port = data[at] << 8 | data[at + 1]
        secure = data[at + 2]
        count = data[at + 3] << 8 | data[at + 4]
        if count > limits.fields:
            raise RemoteProtocolError(f"the request has more than {limits.fields} fields", 431, "RFC 6585 5")
        pairs, at = _read_fields(data, text, at + 5, count)
        attributes, named = _read_attributes(data, text, at)
    except IndexError:
        raise RemoteProtocolError("an item is longer than the rest of its packet", 400, _SECTION) from None
    check_secret(attributes.get(codes.SECRET), rules.secret)
    extra = choose_variables(attributes, named, rules, bool(secure)) if attributes or named else {}
    if secure:
        extra["HTTPS"] = "on"
    if host:
        extra["REMOTE_HOST"] = host
    method = choose_method(data[1], attributes)
    query = attributes.get(codes.QUERY_STRING)
    target = uri if query is None else f"{uri}?{query}"
    if secure > 1 or (protocol != "HTTP/1.1" and _PROTOCOL.fullmatch(protocol) is None):
        raise RemoteProtocolError("the protocol or the is_ssl byte is not one", 400, _SECTION)
    check_target(method, uri, target, limits)
    check_text(f"{address}{host}{name}", _CONTROL_OR_SPACE)
    pairs, length = check_fields(pairs, len(data), limits)
    if name:
        extra["SERVER_NAME"] = name
    if port:
        extra["SERVER_PORT"] = str(port)
    peer = (address, named.get("AJP_REMOTE_PORT", ""))
    request = AJPRequest(endpoint, peer, method, target, decode_path(uri), query or "", protocol, pairs, length)
    request.front_variables = extra
    return request


def _read_string(data: bytes, text: str, at: int) -> tuple[str, int]:
    """Return the string at ``at`` and where the next item begins; a null string (0xFFFF) gives ``""``."""
    end = at + 2 + (data[at] << 8 | data[at + 1])
    if end == at + 2 + _NULL:
        return "", at + 2
    if data[end]:
        raise RemoteProtocolError("a string of the packet has no NUL at its end", 400, _SECTION)
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
                raise RemoteProtocolError(f"unknown field code 0xA0{code:02X}", 400, _SECTION)
            name = names[code]
            at += 2
        else:
            end = at + 2 + (high << 8 | data[at + 1])
            name = text[at + 2 : end]
            if data[end]:
                raise RemoteProtocolError("a field name has no NUL at its end", 400, _SECTION)
            at = end + 1
        end = at + 2 + (data[at] << 8 | data[at + 1])
        if data[end]:
            raise RemoteProtocolError("a field value has no NUL at its end", 400, _SECTION)
        pairs.append((name, text[at + 2 : end]))
        at = end + 1
    return pairs, at


def _read_attributes(data: bytes, text: str, at: int) -> tuple[dict[int, str], dict[str, str]]:
    """Return the attributes from ``at`` to the packet's end: those with a code, and the named request attributes."""
    attributes: dict[int, str] = {}
    named: dict[str, str] = {}
    while (code := data[at]) != codes.ARE_DONE:
        if code == codes.REQUEST_ATTRIBUTE:
            name, at = _read_string(data, text, at + 1)
            value, at = _read_string(data, text, at)
            if name in named:
                raise RemoteProtocolError(f"the request attribute {name[:80]!r} came twice", 400, _SECTION)
            named[name] = value
            continue
        if code == codes.SSL_KEY_SIZE:
            value = str(data[at + 1] << 8 | data[at + 2])
            at += 3
        elif 0 < code <= codes.STORED_METHOD_NAME:
            value, at = _read_string(data, text, at + 1)
        else:
            raise RemoteProtocolError(f"unknown attribute code 0x{code:02X}", 400, _SECTION)
        if code in attributes:
            status = 403 if code == codes.SECRET else 400
            raise RemoteProtocolError(f"the attribute 0x{code:02X} came twice", status, _SECTION)
        attributes[code] = value
    if at + 1 != len(data):
        raise RemoteProtocolError("bytes follow the end of the request in its packet", 400, _SECTION)
    return attributes, named


def check_secret(given: str | None, secret: bytes) -> None:
    """Raise ``RemoteProtocolError`` 403 unless ``given`` is the secret; the time it takes tells nothing of it."""
    if not secret:
        return
    from hmac import compare_digest

    if not compare_digest((given or "").encode("latin-1"), secret):
        raise RemoteProtocolError("the front server does not know the secret", 403, "AJPv13, attribute secret")


def choose_variables(
    attributes: dict[int, str], named: dict[str, str], rules: FrontRules, secure: bool
) -> dict[str, str]:
    """Return the meta-variables of a request's attributes. Raise 403 for a request attribute that is not let in."""
    variables = {}
    for code, variable, about_user, about_tls in codes.ATTRIBUTE_VARIABLES:
        value = attributes.get(code)
        if value and (rules.believes_user or not about_user) and (secure or not about_tls):
            # A certificate is PEM text: it has line ends.
            check_text("".join(value.splitlines()) if code == codes.SSL_CERT else value, _CONTROL)
            variables[variable] = value
    for name, value in named.items():
        if name == "AJP_REMOTE_PORT":
            if value and _PORT.fullmatch(value) is None:
                raise RemoteProtocolError("AJP_REMOTE_PORT is not a port", 400, _SECTION)
        elif name not in codes.KNOWN_ATTRIBUTES:
            if rules.attributes is None or not rules.attributes.fullmatch(name) or not _ATTRIBUTE_NAME.fullmatch(name):
                raise RemoteProtocolError(f"the request attribute {name[:80]!r} is not let in", 403, _SECTION)
            check_text(value, _CONTROL)
            variables["AJP_" + name] = value
    return variables


def choose_method(code: int, attributes: dict[int, str]) -> str:
    """Return the method of a code, or the stored one that came as an attribute."""
    if code == codes.STORED_METHOD:
        method = attributes.get(codes.STORED_METHOD_NAME, "")
        if _TOKEN.fullmatch(method) is None:
            raise RemoteProtocolError("the stored method is not a token", 400, "AJPv13, attribute stored_method")
        return method
    if not 0 < code < len(codes.METHODS):
        raise RemoteProtocolError(f"unknown method code {code}", 400, "AJPv13, method")
    return codes.METHODS[code]


def check_target(method: str, uri: str, target: str, limits: WireLimits) -> None:
    """Raise ``RemoteProtocolError`` unless ``uri`` is a path (or ``*`` for OPTIONS) that can be decoded once."""
    if len(target) > limits.request_line:
        raise RemoteProtocolError(f"the target is longer than {limits.request_line} bytes", 414, "RFC 9110 15.5.15")
    check_text(target, _CONTROL_OR_SPACE)
    if uri[:1] != "/" and not (uri == "*" and method == "OPTIONS"):
        raise RemoteProtocolError("the request path does not begin with a slash", 400, "RFC 9112 3.2.1")
    if "?" in uri or "#" in uri or ("%" in uri and _BAD_ESCAPE.search(uri)):
        raise RemoteProtocolError("the request path has an invalid escape, or a raw ? or #", 400, "RFC 3986 3.3")


def check_text(text: str, forbidden: re.Pattern[str]) -> None:
    """Raise ``RemoteProtocolError`` when ``text`` holds a forbidden character."""
    # Without control characters: two C loops instead of a regular expression, 2 us a request.
    if text.isascii() and text.isprintable() and (forbidden is _CONTROL or " " not in text):
        return
    if forbidden.search(text):
        raise RemoteProtocolError("a control character or space where none may be", 400, "RFC 9110 5.5")


def check_fields(
    pairs: list[tuple[str, str]], size: int, limits: WireLimits
) -> tuple[list[tuple[str, str]], int | None]:
    """Return the fields an application may see, and the length of the body (``None``: not known).

    Framing comes from Content-Length and the body's packets only; Transfer-Encoding says no more than that the length
    is not known, and is not passed on.
    """
    check_text("".join([value for _, value in pairs]), _CONTROL)
    if size > limits.field and any(len(name) + len(value) > limits.field for name, value in pairs):
        raise RemoteProtocolError(f"a field is longer than {limits.field} bytes", 431, "RFC 6585 5")
    kinds = codes.FIELD_KINDS
    seen: dict[str, str] = {}
    for name, value in pairs:
        kind = kinds[name]
        if kind:
            if kind in seen and kind in codes.SINGLE:
                raise RemoteProtocolError(f"the field {kind} came twice", 400, "RFC 9110 5.3")
            seen[kind] = f"{seen[kind]}, {value}" if kind in seen else value
    coding = seen.get("transfer-encoding")
    if coding is not None or codes.ALIAS in seen:
        pairs = [(name, value) for name, value in pairs if kinds[name] not in (codes.ALIAS, "transfer-encoding")]
    return pairs, parse_body_length(seen.get("content-length"), coding, limits)


def parse_body_length(length: str | None, coding: str | None, limits: WireLimits) -> int | None:
    """Return the length of a request's body: 0 when there is none, ``None`` when only its end will tell."""
    if coding is not None:
        if length is not None:
            raise RemoteProtocolError("Content-Length together with Transfer-Encoding", 400, "RFC 9112 6.3")
        if coding.lower() != "chunked":
            raise RemoteProtocolError(f"the transfer coding {coding[:40]!r} is not known", 501, "RFC 9112 6.1")
        return None
    if length is None:
        return 0
    if _LENGTH.fullmatch(length) is None:
        raise RemoteProtocolError(f"Content-Length {length[:40]!r} is not a number", 400, "RFC 9110 8.6")
    if int(length) > limits.body:
        raise RemoteProtocolError(f"the request body is longer than {limits.body} bytes", 413, "RFC 9110 15.5.14")
    return int(length)
