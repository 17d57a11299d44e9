"""Caddy 2: a site block, or with a folder the whole of a Caddyfile. Speaks http and fastcgi."""

from __future__ import annotations

import re

from gateways.core.metavariables import FORWARDED
from gateways.fronts.lines import block, explain, parse_reasons, remark
from gateways.fronts.site import Backend, Site

NAME = "caddy"
WIRES = ("http", "fastcgi")
SPAWNS = ()

_OWN = frozenset({"x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"})
_REASONS = parse_reasons(
    r"""
max_size
    The pool's LimitRequestBody.
@dots vars
    Caddy holds its own rules against the path without dot segments, and passes on the client's spelling: to the
    pool, /open/../secret would be another path.
path_regexp
    The path matcher compares without case, and /app* would also be /apple.
-Proxy
    A script would find it as HTTP_PROXY, which is a setting of HTTP clients (httpoxy).
header_down -Server
    Caddy names itself, and an answer has one Server field at most.
-Forwarded
    What a client claims about itself is removed; X-Forwarded-For, -Proto and -Host are replaced by Caddy itself. The
    pool believes them if its TrustedProxies names this server.
flush_interval
    Answers arrive piece by piece.
response_header_timeout|read_timeout
    Longer than the pool's own limits: the client sees the pool's answer, and not a 504 of Caddy.
keepalive off
    A new connection goes to an idle worker at once. A request on a kept one, whose worker is busy, may wait some 30 ms
    until the pool passes it on.
keepalive [0-9]
    An idle connection costs our workers nothing, and a request on one whose worker is busy is passed on by the pool
    within some 30 ms (ShareConnections). Less than the pool's KeepAliveTimeout: no request is sent on a
    connection that is just being closed.
compression off
    Otherwise Caddy asks for gzip by itself, and unpacks it.
transport fastcgi
    Without split, SCRIPT_NAME is empty and PATH_INFO the whole path, decoded once: the pool knows its mounts and
    splits the path by itself. Caddy keeps no FastCGI connections. It passes X_Name under the same variable as X-Name.
"""
)
_STREAMING = (
    "Caddy passes bodies on as they come: a slow client holds a worker. Where that matters, put nginx, Apache or "
    "lighttpd in front."
)


def format_caddy(site: Site) -> list[str]:
    """Return the lines of the configuration."""
    inner = block(f"http://:{site.port} {{", format_site(site))
    if site.folder:
        use = "Start: caddy run --adapter caddyfile --config THIS_FILE; stop it with Ctrl-C"
        inner = [*format_whole(site), "", *inner]
    else:
        use = "Append to /etc/caddy/Caddyfile; then: systemctl reload caddy"
        inner = ["", *inner]
    return [*remark(use), *remark(_STREAMING), *map(indent_with_tabs, explain(inner, _REASONS))]


def indent_with_tabs(line: str) -> str:
    """Return a line indented as ``caddy fmt`` wants it."""
    text = line.lstrip(" ")
    return "\t" * ((len(line) - len(text)) // 4) + text


def format_whole(site: Site) -> list[str]:
    """Return the options of a Caddy that keeps all its files in the site's folder."""
    log = block("log {", [f"output file {site.folder}/error.log", "level WARN"])
    return block("{", ["admin off", "auto_https off", f"storage file_system {site.folder}", *log])


def format_site(site: Site) -> list[str]:
    """Return what stands in the site block."""
    lines = [f"bind {site.host}", r"@dots vars_regexp {http.request.uri.path} /\.\.?(/|$)"]
    lines += block("handle @dots {", ["respond 400"])
    if site.body_limit:
        lines += block("request_body {", [f"max_size {site.body_limit}"])
    for number, (prefix, backend) in enumerate(site.mounts):
        passing = block(f"reverse_proxy {format_place(backend)} {{", format_backend(site, backend))
        if prefix:
            name = f"@mount{number}"
            lines += [f"{name} path_regexp ^{re.escape(prefix)}(/|$)", *block(f"handle {name} {{", passing)]
        else:
            lines += block("handle {", passing)
    return lines


def format_place(backend: Backend) -> str:
    """Return a backend's address."""
    return f"unix/{backend.socket}" if backend.socket else backend.authority


def format_backend(site: Site, backend: Backend) -> list[str]:
    """Return what stands in ``reverse_proxy``."""
    lines = ["header_up -Proxy", "header_down -Server"]
    if backend.wire == "http":
        lines += [f"header_up -{name.title()}" for name in sorted(FORWARDED - _OWN)]
    lines += ["flush_interval -1"] if site.stream else []
    seconds = backend.answer_time
    if backend.wire == "http":
        keeping = f"keepalive {backend.idle_time}s" if site.reuse else "keepalive off"
        inner = ["dial_timeout 5s", f"response_header_timeout {seconds}s", keeping, "compression off"]
        return [*lines, *block("transport http {", inner)]
    inner = ["dial_timeout 5s", f"read_timeout {seconds}s", f"write_timeout {seconds}s"]
    return [*lines, *block("transport fastcgi {", inner)]
