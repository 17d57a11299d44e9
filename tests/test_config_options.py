"""The command line as a view of the table: what options become, and the sentence for every wrong one."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from gateways.config.addresses import ListenAddress
from gateways.config.directives import DIRECTIVES
from gateways.config.options import add_options, override_settings, read_options
from gateways.config.reader import read_configuration
from gateways.config.settings import ServerSettings
from gateways.config.targets import Target
from gateways.core.errors import ConfigurationError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text("def application(environ, start_response): ...\n")
    (tmp_path / "script.py").write_text("print()\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "secret").write_text("0123456789abcdef\nand more\n")
    (tmp_path / "one.toml").write_text("[pool.a]\nMaxServers = 9\n[[pool.a.Mount]]\nTarget = 'app.py'\n")
    (tmp_path / "two.toml").write_text(
        "[pool.a]\n[[pool.a.Mount]]\nTarget = 'app.py'\n[pool.b]\nListen = '1'\n[[pool.b.Mount]]\nTarget = 'app.py'\n"
    )
    return tmp_path


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_options(parser)
    return parser.parse_args(words)


def read(folder: Path, target: str, *words: str) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    return read_options(target, parse(list(words)), str(folder))


def test_a_target_alone_is_served_by_one_pool_with_every_default(folder: Path) -> None:
    settings, mistakes = read(folder, "app.py")
    assert mistakes == []
    assert settings is not None
    (pool,) = settings.pools
    (mount,) = pool.mounts
    assert (settings.file, pool.name, pool.listen, pool.python_path) == (
        "",
        "main",
        (ListenAddress("127.0.0.1:8000", "http"),),
        (str(folder),),
    )
    assert (mount.path, mount.model) == ("/", "wsgi")
    assert mount.target == Target("callable_file", str(folder / "app.py"), "application")


def test_every_directive_is_an_option_and_arrives(folder: Path) -> None:
    given = {
        "--error-log": ("x.log", str(folder / "x.log")), "--log-level": ("debug", "debug"), "--wire": ("ajp", "ajp"),
        "--start-servers": ("1", 1), "--min-spare-servers": ("2", 2), "--max-spare-servers": ("3", 3),
        "--max-servers": ("4", 4), "--max-requests-per-child": ("100", 100), "--max-requests-jitter": ("0.5", 0.5),
        "--graceful-timeout": ("1.5", 1.5), "--listen-backlog": ("7", 7), "--keep-alive-timeout": ("0", 0.0),
        "--header-timeout": ("2", 2.0), "--body-timeout": ("3", 3.0), "--body-rate": ("4", 4),
        "--send-timeout": ("5", 5.0),
        "--limit-request-line": ("6", 6), "--limit-request-fields": ("7", 7), "--limit-request-field-size": ("8", 8),
        "--limit-request-body": ("9", 9), "--server-name": ("a.example", "a.example"), "--path": ("/x", "/x/"),
        "--model": ("registry", "registry"), "--title": ("T", "T"), "--namespace": ("shared", "shared"),
        "--stat-scripts": ("off", False), "--stdio": ("descriptor", "descriptor"), "--pass-authorization": ("on", True),
        "--listen-mode": ("600", "0600"), "--listen-owner": ("0", "0"), "--listen-group": ("root", "root"),
        "--allow-wildcard": ("yes", True), "--secret": (f"file:{folder}/secret", "0123456789abcdef"),
        "--packet-size": ("65536", 65536), "--trust-remote-user": ("on", True), "--allowed-attributes": ("a|b", "a|b"),
        "--limit-request-head": ("0", 0),
        "--environment": ("A=b,c", (("A", "b,c"),)),
        "--script-time-limit": ("10", 10.0), "--pages": ("/a,/b", ("/a", "/b")),
        "--bind": (
            "127.0.0.1:0,http://[::1]:0", (ListenAddress("127.0.0.1:0", "ajp"), ListenAddress("[::1]:0", "http"))
        ),
        "--python-path": ("lib", (str(folder / "lib"),)),
        "--status-listen": ("127.0.0.1:9", "127.0.0.1:9"),
        "--access-log": ("-", "-"), "--access-log-format": ("json", "json"),
        "--pid-file": ("x.pid", str(folder / "x.pid")), "--user": ("0", "0"), "--group": ("root", "root"),
        "--process-manager": ("static", "static"), "--process-idle-timeout": ("2", 2.0),
        "--directory-index": ("index.cgi,index.py", ("index.cgi", "index.py")),
        "--preload": ("json,json.tool", ("json", "json.tool")),
        "--max-queue": ("5", 5), "--share-connections": ("on", True), "--queue-timeout": ("6", 6.0),
        "--max-memory-per-child": ("10", 10), "--request-timeout": ("3", 3.0), "--slow-request-timeout": ("1", 1.0),
        "--slow-log": ("slow.log", str(folder / "slow.log")),
    }  # fmt: skip
    words = [word for flag, (text, _) in given.items() for word in (flag, text)]
    peers = ["--trusted-proxies", "10.0.0.0/8,unix", "--allowed-peers", "127.0.0.1", "--allowed-peers", "::1,unix"]
    settings, mistakes = read(folder, "script.py", *words, *peers)
    assert [str(mistake) for mistake in mistakes] == []
    assert settings is not None
    (pool,) = settings.pools
    for directive in DIRECTIVES:
        if directive.flag in given:
            place = next(p for p in (settings, pool, pool.mounts[0]) if hasattr(p, directive.attribute))
            assert getattr(place, directive.attribute) == given[directive.flag][1], directive.name
    assert pool.trusted_proxies.written == ("10.0.0.0/8", "unix")
    assert pool.allowed_peers.written == ("127.0.0.1", "::1", "unix")
    assert {row.flag for row in DIRECTIVES} - {*given, "--trusted-proxies", "--allowed-peers"} == {"--target"}


def test_an_option_that_lists_may_be_repeated(folder: Path) -> None:
    settings, _ = read(folder, "app.py", "--bind", "127.0.0.1:1", "--bind", "ajp://unix:a")
    assert settings is not None
    assert [str(place) for place in settings.pools[0].listen] == ["http://127.0.0.1:1", f"ajp://unix:{folder}/a"]


WRONG = [
    (["--start-servers", "many"], '--start-servers must be a whole number, not "many"'),
    (["--start-servers", "\u0665"], "--start-servers must be a whole number"),
    (["--start-servers", "1_0"], "--start-servers must be a whole number"),
    (["--start-servers", ""], "--start-servers must be a whole number"),
    (["--start-servers", "0"], "--start-servers must be 1 to 10000, not 0"),
    (["--start-servers", "1", "--start-servers", "2"], "--start-servers must be given once"),
    (["--send-timeout", "1e3"], "--send-timeout must be a number"),
    (["--send-timeout", "inf"], "--send-timeout must be a number"),
    (["--stat-scripts", "maybe"], "--stat-scripts must be on or off"),
    (["--model", "wsgj"], "--model must be one of cgi, zygote, perlrun, registry, wsgi, handler; not"),
    (["--bind", "a:b:c"], "--bind must be HOST:PORT"),
    (["--bind", ""], "--bind must be text that is not empty"),
    (["--max-servers", "2", "--start-servers", "3"], "--start-servers (3) is more than --max-servers (2)"),
    (["--model", "registry"], "TARGET: model registry runs a file from its top"),
    (["--secret", "0123456789abcdef"], "--secret must be file:PATH on the command line, where everybody can read it"),
    (["--secret", "file:none"], "--secret cannot be read: "),
    (["--secret", "file:script.py"], "--secret is not in "),
    (
        ["--allow-wildcard", "on", "--bind", "ajp://0.0.0.0:0"],
        "ajp://0.0.0.0:0 can be reached from other machines: ajp needs a Secret there",
    ),
    (["--wire", "scgi", "--bind", "0.0.0.0:0"], "scgi://0.0.0.0:0 would be open to every interface"),
    (["--python-path", "none"], "--python-path names a folder that does not exist"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_a_wrong_option_is_named_as_it_was_written(folder: Path, words: list[str], sentence: str) -> None:
    settings, mistakes = read(folder, "app.py:application", *words)
    assert settings is None
    assert len(mistakes) == 1
    assert str(mistakes[0]).startswith(sentence)


def override(folder: Path, file: str, *words: str) -> tuple[ServerSettings | None, list[ConfigurationError]]:
    settings, mistakes = read_configuration(str(folder / file))
    assert settings is not None, mistakes
    return override_settings(settings, parse(list(words)), str(folder))


def test_an_address_beside_a_file_wins_over_the_file(folder: Path) -> None:
    settings, mistakes = override(folder, "one.toml", "--bind", "127.0.0.1:0", "--log-level", "error")
    assert mistakes == []
    assert settings is not None
    (place,) = settings.pools[0].listen
    assert (str(place), settings.log_level, settings.error_log) == ("http://127.0.0.1:0", "error", "")
    assert settings.pools[0].max_servers == 9


OVERRIDES = [
    ("one.toml", ["--max-servers", "3"], "--max-servers cannot be given with --config: write MaxServers in "),
    ("one.toml", ["--model", "cgi"], "--model cannot be given with --config: write Model in "),
    ("two.toml", ["--bind", "127.0.0.1:0"], "--bind cannot be given: "),
    ("one.toml", ["--bind", "x"], "--bind must be HOST:PORT"),
    ("one.toml", ["--bind", "scgi://0.0.0.0:1"], "scgi://0.0.0.0:1 would be open to every interface"),
]


@pytest.mark.parametrize(("file", "words", "sentence"), OVERRIDES)
def test_what_cannot_stand_beside_a_file(folder: Path, file: str, words: list[str], sentence: str) -> None:
    settings, mistakes = override(folder, file, *words)
    assert settings is None
    assert [str(mistake)[: len(sentence)] for mistake in mistakes] == [sentence]
