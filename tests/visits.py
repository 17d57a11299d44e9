"""What people do with the programs of ``conf/real``: one function each, the same for every gateway.

A visit may be paid several times to the same data.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import tarfile
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.behind import Place
from tests.browser import Browser, Page, Upload
from tests.real import DEADLINE, format_environment

TEXT = "Zoë & <co>"
ESCAPED = "Zoë &amp; &lt;co&gt;"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
LENGTH = 200_000
"""Of a file that is uploaded, or pushed."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody at a program. ``prefix``: its mount's path; ``folder``: what stands for /srv; ``own``: the visitor's."""

    place: Place
    prefix: str
    folder: Path
    own: Path
    browser: Browser

    @property
    def url(self) -> str:
        return f"http://{self.place.authority}{self.prefix}"

    def get(self, path: str, status: int = 200) -> Page:
        """A page of the program, which must have that status."""
        page = self.browser.get(self.prefix + path)
        assert page.status == status, f"{page.status} for {path}: {page.body[:500]!r}"
        return page

    def run(self, *words: str | Path, folder: Path | None = None) -> str:
        """Run a command of the visitor's; return what it prints."""
        done = subprocess.run(
            words, cwd=folder or self.own, env=format_environment(self.own), capture_output=True, timeout=DEADLINE,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout.decode()}{done.stderr.decode()}"
        return done.stdout.decode().strip()


# Repositories.


def push_with_git(visit: Visit, bare: Path) -> tuple[str, bytes]:
    """Push a commit to a repository; return its name, and a file that it has."""
    clone = visit.own / "clone"
    content = os.urandom(LENGTH)
    visit.run("git", "clone", "--quiet", bare, clone)
    (clone / "data").write_bytes(content)
    visit.run("git", "add", "data", folder=clone)
    author = ["-c", "user.name=Zoë", "-c", "user.email=zoe@example.org"]
    visit.run("git", *author, "commit", "--quiet", "--message", TEXT, folder=clone)
    visit.run("git", "push", "--quiet", "origin", "HEAD:main", folder=clone)
    return visit.run("git", "rev-parse", "HEAD", folder=clone), content


