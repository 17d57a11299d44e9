"""A script of 2005 with the cgi module, under every mode that runs scripts; and where Python has that no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateways.execution.scriptlog import find_hint
from tests.script_kinds import MODES
from tests.script_runs import write_script
from tests.servers import ROOT, Server, decode_chunks, serving

TEXT = (ROOT / "tests" / "apps" / "guestbook.py").read_text()
WITHOUT_CGI = """
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("cgi", "cgitb"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
import sys
sys.modules.pop("cgi", None), sys.modules.pop("cgitb", None)
sys.meta_path.insert(0, Absent())
"""
SITE = """
[[pool.main.Mount]]
Path = "/{mode}/"
Target = "{script}"
Environment = {{ GUESTBOOK = "{folder}/{mode}.txt" }}
{model}
"""
HINT = "the module cgi is not in Python since 3.13: pip install legacy-cgi"


def write_site(folder: Path, text: str) -> Path:
    script = write_script(folder / "guestbook.py", text)
    pool = '[pool.main]\nListen = "127.0.0.1:0"\nProcessManager = "static"\nMaxServers = 1\n'
    mounts = [SITE.format(mode=mode, script=script, folder=folder, model=model) for mode, model in MODES.items()]
    (folder / "site.toml").write_text(pool + "".join(mounts))
    return folder / "site.toml"


def post(server: Server, path: str, form: str) -> str:
    head, _, body = server.exchange(
        f"POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(form)}\r\n\r\n{form}".encode()
    ).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    return (decode_chunks(body) if b"chunked" in head else body).decode()


def test_a_script_of_2005_runs_under_every_mode(tmp_path: Path) -> None:
    pytest.importorskip("cgi", reason="this Python has no cgi module: pip install legacy-cgi")
    site = write_site(tmp_path, TEXT)
    warned = ("guestbook.py: .*(DeprecationWarning|  import)",)
    with serving(tmp_path, "--config", str(site), bind=False, tolerated=warned) as it:
        for mode in MODES:
            path = f"/{mode}/"
            status, page = it.get(path)
            assert (status, b"Nobody yet." in page) == (200, True), (mode, page)
            assert "<b>Thank you, &lt;Ann&gt;!</b>" in post(it, path, "name=%3CAnn%3E&text=a+%26%0D%0Ab"), mode
            assert "Please fill in both fields." in post(it, path, "name=Bob"), mode
            assert b"<b>&lt;Ann&gt;</b>" in (page := it.get(path)[1]), mode
            assert page.count(b"a &amp; b") == 1, mode


def test_where_python_has_no_cgi_the_page_and_the_log_say_what_to_install(tmp_path: Path) -> None:
    site = write_site(tmp_path, WITHOUT_CGI + TEXT)
    with serving(tmp_path, "--config", str(site), bind=False, tolerated=("guestbook.py", "exit status")) as server:
        for mode in MODES:
            assert server.get(f"/{mode}/") == (500, f"500 Internal Server Error\n{HINT}\n".encode()), mode
        assert server.read_log().count(f"guestbook.py: {HINT}") == len(MODES)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ModuleNotFoundError: No module named 'cgi'", HINT),
        ("ModuleNotFoundError: No module named 'cgitb'", HINT.replace("cgi is", "cgitb is")),
        ("ModuleNotFoundError: No module named 'cgi.x'", ""),
        ("ModuleNotFoundError: No module named 'mine'", ""),
        ("ImportError: No module named 'cgi'", ""),
        ("the module cgi", ""),
    ],
)
def test_only_what_python_has_lost_has_a_hint(line: str, said: str) -> None:
    assert find_hint(line) == said
