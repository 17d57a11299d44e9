"""Comparisons from scenario files: real servers, a few samples, the result kept and gone on with; ladders and forms."""

from __future__ import annotations

import io
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bench import fronts, harness
from bench.__main__ import make_parser
from bench.answers import Answer, ask, call_application, compare_answers
from bench.comparison import Options, begin_run, judge_answer, narrow_plan, run_plan
from bench.drivers import open_driver
from bench.goals import judge_goal, judge_goals
from bench.ladders import HOLDS, OPEN, REVERSED, agree, judge_ladders
from bench.outcome import format_report, format_text
from bench.peers import Peer, find_missing, read_peers
from bench.plan import Page, Plan, parse_plan, read_plan
from bench.progress import TextProgress
from bench.report.comparison import make_document
from bench.report.document import format_markdown
from bench.report.findings import tell_agreement
from bench.results import Contender, Run, Sample, Scenario, read_run
from bench.stage import Stage
from bench.stats import Interval
from tests.servers import DEADLINE
from tests.test_bench_report import check_page

ROOT = Path(__file__).resolve().parent.parent
PLAN = """
title = "A <small> one"
source = "mod_perl"
lead = "Two servers, and some that are none."
found = ["One was faster."]
[page.hello]
app = "apps/hello.py"
[page.env]
path = "/env"
same = "pattern"
pattern = "<dt>REMOTE_PORT</dt><dd>[0-9]+"
[service.fast]
target = "apps/hello.py:handler"
model = "handler"
options = ["--start-servers 1", "--min-spare-servers 1"]
before = ["{python} -c \\"open('{folder}/before', 'a').write('x')\\""]
setup = ["{python} -c \\"open('{folder}/before', 'w').write('')\\""]
[service.floor]
command = "{python} -m bench.floor_server {port} --app apps/hello.py"
[service.wrong]
command = "{python} -m bench.floor_server {port} --app apps/files.py"
[service.absent]
command = "none {port}"
needs = { "install none" = "{python} -c 'import none'" }
[service.broken]
command = "none {port}"
setup = ["{python} -c 'raise SystemExit(\\"no disk\\")'"]
[contender.handler]
service = "fast"
group = "ours"
[contender.floor]
service = "floor"
[contender.absent]
service = "absent"
[contender.broken]
service = "broken"
[case.direct]
page = "hello"
original = { floor = "ajp[body=2].rate_before", handler = "ajp[body=2].rate" }
[case.counted]
page = "env"
count = 7
contenders = ["handler"]
[[ladder]]
title = "L"
case = "direct"
steps = ["floor", "handler", "absent"]
"""


def small_plan() -> Plan:
    return parse_plan(PLAN, "small")


@pytest.fixture
def quickly() -> Callable[[Plan, Run, Path], None]:
    """What runs a plan with the builtin load."""

    def go(plan: Plan, run: Run, path: Path) -> None:
        driver = open_driver("builtin")
        try:
            run_plan(plan, run, DEADLINE, driver, path, TextProgress(io.StringIO()))
        finally:
            driver.close()

    return go


