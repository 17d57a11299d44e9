"""The comparisons of Interchange, AJP, sendfile and AxKit: every figure has its counterpart, and they run."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import peers
from bench.ajp_copying import SWITCHES, make_writer
from bench.historic import find_figure, read_figures
from bench.plan import parse_plan, read_plan
from bench.report.series import list_points, make_series, tell_dips
from bench.results import Contender, Run, Sample, Scenario
from gateways.wire.ajp_packets import format_chunks
from tests.servers import ROOT
from tests.test_bench_plan import PLAN


def list_figures(place: Any, names: tuple[str, ...]) -> Iterator[float]:
    """Every figure below a table of the original whose name is wanted; the median of several is their middle one."""
    for name, value in place.items() if isinstance(place, dict) else ():
        if isinstance(value, dict):
            yield from list_figures(value, names)
        elif name in names:
            yield sorted(value)[len(value) // 2] if isinstance(value, list) else float(value)


@pytest.mark.parametrize(
    ("comparison", "table", "names"),
    [
        ("interchange", "interchange", ("dbm", "mysql", "postgres")),
        ("ajp", "ajp", ("rate", "rate_before", "mbytes_per_second", "mbytes_per_second_before")),
        ("sendfile", "emulate_sendfile", ("rate",)),
        ("axkit", "axkit", ("rate",)),
    ],
)
def test_every_figure_of_the_original_has_its_counterpart(comparison: str, table: str, names: tuple[str, ...]) -> None:
    plan, figures = read_plan(comparison), read_figures()
    rows = figures[table] if isinstance(figures[table], list) else [figures[table]]
    keys = [key for case in plan.cases for key in case.original.values()]
    keys += [key for ladder in plan.ladders for key in ladder.original.values()]
    assert {find_figure(key, figures) for key in keys} >= {f for row in rows for f in list_figures(row, names)}


@pytest.mark.parametrize("switches", [(), ("pieces",), ("page",), SWITCHES])
def test_the_copying_writer_sends_the_same_bytes(switches: tuple[str, ...]) -> None:
    write = make_writer("pieces" in switches, "page" in switches)
    for size in (0, 1, 8184, 8185, 16368, 100_000):
        body = bytes(range(256)) * (size // 256) + bytes(size % 256)
        assert write(b"head", body, b"end", 8192) == format_chunks(b"head", body, b"end", 8192)


def test_a_ladder_may_have_originals_of_its_own_measure() -> None:
    ladder = 'measure = "p95"\n[ladder.original]\nwsgi = "axkit[cache=true,incremental=true].percentiles.95"\n'
    plan = parse_plan(f'{PLAN}{ladder}[[series]]\ntitle = "S"\ncase = "direct"\ncontenders = ["wsgi"]\n', "a")
    assert find_figure(plan.ladders[0].original["wsgi"], read_figures()) == 457
    assert plan.series[0].contenders == ("wsgi",)
    for wrong, reason in (
        (f"{PLAN}[ladder.original]\nnone = 'x'\n", "ladder 1: original: 'none' is none of 'other'"),
        (f'{PLAN}[[series]]\ntitle = "S"\ncase = "none"\ncontenders = []\n', "series 1: case: 'none' is none of"),
        (f'{PLAN}[[series]]\ntitle = "S"\ncase = "direct"\ncontenders = ["x"]\n', "series 1: contenders: 'x' is none"),
    ):
        with pytest.raises(ValueError, match=re.escape(reason)):
            parse_plan(wrong, "a")


def test_a_series_tells_where_a_contender_dips() -> None:
    rates = [100.0] * 9 + [40.0] + [100.0] * 2
    samples = [
        Sample("a", "c", i, 0, 50, 50 / rate, 50, 0, 0, 0, 0, discarded="x" if i == 3 else "", at=float(i))
        for i, rate in enumerate(rates)
    ]
    points = list_points(samples)
    assert points[9] == (500, 0.4)
    assert tell_dips("A", points) == (
        "A: 1 of 12 samples below 0.8 of the median, at 500 requests; the deepest at 0.400 of it."
    )
    assert tell_dips("A", points[:9]) == "A: 0 of 9 samples below 0.8 of the median."
    run = Run("scenario", {}, "builtin", 1, 12, 1.0, {}, [0, 1], [Scenario("c", title="c")], [Contender("a", "A")])
    assert "nothing to draw" in str(make_series(run, "T", "c", ["a"]))
    run.samples = samples
    assert "<svg" in str(make_series(run, "T", "c", ["a"]))


def test_an_environment_is_made_when_it_is_missing_and_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def install(peer: peers.Peer, _say: object) -> str:
        made.append(peer.name)
        return ""

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(peers, "install_peer", install)
    peer = next(peer for peer in peers.read_peers() if peer.name == "pipeline")
    arguments = argparse.Namespace(action="ensure", names=["pipeline"])
    assert peers.run_peers(arguments) == 0
    assert made == ["pipeline"]
    peer.folder.mkdir(parents=True)
    (peer.folder / peers.STAMP).write_text(peers.format_stamp(peer))
    assert peers.run_peers(arguments) == 0
    assert made == ["pipeline"]
    assert "installed in" in capsys.readouterr().out


def compare(*words: str, out: Path) -> str:
    """What a comparison prints; it must end well."""
    command = [sys.executable, "-m", "bench", "compare", *words, "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout + done.stderr
    return done.stdout


@pytest.mark.front("apache")
def test_ajp_crosses_apache_with_and_without_the_copies(tmp_path: Path) -> None:
    words = ("ajp", "--case", "size16k", "--only", "apache-ajp,apache-ajp-both", "--seconds", "0.05", "--rounds", "1")
    said = compare(*words, out=tmp_path / "a.json")
    assert re.search(r"Apache, AJP +[0-9.,]+ +[0-9]", said)


@pytest.mark.front("nginx")
@pytest.mark.front("lighttpd")
@pytest.mark.front("apache")
def test_front_servers_send_the_files_that_they_are_named(tmp_path: Path) -> None:
    words = ("--case", "small", "--only", "named,read", "--seconds", "0.05", "--rounds", "1")
    said = compare("sendfile", *words, out=tmp_path / "a.json")
    for label in ("nginx, X-Accel-Redirect from ours", "lighttpd, X-Sendfile from ours", "wsgi, read and write"):
        assert re.search(rf"{label} [* ]+[0-9]", said), label


def test_children_are_shown_over_time(tmp_path: Path) -> None:
    said = compare(
        "interchange", "--case", "children", "--only", "series-none", "--rounds", "2", out=tmp_path / "a.json"
    )
    assert re.search(r"no jitter: \d of \d+ samples below 0.8 of the median", said)
