"""Front servers' configurations as text: the shipped files are fresh, the servers accept them, mistakes are told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateways.config.reader import read_settings
from gateways.core.errors import ConfigurationError
from gateways.fronts.lines import block, explain, parse_reasons, remark
from gateways.fronts.table import FRONTS, Wishes, format_front
from tests.conftest import find_program
from tests.servers import DEADLINE, ROOT

HELLO = "conf/hello.toml"
SHIPPED = sorted((ROOT / "conf" / "fronts").glob("*.conf"))
APACHE_MODULES = Path("/usr/lib/apache2/modules")


def test_the_shipped_files_are_fresh(tmp_path: Path) -> None:
    subprocess.run(
        [ROOT / "conf" / "fronts" / "generate", tmp_path], check=True, timeout=DEADLINE * 3,
        env={**os.environ, "PYTHON": sys.executable},
    )  # fmt: skip
    written = {path.name: path.read_text() for path in tmp_path.glob("*.conf")}
    assert {path.name: path.read_text() for path in SHIPPED} == written, "run: make fronts"
    pairs = {f"{front.name}-{wire}.conf" for front in FRONTS.values() for wire in front.wires}
    pairs |= {f"{front.name}-spawns-{way}.conf" for front in FRONTS.values() for way in front.spawns}
    assert set(written) == pairs


def check(file: Path, folder: Path) -> list[str]:
    """The command that checks a shipped file the way it is used: as a part of a server's configuration."""
    name = file.name.partition("-")[0]
    part = folder / "part.conf"
    part.write_text(file.read_text().replace("/usr/local/bin/gateways", "/bin/true"))
    whole = folder / "whole.conf"
    whole.write_text(format_rest(name, part, folder))
    program = find_program(name)
    assert program is not None
    arguments = {
        "apache": ["-t", "-d", str(folder), "-f", str(whole)],
        "nginx": ["-t", "-e", str(folder / "error.log"), "-c", str(whole)],
        "lighttpd": ["-tt", "-f", str(whole)],
        "haproxy": ["-c", "-f", str(whole), "-f", str(part)],
        "caddy": ["validate", "--adapter", "caddyfile", "--config", str(part)],
    }
    return [program, *arguments[name]]


def format_rest(name: str, part: Path, folder: Path) -> str:
    """The rest of a server's configuration, which includes ``part``."""
    if name == "nginx":
        return f"pid {folder}/pid;\nevents {{}}\nhttp {{ include {part}; }}\n"
    if name == "lighttpd":
        return f'server.modules = ( "mod_access" )\nserver.document-root = "{folder}"\ninclude "{part}"\n'
    if name == "haproxy":
        return "global\n    tune.bufsize 65536\n"
    if name == "caddy":
        return ""
    names = next(line for line in part.read_text().splitlines() if "a2enmod" in line).partition("a2enmod ")[2]
    names += " " + part.read_text().splitlines()[3].removeprefix("# ")
    modules = ["mpm_event", "authz_core", *names.partition(" &&")[0].split()]
    loads = "".join(f"LoadModule {module}_module {APACHE_MODULES}/mod_{module}.so\n" for module in modules)
    return f'{loads}ServerName localhost\nErrorLog "{folder}/error.log"\nInclude "{part}"\n'