def test_a_comparison_proves_measures_keeps_and_goes_on(
    tmp_path: Path, quickly: Callable[[Plan, Run, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(harness, "WARM_UP_SECONDS", 0.05)
    options = Options(rounds=1, seconds=0.05, seed=7)
    plan = narrow_plan(small_plan(), options)
    run, path = begin_run(plan, options), tmp_path / "small.json"
    quickly(plan, run, path)

    kept = read_run(path)
    counted = [sample for sample in kept.samples if not sample.discarded]
    assert {(s.contender, s.scenario, s.round) for s in counted} == {
        ("handler", "direct", 0), ("floor", "direct", 0), ("handler", "counted", 0),
    }  # fmt: skip
    assert {s.requests for s in kept.samples if s.scenario == "counted"} == {7}
    assert all(sample.at > 0 for sample in kept.samples)
    reasons = {contender.name: contender.missing for contender in kept.contenders if contender.missing}
    assert reasons == {"absent": "not installed: install none"}
    assert re.search("no disk", kept.scenarios[0].failed["broken"])
    assert kept.scenarios[0].lengths == {"handler": 1164, "floor": 1164}

    # As if it had been interrupted after its first round.
    kept.rounds = 2
    quickly(plan, kept, path)
    rounds = [s.round for s in read_run(path).samples if s.scenario == "counted" and not s.discarded]
    assert rounds == [0, 1]

    page, text, markdown = format_report(kept), format_text(kept), format_markdown(make_document(kept))
    check_page(page)
    for shown in (page, text, markdown):
        assert "install none" in shown
        assert "no disk" in shown
        assert "One was faster." in shown
    assert "A &lt;small&gt; one" in page
    assert "A <small> one" in markdown.splitlines()[0]


def test_without_a_front_server_the_other_cases_are_measured(
    tmp_path: Path, quickly: Callable[[Plan, Run, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(fronts, "find_program", lambda _: None)
    text = PLAN.replace("[case.counted]", '[case.proxied]\npage = "hello"\nfront = "nginx"\n[case.counted]')
    options = Options(rounds=1, seconds=0.05, only=("handler", "floor"))
    plan = narrow_plan(parse_plan(text, "small"), options)
    run = begin_run(plan, options)
    quickly(plan, run, tmp_path / "small.json")
    assert [contender.missing for contender in run.contenders] == ["", ""]
    assert set(run.scenarios[1].missing) == {"handler", "floor"}
    assert not any(scenario.failed for scenario in run.scenarios)
    assert {sample.scenario for sample in run.samples} == {"direct", "counted"}
    said = " ".join(format_text(run).split())
    assert "Left out of proxied: handler, floor: not installed: apt-get install" in said
    assert [rung.failed for rung in judge_ladders(run)[0].rungs] == ["", ""]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["none"], "'none' is no comparison: there are"),
        (["modperl", "--only", "nobody"], "'nobody' is none of"),
        (["modperl", "--case", "sideways"], "no case is left of"),
        (["modperl", "--budget", "0"], "--budget must be minutes"),
        (["modperl", "--rounds", "-1"], "--rounds must be"),
        (["--resume", "pyproject.toml"], "not JSON"),
        (["--resume", "tests/data/bench_compare.json"], "only a comparison of a scenario file can be resumed"),
    ],
)
def test_the_command_line_names_what_cannot_be(words: list[str], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments = make_parser().parse_args(["compare", *words])
    with pytest.raises(ValueError, match=reason):
        arguments.run(arguments)


# Answers.


@pytest.mark.parametrize(
    ("page", "body", "problem"),
    [
        (Page("p"), b"right", ""),
        (Page("p"), b"wrong", "the body differs at byte 0"),
        (Page("p", same="own"), b"anything", ""),
        (Page("p", same="pattern", pattern="^r.*t$"), b"right", ""),
        (Page("p", same="pattern", pattern="^r.*t$"), b"wrong", "the body has no match"),
    ],
)
def test_an_answer_is_right_in_its_page_s_way(page: Page, body: bytes, problem: str) -> None:
    assert judge_answer(page, Answer(200, "t", body), Answer(200, "t", b"right")).startswith(problem or "\0"[:0])
    assert bool(judge_answer(page, Answer(200, "t", body), Answer(200, "t", b"right"))) == bool(problem)
    assert judge_answer(page, Answer(500, "t", body), Answer(200, "t", b"right")) == "status 500, not 200"


# Ladders.


def run_of(figures: dict[str, list[float]], originals: dict[str, float], measure: str = "rate") -> Run:
    """A run with one case in which each contender has these rates, round by round."""
    names = list(figures)
    run = Run(
        "scenario", {"cpu": "x", "cores": 2}, "builtin", 1, 3, 1.0, {}, [0, 1], [Scenario("direct", title="direct")]
    )
    run.contenders = [Contender(name, name) for name in names]
    for name, rates in figures.items():
        for number, rate in enumerate(rates):
            requests, time = int(rate), int(1e6 / rate)
            run.samples.append(
                Sample(name, "direct", number, 0, requests, 1.0, 1, 0.1, 0.1, 0, 0, [[time, requests]], at=number + 1.0)
            )
    steps = [{"name": name, "case": "direct", "original": originals.get(name)} for name in names]
    head = {"title": "T", "lead": "L", "found": [], "shows_not": [], "name": "n", "digest": "d"}
    run.plan = {**head, "ladders": [{"title": "L", "measure": measure, "base": [names[0], "direct"], "steps": steps}]}
    return run


@pytest.mark.parametrize(
    ("figures", "verdict"),
    [
        ({"a": [100, 100, 100], "b": [200, 210, 190]}, HOLDS),
        ({"a": [100, 100, 100], "b": [90, 110, 100]}, OPEN),
        ({"a": [100, 100, 100], "b": [50, 60, 50]}, REVERSED),
        ({"a": [100, 100], "b": [200, 200]}, OPEN),
    ],
)
def test_a_step_is_judged_by_its_whole_interval_and_three_rounds(figures: dict[str, list[float]], verdict: str) -> None:
    (ladder,) = judge_ladders(run_of(figures, {}))
    assert [step.verdict for step in ladder.steps] == [verdict]


def test_ratios_stand_beside_the_original_s() -> None:
    run = run_of({"a": [100, 100, 100], "b": [200, 200, 200], "c": [900, 900, 900]}, {"a": 10, "b": 21, "c": 300})
    (ladder,) = judge_ladders(run)
    assert [(rung.original_ratio, rung.agrees) for rung in ladder.rungs] == [(1, None), (2.1, True), (30, False)]
    said = " ".join(tell_agreement([ladder]))
    assert "Of 2 steps in 1 ladder, 2 hold" in said
    assert "1 of 2 ratios to a agree with the original" in said
    assert "c (9.00 (9.00 to 9.00) now, 30.0 then)" in said


@pytest.mark.parametrize(
    ("most", "ratio", "verdict"),
    [
        (1.3, Interval(1.2, 1.1, 1.3), "met"), (1.3, Interval(1.4, 1.2, 1.6), "open"),
        (1.3, Interval(1.5, 1.4, 1.6), "missed"), (1.3, None, "not measured"), (0, Interval(2, 1, 3), "told"),
    ],
)  # fmt: skip
def test_a_goal_is_met_only_by_its_whole_interval(most: float, ratio: Interval | None, verdict: str) -> None:
    assert judge_goal(most, ratio) == verdict


def test_goals_are_judged_in_every_case_that_both_take_part_in() -> None:
    run = run_of({"wsgi": [100] * 3, "flup": [50] * 3, "none": [1] * 3}, {})
    run.scenarios[0].parts = ["wsgi", "flup"]
    run.scenarios.append(Scenario("other", title="other", parts=["wsgi"]))
    run.plan["goals"] = [
        {"name": "wsgi", "of": "flup", "most": 0.6, "measure": "cpu"},
        {"name": "wsgi", "of": "none", "most": 0.6, "measure": "cpu"},
    ]
    assert [(v.scenario.name, v.verdict, v.ratio and v.ratio.median) for v in judge_goals(run)] == [
        ("direct", "met", 0.5)
    ]
    assert re.search(r"CPU of wsgi at most 0.6 times flup's +direct +met +0.500", format_text(run))
    check_page(format_report(run))


def test_who_failed_has_a_reason_and_no_step() -> None:
    run = run_of({"a": [100, 100, 100], "b": [200, 200, 200], "c": [300, 300, 300]}, {})
    run.scenarios[0].failed["b"] = "status 500, not 200"
    (ladder,) = judge_ladders(run)
    assert [(step.lower.contender.name, step.upper.contender.name) for step in ladder.steps] == [("a", "c")]
    assert re.search(r"^b +status 500, not 200$", format_text(run), re.MULTILINE)
    check_page(format_report(run))


def test_less_is_better_of_latencies() -> None:
    (ladder,) = judge_ladders(run_of({"fast": [1000] * 3, "slow": [100] * 3}, {}, "p95"))
    values = [rung.value.median for rung in ladder.rungs if rung.value]
    assert values == [1.0, 10.0]
    assert not ladder.measure.more


@pytest.mark.parametrize(
    ("now", "then", "near"),
    [(20, 25, True), (10, 25, False), (1.3, 1.2, True), (1.5, 1.2, False), (1.02, 1.05, True), (0.9, 1.05, False),
     (1.0, 1.01, True), (1, 0, False)],
)  # fmt: skip
def test_a_small_step_is_held_against_a_small_one(now: float, then: float, near: bool) -> None:
    assert agree(now, then) is near


# The originals.


def debian_peers() -> list[Peer]:
    used = {service.peer for service in read_plan("modperl").services}
    return [peer for peer in read_peers() if peer.source == "debian" and peer.name in used]


@pytest.mark.parametrize("peer", debian_peers(), ids=lambda peer: peer.name)
def test_an_original_sends_the_page_of_2008(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path of its that modperl.toml asks for the hello page, byte for byte."""
    monkeypatch.chdir(ROOT)
    if missing := find_missing(peer):
        assert os.environ.get("CI") != "true", missing
        pytest.skip(missing)
    plan, right = read_plan("modperl"), call_application("apps/hello.py")
    services = {service.name for service in plan.services if service.peer == peer.name}
    parts = [part for part in plan.contenders if part.service in services and "hello" in part.pages]
    assert parts
    with Stage(plan, None, lambda _: None) as stage:
        port = stage.open_service(parts[0].service).port
        for part in parts:
            assert compare_answers(ask("http", port, part.pages["hello"], DEADLINE), right) == "", part.name


@pytest.mark.front("nginx")
def test_a_front_stands_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = small_plan()
    case = replace(plan.case("direct"), front="nginx", reuse=True, contenders=("floor",))
    with Stage(plan, None, lambda _: None) as stage:
        target = stage.make_target(plan.taking_part(case)[0], case, plan.page("hello"))
        assert target.front not in (0, target.root)
        assert compare_answers(ask("http", target.port, "/", DEADLINE), call_application("apps/hello.py")) == ""
    with socket.socket() as sock:
        assert sock.connect_ex(("127.0.0.1", target.port)) != 0


def test_two_commands_are_one_server() -> None:
    """It ends when one of its commands does, and ends the other."""
    command = [sys.executable, "-m", "bench.together", "sleep 1000", f"{sys.executable} -c 'pass'"]
    assert subprocess.run(command, cwd=ROOT, timeout=DEADLINE).returncode == 1


def test_a_recipe_that_cannot_be_prepared_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with Stage(small_plan(), None, lambda _: None) as stage:
        for _ in range(2):
            with pytest.raises(Exception, match="no disk"):
                stage.open_service("broken")
        folder = stage.folders["broken"]
        assert folder.exists()
    assert not folder.exists()
