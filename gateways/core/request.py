"""The request head, seen two ways: as CGI meta-variables and as fields, each built once and only if asked for.

``FieldRequest`` is what a wire that carries header fields makes (http, ajp); ``VariableRequest`` what a wire that
carries meta-variables makes (fastcgi, scgi, uwsgi, cgi). Knows no wire, no socket and no application.

All text is "native strings" in the sense of PEP 3333: each character is one byte (Latin-1).
"""

from __future__ import annotations

from gateways.core.errors import RemoteProtocolError
from gateways.core.metavariables import (
    FORWARDED,
    FORWARDED_VARIABLES,
    VARIABLE_NAMES,
    format_field_name,
)
from gateways.core.percent import decode_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from gateways.core.mounts import Mount

SERVER_SOFTWARE = "gateways"
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
PLACES = dict.fromkeys(
    (
        "REQUEST_METHOD", "REQUEST_URI", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL", "REMOTE_ADDR",
        "REMOTE_PORT",
    ),
    "",
)  # fmt: skip
_SECURE = frozenset({"https", "on", "ssl", "1", "true", "wss"})


class Endpoint:
    """What every request of one listener shares.

    ``server_name`` and ``server_port`` are never empty (RFC 3875 4.1.14, 4.1.15). ``trusted`` tells whether the peer
    at an address (``""`` for a UNIX socket) may speak for its clients; it is asked only when such a field came.
    """

    __slots__ = ("server_name", "server_port", "trusted", "variables")

    def __init__(self, server_name: str, server_port: str, trusted: "object" = None) -> None:
        self.server_name = server_name or "localhost"
        self.server_port = server_port or "80"
        self.trusted = trusted
        self.variables = {
            "GATEWAY_INTERFACE": "CGI/1.1",
            "SERVER_SOFTWARE": SERVER_SOFTWARE,
            "SERVER_NAME": self.server_name,
            "SERVER_PORT": self.server_port,
        }

    def trusts(self, address: str) -> bool:
        """True when the peer at ``address`` is a proxy that may speak for its clients."""
        return self.trusted is not None and bool(self.trusted(address))  # type: ignore[operator]


def parse_peer(peer: object) -> tuple[str, str]:
    """Return (address, port) of an accepted peer as text; ``("", "")`` for a UNIX socket (RFC 3875 4.1.8)."""
    if isinstance(peer, tuple) and len(peer) >= 2:
        address = str(peer[0])
        if ":" not in address:
            return address, str(peer[1])
        if address.startswith("::ffff:") and "." in address:
            address = address[7:]
        return address.partition("%")[0], str(peer[1])
    return "", ""


class Fields:
    """Request fields in the order they came; names compare without case (RFC 9110 5.1)."""

    __slots__ = ("_index", "pairs")

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self._index: dict[str, list[str]] | None = None

    def get_all(self, name: str) -> list[str]:
        """Return every value of ``name``, in order; empty when there is none."""
        if self._index is None:
            self._index = {}
            for key, value in self.pairs:
                self._index.setdefault(key.lower(), []).append(value)
        return self._index.get(name.lower(), [])

    def get(self, name: str, default: str = "") -> str:
        """Return the values of ``name`` as one, joined by ``", "`` (``"; "`` for Cookie), or ``default``."""
        values = self.get_all(name)
        if not values:
            return default
        return ("; " if name.lower() == "cookie" else ", ").join(values)

    def __contains__(self, name: str) -> bool:
        return bool(self.get_all(name))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)


