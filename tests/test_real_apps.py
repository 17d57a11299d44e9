"""A Flask site and a Django site, unchanged, through every gateway, at the root and below a path."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from site import getsitepackages

import pytest

from tests.behind import Place, lack, serve_behind, start_by
from tests.browser import Browser, Page, Upload
from tests.fronts import find_python, open_folder
from tests.servers import ROOT

FLASK = ROOT / "apps" / "flask_site.py"
DJANGO = ROOT / "apps" / "django_site"
USER, PASSWORD = "keeper", "a word of passage"
MIB = 1 << 20
LARGE = 50 * MIB
GROWTH = 40 * MIB
"""How much more memory than before the upload a worker may have held: less than the file."""

POOL = f"""
[pool.sites]
Listen = "{{listen}}"
StartServers = 2
MinSpareServers = 2
MaxSpareServers = 2
MaxServers = 2
PythonPath = "{DJANGO}"
"""
TARGETS = {"flask": str(FLASK), "django": "portal.wsgi:application"}
WAYS = [
    ("", "http"),
    ("nginx", "fastcgi"),
    ("lighttpd", "scgi"),
    ("apache", "ajp"),
    ("apache", "uwsgi"),
    ("apache", "cgi"),
]


# Serving.


@pytest.fixture(scope="module", autouse=True)
def data() -> Iterator[None]:
    """Both frameworks, and a database with one user who may use the admin."""
    missing = [name for name in ("flask", "django") if importlib.util.find_spec(name) is None]
    if missing:
        lack(f"{' and '.join(missing)} not installed: pip install 'gateways[apps]'")
    with tempfile.TemporaryDirectory(prefix="gateways-") as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder).chmod(0o777)
        patch.setenv("DJANGO_SITE_DATA", folder)
        patch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
        for words in (
            ["migrate"],
            ["createsuperuser", "--noinput", "--username", USER, "--email", "keeper@example.org"],
        ):
            subprocess.run([sys.executable, str(DJANGO / "manage.py"), *words, "-v", "0"], check=True, timeout=60)
        for path in Path(folder).iterdir():
            path.chmod(0o666)
        yield


def format_pool(targets: dict[str, str], mounts: Sequence[tuple[str, str]]) -> str:
    """A configuration that serves (site, prefix) pairs."""
    return POOL + "".join(
        f'[[pool.sites.Mount]]\nPath = "{prefix}/"\nTarget = "{targets[site]}"\n' for site, prefix in mounts
    )


SEEN = os.pathsep.join((str(ROOT), *getsitepackages()))
"""The folders from which a CGI script imports: ours, and where the frameworks are."""


def find_able_python() -> str:
    """An interpreter that a front's user may run, and that finds the frameworks."""
    python = find_python()
    done = subprocess.run(
        [python, "-c", "import django, flask, gateways"], env={"PYTHONPATH": SEEN}, cwd="/", capture_output=True,
        timeout=60, check=False,
    )  # fmt: skip
    if done.returncode:
        lack(f"{python} does not find what the tests' own interpreter finds: run them as another user than root")
    return python


def write_script(folder: Path, site: str, python: str) -> Path:
    """The CGI script that is a site, as a web server starts it."""
    variables = (f"PYTHONPATH={SEEN}", f"DJANGO_SITE_DATA={os.environ['DJANGO_SITE_DATA']}")
    words = shlex.join(["env", *variables, python, "-m", "gateways", "cgi", TARGETS[site]])
    script = folder / f"{site}.cgi"
    script.write_text(f"#!/bin/sh\ncd {shlex.quote(str(DJANGO))} && exec {words}\n")
    script.chmod(0o755)
    return script


@contextmanager
def run_as_cgi(front: str, mounts: Sequence[tuple[str, str]]) -> Iterator[Place]:
    """Sites as CGI scripts that a front starts."""
    python = find_able_python()
    with open_folder() as folder:
        targets = {site: str(write_script(folder, site, python)) for site, _ in mounts}
        with start_by(format_pool(targets, mounts), front, "cgi") as place:
            yield place


def serve_sites(way: tuple[str, str], mounts: Sequence[tuple[str, str]]) -> AbstractContextManager[Place]:
    """Sites as a way serves them."""
    front, wire = way
    if wire == "cgi":
        return run_as_cgi(front, mounts)
    return serve_behind(format_pool(TARGETS, mounts), front, wire, stream=True)


class Site:
    """One site at one path, and someone who visits it."""

    def __init__(self, name: str, prefix: str, place: Place) -> None:
        self.name = name
        self.prefix = prefix
        self.place = place
        self.browser = Browser(place.authority)

    @property
    def url(self) -> str:
        """Where the site is, as a visitor writes it."""
        return f"http://{self.place.authority}{self.prefix}"

    def get(self, path: str) -> Page:
        """GET of a page of the site."""
        return self.browser.get(self.prefix + path)


def name_way(way: tuple[str, str]) -> str:
    """``apache-ajp``, or ``direct``."""
    return "-".join(way) if way[0] else "direct"