def read_member(archive: bytes) -> bytes:
    """The file ``data`` of a tar.gz."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        (member,) = [member for member in tar if member.name.endswith("/data")]
        file = tar.extractfile(member)
        assert file is not None
        return file.read()


def visit_gitweb(visit: Visit) -> None:
    commit, content = push_with_git(visit, visit.folder / "gitweb" / "notes.git")
    assert f'href="{visit.prefix}?p=notes.git;a=summary"' in visit.get("").text
    assert ESCAPED in visit.get("?p=notes.git;a=summary").text
    page = visit.get(f"?p=notes.git;a=commit;h={commit}").text
    assert ESCAPED in page
    assert "Zoë" in page
    assert visit.get(f"?p=notes.git;a=blob_plain;f=data;hb={commit}").body == content
    assert read_member(visit.get(f"?p=notes.git;a=snapshot;h={commit};sf=tgz").body) == content
    assert "No such project" in visit.get("?p=nothing.git;a=summary", 404).text


def visit_cgit(visit: Visit) -> None:
    commit, content = push_with_git(visit, visit.folder / "cgit" / "notes.git")
    assert f"href='{visit.prefix}/notes.git/'" in visit.get("/").text
    assert ESCAPED in visit.get("/notes.git/log/").text
    assert ESCAPED in visit.get(f"/notes.git/commit/?id={commit}").text
    assert visit.get(f"/notes.git/plain/data?id={commit}").body == content
    assert read_member(visit.get(f"/notes.git/snapshot/notes-{commit}.tar.gz").body) == content
    visit.run("git", "clone", "--quiet", f"{visit.url}/notes.git", "cloned")
    assert visit.run("git", "rev-parse", "HEAD", folder=visit.own / "cloned") == commit
    visit.get("/nothing.git/", 404)


def visit_hgweb(visit: Visit) -> None:
    url = f"{visit.url}/notes"
    visit.run("hg", "clone", "--quiet", url, "clone")
    clone = visit.own / "clone"
    content = os.urandom(LENGTH)
    (clone / "data").write_bytes(content)
    visit.run("hg", "commit", "--quiet", "--addremove", "--user", "Zoë", "--message", TEXT, folder=clone)
    visit.run("hg", "push", "--quiet", folder=clone)
    node = visit.run("hg", "log", "--rev", ".", "--template", "{node}", folder=clone)
    assert ESCAPED in visit.get("/notes/log").text
    page = visit.get(f"/notes/rev/{node[:12]}").text
    assert ESCAPED in page
    assert f'href="{visit.prefix}/notes/file/{node[:12]}/data"' in page
    assert visit.get(f"/notes/raw-file/{node}/data").body == content
    visit.get("/notes/rev/eeeeeeeeeeee", 404)


# Trackers and wikis.


def check_download(page: Page, upload: Upload) -> None:
    assert page.status == 200
    assert (len(page.body), hashlib.sha256(page.body).hexdigest()) == (upload.size, upload.sha256)


def strip_tags(text: str) -> str:
    """What of a page is to be read."""
    return re.sub(r"(<[^>]*>|\s)+", " ", text)


def visit_roundup(visit: Visit) -> None:
    home = visit.prefix.removesuffix("/bugs") + "/bugs/"
    browser = visit.browser
    assert b"font-family" in browser.get(f"{home}@@file/style.css").body
    wrong = browser.fill(home, "__login_name", {"__login_name": "admin", "__login_password": "no"})
    assert "Invalid login" in wrong.text
    page = browser.fill(home, "__login_name", {"__login_name": "admin", "__login_password": "a word of passage"})
    assert "Hello, admin" in strip_tags(page.text)
    upload = Upload(LENGTH, "@file")
    page = browser.fill(
        f"{home}issue?@template=item", "@note", {"title": TEXT, "priority": "3", "@note": "See the file."}, upload
    )
    assert "issue" in page.text
    (number,) = re.findall(r"issue (\d+) created", strip_tags(page.text))
    issue = browser.get(f"{home}issue{number}").text
    assert ESCAPED in issue
    (file,) = set(re.findall(r'href="(file\d+/large.bin)"', issue))
    check_download(browser.get(home + file), upload)
    assert ESCAPED in browser.get(f"{home}issue?@search_text=file&@columns=id,title").text
    browser.get(f"{home}?@action=logout")
    assert "Hello, admin" not in strip_tags(browser.get(home).text)


def visit_trac(visit: Visit) -> None:
    browser = visit.browser
    assert "Welcome to Trac" in visit.get("/wiki").text
    assert b"#content" in visit.get("/chrome/common/css/trac.css").body
    page = browser.fill(
        f"{visit.prefix}/newticket",
        "field_summary",
        {"field_summary": TEXT, "field_description": "=== See", "submit": "x"},
    )
    assert ESCAPED in page.text
    (number,) = re.findall(r"<title>\s*#(\d+) ", page.text)
    upload = Upload(LENGTH, "attachment")
    page = browser.fill(
        f"{visit.prefix}/attachment/ticket/{number}/?action=new", "description", {"description": "A file"}, upload
    )
    assert page.status == 200, page.text
    check_download(visit.get(f"/raw-attachment/ticket/{number}/large.bin"), upload)
    wiki = f"{visit.prefix}/wiki/Notes{number}"
    page = browser.fill(f"{wiki}?action=edit", "text", {"text": f"= {TEXT} =", "save": "x"})
    assert ESCAPED in page.text
    visit.get("/ticket/999999", 404)


def visit_usemod(visit: Visit) -> None:
    title = "Notes_" + os.urandom(4).hex().upper()
    text = "'''naïve & <co>'''\n\nHomePage\n"
    page = visit.browser.fill(f"{visit.prefix}?action=edit&id={title}", "text", {"text": text})
    assert page.status == 200, page.text
    shown = visit.get(f"?{title}").text
    assert "<strong>naïve &amp; &lt;co&gt;</strong>" in shown
    assert f'href="{visit.prefix.strip("/")}?HomePage"' in shown
    visit.browser.fill(f"{visit.prefix}?action=edit&id={title}", "text", {"text": text.replace("naïve", "naiv")})
    assert "naïve" in visit.get(f"?action=browse&diff=1&id={title}").text
    assert title in visit.get("?RecentChanges").text
    assert title in visit.get("?" + urllib.parse.urlencode({"search": "naiv & <co>"})).text.replace(" ", "_")


# Pages that are looked at.


def visit_man2html(visit: Visit) -> None:
    found = visit.get("/mansearch?query=cgitrc").text
    assert "Search Results" in found
    (link,) = set(re.findall(r'HREF="(/cgi-bin/man/man2html[^"]*cgitrc[^"]*)"', found))
    page = visit.browser.get(link).text
    assert "enable-http-clone" in page
    assert "</HTML>" in page
    assert f"{visit.prefix}/man2html" in visit.get("/man2html").text
    assert "no such page" in visit.get("/man2html?no-such-page", 404).text.lower().replace("-", " ")


def visit_awstats(visit: Visit) -> None:
    """Programs that fetch pages are no visitors to it, so somebody visits with what calls itself a browser."""
    path = f"/size/{int.from_bytes(os.urandom(3)) % 90_000 + 10_000}"
    for _ in range(7):
        assert visit.browser.ask("GET", path, fields={"User-Agent": BROWSER}).status == 200
    where = {"config": "site", "configdir": visit.folder / "awstats", "framename": "mainright"}
    visit.get("?" + urllib.parse.urlencode({**where, "update": "1"}))
    page = visit.get("?" + urllib.parse.urlencode({**where, "output": "urldetail"})).text
    (row,) = re.findall(rf'<tr><td[^>]*><a href="http://localhost{path}".*?</tr>', page)
    assert re.findall(r"<td>([0-9.]+)", row)[0] == "7"


# Calendars.

EVENT = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//example.org//notes//EN\r\nBEGIN:VEVENT\r\nUID:{uid}\r\n"
    "DTSTAMP:20260101T000000Z\r\nDTSTART:20260102T100000Z\r\nSUMMARY:Zoë\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)
QUERY = (
    '<C:calendar-query xmlns:C="urn:ietf:params:xml:ns:caldav" xmlns:D="DAV:"><D:prop><D:getetag/><C:calendar-data/>'
    '</D:prop><C:filter><C:comp-filter name="VCALENDAR"/></C:filter></C:calendar-query>'
)


def visit_radicale(visit: Visit) -> None:
    from base64 import b64encode

    known = {"Authorization": "Basic " + b64encode(b"zoe:a word of passage").decode()}
    calendar = f"{visit.prefix}/zoe/{os.urandom(4).hex()}/"

    def ask(method: str, target: str, text: str = "", status: int = 207, **fields: str) -> Page:
        data = text.encode()
        kind = "text/calendar" if method == "PUT" else "application/xml" if data else ""
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        page = visit.browser.ask(method, target, [data], len(data), kind, {**known, **named})
        assert page.status == status, page.text
        return page

    assert visit.browser.ask("PROPFIND", calendar).status == 401
    ask("MKCALENDAR", calendar, status=201)
    tag = ask("PUT", f"{calendar}1.ics", EVENT.format(uid="1@example.org"), 201).headers["ETag"]
    ask("PUT", f"{calendar}1.ics", EVENT.format(uid="1@example.org"), 412, If_None_Match="*")
    listed = ask("PROPFIND", calendar, Depth="1").text
    assert f"<href>{calendar}1.ics</href>" in listed
    report = ask("REPORT", calendar, QUERY, Depth="1").text
    assert "SUMMARY:Zoë" in report
    assert tag.strip('"') in report
    assert "UID:1@example.org" in ask("GET", f"{calendar}1.ics", status=200).text
    ask("DELETE", f"{calendar}1.ics", status=200, If_Match=tag)
    ask("GET", f"{calendar}1.ics", status=404)


VISITS: dict[str, Callable[[Visit], None]] = {
    "awstats": visit_awstats,
    "cgit": visit_cgit,
    "gitweb": visit_gitweb,
    "hgweb": visit_hgweb,
    "man2html": visit_man2html,
    "radicale": visit_radicale,
    "roundup": visit_roundup,
    "trac": visit_trac,
    "usemod": visit_usemod,
}

TALKS = {
    "man2html": "man2html: ended with exit status 1",
    "radicale": r"\] \[(INFO|WARNING)\] ",
}
"""What a program says on its standard error when all is well."""
