"""What a row may expect of a response: small predicates that return a sentence when they do not hold, else ``""``.

Knows responses; not how they came. A check is made by one of the functions below and called by the runner.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from tests.conformance.messages import Context, Response

Check = Callable[[Response, Context], str]
Echoed = dict[str, Any]
PATTERN = bytes(range(251))


def pattern(size: int) -> bytes:
    """The bytes that the application's ``/gen`` and ``/file`` send."""
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def shorten(value: object) -> str:
    """A value as a sentence can hold it."""
    if isinstance(value, bytes) and len(value) > 40:
        return f"{value[:24]!a}... ({len(value)} bytes)"
    text = ascii(value)
    return text if len(text) <= 100 else f"{text[:70]}... ({len(text)} characters)"


def expect(found: object, wanted: object, what: str) -> str:
    """A sentence when two values differ."""
    return "" if found == wanted else f"{what} is {shorten(found)}, not {shorten(wanted)}"


# The head.


def status(*codes: int) -> Check:
    """One of these statuses."""

    def check(response: Response, context: Context) -> str:
        if response.status in codes:
            return ""
        wanted = " or ".join(map(str, codes))
        if not response.status:
            return f"no answer, where {wanted} was due{': ' + response.fault if response.fault else ''}"
        told = "" if response.body.startswith(b"{") else f": {shorten(response.body[:60])}"
        return f"status {response.status}, not {wanted}{told}"

    return check


def no_answer_or(*codes: int) -> Check:
    """A closed connection, or one of these statuses."""
    return status(0, *codes)


def reason(text: str) -> Check:
    """This reason phrase."""
    return lambda response, context: expect(response.reason, text, "the reason phrase")


def field(name: str, *values: str) -> Check:
    """A field with exactly these values, each on a line of its own, in this order."""
    return lambda response, context: expect(response.get_all(name), list(values), f"the field {name}")


def joined_field(name: str, value: str) -> Check:
    """A field whose lines, joined by ``", "``, are this value."""
    return lambda response, context: expect(", ".join(response.get_all(name)), value, f"the field {name}, joined")


def no_field(*names: str) -> Check:
    """None of these fields."""

    def check(response: Response, context: Context) -> str:
        found = [name for name in names if response.get_all(name)]
        return f"{' and '.join(found)} came, where it may not" if found else ""

    return check


def no_value(name: str, value: str) -> Check:
    """A field that does not have this value."""

    def check(response: Response, context: Context) -> str:
        return f"{name} has {value}, where it may not" if value in ", ".join(response.get_all(name)) else ""

    return check


def at_most_one(name: str) -> Check:
    """A field that comes once or not at all."""

    def check(response: Response, context: Context) -> str:
        count = len(response.get_all(name))
        return f"{name} came {count} times" if count > 1 else ""

    return check


def length_is(value: int) -> Check:
    """A Content-Length, if there is one, of this value."""

    def check(response: Response, context: Context) -> str:
        found = response.get_all("Content-Length")
        return "" if found in ([], [str(value)]) else f"Content-Length is {found}, not {value}"

    return check


# The body.


def body(data: bytes) -> Check:
    """Exactly these bytes."""
    return lambda response, context: expect(response.body, data, "the body")


def body_starts(data: bytes) -> Check:
    """A beginning of these bytes, and no more than they are."""

    def check(response: Response, context: Context) -> str:
        return (
            "" if data.startswith(response.body) else f"the body is {shorten(response.body)}, no part of what was sent"
        )

    return check


def generated(size: int, offset: int = 0) -> Check:
    """The application's pattern, from ``offset`` to ``size``."""

    def check(response: Response, context: Context) -> str:
        wanted = pattern(size)[offset:]
        if response.body == wanted:
            return ""
        same = next((i for i, (a, b) in enumerate(zip(response.body, wanted, strict=False)) if a != b), None)
        where = f", which differ from byte {same} on" if same is not None else ""
        return f"{len(response.body)} bytes of body came, not {len(wanted)}{where}"

    return check


def given(values: list[Any]) -> Check:
    """A JSON body that is this list."""

    def check(response: Response, context: Context) -> str:
        try:
            return expect(json.loads(response.body), values, "what was read")
        except ValueError:
            return f"status {response.status} and no JSON: {shorten(response.body)}"

    return check


