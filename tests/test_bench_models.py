"""bench.models: every step can be switched off, the answers stay right, and the page adds up."""

from __future__ import annotations

import pytest

from bench import models
from bench.report import document
from bench.report.svg import Part, draw_stack
from bench.stats import median
from tests.servers import ROOT

HELLO = str(ROOT / "apps" / "hello.py")


def test_every_row_runs_and_answers_the_whole_page() -> None:
    figures = models.measure_apart(HELLO, 1164, rounds=2, seconds=0.001, seed=1)
    assert list(figures) == list(models.ROWS)
    assert all(len(values) == 2 and min(values) > 0 for values in figures.values())


def test_a_wrong_answer_is_an_error_and_no_figure() -> None:
    with pytest.raises(ValueError, match="1164 bytes came, and not 5"):
        models.measure_apart(HELLO, 5, rounds=1, seconds=0.001, seed=1)


def test_steps_name_rows_and_differ_in_one_thing() -> None:
    for step in models.STEPS:
        on, off = models.ROWS[step.on], models.ROWS[step.off]
        assert step.on != step.off
        assert [on.parts is off.parts, on.stdio == off.stdio, on.recipe is off.recipe].count(False) == 1, step


def test_the_page_adds_up_to_a_run() -> None:
    figures = {name: [30.0, 30.0, 30.0] for name in models.ROWS}
    figures["registry"] = [33.0, 40.0, 36.0]
    report = models.make_document(figures, {"load_average": ()}, 3)
    text, html = document.format_text(report), document.format_html(report)
    assert "parsing the reply" in text
    assert "6.00" in text
    assert median(figures["registry"]) == 36.0
    assert "36.0 µs of CPU" in html


def test_a_stack_draws_each_part_by_its_share() -> None:
    drawn = draw_stack([Part("a", 30, "s0"), Part("<b>", 10, "s1")], "µs", "whole", 416, "wide")
    assert 'width="299"' in drawn
    assert 'width="99"' in drawn
    assert "30.0  (75 %)" in drawn
    assert "&lt;b&gt;" in drawn
