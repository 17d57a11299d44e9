"""Variables of a mount, with real processes: every model shows them, and no front server can change them (C03)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.scgi import request
from tests.servers import ROOT, Server, serving

MODELS = ("cgi", "zygote", "perlrun", "registry", "wsgi", "handler")
HELLO = ROOT / "apps" / "hello.py"
POOL = """
[pool.a]
Listen = ["http://127.0.0.1:0", "scgi://127.0.0.1:0"]
StartServers = 1
MaxServers = 1
Environment = ["OWN=of the pool, a=b", "PERL5LIB=/srv/lib"]
"""
OTHER = f"""
[[pool.a.Mount]]
Path = "/other"
Target = "{HELLO}"
Model = "registry"
Environment = {{ PATH = "/usr/bin" }}
"""


def row(name: str, value: str) -> bytes:
    """A variable as the page shows it."""
    return f"<dt>{name}</dt><dd>{value}</dd>".encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("environment")
    file = folder / "gateways.toml"
    mounts = [f'[[pool.a.Mount]]\nPath = "/{model}"\nTarget = "{HELLO}"\nModel = "{model}"\n' for model in MODELS]
    file.write_text("".join([POOL, *mounts, OTHER]))
    with serving(folder, "--config", str(file), bind=False) as started:
        yield started


@pytest.mark.parametrize("model", MODELS)
def test_every_model_shows_what_the_pool_says(server: Server, model: str) -> None:
    status, page = server.get(f"/{model}/env")
    assert status == 200
    lines = page.splitlines()
    assert row("OWN", "of the pool, a=b") in lines
    assert row("PERL5LIB", "/srv/lib") in lines
    assert row("GATEWAYS_MODE", model) in lines


def test_what_a_mount_says_replaces_what_its_pool_says(server: Server) -> None:
    lines = server.get("/other/env")[1].splitlines()
    assert row("PATH", "/usr/bin") in lines
    assert not [line for line in lines if line.startswith((b"<dt>OWN", b"<dt>PERL5LIB"))]


@pytest.mark.parametrize("model", MODELS)
def test_C03_a_front_cannot_say_otherwise(server: Server, model: str) -> None:
    variables = {"REQUEST_METHOD": "GET", "PATH_INFO": f"/{model}/env", "OWN": "evil", "PERL5LIB": "/evil"}
    pairs = [(name.encode(), value.encode()) for name, value in variables.items()]
    lines = server.exchange(request(pairs), "scgi").splitlines()
    assert row("OWN", "of the pool, a=b") in lines
    assert not [line for line in lines if b"evil" in line]