def words(*texts: str) -> Check:
    """Exactly these words of a token's file."""
    return lambda response, context: expect(response.body.decode("latin-1").split(), list(texts), "what was noted")


# The echo page.


def echoed(test: Callable[[Echoed, Context], str]) -> Check:
    """An echo page about which ``test`` has nothing to say."""

    def check(response: Response, context: Context) -> str:
        if response.status != 200:
            return status(200)(response, context)
        try:
            seen = json.loads(response.body)
        except ValueError:
            return f"no echo page: {shorten(response.body)}"
        return test(seen, context)

    return check


def echo(**wanted: object) -> Check:
    """An echo page with these entries."""

    def test(seen: Echoed, context: Context) -> str:
        return "; ".join(filter(None, (expect(seen.get(key), value, key) for key, value in wanted.items())))

    return echoed(test)


def at_path(path_info: str) -> Check:
    """An echo page whose PATH_INFO is this and whose SCRIPT_NAME is the server's prefix."""

    def test(seen: Echoed, context: Context) -> str:
        found = expect(seen.get("path_info"), path_info, "PATH_INFO")
        return found or expect(seen.get("script_name"), context.prefix, "SCRIPT_NAME")

    return echoed(test)


def request_uri(target: str) -> Check:
    """An echo page whose REQUEST_URI is the target as it was sent."""
    return echoed(lambda seen, context: expect(seen.get("request_uri"), context.prefix + target, "REQUEST_URI"))


def variable(name: str, *values: str) -> Check:
    """An echo page with a variable of one of these values."""

    def test(seen: Echoed, context: Context) -> str:
        found = seen["environ"].get(name)
        if found in values:
            return ""
        return f"{name} is {shorten(found)}, not {' or '.join(map(shorten, values))}"

    return echoed(test)


def no_variable(*names: str) -> Check:
    """An echo page without these variables."""

    def test(seen: Echoed, context: Context) -> str:
        found = {name: seen["environ"][name] for name in names if name in seen["environ"]}
        return f"{shorten(found)} reached the application" if found else ""

    return echoed(test)


def filled_variable(*names: str) -> Check:
    """An echo page with these variables, none of them empty."""

    def test(seen: Echoed, context: Context) -> str:
        missing = [name for name in names if not seen["environ"].get(name)]
        return f"{' and '.join(missing)} is missing or empty" if missing else ""

    return echoed(test)


def received(data: bytes) -> Check:
    """An echo page that read exactly this request body."""
    digest = hashlib.sha256(data).hexdigest()

    def test(seen: Echoed, context: Context) -> str:
        found = expect(seen["length"], len(data), "the length of the body that was read")
        return found or ("" if seen["sha256"] == digest else "the body that was read is not the one that was sent")

    return echoed(test)


# Framing.


def whole(response: Response, context: Context) -> str:
    """A response that arrived by the rules, to its end. Every row expects this that does not expect ``cut``."""
    if response.fault:
        return response.fault
    return "" if response.complete or not response.status else f"the response is incomplete: {shorten(response.body)}"


def cut(response: Response, context: Context) -> str:
    """A response that the client can tell to be incomplete."""
    return "the client cannot tell that the response is incomplete" if response.complete else ""


def kept(response: Response, context: Context) -> str:
    """A connection that stays open."""
    return "" if response.kept else "the connection was not kept"


def closed(response: Response, context: Context) -> str:
    """A connection that is closed after the response."""
    return "the connection was kept" if response.kept else ""


def framing(*kinds: str) -> Check:
    """A body that is framed in one of these ways."""

    def check(response: Response, context: Context) -> str:
        return (
            ""
            if response.framing in kinds
            else f"the body's end is told by {response.framing}, not {' or '.join(kinds)}"
        )

    return check


def interim(*wanted: tuple[int, ...]) -> Check:
    """One of these sequences of 1xx responses before the final one."""

    def check(response: Response, context: Context) -> str:
        return "" if response.interim in wanted else f"1xx responses {list(response.interim)} came"

    return check


def either(*choices: tuple[Check, ...]) -> Check:
    """All checks of one of these groups."""

    def check(response: Response, context: Context) -> str:
        said = []
        for group in choices:
            found = next(filter(None, (one(response, context) for one in group)), "")
            if not found:
                return ""
            said.append(found)
        return "neither: " + "; nor: ".join(said)

    return check
