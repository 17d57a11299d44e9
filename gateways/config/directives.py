"""The table of directives: every setting there is, once. File, command line and reference are views of it.

A row says what a setting is called, where it may stand, what it may hold, and what it is for; the code name is the
name in small letters (``MaxRequestsPerChild``, ``max_requests_per_child``, ``--max-requests-per-child``).
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from gateways.config import kinds
from gateways.config.addresses import WIRES, ListenAddress, PeerRule
from gateways.config.kinds import Kind, choice, number, whole

MODELS = ("cgi", "zygote", "perlrun", "registry", "wsgi", "handler")
"""The execution models, in the order of the ladder."""

SCRIPT_MODELS = ("cgi", "zygote", "perlrun", "registry")
"""Models that run a file from its top; the others call a function of it."""

ACCESS_LOG_FORMATS = ("common", "combined", "json")
"""The names of ``gateways.accesslog.FORMATS``."""

LOG_LEVELS = ("debug", "info", "warning", "error")


class Scope(enum.Enum):
    """Where a directive may stand."""

    SERVER = "server"
    POOL = "pool"
    MOUNT = "mount"


class _Required:
    """The default of a directive that has none."""

    __slots__ = ()


REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Directive:
    """One setting.

    ``unit``: of the value. ``zero``: what zero means where it is special. ``shared``: a mount directive that may also
    stand in the pool, for all its mounts. ``option``: the option's name where it is not made from ``name``.
    """

    name: str
    scope: Scope
    kind: Kind
    default: object
    help: str
    unit: str = ""
    zero: str = ""
    shared: bool = False
    option: str = ""

    @property
    def attribute(self) -> str:
        """The setting's name in code: ``max_requests_per_child``."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @property
    def flag(self) -> str:
        """The setting's name on the command line: ``--max-requests-per-child``."""
        return self.option or "--" + self.attribute.replace("_", "-")


_SERVER, _POOL, _MOUNT = Scope.SERVER, Scope.POOL, Scope.MOUNT
_DAY = 86400.0
_INT = (1 << 31) - 1