@pytest.mark.parametrize(
    "file",
    [pytest.param(path, marks=pytest.mark.front(path.name.partition("-")[0]), id=path.stem) for path in SHIPPED],
)
def test_the_servers_accept_the_shipped_files(file: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        check(file, tmp_path), capture_output=True, text=True, timeout=DEADLINE, check=False,
        env={**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warn" not in (done.stdout + done.stderr).lower(), done.stdout + done.stderr


WRONG = [
    (["nginx", "--wire", "ajp"], "nginx cannot speak ajp: it speaks http, fastcgi, scgi, uwsgi"),
    (["caddy", "--wire", "uwsgi"], "caddy cannot speak uwsgi: it speaks http, fastcgi"),
    (["haproxy", "--spawn", "cgi"], "haproxy cannot spawn cgi: it starts no programs"),
    (["nginx", "--listen", "80000"], '--listen must be an address with a port from 0 to 65535, not "80000"'),
    (["nginx", "--listen", "unix:/x"], '--listen must be HOST:PORT with a port from 1 to 65535, not "unix:/x"'),
    (["nginx", "--listen", "0"], '--listen must be HOST:PORT with a port from 1 to 65535, not "0"'),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_what_a_front_cannot_do_is_one_sentence_and_status_2(words: list[str], sentence: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateways", "conf", *words, "--config", HELLO], cwd=ROOT, capture_output=True, text=True,
        timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"gateways: {sentence}\n")


def conf(folder: Path, pool: str, name: str = "nginx", **wishes: object) -> str:
    """The configuration of a front for a pool of the hello application."""
    file = folder / "gateways.toml"
    file.write_text(f'[pool.p]\n{pool}\n[[pool.p.Mount]]\nPath = "/app"\nTarget = "{ROOT}/apps/hello.py:application"\n')
    return format_front(name, read_settings(str(file)), Wishes(**wishes))  # type: ignore[arg-type]


def test_a_pool_whose_wires_no_front_speaks(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match='pool "p" listens with ajp: haproxy needs http or fastcgi'):
        conf(tmp_path, 'Listen = "ajp://127.0.0.1:8009"', "haproxy")


def test_a_port_that_changes_with_every_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is a new port with every start: nginx needs a fixed one"):
        conf(tmp_path, 'Listen = "127.0.0.1:0"')


def test_a_callable_that_is_no_program_cannot_be_a_cgi_script(tmp_path: Path) -> None:
    target = tmp_path / "app.py"
    target.write_text("def application(environ, start_response): ...\n")
    file = tmp_path / "gateways.toml"
    file.write_text('[pool.p]\n[[pool.p.Mount]]\nTarget = "app.py"\n')
    with pytest.raises(ConfigurationError, match="and it is no program: let its first line be"):
        format_front("apache", read_settings(str(file)), Wishes(spawn="cgi"))


@pytest.mark.parametrize("defined", ["admin = application = print", "admin = print"])
@pytest.mark.parametrize("spawn", ["fastcgi", "cgi"])
@pytest.mark.parametrize("front", ["apache", "lighttpd"])
def test_a_callable_that_a_path_does_not_choose_cannot_be_spawned(
    tmp_path: Path, front: str, spawn: str, defined: str
) -> None:
    target = tmp_path / "app.py"
    target.write_text(f"#!/usr/bin/env -S gateways run\n{defined}\n")
    target.chmod(0o755)
    file = tmp_path / "gateways.toml"
    file.write_text('[pool.p]\n[[pool.p.Mount]]\nTarget = "app.py:admin"\n')
    with pytest.raises(ConfigurationError, match="does not choose admin: let the file call it application"):
        format_front(front, read_settings(str(file)), Wishes(spawn=spawn))


@pytest.mark.parametrize("name", ["nginx", "apache", "lighttpd", "haproxy", "caddy"])
@pytest.mark.parametrize("path", ["/run/a b", '/run/a"b', "/run/a;b"])
def test_a_path_that_no_configuration_can_hold(tmp_path: Path, name: str, path: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} cannot be told the path"):
        conf(tmp_path, f"Listen = 'unix:{path}'", name)


def test_lighttpd_cannot_tell_an_ajp_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="lighttpd cannot send the Secret of pool"):
        conf(tmp_path, 'Listen = "ajp://127.0.0.1:1"\nSecret = "0123456789abcdef"', "lighttpd")


@pytest.mark.parametrize(
    ("pool", "name", "line"),
    [
        ('Listen = "0.0.0.0:81"', "nginx", "proxy_pass http://127.0.0.1:81;"),
        ('Listen = "[::]:81"', "nginx", "proxy_pass http://[::1]:81;"),
        ('Listen = "unix:/run/a"', "nginx", "proxy_pass http://unix:/run/a:;"),
        ('Listen = "fastcgi://unix:/run/a"', "apache", 'ProxyPass "unix:/run/a|fcgi://gateways-p/app"'),
        ('Listen = ["ajp://127.0.0.1:8009", "http://127.0.0.1:81"]', "nginx", "proxy_pass http://127.0.0.1:81;"),
        ('Listen = "ajp://127.0.0.1:1"\nSecret = "0123456789abcdef"', "apache", "secret=0123456789abcdef"),
        ('Listen = "ajp://127.0.0.1:1"\nPacketSize = 65536', "apache", "ProxyIOBufferSize 65536"),
        ("LimitRequestBody = 0", "nginx", "client_max_body_size 0;"),
        ("LimitRequestBody = 1000", "lighttpd", "server.max-request-size = 1"),
        ("", "nginx", 'location ~ "^/app(/|$)" {'),
        ("", "haproxy", "use_backend gateways_p if { path,url_dec -m reg '^/app(/|$)' }"),
        ("", "caddy", "@mount0 path_regexp ^/app(/|$)"),
        ("", "lighttpd", '$HTTP["url"] =^ "/app/" {'),
        ("", "apache", '<Location "/app">'),
        ("", "nginx", "TrustedProxies does not name this server"),
    ],
)  # fmt: skip
def test_lines(tmp_path: Path, pool: str, name: str, line: str) -> None:
    assert line in conf(tmp_path, pool, name)


def test_reuse_ends_before_the_pool_ends_it(tmp_path: Path) -> None:
    assert "keepalive_timeout 18s;" in conf(tmp_path, "KeepAliveTimeout = 20", reuse=True)
    assert " ttl=18" in conf(tmp_path, "KeepAliveTimeout = 20", "apache", reuse=True)
    assert "keepalive" not in conf(tmp_path, "KeepAliveTimeout = 20")


def test_reasons_stand_above_the_first_line_they_are_about() -> None:
    reasons = parse_reasons("b\n    because\n    of it\nc\n    also\n")
    assert reasons == {"b": "because of it", "c": "also"}
    assert explain(block("a {", ["b c", "b"]), reasons) == ["a {", "    # because of it also", "    b c", "    b", "}"]
    assert remark("x " * 60) == ["# " + "x " * 48 + "x", "# " + "x " * 10 + "x"]
