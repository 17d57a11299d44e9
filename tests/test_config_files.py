"""Configuration files: what a good one becomes, and for every bad one the line and the words of its mistakes."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from gateways.config.addresses import ListenAddress, PeerRule
from gateways.config.directives import BY_NAME, DIRECTIVES, MODELS, Scope
from gateways.config.reader import read_configuration, read_settings
from gateways.config.settings import MountSettings, PoolSettings, ServerSettings
from gateways.config.targets import Target
from gateways.core.errors import ConfigurationError
from gateways.core.limits import TimeLimits, WireLimits
from gateways.process.limits import PoolLimits
from gateways.process.listeners import DEFAULT_BACKLOG, DEFAULT_MODE, parse_address
from gateways.wire.ajp import MIN_PACKET

ROOT = Path(__file__).resolve().parent.parent

MOUNT = '[[pool.a.Mount]]\nTarget = "app.py:application"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an application, a script, a program and a folder of programs."""
    (tmp_path / "app.py").write_text("def application(environ, start_response): ...\n")
    (tmp_path / "script.py").write_text("print('Content-Type: text/plain')\n")
    (tmp_path / "broken.py").write_text("def application(:\n")
    (tmp_path / "prog").write_text("#!/bin/sh\n")
    (tmp_path / "prog").chmod(0o755)
    (tmp_path / "notes.txt").write_text("notes\n")
    (tmp_path / "cgi-bin").mkdir()
    return tmp_path


def read(folder: Path, text: str | bytes) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    path = folder / "gateways.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_configuration(str(path))


def pool(line: str, rest: str = "") -> str:
    """A configuration whose pool has one more line, its third."""
    return f"[pool.a]\n# the third line:\n{line}\n{MOUNT}{rest}"


def mount(*lines: str) -> str:
    """A configuration whose only mount has these lines, from the third on."""
    return "[pool.a]\n[[pool.a.Mount]]\n" + "\n".join(lines) + "\n"


SECRET = "correct-horse-battery"

