"""Two runs held against each other: which ratios contradict themselves, and whether a report had doubted them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.__main__ import make_parser
from bench.agreement import find_contradictions, list_ratios
from bench.comparison import plan_sessions
from bench.results import write_run
from tests.test_bench_comparison import run_of

STEADY = {"a": [100.0, 101, 99], "b": [200.0, 201, 199]}
TWICE = {"a": [100.0, 101, 99], "b": [400.0, 401, 399]}
WILD = {"a": [100.0, 101, 99], "b": [400.0, 500, 600]}
NEAR = {"a": [100.0, 101, 99], "b": [196.0, 199, 207]}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (STEADY, STEADY, []),
        (STEADY, NEAR, []),
        (STEADY, TWICE, [False]),
        (STEADY, WILD, [True]),
        (WILD, STEADY, [True]),
    ],
    ids=["same", "overlapping", "disjoint", "called unstable by the second", "called unstable by the first"],
)
def test_intervals_that_do_not_overlap_are_found(
    one: dict[str, list[float]], other: dict[str, list[float]], found: list[bool]
) -> None:
    """One ladder of one step: its ratio to the base, and the step, which is the same."""
    contradictions = find_contradictions(list_ratios(run_of(one, {})), list_ratios(run_of(other, {})))
    assert [c.unstable for c in contradictions] == found * 2 or (not contradictions and not found)


def test_ratios_of_cases_and_goals_are_listed_too() -> None:
    run = run_of({"wsgi": [100] * 3, "flup": [50] * 3}, {})
    run.scenarios[0].base = "flup"
    run.plan["goals"] = [{"name": "wsgi", "of": "flup", "most": 0.6, "measure": "cpu"}]
    names = sorted(list_ratios(run))
    assert [name for name in names if name.startswith("direct")] == ["direct: CPU, wsgi of flup"]
    assert len(names) == len(set(names)) >= 3


@pytest.mark.parametrize(
    ("other", "status", "said"),
    [
        (STEADY, 0, "The runs agree: the intervals of all"),
        (TWICE, 1, "The runs do not agree."),
        (WILD, 0, "were called"),
    ],
)
def test_the_command_says_whether_runs_agree(
    tmp_path: Path, other: dict[str, list[float]], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, figures in (("one", STEADY), ("other", other)):
        write_run(run_of(figures, {}), tmp_path / folder / "small.json")
    arguments = make_parser().parse_args(["agree", str(tmp_path / "one"), str(tmp_path / "other")])
    assert arguments.run(arguments) == status
    assert said in re.sub(r"\s+", " ", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("README.md", "README.md", "README.md: not JSON"),
        ("none.json", "none.json", "none.json: No such file"),
        ("docs", "conf", "have no result in common"),
    ],
)
def test_the_command_names_what_cannot_be_compared(one: str, other: str, reason: str) -> None:
    root = Path(__file__).resolve().parent.parent
    arguments = make_parser().parse_args(["agree", str(root / one), str(root / other)])
    with pytest.raises(ValueError, match=reason):
        arguments.run(arguments)


@pytest.mark.parametrize(
    ("first", "rounds", "sessions", "parts"),
    [
        (0, 7, 3, [range(2), range(2, 4), range(4, 7)]),
        (0, 3, 1, [range(3)]),
        (3, 7, 3, [range(3, 4), range(4, 7)]),
        (0, 1, 3, [range(1)]),
        (7, 7, 3, []),
    ],
    ids=["three starts", "quick", "gone on with", "one round", "all done"],
)
def test_servers_are_started_anew_on_the_way(first: int, rounds: int, sessions: int, parts: list[range]) -> None:
    assert plan_sessions(first, rounds, sessions) == parts
