"""``gateways serve --reload``: what is watched, and that an edit reaches the browser, but no broken one does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateways.config.reader import read_settings
from gateways.reloading import Watched, drop_inner, format_changes, is_of_interest, plan_watched, quote, soften, unquote
from tests.servers import ROOT, Server, has_ended, serving, wait_until

APP = """
import words
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [words.TEXT]
"""
CONF = """
[pool.main]
Listen = "127.0.0.1:0"
StartServers = 1
MinSpareServers = {spare}
[[pool.main.Mount]]
Target = "site.py"
"""
HALF_A_LINE = "TEXT = b'"


def write_site(folder: Path) -> Path:
    (folder / "words.py").write_text("TEXT = b'one'\n")
    (folder / "site.py").write_text(APP)
    conf = folder / "gateways.toml"
    conf.write_text(CONF.format(spare=1))
    return conf


# What is watched.


def test_folders_inside_others_are_watched_once(tmp_path: Path) -> None:
    for name in ("a/b", "ab"):
        (tmp_path / name).mkdir(parents=True)
    names = [str(tmp_path / name) for name in ("a/b", "ab", "a", "a/b/.")]
    assert drop_inner(names) == (str(tmp_path / "a"), str(tmp_path / "ab"))


def test_a_configuration_and_its_programs_are_watched(tmp_path: Path) -> None:
    (tmp_path / "cgi-bin").mkdir()
    conf = write_site(tmp_path)
    conf.write_text(conf.read_text() + '[[pool.main.Mount]]\nPath = "/cgi"\nTarget = "cgi-bin"\n')
    watched = plan_watched(read_settings(str(conf)))
    assert watched == Watched(
        (str(tmp_path),), (str(conf), str(tmp_path / "site.py")), (str(tmp_path / "cgi-bin"),)
    )  # fmt: skip


INTEREST = [
    ("/site/app.py", True), ("/site/templates/page.html", True), ("/site/gateways.toml", True),
    ("/site/db.sqlite3", False), ("/site/error.log", False), ("/site/bin/run.sh", True), ("/site/binary", False),
    ("/site/other.toml", False),
]  # fmt: skip


@pytest.mark.parametrize(("path", "interesting"), INTEREST)
def test_what_counts_as_a_change(path: str, interesting: bool) -> None:
    assert is_of_interest(path, Watched(("/site",), ("/site/gateways.toml",), ("/site/bin",))) == interesting


def test_paths_are_passed_on_whole() -> None:
    paths = ("/a,b/%2C", "/c d")
    assert unquote(",".join(map(quote, paths))) == paths
    assert unquote("") == ()


def test_a_change_is_said_in_a_few_words() -> None:
    assert format_changes(["/a.py"]) == "reload: /a.py changed"
    assert format_changes(["/a.py", "/b.py", "/c.py"]) == "reload: /a.py and 2 more changed"


def test_connections_are_kept_for_a_moment_only(tmp_path: Path) -> None:
    assert soften(read_settings(str(write_site(tmp_path)))).pools[0].keep_alive_timeout == 1.0


def test_without_the_library_a_sentence_names_it(tmp_path: Path) -> None:
    program = "import sys; sys.modules['watchfiles'] = None\nfrom gateways.cli import main\nsys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "serve", str(write_site(tmp_path).with_name("site.py")), "--reload"],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("gateways: --reload needs the package watchfiles: install it")
    assert done.stderr.count("\n") == 1


# A real server.


def read_word(server: Server) -> bytes:
    return server.get("/")[1]


def test_an_edit_is_served_and_a_broken_one_is_not(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")
    conf = write_site(tmp_path)
    broken = [r"worker \d+ ends: LoadError", r"while starting", "reload given up, the old workers stay", "    "]
    with serving(
        tmp_path, "--config", str(conf), "--reload", bind=False, wanted=broken[:3], tolerated=broken
    ) as server:
        assert read_word(server) == b"one"
        server.wait_for_log("reload: watching ")
        (tmp_path / "words.py").write_text("TEXT = b'two'\n")
        wait_until(lambda: read_word(server) == b"two", "the edit")
        (tmp_path / "words.py").write_text(HALF_A_LINE)
        server.wait_for_log("reload given up, the old workers stay: .*SyntaxError")
        assert read_word(server) == b"two"
        (tmp_path / "words.py").write_text("TEXT = b'six'\n")
        wait_until(lambda: read_word(server) == b"six", "the repair")
        assert "words.py changed" in server.read_log()
        conf.write_text(CONF.format(spare=2))
        wait_until(lambda: len(server.workers()) == 3, "two workers and the watcher")
        assert not (tmp_path / "__pycache__").exists()
        watchers = set(server.workers())
    wait_until(lambda: all(map(has_ended, watchers)), "the watcher's end")
