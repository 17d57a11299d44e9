"""The report and its words: a small kept result drawn, and tables of figures and what is said of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bench.historic import ratios_2008, read_rates_2008
from bench.outcome import format_report, format_text
from bench.report import svg, words
from bench.report.figures import plain, show_ratio, significant
from bench.results import Run, parse_run, read_run, write_run
from bench.stats import Interval
from bench.summary import counted, summarise

KEPT = Path(__file__).with_name("data") / "bench_compare.json"
VOID = {"meta", "br", "link", "img", "hr"}


def kept_run() -> Run:
    """The kept result: six modes, one of which failed with a reason full of HTML."""
    return read_run(KEPT)


class Balance(HTMLParser):
    """Notes tags that are closed out of order, and everything that a page would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script" or any(name in ("src", "href", "onload") for name, _ in attrs):
            self.wrong.append(f"<{tag}> fetches or runs something")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")


def check_page(page: str) -> None:
    balance = Balance()
    balance.feed(page)
    assert balance.wrong == []
    assert balance.open == []
    assert not re.search(r"\b(NaN|nan|inf|None)\b", page)
    assert "@import" not in page
    assert "url(" not in page


def test_the_page_of_a_comparison_is_whole_and_labelled() -> None:
    page = format_report(kept_run())
    check_page(page)
    for label in ("handler", "wsgi", "registry", "perlrun", "zygote", "cgi", "requests/s", "p99", "MiB", "25.4", "ab"):
        assert label in page
    assert page.count("<svg") == 6


def test_text_from_a_result_is_escaped() -> None:
    page = format_report(kept_run())
    assert "<b>" not in page
    assert "status 500, not 200 &lt;b&gt;&amp;&quot;" in page


def test_a_failed_mode_has_its_reason_and_no_figure() -> None:
    run = kept_run()
    rows = summarise(run, run.scenarios[0], "cgi")
    assert rows[-1].name == "zygote"
    assert rows[-1].rate is None
    text = format_text(run)
    line = next(line for line in text.splitlines() if line.startswith("zygote"))
    assert "FAILED: in round 1" in line
    assert not re.search(r"\b0(\.0+)?\b", line)


def test_the_table_is_ordered_by_rate() -> None:
    text = format_text(kept_run())
    table = text.split("-----\n", 1)[1] if "-----\n" in text else text
    names = [line.split()[0] for line in table.splitlines() if line.split()[:1] and line.split()[0] in words.LADDER]
    assert names[:6] == ["handler", "wsgi", "registry", "perlrun", "cgi", "zygote"]


def test_everything_failed_is_a_report_too() -> None:
    run = kept_run()
    run.samples.clear()
    for contender in run.contenders:
        contender.failed = "no answer"
    check_page(format_report(run))
    assert "there is no order to judge" in format_text(run)


def test_a_single_mode_is_a_report_too() -> None:
    run = kept_run()
    run.contenders = [contender for contender in run.contenders if contender.name == "handler"]
    check_page(format_report(run))
    assert "handler" in format_text(run)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = kept_run()
    write_run(run, tmp_path / "deep" / "copy.json")
    assert read_run(tmp_path / "deep" / "copy.json") == run
    assert json.loads((tmp_path / "deep" / "copy.json").read_text(encoding="utf-8"))["kind"] == "compare"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("[]", "not a result file"),
        ('{"format": 2}', "not a result file of format 1"),
        ('{"format": 1}', "missing or unknown entry"),
        ('{"format": 1, "scenarios": [{"nme": 1}], "contenders": [], "samples": []}', "missing or unknown entry"),
    ],
)
def test_what_is_no_result_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_run(text)


def test_disturbed_samples_are_left_out_when_enough_others_are_there() -> None:
    run = kept_run()
    scenario = run.scenarios[0]
    mine = run.of("cgi", scenario.name)
    mine[0].other_cpu = mine[0].seconds
    assert len(counted(run, "cgi", scenario)) == len(mine) - 1
    for sample in mine[:4]:
        sample.other_cpu = sample.seconds
    assert len(counted(run, "cgi", scenario)) == len(mine)
    assert any("disturbed" in reason for reason in summarise(run, scenario, "cgi")[-2].unstable)
    assert "disturbed to the last try" in format_text(run)


