"""The pipeline: the same bytes in every setting, xsl:output honoured, nothing stale, nothing read from elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from apps.pipeline.caches import Cache, DiskCache, MemoryCache
from apps.pipeline.chain import Chain
from apps.pipeline.entries import Entry, format_entry, parse_entry
from apps.pipeline.files import Files
from apps.pipeline.middleware import Pipeline
from apps.pipeline.site import build
from tests.servers import ROOT, serving

XSL = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">{}</xsl:stylesheet>'
COPY = '<xsl:template match="@*|node()"><xsl:copy><xsl:apply-templates select="@*|node()"/></xsl:copy></xsl:template>'
OLD = 1_700_000_000


def write(path: Path, text: str, age: int = 0) -> Path:
    """Write a file that was changed long ago, so that its time says what it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (OLD - age, OLD - age))
    return path


def source(text: str, etag: str = "", content_type: str = "application/xml") -> Callable[..., Iterable[bytes]]:
    """An application that answers with a document."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        fields = [("Content-Type", content_type), ("X-Own", environ["QUERY_STRING"])]
        start_response("200 OK", fields + ([("ETag", etag)] if etag else []))
        return [text.encode()]

    return application


def client(
    folder: Path, *styles: str, text: str = "<a/>", cache: Cache | None = None, keeping: str = "steps", **more: Any
) -> Client:
    """A client of a pipeline of stylesheets, given as what is in their root elements."""
    paths = [str(write(folder / f"s{number}.xsl", XSL.format(style))) for number, style in enumerate(styles)]
    chain = Chain(Files(str(folder), more.pop("stamps", "mtime")), paths, cache, keeping)
    return Client(Pipeline(source(text, more.pop("etag", "")), chain, **more))


SETTINGS: list[tuple[str, str, str]] = [
    ("off", "", "mtime"), ("whole", "memory", "mtime"), ("steps", "memory", "mtime"), ("whole", "disk", "mtime"),
    ("steps", "disk", "mtime"), ("whole", "disk", "content"), ("steps", "memory", "content"),
]  # fmt: skip
HARD = {
    "text beside the root": ('<xsl:template match="/">a<b/>c</xsl:template>', COPY),
    "escaping disabled": (
        '<xsl:template match="/"><b><xsl:text disable-output-escaping="yes">&lt;i/&gt;</xsl:text></b></xsl:template>',
        '<xsl:template match="b"><c n="{count(i)}"/></xsl:template>',
    ),
    "indent of a middle step": ('<xsl:output indent="yes"/>' + COPY, COPY),
    "a middle step that says html": (
        '<xsl:output method="html" encoding="iso-8859-1"/><xsl:template match="/"><b>ü<br/></b></xsl:template>',
        COPY,
    ),
    "comments and instructions": (
        (
            '<xsl:template match="/"><xsl:comment>1</xsl:comment><xsl:processing-instruction name="p"/>'
            '<b x="1&#10;2&#13;"/></xsl:template>'
        ),
        COPY,
    ),
    "adjacent texts and a section": (
        (
            '<xsl:output cdata-section-elements="b"/>'
            '<xsl:template match="/"><b>x<xsl:text>y</xsl:text>&amp;</b></xsl:template>'
        ),
        (
            '<xsl:output cdata-section-elements="b"/>'
            '<xsl:template match="b"><b n="{count(text())}"><xsl:value-of select="."/></b></xsl:template>'
        ),
    ),
    "space and names": (
        '<xsl:template match="/"><b xmlns:n="urn:n" xml:space="preserve"> <n:c xml:id="i"/> </b></xsl:template>',
        '<xsl:strip-space elements="*"/>' + COPY + '<xsl:template match="c"><d/></xsl:template>',
    ),
}
"""What a tree in memory holds beside its document, or a step's own xsl:output would change."""


@pytest.mark.parametrize("case", HARD)
def test_the_bytes_are_the_same_whatever_is_kept(tmp_path: Path, case: str) -> None:
    bodies = set()
    for keeping, kind, stamps in SETTINGS:
        cache = {"": None, "memory": MemoryCache(), "disk": DiskCache(str(tmp_path / keeping / stamps))}[kind]
        asked = client(tmp_path / "s", *HARD[case], COPY, cache=cache, keeping=keeping, stamps=stamps)
        for _ in range(2):
            answer = asked.get("/")
            assert answer.status_code == 200, answer.data
            bodies.add((answer.data, answer.headers["Content-Type"]))
    assert len(bodies) == 1, bodies


