"""The protocols that the load generator speaks: a request's bytes, where its answer ends, and what the answer says.

One row a protocol in ``SPEECHES``. Written from the specifications, apart from ``gateways.wire``; knows no socket, no
clock. Requests carry what a front server sends for a browser's GET (nginx's own parameter files).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bench.load import Job

BROWSER = (
    ("Host", "{host}:{port}"),
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "en-US,en;q=0.5"),
    ("Accept-Encoding", "gzip, deflate, br"),
    ("Upgrade-Insecure-Requests", "1"),
)
"""The fields of a browser's request, as a front server passes them on."""

CLIENT_PORT = "50000"
"""The port of the client that the front server names; ``vary_requests`` puts others in its place."""
CLIENTS = 500


class WrongAnswer(Exception):
    """An answer was not the one expected; the message says how."""


Data = bytes | bytearray
Parts = tuple[int, bytes, bytes]
"""Status, head, body."""


@dataclass(frozen=True, slots=True)
class Speech:
    """One protocol, as a client speaks it.

    ``format_request(job)``: a request's bytes. ``find_end(data, length)``: how long the answer in ``data`` is or will
    be, -1 while that cannot be told; ``length`` is the body's. ``open(data)``: the parts of a whole answer; raises
    ``WrongAnswer``. ``find_type(head)``: the head's Content-Type. ``closes(data, length)``: a right answer says that
    its connection ends. ``delimited``: the answer tells its end by itself where the connection is not kept; otherwise
    the end of the connection does.
    """

    name: str
    format_request: Callable[[Job], bytes]
    find_end: Callable[[Data, int], int]
    open: Callable[[bytes], Parts]
    find_type: Callable[[bytes], str]
    closes: Callable[[bytes, int], bool]
    delimited: bool


def vary_requests(speech: Speech, job: Job) -> list[bytes]:
    """Return the job's request as the front server of many clients sends it: each time with another client's port.

    One that names no client (HTTP's) is the same for all. A server that remembers what it was sent has seen the page,
    the fields and the client's address before, as behind a real front; the port it has not.
    """
    request = speech.format_request(job)
    mark = CLIENT_PORT.encode()
    if request.count(mark) != 1:
        return [request]
    return [request.replace(mark, b"%d" % (int(CLIENT_PORT) + client)) for client in range(CLIENTS)]


def check_answer(speech: Speech, data: bytes, job: Job, thoroughly: bool) -> None:
    """Raise ``WrongAnswer`` unless ``data`` is a whole 200 answer of the right length and, if asked, bytes."""
    status, _, body = speech.open(data)
    if status != 200:
        raise WrongAnswer(f"status {status}, not 200")
    if len(body) != job.length:
        raise WrongAnswer(f"a body of {len(body)} bytes, not {job.length}")
    if thoroughly and sha256(body).hexdigest() != job.digest:
        raise WrongAnswer("the body has the right length and wrong bytes")


# HTTP.


def format_http(job: Job) -> bytes:
    """Return a request: HTTP/1.1 on kept connections, HTTP/1.0 on others, as ``wrk`` and ``ab`` ask."""
    version, extra = ("1.1", "") if job.keep_alive else ("1.0", "Connection: close\r\n")
    return (
        f"GET {job.path} HTTP/{version}\r\nHost: {job.host}:{job.port}\r\n"
        f"User-Agent: gateways-bench\r\nAccept: */*\r\n{extra}\r\n"
    ).encode("ascii")


def find_text_end(data: Data, length: int) -> int:
    """Return where a body of ``length`` ends that follows an empty line."""
    head = data.find(b"\r\n\r\n")
    return head + 4 + length if head >= 0 else -1


def find_http_end(data: Data, length: int) -> int:
    """Return where an answer ends: with the last chunk of one in chunks, otherwise after a body of ``length``."""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return -1
    if data.find(CHUNKED, 0, head) < 0:
        return head + 4 + length
    return len(data) if data.endswith(LAST_CHUNK) else -1


