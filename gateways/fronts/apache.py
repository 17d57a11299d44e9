"""Apache httpd 2.4: a virtual host, or with a folder the whole of an httpd.

Speaks http, fastcgi, scgi, ajp and uwsgi; spawns CGI scripts (mod_cgid) and FastCGI applications (mod_fcgid).
"""

from __future__ import annotations

import re

from gateways.core.metavariables import FORWARDED
from gateways.fronts.lines import block, explain, parse_reasons, remark
from gateways.fronts.site import Backend, Program, Site

NAME = "apache"
WIRES = ("http", "fastcgi", "scgi", "ajp", "uwsgi")
SPAWNS = ("cgi", "fastcgi")

_SCHEMES = {"http": "http", "fastcgi": "fcgi", "scgi": "scgi", "ajp": "ajp", "uwsgi": "uwsgi"}
_SPAWN_MODULES = {"cgi": ("alias", "cgid", "env"), "fastcgi": ("alias", "fcgid")}
_MODULES_FOLDER = "/usr/lib/apache2/modules"
_KEEPING = ("http", "fastcgi", "ajp")
_VARIABLE_WIRES = ("fastcgi", "scgi", "uwsgi")
_DEFAULT_PACKET = 8192
_NO_LIMIT = (1 << 31) - 1
_REASONS = parse_reasons(
    r"""
^ *MergeSlashes
    //a and /a are two paths (RFC 3986 6.2): the application sees what was asked for.
^ *AllowEncodedSlashes
    By default a path with %2F is 404, and the application never hears of it.
^ *LimitRequestBody
    The pool's LimitRequestBody; 0 for none.
^ *ProxyPreserveHost
    By default the application sees the backend's own address as its host.
unset Proxy
    A script would find it as HTTP_PROXY, which is a setting of HTTP clients (httpoxy).
unset Forwarded
    What a client claims about itself is removed; httpd then adds X-Forwarded-For, -Host and -Server. The pool
    believes them if its TrustedProxies names this server.
ap_trust_cgilike_cl
    Since 2.4.59 httpd drops the Content-Length of answers that come otherwise than by http unless this is set; ours
    is held against the body.
ProxyIOBufferSize
    The pool's PacketSize; both sides must have the same.
 timeout=
    timeout: longer than the pool's own limits, so that the client sees the pool's answer and not one of httpd.
 retry=0
    retry=0: by default httpd answers 503 for a minute after one refused connection.
^ *ProxyPass .*(http|ajp)://
    No nocanon: httpd holds its own rules against the path without dot segments, and passes on what it looked at. With
    nocanon the pool would get the client's spelling, and /open/../secret would be another path to either of them.
disablereuse=On
    disablereuse: a new connection goes to an idle worker at once. A request on a kept one, whose worker is busy, may
    wait some 30 ms until the pool passes it on.
enablereuse=On
    enablereuse: an idle connection costs our workers nothing, and a request on one whose worker is busy is passed
    on by the pool within some 30 ms (ShareConnections). ttl: less than the pool's KeepAliveTimeout, so that no request
    is sent on a connection that is just being closed.
flushpackets
    flushpackets: an answer arrives piece by piece.
 secret=
    secret: let nobody else read this file. httpd keeps one secret for each backend address, whatever other
    ProxyPass lines to the same address say.
ProxyFCGIBackendType
    The default, FPM, puts proxy:fcgi:// before SCRIPT_FILENAME.
PATH_INFO
    Under ProxyPass, httpd sets no PATH_INFO, and SCRIPT_NAME is the whole path. The pool knows its mounts and
    splits the path by itself: it wants all of it in PATH_INFO. These two stand here once: where one <Location> is
    inside another, httpd would apply them twice.
FcgidMaxRequestLen
    The default is 128 KiB, and a larger upload is answered with 500.
FcgidOutputBufferSize
    An answer arrives piece by piece.
FcgidWrapper
    Each of its processes serves one request at a time; mod_fcgid starts and ends them.
CGIPassAuth
    Otherwise the application never sees the Authorization field.
"""
)


