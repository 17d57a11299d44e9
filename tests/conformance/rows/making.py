"""Short ways to write a row."""

from __future__ import annotations

from tests.conformance.checks import Check, at_path, whole
from tests.conformance.messages import Fields, Request
from tests.conformance.table import Row

FORM = ("Content-Type", "application/x-www-form-urlencoded")
AFTER = Request(target="/after/all")


def get(target: str, *fields: tuple[str, str], method: str = "GET") -> Request:
    """A request without a body."""
    return Request(method, target, fields)


def post(target: str, body: bytes, *fields: tuple[str, str], method: str = "POST", sends: int = 0) -> Request:
    """A request with a body."""
    return Request(method, target, fields or (FORM,), body, sends=sends)


def chunked(target: str, body: bytes, *chunks: int, fields: Fields = ()) -> Request:
    """A request whose body's length is not stated."""
    return Request("POST", target, fields, body, chunks)


def make(name: str, ids: str, request: Request, *checks: Check, **options: object) -> Row:
    """A row of one request. ``ids`` stand apart by ``"; "``; ``needs`` may be a string of names."""
    return build(name, ids, [(request, *checks)], **options)


def synced(name: str, ids: str, request: Request, *checks: Check, **options: object) -> Row:
    """A row of one request and, on the same connection, a second one that must get its own right answer."""
    return build(name, ids, [(request, *checks), (AFTER, at_path("/after/all"))], **options)


def build(name: str, ids: str, steps: list[tuple[Request | Check, ...]], **options: object) -> Row:
    """A row of several requests, each with its checks."""
    requests = [step[0] for step in steps]
    checks = [step[1:] for step in steps]
    if not options.get("cut"):
        options.pop("cut", None)
        checks = [(whole, *group) for group in checks]
    options.pop("cut", None)
    needs = frozenset(str(options.pop("needs", "")).split())
    return Row(name, tuple(ids.split("; ")), tuple(requests), tuple(checks), needs=needs, **options)  # type: ignore[arg-type]


def raw(
    name: str, ids: str, data: bytes, *answers: tuple[Check, ...], half_close: bool = False, may_end: bool = False
) -> Row:
    """A row of bytes, for HTTP alone; each answer that must come has its checks, and no other may come."""
    needs = frozenset({"raw", "direct"})
    expected = tuple((whole, *checks) for checks in answers)
    return Row(
        name, tuple(ids.split("; ")), raw=data, expected=expected, half_close=half_close, may_end=may_end, needs=needs
    )


def head(*lines: str, host: str = "h") -> bytes:
    """A request head of these lines, the first of which is the request line; Host is added after it unless empty."""
    named = (lines[0], f"Host: {host}", *lines[1:]) if host else lines
    return ("\r\n".join(named) + "\r\n\r\n").encode("latin-1")
