"""What an AJP forward request must keep to: the secret, the target, the text of names and values, the body's length.

Pure; keeps no state. Knows what was read from a packet, not how it is written there. For who the client is, and for
attributes of its own naming, a front server is believed only where ``FrontRules`` says so.
"""

from __future__ import annotations

import re

from gateways.core.errors import RemoteProtocolError
from gateways.wire import ajp_codes as codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gateways.core.limits import WireLimits

SECTION = "AJPv13, forward request"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(r"[0-9]{1,18}")
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
CONTROL_OR_SPACE = re.compile(r"[\x00-\x20\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_ATTRIBUTE_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_PORT = re.compile(r"[0-9]{1,5}")


class FrontRules:
    """What a front server must show, and what it is believed.

    ``secret``: text that each request must carry once, ``""`` for none. ``believes_user``: whether remote_user,
    auth_type and ssl_cert become REMOTE_USER, AUTH_TYPE and SSL_CLIENT_CERT. ``attributes``: a pattern of the names of
    further request attributes to let in, each as the meta-variable ``AJP_<name>``; with ``None`` no further one is.
    ``known``: for whoever reads requests by these rules; what it has read, to recall it.
    """

    __slots__ = ("attributes", "believes_user", "known", "secret")

    def __init__(
        self, secret: str = "", believes_user: bool = False, attributes: re.Pattern[str] | None = None
    ) -> None:
        self.secret = secret.encode()
        self.believes_user = believes_user
        self.attributes = attributes
        self.known: dict[tuple[object, bytes, bytes], Any] = {}


PLAIN_RULES = FrontRules()
"""No secret is asked for, no user is believed, no attribute let in."""


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
    variables: dict[str, str] = {}
    if not attributes and not named:
        return variables
    for code, variable, about_user, about_tls in codes.ATTRIBUTE_VARIABLES:
        value = attributes.get(code)
        if value and (rules.believes_user or not about_user) and (secure or not about_tls):
            # A certificate is PEM text: it has line ends.
            check_text("".join(value.splitlines()) if code == codes.SSL_CERT else value, CONTROL)
            variables[variable] = value
    for name, value in named.items():
        if name == "AJP_REMOTE_PORT":
            if value and _PORT.fullmatch(value) is None:
                raise RemoteProtocolError("AJP_REMOTE_PORT is not a port", 400, SECTION)
        elif name not in codes.KNOWN_ATTRIBUTES:
            if rules.attributes is None or not rules.attributes.fullmatch(name) or not _ATTRIBUTE_NAME.fullmatch(name):
                raise RemoteProtocolError(f"the request attribute {name[:80]!r} is not let in", 403, SECTION)
            check_text(value, CONTROL)
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
    check_text(target, CONTROL_OR_SPACE)
    if uri[:1] != "/" and not (uri == "*" and method == "OPTIONS"):
        raise RemoteProtocolError("the request path does not begin with a slash", 400, "RFC 9112 3.2.1")
    if "?" in uri or "#" in uri or ("%" in uri and _BAD_ESCAPE.search(uri)):
        raise RemoteProtocolError("the request path has an invalid escape, or a raw ? or #", 400, "RFC 3986 3.3")


def check_text(text: str, forbidden: re.Pattern[str]) -> None:
    """Raise ``RemoteProtocolError`` when ``text`` holds a forbidden character."""
    # Without control characters: two C loops instead of a regular expression, 2 us a request.
    if text.isascii() and text.isprintable() and (forbidden is CONTROL or " " not in text):
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
    check_text("".join([value for _, value in pairs]), CONTROL)
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
