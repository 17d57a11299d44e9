"""How a request's line and fields become meta-variables and an environ."""

from __future__ import annotations

from tests.conformance.checks import (
    Check,
    Echoed,
    at_path,
    body,
    echo,
    echoed,
    either,
    expect,
    field,
    filled_variable,
    no_variable,
    request_uri,
    status,
    variable,
)
from tests.conformance.messages import Context
from tests.conformance.rows.making import build, get, make, post
from tests.conformance.table import Row

FRONT_MAPS = dict.fromkeys(
    ("fastcgi", "scgi", "uwsgi", "flup-fastcgi", "flup-scgi"), "the front server maps field names before this wire"
)
VALUE = "abcdefgh" * 16
LONG = "0123456789abcdef" * 500


def check_server_port(seen: Echoed, context: Context) -> str:
    port = seen["environ"].get("SERVER_PORT")
    return "" if isinstance(port, str) and port.isascii() and port.isdigit() else f"SERVER_PORT is {port!r}"


def check_joined(name: str) -> Check:
    """Two lines ``bar`` and ``baz``, joined by a comma with or without whitespace (RFC 9110 5.3)."""

    def test(seen: Echoed, context: Context) -> str:
        value = seen["environ"].get(name, "")
        return expect([part.strip() for part in value.split(",")], ["bar", "baz"], name)

    return echoed(test)


def check_cookies(seen: Echoed, context: Context) -> str:
    value = seen["environ"].get("HTTP_COOKIE", "")
    return expect([part.strip() for part in value.split(";")], ["a=1", "b=2"], "HTTP_COOKIE")


def check_address(seen: Echoed, context: Context) -> str:
    address = seen["environ"].get("REMOTE_ADDR")
    return "" if isinstance(address, str) and all(c in "0123456789abcdefABCDEF.:" for c in address) else f"{address!r}"


