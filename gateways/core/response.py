"""Response heads: reasons, the check of every name and value, and what may carry a body. One rule for every wire.

Pure; knows no wire. Field lines are formatted here once, because HTTP/1.1, SCGI, uwsgi, CGI and FastCGI's STDOUT all
send the same lines.
"""

from __future__ import annotations

from gateways.core.errors import LengthMismatch, LocalProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import FieldList

REASONS = {
    100: "Continue", 101: "Switching Protocols", 103: "Early Hints",
    200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
    205: "Reset Content", 206: "Partial Content", 207: "Multi-Status",
    300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
    307: "Temporary Redirect", 308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout",
    409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large",
    414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
    418: "I'm a teapot", 421: "Misdirected Request", 422: "Unprocessable Content", 423: "Locked",
    424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required",
    429: "Too Many Requests", 431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 505: "HTTP Version Not Supported", 507: "Insufficient Storage", 508: "Loop Detected",
    511: "Network Authentication Required",
}  # fmt: skip
"""Status code -> reason phrase (RFC 9110 15)."""

MAX_HEAD = 65536
"""The longest response head that leaves us, in bytes: front servers have broken on longer ones."""

ORDINARY, LENGTH, DATE, SERVER, FORBIDDEN = range(5)
_SPECIAL = {
    "content-length": LENGTH,
    "date": DATE,
    "server": SERVER,
    "connection": FORBIDDEN,
    "keep-alive": FORBIDDEN,
    "proxy-authenticate-info": ORDINARY,
    "proxy-connection": FORBIDDEN,
    "te": FORBIDDEN,
    "trailer": FORBIDDEN,
    "transfer-encoding": FORBIDDEN,
    "upgrade": FORBIDDEN,
}
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_CONTROLS = frozenset(map(chr, (*range(9), *range(10, 32), 127)))
_MEMO_ENTRIES = 512


class _NameKinds(dict[str, int]):
    """A bounded memo: response field name -> its kind. Applications choose the keys, so it stops learning."""

    def __missing__(self, name: str) -> int:
        if not isinstance(name, str) or not name or not _TOKEN.issuperset(name):
            raise LocalProtocolError(f"response field name {name!r} is not a token", section="RFC 9110 5.1")
        kind = _SPECIAL.get(name.lower(), ORDINARY)
        if len(self) < _MEMO_ENTRIES:
            self[name] = kind
        return kind


NAME_KINDS = _NameKinds()


def format_status(code: int) -> str:
    """Return ``"404 Not Found"`` for 404; an unknown code gets its class's plain name."""
    return f"{code} {REASONS.get(code, 'Unknown')}"


def _is_status(status: str) -> bool:
    """True for three digits, a space, and a reason without control characters (RFC 9112 4)."""
    digits = status[:3]
    if not (digits.isascii() and digits.isdigit() and digits >= "100" and status[3:4] == " "):
        return False
    return _CONTROLS.isdisjoint(status) and max(status) <= "\xff"


class _StatusCodes(dict[str, int]):
    """A bounded memo of checked status lines: ``codes["200 OK"] == 200``."""

    def __missing__(self, status: str) -> int:
        if not isinstance(status, str) or not _is_status(status):
            raise LocalProtocolError(f"response status {status!r} is not a code and a reason", section="RFC 9112 4")
        code = int(status[:3])
        if len(self) < _MEMO_ENTRIES:
            self[status] = code
        return code


STATUS_CODES = _StatusCodes()
"""``STATUS_CODES[status]`` checks a status line and returns its code; raises ``LocalProtocolError``."""


def has_body(method: str, code: int) -> bool:
    """True when a response of ``code`` to ``method`` carries body bytes (RFC 9112 6.3)."""
    return method != "HEAD" and code >= 200 and code != 204 and code != 304


def parse_length(value: str) -> int:
    """Return an application's Content-Length; raise ``LocalProtocolError`` unless it is digits only (RFC 9110 8.6)."""
    if not (value.isascii() and value.isdigit()) or len(value) > 18:
        raise LocalProtocolError(f"response Content-Length {value!r} is not a number", section="RFC 9110 8.6")
    return int(value)


def format_fields(fields: FieldList) -> tuple[str, int | None, bool, bool]:
    """Check and format response fields.

    Return (lines, content_length, has_date, has_server): the lines without Content-Length, which the wire writes
    itself; the application's Content-Length or ``None``. A second Date, Server or Content-Length is refused unless
    equal; the first Date and Server win.
    Raise ``LocalProtocolError`` for CR, LF, NUL, characters beyond Latin-1, a bad name, or a hop-by-hop field
    (PEP 3333, "Other HTTP Features").
    """
    lines = ""
    length: int | None = None
    dated = served = False
    count = 0
    kinds = NAME_KINDS
    for name, value in fields:
        kind = kinds[name]
        if kind:
            if kind == FORBIDDEN:
                raise LocalProtocolError(f"an application may not send {name}", section="PEP 3333, hop-by-hop")
            if kind == LENGTH:
                parsed = parse_length(value)
                if length is not None and parsed != length:
                    raise LocalProtocolError("two different Content-Length fields", section="RFC 9112 6.3")
                length = parsed
                continue
            if kind == DATE:
                if dated:
                    continue
                dated = True
            elif kind == SERVER:
                if served:
                    continue
                served = True
        lines += f"{name}: {value}\r\n"
        count += 1
    if lines.count("\n") != count or lines.count("\r") != count or "\0" in lines:
        raise LocalProtocolError("a response field holds CR, LF or NUL", section="RFC 9110 5.5")
    return lines, length, dated, served


def encode_head(text: str) -> bytes:
    """Return a response head as bytes; raise ``LocalProtocolError`` beyond Latin-1 or ``MAX_HEAD`` bytes."""
    try:
        head = text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise LocalProtocolError("a response field is not Latin-1", section="PEP 3333, Unicode Issues") from error
    if len(head) > MAX_HEAD:
        raise LocalProtocolError(f"the response head is longer than {MAX_HEAD} bytes", section="")
    return head


def format_document_head(status: str, fields: FieldList, length: int | None) -> bytes:
    """Return a head in CGI form, ``Status:`` first, with its empty line (RFC 3875 6.3).

    ``length``: the Content-Length to state when the fields do not; ``None`` states none.
    """
    STATUS_CODES[status]
    lines, own_length, _, _ = format_fields(fields)
    if own_length is not None:
        length = own_length
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return encode_head(f"Status: {status}\r\n{lines}{size}\r\n")


def format_document(status: str, fields: FieldList, body: bytes, method: str) -> tuple[bytes, bytes]:
    """Return (head, body) of a whole response to ``method`` in CGI form; the body is empty where none may be sent.

    Content-Length is stated where it may be (RFC 9110 8.6). Raise ``LocalProtocolError`` as ``format_fields`` does, and
    when a stated length is not the body's.
    """
    code = STATUS_CODES[status]
    lines, length, _, _ = format_fields(fields)
    if has_body(method, code):
        if length is not None and length != len(body):
            raise LengthMismatch
        length = len(body)
    else:
        if code == 204 or code < 200:
            length = None
        elif length is None and code != 304:
            length = len(body) or None
        body = b""
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return encode_head(f"Status: {status}\r\n{lines}{size}\r\n"), body
