"""lighttpd 1.4: a socket with its mounts, or with a folder the whole of a lighttpd.

Speaks http, fastcgi, scgi, uwsgi, and ajp for requests without a body; spawns CGI scripts and FastCGI applications.
"""

from __future__ import annotations

import os.path

from gateways.core.errors import ConfigurationError
from gateways.core.metavariables import FORWARDED
from gateways.fronts.lines import block, explain, parse_reasons, remark
from gateways.fronts.site import Backend, Program, Site

NAME = "lighttpd"
WIRES = ("http", "fastcgi", "scgi", "uwsgi", "ajp")
SPAWNS = ("cgi", "fastcgi")

_MODULES = {"http": "proxy", "fastcgi": "fastcgi", "scgi": "scgi", "uwsgi": "scgi", "ajp": "ajp13"}
_SPAWN_MODULES = {"cgi": ("alias", "cgi"), "fastcgi": ("fastcgi",)}
_ROOTED = ("fastcgi", "scgi", "uwsgi")
_KIB = 1024
_REASONS = parse_reasons(
    r"""
mod_setenv
    mod_setenv has to come before mod_proxy, to change what that sends.
max-request-size
    The pool's LimitRequestBody, in KiB; 0 for none.
stream-request-body" => 0|stream-request-body = 0
    The default: an upload is complete, and its length known, before a worker hears of it.
stream-response-body = 1
    lighttpd takes the answer as fast as it comes, on disk if need be, and sends what there is: a slow client holds
    no worker.
stream-request-body = 1
    Uploads arrive piece by piece, and a slow client holds a worker.
stream-response-body = 2
    Answers arrive piece by piece, and a slow client holds a worker.
^ *server\.modules
    A module that is named twice is loaded once. lighttpd merges //, decodes %2F and removes dot segments before
    anything here sees a path.
fix-root-scriptname
    Below the key "/", and only with this, SCRIPT_NAME is empty and PATH_INFO the whole path. That is what a pool
    wants, which knows its mounts and splits the path by itself, and what is right for an application at the root.
\$HTTP\["url"\] ==
    Two comparisons and no pattern: a pattern never fits a path that is not UTF-8, and /app* would also be /apple.
check-local
    By default lighttpd looks for a file first, and answers 404 when there is none.
read-timeout
    Longer than the pool's own limits: the client sees the pool's answer, and not a 504 of lighttpd.
set-request-header
    What a client claims about itself is removed; lighttpd then adds X-Forwarded-For, -Host and -Proto. The pool
    believes them if its TrustedProxies names this server. Proxy would become HTTP_PROXY in a script (httpoxy).
force-http10
    With HTTP/1.0 an answer ends with the connection, and one that was cut looks whole.
max-procs
    One process for lighttpd, which keeps so many workers by itself.
^ *alias\.url
    What is left of the path after the file is PATH_INFO.
^ *cgi\.assign
    The file is run as it is.
^ *ajp13
    mod_ajp13 of 1.4.69 loses the path below any key but "", decodes it before it sends it, and sends the packets of a
    request body without their length, which ends the request. Use it for requests without a body, or not at all.
"""
)


def format_lighttpd(site: Site) -> list[str]:
    """Return the lines of the configuration."""
    inner = format_whole(site) if site.folder else format_part(site)
    if site.folder:
        use = f"Start: lighttpd -D -f THIS_FILE; stop: kill $(cat {site.folder}/lighttpd.pid)"
    else:
        use = (
            "Save as /etc/lighttpd/conf-enabled/90-gateways.conf; then: lighttpd -tt -f /etc/lighttpd/lighttpd.conf && "
        )
        use += "systemctl restart lighttpd"
    return [*remark(use), "", *explain(inner, _REASONS)]


def format_part(site: Site) -> list[str]:
    """Return what is added to a lighttpd that there is: modules, and one more socket."""
    return [format_modules(site, "+="), *block(f'$SERVER["socket"] == "{site.listen}" {{', format_mounts(site))]


def format_whole(site: Site) -> list[str]:
    """Return a lighttpd that keeps all its files in the site's folder."""
    folder = site.folder
    return [
        f'server.bind = "{site.host}"',
        f"server.port = {site.port}",
        f'server.document-root = "{folder}"',
        f'server.pid-file = "{folder}/lighttpd.pid"',
        f'server.errorlog = "{folder}/error.log"',
        f'server.upload-dirs = ( "{folder}" )',
        format_modules(site, "="),
        *format_mounts(site),
    ]


def format_modules(site: Site, sign: str) -> str:
    """Return the line that loads modules."""
    names = list(dict.fromkeys(_MODULES[backend.wire] for backend in site.backends))
    names = ["setenv", *names] if "proxy" in names else names or list(_SPAWN_MODULES[site.spawn])
    names = ["setenv", *names] if site.sets_variables else names
    listed = ", ".join(f'"mod_{name}"' for name in names)
    return f"server.modules {sign} ( {listed} )"


