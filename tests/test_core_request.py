"""Request heads that came as meta-variables: the path a front gives, whom to believe, and what is completed."""

from __future__ import annotations

import pytest

from gateways.core.errors import RemoteProtocolError
from gateways.core.mounts import Mount, MountTable
from gateways.core.request import Endpoint, VariableRequest, split_path

ENDPOINT = Endpoint("server.example", "8080")
TRUSTING = Endpoint("server.example", "8080", lambda address: address == "10.0.0.1")


def make(variables: dict[str, str], endpoint: Endpoint = ENDPOINT, whole_path: bool = True) -> VariableRequest:
    return VariableRequest(endpoint, "", variables, 0, whole_path)


NGINX = {"SERVER_SOFTWARE": "nginx/1.26.0"}
APACHE = {"SERVER_SOFTWARE": "Apache/2.4.62 (Debian)"}
LIGHTTPD = {"SERVER_SOFTWARE": "lighttpd/1.4.76"}
HAPROXY = {"SERVER_SOFTWARE": "HAProxy 2.9.6"}


@pytest.mark.parametrize(
    ("variables", "script_name", "path_info"),
    [
        ({"SCRIPT_NAME": "/", "PATH_INFO": "/x"}, "", "/x"),
        ({"SCRIPT_NAME": "/app/", "PATH_INFO": "/x"}, "/app", "/x"),
        ({"SCRIPT_NAME": "/app", "PATH_INFO": "/x"}, "/app", "/x"),
        ({"SCRIPT_NAME": "/app", "PATH_INFO": ""}, "/app", ""),
        ({"SCRIPT_NAME": "", "PATH_INFO": "//foo///bar"}, "", "//foo///bar"),
        ({"PATH_INFO": "/x"}, "", "/x"),
        ({"SCRIPT_NAME": "/a.py", "PATH_INFO": "", "SCRIPT_FILENAME": "/x/a.py/aaaa"}, "/a.py", ""),
        ({"SCRIPT_NAME": "/a/b"}, "", "/a/b"),
        ({"SCRIPT_NAME": "/a/"}, "", "/a/"),
        ({"SCRIPT_NAME": "/"}, "", "/"),
        ({**NGINX, "SCRIPT_NAME": "/a/b", "DOCUMENT_URI": "/a/b", "REQUEST_URI": "/a/b?c"}, "", "/a/b"),
        ({**NGINX, "DOCUMENT_URI": "/a b", "REQUEST_URI": "/x/../a%20b?c"}, "", "/a b"),
        ({"REQUEST_URI": "/a%20b?c=%20"}, "", "/a b"),
        ({"REQUEST_URI": "*"}, "", ""),
        ({}, "", ""),
        ({**HAPROXY, "SCRIPT_NAME": "/a"}, "", "/a"),
        ({**LIGHTTPD, "SCRIPT_NAME": "/app"}, "/app", ""),
        ({**APACHE, "SCRIPT_NAME": "/app.fcgi", "SCRIPT_FILENAME": "/srv/app.fcgi"}, "/app.fcgi", ""),
        ({**APACHE, "SCRIPT_NAME": "/a/b", "SCRIPT_FILENAME": "proxy:fcgi://127.0.0.1:9000/a/b"}, "", "/a/b"),
        ({**APACHE, "SCRIPT_NAME": "/app/b", "SCRIPT_FILENAME": "/b"}, "", "/app/b"),
        ({**APACHE, "SCRIPT_NAME": "/", "SCRIPT_FILENAME": "proxy:fcgi://localhost/"}, "", "/"),
        ({**APACHE, "SCRIPT_NAME": "/app.py", "SCRIPT_FILENAME": "proxy:fcgi://h:1/srv/x/app.py"}, "/app.py", ""),
        ({**APACHE, "SCRIPT_NAME": "/app.py"}, "/app.py", ""),
        ({**APACHE, "SCRIPT_NAME": "/a b/c", "SCRIPT_FILENAME": "proxy:fcgi://h:1/a%20b/c"}, "", "/a b/c"),
        ({**APACHE, "SCRIPT_NAME": "/gen/a b", "SCRIPT_FILENAME": "/a%20b"}, "", "/gen/a b"),
        ({**APACHE, "SCRIPT_NAME": "/s/x", "SCRIPT_FILENAME": "proxy:scgi://h:1/x"}, "", "/s/x"),
        ({**APACHE, "SCRIPT_NAME": "/s/x", "SCRIPT_FILENAME": "x"}, "/s/x", ""),
    ],
    ids=[
        "B024-root", "B024-slash", "split", "empty", "B020-slashes", "no-script", "B023-no-arithmetic", "whole",
        "whole-slash", "whole-root", "nginx-fastcgi", "nginx-scgi", "uri-only", "asterisk", "nothing", "haproxy",
        "lighttpd", "apache-fcgid", "apache-proxypass", "apache-proxypass-generic", "apache-root", "apache-sethandler",
        "apache-unknown", "apache-encoded", "apache-generic-encoded", "apache-scgi", "apache-strange",
    ],
)  # fmt: skip
def test_the_path_that_a_front_gives(variables: dict[str, str], script_name: str, path_info: str) -> None:
    request = make(variables)
    assert (request.script_name, request.path_info, request.path) == (script_name, path_info, path_info)
    assert request.metavariables["SCRIPT_NAME"] == script_name
    assert request.metavariables["PATH_INFO"] == path_info


