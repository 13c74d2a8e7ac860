"""Evidence on a mean that may be looked at after every value, and means that a lone dip does not move."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.stats.intervals import sample_deviation
from pdrgate.stats.order import order_effect, without_order
from pdrgate.stats.robust import winsorised
from pdrgate.stats.sequential import ALIKE, drifting_likelihood_ratio, log_likelihood_ratio, resolvable

VALUES = st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=30)


def test_the_ratio_of_two_normal_likelihoods_by_hand() -> None:
    """Squares around -0.04: 0.0017 + 0.0026 + 0.0010; around 0: 0.0000 + 0.0001 + 0.0001."""
    values = (0.001, 0.011, -0.009)
    low = sum((value + 0.04) ** 2 for value in values)
    high = sum((value - max(sum(values) / 3, 0)) ** 2 for value in values)
    assert log_likelihood_ratio(values, -0.04, 0.0) == pytest.approx(1.5 * math.log(high / low))


@given(VALUES, st.floats(0.001, 0.2))
def test_it_is_mirrored(values: list[float], distance: float) -> None:
    forth = log_likelihood_ratio(values, -distance, 0.0)
    back = log_likelihood_ratio([-value for value in values], 0.0, distance)
    assert forth == pytest.approx(-back, abs=1e-6)


@given(VALUES, st.floats(0.001, 0.2), st.floats(0.001, 1000))
def test_the_unit_does_not_matter(values: list[float], distance: float, unit: float) -> None:
    if max(values) - min(values) < 1e-6:
        return
    other = log_likelihood_ratio([value * unit for value in values], -distance * unit, 0.0)
    assert other == pytest.approx(log_likelihood_ratio(values, -distance, 0.0), rel=1e-6, abs=1e-6)


def test_equal_values_are_told_apart_without_a_deviation() -> None:
    assert log_likelihood_ratio([0.0] * 4, -0.04, 0.0) == -700
    assert log_likelihood_ratio([-0.04] * 4, -0.04, 0.0) == 700
    assert log_likelihood_ratio([-0.02] * 4, -0.04, 0.0) == pytest.approx(0)
    assert log_likelihood_ratio([0.0] * 4, 0.0, 0.0) == 0


@given(st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=8))
def test_a_drift_is_the_likeliest_that_a_hypothesis_allows(values: list[float]) -> None:
    """Against the density of a stationary process, written out, at means and correlations of a grid."""
    values = [value + number / 100 for number, value in enumerate(values)]

    def likely(level: float, alike: float) -> float:
        steps = [after - level - alike * (before - level) for before, after in itertools.pairwise(values)]
        left = (1 - alike**2) * (values[0] - level) ** 2 + sum(step**2 for step in steps)
        return math.log1p(-(alike**2)) / 2 - len(values) / 2 * math.log(max(left, 1e-300))

    grid = [number / 200 for number in range(301)]
    low = max(likely(-0.04 - off, alike) for off in grid for alike in ALIKE)
    high = max(likely(off, alike) for off in grid for alike in ALIKE)
    found = drifting_likelihood_ratio(values, -0.04, 0.0)
    assert found == pytest.approx(low - high, abs=0.4 * len(values))
    assert found == pytest.approx(-drifting_likelihood_ratio([-value for value in values], 0.0, 0.04), abs=1e-6)


def test_a_drift_makes_few_values_say_less() -> None:
    beside = [-0.040, -0.041, -0.043, -0.042]
    assert 1 < drifting_likelihood_ratio(beside, -0.04, 0.0) < log_likelihood_ratio(beside, -0.04, 0.0) - 4
    assert drifting_likelihood_ratio([-0.04] * 4, -0.04, 0.0) == 700
    assert drifting_likelihood_ratio([0.0] * 4, -0.04, 0.0) == -700
    for values in ([], [math.nan, 0.0]):
        with pytest.raises(ValueError, match="finite values"):
            drifting_likelihood_ratio(values, -0.04, 0.0)


def test_what_the_order_does_is_told_from_chance() -> None:
    source, wrong = random.Random(2), 0
    for _ in range(3000):
        wrong += order_effect([source.gauss(0, 0.01) for _ in range(8)]) != 0
    assert wrong <= 12  # of a thousand one
    ordered = [source.gauss(0, 0.002) + (0.03 if number % 2 else -0.03) for number in range(8)]
    assert order_effect(ordered) == pytest.approx(-0.03, abs=0.003)
    left = without_order(ordered)
    assert sum(left) == pytest.approx(sum(ordered))
    assert sample_deviation(left) < 0.004
    assert without_order(ordered[:7]) == tuple(ordered[:7])
    assert order_effect([0.01, -0.01] * 4) == pytest.approx(0.01)


@pytest.mark.parametrize("values", [[], [math.nan, 0.0], [math.inf, 0.0]])
def test_what_is_no_sample(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"finite|no values"):
        log_likelihood_ratio(values, -0.04, 0.0)
    with pytest.raises(ValueError, match="do not exclude each other"):
        log_likelihood_ratio([1.0], 1.0, 0.0)


def test_a_million_values() -> None:
    source = random.Random(1)
    assert log_likelihood_ratio([source.gauss(0, 0.1) for _ in range(1_000_000)], -0.04, 0.0) == -700


@pytest.mark.parametrize("count", [4, 8, 40])
def test_what_is_said_to_be_resolvable_is_decided_in_some_95_of_100(count: int) -> None:
    source = random.Random(2)
    deviation, odds = 0.03, 100.0
    decided = 0
    for _ in range(1000):
        values = [source.gauss(0, deviation) for _ in range(count)]
        distance = resolvable(sample_deviation(values), count, odds)
        decided += log_likelihood_ratio(values, -distance, 0.0) <= -math.log(odds)
    assert 0.93 <= decided / 1000 <= 0.97
    with pytest.raises(ValueError, match="no two means can be distinguished"):
        resolvable(0.03, 1, 100)


def test_what_lies_far_apart_counts_no_more_than_three_deviations() -> None:
    values = [0.01, -0.01, 0.005, -0.005, 0.0, 0.008, -0.007, -0.3]
    kept = winsorised(values)
    assert kept[:7] == tuple(values[:7])
    assert -0.05 < kept[7] < -0.02
    assert sample_deviation(kept) < 0.02
    assert winsorised(values[1:]) == tuple(values[1:])  # too few
    assert winsorised([*values[1:7], -0.3, -0.2, 0.007]) == (*values[1:7], -0.3, -0.2, 0.007)  # two are no lone dip
    assert winsorised([1.0] * 5 + [2.0] * 3) == (1.0,) * 5 + (2.0,) * 3  # no deviation to go by


@given(st.lists(st.integers(-1000, 1000), min_size=8, max_size=40), st.integers(-500, 500))
def test_winsorising_moves_with_the_values(values: list[int], shift: int) -> None:
    moved = winsorised([value + shift for value in values])
    assert moved == pytest.approx([value + shift for value in winsorised(values)], abs=1e-6)
