"""Targets: what a word means, which model runs it when none is named, and which names a file defines."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateways.config.build import settle_target
from gateways.config.targets import Target, TargetError, defined_names, read_names, read_target, split_target

SPLIT = [
    ("app.py", ("app.py", "")),
    ("app.py:main", ("app.py", "main")),
    ("package.module:app", ("package.module", "app")),
    ("package.module:factory.app", ("package.module", "factory.app")),
    ("/a:b/c.py:main", ("/a:b/c.py", "main")),
]


@pytest.mark.parametrize(("text", "expected"), SPLIT)
def test_a_target_is_a_place_and_a_name(text: str, expected: tuple[str, str]) -> None:
    assert split_target(text) == expected


@pytest.mark.parametrize("text", ["app.py:", ":app", "app.py:a b", "app.py:1", "app.py:a.", "a.py:x.py/"])
def test_what_follows_a_colon_is_a_python_name(text: str) -> None:
    with pytest.raises(TargetError, match="must be a Python name"):
        split_target(text)


FILES = {
    "wsgi.py": "def application(environ, start_response): ...\n",
    "flask_like.py": "app = make()\n",
    "both.py": "def handler(request): ...\napp = 1\napplication = 2\n",
    "native.py": "def handler(request): ...\n",
    "script.py": "print()\ndef main():\n    application = 1\n",
    "conditional.py": "try:\n    from fast import application\nexcept ImportError:\n    pass\n",
    "shebang": "#!/usr/bin/env python3\nprint()\n",
    "page.fcgi": "#!/usr/bin/env -S gateways run\ndef application(environ, start_response): ...\n",
    "program": "#!/bin/sh\n",
    "site.wsgi": "application = make()\n",
    "cgi-bin/one.py": "print()\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return tmp_path


MEANT: list[tuple[str, str, str, str, str, str]] = [
    # As written, the model named, then kind, place, name and model.
    ("wsgi.py", "", "callable_file", "wsgi.py", "application", "wsgi"),
    ("./wsgi.py", "", "callable_file", "wsgi.py", "application", "wsgi"),
    ("flask_like.py", "", "callable_file", "flask_like.py", "app", "wsgi"),
    ("both.py", "", "callable_file", "both.py", "application", "wsgi"),
    ("both.py", "handler", "callable_file", "both.py", "handler", "handler"),
    ("native.py", "", "callable_file", "native.py", "handler", "handler"),
    ("conditional.py", "", "callable_file", "conditional.py", "application", "wsgi"),
    ("script.py", "", "script", "script.py", "", "registry"),
    ("script.py", "perlrun", "script", "script.py", "", "perlrun"),
    ("wsgi.py", "registry", "script", "wsgi.py", "", "registry"),
    ("wsgi.py", "cgi", "script", "wsgi.py", "", "cgi"),
    ("wsgi.py:other", "", "callable_file", "wsgi.py", "other", "wsgi"),
    ("site.wsgi", "", "callable_file", "site.wsgi", "application", "wsgi"),
    ("./site.wsgi:other", "", "callable_file", "site.wsgi", "other", "wsgi"),
    ("site.wsgi:other", "", "callable_module", "site.wsgi", "other", "wsgi"),
    ("native.py:handler", "", "callable_file", "native.py", "handler", "handler"),
    ("native.py:handler", "wsgi", "callable_file", "native.py", "handler", "wsgi"),
    ("package.module:app", "", "callable_module", "package.module", "app", "wsgi"),
    ("package.module:handler", "", "callable_module", "package.module", "handler", "handler"),
    ("shebang", "", "script", "shebang", "", "registry"),
    ("page.fcgi", "", "callable_file", "page.fcgi", "application", "wsgi"),
    ("program", "", "executable", "program", "", "cgi"),
    ("cgi-bin", "", "folder", "cgi-bin", "", "cgi"),
    ("cgi-bin/", "registry", "folder", "cgi-bin", "", "registry"),
]


@pytest.mark.parametrize(
    ("text", "named", "kind", "place", "name", "model"), MEANT, ids=[f"{row[0]}-{row[1]}" for row in MEANT]
)
def test_a_target_and_its_model(
    folder: Path, text: str, named: str, kind: str, place: str, name: str, model: str
) -> None:
    path = place if kind == "callable_module" else str(folder / place)
    assert settle_target(text, named, str(folder)) == (Target(kind, path, name), model)


def test_a_relative_target_starts_from_the_given_folder(folder: Path) -> None:
    assert read_target("../wsgi.py", str(folder / "cgi-bin")).path == str(folder / "wsgi.py")


def test_a_target_is_read_and_never_run(folder: Path) -> None:
    (folder / "loud.py").write_text("raise SystemExit('run')\napplication = 1\n")
    assert read_names(str(folder / "loud.py")) == {"application"}


NAMES = [
    ("def a(): b = 1", {"a"}),
    ("async def a(): ...", {"a"}),
    ("class A: b = 1", {"A"}),
    ("a = b = 1", {"a", "b"}),
    ("a: int = 1\nb: int", {"a"}),
    ("a.b = 1\na[0] = 1", set()),
    ("import a.b, c as d\nfrom e import f as g", {"a", "d", "g"}),
    ("if x:\n    a = 1\nelse:\n    b = 1", {"a", "b"}),
    ("try:\n    a = 1\nexcept E:\n    b = 1\nelse:\n    c = 1\nfinally:\n    d = 1", {"a", "b", "c", "d"}),
    ("with x:\n    a = 1", {"a"}),
    ("# -*- coding: latin-1 -*-\na = '\xe9'", {"a"}),
    ("", set()),
]


@pytest.mark.parametrize(("source", "expected"), NAMES)
def test_the_names_that_a_file_defines_at_its_top_level(source: str, expected: set[str]) -> None:
    assert defined_names(compile(source.encode("latin-1"), "x", "exec", 0x400)) == expected


UNREADABLE = [(b"def :\n", "line 1"), (b"a\0b", "not valid Python"), (b"\xff", "not valid Python")]


@pytest.mark.parametrize(("source", "words"), UNREADABLE)
def test_a_file_that_is_not_python(tmp_path: Path, source: bytes, words: str) -> None:
    (tmp_path / "x.py").write_bytes(source)
    with pytest.raises(TargetError, match=words):
        read_names(str(tmp_path / "x.py"))