DIRECTIVES: tuple[Directive, ...] = (
    Directive(
        "ErrorLog", _SERVER, kinds.PATH, "",
        "The file that messages are appended to; standard error if none is named. A file that was moved away is "
        "opened again under its name.",
    ),
    Directive(
        "SlowLog", _SERVER, kinds.PATH, "",
        "The file for what SlowRequestTimeout and RequestTimeout find: process, request, age and the stack of every "
        "thread; the error log if none is named. A file that was moved away is opened again under its name.",
    ),
    Directive("LogLevel", _SERVER, choice(*LOG_LEVELS), "info", "The least important messages that are written."),
    Directive(
        "PidFile", _SERVER, kinds.PATH, "",
        "The file that holds the supervisor's process number, and a lock as long as it runs; none if not given.",
    ),
    Directive(
        "StatusListen", _SERVER, kinds.STATUS, "",
        "Where the supervisor itself answers, also while every worker is stuck: /ping, and /status (a page; .json and "
        ".txt for programs) with every worker and the request it runs. UNIX sockets are for the owner only. A reload "
        "does not move it.",
    ),
    Directive(
        "Listen", _POOL, kinds.LISTEN, (ListenAddress("127.0.0.1:8000"),),
        "Where the pool accepts connections, and with WIRE:// before the address what is spoken there: one pool can "
        "speak several wires. A port alone listens on 127.0.0.1; 0.0.0.0 or [::] on every interface. Port 0 takes a "
        "free port, which is announced.", option="--bind",
    ),
    Directive("Wire", _POOL, choice(*WIRES), "http", "The protocol spoken on addresses that do not name theirs."),
    Directive(
        "ListenMode", _POOL, kinds.MODE, "0660",
        "The permissions of UNIX sockets, from their first moment; a front server needs to write to them.",
    ),
    Directive(
        "ListenOwner", _POOL, kinds.USER, "", "Who owns UNIX sockets; the user that starts the server if not given.",
    ),
    Directive(
        "ListenGroup", _POOL, kinds.GROUP, "",
        "The group of UNIX sockets, as a rule the front server's (www-data); that of the user that starts the server "
        "if not given.",
    ),
    Directive(
        "AllowWildcard", _POOL, kinds.BOOLEAN, False,
        "Whether a wire other than http may listen on every interface (0.0.0.0, [::]). Such a wire believes whoever "
        "reaches it as it believes the front server.",
    ),
    Directive(
        "AllowedPeers", _POOL, kinds.ALLOWED_PEERS, PeerRule(),
        "Peers that may connect; a connection from any other is closed at once. Everybody may if not given.",
    ),
    Directive(
        "Secret", _POOL, kinds.SECRET, "",
        "Wire ajp: what each request must carry (`secret` of a front server's worker), otherwise it gets 403. Needed "
        "wherever other machines can reach the address.",
    ),
    Directive(
        "PacketSize", _POOL, whole(8192, 65536), 8192,
        "Wire ajp: the longest packet in either direction; the front server's must be the same.", "bytes",
    ),
    Directive(
        "TrustRemoteUser", _POOL, kinds.BOOLEAN, False,
        "Wire ajp: whether REMOTE_USER, AUTH_TYPE and the client's certificate are taken over from the front server.",
    ),
    Directive(
        "AllowedAttributes", _POOL, kinds.PATTERN, "",
        "Wire ajp: which request attributes beyond the well-known are let in, as variables AJP_NAME; the pattern must "
        "match the whole name. A request with any other gets 403.",
    ),
    Directive(
        "User", _POOL, kinds.USER, "",
        "Whom the pool's workers become, for good, before they load the application; needs root. They stay who starts "
        "the server if not given.",
    ),
    Directive(
        "Group", _POOL, kinds.GROUP, "", "The group that the pool's workers change to; that of User if not given.",
    ),
    Directive(
        "ProcessManager", _POOL, choice("dynamic", "static", "ondemand", "fork"), "dynamic",
        "How the number of workers is kept. dynamic: by spares, from StartServers to MaxServers. static: always "
        "MaxServers. ondemand: one when a connection finds none idle, none while nothing comes. fork: the same, and "
        "each serves one connection only. The last two start with one, to see that the application can be loaded.",
    ),
    Directive(
        "ProcessIdleTimeout", _POOL, number("seconds", 0.1, _DAY), 10.0,
        "ProcessManager ondemand and fork: how long a worker waits for work before it leaves.", "seconds",
    ),
    Directive(
        "StartServers", _POOL, whole(1, 10000), 5, "Workers that are started with the pool.", "workers",
    ),
    Directive(
        "MinSpareServers", _POOL, whole(1, 10000), 5,
        "The supervisor starts workers while fewer than this are idle.", "workers",
    ),
    Directive(
        "MaxSpareServers", _POOL, whole(1, 10000), 10,
        "The supervisor retires workers, one at a time, while more than this are idle.", "workers",
    ),
    Directive(
        "MaxServers", _POOL, whole(1, 10000), 64,
        "The most workers at one time; one that is leaving is not counted.", "workers",
    ),
    Directive(
        "MaxRequestsPerChild", _POOL, whole(0, _INT), 0,
        "A worker is replaced after this many requests.", "requests", zero="never",
    ),
    Directive(
        "MaxRequestsJitter", _POOL, number("fraction", 0, 1), 0.1,
        "Each worker's own MaxRequestsPerChild is lower by a random part of it, at most this much, so that workers do "
        "not all restart together.", zero="no spread",
    ),
    Directive(
        "MaxMemoryPerChild", _POOL, whole(0), 0,
        "A worker whose resident memory is larger is replaced, when its successor is ready.", "bytes", zero="any size",
    ),
    Directive(
        "RequestTimeout", _POOL, number("seconds", 0, _DAY), 0.0,
        "A worker that spends more on one request is killed; the log says what it was doing, and the client gets 504 "
        "if nothing was sent to it. Kept to within two seconds.", "seconds", zero="without limit",
    ),
    Directive(
        "SlowRequestTimeout", _POOL, number("seconds", 0, _DAY), 0.0,
        "A request that takes longer is logged (SlowLog) with its age and the stack of every thread, and goes on.",
        "seconds",
        zero="never",
    ),
    Directive(
        "GracefulTimeout", _POOL, number("seconds", 0, _DAY), 30.0,
        "How long a retired worker may take to finish its request before it is killed.", "seconds", zero="at once",
    ),
    Directive(
        "ListenBacklog", _POOL, whole(1, 65535), 2048, "Connections that the kernel holds for the pool.", "connections"
    ),
    Directive(
        "MaxQueue", _POOL, whole(0, 65535), 0,
        "How many connections may wait while MaxServers workers are busy; one more is answered 503 at once.",
        "connections", zero="any number",
    ),
    Directive(
        "QueueTimeout", _POOL, number("seconds", 0, _DAY), 0.0,
        "How long a connection may wait while MaxServers workers are busy, before it is answered 503.", "seconds",
        zero="without limit",
    ),
    Directive(
        "ShareConnections", _POOL, kinds.BOOLEAN, True,
        "Whether a request on a kept connection, whose worker is at another request for longer, goes to a free worker. "
        "It takes a process more, once a worker keeps several connections.",
    ),
    Directive(
        "KeepAliveTimeout", _POOL, number("seconds", 0, _DAY), 5.0,
        "How long an idle connection is kept for its next request.", "seconds", zero="without limit",
    ),
    Directive(
        "HeaderTimeout", _POOL, number("seconds", 0, _DAY), 10.0,
        "How long a request head may take from its first byte to its last.", "seconds", zero="without limit",
    ),
    Directive(
        "BodyTimeout", _POOL, number("seconds", 0, _DAY), 30.0,
        "The longest silence while a request body is read.", "seconds", zero="without limit",
    ),
    Directive(
        "BodyRate", _POOL, whole(0, _INT), 500, "The least speed of a request body.", "bytes a second", zero="any speed"
    ),
    Directive(
        "SendTimeout", _POOL, number("seconds", 0, _DAY), 60.0,
        "How long a client may take no byte of its response.", "seconds", zero="without limit",
    ),
    Directive(
        "LimitRequestLine", _POOL, whole(0, _INT), 8190,
        "The longest request line (414 beyond).", "bytes", zero="unlimited",
    ),
    Directive(
        "LimitRequestFields", _POOL, whole(0, _INT), 100,
        "The most field lines of a request (431 beyond).", "fields", zero="unlimited",
    ),
    Directive(
        "LimitRequestFieldSize", _POOL, whole(0, _INT), 8190,
        "The longest field line of a request (431 beyond).", "bytes", zero="unlimited",
    ),
    Directive(
        "LimitRequestHead", _POOL, whole(0, _INT), 65536,
        "The longest request head, or block of variables (431 beyond). Whatever it says, a block of fastcgi or scgi "
        "ends at 1048576 bytes, one of uwsgi at 65535, one of ajp at PacketSize.", "bytes",
        zero="unlimited",
    ),
    Directive(
        "LimitRequestBody", _POOL, whole(0), 1 << 30, "The longest request body (413 beyond).", "bytes",
        zero="unlimited",
    ),
    Directive(
        "TrustedProxies", _POOL, kinds.PEERS, PeerRule(),
        "Peers whose X-Forwarded-* and Forwarded fields are believed; from all others these fields are dropped.",
    ),
    Directive(
        "ServerName", _POOL, kinds.SERVER_NAME, "",
        "SERVER_NAME for requests that do not say their host; the listening address if not given.",
    ),
    Directive(
        "PythonPath", _POOL, kinds.PATHS, (".",),
        "Folders in which the modules of targets are looked for, before all others; relative to the configuration "
        "file, or to the working directory on the command line.",
    ),
    Directive(
        "Preload", _POOL, kinds.MODULES, (),
        "Modules that are imported before the workers are forked, so that they share the memory. A reload imports them "
        "anew. If one cannot be imported the pool does not start, or the old workers stay.",
    ),
    Directive(
        "AccessLog", _POOL, kinds.LOG, "",
        "The file to which a line is appended for each request; - is standard output. A file that was moved away is "
        "opened again under its name within a second, by the workers: where their User may not, HUP does it.",
    ),
    Directive(
        "AccessLogFormat", _POOL, choice(*ACCESS_LOG_FORMATS), "combined",
        "What a line of the access log is: the Common or the Combined Log Format, each with the microseconds, the "
        "process and the execution model behind it, or a JSON object.",
    ),
    Directive(
        "Path", _MOUNT, kinds.PREFIX, "/", "The URL path below which the mount answers; the longest fitting one wins."
    ),
    Directive(
        "Target", _MOUNT, kinds.TEXT, REQUIRED,
        "The application: FILE.py, FILE.py:NAME, PACKAGE.MODULE:NAME, a program, or a folder of programs; relative to "
        "the configuration file, or to the working directory on the command line.",
    ),
    Directive(
        "Model", _MOUNT, choice(*MODELS), "",
        "How the application is run for a request. If not given, the target decides: NAME or a top-level "
        "`application`, `app` is called by wsgi, a `handler` by handler, other Python files are run by registry with "
        "a fresh namespace, programs and folders by cgi.",
    ),
    Directive(
        "Title", _MOUNT, kinds.TEXT, "", "What the index page calls the mount; its path if not given.",
    ),
    Directive(
        "Namespace", _MOUNT, choice("fresh", "shared"), "fresh",
        "Model registry: whether every request gets new globals, or finds those that earlier requests left.",
        shared=True,
    ),
    Directive(
        "StatScripts", _MOUNT, kinds.BOOLEAN, True,
        "Model registry: whether a script's file is looked at before each request and compiled again if it changed.",
        shared=True,
    ),
    Directive(
        "Stdio", _MOUNT, choice("object", "descriptor"), "object",
        "Models perlrun and registry: whether a script's output is caught at sys.stdout, or at descriptor 1, "
        "which also catches os.write and subprocesses and costs more.",
        shared=True,
    ),
    Directive(
        "DirectoryIndex", _MOUNT, kinds.FILE_NAMES, (),
        "Targets that are folders: the script that answers for a folder itself; the first of these names that is "
        "there. If not given, a folder is 404.", shared=True,
    ),
    Directive(
        "PassAuthorization", _MOUNT, kinds.BOOLEAN, False,
        "Whether scripts see the Authorization field, as HTTP_AUTHORIZATION.", shared=True,
    ),
    Directive(
        "Environment", _MOUNT, kinds.ENVIRONMENT, (),
        "Variables that every request of the mount finds beside its own: a script in its environment, where they win "
        "over the server's; a WSGI application in its environ; a handler among its variables. Names that a request "
        "fills (RFC 3875 4.1, HTTP_ and the like) are refused. What a mount says replaces what its pool says.",
        shared=True,
    ),
    Directive(
        "ScriptTimeLimit", _MOUNT, number("seconds", 0, _DAY), 60.0,
        "Models cgi and zygote: a script that runs longer is killed, with all processes it started.", "seconds",
        zero="without limit", shared=True,
    ),
    Directive(
        "Pages", _MOUNT, kinds.PAGES, ("/",), "Links that the index page shows below the mount.", shared=True
    ),
)  # fmt: skip

BY_NAME = {directive.name: directive for directive in DIRECTIVES}


def select(*scopes: Scope) -> tuple[Directive, ...]:
    """Return the directives of some scopes, in the table's order."""
    return tuple(directive for directive in DIRECTIVES if directive.scope in scopes)
