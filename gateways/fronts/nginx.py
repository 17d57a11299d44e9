"""nginx: a ``server`` block, or with a folder the whole of an nginx. Speaks http, fastcgi, scgi and uwsgi."""

from __future__ import annotations

import re

from gateways.core.metavariables import FORWARDED
from gateways.fronts.lines import block, explain, parse_reasons, remark
from gateways.fronts.site import Backend, Site

NAME = "nginx"
WIRES = ("http", "fastcgi", "scgi", "uwsgi")
SPAWNS = ()

_MODULES = {"http": "proxy", "fastcgi": "fastcgi", "scgi": "scgi", "uwsgi": "uwsgi"}
_KEEPING = ("http", "fastcgi")
_TRUE_FIELDS = {"x-forwarded-for": "$remote_addr", "x-forwarded-proto": "$scheme", "x-forwarded-host": "$gateways_host"}
_VARIABLES = (
    'SCRIPT_NAME ""',
    "PATH_INFO $uri",
    "REQUEST_METHOD $request_method",
    "REQUEST_URI $request_uri",
    "QUERY_STRING $query_string",
    "CONTENT_TYPE $content_type",
    "CONTENT_LENGTH $content_length",
    "SERVER_PROTOCOL $server_protocol",
    "SERVER_SOFTWARE nginx/$nginx_version",
    "SERVER_NAME $host",
    "SERVER_ADDR $server_addr",
    "SERVER_PORT $server_port",
    "REMOTE_ADDR $remote_addr",
    "REMOTE_PORT $remote_port",
    "REQUEST_SCHEME $scheme",
    "HTTPS $https if_not_empty",
    "GATEWAY_INTERFACE CGI/1.1",
    "HTTP_HOST $gateways_host",
    "HTTP_COOKIE $http_cookie if_not_empty",
    'HTTP_PROXY "" if_not_empty',
    'HTTP_CONTENT_TYPE "" if_not_empty',
    'HTTP_CONTENT_LENGTH "" if_not_empty',
)
_REASONS = parse_reasons(
    r"""
^ *merge_slashes
    //a and /a are two paths (RFC 3986 6.2): the application sees what was asked for.
^ *client_max_body_size
    The pool's LimitRequestBody; 0 for none. The default is 1 MiB.
^ *underscores_in_headers
    The default, and it has to stay: as a variable, X_Forwarded_For could not be told from X-Forwarded-For.
^ *set \$gateways_host
    The Host field as the client sent it, $http_host, may differ from the host of an absolute request target, which
    is the one that counts (RFC 9112 3.2.2).
^ *if .*request_uri
    nginx holds its own rules against the path without dot segments, and passes on the client's spelling: to the
    pool, /open/../secret would be another path. (By the other wires it passes on what it looked at.)
^ *location ~
    With a plain prefix in place of the pattern, /apple would be below /app, and /app would be moved to /app/.
^ *keepalive [0-9]
    Connections that each nginx process keeps. An idle one costs our workers nothing, and a request on
    one whose worker is busy is passed on by the pool within some 30 ms (ShareConnections).
^ *keepalive_timeout
    Less than the pool's KeepAliveTimeout: no request is sent on a connection that is just being closed.
^ *proxy_pass
    No path after the address: with one, nginx sends its decoded and re-encoded path in place of the client's.
_read_timeout
    Longer than the pool's own limits: the client sees the pool's answer, and not a 504 of nginx.
_buffer_size
    A response head has to fit; the default of 4k or 8k makes a 502 of a longer one.
_buffering on
    The default: nginx takes the answer as fast as it comes, and a slow client holds no worker. A response that has
    to arrive piece by piece says X-Accel-Buffering: no.
scgi_request_buffering
    Never off: nginx then states as CONTENT_LENGTH what has come so far, and the upload is cut there.
_request_buffering on
    The default: an upload is complete, and its length known, before a worker hears of it.
[a-z]_buffering off
    Bodies arrive piece by piece, and a slow client holds a worker.
uwsgi_request_buffering off
    An upload without a Content-Length is collected by nginx all the same.
proxy_http_version
    With 1.0, the default, an answer ends with the connection, and one that was cut looks whole.
Connection
    Without this, nginx says Connection: close and keeps nothing.
proxy_set_header Host
    By default the backend's own address.
proxy_set_header Proxy
    A script would find it as HTTP_PROXY, which is a setting of HTTP clients (httpoxy).
proxy_set_header Forwarded
    What a client claims about itself is removed or replaced. The pool believes what is left if its TrustedProxies
    names this server.
_param SCRIPT_NAME
    The pool knows its mounts and splits the path by itself: SCRIPT_NAME is empty, and PATH_INFO is the whole path,
    decoded once.
_param HTTP_COOKIE
    Several Cookie fields are joined as one. Before 1.23, nginx passes any other repeated field as a repeated
    variable, of which the first counts.
_param HTTP_PROXY
    Never passed: a setting of HTTP clients, which a client could send as a field (httpoxy).
_param HTTP_CONTENT_TYPE
    nginx would pass these two twice, under their own names and with HTTP_.
fastcgi_keep_conn
    Without this, nginx asks for the connection to be closed.
"""
)


