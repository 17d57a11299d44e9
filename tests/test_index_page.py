"""The index page: valid, self-contained HTML that links every page of every mount and escapes what it shows."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from gateways.config.directives import MODELS
from gateways.config.reader import read_settings
from gateways.config.settings import PoolSettings
from gateways.execution.index import LADDER, ORDER, STEPS, IndexModel, format_index, make_rows
from tests.exchanges import FakeExchange, make_request

ROOT = Path(__file__).resolve().parent.parent
VOID = {"meta", "link", "input", "br"}
OPTIONAL_END = {"html"}


@pytest.fixture(scope="module")
def pool() -> PoolSettings:
    return read_settings(str(ROOT / "conf" / "modes.toml")).pools[0]


class Page(HTMLParser):
    """The page's links, its text, and its elements checked for balance."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def values(self, tag: str, name: str) -> list[str]:
        return [str(attrs[name]) for found, attrs in self.attributes if found == tag and name in attrs]


def get(pool: PoolSettings, method: str = "GET", target: str = "/", prefix: str = "") -> FakeExchange:
    exchange = FakeExchange(make_request(method, target))
    exchange.request.script_name = prefix
    model = IndexModel(make_rows(pool))
    model.load()
    model.run(exchange)
    model.close()
    return exchange


def test_every_page_of_every_mount_is_linked(pool: PoolSettings) -> None:
    page = Page(get(pool).body.decode())
    expected = [mount.path.rstrip("/") + name for mount in pool.mounts for name in mount.pages]
    assert page.values("a", "href") == expected
    assert "/cgi/gateway" in expected


def test_the_rungs_stand_in_the_order_of_the_ladder(pool: PoolSettings) -> None:
    import dataclasses

    turned = dataclasses.replace(pool, mounts=tuple(reversed(pool.mounts)))
    assert get(turned).body == get(pool).body
    assert list(MODELS) == ORDER


def test_links_stay_below_the_path_at_which_the_pool_is_reached(pool: PoolSettings) -> None:
    page = Page(get(pool, prefix="/outer").body.decode())
    assert all(link.startswith("/outer/") for link in page.values("a", "href"))
    assert all(link.startswith("/outer/") for link in page.values("button", "formaction"))


def test_the_form_has_a_button_for_each_mount_that_takes_a_body(pool: PoolSettings) -> None:
    page = Page(get(pool).body.decode())
    assert page.values("button", "formaction") == [f"/{model}/post" for model in MODELS]
    assert page.values("label", "for") == page.values("textarea", "id")


def test_no_form_without_such_a_mount(pool: PoolSettings) -> None:
    import dataclasses

    plain = dataclasses.replace(pool, mounts=tuple(dataclasses.replace(mount, pages=("/",)) for mount in pool.mounts))
    assert b"<form" not in get(plain).body


def test_the_page_needs_no_network_and_no_script(pool: PoolSettings) -> None:
    text = get(pool).body.decode()
    page = Page(text)
    assert "<script" not in text
    assert "url(" not in text
    assert "@import" not in text
    assert "://" not in text
    assert page.values("link", "href") == ["data:,"]
    assert "prefers-color-scheme: dark" in text
    assert page.values("meta", "name") == ["viewport"]


def test_the_page_tells_the_numbers_of_workers(pool: PoolSettings) -> None:
    words = " ".join(Page(get(pool).body.decode()).words.split())
    for name in ("StartServers", "MinSpareServers", "MaxSpareServers", "MaxServers", "MaxRequestsPerChild"):
        assert name in words
    assert "10,000 requests" in words


def test_B143_what_the_page_shows_is_escaped(pool: PoolSettings) -> None:
    import dataclasses

    evil = dataclasses.replace(pool.mounts[0], title="<script>\"'&", pages=("/?a=1&b=2",))
    text = get(dataclasses.replace(pool, mounts=(evil,)), prefix='/"><script>').body.decode()
    assert "<script>" not in text
    assert "&lt;script&gt;&quot;&#39;&amp;" in text
    assert Page(text).values("a", "href") == ['/"><script>/cgi/?a=1&b=2']


def test_no_folder_of_the_machine_is_shown(pool: PoolSettings) -> None:
    assert str(ROOT) not in get(pool).body.decode()


def test_every_model_does_less_than_the_one_before_it_or_something_else() -> None:
    counts = [row[1].count("x") for row in LADDER]
    assert counts == sorted(counts, reverse=True)
    assert all(len(row[1]) == len(STEPS) for row in LADDER)


ANSWERS = [
    ("GET", "/", "200 OK"), ("HEAD", "/", "200 OK"), ("GET", "/x", "404 Not Found"), ("POST", "/x", "404 Not Found"),
    ("POST", "/", "405 Method Not Allowed"), ("GET", "/favicon.ico", "404 Not Found"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "target", "status"), ANSWERS)
def test_only_the_root_is_the_index(pool: PoolSettings, method: str, target: str, status: str) -> None:
    exchange = get(pool, method, target)
    assert exchange.status == status
    assert ("Allow", "GET, HEAD") in exchange.fields or not status.startswith("405")


def test_a_pool_of_several_applications_names_none_in_its_title(pool: PoolSettings) -> None:
    import dataclasses

    from gateways.config.targets import Target

    other = dataclasses.replace(pool.mounts[0], target=Target("script", "/srv/other.py"), path="/other/")
    text = format_index(make_rows(dataclasses.replace(pool, mounts=(*pool.mounts, other))), "")
    assert "<title>Applications</title>" in text
