"""execution.sources: which file answers a path, and nothing outside its folder (C05)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateways.core.errors import LoadError, ScriptError
from gateways.execution.sources import ScriptFolder, SingleScript
from tests.exchanges import make_request


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    scripts = root / "cgi-bin"
    (scripts / "sub" / "deep").mkdir(parents=True)
    for name in ("a.py", "sub/b.py", "sub/deep/c.py", "sub/index.py", "with space", "\xe9.py", ".hidden", "trail.py."):
        (scripts / name).write_text("")
    (root / "secret").write_text("")
    (root / "cgi-bin-other").mkdir()
    (root / "cgi-bin-other" / "x").write_text("")
    (scripts / "link-out").symlink_to(root / "secret")
    (scripts / "link-in").symlink_to(scripts / "a.py")
    (scripts / "dir-out").symlink_to(root / "cgi-bin-other")
    os.mkfifo(scripts / "fifo")
    return scripts


FOUND = [
    ("script", "/a.py", "a.py", "/cgi-bin/a.py", ""),
    ("slash", "/a.py/", "a.py", "/cgi-bin/a.py", "/"),
    ("path-info", "/a.py/x/y", "a.py", "/cgi-bin/a.py", "/x/y"),
    ("path-info-raw", "/a.py//x/../y", "a.py", "/cgi-bin/a.py", "//x/../y"),
    ("folder", "/sub/b.py/z", "sub/b.py", "/cgi-bin/sub/b.py", "/z"),
    ("deep", "/sub/deep/c.py", "sub/deep/c.py", "/cgi-bin/sub/deep/c.py", ""),
    ("space", "/with space/x", "with space", "/cgi-bin/with space", "/x"),
    ("octets", "/\xc3\xa9.py", "\xe9.py", "/cgi-bin/\xc3\xa9.py", ""),
    ("link-within", "/link-in", "link-in", "/cgi-bin/link-in", ""),
]


@pytest.mark.parametrize(("path", "file", "name", "info"), [r[1:] for r in FOUND], ids=[r[0] for r in FOUND])
def test_a_script_and_the_rest_of_the_path(path: str, file: str, name: str, info: str, folder: Path) -> None:
    request = make_request()
    request.script_name, request.path_info = "/cgi-bin", path
    script = ScriptFolder(str(folder)).find(request)
    assert (script.path, script.script_name, script.path_info) == (str(folder / file), name, info)
    assert script.folder == str((folder / file).parent)


REFUSED = [
    ("absent", "/none.py", 404),
    ("root", "/", 404),
    ("empty", "", 404),
    ("folder", "/sub", 404),
    ("folder-slash", "/sub/", 404),
    ("no-slash", "a.py", 404),
    ("C05-dots", "/../secret", 404),
    ("C05-dots-within", "/sub/../a.py", 404),
    ("C05-dots-deep", "/sub/../../secret", 404),
    ("C05-dot", "/./a.py", 404),
    ("C05-double-slash", "//a.py", 404),
    ("C05-absolute", "//etc/passwd", 404),
    ("C05-nul", "/a.py\0", 404),
    ("C05-nul-in-path-info", "/a.py/\0", 404),
    ("C05-trailing-dot", "/a.py.", 404),
    ("C05-encoded-dots-are-a-name", "/..%2fsecret", 404),
    ("C05-backslash", "/..\\secret", 404),
    ("hidden", "/.hidden", 404),
    ("link-out", "/link-out", 403),
    ("folder-link-out", "/dir-out/x", 403),
    ("not-a-file", "/fifo", 403),
    ("file-as-folder", "/sub/b.py/../../a.py", None),
    ("long", "/" + "x" * 300, 404),
    ("many-segments", "/x" * 5000, 404),
]


@pytest.mark.parametrize(("path", "status"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_c05_what_is_no_script_below_the_folder(path: str, status: int | None, folder: Path) -> None:
    request = make_request()
    request.path_info = path
    if status is None:  # the rest of the path after a script is data, and opened by nobody here
        assert ScriptFolder(str(folder)).find(request).path_info == "/../../a.py"
        return
    with pytest.raises(ScriptError) as raised:
        ScriptFolder(str(folder)).find(request)
    assert raised.value.status == status


def test_an_index_answers_for_its_folder(folder: Path) -> None:
    request = make_request()
    request.path_info = "/sub/"
    script = ScriptFolder(str(folder), index=("index.cgi", "index.py")).find(request)
    assert (script.path, script.script_name, script.path_info) == (str(folder / "sub/index.py"), "/sub", "/")
    request.path_info = "/"
    with pytest.raises(ScriptError):
        ScriptFolder(str(folder), index=("index.py",)).find(request)


def test_a_folder_lists_its_python_scripts(folder: Path) -> None:
    assert [Path(path).name for path in ScriptFolder(str(folder)).list_scripts()] == ["a.py", "\xe9.py"]


def test_a_single_script_takes_every_path(folder: Path) -> None:
    request = make_request(target="/x/y")
    source = SingleScript(str(folder / "a.py"))
    script = source.find(request)
    assert (script.path, script.folder, script.split_here) == (str(folder / "a.py"), str(folder), False)
    request.path_info = "/x\0"
    with pytest.raises(ScriptError) as raised:
        source.find(request)
    assert raised.value.status == 404


@pytest.mark.parametrize(
    "source", [SingleScript("/no/such/script"), ScriptFolder("/no/such/folder")], ids=["script", "folder"]
)
def test_what_is_not_there_cannot_be_loaded(source: SingleScript | ScriptFolder) -> None:
    with pytest.raises(LoadError, match="is not there"):
        source.load()
