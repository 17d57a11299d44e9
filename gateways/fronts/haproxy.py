"""HAProxy: a frontend and its backends, or with a folder the whole of an HAProxy. Speaks http and fastcgi."""

from __future__ import annotations

import re

from gateways.core.metavariables import FORWARDED
from gateways.fronts.lines import block, explain, parse_reasons, remark
from gateways.fronts.site import Backend, Site

NAME = "haproxy"
WIRES = ("http", "fastcgi")
SPAWNS = ()

_REASONS = parse_reasons(
    r"""
tune\.bufsize
    A request head and a response head each have to fit; the default is 16 KiB.
deny_status 400
    HAProxy passes dot segments on, and rules for a path do not see through them: /open/../secret is not below
    /secret.
use_backend
    The path is decoded before it is compared, and /apple is not below /app.
restrict-req-hdr-names
    As a variable, X_Forwarded_For could not be told from X-Forwarded-For. Fields with such names are removed.
del-header proxy
    A script would find it as HTTP_PROXY, which is a setting of HTTP clients (httpoxy).
del-header forwarded
    What a client claims about itself is removed or replaced. The pool believes what is left if its TrustedProxies
    names this server.
timeout server
    Longer than the pool's own limits: the client sees the pool's answer, and not a 504 of HAProxy.
http-reuse never
    A new connection goes to an idle worker at once. A request on a kept one, whose worker is busy, may wait some 30 ms
    until the pool passes it on.
http-reuse safe
    An idle connection costs our workers nothing, and a request on one whose worker is busy is passed on by the pool
    within some 30 ms (ShareConnections).
pool-purge-delay
    Less than the pool's KeepAliveTimeout: no request is sent on a connection that is just being closed.
path-info
    The pool knows its mounts and splits the path by itself: SCRIPT_NAME is empty, and PATH_INFO is the whole path,
    decoded once. HAProxy answers 500 to a path with an encoded newline; with set-param in place of this, it would
    pass such a path undecoded.
pass-header
    Otherwise the application never sees this field.
docroot
    Only names SCRIPT_FILENAME, which nobody looks at.
log-stderr
    What the application writes to its error stream goes to the log.
"""
)
_STREAMING = (
    "HAProxy passes bodies on as they come, both ways: a slow client holds a worker. Where that matters, put nginx, "
    "Apache or lighttpd in front."
)


def format_haproxy(site: Site) -> list[str]:
    """Return the lines of the configuration."""
    parts = [block("frontend gateways", format_frontend(site), "")]
    for backend in site.backends:
        parts.append(block(f"backend {name_backend(backend)}", format_backend(site, backend), ""))
        if backend.wire == "fastcgi":
            parts.append(block(f"fcgi-app {name_backend(backend)}", format_application(site), ""))
    whole = block("global", ["tune.bufsize 65536"], "")
    inner = [line for part in ([whole, *parts] if site.folder else parts) for line in ("", *part)]
    use = "Append to /etc/haproxy/haproxy.cfg, and write `tune.bufsize 65536` in its global section; then: "
    use += "haproxy -c -f /etc/haproxy/haproxy.cfg && systemctl reload haproxy"
    if site.folder:
        use = "Start: haproxy -db -f THIS_FILE; stop it with Ctrl-C"
    return [*remark(use), *remark(_STREAMING), *explain(inner, _REASONS)]


def name_backend(backend: Backend) -> str:
    """Return the name of a backend's sections."""
    return "gateways_" + re.sub(r"[^A-Za-z0-9_]", "_", backend.pool)


def format_frontend(site: Site) -> list[str]:
    """Return where HAProxy listens, and which paths go where."""
    lines = [
        "mode http",
        f"bind {site.listen}",
        "timeout client 60s",
        "timeout http-request 10s",
        "timeout http-keep-alive 5s",
        "option http-restrict-req-hdr-names delete",
        "http-request del-header proxy",
        r"http-request deny deny_status 400 if { path,url_dec -m reg '/\.\.?(/|$)' }",
    ]
    if site.body_limit:
        lines.append(f"http-request deny deny_status 413 if {{ req.body_size gt {site.body_limit} }}")
    for prefix, backend in site.mounts:
        pattern = re.escape(prefix).replace("'", r"\x27")
        condition = f" if {{ path,url_dec -m reg '^{pattern}(/|$)' }}" if prefix else ""
        lines.append(f"use_backend {name_backend(backend)}{condition}")
    return lines


def format_backend(site: Site, backend: Backend) -> list[str]:
    """Return what a backend is told, and where it is."""
    place = f"unix@{backend.socket}" if backend.socket else backend.authority
    server = f"server pool {place}"
    if site.reuse:
        server += f" pool-purge-delay {backend.idle_time}s"
    reuse = "safe" if site.reuse else "never"
    lines = ["mode http", "timeout connect 5s", f"timeout server {backend.answer_time}s", f"http-reuse {reuse}"]
    if backend.wire == "fastcgi":
        return [*lines, f"use-fcgi-app {name_backend(backend)}", f"{server} proto fcgi"]
    return [*lines, *format_fields(), server]


def format_fields() -> list[str]:
    """Return what a backend that speaks HTTP is told about the client."""
    return [
        *(f"http-request del-header {name}" for name in sorted(FORWARDED)),
        "http-request set-header x-forwarded-for %[src]",
        "http-request set-header x-forwarded-proto https if { ssl_fc }",
        "http-request set-header x-forwarded-proto http unless { ssl_fc }",
        "http-request set-header x-forwarded-host %[req.hdr(host)]",
    ]


def format_application(site: Site) -> list[str]:
    """Return what a backend that speaks FastCGI is told."""
    return [
        "docroot /",
        "path-info ^()(/.*)$",
        "pass-header authorization",
        "log-stderr global",
        "option keep-conn" if site.reuse else "no option keep-conn",
    ]