@pytest.mark.parametrize("page", ["hello", "table"])
def test_the_sample_site_is_the_same_in_every_setting(tmp_path: Path, page: str) -> None:
    bodies = set()
    for keeping, kind, stamps in SETTINGS:
        store = {"": "memory", "memory": "memory", "disk": f"disk:{tmp_path}/{keeping}{stamps}"}[kind]
        variables = {"PIPELINE_CACHE": keeping, "PIPELINE_STORE": store, "PIPELINE_STAMPS": stamps}
        for change in ("", "0:1", "1:1", "2:1", "3:1", "3:2"):
            site = Client(build({**variables, "PIPELINE_CHANGE": change}))
            bodies |= {(answer.data, answer.headers["Content-Type"]) for answer in (site.get(f"/{page}"),) * 2}
    ((body, content_type),) = bodies
    assert content_type == "text/html; charset=iso-8859-1"
    assert body.startswith(b'<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01//EN"')


@pytest.mark.parametrize(
    ("output", "root", "content_type", "begin"),
    [
        ("", "<b>ü</b>", "text/xml; charset=UTF-8", b'<?xml version="1.0"?>\n<b>'),
        ("", "<HTML>ü</HTML>", "text/html; charset=UTF-8", b"<HTML>"),
        ('method="xml" omit-xml-declaration="yes"', "<html>ü</html>", "text/xml; charset=UTF-8", "<html>ü".encode()),
        ('method="html" encoding="iso-8859-1"', "<b>ü</b>", "text/html; charset=iso-8859-1", b"<b>\xfc"),
        ('method="text" encoding="utf-16"', "<b>ü</b>", "text/plain; charset=utf-16", "ü".encode("utf-16")),
        ('media-type="application/atom+xml"', "<b/>", "application/atom+xml; charset=UTF-8", b"<?xml"),
        ('method="html" doctype-system="a.dtd"', "<html/>", "text/html; charset=UTF-8",
         b'<!DOCTYPE html SYSTEM "a.dtd">'),
        ('encoding="utf-8" standalone="yes" doctype-system="b.dtd"', "<b/>", "text/xml; charset=utf-8",
         b'<?xml version="1.0" encoding="utf-8" standalone="yes"?>\n<!DOCTYPE b SYSTEM "b.dtd">'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("keeping", ["off", "steps"])
def test_the_last_steps_output_is_as_it_asks_for(
    tmp_path: Path, keeping: str, output: str, root: str, content_type: str, begin: bytes
) -> None:
    style = f'<xsl:output {output}/><xsl:template match="/">{root}</xsl:template>'
    asked = client(tmp_path, COPY, style, cache=MemoryCache(), keeping=keeping)
    for _ in range(2):
        answer = asked.get("/")
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, content_type)
        assert answer.data.startswith(begin)
        assert int(answer.headers["Content-Length"]) == len(answer.data)


def test_what_imports_counts_more_than_what_is_imported(tmp_path: Path) -> None:
    write(tmp_path / "i.xsl", XSL.format('<xsl:output method="html" media-type="text/a" encoding="iso-8859-1"/>'))
    write(tmp_path / "j.xsl", XSL.format('<xsl:output encoding="us-ascii"/>'))
    style = '<xsl:import href="i.xsl"/><xsl:output media-type="text/b"/><xsl:include href="j.xsl"/>'
    answer = client(tmp_path, style).get("/")
    assert answer.headers["Content-Type"] == "text/b; charset=us-ascii"


FILES = {
    "style": ("s0.xsl", XSL.format("{}")),
    "imported": ("i.xsl", XSL.format('<xsl:variable name="i">{}</xsl:variable>')),
    "included": ("j.xsl", XSL.format('<xsl:variable name="j">{}</xsl:variable>')),
    "imported by what is included": ("k.xsl", XSL.format('<xsl:variable name="k">{}</xsl:variable>')),
    "document()": ("d.xml", "<d>{}</d>"),
}
READER = (
    '<xsl:import href="i.xsl"/><xsl:include href="j.xsl"/><xsl:template match="/"><b>'
    "{}<xsl:value-of select=\"concat($i, $j, $k, document('d.xml'))\"/></b></xsl:template>"
)


@pytest.mark.parametrize("stamps", ["mtime", "content"])
@pytest.mark.parametrize("keeping", ["off", "whole", "steps"])
@pytest.mark.parametrize("changed", FILES)
def test_a_change_is_seen(tmp_path: Path, changed: str, keeping: str, stamps: str) -> None:
    """``mtime``: the file becomes older, with the same length: older counts as changed, too."""
    for name, text in FILES.values():
        write(tmp_path / name, text.format("1"))
    (tmp_path / "j.xsl").write_text(XSL.format('<xsl:import href="k.xsl"/><xsl:variable name="j">1</xsl:variable>'))
    os.utime(tmp_path / "j.xsl", (OLD, OLD))
    asked = client(tmp_path, READER.format("1"), COPY, cache=MemoryCache(), keeping=keeping, stamps=stamps)
    first = asked.get("/").data
    assert b">11111<" in first
    assert asked.get("/").data == first
    name, text = FILES[changed]
    new = XSL.format(READER.format("2")) if changed == "style" else text.format("2")
    if changed == "included":
        new = XSL.format('<xsl:import href="k.xsl"/><xsl:variable name="j">2</xsl:variable>')
    write(tmp_path / name, new, age=1)
    assert sorted(asked.get("/").data) == sorted(first.replace(b"11111", b"11112"))


@pytest.mark.parametrize("stamps", ["mtime", "content"])
def test_a_changed_source_is_seen(tmp_path: Path, stamps: str) -> None:
    """By its bytes, or by its ETag where that is trusted: then the bytes are not even read."""
    cache = MemoryCache()
    answers = []
    for text, etag in (("<a>1</a>", '"1"'), ("<a>2</a>", '"2"'), ("<a>3</a>", '"2"'), ("<a>4</a>", 'W/"2"')):
        asked = client(tmp_path, COPY, text=text, etag=etag, cache=cache, stamps=stamps)
        answers.append(asked.get("/").data[-9:-1])
    seen = b"<a>2</a>" if stamps == "mtime" else b"<a>3</a>"
    assert answers == [b"<a>1</a>", b"<a>2</a>", seen, b"<a>4</a>"]


def test_a_file_that_has_just_changed_is_not_kept(tmp_path: Path) -> None:
    """It might change again without a new mtime."""
    cache = MemoryCache()
    asked = client(tmp_path, COPY, cache=cache)
    future = OLD + 10**9
    os.utime(tmp_path / "s0.xsl", (future, future))
    assert asked.get("/").status_code == 200
    assert cache.size == 0


def test_only_the_steps_after_a_change_are_run_again(tmp_path: Path) -> None:
    class Counting(MemoryCache):
        put_keys: list[str]

        def put(self, key: str, value: bytes) -> None:
            self.put_keys.append(key)
            super().put(key, value)

    cache = Counting()
    asked = client(tmp_path, COPY, COPY, COPY, cache=cache)
    for changed, runs in ((None, 3), (None, 0), ("s2.xsl", 1), ("s1.xsl", 2), ("s0.xsl", 3)):
        cache.put_keys = []
        if changed:
            write(tmp_path / changed, XSL.format(COPY), age=1 + runs)
        asked.get("/")
        assert len(cache.put_keys) == runs, changed


@pytest.mark.parametrize(("query", "pages"), [(True, 2), (False, 1)])
def test_the_query_is_in_the_key_or_shown_to_nobody(tmp_path: Path, query: bool, pages: int) -> None:
    style = '<xsl:param name="query"/><xsl:template match="/"><b><xsl:value-of select="$query"/></b></xsl:template>'
    asked = client(tmp_path, style, cache=MemoryCache(), query=query)
    answers = [asked.get(f"/?{text}") for text in ("q='1", "q='1", "q=2")]
    assert len({answer.data for answer in answers}) == pages
    assert (b"q='1" in answers[0].data) is query
    assert answers[2].headers["X-Own"] == ("q=2" if query else "")


ASKS = "<xsl:template match='/'><b><xsl:copy-of select='document(\"{}\")'/></b></xsl:template>"
BAD = {
    "a path outside": ASKS.format("../secret.xml"),
    "an address": ASKS.format("http://127.0.0.1:9/x"),
    "a missing file": ASKS.format("gone.xml"),
    "an import outside": '<xsl:import href="../secret.xsl"/>',
    "a file written": (
        '<xsl:template match="/"><exsl:document href="out.xml" xmlns:exsl="http://exslt.org/common" '
        'extension-element-prefixes="exsl"><x/></exsl:document><b/></xsl:template>'
    ),
    "a message that ends it": '<xsl:template match="/"><xsl:message terminate="yes">no</xsl:message></xsl:template>',
    "no XSLT": "<xsl:nonsense/>",
    "no document": '<xsl:template match="/">text</xsl:template>',
    "two roots": '<xsl:template match="/"><b/><c/></xsl:template>',
    "an import of itself": '<xsl:import href="s0.xsl"/>',
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_step_that_fails_is_an_error_and_not_a_page(tmp_path: Path, case: str) -> None:
    write(tmp_path / "secret.xml", "<secret>42</secret>")
    write(tmp_path / "secret.xsl", XSL.format(COPY))
    asked = client(tmp_path / "in", BAD[case], COPY, cache=MemoryCache())
    for _ in range(2):
        answer = asked.get("/")
        assert (answer.status_code, b"log" in answer.data) == (500, True), answer.data
    assert not (tmp_path / "in" / "out.xml").exists()


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY e SYSTEM "secret.xml">]><a>&e;</a>',
        '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>',
        '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd"><a/>',
    ],
)
def test_a_source_has_no_external_entities(tmp_path: Path, text: str) -> None:
    write(tmp_path / "secret.xml", "<secret>42</secret>")
    answer = client(tmp_path, COPY, text=text).get("/")
    assert answer.status_code in (200, 500)
    assert b"42" not in answer.data
    assert b"root:" not in answer.data


