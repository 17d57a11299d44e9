"""The pure parts of the audit: requests as written, links, templates, what a script reads, memory, values as texts."""

from __future__ import annotations

import json

import pytest

from gateways.audit.asked import FORM, AskedError, parse_har, read_request
from gateways.audit.describe import Description
from gateways.audit.job import Asked, Job, Record, Run, Rung, format_job, format_record, parse_job, parse_record
from gateways.audit.judge import judge_memory
from gateways.audit.links import list_links
from gateways.audit.locate import Source
from gateways.audit.reading import is_read_unset
from gateways.audit.templates import fits, learn

REQUESTS = [
    ("GET /x", Asked("GET", "/x")),
    ("/x?a=b", Asked("GET", "/x?a=b")),
    ("/x a=b", Asked("POST", "/x", (("Content-Type", FORM),), b"a=b")),
    ("POST /x a=b c=d", Asked("POST", "/x", (("Content-Type", FORM),), b"a=b&c=d")),
    ("GET /x Cookie:a=b", Asked("GET", "/x", (("Cookie", "a=b"),))),
    ("GET /x 'Cookie: a=b; c=d'", Asked("GET", "/x", (("Cookie", "a=b; c=d"),))),
    ("PUT /x @file", Asked("PUT", "/x", (("Content-Type", "application/octet-stream"),), b"<file>")),
    ("POST /x Content-Type:text/plain hi", Asked("POST", "/x", (("Content-Type", "text/plain"),), b"hi")),
    ("POST /x a=\udce9", Asked("POST", "/x", (("Content-Type", FORM),), b"a=\xe9")),  # a byte that is no UTF-8
    ("""POST /x '{"a": 1}'""", Asked("POST", "/x", (("Content-Type", "application/json"),), b'{"a": 1}')),
]


@pytest.mark.parametrize(("text", "asked"), REQUESTS, ids=[row[0] for row in REQUESTS])
def test_a_request_as_a_person_writes_it(text: str, asked: Asked) -> None:
    assert read_request(text, lambda path: f"<{path}>".encode()) == asked


@pytest.mark.parametrize("text", ["", "GET", "get /x", "GET x", "GET 'x", "GET /\x7f"])
def test_what_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(AskedError):
        read_request(text)


def make_entry(method: str, url: str, **more: object) -> dict[str, object]:
    return {"request": {"method": method, "url": url, "headers": [], **more}}


def test_a_recording_gives_the_requests_to_its_main_origin() -> None:
    headers = [{"name": name, "value": "v"} for name in (":authority", "Host", "Cookie", "Accept-Encoding")]
    entries = [
        make_entry("GET", "https://a.example/x?y=1", headers=headers),
        make_entry("POST", "https://a.example", postData={"text": "a=b"}),
        make_entry("GET", "https://other.example/"),
    ]
    found = parse_har(json.dumps({"log": {"entries": entries}}))
    assert found == [Asked("GET", "/x?y=1", (("Cookie", "v"),)), Asked("POST", "/", (), b"a=b")]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"log": {"entries": []}}', '{"log": {"entries": [{"request": 1}]}}'])
def test_what_is_no_recording_is_refused(text: str) -> None:
    with pytest.raises(AskedError):
        parse_har(text)


def test_a_recorded_body_that_is_no_text_is_refused() -> None:
    entries = [make_entry("POST", "https://a.example/", postData={"text": "\ud800"})]
    with pytest.raises(AskedError, match="a request of the recording is not as HAR"):
        parse_har(json.dumps({"log": {"entries": entries}}))


LINKS = [
    ('<a href="two">', "/a/one", ["/a/two"]),
    ('<base href="/b/"><a href="two">', "/a/one", ["/b/two"]),
    ('<a href="?q=1#x"><a href="?q=1">', "/a", ["/a?q=1"]),
    ('<a href="http://localhost/x"><a href="https://elsewhere/">', "/", ["/x"]),
    ('<a href="mailto:me"><a href="javascript:x()"><a href="http://[">', "/", []),
    ('<form action="/find"><form action="/change" method="post"></form>', "/", ["/find"]),
    ('<a href="/logout"><a href="/sign_out"><a href="/blogout">', "/", ["/blogout"]),
    ('<a href="/h\u00e9 llo">', "/", ["/h%C3%A9%20llo"]),
]


@pytest.mark.parametrize(("html", "target", "found"), LINKS, ids=[row[0] for row in LINKS])
def test_the_links_of_a_page(html: str, target: str, found: list[str]) -> None:
    assert list_links(html, target) == found


