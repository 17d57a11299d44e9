"""Scenario files: what is wrong in one is a sentence; those that there are can be run and name every figure of 2008."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.historic import find_figure, read_figures
from bench.peers import read_peers
from bench.plan import list_plans, parse_plan, read_plan, split_step

ROOT = Path(__file__).resolve().parent.parent
PLAN = """
title = "A"
source = "mod_perl"
lead = "B"
[page.hello]
path = "/"
app = "apps/hello.py"
[service.fast]
target = "apps/hello.py:application"
[service.slow]
command = "{python} -m slow --port {port}"
[contender.wsgi]
service = "fast"
group = "ours"
path = "/wsgi/"
[contender.other]
service = "slow"
pages = { hello = "/other.pl" }
[case.direct]
page = "hello"
contenders = ["ours", "other"]
original = { wsgi = "mod_perl.second_round[mode=modperl,proxy=false].rate" }
[case.proxy]
page = "hello"
contenders = ["ours"]
front = "nginx"
[[ladder]]
title = "L"
case = "direct"
steps = ["other", "wsgi@proxy", "wsgi"]
"""


def test_a_plan_knows_who_takes_part_and_where_a_page_is() -> None:
    plan = parse_plan(PLAN, "a")
    direct, proxy = plan.cases
    page = plan.page("hello")
    assert [part.name for part in plan.taking_part(direct)] == ["wsgi", "other"]
    assert [part.name for part in plan.taking_part(proxy)] == ["wsgi"]
    assert [plan.path_of(part, page) for part in plan.taking_part(direct)] == ["/wsgi/", "/other.pl"]
    assert [split_step(plan.ladders[0], step) for step in plan.ladders[0].steps] == [
        ("other", "direct"), ("wsgi", "proxy"), ("wsgi", "direct"),
    ]  # fmt: skip
    assert parse_plan(PLAN + "\n", "a").digest != plan.digest


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('title = "A"', 'tittle = "A"', "a: unknown entry 'tittle'; there are title, source, lead"),
        ('lead = "B"', "", "a: lead is missing"),
        ('lead = "B"', "lead = 5", "a: lead must be text, not 5"),
        ('lead = "B"', 'lead = "B"\nfound = "C"', "found must be a list of texts, not 'C'"),
        ("[page.hello]", "[page.Hello]", "page.Hello: a name is made of a-z"),
        ("[page.hello]", "[page]", "page: write each as"),
        ('path = "/"\n', 'path = "hello"\n', "page.hello: path must begin with /"),
        ('path = "/"\n', 'path = "/"\nsame = "length"\n', "same: 'length' is none of 'bytes', 'own', 'pattern'"),
        ('path = "/"\n', 'path = "/"\nsame = "pattern"\n', 'same = "pattern" and pattern go together'),
        (" --port {port}", "", "service.slow: the command does not say {port}"),
        ('command = "', 'config = "x"\ncommand = "', "service.slow: say one of config, target, peer and command"),
        ('command = "', 'wire = "gopher"\ncommand = "', "service.slow: wire: 'gopher' is none of 'http'"),
        ('service = "slow"', 'service = "none"', "contender.other: service: 'none' is none of 'fast', 'slow'"),
        ('service = "slow"', 'service = "slow"\nfront = "iis"', "contender.other: front: 'iis' is none of"),
        ("{ hello = ", "{ bye = ", "contender.other: pages: 'bye' is none of 'hello'"),
        ('["ours", "other"]', '["theirs"]', "case.direct: contenders: 'theirs' is none of"),
        ('{ wsgi = "mod', '{ fast = "mod', "case.direct: original: 'fast' is none of 'other', 'wsgi'"),
        ('target = "apps', 'wire = "scgi"\ntarget = "apps', "case.proxy: wsgi cannot stand behind nginx"),
        ('"wsgi@proxy"', '"other@proxy"', "ladder 1: steps: 'other' is none of 'wsgi'"),
        ('"wsgi@proxy"', '"wsgi@none"', "ladder 1: case: 'none' is none of 'direct', 'proxy'"),
        ('title = "L"', 'title = "L"\nmeasure = "speed"', "ladder 1: measure: 'speed' is none of 'rate'"),
        ('title = "L"', 'title = "L"\nbase = "x"', "ladder 1: base 'x' is none of its steps"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_in_a_sentence(old: str, new: str, reason: str) -> None:
    assert old in PLAN
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_plan(PLAN.replace(old, new, 1), "a")


def test_a_comparison_that_there_is_not_names_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"'none' is no comparison: there are .*modperl"):
        read_plan("none")


@pytest.mark.parametrize("name", list_plans())
def test_every_scenario_file_can_be_run(name: str) -> None:
    """Its peers are in the table, its files are there, and its keys name figures of the original."""
    plan, figures = read_plan(name), read_figures()
    peers = {peer.name: peer for peer in read_peers()}
    for service in plan.services:
        if service.peer:
            assert service.wire in peers[service.peer].start, service.name
        for file in (service.config, service.target.partition(":")[0]):
            assert not file or (ROOT / file).exists() or "{" in file, file
    for case in plan.cases:
        for key in case.original.values():
            assert find_figure(key, figures) > 0
    assert plan.head.source in {*figures, ""}
    assert {file for page in plan.pages if (file := page.app) and not (ROOT / file).exists()} == set()


def test_every_figure_of_2008_has_its_counterpart() -> None:
    plan, figures = read_plan("modperl"), read_figures()
    then = {row["rate"] for name in ("first_round", "second_round") for row in figures["mod_perl"][name]}
    for group in ("gateways", "mod_perl"):
        mine = {part.name for part in plan.contenders if part.group == group}
        keys = [key for case in plan.cases for name, key in case.original.items() if name in mine]
        assert {find_figure(key, figures) for key in keys} == then
    judged = {split_step(ladder, step) for ladder in plan.ladders for step in ladder.steps}
    assert {(name, case.name) for case in plan.cases for name in case.original} <= judged


def test_the_documented_example_is_one() -> None:
    text = (ROOT / "bench" / "SCENARIOS.md").read_text()
    example = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert example is not None
    assert len(parse_plan(example[1], "example").contenders) == 3


@pytest.mark.parametrize(
    ("key", "figure"),
    [
        ("mod_perl.second_round[mode=cgi,proxy=false].rate", 95.58),
        ("interchange.prefork.blank.dbm", 36.10),
        ("axkit[cache=true,incremental=false].percentiles.95", 325),
        ("emulate_sendfile.seek.rate", 648.34),
    ],
)
def test_a_key_names_a_figure(key: str, figure: float) -> None:
    assert find_figure(key, read_figures()) == figure


@pytest.mark.parametrize(
    "key", ["", "a..b", "mod_perl", "mod_perl.second_round[mode=x].rate", "axkit[cache=true", "a b"]
)
def test_a_key_without_a_figure_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"historic\.toml"):
        find_figure(key, read_figures())