def format_apache(site: Site) -> list[str]:
    """Return the lines of the configuration."""
    inner = [f"Listen {site.listen}", *block(f"<VirtualHost {site.listen}>", format_host(site), "</VirtualHost>")]
    modules = list_modules(site)
    if site.folder:
        use = f"Start: apache2 -d {site.folder} -f THIS_FILE -DFOREGROUND; stop: kill $(cat {site.folder}/apache.pid)"
        inner = [*format_whole(site, modules), *inner]
    else:
        use = (
            "Save as /etc/apache2/sites-available/gateways.conf; then: "
            f"a2enmod {' '.join(modules)} && a2ensite gateways && systemctl restart apache2"
        )
    return [*remark(use), "", *explain(inner, _REASONS)]


def list_modules(site: Site) -> list[str]:
    """Return the names of the modules that a site needs beside the core's."""
    if site.spawn:
        env = ["env"] if site.sets_variables else []
        return list(dict.fromkeys([*_SPAWN_MODULES[site.spawn], *env]))
    wires = sorted({backend.wire for backend in site.backends})
    return ["proxy", *(f"proxy_{_SCHEMES[wire]}" for wire in wires), "headers", "env"]


def format_whole(site: Site, modules: list[str]) -> list[str]:
    """Return what makes an httpd that keeps all its files in the site's folder."""
    folder = site.folder
    loaded = ("mpm_event", "authz_core", *modules)
    return [
        f'PidFile "{folder}/apache.pid"',
        f'DefaultRuntimeDir "{folder}"',
        f'Mutex "file:{folder}"',
        f'ErrorLog "{folder}/error.log"',
        f'DocumentRoot "{folder}"',
        "ServerName localhost",
        "User www-data",
        "Group www-data",
        *(f"LoadModule {module}_module {_MODULES_FOLDER}/mod_{module}.so" for module in loaded),
        *([f'ScriptSock "{folder}/cgid.sock"'] if site.spawn == "cgi" else []),
        *([f'FcgidIPCDir "{folder}"', f'FcgidProcessTableFile "{folder}/fcgid"'] if site.spawn == "fastcgi" else []),
    ]


def format_host(site: Site) -> list[str]:
    """Return what stands in the virtual host."""
    lines = ["MergeSlashes Off", "AllowEncodedSlashes On", f"LimitRequestBody {site.body_limit}"]
    if site.spawn:
        return [*lines, *format_programs(site)]
    lines += ["ProxyPreserveHost On", "RequestHeader unset Proxy early", *format_all_backends(site.backends)]
    for prefix, backend in reversed(site.mounts):
        lines += ["", *block(f'<Location "{prefix or "/"}">', format_backend(site, backend, prefix), "</Location>")]
    return lines


def format_all_backends(backends: tuple[Backend, ...]) -> list[str]:
    """Return what is said once for the wires that are spoken."""
    lines = []
    if any(backend.wire == "http" for backend in backends):
        lines += [f"RequestHeader unset {name.title()} early" for name in sorted(FORWARDED)]
        lines.append("RequestHeader set X-Forwarded-Proto expr=%{REQUEST_SCHEME}")
    if any(backend.wire != "http" for backend in backends):
        lines.append("SetEnv ap_trust_cgilike_cl 1")
    if any(backend.wire == "fastcgi" for backend in backends):
        lines += [
            "ProxyFCGIBackendType GENERIC",
            'ProxyFCGISetEnvIf "true" PATH_INFO "%{reqenv:SCRIPT_NAME}"',
            'ProxyFCGISetEnvIf "true" SCRIPT_NAME ""',
        ]
    packet = max((backend.packet_size for backend in backends if backend.wire == "ajp"), default=_DEFAULT_PACKET)
    return [*lines, f"ProxyIOBufferSize {packet}"] if packet > _DEFAULT_PACKET else lines