def list_cases(*sites: str) -> list[object]:
    """Some sites, each at the root and below a path, each way; what shares a server stands together."""
    cases: list[object] = []
    for way in WAYS:
        marks = [pytest.mark.front(way[0])] if way[0] else []
        for mounts in (("flask", ""),), (("django", ""),), (("flask", "/app/flask"), ("django", "/app/django")):
            cases += [
                pytest.param((way, mounts), mount, marks=marks, id=f"{mount[0]}{mount[1][:4]}-{name_way(way)}")
                for mount in mounts
                if mount[0] in sites
            ]
    return cases


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    way, mounts = request.param
    with serve_sites(way, mounts) as made:
        yield made


@pytest.fixture
def site(request: pytest.FixtureRequest, place: Place) -> Site:
    name, prefix = request.param
    return Site(name, prefix, place)


def every(*sites: str) -> pytest.MarkDecorator:
    """A test runs for each case of ``list_cases``."""
    return pytest.mark.parametrize(("place", "site"), list_cases(*sites), indirect=True, scope="module")


# Visits.


@every("flask", "django")
def test_the_site_knows_where_it_is(site: Site) -> None:
    page = site.get("/where?a=b%20c&d=")
    assert page.status == 200
    assert page.json == {
        "url": f"{site.url}/where?a=b%20c&d=",
        "root": site.prefix,
        "path": "/where",
        "link": f"{site.url}/where",
        "query": {"a": "b c", "d": ""},
        "client": "127.0.0.1",
    }


@every("flask", "django")
def test_a_redirect_leads_to_the_site(site: Site) -> None:
    moved = site.get("/moved")
    assert (moved.status, moved.location) == (301, f"{site.prefix}/where?moved=yes")
    assert site.browser.get(moved.location).json["query"] == {"moved": "yes"}
    absolute = site.get("/moved/absolute")
    assert (absolute.status, absolute.location) == (302, f"{site.url}/where")


@every("flask", "django")
def test_every_link_of_the_first_page_is_the_sites(site: Site) -> None:
    links = site.get("/").find_links()
    assert len(links) >= 7
    assert all(link.startswith(f"{site.prefix}/") for link in links)


@every("flask")
def test_flask_a_login_lasts_until_the_logout(site: Site) -> None:
    assert site.get("/members").location == f"{site.prefix}/login"
    page = site.browser.post(f"{site.prefix}/login", {"name": "Zo\u00eb & Co", "password": "flask"})
    assert (page.status, page.location) == (302, f"{site.prefix}/members")
    assert "Logged in as Zo\u00eb &amp; Co." in site.get("/members").text
    site.browser.post(f"{site.prefix}/logout", {})
    assert site.browser.cookies == {}
    assert site.get("/members").status == 302


@every("django")
def test_django_the_admin_lets_its_user_in(site: Site) -> None:
    admin = f"{site.prefix}/admin/"
    sent_away = site.browser.get(admin)
    assert (sent_away.status, sent_away.location) == (302, f"{admin}login/?next={admin}")
    form = site.browser.get(sent_away.location)
    style = re.findall(r'<link rel="stylesheet" href="([^"]*)"', form.text)
    assert style
    assert all(link.startswith(f"{site.prefix}/static/admin/") for link in style)
    filled = {**form.find_hidden(), "username": USER, "password": PASSWORD}
    forged = site.browser.post(sent_away.location, {**filled, "csrfmiddlewaretoken": "x" * 64})
    assert forged.status == 403
    entered = site.browser.post(sent_away.location, filled)
    assert (entered.status, entered.location) == (302, admin)
    assert set(site.browser.cookies) == {"csrftoken", "sessionid"}
    page = site.browser.get(admin)
    assert f"<strong>{USER}</strong>" in page.text
    assert f"{admin}auth/user/" in page.find_links()


@every("flask", "django")
def test_a_file_is_sent_whole(site: Site) -> None:
    path, file = "/source", FLASK
    if site.name == "django":
        import django.contrib.admin

        inner = "admin/css/base.css"
        path, file = f"/static/{inner}", Path(django.contrib.admin.__file__).parent / "static" / inner
    assert site.get(path).body == file.read_bytes()


def read_peak(pid: int) -> int:
    """The most memory that a process has held, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+([0-9]+) kB", status)[0]) * 1024


@pytest.fixture(scope="module")
def upload() -> Upload:
    return Upload(LARGE)


@every("flask", "django")
def test_a_form_with_a_file_of_50_mib(site: Site, upload: Upload) -> None:
    form = site.get("/upload")
    server = site.place.server
    before = {pid: read_peak(pid) for pid in server.workers()} if server else {}
    page = site.browser.send(f"{site.prefix}/upload", upload, {**form.find_hidden(), "title": "Large"})
    assert page.status == 200, page.text
    assert page.json == {"title": "Large", "name": "large.bin", "length": LARGE, "sha256": upload.sha256}
    for pid, peak in before.items():
        assert read_peak(pid) - peak < GROWTH, "a worker held the file"


@every("flask", "django")
def test_an_answer_arrives_as_it_is_made(site: Site) -> None:
    """All of it would take a minute, which is longer than a browser waits here."""
    with site.browser.open("GET", f"{site.prefix}/clock") as response:
        assert response.status == 200
        assert [response.readline() for _ in range(3)] == [b"tick 0\n", b"tick 1\n", b"tick 2\n"]