@pytest.mark.parametrize("text", ["", "no xml", "<a>", "<a/><b/>", '<?xml version="1.0" encoding="nonsense"?><a/>'])
def test_a_source_that_is_no_document_is_an_error(tmp_path: Path, text: str) -> None:
    assert client(tmp_path, COPY, text=text).get("/").status_code == 500


def test_what_is_not_xml_goes_through_as_it_is(tmp_path: Path) -> None:
    chain = Chain(Files(str(tmp_path)), [str(write(tmp_path / "s.xsl", XSL.format(COPY)))])
    asked = Client(Pipeline(source("<a/>", content_type="text/plain"), chain))
    assert (asked.get("/").data, asked.get("/").headers["Content-Type"]) == (b"<a/>", "text/plain")
    assert asked.get("/?x=1").headers["X-Own"] == asked.post("/?x=1").headers["X-Own"] == "x=1"
    assert b"".join(asked.head("/").iter_encoded()) == b""


def test_head_has_the_length_of_the_page_and_no_body(tmp_path: Path) -> None:
    asked = client(tmp_path, COPY, cache=MemoryCache())
    answer = asked.head("/")
    assert (answer.data, answer.headers["Content-Length"]) == (b"", str(len(asked.get("/").data)))


@pytest.mark.parametrize("keeping", ["off", "steps"])
def test_a_long_page_goes_out_while_it_is_written(tmp_path: Path, keeping: str) -> None:
    row = '<xsl:for-each select="//r"><r>' + "x" * 4000 + "</r></xsl:for-each>"
    paths = [str(write(tmp_path / "s.xsl", XSL.format(f'<xsl:template match="/"><b>{row}</b></xsl:template>')))]
    cache = MemoryCache()
    pipeline = Pipeline(source(f"<a>{'<r/>' * 1000}</a>"), Chain(Files(str(tmp_path)), paths, cache, keeping))
    pieces: list[bytes] = []
    said: list[Any] = []

    def start_response(status: str, fields: list[tuple[str, str]], _: object = None) -> Callable[[bytes], None]:
        said[:] = [status, dict(fields)]
        return pieces.append

    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "QUERY_STRING": "", "wsgi.errors": sys.stderr}
    assert list(pipeline(environ, start_response)) == []
    assert said[0] == "200 OK"
    assert "Content-Length" not in said[1]
    assert len(b"".join(pieces)) > 4_000_000
    assert max(map(len, pieces[1:])) < 200_000
    assert cache.size < 5000 * 3