def format_mounts(site: Site) -> list[str]:
    """Return what holds on the socket."""
    lines = [
        f"server.max-request-size = {-(-site.body_limit // _KIB)}",
        f"server.stream-request-body = {1 if site.stream else 0}",
        f"server.stream-response-body = {2 if site.stream else 1}",
    ]
    for number, (prefix, backend) in enumerate(reversed(site.mounts)):
        lines += format_place(prefix, *format_backend(backend, number))
    for number, program in enumerate(reversed(site.programs)):
        inner = format_script(program) if site.spawn == "cgi" else format_program(site, program, number)
        lines += format_place(program.prefix, inner[0], [*inner[1], *format_variables(site, program)])
    return lines


def quote(text: str) -> str:
    """Return ``text`` as a string, in which a backslash makes a quote. Raise ``ConfigurationError`` if it cannot be."""
    if '\\"' in text or text.endswith("\\"):
        raise ConfigurationError(f"lighttpd cannot be told {text!r}: it has a backslash before a quote, or at its end")
    return '"' + text.replace('"', '\\"') + '"'


def format_variables(site: Site, program: Program) -> list[str]:
    """Return what gives a program's requests their variables, and none of the mounts' above it."""
    rows = [f"{quote(name)} => {quote(value)}," for name, value in program.environment]
    return block("setenv.set-environment = (", rows, ")") if site.sets_variables else []


def format_place(prefix: str, shared: list[str], lines: list[str]) -> list[str]:
    """Return ``shared``, then ``lines`` for the paths below ``prefix``; of several such places the last counts."""
    if not prefix:
        return [*shared, *lines]
    return [
        *shared,
        *(row for test in (f'== "{prefix}"', f'=^ "{prefix}/"') for row in block(f'$HTTP["url"] {test} {{', lines)),
    ]


def format_backend(backend: Backend, number: int) -> tuple[list[str], list[str]]:
    """Return (what is said before, what passes every path here to a backend).

    Raise ``ConfigurationError`` for an AJP secret: mod_ajp13 has no word for it, and every request would be refused.
    """
    if backend.wire == "ajp" and backend.secret:
        raise ConfigurationError(
            f'lighttpd cannot send the Secret of pool "{backend.pool}": let it use another wire, or another front'
        )
    place = [f'"socket" => "{backend.socket}"'] if backend.socket else []
    words = place or [f'"host" => "{backend.host}"', f'"port" => {backend.port}']
    words += [
        '"check-local" => "disable"',
        '"connect-timeout" => 5',
        f'"read-timeout" => {backend.answer_time}',
        f'"write-timeout" => {backend.answer_time}',
    ]
    if backend.wire in _ROOTED:
        words.append('"fix-root-scriptname" => "enable"')
    key = "/" if backend.wire in _ROOTED else ""
    module = _MODULES[backend.wire]
    name = f"var.mount{number}"
    lines = {"uwsgi": ['scgi.protocol = "uwsgi"'], "http": format_fields()}.get(backend.wire, [])
    return format_servers(name, key, words), [*lines, f"{module}.server = {name}"]


def format_servers(name: str, key: str, words: list[str]) -> list[str]:
    """Return a variable that holds one server."""
    return block(f'{name} = ( "{key}" => ((', [word + "," for word in words], ")) )")


def format_fields() -> list[str]:
    """Return what a backend that speaks HTTP is told."""
    names = ["Proxy", *(name.title() for name in sorted(FORWARDED))]
    return [
        *block("setenv.set-request-header = (", [f'"{name}" => "",' for name in names], ")"),
        'proxy.header = ( "force-http10" => "disable" )',
    ]


def format_program(site: Site, program: Program, number: int) -> tuple[list[str], list[str]]:
    """Return (what is said before, what passes every path here to a FastCGI application that lighttpd starts)."""
    command = f"{site.command} run --start-servers {program.start_servers} --model {program.model} {program.path}"
    words = [
        f'"socket" => "{site.folder or "/run/lighttpd"}/gateways-{number}.sock"',
        f'"bin-path" => "{command}"',
        '"max-procs" => 1',
        '"check-local" => "disable"',
        f'"read-timeout" => {program.answer_time}',
    ]
    if not program.prefix:
        words.append('"fix-root-scriptname" => "enable"')
    name = f"var.mount{number}"
    return format_servers(name, program.prefix or "/", words), [f"fastcgi.server = {name}"]


def format_script(program: Program) -> tuple[list[str], list[str]]:
    """Return (what is said before: nothing; what starts a CGI script for every path here)."""
    return [], [
        f'alias.url = ( "{program.prefix or "/"}" => "{program.path}{"" if program.prefix else "/"}" )',
        f'cgi.assign = ( "{os.path.basename(program.path)}" => "" )',
        f'cgi.limits = ( "read-timeout" => {program.answer_time}, "write-timeout" => {program.answer_time} )',
    ]
