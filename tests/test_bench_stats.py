"""The statistics of the comparison: tables of values and what comes of them."""

from __future__ import annotations

import pytest

from bench.stats import (
    count_values,
    median,
    median_interval,
    merge_histograms,
    paired_ratios,
    percentile,
    quantile,
    round_to_digits,
    spread,
)


@pytest.mark.parametrize(
    ("values", "part", "expected"),
    [
        ([5.0], 0.0, 5.0),
        ([5.0], 1.0, 5.0),
        ([1.0, 3.0], 0.5, 2.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0, 4.0], 0.25, 1.75),
        ([1.0, 2.0, 3.0, 4.0], 0.75, 3.25),
        ([4.0, 1.0, 3.0, 2.0], 1.0, 4.0),
    ],
)
def test_quantile_interpolates_between_neighbours(values: list[float], part: float, expected: float) -> None:
    assert quantile(values, part) == pytest.approx(expected)


@pytest.mark.parametrize(("values", "part"), [([], 0.5), ([1.0], -0.1), ([1.0], 1.1)])
def test_quantile_refuses_what_has_no_answer(values: list[float], part: float) -> None:
    with pytest.raises(ValueError, match=r"no values|between 0 and 1"):
        quantile(values, part)


def test_spread_holds_quartiles_and_extremes() -> None:
    found = spread([10.0, 20.0, 30.0, 40.0, 50.0])
    assert (found.median, found.low, found.high, found.least, found.greatest, found.count) == (30, 20, 40, 10, 50, 5)
    assert found.relative == pytest.approx(20 / 30)


def test_spread_of_zeroes_is_not_divided_by() -> None:
    assert spread([0.0, 0.0]).relative == 0.0


@pytest.mark.parametrize(
    ("values", "base", "expected"),
    [
        ({0: 10.0, 1: 30.0}, {0: 5.0, 1: 10.0}, [2.0, 3.0]),
        ({0: 10.0, 2: 30.0}, {0: 5.0, 1: 10.0}, [2.0]),
        ({0: 10.0}, {0: 0.0}, []),
        ({}, {0: 1.0}, []),
        ({1: 8.0, 0: 4.0}, {1: 4.0, 0: 4.0}, [1.0, 2.0]),
    ],
    ids=["paired", "rounds of both only", "base of zero", "nothing", "in the order of rounds"],
)
def test_ratios_are_taken_within_rounds(
    values: dict[int, float], base: dict[int, float], expected: list[float]
) -> None:
    assert paired_ratios(values, base) == expected


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(1, 1, 1), (5, 1, 5), (7, 1, 7), (8, 1, 8), (9, 2, 8), (12, 3, 10), (24, 7, 18)],
)
def test_interval_of_a_median_is_the_one_of_the_sign_test(count: int, low: float, high: float) -> None:
    found = median_interval([float(value) for value in range(count, 0, -1)])
    assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize("values", [[2.0], [1.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]])
def test_interval_holds_the_median_and_stays_within_the_values(values: list[float]) -> None:
    found = median_interval(values)
    assert min(values) <= found.low <= found.median <= found.high <= max(values)
    assert found.median == median(values)


def test_interval_of_many_equal_rounds_is_narrow() -> None:
    found = median_interval([5.0] * 20 + [50.0])
    assert (found.low, found.high) == (5.0, 5.0)


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0), (7, 7), (999, 999), (1234, 1230), (1235, 1240), (98765, 98800), (1000000, 1000000)]
)
def test_values_keep_three_digits(value: int, expected: int) -> None:
    assert round_to_digits(value) == expected


def test_histograms_are_sorted_counted_and_merged() -> None:
    assert count_values([5, 1234, 5, 1231]) == [[5, 2], [1230, 2]]
    assert merge_histograms([[[5, 2], [9, 1]], [[1, 4], [5, 3]]]) == [[1, 4], [5, 5], [9, 1]]


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 10), (50, 10), (50.5, 20), (75, 20), (90, 30), (99, 30), (100, 40)]
)
def test_percentiles_are_nearest_ranks(percent: float, expected: int) -> None:
    histogram = [[10, 100], [20, 50], [30, 49], [40, 1]]
    assert percentile(histogram, percent) == expected


def test_percentile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)