def test_a_cgi_program_without_path_info_has_none() -> None:
    request = make({"SCRIPT_NAME": "/cgi-bin/app.py", "REQUEST_URI": "/cgi-bin/app.py"}, whole_path=False)
    assert (request.script_name, request.path_info) == ("/cgi-bin/app.py", "")


def test_a_mount_moves_its_prefix() -> None:
    request = make({"SCRIPT_NAME": "/app/x/y", "SERVER_SOFTWARE": "nginx/1"})
    mount = Mount("/app", None)  # type: ignore[arg-type]
    assert MountTable([mount]).take(request) is mount
    assert (request.script_name, request.path_info) == ("/app", "/x/y")


def test_split_path_changes_nothing() -> None:
    variables = {"SCRIPT_NAME": "/a"}
    assert split_path(variables) == ("", "/a")
    assert variables == {"SCRIPT_NAME": "/a"}


@pytest.mark.parametrize("path", ["x", "*", "http://h/x", "\n/x"])
def test_h24_a_path_without_a_slash_is_refused(path: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        make({"PATH_INFO": path})
    assert caught.value.status == 400


@pytest.mark.parametrize("target", ["/%00", "/a%00b?c", "/a/..%00/b"])
def test_h24_a_path_that_decodes_to_nul_is_refused(target: str) -> None:
    """Found by fuzzing: a front that sends no path leaves its decoding to us."""
    with pytest.raises(RemoteProtocolError) as caught:
        make({"REQUEST_URI": target})
    assert (caught.value.status, caught.value.section) == (400, "RFC 3986 7.3")
    assert make({"REQUEST_URI": f"/x?{target}"}).path == "/x"


@pytest.mark.parametrize("method", ["", "GET\r\nX", "G T", "GET\0", "\xe9", "a/b"])
def test_a_method_that_is_no_token_is_refused(method: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        make({"REQUEST_METHOD": method})
    assert caught.value.status == 400


@pytest.mark.parametrize("method", ["GET", "M-SEARCH", "VERSION-CONTROL", "get", "x1"])
def test_a_method_is_any_token(method: str) -> None:
    assert make({"REQUEST_METHOD": method}).method == method


FORWARDED = {"HTTP_X_FORWARDED_FOR": "6.6.6.6", "HTTP_X_FORWARDED_PROTO": "https", "HTTP_FORWARDED": "for=6.6.6.6"}


@pytest.mark.parametrize(
    ("endpoint", "address", "believed"),
    [(ENDPOINT, "10.0.0.1", False), (TRUSTING, "10.0.0.1", True), (TRUSTING, "1.2.3.4", False), (TRUSTING, "", False)],
    ids=["nobody-is-trusted", "trusted", "another", "no-address"],
)
def test_h16_what_the_front_relays_of_its_peer(endpoint: Endpoint, address: str, believed: bool) -> None:
    request = make({"PATH_INFO": "/", "REMOTE_ADDR": address, **FORWARDED}, endpoint)
    assert [name in request.metavariables for name in FORWARDED] == [believed] * 3
    assert request.scheme == ("https" if believed else "http")
    assert ("X-Forwarded-For" in request.fields) == believed
    assert request.remote_address == address


def test_h16_forwarded_fields_that_disagree_are_refused() -> None:
    variables = {**FORWARDED, "HTTP_X_FORWARDED_SSL": "off", "REMOTE_ADDR": "10.0.0.1"}
    with pytest.raises(RemoteProtocolError):
        _ = make(variables, TRUSTING).metavariables


def test_what_the_front_itself_says_is_believed() -> None:
    request = make({"PATH_INFO": "/", "REMOTE_ADDR": "1.2.3.4", "REMOTE_USER": "joe", "HTTPS": "on"})
    assert request.scheme == "https"
    assert request.metavariables["REMOTE_USER"] == "joe"
    assert request.remote_address == "1.2.3.4"


def test_rfc_3875_variables_are_completed() -> None:
    assert make({"PATH_INFO": "/x"}).metavariables == {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "PATH_INFO": "/x",
        "QUERY_STRING": "",
        "REMOTE_ADDR": "",
        "REQUEST_METHOD": "GET",
        "REQUEST_URI": "/x",
        "SCRIPT_NAME": "",
        "SERVER_NAME": "server.example",
        "SERVER_PORT": "8080",
        "SERVER_PROTOCOL": "HTTP/1.0",
        "SERVER_SOFTWARE": "gateways",
    }


def test_fields_are_those_that_the_variables_stand_for() -> None:
    request = make({"PATH_INFO": "/", "HTTP_USER_AGENT": "x", "CONTENT_TYPE": "text/plain", "HTTP_PROXY": "evil"})
    assert list(request.fields) == [("User-Agent", "x"), ("Content-Type", "text/plain")]


def test_content_fields_that_a_front_passes_twice_are_variables_only() -> None:
    front = {"CONTENT_TYPE": "text/plain", "HTTP_CONTENT_TYPE": "text/plain", "HTTP_CONTENT_LENGTH": "3"}
    request = make({"PATH_INFO": "/", "CONTENT_LENGTH": "3", **front})
    assert not {"HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"} & set(request.metavariables)
    assert request.fields.get_all("Content-Type") == ["text/plain"]
    assert request.fields.get_all("Content-Length") == ["3"]
