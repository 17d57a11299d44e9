"""The code tables of AJPv13: numbers to names, as its specification lists them. Data only, but for two bounded memos.

Knows no packet: where a code stands is ``ajp_packets``' business.
"""

from __future__ import annotations

import re

from gateways.core.errors import LocalProtocolError, RemoteProtocolError
from gateways.core.response import NAME_KINDS

FORWARD_REQUEST, SHUTDOWN, PING, CPING = 2, 7, 8, 10
"""First byte of a packet from the front server."""

SEND_BODY_CHUNK, SEND_HEADERS, END_RESPONSE, GET_BODY_CHUNK = 3, 4, 5, 6
"""First byte of a packet to the front server; a CPong is 9."""

METHODS = (
    "", "OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE",
    "LOCK", "UNLOCK", "ACL", "REPORT", "VERSION-CONTROL", "CHECKIN", "CHECKOUT", "UNCHECKOUT", "SEARCH",
    "MKWORKSPACE", "UPDATE", "LABEL", "MERGE", "BASELINE-CONTROL", "MKACTIVITY",
)  # fmt: skip
"""Method code -> method; ``STORED_METHOD`` says that the method comes as an attribute."""
STORED_METHOD = 0xFF

REQUEST_FIELDS = (
    "", "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Authorization", "Connection",
    "Content-Type", "Content-Length", "Cookie", "Cookie2", "Host", "Pragma", "Referer", "User-Agent",
)  # fmt: skip
"""Second byte of a coded request field name (the first is ``CODED``) -> name."""
CODED = 0xA0

_RESPONSE_FIELDS = (
    "", "content-type", "content-language", "content-length", "date", "last-modified", "location", "set-cookie",
    "set-cookie2", "servlet-engine", "status", "www-authenticate",
)  # fmt: skip
CONTENT_LENGTH_CODE = bytes((CODED, _RESPONSE_FIELDS.index("content-length")))

CONTEXT, SERVLET_PATH, REMOTE_USER, AUTH_TYPE, QUERY_STRING, ROUTE, SSL_CERT, SSL_CIPHER = range(1, 9)
SSL_SESSION, REQUEST_ATTRIBUTE, SSL_KEY_SIZE, SECRET, STORED_METHOD_NAME = range(9, 14)
ARE_DONE = 0xFF
"""Attribute codes. Context, servlet path and route are read and not used."""

ATTRIBUTE_VARIABLES = (
    (REMOTE_USER, "REMOTE_USER", True, False),
    (AUTH_TYPE, "AUTH_TYPE", True, False),
    (SSL_CERT, "SSL_CLIENT_CERT", True, True),
    (SSL_CIPHER, "SSL_CIPHER", False, True),
    (SSL_SESSION, "SSL_SESSION_ID", False, True),
    (SSL_KEY_SIZE, "SSL_CIPHER_USEKEYSIZE", False, True),
)
"""(attribute, meta-variable, says who the client is, means something over TLS only). RFC 3875 4.1 names the first two,
mod_ssl the others."""

KNOWN_ATTRIBUTES = frozenset({"AJP_REMOTE_PORT", "AJP_LOCAL_ADDR", "AJP_SSL_PROTOCOL", "JK_LB_ACTIVATION"})
"""Request attributes that front servers send of themselves; none becomes a variable of its own name."""

# What a field of a request means for its framing.
ORDINARY, ALIAS = "", "_"
SINGLE = frozenset({"host", "content-length", "content-type"})
"""Fields that may come once (RFC 9110 5.3, RFC 9112 3.2 and 6.3)."""
_SPECIAL = SINGLE | {"transfer-encoding"}

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MEMO_ENTRIES = 512
_MEMO_NAME = 64


class _FieldKinds(dict[str, str]):
    """A bounded memo: request field name -> its name in lower case if it matters, ``ALIAS``, or ``ORDINARY``."""

    def __missing__(self, name: str) -> str:
        if _TOKEN.fullmatch(name) is None:
            raise RemoteProtocolError(f"the field name {name[:80]!r} is not a token", 400, "RFC 9110 5.1")
        lower = name.lower()
        kind = ALIAS if "_" in name else lower if lower in _SPECIAL else ORDINARY
        if len(self) < _MEMO_ENTRIES and len(name) <= _MEMO_NAME:
            self[name] = kind
        return kind


FIELD_KINDS = _FieldKinds()
"""``FIELD_KINDS[name]`` raises ``RemoteProtocolError`` for a name that is no token. ``ALIAS``: a name with ``_``, which
would become the same meta-variable as one with ``-``."""


class _ResponseNames(dict[str, tuple[int, bytes]]):
    """A bounded memo: response field name -> (its kind in ``core.response``, its AJP form)."""

    def __missing__(self, name: str) -> tuple[int, bytes]:
        kind = NAME_KINDS[name]
        lower = name.lower()
        if lower in _RESPONSE_FIELDS:
            coded = bytes((CODED, _RESPONSE_FIELDS.index(lower)))
        elif len(name) >= CODED << 8:
            raise LocalProtocolError("a response field name is longer than AJP can say", section="AJPv13, strings")
        else:
            coded = len(name).to_bytes(2) + name.encode("ascii") + b"\0"
        if len(self) < _MEMO_ENTRIES and len(name) <= _MEMO_NAME:
            self[name] = kind, coded
        return kind, coded


RESPONSE_NAMES = _ResponseNames()
"""``RESPONSE_NAMES[name]`` raises ``LocalProtocolError`` for a name that may not be sent."""