def test_the_ratios_of_2008() -> None:
    rates, ratios = read_rates_2008(), ratios_2008()
    assert rates["handler"] == 2430.80
    assert ratios["handler"] == pytest.approx(25.43, abs=0.01)
    assert ratios["cgi"] == 1.0
    assert "zygote" not in ratios


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.411, "0.411"), (0.0041249, "0.00412"), (1, "1.00"), (4.591, "4.59"), (41.26, "41.3"),
        (999.4, "999"), (1234.5, "1,230"), (98765, "98,800"), (0.9999, "1.000"),
    ],
)  # fmt: skip
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.05, "0.05"), (1, "1"), (30, "30"), (10000, "10,000")])
def test_ticks_are_plain(value: float, text: str) -> None:
    assert plain(value) == text


def test_a_ratio_shows_its_interval() -> None:
    assert show_ratio(Interval(25.43, 24.1, 26.02)) == "25.4 (24.1 to 26.0)"
    assert show_ratio(None) == "-"


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(1.01, 1.5, words.HOLDS), (0.9, 1.2, words.OPEN), (0.5, 0.99, words.REVERSED)]
)
def test_a_step_is_judged_by_its_whole_interval(low: float, high: float, verdict: str) -> None:
    assert words.judge(Interval((low + high) / 2, low, high)) == verdict


STEPS = [
    ("holds", (1.1, 1.2), (1.1, 1.2), "The order holds: wsgi > registry."),
    ("open by rate, shown by CPU", (0.9, 1.1), (1.1, 1.2), "It does use less CPU"),
    ("reversed by both", (0.8, 0.9), (0.8, 0.9), "really does more work for wsgi"),
    ("reversed by rate, open by CPU", (0.8, 0.9), (0.9, 1.1), "CPU does not decide it"),
    ("open by both", (0.9, 1.1), (0.9, 1.1), "which may be either way"),
]


@pytest.mark.parametrize(("rate", "cpu", "said"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS])
def test_the_words_follow_the_intervals(rate: tuple[float, float], cpu: tuple[float, float], said: str) -> None:
    middle_rate, middle_cpu = sum(rate) / 2, sum(cpu) / 2
    step = words.Step("registry", "wsgi", Interval(middle_rate, *rate), Interval(middle_cpu, *cpu), 1.23)
    assert said in " ".join(words.tell_order([step]))


def test_a_reversed_pair_is_found_in_a_result() -> None:
    run = kept_run()
    for sample in run.samples:
        if sample.contender == "handler":
            sample.requests //= 4
    text = format_text(run)
    assert "does not hold" in text
    assert "handler is slower than wsgi" in text


def test_few_and_wide_rounds_are_called_unstable() -> None:
    run = kept_run()
    run.samples = [sample for sample in run.samples if sample.round < 2]
    for sample in run.samples:
        sample.seconds *= 1 + sample.round
    text = format_text(run)
    assert "only 2 rounds" in text
    assert "middle half of its rounds differs" in text
    assert "handler *" in text


def test_names_are_escaped_in_drawings() -> None:
    drawing = svg.draw_bars([svg.Bar("<i>", 3, 2, 4)], "a & b", 'say "x"', 720, "wide")
    assert "<i>" not in drawing
    assert "&lt;i&gt;" in drawing
    assert "a &amp; b" in drawing


@pytest.mark.parametrize("width", [720, 340])
def test_drawings_stay_within_their_frame(width: int) -> None:
    bars = [svg.Bar("a", 41, 39, 44), svg.Bar("b", 7300, 7000, 7500, mark=1040), svg.Bar("c", note="failed")]
    lines = [("a", "s0", {50: 24.0, 99: 60.0}), ("b", "s1", {50: 0.1, 99: 0.4})]
    for drawing in (
        svg.draw_bars(bars, "unit", "title", width, "wide"),
        svg.draw_latencies(lines, "unit", "title", width, "wide"),
    ):
        places = [float(x) for x in re.findall(r'\bx[12]?="([-0-9.e]+)"', drawing)]
        assert min(places) >= 0
        assert max(places) <= width


def test_drawings_of_nothing_are_drawn() -> None:
    assert svg.draw_bars([], "unit", "title", 720, "wide").startswith("<svg")
    assert svg.draw_bars([svg.Bar("a", note="failed")], "unit", "title", 340, "narrow").startswith("<svg")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([10.0, 50.0], [10.0, 50.0]),
        ([10.0, 10.0, 10.0], [10.0, 25.0, 40.0]),
        ([100.0, 100.0], [85.0, 100.0]),
        ([50.0, 10.0], [50.0, 10.0]),
    ],
)
def test_labels_do_not_lie_on_each_other(wanted: list[float], expected: list[float]) -> None:
    assert svg.spread_labels(wanted, 15, 0, 100) == expected


def test_another_kind_of_result_is_refused() -> None:
    with pytest.raises(ValueError, match="no report"):
        format_report(replace(kept_run(), kind="other"))