# Caches.


def make_cache(kind: str, folder: Path, size: int) -> MemoryCache | DiskCache:
    return MemoryCache(size) if kind == "memory" else DiskCache(str(folder), size)


def name_key(number: int) -> str:
    return f"{number:064x}"


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_a_cache_gives_back_what_it_was_given_and_does_not_outgrow_its_size(tmp_path: Path, kind: str) -> None:
    cache = make_cache(kind, tmp_path, 1 << 20)
    for number in range(100):
        cache.put(name_key(number), bytes([number]) * 50_000)
        assert cache.get(name_key(number)) == bytes([number]) * 50_000
    held = [cache.get(name_key(number)) for number in range(100)]
    assert sum(len(value) for value in held if value) <= 1.1 * (1 << 20)
    assert held[99]
    assert not held[0]
    cache.put(name_key(200), b"x" * (2 << 20))
    assert cache.get(name_key(200)) is None


@pytest.mark.parametrize("kind", ["memory", "disk"])
@pytest.mark.parametrize("key", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n", "/" + "a" * 63])
def test_only_a_digest_is_a_key(tmp_path: Path, kind: str, key: str) -> None:
    with pytest.raises(ValueError, match="SHA-256"):
        make_cache(kind, tmp_path, 1 << 20).put(key, b"x")


def test_a_file_of_the_disk_cache_is_whole_or_not_there(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), 1 << 20)
    write(tmp_path / "left.new", "half")
    cache.put(name_key(1), b"x" * 1000)
    cache.sweep()
    assert [path.name for path in tmp_path.iterdir()] == [name_key(1)]