ROWS: tuple[Row, ...] = (
    # The request line.
    make("get", "plack: GET", get("/?name=miyagawa"), status(200), echo(method="GET", query_string="name=miyagawa")),
    make("script-name", "plack: SCRIPT_NAME should not be undef; plack: validate env; B024; B086; RFC 3875 4.1.13",
         get("/foo/?dankogai=kogaidan"), at_path("/foo/"), echo(query_string="dankogai=kogaidan")),
    make("path-empty-segment-end", "B086; RFC 3875 4.1.5", get("/app/"), at_path("/app/")),
    make("server-name", "plack: validate env; RFC 3875 4.1.14", get("/"), filled_variable("SERVER_NAME")),
    make("server-port", "plack: validate env; RFC 3875 4.1.15", get("/"), echoed(check_server_port)),
    make("server-protocol", "plack: SERVER_PROTOCOL is required; RFC 3875 4.1.16", get("/"),
         variable("SERVER_PROTOCOL", "HTTP/1.1", "HTTP/1.0")),
    make("request-uri", "plack: REQUEST_URI is set; B020", get("/foo/bar%20baz%73?x=a"),
         request_uri("/foo/bar%20baz%73?x=a"), needs="octets"),
    make("prefix-alone", "B086; RFC 3875 4.1.5", get(""), at_path(""), needs="prefix"),
    make("escape", "plack: % encoding in PATH_INFO; RFC 3875 4.1.5", get("/foo/bar%2cbaz"), at_path("/foo/bar,baz")),
    make("escape-once", "plack: % double encoding in PATH_INFO; B048", get("/foo/bar%252cbaz%2520"),
         at_path("/foo/bar%2cbaz%20")),
    make("escape-octets", "plack: % encoding in PATH_INFO (outside of URI characters); B086; B107; PEP 3333 Unicode",
         get("/foo%E3%81%82/%C3%A5/%c3%a5"), at_path("/foo\xe3\x81\x82/\xc3\xa5/\xc3\xa5")),
    make("escape-not-utf-8", "B086; B107; PEP 3333 Unicode", get("/caf%E9/%C3"), at_path("/caf\xe9/\xc3")),
    make("escape-letter", "B086; RFC 3986 2.3", get("/%61pp/x"), at_path("/app/x")),
    make("escape-newline", "B023; B135", get("/a%0Ab"), either((at_path("/a\nb"),), (status(400),)), needs="octets"),
    make("plus", "B086", get("/a+b%2Bc"), at_path("/a+b+c")),
    make("path-params", "RFC 3986 3.3", get("/a;v=1/b,c=2"), at_path("/a;v=1/b,c=2")),
    make("repeated-slashes", "plack: repeated slashes; B020", get("//foo///bar/baz"), at_path("//foo///bar/baz"),
         needs="octets"),
    make("query-undecoded", "B086; RFC 3875 4.1.7", get("/q?a=%41+%2B%00&b=%E9"),
         echo(query_string="a=%41+%2B%00&b=%E9")),
    make("query-second-question-mark", "RFC 3986 3.4", get("/q?a=?b/c"), at_path("/q"), echo(query_string="a=?b/c")),
    make("query-empty", "RFC 3875 4.1.7", get("/q?"), at_path("/q"), echo(query_string="")),
    make("query-absent", "RFC 3875 4.1.7; PEP 3333 environ", get("/q"), at_path("/q"),
         either((echo(query_string=""),), (echo(query_string=None),))),
    make("query-long", "B023", get("/q?" + "Q" * 2000), at_path("/q"), echo(query_string="Q" * 2000)),
    build("methods", "RFC 3875 4.1.12", [
        (get("/", method=method), echo(method=method))
        for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND")
    ]),
    # Fields.
    make("field", "plack: handle HTTP-Header; RFC 3875 4.1.18", get("/", ("Foo", "Bar")), variable("HTTP_FOO", "Bar")),
    make("field-dashes", "RFC 3875 4.1.18", get("/", ("x-lower-case-Name", "v")),
         variable("HTTP_X_LOWER_CASE_NAME", "v")),
    make("field-host", "RFC 9110 7.2", get("/"), filled_variable("HTTP_HOST")),
    make("field-128-bytes", "plack: a big header value > 128 bytes", get("/", ("X-Foo", VALUE)),
         variable("HTTP_X_FOO", VALUE)),
    make("field-8000-bytes", "B009", get("/", ("X-Foo", LONG)), variable("HTTP_X_FOO", LONG)),
    make("field-empty", "B029", get("/", ("X-Empty", "")), variable("HTTP_X_EMPTY", "")),
    make("field-latin-1", "RFC 9110 5.5; PEP 3333 Unicode", get("/", ("X-Name", "J\xf6rg \xc3\xa5")),
         variable("HTTP_X_NAME", "J\xf6rg \xc3\xa5")),
    make("field-punctuation", "C04; RFC 9110 5.5", get("/", ("X-Shell", "() { :;}; \"a\" 'b' \\ %0d%0a $(c)")),
         variable("HTTP_X_SHELL", "() { :;}; \"a\" 'b' \\ %0d%0a $(c)")),
    make("field-eighty", "F04; U03", get("/", *((f"X-Many-{i}", str(i)) for i in range(80))),
         variable("HTTP_X_MANY_0", "0"), variable("HTTP_X_MANY_79", "79")),
    make("field-twice", "plack: multi headers (request); RFC 9110 5.3", get("/", ("Foo", "bar"), ("Foo", "baz")),
         check_joined("HTTP_FOO")),
    make("cookie", "plack: handle HTTP-Cookie; plack: Do not set $env->{COOKIE}", get("/", ("Cookie", "foo=bar")),
         variable("HTTP_COOKIE", "foo=bar"), no_variable("COOKIE")),
    make("cookie-twice", "RFC 6265 5.4; RFC 9113 8.2.3", get("/", ("Cookie", "a=1"), ("Cookie", "b=2")),
         echoed(check_cookies), needs="fields"),
    build("authorization", "plack: handle Authorization header", [
        (get("/", ("Authorization", "Basic XXXX")), variable("HTTP_AUTHORIZATION", "Basic XXXX")),
        (get("/"), no_variable("HTTP_AUTHORIZATION", "REMOTE_USER")),
    ]),
    build("fields-not-kept", "B014; F10", [
        (get("/", ("X", "LONGLONGLONG"), ("Y", "z")), variable("HTTP_X", "LONGLONGLONG")),
        (get("/", ("X", "ab")), variable("HTTP_X", "ab"), no_variable("HTTP_Y")),
        (get("/"), no_variable("HTTP_X", "HTTP_Y")),
    ]),
    make("content-type", "PEP 3333 environ; RFC 3875 4.1.3",
         post("/", b"{}", ("Content-Type", "application/json; charset=utf-8")),
         variable("CONTENT_TYPE", "application/json; charset=utf-8"), variable("CONTENT_LENGTH", "2"),
         no_variable("HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH")),
    make("content-type-absent", "RFC 3875 4.1.3", get("/"),
         either((no_variable("CONTENT_TYPE"),), (variable("CONTENT_TYPE", ""),))),
    make("underscore-alias", "B095; H14", get("/", ("X-Thing", "1.1.1.1"), ("X_Thing", "6.6.6.6")),
         either((variable("HTTP_X_THING", "1.1.1.1"),), (status(400),)), needs="direct",
         skips={wire: why for wire, why in FRONT_MAPS.items() if wire.startswith("flup")}),
    make("underscore-alias-first", "B095; H14", get("/", ("X_Thing", "6.6.6.6"), ("X-Thing", "1.1.1.1")),
         either((variable("HTTP_X_THING", "1.1.1.1"),), (status(400),)), needs="direct", skips=FRONT_MAPS),
    make("httpoxy", "H15", get("/", ("Proxy", "http://192.0.2.66/")), no_variable("HTTP_PROXY")),
    make("wsgi-key-from-field", "H14; A02", get("/", ("wsgi.url_scheme", "https"), ("REMOTE_USER", "root")),
         either((echo(scheme="http"), no_variable("REMOTE_USER"),), (status(400),)), needs="direct"),
    make("forwarded-untrusted", "B066; H16",
         get("/", ("X-Forwarded-Proto", "https"), ("X-Forwarded-Ssl", "off"), ("X-Forwarded-Host", "evil.example")),
         either((echo(scheme="http"),), (status(400),)), needs="direct"),
    # The environ.
    make("url-scheme", "plack: psgi.url_scheme; PEP 3333 environ", post("/", b""), echo(scheme="http", length=0)),
    make("wsgi-version", "PEP 3333 environ", get("/"), echo(version=[1, 0])),
    make("remote-addr", "B065; RFC 3875 4.1.8", get("/"), echoed(check_address)),
    make("lint-get", "plack: Middleware::Lint; plack: has errors; PEP 3333", get("/lint?a=1"), status(200),
         body(b"clean 0")),
    make("lint-post", "plack: Middleware::Lint; PEP 3333", post("/lint", b"name=value"), status(200), body(b"clean 10"),
         field("Content-Type", "text/plain")),
)  # fmt: skip
