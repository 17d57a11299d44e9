"""The rounds: their order, what disturbs them, and whole small runs against real servers."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import pytest

from bench import compare
from bench.answers import Answer, compare_answers, fetch, parse_answer
from bench.drivers import BuiltinDriver
from bench.harness import Conditions, Target, judge_sample, plan_orders, run_rounds, warm_up
from bench.machine import choose_cores, parse_cpu_model
from bench.modes import format_option, parse_modes, read_modes
from bench.results import Run, Sample, Scenario
from bench.servers import Recipe, ServerFailed, floor_command, start_server

ROOT = Path(__file__).resolve().parent.parent
NAMES = ["a", "b", "c", "d"]


def test_orders_are_the_same_for_the_same_seed_and_hold_everyone() -> None:
    orders = plan_orders(NAMES, 8, 5)
    assert orders == plan_orders(NAMES, 8, 5)
    assert orders != plan_orders(NAMES, 8, 6)
    assert all(sorted(order) == NAMES for order in orders)


def test_everyone_is_first_equally_often() -> None:
    assert Counter(order[0] for order in plan_orders(NAMES, 8, 5)) == dict.fromkeys(NAMES, 2)


def make_sample(other: float = 0.0, stolen: float = 0.0) -> Sample:
    return Sample("a", "s", 0, 0, 100, 2.0, 100, 0.5, 0.5, other, stolen)


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (make_sample(), ""),
        (make_sample(other=0.2), ""),
        (make_sample(other=0.5), "other processes used 25 % of a core"),
        (make_sample(stolen=0.4), "the host took 20 % of a core"),
    ],
)
def test_a_disturbed_sample_says_by_what(sample: Sample, reason: str) -> None:
    assert judge_sample(sample) == reason


@pytest.mark.parametrize(
    ("usable", "cores"), [([0], (None, None)), ([0, 1], (0, 1)), ([2, 5, 7], (2, 7)), ([], (None, None))]
)
def test_load_and_server_have_a_core_each_where_there_are_two(
    usable: list[int], cores: tuple[int | None, int | None]
) -> None:
    assert choose_cores(usable) == cores


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("processor : 0\nmodel name\t: Some  CPU @ 2 GHz\n", "Some CPU @ 2 GHz"),
        ("", "unknown"),
        ("model name :\n", "unknown"),
    ],
)
def test_the_processor_has_a_name(text: str, model: str) -> None:
    assert parse_cpu_model(text) == model


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\nabc"


def test_an_answer_is_parsed() -> None:
    assert parse_answer(ANSWER) == Answer(200, "text/html", b"abc")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not an HTTP answer"),
        (b"HTTP/1.1 200 OK\r\n", "not an HTTP answer"),
        (b"SSH-2.0\r\n\r\n", "not an HTTP answer"),
        (ANSWER + b"d", "a body of 4 bytes"),
        (ANSWER[:-1], "a body of 2 bytes"),
        (ANSWER.replace(b"Content-Length: 3", b"Transfer-Encoding: chunked"), "transfer coding"),
    ],
)
def test_what_is_no_whole_answer_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_answer(data)


RIGHT = Answer(200, "text/html", b"abc")


@pytest.mark.parametrize(
    ("got", "difference"),
    [
        (RIGHT, ""),
        (Answer(500, "text/html", b"abc"), "status 500, not 200"),
        (Answer(200, "text/plain", b"abc"), "Content-Type 'text/plain', not 'text/html'"),
        (Answer(200, "text/html", b"ab"), "a body of 2 bytes, not 3"),
        (Answer(200, "text/html", b"abd"), "the body differs at byte 2: b'd'"),
    ],
)
def test_answers_are_compared_byte_for_byte(got: Answer, difference: str) -> None:
    assert compare_answers(got, RIGHT) == difference


def test_a_mount_becomes_the_command_line_that_serves_it_alone() -> None:
    text = """
        [pool.modes]
        Listen = "127.0.0.1:8000"
        MaxRequestsPerChild = 100
        StatScripts = false
        [[pool.modes.Mount]]
        Path = "/registry/"
        Target = "../apps/hello.py"
        Model = "registry"
        Title = "Registry"
    """
    (mode,) = parse_modes(text, "conf")
    assert (mode.name, mode.path, mode.title) == ("registry", "/registry/", "Registry")
    assert mode.words == (
        "apps/hello.py", "--max-requests-per-child", "100", "--stat-scripts", "off", "--model", "registry",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("MaxServers", 5, ["--max-servers", "5"]),
        ("StatScripts", True, ["--stat-scripts", "on"]),
        ("PythonPath", ["a", "b"], ["--python-path", "a", "--python-path", "b"]),
    ],
)
def test_a_directive_becomes_an_option(name: str, value: object, expected: list[str]) -> None:
    assert format_option(name, value) == expected


@pytest.mark.parametrize(("text", "reason"), [("", "no mounts"), ("[[pool.a.Mount]]\nPath = '/'", "without Target")])
def test_a_configuration_without_modes_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_modes(text, ".")


def test_the_modes_of_the_comparison_are_the_six_of_the_ladder() -> None:
    modes = read_modes(ROOT / "conf" / "modes.toml")
    assert [mode.name for mode in modes] == ["cgi", "zygote", "perlrun", "registry", "wsgi", "handler"]
    assert compare.choose_modes(modes, ["handler"])[0].path == "/handler/"
    with pytest.raises(ValueError, match="'nothing' is none of"):
        compare.choose_modes(modes, ["nothing"])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--rounds", "-1"], "--rounds"),
        (["--seconds", "0.01"], "--seconds"),
        (["--concurrency", "0"], "--concurrency"),
    ],
)
def test_impossible_options_are_refused(words: list[str], reason: str) -> None:
    parser = argparse.ArgumentParser()
    compare.add_arguments(parser)
    with pytest.raises(ValueError, match=reason):
        compare.read_options(parser.parse_args(words))


class Silent:
    """A progress that keeps what it was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def tell(self, text: str, done: int, total: int) -> None:
        assert 0 < done <= total
        self.lines.append(text)


