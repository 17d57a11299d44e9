"""The files app: the right bytes from any offset, in every way and through every wire; nothing asked for is a path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps import files
from tests.servers import ROOT, Server, serving
from tests.wires import ASK, WIRES, Answer

APP = ROOT / "apps" / "files.py"
OWN = (files.KERNEL, *files.BODIES)
LARGE = files.FILES["large"]
PLACES = (("small", 0), ("small", 1), ("small", 1455), ("large", LARGE - 200_003), ("large", LARGE - 1))
MODELS = {"wsgi": "application", "handler": "handler"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("files")
    mounts = "".join(
        f'[[pool.p.Mount]]\nPath = "/{model}/"\nTarget = "{APP}:{name}"\nModel = "{model}"\n'
        for model, name in MODELS.items()
    )
    listens = ", ".join(f'"{wire}://127.0.0.1:0"' for wire in WIRES)
    (folder / "files.toml").write_text(f"[pool.p]\nListen = [{listens}]\nStartServers = 1\n{mounts}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FILES_FOLDER", str(folder / "data"))
        with serving(folder, "--config", str(folder / "files.toml"), bind=False) as running:
            yield running


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", OWN)
@pytest.mark.parametrize("model", MODELS)
def test_a_file_is_sent_from_the_place_asked_for(server: Server, model: str, way: str, wire: str) -> None:
    for name, offset in PLACES:
        check(ASK[wire](server, f"/{model}/{way}/{name}/{offset}", None), name, offset)


def check(answer: Answer, name: str, offset: int) -> None:
    assert answer.status == 200
    assert answer.length == files.FILES[name] - offset
    assert answer.body == files.format_content(offset, files.FILES[name] - offset), (name, offset)


@pytest.mark.parametrize("way", OWN)
def test_a_large_file_is_sent_whole(server: Server, way: str) -> None:
    answer = ASK["http"](server, f"/wsgi/{way}/large", None)
    assert len(answer.body) == LARGE
    for offset in range(0, LARGE, 1 << 20):
        assert answer.body[offset : offset + 48] == files.format_content(offset, 48)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("way", "status"),
    [
        ("sendfile/small/1456", 400), ("read/small/-1", 400), ("read/small/1e3", 400), ("read/small/" + "9" * 30, 400),
        ("xsendfile/small/1", 400), ("accel/large/5", 400), ("read/../small", 404), ("read/passwd", 404),
        ("read//etc/passwd", 404), ("xsendfile/..%2f..%2fetc%2fpasswd", 404), ("", 404), ("send/small", 404),
    ],
)  # fmt: skip
def test_what_is_in_no_table_is_refused(server: Server, model: str, way: str, status: int) -> None:
    assert server.get(f"/{model}/{way}")[0] == status


@pytest.mark.parametrize("model", MODELS)
def test_a_front_is_told_a_row_of_the_table_and_the_client_chooses_no_header(server: Server, model: str) -> None:
    """H26: neither a request's X-Sendfile-Type nor its X-Accel-Mapping changes which field is sent."""
    evil = "X-Sendfile-Type: X-Accel-Redirect\r\nX-Accel-Mapping: /=/etc/"
    for way, field in (
        ("xsendfile", rb"X-Sendfile: /.*/data/small\r\n"),
        ("accel", rb"X-Accel-Redirect: /internal/small\r\n"),
    ):
        head = server.exchange(f"GET /{model}/{way}/small HTTP/1.0\r\n{evil}\r\n\r\n".encode())
        assert re.search(field, head)
        assert head.lower().count(b"x-accel-redirect") + head.lower().count(b"x-sendfile") == 1


def test_a_default_folder_of_someone_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FILES_FOLDER", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"files-{os.geteuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="FILES_FOLDER"):
        files.find_folder()