@pytest.mark.parametrize(
    "data", [b"", b"pipeline 1 ", b"pipeline 1 []\n", b"pipeline 2 [\"a\",0,[]]\n", b"pipeline 1 {}\n", b"\0" * 100,
             b'pipeline 1 ["a",2,[]]\nx', b'pipeline 1 ["a",1,[1]]\nx', b'pipeline 1 ["a",1,[["p"]]]\nx'],
)  # fmt: skip
def test_what_is_no_entry_is_nothing(data: bytes) -> None:
    assert parse_entry(data) is None
    good = Entry((("/p\n", "s"),), "text/html", b"a\nb")
    assert parse_entry(format_entry(good)) == good


def test_of_many_threads_one_computes(tmp_path: Path) -> None:
    runs: list[int] = []

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/xml"), ("ETag", '"1"')])
        return Slow()

    class Slow:
        def __iter__(self) -> Any:
            runs.append(1)
            all_here.wait(20)
            yield b"<a/>"

    all_here = threading.Event()
    path = str(write(tmp_path / "s.xsl", XSL.format(COPY)))
    cache = MemoryCache()
    pipeline = Pipeline(application, Chain(Files(str(tmp_path)), [path], cache))
    answers: list[bytes] = []
    threads = [threading.Thread(target=lambda: answers.append(Client(pipeline).get("/").data)) for _ in range(8)]
    for thread in threads:
        thread.start()
    while sum(waiting for _, waiting in list(cache._computing.values())) < 8:
        threading.Event().wait(0.001)
    all_here.set()
    for thread in threads:
        thread.join(20)
    assert len(runs) == 1
    assert len(set(answers)) == 1
    assert len(answers) == 8
    assert cache._computing == {}


PROCESS = """
import os, sys
from apps.pipeline.caches import DiskCache
cache, key = DiskCache(sys.argv[1]), "a" * 64
print("ready", flush=True)
sys.stdin.readline()
if cache.get(key) is None:
    with cache.computing(key):
        if cache.get(key) is None:
            with open(sys.argv[1] + "/runs", "a") as file:
                file.write("x")
            cache.put(key, b"value")
print(cache.get(key).decode())
"""


def test_of_many_processes_one_computes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROCESS, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, cwd=ROOT, text=True, **pipes) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=20)[0] for process in processes] == ["value\n"] * 4
    assert (tmp_path / "runs").read_text() == "x"


@pytest.mark.front("redis-server")
def test_redis_keeps_pages_and_a_lost_redis_costs_none(tmp_path: Path, front_program: str) -> None:
    from apps.pipeline.redis_cache import RedisCache

    path = tmp_path / "redis.sock"
    command = [front_program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "ready to accept" in line.lower():
                break
        cache = RedisCache(f"unix://{path}")
        asked = client(tmp_path / "s", COPY, COPY, cache=cache)
        first = asked.get("/").data
        assert asked.get("/").data == first
        assert len(cache.client.keys("pipeline:*")) == 2
        assert cache.client.keys("pipeline:lock:*") == []
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()
    assert asked.get("/").data == first
    cache.client.close()


def test_the_site_is_served(tmp_path: Path) -> None:
    with serving(tmp_path, "apps.pipeline.site:application", "--start-servers", "2") as server:
        assert server.get("/hello")[0] == 200
        assert server.get("/hello") == server.get("/hello")
        assert server.get("/nothing")[0] == 404


@pytest.mark.parametrize(
    "variables",
    [
        {"PIPELINE_CACHE": "yes"}, {"PIPELINE_STORE": "tape"}, {"PIPELINE_STORE": "disk:"}, {"PIPELINE_STAMPS": "x"},
        {"PIPELINE_CHANGE": "4:1"}, {"PIPELINE_CHANGE": "1:0"}, {"PIPELINE_CHANGE": "1"},
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_named(variables: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(variables.values())).partition(":")[0] or "x"):
        build(variables)
