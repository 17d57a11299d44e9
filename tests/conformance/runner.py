"""Runs rows against a server and says of each what came of it. Knows clients by their protocol only."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Thread

from tests.conformance.addresses import Address
from tests.conformance.clients import Client, make_client
from tests.conformance.messages import Broken, Context, Request, Response
from tests.conformance.table import NEEDS, Checks, Row

PASS, FAIL, SKIP = "pass", "fail", "skip"
PATIENCE = 10.0
"""Seconds for which a patient row repeats its last request."""
LIMIT = 10.0
"""Seconds that each exchange of a row may take."""
ROOT_SKIP = "its bytes name paths at the root, and the server has a prefix"


@dataclass(frozen=True, slots=True)
class Target:
    """A server to hold the table against. ``front``: the front server that stands before it, if one does."""

    name: str
    address: Address
    front: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a row: ``pass``, ``fail`` or ``skip``, and a sentence for the last two."""

    row: Row
    result: str
    reason: str = ""


def check_all(checks: Checks, response: Response, context: Context) -> str:
    """The first sentence that a check has to say; ``""`` when all hold."""
    return next(filter(None, (check(response, context) for check in checks)), "")


def describe(row: Row, index: int, said: str) -> str:
    """A sentence with the request it is about, where a row has several."""
    count = len(row.expected)
    return f"{said} (answer {index + 1} of {count})" if said and count > 1 else said


def run_row(row: Row, target: Target, limit: float = LIMIT) -> Outcome:
    """Run one row. A server that hangs fails it within the limit."""
    client = make_client(target.address, limit)
    if skip := find_skip(row, client, target):
        return Outcome(row, SKIP, skip)
    context = Context(target.address.prefix, target.address.authority, secrets.token_hex(8))
    try:
        said = run_raw(row, client, context) if row.raw else run_sequence(row, client, context)
    except (OSError, Broken) as error:
        said = f"{type(error).__name__}: {error}"
    if uses_token(row):
        forget(client, context)
    return Outcome(row, FAIL, said) if said else Outcome(row, PASS)


def find_skip(row: Row, client: Client, target: Target) -> str:
    """Why a row makes no sense for a target; ``""`` when it does."""
    if row.raw and target.address.prefix:
        return ROOT_SKIP
    if "prefix" in row.needs and not target.address.prefix:
        return NEEDS["prefix"]
    return row.find_skip(client.wire, client.lacks, target.front)


def uses_token(row: Row) -> bool:
    """True when the application keeps a file for the row."""
    return any("{token}" in request.target for request in row.requests)


def forget(client: Client, context: Context) -> None:
    """Have the application remove a row's file; a server that cannot has failed the row already."""
    try:
        client.exchange([Request(target=f"/forget?token={context.token}")], ignore)
    except (OSError, Broken):
        return


def ignore(body: bytes) -> None:
    """Watch nothing."""


def run_raw(row: Row, client: Client, context: Context) -> str:
    """Run a row of bytes: as many answers as expected must come, and each be right."""
    answers: list[Response] = client.send_raw(row.raw, row.half_close)  # type: ignore[attr-defined]
    due = len(answers) if row.may_end and answers and not answers[-1].kept else len(row.expected)
    missing = [Response()] * (due - len(answers))
    for index, (response, checks) in enumerate(zip(answers + missing, row.expected, strict=False)):
        if said := check_all(checks, response, context):
            return describe(row, index, said)
    beyond = answers[len(row.expected) :]
    return (
        f"an answer that nothing asked for: {beyond[0].status} {beyond[0].fault or beyond[0].body[:80]!r}"
        if beyond
        else ""
    )


def run_sequence(row: Row, client: Client, context: Context) -> str:
    """Run a row of requests."""
    requests = [request.with_token(context.token) for request in row.requests]
    first, rest = (requests[:-1], requests[-1:]) if row.patient else (requests, [])
    release = Release(row.release.with_token(context.token), client) if row.release else None
    responses = client.exchange(first, release or ignore)
    if release:
        release.join()
    for index, response in enumerate(responses):
        if said := check_all(row.expected[index], response, context):
            return describe(row, index, said)
    return wait_for(client, rest[0], row.expected[-1], context) if rest else ""


def wait_for(client: Client, request: Request, checks: Checks, context: Context) -> str:
    """Repeat a request until its checks hold, for a while."""
    end = time.monotonic() + PATIENCE
    while said := check_all(checks, client.exchange([request], ignore)[0], context):
        if time.monotonic() > end:
            return said
        time.sleep(0.02)
    return ""


class Release:
    """Sends a request on a connection of its own once the first byte of another's body has come."""

    def __init__(self, request: Request, client: Client) -> None:
        self._client = client
        self._thread = Thread(target=self._send, args=(request,), daemon=True)

    def __call__(self, body: bytes) -> None:
        if body and self._thread.ident is None:
            self._thread.start()

    def _send(self, request: Request) -> None:
        try:
            self._client.exchange([request], ignore)
        except (OSError, Broken):
            return

    def join(self) -> None:
        """Wait until it is answered."""
        if self._thread.ident is not None:
            self._thread.join(LIMIT)


def run_table(
    rows: Iterable[Row], target: Target, limit: float = LIMIT, report: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """Run rows in order; ``report`` hears of each as it ends."""
    outcomes = []
    for row in rows:
        outcome = run_row(row, target, limit)
        outcomes.append(outcome)
        if report:
            report(outcome)
    return outcomes


__all__ = ["FAIL", "LIMIT", "PASS", "SKIP", "Outcome", "Target", "run_row", "run_table"]