def format_nginx(site: Site) -> list[str]:
    """Return the lines of the configuration."""
    inner = [*format_upstreams(site), *block("server {", format_server(site))]
    if site.folder:
        use = f"Start: nginx -e {site.folder}/error.log -c THIS_FILE; stop: kill $(cat {site.folder}/nginx.pid)"
        inner = format_whole(site, inner)
    else:
        use = "Save as /etc/nginx/conf.d/gateways.conf; then: nginx -t && nginx -s reload"
    return [*remark(use), "", *explain(inner, _REASONS)]


def format_whole(site: Site, inner: list[str]) -> list[str]:
    """Return an nginx that keeps all its files in the site's folder."""
    folder = site.folder
    temporary = [f"{name}_temp_path {folder}/{name};" for name in ("client_body", *_MODULES.values())]
    return [
        "daemon off;",
        "worker_processes 2;",
        f"pid {folder}/nginx.pid;",
        f"error_log {folder}/error.log error;",
        "events {}",
        *block("http {", ["access_log off;", *temporary, *inner]),
    ]


def format_upstreams(site: Site) -> list[str]:
    """Return the groups of kept connections, one a backend."""
    lines = []
    for backend in site.backends:
        if site.reuse and backend.wire in _KEEPING:
            keeping = ["keepalive 16;", f"keepalive_timeout {backend.idle_time}s;"]
            lines += block(f"upstream {name_upstream(backend)} {{", [f"server {format_place(backend)};", *keeping])
    return lines


def name_upstream(backend: Backend) -> str:
    """Return the name of a backend's group."""
    return "gateways_" + re.sub(r"[^A-Za-z0-9_]", "_", backend.pool)


def format_place(backend: Backend) -> str:
    """Return a backend's address."""
    return f"unix:{backend.socket}" if backend.socket else backend.authority


def format_server(site: Site) -> list[str]:
    """Return what stands in ``server``."""
    host = "$host" if site.port == 80 else "$host:$server_port"
    lines = [
        f"listen {site.listen};",
        "merge_slashes off;",
        f"client_max_body_size {site.body_limit};",
        "underscores_in_headers off;",
        f"set $gateways_host {host};",
    ]
    if any(backend.wire == "http" for backend in site.backends):
        lines += block(r'if ($request_uri ~* "^[^?]*/(\.|%2e)(\.|%2e)?([/?]|$)") {', ["return 400;"])
    for prefix, backend in site.mounts:
        place = f'location ~ "^{re.escape(prefix)}(/|$)" {{' if prefix else "location / {"
        lines += ["", *block(place, format_backend(site, backend))]
    return lines


def format_backend(site: Site, backend: Backend) -> list[str]:
    """Return what stands in a ``location``."""
    module = _MODULES[backend.wire]
    kept = site.reuse and backend.wire in _KEEPING
    buffering = "off" if site.stream else "on"
    return [
        format_pass(backend, module, kept),
        f"{module}_connect_timeout 5s;",
        f"{module}_read_timeout {backend.answer_time}s;",
        f"{module}_send_timeout {backend.answer_time}s;",
        f"{module}_buffer_size 64k;",
        f"{module}_buffers 8 64k;",
        f"{module}_buffering {buffering};",
        f"{module}_request_buffering {'on' if module == 'scgi' else buffering};",
        *(format_fields(kept) if module == "proxy" else format_variables(module, kept)),
    ]


def format_pass(backend: Backend, module: str, kept: bool) -> str:
    """Return the line that names the backend."""
    place = name_upstream(backend) if kept else format_place(backend)
    if module != "proxy":
        return f"{module}_pass {place};"
    return f"proxy_pass http://{place}{':' if backend.socket and not kept else ''};"


def format_fields(kept: bool) -> list[str]:
    """Return what a backend that speaks HTTP is told."""
    return [
        "proxy_http_version 1.1;",
        *(['proxy_set_header Connection "";'] if kept else []),
        "proxy_set_header Host $gateways_host;",
        'proxy_set_header Proxy "";',
        *(f"proxy_set_header {name.title()} {_TRUE_FIELDS.get(name, chr(34) * 2)};" for name in sorted(FORWARDED)),
    ]


def format_variables(module: str, kept: bool) -> list[str]:
    """Return what a backend that speaks variables is told."""
    lines = [f"{module}_param {variable};" for variable in _VARIABLES]
    if module == "scgi":  # nginx itself puts CONTENT_LENGTH first
        return [*(line for line in lines if " CONTENT_LENGTH " not in line), "scgi_param SCGI 1;"]
    return [*lines, "fastcgi_keep_conn on;"] if kept else lines