def format_backend(site: Site, backend: Backend, prefix: str) -> list[str]:
    """Return what stands in a mount's ``<Location>``."""
    lines = [f"ProxyPass {' '.join(format_pass(site, backend, prefix))}"]
    return [*lines, "CGIPassAuth On"] if backend.wire in _VARIABLE_WIRES else lines


def format_pass(site: Site, backend: Backend, prefix: str) -> list[str]:
    """Return the words of a ``ProxyPass``: the address and its settings."""
    scheme = _SCHEMES[backend.wire]
    host = name_backend(backend) if backend.socket else backend.authority
    place = f"{f'unix:{backend.socket}|' if backend.socket else ''}{scheme}://{host}"
    words = [f'"{place}{prefix or "/"}"', "connectiontimeout=5", f"timeout={backend.answer_time}", "retry=0"]
    if backend.wire in _KEEPING:
        words += ["enablereuse=On", f"ttl={backend.idle_time}"] if site.reuse else ["disablereuse=On"]
    if site.stream and backend.wire in ("fastcgi", "ajp"):
        words.append("flushpackets=on")
    if backend.secret:
        words.append(f"secret={backend.secret}")
    return words


def name_backend(backend: Backend) -> str:
    """Return the host name under which httpd tells backends on UNIX sockets apart."""
    return "gateways-" + re.sub(r"[^a-z0-9]", "-", backend.pool.lower())


def format_programs(site: Site) -> list[str]:
    """Return what starts the mounts' files."""
    alias = "ScriptAlias" if site.spawn == "cgi" else "Alias"
    lines = format_manager(site) if site.spawn == "fastcgi" else ["SetEnv ap_trust_cgilike_cl 1"]
    for program in site.programs:
        place = program.path if program.prefix else f"{program.path}/"
        lines.append(f'{alias} "{program.prefix or "/"}" "{place}"')
    for program in reversed(site.programs):
        inner = format_script(program) if site.spawn == "cgi" else format_application(site, program)
        inner += format_variables(site, program)
        lines += ["", *block(f'<Location "{program.prefix or "/"}">', ["Require all granted", *inner], "</Location>")]
    return lines


def format_variables(site: Site, program: Program) -> list[str]:
    """Return what gives a program's requests their variables, and takes those of the mounts above it away."""
    own = dict(program.environment)
    above = [other for other in site.programs if program.prefix.startswith(f"{other.prefix}/")]
    others = dict.fromkeys(name for other in above for name, _ in other.environment if name not in own)
    return [*(f"UnsetEnv {name}" for name in others), *(f"SetEnv {name} {quote(own[name])}" for name in own)]


def quote(text: str) -> str:
    """Return ``text`` as a word in quotes, a backslash before each quote and backslash."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def format_script(program: Program) -> list[str]:
    """Return what a CGI script needs."""
    lines = [f"CGIDScriptTimeout {program.answer_time}"]
    return [*lines, "CGIPassAuth On"] if program.passes_authorization else lines


def format_manager(site: Site) -> list[str]:
    """Return how mod_fcgid keeps its processes."""
    seconds = max(program.answer_time for program in site.programs)
    return [
        f"FcgidMaxRequestLen {site.body_limit or _NO_LIMIT}",
        f"FcgidMinProcessesPerClass {min(program.start_servers for program in site.programs)}",
        f"FcgidMaxProcessesPerClass {max(program.max_servers for program in site.programs)}",
        f"FcgidMaxRequestsPerProcess {max(program.max_requests for program in site.programs)}",
        f"FcgidIOTimeout {seconds}",
        f"FcgidBusyTimeout {seconds}",
        "FcgidPassHeader Authorization",
        *(["FcgidOutputBufferSize 0"] if site.stream else []),
    ]


def format_application(site: Site, program: Program) -> list[str]:
    """Return what starts a FastCGI application."""
    return [
        "Options +ExecCGI",
        "SetHandler fcgid-script",
        f'FcgidWrapper "{site.command} run --model {program.model} {program.path}"',
    ]