class Request:
    """One request head.

    ``method``: the method token. ``target``: the request-target as sent, undecoded. ``path``: the part that mounts are
    matched against, percent-decoded once. ``query``: the query, never decoded, ``""`` if absent. ``protocol``:
    ``"HTTP/1.1"``. ``content_length``: bytes of body; 0 for none; ``None`` when only its end will tell.
    ``script_name``, ``path_info``: set by the mount that took the request. ``peer``: the accepted address.
    """

    __slots__ = (
        "_fields",
        "_metavariables",
        "content_length",
        "endpoint",
        "method",
        "mount",
        "path",
        "path_info",
        "peer",
        "protocol",
        "query",
        "script_name",
        "target",
    )

    mount: Mount | None
    endpoint: Endpoint
    peer: object
    method: str
    target: str
    path: str
    query: str
    protocol: str
    content_length: int | None
    script_name: str
    path_info: str
    _fields: Fields | None
    _metavariables: dict[str, str] | None

    @property
    def fields(self) -> Fields:
        """The request's fields; what an untrusted peer says of its client, and ``Proxy``, are left out."""
        if self._fields is None:
            self._fields = self.build_fields()
        return self._fields

    @property
    def metavariables(self) -> dict[str, str]:
        """The request's CGI meta-variables (RFC 3875 4.1), computed once; treat as read-only."""
        if self._metavariables is None:
            self._metavariables = self.build_metavariables()
        return self._metavariables

    @property
    def remote_address(self) -> str:
        """The peer's address; ``""`` for a UNIX socket."""
        return parse_peer(self.peer)[0]

    @property
    def remote_user(self) -> str:
        """REMOTE_USER as a trusted front says; ``""`` when none does."""
        return ""

    def find_field(self, name: str) -> str:
        """Return the first value of the field ``name`` (in small letters), ``""`` if none came; builds neither view."""
        raise NotImplementedError

    @property
    def scheme(self) -> str:
        """``"http"`` or ``"https"``, as the wire or a trusted proxy says."""
        return "https" if self.metavariables.get("HTTPS") == "on" else "http"

    def build_fields(self) -> Fields:
        """Return a new ``Fields``."""
        raise NotImplementedError

    def build_metavariables(self, template: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return a new dictionary of meta-variables that the caller owns.

        ``template``: what ``make_template`` returned for a request of this endpoint and mount, with whatever else the
        caller wants in each dictionary; without one it is made anew.
        """
        raise NotImplementedError

    def make_template(self) -> dict[str, Any]:
        """Return what is the same in the variables of every request of this endpoint and mount; the mount's own win."""
        return {} if self.mount is None else dict(self.mount.variables)


class FieldRequest(Request):
    """A request head that came as header fields (HTTP, AJP)."""

    __slots__ = ("field_list",)

    def __init__(
        self,
        endpoint: Endpoint,
        peer: object,
        method: str,
        target: str,
        path: str,
        query: str,
        protocol: str,
        field_list: list[tuple[str, str]],
        content_length: int | None,
    ) -> None:
        self.endpoint = endpoint
        self.peer = peer
        self.method = method
        self.target = target
        self.path = path
        self.path_info = path
        self.script_name = ""
        self.query = query
        self.protocol = protocol
        self.field_list = field_list
        self.content_length = content_length
        self.mount = None
        self._fields = None
        self._metavariables = None

    def make_template(self) -> dict[str, Any]:
        """Return a template in which the place of every variable that each request has is taken."""
        return {**PLACES, **self.endpoint.variables, **super().make_template()}

    def find_field(self, name: str) -> str:
        """Return the first value of a field."""
        size = len(name)
        for key, value in self.field_list:
            if len(key) == size and key.lower() == name:
                return value
        return ""

    def build_fields(self) -> Fields:
        """Return the fields, without those that must not reach an application."""
        hidden = {"proxy"} if self.endpoint.trusts(self.remote_address) else FORWARDED | {"proxy"}
        return Fields([pair for pair in self.field_list if pair[0].lower() not in hidden])

    def build_metavariables(self, template: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the meta-variables (RFC 3875 4.1): repeated fields are joined, dropped names left out."""
        # A copy with every place taken costs half of building the dictionary up (`bench floor`, keep c=10, wsgi).
        variables = (self.make_template() if template is None else template).copy()
        address, port = parse_peer(self.peer)
        variables["REQUEST_METHOD"] = self.method
        variables["REQUEST_URI"] = self.target
        variables["SCRIPT_NAME"] = self.script_name
        variables["PATH_INFO"] = self.path_info
        variables["QUERY_STRING"] = self.query
        variables["SERVER_PROTOCOL"] = self.protocol
        variables["REMOTE_ADDR"] = address
        variables["REMOTE_PORT"] = port
        fields, forwarded = self._format_fields()
        variables.update(fields)
        if forwarded:
            apply_forwarded(variables, self.endpoint.trusts(address))
        if self.content_length is None:
            variables.pop("CONTENT_LENGTH", None)
        return variables

    def _format_fields(self) -> tuple[dict[str, str], bool]:
        field_list = self.field_list
        if type(field_list) is not FieldPairs:
            return format_field_variables(field_list)
        known = field_list.variables
        if known is None:
            known = field_list.variables = format_field_variables(field_list)
        return known


class FieldPairs(list[tuple[str, str]]):
    """Fields that several requests share, and are not to be changed; their variables are formatted once."""

    __slots__ = ("variables",)

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        super().__init__(pairs)
        self.variables: tuple[dict[str, str], bool] | None = None


def format_field_variables(field_list: list[tuple[str, str]]) -> tuple[dict[str, str], bool]:
    """Return (variables, forwarded) of fields: repeated ones are joined, dropped names left out (RFC 3875 4.1.18).

    ``forwarded``: one of them is what only a trusted proxy may say.
    """
    variables: dict[str, str] = {}
    forwarded = False
    names = VARIABLE_NAMES
    for name, value in field_list:
        variable = names[name]
        if not variable:
            continue
        if variable in variables:
            if variable == "CONTENT_LENGTH" or variable == "CONTENT_TYPE":
                continue
            separator = "; " if variable == "HTTP_COOKIE" else ", "
            value = variables[variable] + separator + value
        elif variable in FORWARDED_VARIABLES:
            forwarded = True
        variables[variable] = value
    return variables, forwarded


class VariableRequest(Request):
    """A request head that came as meta-variables (FastCGI, SCGI, uwsgi, CGI).

    ``variables`` is what the wire carried, already free of names that a wire must drop. A mount moves its prefix from
    ``path`` to ``script_name``; with ``whole_path``, a front that does not split the path is recognised (see
    ``split_path``). Raise ``RemoteProtocolError`` (400) for a method that is no token, for a PATH_INFO that neither is
    empty nor begins with ``/`` (RFC 3875 4.1.5, 4.1.12), and for a path that decodes to NUL.

    Whom to believe: what the front itself says (REMOTE_ADDR, REMOTE_USER, HTTPS ...) is believed, because only a front
    may reach the listener of such a wire. ``HTTP_X_FORWARDED_FOR`` and its kin are fields that the front relays from
    its own peer, so they count only when that peer, REMOTE_ADDR, is a trusted proxy.
    """

    __slots__ = ("outer_script_name", "variables")

    def __init__(
        self,
        endpoint: Endpoint,
        peer: object,
        variables: dict[str, str],
        content_length: int | None,
        whole_path: bool = False,
    ) -> None:
        self.endpoint = endpoint
        self.peer = peer
        self.variables = variables
        self.method = method = variables.get("REQUEST_METHOD", "GET")
        if not (method and _TOKEN.issuperset(method)):
            raise RemoteProtocolError(f"REQUEST_METHOD {method[:40]!r} is not a token", 400, "RFC 3875 4.1.12")
        path = variables.get("PATH_INFO")
        script_name = variables.get("SCRIPT_NAME", "")
        if path is None:
            script_name, path = split_path(variables) if whole_path else (script_name, "")
            if "\0" in path:
                raise RemoteProtocolError("the path has a NUL, %00", 400, "RFC 3986 7.3")
        if path and path[0] != "/":
            raise RemoteProtocolError(f"PATH_INFO {path[:40]!r} does not begin with a slash", 400, "RFC 3875 4.1.5")
        self.path = self.path_info = path
        self.query = variables.get("QUERY_STRING", "")
        self.outer_script_name = self.script_name = script_name.rstrip("/")
        self.target = variables.get("REQUEST_URI", "") or self.script_name + path
        self.protocol = variables.get("SERVER_PROTOCOL", "HTTP/1.0")
        self.content_length = content_length
        self.mount = None
        self._fields = None
        self._metavariables = None

    @property
    def remote_address(self) -> str:
        """The client's address, as the front says; ``""`` when it does not."""
        return self.variables.get("REMOTE_ADDR", "")

    @property
    def remote_user(self) -> str:
        """The user, as the front says; ``""`` when it does not."""
        return self.variables.get("REMOTE_USER", "")

    def find_field(self, name: str) -> str:
        """Return the field that an HTTP_ variable stands for."""
        return self.variables.get("HTTP_" + name.upper().replace("-", "_"), "")

    def build_fields(self) -> Fields:
        """Return the fields that the HTTP_ variables stand for."""
        pairs = [(format_field_name(name), value) for name, value in self.metavariables.items()]
        return Fields([pair for pair in pairs if pair[0]])

    def build_metavariables(self, template: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the variables as they came, completed where RFC 3875 requires one, with the mount's own."""
        variables: dict[str, Any] = {**self.endpoint.variables, "REMOTE_ADDR": "", **self.variables}
        # nginx sends an empty SERVER_NAME where no server_name is set; empty it may not be (RFC 3875 4.1.14, 4.1.15).
        variables["SERVER_NAME"] = variables["SERVER_NAME"] or self.endpoint.server_name
        variables["SERVER_PORT"] = variables["SERVER_PORT"] or self.endpoint.server_port
        variables["REQUEST_METHOD"] = self.method
        variables["SCRIPT_NAME"] = self.script_name
        variables["PATH_INFO"] = self.path_info
        variables["QUERY_STRING"] = self.query
        variables["SERVER_PROTOCOL"] = self.protocol
        variables["REQUEST_URI"] = self.target
        variables["GATEWAY_INTERFACE"] = "CGI/1.1"
        # nginx also passes these two as fields, which they are not in this form (RFC 3875 4.1.18).
        for name in ("HTTP_PROXY", "HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"):
            variables.pop(name, None)
        if not FORWARDED_VARIABLES.isdisjoint(variables):
            address = variables["REMOTE_ADDR"]
            apply_forwarded(variables, bool(address) and self.endpoint.trusts(address))
        variables.update(self.make_template() if template is None else template)
        return variables


def split_path(variables: dict[str, str]) -> tuple[str, str]:
    """Return (SCRIPT_NAME, PATH_INFO) for a front that sent no PATH_INFO at all.

    Most fronts that leave it out do not split: SCRIPT_NAME is the whole path (nginx with its own ``fastcgi_params``,
    HAProxy, Apache's ProxyPass), or is left out too (nginx with ``scgi_params``). Two leave out an *empty* PATH_INFO,
    as RFC 3875 4.1.5 allows: lighttpd, and Apache where it maps the script to a file. Apache's two cases differ in
    SCRIPT_FILENAME, which under ProxyPass is the rest of the address and ends as SCRIPT_NAME does; it is compared and
    never cut.
    """
    script_name = variables.get("SCRIPT_NAME", "")
    software = variables.get("SERVER_SOFTWARE", "")
    if not script_name:
        path = variables.get("DOCUMENT_URI", "") or decode_path(variables.get("REQUEST_URI", "").partition("?")[0])
        return "", path if path.startswith("/") else ""
    if software.startswith("lighttpd"):
        return script_name, ""
    if software.startswith("Apache"):
        target = variables.get("SCRIPT_FILENAME", "")
        if target.startswith("proxy:"):
            target = "/" + target.partition("://")[2].partition("/")[2]
        if not (target.startswith("/") and script_name.endswith(decode_path(target))):
            return script_name, ""
    return "", script_name


def apply_forwarded(variables: dict[str, str], trusted: bool) -> None:
    """Believe or drop what a proxy says of its client, in place.

    From a trusted peer, X-Forwarded-Proto and its kin set HTTPS. Raise ``RemoteProtocolError`` when a trusted peer's
    fields disagree about the scheme.
    """
    if not trusted:
        for name in FORWARDED_VARIABLES:
            variables.pop(name, None)
        return
    said = set()
    for name in (
        "HTTP_X_FORWARDED_PROTO",
        "HTTP_X_FORWARDED_PROTOCOL",
        "HTTP_X_FORWARDED_SCHEME",
        "HTTP_X_FORWARDED_SSL",
    ):
        value = variables.get(name)
        if value is not None:
            said.add(value.strip().lower() in _SECURE)
    if len(said) > 1:
        raise RemoteProtocolError("forwarded fields disagree about the scheme", 400, "RFC 7239 5.4")
    if True in said:
        variables["HTTPS"] = "on"


__all__ = ["Endpoint", "FieldRequest", "Fields", "Request", "VariableRequest", "apply_forwarded", "parse_peer"]