TEMPLATES = [
    ("equal", [b"one two"], b"one two", True),
    ("other", [b"one two"], b"one three", False),
    ("longer", [b"one"], b"one two", False),
    ("a process id", [b"pid 12 ok", b"pid 713 ok"], b"pid 9999 ok", True),
    ("no digits where digits were", [b"pid 12 ok", b"pid 713 ok"], b"pid x ok", False),
    ("a secret beside a clock", [b"12:00 no secret", b"12:01 no secret"], b"12:02 the secret", False),
    ("too much in a gap", [b"a 1x b", b"a 2y b"], b"a " + b"z" * 99 + b" b", False),
    ("two gaps", [b"<i>1</i><b>x1</b>", b"<i>2</i><b>x2</b>"], b"<i>33</i><b>x9</b>", True),
    ("at both ends", [b"1 mid 2", b"3 mid 4"], b"5 mid 6", True),
    ("nothing", [b"", b"1"], b"2", True),
]


@pytest.mark.parametrize(("samples", "data", "expected"), [row[1:] for row in TEMPLATES], ids=[r[0] for r in TEMPLATES])
def test_what_a_template_admits(samples: list[bytes], data: bytes, expected: bool) -> None:
    template = learn(samples)
    assert all(fits(template, sample) for sample in samples)
    assert fits(template, data) is expected


READ = [
    ("set at the top", "x = 1\nprint(x)", False),
    ("set in a branch, read after it", "if a:\n    x = 1\nprint(x)", True),
    ("set and read in a branch", "if a:\n    x = 1\n    print(x)", False),
    ("the variable of a loop", "for x in a:\n    print(x)", False),
    ("the variable of a loop, after it", "for x in a:\n    pass\nprint(x)", True),
    ("asked for by name", "if a:\n    x = 1\nif 'x' in globals():\n    pass", True),
    ("added to", "x = x + 1", True),
    ("added to in place", "try:\n    x += 1\nexcept NameError:\n    x = 1", True),
    ("set at the top, read in a function", "def f():\n    return x\nx = 1\nf()", False),
    ("set in a branch, read in a function", "def f():\n    return x\nif a:\n    x = 1\nf()", True),
    ("never read", "if a:\n    x = 1", False),
    ("imported", "import x\nx.y()", False),
    ("not Python", "x = (", True),
]


@pytest.mark.parametrize(("source", "expected"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_whether_a_name_is_read_unset(source: str, expected: bool) -> None:
    assert is_read_unset(source.encode(), "x") is expected


MEMORY = [
    ("steady", [(48, 1000, 0), (144, 1000, 0), (336, 1001, 0)], False),
    ("a cache that fills", [(48, 1000, 0), (144, 1300, 0), (336, 1330, 0)], False),
    ("a cache that fills later", [(48, 1000, 0), (144, 1300, 0), (336, 1900, 0), (720, 2000, 0)], False),
    ("objects", [(48, 1000, 0), (144, 1300, 0), (336, 1900, 0), (720, 3100, 0)], True),
    ("large objects", [(48, 0, 0), (144, 0, 96 << 16), (336, 0, 288 << 16), (720, 0, 672 << 16)], True),
    ("not looked at often enough", [(48, 1000, 0), (144, 1300, 0), (336, 1900, 0)], False),
]


@pytest.mark.parametrize(("looks", "grows"), [row[1:] for row in MEMORY], ids=[row[0] for row in MEMORY])
def test_growth_is_told_from_a_cache(looks: list[tuple[int, int, int]], grows: bool) -> None:
    assert bool(judge_memory(Run(Rung("wsgi"), memory=looks))) is grows


class Loud:
    """An object whose own code must not be run."""

    def __init__(self) -> None:
        self.inner = [1]

    def __repr__(self) -> str:
        raise AssertionError

    @property
    def __class__(self) -> type:
        raise AssertionError


def describe(value: object) -> str:
    return Description(value, lambda kind: kind is Loud, identity=False).text


def test_values_are_described_without_running_their_code() -> None:
    cyclic: list[object] = []
    cyclic.append(cyclic)
    assert describe({"a": [1, (2, {3, "x"})]}) == "{'a': [1, (2, {'x', 3})]}"
    assert describe(Loud()) == "Loud('inner': [1])"
    assert describe(cyclic) == "[...]"
    assert describe("x" * 200) != describe("x" * 201)
    assert len(describe(list(range(100_000)))) < 100


def test_a_name_is_resolved_through_imports() -> None:
    source = Source("x.py", b"import os as o\nfrom sys import path as p\ndef f():\n    o.umask(0)\n    p.append('x')\n")
    calls = {(site.dotted, site.line) for site in source.sites if site.what == "call"}
    assert {("os.umask", 4), ("sys.path.append", 5)} <= calls


def test_a_job_and_a_record_survive_their_file() -> None:
    job = Job(
        ("script", "/x", ""),
        Rung("registry", "shared"),
        (Asked("POST", "/", (("A", "b"),), b"\xff"),),
        (0, 0),
        "r",
        "f",
    )
    assert parse_job(format_job(job)) == job
    record = Record(0, 0, "200 OK", [("A", "b")], b"\xff\0", 2, changes=[("umask", "umask", "022", "000", 0)])
    assert parse_record(json.loads(format_record(record))) == record
