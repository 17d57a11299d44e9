"""The exception tree: who broke the rules, what to answer, and which section says so.

Knows status codes and section names; does not know how an error is logged or sent.
"""

from __future__ import annotations


class GatewayError(Exception):
    """Base of every exception that this package raises on purpose. ``hint``: a sentence that a client may read, too."""

    hint = ""


class ProtocolError(GatewayError):
    """A rule of a wire was broken.

    ``message`` is one sentence for the log; ``status`` is the HTTP status to answer with;
    ``section`` names the section of the specification that was broken (``"RFC 9112 5.1"``).
    """

    def __init__(self, message: str, status: int = 400, section: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.section = section

    def __str__(self) -> str:
        return f"{self.message} ({self.section})" if self.section else self.message


class RemoteProtocolError(ProtocolError):
    """The peer broke the rules: answer ``status``, close, parse no further byte."""


class LocalProtocolError(ProtocolError):
    """The application or this package broke the rules: nothing of it may reach the peer."""

    def __init__(self, message: str, status: int = 500, section: str = "") -> None:
        super().__init__(message, status, section)


class LengthMismatch(LocalProtocolError):
    """A whole body is not as long as the Content-Length that its application stated (RFC 9110 8.6)."""

    def __init__(self) -> None:
        super().__init__("the body is not as long as its Content-Length", section="RFC 9110 8.6")


class ConnectionLost(GatewayError):
    """The peer went away, or did not move within its time limit, in the middle of an exchange."""


class BodyIncomplete(ConnectionLost, OSError):
    """The request body ended before its announced length; an ``OSError``, so that applications see a failed read."""


class ConfigurationError(GatewayError):
    """A setting is wrong: one sentence that says what is wrong and what to do, with ``file`` and ``line`` if known."""

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        return where + self.message


class LoadError(GatewayError):
    """A target could not be loaded; the message is one sentence, ``__cause__`` the application's own exception."""


class ScriptError(GatewayError):
    """A script ended without a valid response document; ``status`` is what the client gets (RFC 3875 6)."""

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
