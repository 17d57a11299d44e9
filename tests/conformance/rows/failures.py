"""Applications that fail or send what may not be sent: the client is told, the server lives, nothing leaks."""

from __future__ import annotations

from tests.conformance.checks import (
    at_path,
    body,
    body_starts,
    cut,
    either,
    field,
    no_field,
    no_value,
    status,
    whole,
)
from tests.conformance.rows.making import AFTER, build, get, synced
from tests.conformance.table import Row

SPLIT = "B092; B093; H22; RFC 9110 5.5"
HOP = "H22; U08; PEP 3333 Other HTTP Features"


def refused(name: str, ids: str, target: str) -> Row:
    """A head that may not be sent: 500, none of it reaches the client, and the next request is right."""
    return synced(name, ids, get(target), status(500), no_field("X-Injected", "Set-Cookie", "X-Bad"))


def stopped(name: str, ids: str, target: str) -> Row:
    """A field that is the server's alone: 500, or sent without it; the next request is right."""
    gone = (status(200), no_field("Upgrade"), no_value("Connection", "X-Option"), no_value("Transfer-Encoding", "gzip"))
    return synced(name, ids, get(target), either((status(500),), gone))


def cut_late(name: str, ids: str, target: str, sent: bytes) -> Row:
    """A failure after the first piece: the client can tell, and no error page is added to half a page."""
    return build(name, ids, [
        (get(target), either((status(200), body_starts(sent), cut), (status(500, 502), whole))),
        (AFTER, whole, at_path("/after/all")),
    ], cut=True, needs="cut")  # fmt: skip


ROWS: tuple[Row, ...] = (
    synced("dies-when-called", "plack: Do not crash when the app dies", get("/die?when=call"), status(500)),
    synced("dies-after-start", "PEP 3333 Error Handling", get("/die?when=started"), status(500)),
    synced("dies-before-first-piece", "PEP 3333 Error Handling", get("/die?when=first"), status(500)),
    synced("dies-before-first-piece-with-length", "PEP 3333 Error Handling", get("/die?when=first&length=8"),
           status(500)),
    cut_late("dies-after-first-piece", "PEP 3333 Error Handling; B018", "/die?when=later", b"half"),
    cut_late("dies-after-first-piece-with-length", "B018", "/die?when=later&length=8", b"half"),
    synced("head-replaced", "PEP 3333 start_response", get("/replace"), status(503), field("X-Second", "1"),
           no_field("X-First"), body(b"replaced")),
    cut_late("head-replaced-too-late", "PEP 3333 start_response", "/replace?late=1", b"half"),
    synced("start-response-twice", "PEP 3333 start_response", get("/twice"), status(500)),
    synced("start-response-never", "PEP 3333 start_response", get("/silent"), status(500)),
    synced("body-not-bytes", "PEP 3333 Unicode Issues", get("/unicode"), status(500)),
    # Response splitting.
    refused("field-value-crlf", SPLIT, "/fields?X-Bad=a%0D%0ASet-Cookie:%20x=1"),
    refused("field-value-lf", SPLIT, "/fields?X-Bad=a%0AX-Injected:%201"),
    refused("field-value-cr", SPLIT, "/fields?X-Bad=a%0DX-Injected:%201"),
    refused("field-value-nul", SPLIT, "/fields?X-Bad=a%00b"),
    refused("field-name-lf", SPLIT, "/fields?X-Bad%0AX-Injected:%201=a"),
    refused("field-name-space", "RFC 9110 5.1", "/fields?X%20Bad=a"),
    refused("field-name-colon", "RFC 9110 5.1", "/fields?X-Bad:%20b=a"),
    refused("field-name-empty", "RFC 9110 5.1", "/fields?=a"),
    refused("field-not-latin-1", "PEP 3333 Unicode Issues", "/wide-field"),
    refused("status-crlf", SPLIT, "/status?line=200%20OK%0D%0AX-Injected:%201&body=x"),
    refused("status-without-code", "PEP 3333 start_response; RFC 9112 4", "/status?line=Fine&body=x"),
    refused("status-two-digits", "RFC 9112 4", "/status?line=20%20OK&body=x"),
    refused("status-1xx", "RFC 9110 15.2; PEP 3333", "/status?line=100%20Continue&body=x"),
    # Hop-by-hop fields.
    stopped("transfer-encoding-from-app", f"B027; {HOP}", "/fields?Transfer-Encoding=gzip"),
    stopped("connection-from-app", HOP, "/fields?Connection=X-Option"),
    stopped("upgrade-from-app", HOP, "/fields?Upgrade=none"),
)  # fmt: skip