BAD: list[tuple[str, str | bytes, int, str]] = [
    # The file itself.
    ("not-toml", "[pool.a]\nListen == 3\n", 2, "not valid TOML: Invalid value"),
    ("not-toml-end", '[pool.a]\nListen = """\n\n', 2, "not valid TOML"),
    ("key-twice", "[pool.a]\nWire = 'http'\nWire = 'http'\n", 3, "not valid TOML: Cannot overwrite a value"),
    ("too-many-digits", f"[pool.a]\nMaxServers = {'1' * 5000}\n", 2, "not valid TOML: Exceeds the limit"),
    ("not-utf-8", b"[pool.a]\n# ok\nListen = '\xff'\n", 3, "not UTF-8"),
    ("too-long", "#" * (1 << 20) + "\n", 0, "longer than 1048576 bytes"),
    ("empty", "", 1, "there is no pool: add a table [pool.NAME] with at least one [[pool.NAME.Mount]]"),
    ("pool-is-a-word", "pool = 'a'\n", 1, "there is no pool"),
    ("pool-without-name", "[pool]\nListen = '127.0.0.1:1'\n", 1, "there is no pool"),
    ("no-mount", "LogLevel = 'info'\n[pool.a]\n", 2, 'pool "a" serves nothing: add a table [[pool.a.Mount]]'),
    ("mount-not-in-array", "[pool.a]\n[pool.a.Mount]\nPath = '/'\n", 2, 'pool "a" serves nothing'),
    ("table", f"[server]\n[pool.a]\n{MOUNT}", 1, 'there is no table "server"; a pool is written [pool.NAME]'),
    ("table-near", f"[pol.b]\n[pool.a]\n{MOUNT}", 1, 'there is no table "pol"; did you mean pool?'),
    ("pool-name", f"[pool.a]\n{MOUNT}[pool.'b c']\nListen='1'\n[[pool.'b c'.Mount]]\nTarget='app.py'\n", 4,
     "cannot name a pool"),
    # Names.
    ("unknown", pool("StartServer = 5"), 3, 'there is no directive "StartServer"; did you mean StartServers?'),
    ("case", pool("startservers = 5"), 3, 'there is no directive "startservers"; did you mean StartServers?'),
    ("code-name", pool("max_servers = 5"), 3, "did you mean MaxServers?"),
    ("unknown-far", pool("Zzz = 5"), 3, 'there is no directive "Zzz"'),
    ("unknown-at-top", f"Zzz = 1\n[pool.a]\n{MOUNT}", 1, 'there is no directive "Zzz"'),
    ("unknown-in-mount", mount("Target = 'app.py'", "Modell = 'cgi'"), 4, "did you mean Model?"),
    ("quoted-key", pool('"Start Servers" = 5'), 3, 'there is no directive "Start Servers"; did you mean StartServers?'),
    # Places.
    ("pool-directive-at-top", f"StartServers = 5\n[pool.a]\n{MOUNT}", 1,
     "StartServers stands at the top of the file, where it means nothing: put it in a pool ([pool.NAME])"),
    ("mount-directive-in-pool", pool("Path = '/x'"), 3, "put it in a mount ([[pool.NAME.Mount]])"),
    ("server-directive-in-pool", pool("ErrorLog = 'x'"), 3, "put it at the top of the file"),
    ("pool-directive-in-mount", mount("Target = 'app.py'", "Listen = '127.0.0.1:1'"), 4, "put it in a pool"),
    # Values.
    ("text-for-number", pool('StartServers = "5"'), 3, 'StartServers must be a whole number, not "5"'),
    ("truth-for-number", pool("StartServers = true"), 3, "StartServers must be a whole number, not true"),
    ("decimal-for-whole", pool("StartServers = 5.5"), 3, "StartServers must be a whole number, not 5.5"),
    ("zero-workers", pool("StartServers = 0"), 3, "StartServers must be 1 to 10000, not 0"),
    ("too-many-workers", pool("MaxServers = 10001"), 3, "MaxServers must be 1 to 10000, not 10001"),
    ("negative", pool("LimitRequestBody = -1"), 3, "LimitRequestBody must be at least 0, not -1"),
    ("negative-time", pool("SendTimeout = -0.5"), 3, "SendTimeout must be 0 to 86400, not -0.5"),
    ("not-a-number", pool("SendTimeout = nan"), 3, "SendTimeout must be a number"),
    ("infinite", pool("SendTimeout = inf"), 3, "SendTimeout must be 0 to 86400"),
    ("fraction", pool("MaxRequestsJitter = 10"), 3, "MaxRequestsJitter must be 0 to 1, not 10"),
    ("choice", mount("Target = 'app.py'", "Model = 'registy'"), 4, "did you mean registry?"),
    ("choice-far", pool("Wire = 'gopher'"), 3, 'Wire must be one of http, fastcgi, scgi, ajp, uwsgi; not "gopher"'),
    ("number-for-text", mount("Target = 5"), 3, "Target must be text in quotes, not 5"),
    ("empty-text", mount("Target = ''"), 3, "Target must be text that is not empty"),
    ("control-character", mount(r"Target = 'app.py'", r'Title = "a\u0007b"'), 4, "no control characters"),
    ("truth", pool("StatScripts = 'on'"), 3, 'StatScripts must be true or false, not "on"'),
    ("table-for-number", pool("StartServers = {a = 1}"), 3, "StartServers must be a whole number"),
    ("port", pool("Listen = '127.0.0.1:65536'"), 3, "a port from 0 to 65535"),
    ("no-port", pool("Listen = 'localhost'"), 3, "Listen must be HOST:PORT, [IPV6]:PORT or unix:PATH"),
    ("ipv4", pool("Listen = '127.0.0.256:80'"), 3, "valid IPv4"),
    ("ipv6", pool("Listen = '[::g]:80'"), 3, "valid IPv6"),
    ("bare-ipv6", pool("Listen = '::1:80'"), 3, "Listen must be HOST:PORT"),
    ("unix-empty", pool("Listen = 'unix:'"), 3, "a path of 1 to 107 bytes"),
    ("unix-long", pool(f"Listen = 'unix:/{'a' * 107}'"), 3, "a path of 1 to 107 bytes"),
    ("scheme", pool("Listen = 'gopher://127.0.0.1:1'"), 3,
     'Listen must be WIRE://ADDRESS with one of the wires http, fastcgi, scgi, ajp, uwsgi, not "gopher://127.0.0.1:1"'),
    ("scheme-case", pool("Listen = 'HTTP://127.0.0.1:1'"), 3, "with one of the wires"),
    ("scheme-alone", pool("Listen = 'http://'"), 3, "Listen must be HOST:PORT"),
    ("scheme-twice", pool("Listen = 'http://scgi://127.0.0.1:1'"), 3, "Listen must be HOST:PORT"),
    ("scheme-path", pool("Listen = 'http://127.0.0.1:1/'"), 3, "Listen must be HOST:PORT"),
    ("two-wires-at-one-place", pool("Listen = ['127.0.0.1:1', 'scgi://127.0.0.1:1']"), 3,
     "Listen names 127.0.0.1:1 twice: one address speaks one wire"),
    ("same-address-twice", pool("Listen = ['127.0.0.1:1', '127.0.0.1:1']"), 3, "names nothing twice"),
    ("no-address", pool("Listen = []"), 3, "at least one"),
    # Who may reach a pool (security rows F01, S06, A01, U04).
    *(
        (f"F01-S06-U04-wildcard-{wire}-{host}", pool(f"Listen = '{wire}://{host}:9000'"), 3,
         f"{wire}://{host}:9000 would be open to every interface")
        for wire in ("fastcgi", "scgi", "ajp", "uwsgi") for host in ("0.0.0.0", "[::]")
    ),
    ("F01-wildcard-by-wire", pool("Wire = 'scgi'\nListen = ['127.0.0.1:1', '0.0.0.0:2']"), 4,
     "scgi://0.0.0.0:2 would be"),
    ("F01-wildcard-mapped", pool("Listen = 'scgi://[::ffff:0.0.0.0]:1'"), 3, "would be open to every interface"),
    ("F01-wildcard-zone", pool("Listen = 'scgi://[::%1]:1'"), 3, "would be open to every interface"),
    ("A01-no-secret", pool("Listen = 'ajp://192.0.2.1:8009'"), 3,
     "ajp://192.0.2.1:8009 can be reached from other machines: ajp needs a Secret there"),
    ("A01-no-secret-ipv6", pool("Listen = 'ajp://[2001:db8::1]:8009'"), 3, "ajp needs a Secret there"),
    ("A01-no-secret-wildcard", pool("Listen = 'ajp://0.0.0.0:8009'\nAllowWildcard = true"), 3, "ajp needs a Secret"),
    ("A01-secret-wildcard", pool(f"Listen = 'ajp://0.0.0.0:8009'\nSecret = '{SECRET}'"), 3, "open to every interface"),
    ("secret-short", pool("Wire = 'ajp'\nSecret = '0123456789abcde'"), 4,
     "Secret must be 16 to 64 ASCII characters without spaces, or file:PATH"),
    ("secret-long", pool(f"Wire = 'ajp'\nSecret = '{'x' * 65}'"), 4, "Secret must be 16 to 64"),
    ("secret-space", pool("Wire = 'ajp'\nSecret = '01234567 89abcdef'"), 4, "Secret must be 16 to 64"),
    ("secret-number", pool("Wire = 'ajp'\nSecret = 1234567890123456"), 4, "Secret must be 16 to 64"),
    ("secret-no-path", pool("Wire = 'ajp'\nSecret = 'file:'"), 4, "Secret must be 16 to 64"),
    ("secret-no-file", pool("Wire = 'ajp'\nSecret = 'file:none'"), 4, "none: No such file or directory"),
    ("secret-in-file-short", pool("Wire = 'ajp'\nSecret = 'file:notes.txt'"), 4,
     "notes.txt: its first line must be 16 to 64 ASCII characters without spaces"),
    ("secret-for-others", pool(f"Wire = 'scgi'\nSecret = '{SECRET}'"), 4,
     "Secret protects ajp only, and no address of the pool speaks it"),
    ("packet-small", pool("PacketSize = 8191"), 3, "PacketSize must be 8192 to 65536, not 8191"),
    ("packet-large", pool("PacketSize = 65537"), 3, "PacketSize must be 8192 to 65536, not 65537"),
    ("attributes", pool("AllowedAttributes = '('"), 3, "AllowedAttributes must be a regular expression"),
    ("B044-head-negative", pool("LimitRequestHead = -1"), 3, "LimitRequestHead must be 0 to"),
    ("no-peers", pool("AllowedPeers = []"), 3, "leave it out to allow everybody"),
    ("peers-name", pool("AllowedPeers = 'localhost'"), 3, 'addresses, networks or "unix", not "localhost"'),
    ("peers-without-unix", pool("Listen = 'unix:s'\nAllowedPeers = '127.0.0.1'"), 4, 'add "unix", or listen on a port'),
    ("peers-only-unix", pool("AllowedPeers = 'unix'"), 3, "lets nobody use http://127.0.0.1:8000: add addresses"),
    ("mode-number", pool("ListenMode = 660"), 3, 'three octal digits in quotes, such as "0660", not 660'),
    ("mode-setuid", pool("ListenMode = '4660'"), 3, "three octal digits"),
    ("mode-digit", pool("ListenMode = '0680'"), 3, "three octal digits"),
    ("owner", pool("ListenOwner = 'no-such-user'"), 3,
     'ListenOwner must be a user of this machine, not "no-such-user"'),
    ("group", pool("ListenGroup = 'no-such-group'"), 3, "ListenGroup must be a group of this machine"),
    ("network", pool("TrustedProxies = ['10.0.0.1/8']"), 3, "host bits are set"),
    ("no-network", pool("TrustedProxies = 'all'"), 3, 'addresses, networks or "unix", not "all"'),
    ("server-name", pool("ServerName = 'a:80'"), 3, "a host name without port"),
    ("python-path", pool("PythonPath = 'missing'"), 3, "PythonPath names a folder that does not exist"),
    ("log-folder", f"ErrorLog = 'missing/error.log'\n[pool.a]\n{MOUNT}", 1, "a folder that does not exist"),
    ("path-without-slash", mount("Target = 'app.py'", "Path = 'x'"), 4, "Path must be a plain URL path"),
    ("path-dots", mount("Target = 'app.py'", "Path = '/x/../y'"), 4, "Path must be a URL path without . and .."),
    ("path-encoded", mount("Target = 'app.py'", "Path = '/%61'"), 4, "Path must be a plain URL path"),
    ("path-slashes", mount("Target = 'app.py'", "Path = '/a//b'"), 4, "Path must be a plain URL path"),
    ("page", mount("Target = 'app.py'", "Pages = ['env']"), 4, "starts with a slash"),
    # Variables of a mount (security row C03).
    ("environment-text", pool("Environment = 'A=b'"), 3, 'Environment must be a table such as { NAME = "value" }'),
    ("environment-list", pool("Environment = ['A']"), 3, "Environment must be a table such as"),
    ("environment-name", pool("Environment = { 'A-B' = 'c' }"), 3, 'named with letters, digits and _, not "A-B"'),
    ("environment-empty-name", pool("Environment = ['=b']"), 3, "named with letters, digits and _"),
    ("environment-number", pool("Environment = { A = 1 }"), 3, "text in quotes for each variable"),
    ("environment-nul", pool(r'Environment = { A = "b\u0000" }'), 3, "text in quotes for each variable"),
    ("environment-twice", pool("Environment = ['A=b', 'A=c']"), 3, "names no variable twice"),
    *(
        (f"C03-{name}", mount("Target = 'app.py'", f"Environment = {{ {name} = 'x' }}"), 4, f"free of {name}: ")
        for name in ("REMOTE_USER", "PATH_INFO", "HTTP_HOST", "HTTP_PROXY", "http_proxy", "Https", "Script_Name",
                     "REDIRECT_STATUS", "GATEWAYS_MODE", "CONTENT_LENGTH", "SCRIPT_FILENAME")
    ),
    # Values that contradict each other: the later line is named.
    ("spares", pool("MaxSpareServers = 3\nMinSpareServers = 4"), 4,
     "MinSpareServers (4) is more than MaxSpareServers (3)"),
    ("start", pool("StartServers = 9\nMaxServers = 8"), 4, "StartServers (9) is more than MaxServers (8)"),
    ("spare-and-most", pool("MinSpareServers = 9\nMaxServers = 8"), 4,
     "MinSpareServers (9) is more than MaxServers (8)"),
    ("paths", mount("Target = 'app.py'", "Path = '/x/'", "[[pool.a.Mount]]", "Target = 'app.py'", "Path = '/x'"), 7,
     'two mounts have the Path "/x/" (the other is on line 4)'),
    ("default-paths", mount("Target = 'app.py'", "[[pool.a.Mount]]", "Target = 'app.py'"), 4, 'the Path "/"'),
    ("addresses", f"[pool.a]\n{MOUNT}[pool.b]\nListen = '127.0.0.1:8000'\n[[pool.b.Mount]]\nTarget = 'app.py'\n", 5,
     'pools "a" and "b" both listen on 127.0.0.1:8000'),
    # Targets.
    ("no-target", mount("Path = '/x/'"), 2, "a mount needs a Target"),
    ("missing-file", mount("Target = 'missing.py'"), 3, "there is no file "),
    ("missing-module", mount("Target = 'package.module'"), 3, "package.module:application"),
    ("no-name", mount("Target = 'app.py:'"), 3, "must be a Python name"),
    ("bad-name", mount("Target = 'app.py:a b'"), 3, "must be a Python name"),
    ("name-of-program", mount("Target = './prog:main'"), 3, "not a Python file: the name main means nothing"),
    ("bad-module", mount("Target = 'a-b:c'"), 3, "neither a Python file nor a module name"),
    ("not-executable", mount("Target = 'notes.txt'"), 3, "chmod +x"),
    ("cgi-not-executable", mount("Target = 'script.py'", "Model = 'cgi'"), 3, "chmod +x"),
    ("name-for-script", mount("Target = 'app.py:application'", "Model = 'registry'"), 3,
     "the name application means nothing"),
    ("module-for-script", mount("Target = 'app:application'", "Model = 'perlrun'"), 3,
     "the name application means nothing"),
    ("program-for-registry", mount("Target = 'prog'", "Model = 'registry'"), 3, "use model cgi"),
    ("program-for-wsgi", mount("Target = 'prog'", "Model = 'wsgi'"), 3, "calls a Python function"),
    ("no-callable", mount("Target = 'script.py'", "Model = 'wsgi'"), 3, "defines no application or app"),
    ("no-handler", mount("Target = 'app.py'", "Model = 'handler'"), 3, "defines no handler"),
    ("broken-python", mount("Target = 'broken.py'"), 3, "broken.py is not valid Python: line 1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "words"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_mistake_is_named_with_its_line(folder: Path, text: str | bytes, line: int, words: str) -> None:
    settings, mistakes = read(folder, text)
    assert settings is None
    assert len(mistakes) == 1, [str(mistake) for mistake in mistakes]
    assert words in mistakes[0].message
    assert (mistakes[0].file, mistakes[0].line) == (str(folder / "gateways.toml"), line)
    assert str(mistakes[0]).startswith(f"{folder}/gateways.toml:{line}: " if line else f"{folder}/gateways.toml: ")
    assert "\n" not in str(mistakes[0])


def test_all_mistakes_are_named_in_the_order_of_their_lines(folder: Path) -> None:
    text = (
        pool("StartServers = 'x'", "Model = 'c'\n[[pool.a.Mount]]\nPath = 'y'\n") + "[pool.b]\nWire = 3\nListen = '1'\n"
    )
    _, mistakes = read(folder, text)
    assert [mistake.line for mistake in mistakes] == [3, 6, 7, 8, 9, 10]


def test_a_value_that_was_refused_contradicts_nothing(folder: Path) -> None:
    _, mistakes = read(folder, pool("MinSpareServers = 'many'\nMaxSpareServers = 1"))
    assert [mistake.line for mistake in mistakes] == [3]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    settings, mistakes = read_configuration(str(tmp_path / "none.toml"))
    assert settings is None
    assert str(mistakes[0]) == f"{tmp_path}/none.toml: the configuration cannot be read: No such file or directory"


def test_read_settings_raises_the_first_mistake(folder: Path) -> None:
    read(folder, "x = 1\n")
    with pytest.raises(ConfigurationError, match="there is no directive"):
        read_settings(str(folder / "gateways.toml"))


def test_everything_that_is_not_written_has_its_default(folder: Path) -> None:
    settings, mistakes = read(folder, f"[pool.a]\n{MOUNT}")
    assert mistakes == []
    assert settings is not None
    assert (settings.error_log, settings.log_level, settings.file) == ("", "info", str(folder / "gateways.toml"))
    (only,) = settings.pools
    for directive in DIRECTIVES:
        if directive.scope is Scope.POOL and directive.name not in ("PythonPath", "Listen"):
            assert getattr(only, directive.attribute) == directive.default, directive.name
    assert only.python_path == (str(folder),)
    assert only.listen == (ListenAddress("127.0.0.1:8000", "http"),)
    assert only.mounts == (
        MountSettings(
            path="/", target=Target("callable_file", str(folder / "app.py"), "application"), model="wsgi", title="",
            namespace="fresh", stat_scripts=True, stdio="object", directory_index=(),
            pass_authorization=False, script_time_limit=60.0,
            pages=("/",), environment=(),
        ),
    )  # fmt: skip


def test_everything_that_is_written_arrives(folder: Path) -> None:
    (folder / "lib").mkdir()
    (folder / "secret").write_text(f"{SECRET}\r\nthe first line counts\n")
    text = f"""
ErrorLog = "error.log"
LogLevel = "debug"
[pool.a]
Listen = ["[::1]:8001", "unix:run.sock", "http://0.0.0.0:0", "ajp://8002"]
Wire = "scgi"
StartServers = 2
MinSpareServers = 1
MaxSpareServers = 3
MaxServers = 4
MaxRequestsPerChild = 50
MaxRequestsJitter = 0
GracefulTimeout = 2.5
ListenBacklog = 1
ListenMode = "666"
ListenOwner = "root"
ListenGroup = "0"
AllowedPeers = ["::1", "127.0.0.0/8", "unix"]
Secret = "file:secret"
PacketSize = 16384
TrustRemoteUser = true
AllowedAttributes = "X-.*"
LimitRequestHead = 8
KeepAliveTimeout = 0
HeaderTimeout = 1
BodyTimeout = 2
BodyRate = 3
SendTimeout = 4
LimitRequestLine = 0
LimitRequestFields = 5
LimitRequestFieldSize = 6
LimitRequestBody = 7
TrustedProxies = ["10.0.0.0/8", "unix"]
ServerName = "example.com"
PythonPath = ["lib", "/"]
Preload = ["json", "json.tool"]
Stdio = "descriptor"
Environment = ["POOL=a,b=c"]
Pages = ["/", "/x?y=1"]
[[pool.a.Mount]]
Path = "/one"
Target = "script.py"
Model = "registry"
Title = "One"
Namespace = "shared"
StatScripts = false
PassAuthorization = true
DirectoryIndex = ["index.cgi", "index.py"]
ScriptTimeLimit = 0
[pool.a.Mount.Environment]
GIT_PROJECT_ROOT = "/srv/git"
EMPTY = ""
[[pool.a.Mount]]
Path = "/two/"
Target = "{folder}/cgi-bin"
Stdio = "object"
"""
    settings, mistakes = read(folder, text)
    assert [str(mistake) for mistake in mistakes] == []
    assert settings is not None
    assert (settings.error_log, settings.log_level) == (str(folder / "error.log"), "debug")
    (only,) = settings.pools
    assert [str(place) for place in only.listen] == [
        "scgi://[::1]:8001", f"scgi://unix:{folder}/run.sock", "http://0.0.0.0:0", "ajp://127.0.0.1:8002"
    ]  # fmt: skip
    assert (only.start_servers, only.min_spare_servers, only.max_spare_servers, only.max_servers) == (2, 1, 3, 4)
    assert (only.max_requests_per_child, only.max_requests_jitter, only.graceful_timeout) == (50, 0.0, 2.5)
    assert only.python_path == (str(folder / "lib"), "/")
    assert only.preload == ("json", "json.tool")
    assert only.trusted_proxies("10.1.2.3")
    assert only.trusted_proxies("")
    assert not only.trusted_proxies("11.1.2.3")
    wire, time = only.wire_limits(), only.time_limits()
    assert (wire.request_line, wire.fields, wire.field, wire.body, wire.head) == (1 << 62, 5, 6, 7, 8)
    assert (only.listen_mode, only.listen_owner, only.listen_group) == ("0666", "root", "0")
    assert (only.allowed_peers.written, only.allow_wildcard) == (("::1", "127.0.0.0/8", "unix"), False)
    assert (only.secret, only.packet_size, only.trust_remote_user) == (SECRET, 16384, True)
    assert only.allowed_attributes == "X-.*"
    assert (time.keep_alive, time.head, time.body, time.body_rate, time.send) == (0.0, 1.0, 2.0, 3, 4.0)
    first, second = only.mounts
    assert first == MountSettings(
        path="/one/", target=Target("script", str(folder / "script.py")), model="registry", title="One",
        namespace="shared", stat_scripts=False, stdio="descriptor", directory_index=("index.cgi", "index.py"),
        pass_authorization=True, script_time_limit=0.0,
        pages=("/", "/x?y=1"), environment=(("GIT_PROJECT_ROOT", "/srv/git"), ("EMPTY", "")),
    )  # fmt: skip
    assert (second.path, second.model, second.stdio) == ("/two/", "cgi", "object")
    assert second.environment == (("POOL", "a,b=c"),)
    assert second.target == Target("folder", str(folder / "cgi-bin"))


FITTED = [
    ("none", "", (5, 5, 10, 64)),
    ("few", "MaxServers = 2", (2, 2, 10, 2)),
    ("one-idle", "MaxSpareServers = 1", (5, 1, 1, 64)),
    ("many-idle", "MinSpareServers = 20", (5, 20, 20, 64)),
    ("many-at-start", "StartServers = 100", (100, 5, 10, 100)),
    ("many-idle-and-more", "MinSpareServers = 100", (5, 100, 100, 100)),
]


@pytest.mark.parametrize(("line", "expected"), [row[1:] for row in FITTED], ids=[row[0] for row in FITTED])
def test_numbers_of_workers_that_are_not_given_yield_to_those_that_are(
    folder: Path, line: str, expected: tuple[int, int, int, int]
) -> None:
    settings, mistakes = read(folder, pool(line))
    assert mistakes == []
    assert settings is not None
    got = settings.pools[0]
    numbers = (got.start_servers, got.min_spare_servers, got.max_spare_servers, got.max_servers)
    assert numbers == expected
    PoolLimits(*numbers)
    given = {BY_NAME[line.split(" ")[0]].attribute: int(line.split(" = ")[1])} if line else {}
    fitted = PoolLimits.fit(**given)
    assert numbers == dataclasses.astuple(fitted)[:4], "the process model fits in the same way"


def test_defaults_are_those_of_the_parts_that_use_them() -> None:
    settings = {row.attribute: row.default for row in DIRECTIVES}
    wire, time, limits = WireLimits(), TimeLimits(), PoolLimits()
    assert (settings["limit_request_line"], settings["limit_request_fields"]) == (wire.request_line, wire.fields)
    assert (settings["limit_request_field_size"], settings["limit_request_body"]) == (wire.field, wire.body)
    assert settings["limit_request_head"] == wire.head
    assert settings["packet_size"] == MIN_PACKET
    assert int(str(settings["listen_mode"]), 8) == DEFAULT_MODE
    assert (settings["header_timeout"], settings["body_timeout"]) == (time.head, time.body)
    assert (settings["body_rate"], settings["send_timeout"]) == (time.body_rate, time.send)
    assert settings["keep_alive_timeout"] == time.keep_alive
    assert settings["listen_backlog"] == DEFAULT_BACKLOG
    for field in dataclasses.fields(limits):
        if field.name in settings:
            assert settings[field.name] == getattr(limits, field.name), field.name


@pytest.mark.parametrize(
    ("settings", "scope"), [(ServerSettings, Scope.SERVER), (PoolSettings, Scope.POOL), (MountSettings, Scope.MOUNT)]
)
def test_settings_have_one_field_for_each_directive(settings: type, scope: Scope) -> None:
    fields = {field.name for field in dataclasses.fields(settings)} - {"file", "pools", "name", "mounts"}
    assert fields == {row.attribute for row in DIRECTIVES if row.scope is scope}


@pytest.mark.parametrize("row", DIRECTIVES, ids=lambda row: row.name)
def test_a_directive_is_in_order(row: object) -> None:
    from gateways.config.directives import Directive

    assert isinstance(row, Directive)
    assert row.help.endswith((".", ")"))
    assert row.name[0].isupper()
    assert row.flag.startswith("--")
    assert not row.shared or row.scope is Scope.MOUNT


@pytest.mark.parametrize("text", ["8000", "127.0.0.1:80", ":0", "[::1]:80", "[::]:0", "localhost:80", "unix:/run/a"])
def test_the_process_model_understands_every_address(folder: Path, text: str) -> None:
    settings, mistakes = read(folder, pool(f"Listen = '{text}'"))
    assert mistakes == []
    assert settings is not None
    (place,) = settings.pools[0].listen
    assert str(parse_address(place.address)) == place.address


TRUST = [
    (["127.0.0.1"], "127.0.0.1", True), (["127.0.0.1"], "127.0.0.2", False), (["10.0.0.0/8"], "10.255.0.1", True),
    (["2001:db8::1"], "2001:db8::1", True), (["2001:db8::1"], "2001:db8::2", False), (["::1"], "127.0.0.1", False),
    (["unix"], "", True), (["127.0.0.1"], "", False), ([], "127.0.0.1", False), (["0.0.0.0/0"], "garbage", False),
    # One address that differs in its first four bytes only, and one that differs in its last four only.
    (["::1"], "2001:db8::1", False), (["2001:db8::1"], "::1", False), (["::1"], "::1", True),
    (["2001:db8::1:0:1"], "2001:db8::1:0:2", False), (["2001:db8::1:0:1"], "2001:db8:0:0:0:1:0:1", True),
    (["2001:db8::/96"], "2001:db8::ffff:ffff", True), (["2001:db8::/96"], "2001:db8::1:0:0", False),
    (["127.0.0.1"], "::ffff:127.0.0.1", True), (["::ffff:127.0.0.1"], "127.0.0.1", True),
    (["::ffff:10.0.0.0/104"], "10.1.2.3", True), (["::ffff:10.0.0.0/104"], "11.1.2.3", False),
    (["127.0.0.1"], "::127.0.0.1", False), (["0.0.0.0/0"], "::1", False), (["::/0"], "127.0.0.1", False),
    (["fe80::1"], "fe80::1%1", True), (["127.0.0.1"], "127.0.0.1 ", False), (["127.0.0.1"], "0127.0.0.1", False),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "peer", "expected"), TRUST)
def test_F01_H16_whole_addresses_of_peers_are_compared(rule: list[str], peer: str, expected: bool) -> None:
    assert PeerRule.parse(rule)(peer) is expected


def test_the_shipped_configuration_serves_the_hello_app_in_every_mode() -> None:
    settings = read_settings(str(ROOT / "conf" / "modes.toml"))
    (modes,) = settings.pools
    assert [mount.path for mount in modes.mounts] == [f"/{model}/" for model in MODELS]
    assert [mount.model for mount in modes.mounts] == list(MODELS)
    assert {mount.target.path for mount in modes.mounts} == {str(ROOT / "apps" / "hello.py")}
    assert os.access(ROOT / "apps" / "hello.py", os.X_OK)


REACHABLE = [
    ("http-everywhere", "Listen = ['0.0.0.0:80', '[::]:80']"),
    ("F01-allowed", "Listen = ['fastcgi://0.0.0.0:1', 'scgi://[::]:2', 'uwsgi://0.0.0.0:3']\nAllowWildcard = true"),
    ("A01-secret", f"Listen = 'ajp://192.0.2.1:8009'\nSecret = '{SECRET}'"),
    ("A01-secret-everywhere", f"Listen = 'ajp://0.0.0.0:8009'\nSecret = '{SECRET}'\nAllowWildcard = true"),
    ("A01-loopback", "Listen = ['ajp://127.0.0.1:1', 'ajp://127.1.2.3:1', 'ajp://[::1]:1', 'ajp://unix:s']"),
    ("A01-name-is-asked-when-bound", "Listen = 'ajp://localhost:8009'"),
    ("peers-of-both-kinds", "Listen = ['127.0.0.1:1', 'unix:s']\nAllowedPeers = ['::1', 'unix']"),
    ("B044-no-limit", "LimitRequestHead = 0"), ("B044-65535", "LimitRequestHead = 65535"),
    ("B044-65536", "LimitRequestHead = 65536"),
]  # fmt: skip


@pytest.mark.parametrize("lines", [row[1] for row in REACHABLE], ids=[row[0] for row in REACHABLE])
def test_what_may_be_reached_is_no_mistake(folder: Path, lines: str) -> None:
    _, mistakes = read(folder, pool(lines))
    assert [str(mistake) for mistake in mistakes] == []


@pytest.mark.parametrize(
    "lines",
    [
        f"Secret = '{SECRET}'", f"Secret = '{SECRET} {SECRET}'", f"Secret = ['{SECRET}']", f"Secret = '{SECRET}' x",
        f"Secret = '{SECRET}'\nSecret = '{SECRET}'", f"Wire = 'ajp'\nSecret = '{SECRET}'\nListen = 'ajp://0.0.0.0:1'",
        "Wire = 'ajp'\nSecret = 'file:secret'\nListen = '0.0.0.0:1'", f"Sekret = '{SECRET}'",
    ],
)  # fmt: skip
def test_A01_no_message_tells_a_secret(folder: Path, lines: str) -> None:
    (folder / "secret").write_text(f"{SECRET}\n")
    _, mistakes = read(folder, pool(lines))
    assert mistakes
    assert not any(SECRET in str(mistake) for mistake in mistakes)


def test_A01_settings_are_printed_without_their_secret(folder: Path) -> None:
    settings, mistakes = read(folder, pool(f"Wire = 'ajp'\nSecret = '{SECRET}'"))
    assert mistakes == []
    assert settings is not None
    assert settings.pools[0].secret == SECRET
    assert SECRET not in repr(settings)