CHUNKED, LAST_CHUNK = b"chunked", b"\r\n0\r\n\r\n"


def join_chunks(data: bytes) -> bytes:
    """Return the body that chunks hold (RFC 9112 7.1); raise ``WrongAnswer`` when they are none."""
    body: list[bytes] = []
    at = 0
    while (end := data.find(b"\r\n", at)) >= 0:
        try:
            size = int(data[at:end].split(b";")[0], 16)
        except ValueError:
            break
        if size == 0 and data[end + 2 :] == b"\r\n":
            return b"".join(body)
        body.append(data[end + 2 : end + 2 + size])
        at = end + 4 + size
    raise WrongAnswer(f"not a chunk: {data[at : at + 40]!r}")


def open_http(data: bytes) -> Parts:
    """Return the parts of an answer in HTTP form."""
    if data[:9] not in (b"HTTP/1.1 ", b"HTTP/1.0 ") or not data[9:12].isdigit():
        raise WrongAnswer(f"not an HTTP answer: {data[:40]!r}" if data else NOTHING)
    head = data.find(b"\r\n\r\n")
    if head < 0 and data[9:12] == b"200":
        raise WrongAnswer("the connection was closed inside the head")
    if data.find(CHUNKED, 0, head) >= 0:
        return int(data[9:12]), data[: head + 2], join_chunks(data[head + 4 :])
    return int(data[9:12]), data[: head + 2], data[head + 4 :]


NOTHING = "the connection was closed without an answer"


