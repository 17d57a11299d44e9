"""A request as a row states it and a response as a client saw it, the same over every wire. Knows no wire."""

from __future__ import annotations

from dataclasses import dataclass, replace

WIDE_TOKEN = b"{token-of-a-row}"
"""Stands for the token of 16 characters where a length was computed before it was known."""
Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    ``target``: path and query as sent, below the server's prefix; ``{token}`` stands for the row's own token.
    ``fields``: names and values of Latin-1 text, without Host, Content-Length and Transfer-Encoding, which the client
    writes. ``body``: ``None`` for a request without one. ``chunks``: sizes into which the body is cut, repeated as
    often as needed, for a body that is sent without a Content-Length. ``version``: the protocol that is stated.
    ``sends``: how many bytes the first send holds, or with a minus sign the second; 0: everything is sent at once.
    """

    method: str = "GET"
    target: str = "/"
    fields: Fields = ()
    body: bytes | None = None
    chunks: tuple[int, ...] = ()
    version: str = "HTTP/1.1"
    sends: int = 0

    def with_token(self, token: str) -> Request:
        """This request with ``{token}`` replaced, and in its body ``WIDE_TOKEN``, which leaves its length as it is."""
        body = self.body
        if body is not None:
            body = body.replace(WIDE_TOKEN, token.encode()).replace(b"{token}", token.encode())
        return replace(self, target=self.target.replace("{token}", token), body=body)

    def cut_body(self) -> list[bytes]:
        """The body in the pieces that ``chunks`` names."""
        data = self.body or b""
        pieces, at, turn = [], 0, 0
        while at < len(data):
            size = self.chunks[turn % len(self.chunks)]
            pieces.append(data[at : at + size])
            at += size
            turn += 1
        return pieces


@dataclass(frozen=True, slots=True)
class Response:
    """One response.

    ``status``: 0 when there was none; ``fields``: in order, names as sent. ``complete``: the wire says that the body is
    whole. ``kept``: the connection may carry another request. ``framing``: what ended the body: ``length``,
    ``chunked``, ``close``, ``none``, ``wire``. ``interim``: the 1xx statuses that came before. ``fault``: how the peer
    broke the wire's rules, a sentence; empty when it did not.
    """

    status: int = 0
    reason: str = ""
    fields: Fields = ()
    body: bytes = b""
    complete: bool = False
    kept: bool = False
    framing: str = "wire"
    interim: tuple[int, ...] = ()
    fault: str = ""

    def get_all(self, name: str) -> list[str]:
        """Every value of a field, in order; names compare without case."""
        return [value for key, value in self.fields if key.lower() == name.lower()]


@dataclass(frozen=True, slots=True)
class Context:
    """Where a row runs: the server's path prefix (``""`` at the root), its authority, and the row's token."""

    prefix: str = ""
    authority: str = "127.0.0.1"
    token: str = ""


class Broken(Exception):
    """The peer broke the wire's rules; the text says how."""
