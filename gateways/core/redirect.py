"""An internal redirect: a script's ``Location: /path`` runs that path as a GET request (RFC 3875 6.2.2)."""

from __future__ import annotations

from gateways.core.percent import decode_path
from gateways.core.request import PLACES, Fields, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RedirectedRequest(Request):
    """A GET request for another path of this server, in place of ``original``; it carries no body.

    The first request's address and status stay visible as REDIRECT_URL and REDIRECT_STATUS, as CGI programs know them.
    """

    __slots__ = ("original",)

    def __init__(self, original: Request, location: str) -> None:
        path, _, query = location.partition("#")[0].partition("?")
        self.original = original
        self.endpoint = original.endpoint
        self.peer = original.peer
        self.method = "HEAD" if original.method == "HEAD" else "GET"
        self.target = location
        self.path = decode_path(path)
        self.path_info = self.path
        self.query = query
        self.script_name = ""
        self.protocol = original.protocol
        self.content_length = 0
        self.mount = None
        self._fields = None
        self._metavariables = None

    def find_field(self, name: str) -> str:
        """Return the first request's field."""
        return self.original.find_field(name)

    def build_fields(self) -> Fields:
        """Return the first request's fields, without those of its body."""
        return Fields([pair for pair in self.original.build_fields() if not pair[0].lower().startswith("content-")])

    def make_template(self) -> dict[str, Any]:
        """Return the first request's template, with this request's mount."""
        return {**self.original.make_template(), **super().make_template()}

    def build_metavariables(self, template: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the first request's variables with those of the new path."""
        variables = self.original.build_metavariables()
        for name in ("CONTENT_LENGTH", "CONTENT_TYPE", "PATH_TRANSLATED", "SCRIPT_FILENAME"):
            variables.pop(name, None)
        variables["REDIRECT_URL"] = self.original.path
        variables["REDIRECT_STATUS"] = "200"
        variables["REQUEST_METHOD"] = self.method
        variables["REQUEST_URI"] = self.original.target
        variables["SCRIPT_NAME"] = self.script_name
        variables["PATH_INFO"] = self.path_info
        variables["QUERY_STRING"] = self.query
        more = self.make_template() if template is None else template
        variables.update((name, value) for name, value in more.items() if name not in PLACES)
        return variables
