"""The shop: the same pages from every store, and a session for whoever comes without one."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from werkzeug.test import Client

from apps.shop.products import format_line, make_products
from apps.shop.site import Site, read_cookie
from apps.shop.stores import Store, open_store
from bench.databases import DATABASES, find_missing
from tests.fronts import open_folder
from tests.servers import DEADLINE, ROOT, serving

PLACES = {
    "dbm": "dbm:{folder}/dbm", "sqlite": "sqlite:{folder}/shop.sqlite", "mysql": "mysql:{folder}/database/socket",
    "postgresql": "postgresql:{folder}/database",
}  # fmt: skip


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a store with the sample data; a database runs for as long as it is needed."""
    kind = request.param
    if kind in DATABASES and (missing := find_missing(kind)):
        if os.environ.get("CI") == "true":
            pytest.fail(f"{kind} is {missing}, and CI=true", pytrace=False)
        pytest.skip(f"{kind} is {missing}")
    with open_folder() as folder:
        name = PLACES[kind].format(folder=folder)
        fill = [sys.executable, "-m", "apps.shop", "fill", name]
        if kind not in DATABASES:
            subprocess.run(fill, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            yield name
            return
        beside = f"{sys.executable} -c 'print(\"ready\", flush=True); input()'"
        command = [sys.executable, "-m", "bench.databases", kind, str(folder / "database"), " ".join(fill), beside]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            said = [line for line in iter(process.stdout.readline, "ready\n") if line]
            assert "500 products" in said[-1], said
            yield name
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=DEADLINE)
        assert process.returncode == 0


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    opened = open_store(place)
    opened.zero()
    yield opened
    opened.close()


def test_a_store_has_the_sample_data_by_code(store: Store) -> None:
    assert store.read_products() == make_products()


def test_a_store_keeps_sessions_until_they_are_zeroed(store: Store) -> None:
    store.create_session("a" * 32, '{"x": "\'é"}')
    store.create_session("b" * 32, "2")
    assert store.read_session("a" * 32) == '{"x": "\'é"}'
    assert store.read_session("c" * 32) is None
    assert store.count_sessions() == 2
    store.zero()
    assert store.count_sessions() == 0
    assert len(store.read_products()) == 500


def test_every_request_without_a_session_begins_one(place: str, store: Store) -> None:
    site = Site(place)
    client = Client(site, use_cookies=False)
    first = client.get("/blank")
    client.get("/dbtest")
    assert store.count_sessions() == 2
    cookie = first.headers["Set-Cookie"]
    assert re.fullmatch(r"session=[0-9a-f]{32}; Path=/; HttpOnly; SameSite=Lax", cookie)
    again = client.get("/session", headers={"Cookie": cookie.partition(";")[0]})
    assert store.count_sessions() == 2
    assert "Set-Cookie" not in again.headers
    made_up = client.get("/session", headers={"Cookie": "session=" + "0" * 32})
    assert "Set-Cookie" in made_up.headers
    site.close()


def test_the_test_page_has_a_line_for_each_product(place: str) -> None:
    site = Site(place)
    body = Client(site).get("/dbtest").data.decode()
    site.close()
    assert body.count("\n") == 500 + 4
    assert "os00001 Saw, small, no. 1 80.19\n" in body
    assert hashlib.md5(body.encode()).hexdigest() == "efd1ecaf16f1bb8496b17e5bf04e8158"


def test_many_workers_share_a_store(place: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_STORE", place)
    words = ("--process-manager", "static", "--start-servers", "3", "--max-servers", "3")
    with serving(tmp_path, "apps.shop.site:application", *words) as server, ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: server.get("/blank")[0], range(30)))
    assert answers == [200] * 30
    assert store.count_sessions() == 30


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("session=" + "a" * 32, "a" * 32), ("a=b; session=" + "0" * 32 + "; c=d", "0" * 32), ("", ""), ("session=", ""),
        ("session=' OR 1=1 --", ""), ("session=" + "A" * 32, ""), ("session=" + "a" * 33, ""), ("\x00=;;=", ""),
        ("session=../../etc/passwd", ""),
    ],
)  # fmt: skip
def test_only_a_name_of_ours_is_looked_up(field: str, name: str) -> None:
    assert read_cookie(field) == name


@pytest.mark.parametrize(("path", "method", "status"), [("/", "GET", 404), ("/blank", "POST", 405)])
def test_what_the_shop_has_not_is_refused(tmp_path: Path, path: str, method: str, status: int) -> None:
    assert Client(Site(f"sqlite:{tmp_path}/s")).open(path, method=method).status_code == status


@pytest.mark.parametrize("name", ["", "sqlite", "sqlite:", "tape:x", "dbm"])
def test_a_store_that_is_none_is_named(name: str) -> None:
    with pytest.raises(ValueError, match="KIND:PLACE"):
        open_store(name)


def test_products_are_lines_of_code_description_and_price() -> None:
    assert format_line(make_products(2)[1]) == "os00001 Saw, small, no. 1 80.19\n"
    assert len({product.code for product in make_products()}) == 500


def test_a_database_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.databases", "oracle", str(tmp_path), "true"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "mysql|postgresql" in done.stderr
    assert all(find_missing(name) == "" or "apt-get install" in find_missing(name) for name in DATABASES)
