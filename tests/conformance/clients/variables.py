"""From an HTTP-like request to gateway variables, as nginx maps it with its own ``*_params`` files and a split path.

What is the same: QUERY_STRING, CONTENT_TYPE and CONTENT_LENGTH are always sent, empty when the request has none;
REQUEST_URI is the target as sent; PATH_INFO is the path below the prefix, percent-decoded once; repeated fields are
joined by ``", "``, Cookie by ``"; "``. What is set for the table: ``merge_slashes off`` (slashes arrive as sent),
``underscores_in_headers on`` (names with an underscore arrive), SCRIPT_NAME is the prefix.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from tests.conformance.addresses import Address
from tests.conformance.messages import Request

REMOTE_ADDRESS = "192.0.2.7"
Pairs = list[tuple[bytes, bytes]]


def plan_variables(request: Request, address: Address, length: str) -> list[tuple[str, str]]:
    """Return the variables of a request in order, as Latin-1 text. ``length``: CONTENT_LENGTH."""
    path, _, query = request.target.partition("?")
    fields = merge_fields(request)
    content_type = next((value for name, value in request.fields if name.lower() == "content-type"), "")
    host = address.host or "localhost"
    return [
        ("QUERY_STRING", query),
        ("REQUEST_METHOD", request.method),
        ("CONTENT_TYPE", content_type),
        ("CONTENT_LENGTH", length),
        ("SCRIPT_NAME", address.prefix),
        ("PATH_INFO", unquote_to_bytes(path).decode("latin-1")),
        ("REQUEST_URI", address.prefix + request.target),
        ("DOCUMENT_URI", address.prefix + unquote_to_bytes(path).decode("latin-1")),
        ("DOCUMENT_ROOT", "/usr/share/nginx/html"),
        ("SERVER_PROTOCOL", request.version),
        ("REQUEST_SCHEME", "http"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_SOFTWARE", "nginx/1.26.0"),
        ("REMOTE_ADDR", REMOTE_ADDRESS),
        ("REMOTE_PORT", "54321"),
        ("SERVER_ADDR", "192.0.2.1"),
        ("SERVER_PORT", "80"),
        ("SERVER_NAME", host),
        ("HTTP_HOST", address.authority),
        *fields,
    ]


def merge_fields(request: Request) -> list[tuple[str, str]]:
    """Return the ``HTTP_`` variables: a name that comes twice is joined, one that only looks alike is not."""
    merged: dict[str, str] = {}
    for name, value in request.fields:
        key = name.lower()
        if key in ("content-type", "content-length") or not key.replace("-", "").replace("_", "").isalnum():
            continue
        separator = "; " if key == "cookie" else ", "
        merged[key] = merged[key] + separator + value if key in merged else value
    return [("HTTP_" + key.upper().replace("-", "_"), value) for key, value in merged.items()]


def encode(pairs: list[tuple[str, str]]) -> Pairs:
    """Variables as bytes."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
