"""The trials: what they find, how it is shown, whom a failure is blamed on, and the harness with a real server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.report.course import draw_course, plan_ticks
from bench.trials.clients import Client, Failure, Tally
from bench.trials.command import NAMES
from bench.trials.findings import Course, Findings, Table, format_text, format_verdict, write_findings
from bench.trials.harness import is_alive, list_family, read_figures, serving, wait_until
from bench.trials.page import format_findings
from bench.trials.reload import is_settled, reload, succeed
from bench.trials.soak import excuse
from bench.trials.stuck import CASES, look_up
from tests.servers import ROOT


def make_findings(held: bool) -> Findings:
    found = Findings("reload", "Reloads <under> load.", {"cpu": "a CPU", "cores": 2}, {"quick": True})
    found.claim("nobody fails & all is well", held, "3 requests, <none> failed")
    found.tables.append(Table("Figures", ("when", "RSS"), [("before", "1 MiB"), ("after", "<2> MiB")]))
    course = Course("Memory", "MiB", bounds={"the most": 4.0})
    course.add(0.0, RSS=1.0, PSS=0.5)
    course.add(10.0, RSS=2.0)
    found.courses.append(course)
    return found


@pytest.mark.parametrize("held", [True, False])
def test_findings_are_words_a_page_and_json(tmp_path: Path, held: bool) -> None:
    found = make_findings(held)
    assert found.held is held
    text = format_text(found)
    assert text.endswith(format_verdict(found))
    assert ("everything held" in text) is held
    assert ("FAILED  nobody fails & all is well: 3 requests" in text) is not held
    page = format_findings(found)
    assert "&lt;none&gt;" in page
    assert "<none>" not in page
    for drawing in re.findall(r"<svg.*?</svg>", page, re.S):
        ElementTree.fromstring(drawing)
    write_findings(found, tmp_path / "found.json")
    kept = json.loads((tmp_path / "found.json").read_text())
    assert kept["claims"][0]["held"] is held
    assert kept["courses"][0]["lines"]["RSS"] == [[0.0, 1.0], [10.0, 2.0]]


def test_without_a_claim_nothing_has_held() -> None:
    assert not Findings("x", "", {}, {}).held


@pytest.mark.parametrize(
    ("most", "count", "ticks"),
    [(0, 5, [0, 0.2, 0.4, 0.6, 0.8, 1]), (40, 6, [0, 10, 20, 30, 40]), (121, 6, [0, 50, 100, 150])],
)  # fmt: skip
def test_the_ticks_of_an_axis_are_round_and_reach_beyond(most: float, count: int, ticks: list[float]) -> None:
    assert plan_ticks(most, count) == ticks


def test_a_course_of_nothing_is_a_drawing() -> None:
    ElementTree.fromstring(draw_course({}, {}, "processes", "nothing", 720, "wide"))


LOG = "[1] error: worker 7 (pool main, generation 1, slot 2) was killed by SIGKILL while busy with GET /?a-1 after 3\n"


@pytest.mark.parametrize(
    ("failure", "blamed"),
    [
        (Failure(100.0, 100.1, "/?a-1", "no answer", 0), "it ran on a worker that was killed"),
        (Failure(100.0, 100.1, "/?b-1", "no answer", 7), "its connection was kept by a worker that was killed"),
        (Failure(49.0, 51.0, "/?b-1", "no answer", 8), "a worker was killed while it ran, and"),
        (Failure(100.0, 100.1, "/?b-1", "no answer", 8), ""),
        (Failure(100.0, 100.1, "/?a-11", "no answer", 8), ""),
    ],
    ids=["in the log", "its worker", "at the time", "nobody", "another request"],
)
def test_whom_a_failed_request_is_blamed_on(failure: Failure, blamed: str) -> None:
    reason = excuse(failure, [(50.0, 7)], LOG)
    assert reason.startswith(blamed)
    assert bool(reason) is bool(blamed)


def test_what_the_log_says_of_a_stuck_request() -> None:
    case = CASES[0]
    log = (
        f"worker 5 (pool main) is slow: GET {case.path} for 1.1 s\n"
        "worker 5, thread 1, newest call first: <lambda> (/a/app.py:49), application (/a/app.py:80)\n"
        f"worker 5 (pool main, generation 1, slot 0) was killed by SIGKILL while busy with GET {case.path} after 0\n"
    )
    named, stack, killed = look_up(log, case)
    assert (named, killed) == ("after 1.1 s", True)
    assert re.search(case.frame, stack)
    assert look_up("", case) == ("", "", False)


def test_the_trials_are_listed_and_a_wrong_name_is_a_sentence() -> None:
    for arguments, status, words in (([], 0, "python -m bench trial NAME"), (["relaod"], 2, "no trial 'relaod'")):
        command = [sys.executable, "-m", "bench", "trial", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert words in done.stdout + done.stderr
        if not arguments:
            assert all(re.search(rf"^{name} +\S.*\)$", done.stdout, re.M) for name in NAMES)


def test_p13_p11_a_server_is_reloaded_succeeded_and_ended() -> None:
    with serving('ProcessManager = "static"\nMaxServers = 2') as server:
        first, tally = server.pid, Tally()
        wait_until(lambda: is_settled(server, 1), "the workers")
        client = Client(server.ports["http"], tally)
        assert client.ask("/pid")
        client.close()
        reload(server, 2)
        assert client.ask("/size/100000")
        assert client.ask("/pid")
        client.close()
        figures = read_figures(server.pid)
        assert figures.threads == 1
        assert figures.resident >= figures.share > 0
        succeed(server)
        second, family = server.pid, list_family(server.pid)
        assert second != first
        assert client.ask("/pid")
        client.close()
        assert server.list_complaints() == []
    assert (tally.asked, tally.failures) == (4, [])
    assert not any(map(is_alive, (first, second, *family)))