def find_text_type(head: bytes) -> str:
    """Return the Content-Type among lines of text."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-type":
            return value.strip().decode("latin-1")
    return ""


def http_closes(data: bytes, length: int) -> bool:
    """True when the head says ``Connection: close``."""
    return b"lose\r\n" in data[: len(data) - length]


def always(_data: bytes, _length: int) -> bool:
    """True: a connection carries one request."""
    return True


def never(_data: bytes, _length: int) -> bool:
    """False: only the request says whether the connection is kept."""
    return False


# What the three protocols of meta-variables share.


def list_variables(job: Job) -> list[tuple[bytes, bytes]]:
    """Return the variables of nginx's parameter files, split for an application at the root, and the fields."""
    path, _, query = job.path.partition("?")
    pairs = [
        ("QUERY_STRING", query),
        ("REQUEST_METHOD", "GET"),
        ("CONTENT_TYPE", ""),
        ("SCRIPT_NAME", ""),
        ("PATH_INFO", path),
        ("REQUEST_URI", job.path),
        ("DOCUMENT_URI", path),
        ("DOCUMENT_ROOT", "/usr/share/nginx/html"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("REQUEST_SCHEME", "http"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_SOFTWARE", "nginx/1.28.0"),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("REMOTE_PORT", CLIENT_PORT),
        ("SERVER_ADDR", job.host),
        ("SERVER_PORT", str(job.port)),
        ("SERVER_NAME", "localhost"),
        ("REDIRECT_STATUS", "200"),
        *((f"HTTP_{name.upper().replace('-', '_')}", value) for name, value in list_fields(job)),
    ]
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in pairs]


def list_fields(job: Job) -> list[tuple[str, str]]:
    """Return a browser's fields for a job."""
    return [(name, value.format(host=job.host, port=job.port)) for name, value in BROWSER]


def open_document(data: bytes) -> Parts:
    """Return the parts of a document in CGI form (RFC 3875 6), whose status is 200 when it states none."""
    if not data:
        raise WrongAnswer(NOTHING)
    head = data.find(b"\r\n\r\n")
    if head < 0 or data[:5] == b"HTTP/":
        raise WrongAnswer(f"not a CGI document: {data[:40]!r}")
    at = data.find(b"Status: ", 0, head)
    status = data[at + 8 : at + 11] if at >= 0 else b"200"
    if not status.isdigit():
        raise WrongAnswer(f"the status {status!r} is no number")
    return int(status), data[: head + 2], data[head + 4 :]


# FastCGI 1.0.

_RECORD = struct.Struct(">BBHHBx")
_END_REQUEST, _STDOUT, _STDERR = 3, 6, 7


def format_fastcgi(job: Job) -> bytes:
    """Return BEGIN_REQUEST, PARAMS, an empty STDIN; FCGI_KEEP_CONN where the connection is kept."""
    params = b"".join(
        length(len(name)) + length(len(value)) + name + value
        for name, value in [*list_variables(job), (b"CONTENT_LENGTH", b"")]
    )
    padding = -len(params) & 7
    begin = _RECORD.pack(1, 1, 1, 8, 0) + struct.pack(">HB5x", 1, job.keep_alive)
    block = _RECORD.pack(1, 4, 1, len(params), padding) + params + bytes(padding)
    return begin + block + _RECORD.pack(1, 4, 1, 0, 0) + _RECORD.pack(1, 5, 1, 0, 0)


def length(size: int) -> bytes:
    """Return a length of a name-value pair: one byte up to 127, four beyond (FastCGI 3.4)."""
    return bytes((size,)) if size < 128 else struct.pack(">I", size | 1 << 31)


def find_fastcgi_end(data: Data, _length: int) -> int:
    """Return where END_REQUEST ends."""
    at, size = 0, len(data)
    while at + 8 <= size:
        end = at + 8 + (data[at + 4] << 8 | data[at + 5]) + data[at + 6]
        if data[at + 1] == _END_REQUEST:
            return end
        at = end
    return -1


def open_fastcgi(data: bytes) -> Parts:
    """Return the parts of the document on STDOUT; nothing may be missing or on STDERR."""
    if not data:
        raise WrongAnswer(NOTHING)
    out, kind, at = [], 0, 0
    while at + 8 <= len(data):
        version, kind, _, size, padding = _RECORD.unpack_from(data, at)
        content = data[at + 8 : at + 8 + size]
        at += 8 + size + padding
        if version != 1 or (kind == _STDERR and content):
            raise WrongAnswer(f"a record of version {version} and type {kind}: {content[:80]!r}")
        if kind == _STDOUT:
            out.append(content)
        elif kind == _END_REQUEST:
            break
    if kind != _END_REQUEST or at != len(data):
        raise WrongAnswer("the records do not end with END_REQUEST")
    if any(content[:5]):
        raise WrongAnswer(f"END_REQUEST says that the request failed: {content!r}")
    return open_document(b"".join(out))


# SCGI and uwsgi.


def format_scgi(job: Job) -> bytes:
    """Return a netstring of variables."""
    pairs = [(b"CONTENT_LENGTH", b"0"), (b"SCGI", b"1"), *list_variables(job)]
    block = b"".join(name + b"\0" + value + b"\0" for name, value in pairs)
    return b"%d:%b," % (len(block), block)


def format_uwsgi(job: Job) -> bytes:
    """Return a packet of variables with both modifiers 0."""
    pairs = [*list_variables(job), (b"CONTENT_LENGTH", b"")]
    block = b"".join(
        struct.pack("<H", len(name)) + name + struct.pack("<H", len(value)) + value for name, value in pairs
    )
    return struct.pack("<BHB", 0, len(block), 0) + block


# AJPv13.

_AJP_NAMES = {
    "accept": 0xA001, "accept-encoding": 0xA003, "accept-language": 0xA004, "host": 0xA00B, "user-agent": 0xA00E,
}  # fmt: skip
_AJP_TYPE = b"\xa0\x01"
_END_RESPONSE, _SEND_CHUNK, _SEND_HEADERS = 5, 3, 4


def format_ajp(job: Job) -> bytes:
    """Return a forward request as Apache sends it, without a body."""
    path, _, query = job.path.partition("?")
    fields = list_fields(job)
    block = b"".join(ajp_name(name) + ajp_string(value) for name, value in fields)
    attributes = b"\x05" + ajp_string(query) if query else b""
    attributes += b"\x0a" + ajp_string("AJP_REMOTE_PORT") + ajp_string(CLIENT_PORT)
    attributes += b"\x0a" + ajp_string("AJP_LOCAL_ADDR") + ajp_string(job.host)
    payload = (
        b"\x02\x02" + ajp_string("HTTP/1.1") + ajp_string(path) + ajp_string("127.0.0.1") + b"\xff\xff"
        + ajp_string("localhost") + struct.pack(">HBH", job.port, 0, len(fields)) + block + attributes + b"\xff"
    )  # fmt: skip
    return b"\x12\x34" + struct.pack(">H", len(payload)) + payload


def ajp_string(text: str) -> bytes:
    """Return an AJP string."""
    return struct.pack(">H", len(text)) + text.encode("latin-1") + b"\0"


def ajp_name(name: str) -> bytes:
    """Return a field name, coded where AJP has a code for it."""
    code = _AJP_NAMES.get(name.lower())
    return ajp_string(name) if code is None else struct.pack(">H", code)


def find_ajp_end(data: Data, _length: int) -> int:
    """Return where End Response ends."""
    at, size = 0, len(data)
    while at + 5 <= size:
        end = at + 4 + (data[at + 2] << 8 | data[at + 3])
        if data[at + 4] == _END_RESPONSE:
            return end
        at = end
    return -1


def open_ajp(data: bytes) -> Parts:
    """Return the parts of an answer in packets; the head is the content of Send Headers."""
    if not data:
        raise WrongAnswer(NOTHING)
    head, body, kind, at, size = b"", [], 0, 0, len(data)
    while at + 5 <= size and kind != _END_RESPONSE:
        if data[at : at + 2] != b"AB":
            raise WrongAnswer(f"a packet that begins with {data[at : at + 4]!r}")
        kind = data[at + 4]
        end = at + 4 + (data[at + 2] << 8 | data[at + 3])
        if end > size or end < at + (7 if kind == _SEND_CHUNK else 5):
            raise WrongAnswer(f"a packet of type {kind} that is cut short")
        if kind == _SEND_CHUNK:
            body.append(data[at + 7 : at + 7 + (data[at + 5] << 8 | data[at + 6])])
        elif kind == _SEND_HEADERS:
            head = data[at + 5 : end]
        elif kind != _END_RESPONSE:
            raise WrongAnswer(f"a packet of type {kind}")
        at = end
    if kind != _END_RESPONSE or at != size or len(head) < 2:
        raise WrongAnswer("the packets are not a head, a body and End Response")
    return head[0] << 8 | head[1], head, b"".join(body)


def find_ajp_type(head: bytes) -> str:
    """Return the Content-Type of a Send Headers packet; ``""`` when it has none, or only an uncoded one."""
    at = head.find(_AJP_TYPE)
    if at < 0:
        return ""
    size = head[at + 2] << 8 | head[at + 3]
    return head[at + 4 : at + 4 + size].decode("latin-1")


def ajp_closes(data: bytes, _length: int) -> bool:
    """True when End Response does not offer reuse."""
    return data[-1] == 0


SPEECHES = {
    speech.name: speech
    for speech in (
        Speech("http", format_http, find_http_end, open_http, find_text_type, http_closes, delimited=False),
        Speech("fastcgi", format_fastcgi, find_fastcgi_end, open_fastcgi, find_text_type, never, delimited=True),
        Speech("scgi", format_scgi, find_text_end, open_document, find_text_type, always, delimited=False),
        Speech("ajp", format_ajp, find_ajp_end, open_ajp, find_ajp_type, ajp_closes, delimited=True),
        Speech("uwsgi", format_uwsgi, find_text_end, open_http, find_text_type, always, delimited=False),
    )
}
"""Protocol -> how it is spoken."""