def test_rounds_against_real_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two floors and one address where nobody listens: samples for the two, a reason for the third."""
    monkeypatch.chdir(ROOT)
    servers = [start_server(Recipe(name, name, floor_command), None) for name in ("one", "two")]
    driver = BuiltinDriver()
    try:
        page = fetch(servers[0].port, "/", 10)
        targets = [Target(server.recipe.name, server.port, "/", server.pid) for server in servers]
        targets.append(Target("gone", 1, "/", servers[0].pid))
        scenario = Scenario("close")
        conditions = Conditions(3, 0.05, 1, time.monotonic() + 60, None, reruns=0)
        run = Run("compare", {}, "builtin", 1, 3, 0.05, {}, [None, None], [scenario])
        progress = Silent()
        warm_up(targets, scenario, driver, page, conditions)
        run_rounds(run, targets, scenario, driver, page, conditions, progress)
        assert list(conditions.failures) == ["gone"]
        assert "while warming up: Connection refused" in conditions.failures["gone"]
        for name in ("one", "two"):
            samples = run.of(name, "close")
            assert [sample.round for sample in samples] == [0, 1, 2]
            assert all(sample.requests > 0 and sample.cpu > 0 for sample in samples)
        assert len(progress.lines) == 6
    finally:
        driver.close()
        for server in servers:
            server.stop()


def test_no_round_is_begun_after_the_deadline() -> None:
    conditions = Conditions(3, 1.0, 1, time.monotonic(), None)
    run = Run("compare", {}, "builtin", 1, 3, 1.0, {}, [None, None])
    driver = BuiltinDriver()
    try:
        run_rounds(run, [Target("a", 1, "/", 1)], Scenario("close"), driver, Answer(200, "", b""), conditions, Silent())
    finally:
        driver.close()
    assert run.notes == ["close: ended after 0 of 3 rounds, because the time was over"]


def test_a_server_that_ends_says_its_last_words() -> None:
    import sys

    recipe = Recipe("bad", "bad", lambda port: [sys.executable, "-c", "raise SystemExit('error: not today')"])
    with pytest.raises(ServerFailed, match=r"ended with status 1: error: not today"):
        start_server(recipe, None)


def test_a_missing_server_says_why() -> None:
    with pytest.raises(ServerFailed, match="not here"):
        start_server(Recipe("none", "none", floor_command, lambda: "not here"), None)
