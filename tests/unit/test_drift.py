"""Trend and autocorrelation: exact where they can be, silent where they must be."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pdrgate.record.trial import Trial
from pdrgate.stability.curve import LoadLossCurve
from pdrgate.stability.dips import without_lone_dips
from pdrgate.stability.drift import trials_past_the_pdr
from pdrgate.stats.ranks import lag1_autocorrelation, monotone_trend, rank_sum_p, wander

distinct = st.lists(st.integers(min_value=1, max_value=10**6), min_size=4, max_size=25, unique=True).map(
    lambda values: [float(value) for value in values]
)


@given(distinct)
def test_the_trend_is_scipys_theil_sen_and_exact_kendall(values: list[float]) -> None:
    found = monotone_trend(values)
    assert found is not None
    slope = scipy_stats.theilslopes(values)[0]
    assert found.change == pytest.approx(slope * (len(values) - 1) / np.median(values))
    expected = scipy_stats.kendalltau(range(len(values)), values, method="exact").pvalue
    assert found.p_value == pytest.approx(expected, rel=1e-9) or (
        len(values) >= 10 and found.p_value > expected  # where neighbours are alike
    )


def test_a_straight_rise_changes_by_its_ends_over_the_median() -> None:
    found = monotone_trend([98.0, 99.0, 100.0, 101.0, 102.0])
    assert found is not None
    assert found.change == pytest.approx(0.04)
    assert found.p_value == found.least_p == pytest.approx(2 / 120)


def test_one_outlier_is_no_trend() -> None:
    found = monotone_trend([100.0] * 9 + [50.0])
    assert found is not None
    assert found.change == 0.0
    assert found.p_value > 0.3


def test_no_trend_can_be_told_from_three_values_or_of_nothing() -> None:
    assert monotone_trend([1.0, 2.0, 3.0]) is None
    assert monotone_trend([0.0] * 10) is None


def test_a_long_series_uses_the_normal_approximation() -> None:
    values = np.random.default_rng(3).normal(100, 1, 80).tolist()
    found = monotone_trend(values)
    assert found is not None
    expected = scipy_stats.kendalltau(range(80), values).pvalue
    assert found.p_value == pytest.approx(expected, rel=0.05)


def test_neighbours_alike_rise_by_themselves_and_that_is_no_trend() -> None:
    random = np.random.default_rng(5)
    rounds, runs, alike = 300, 30, 0.9
    steps = random.normal(size=(rounds, runs))
    for number in range(1, runs):
        steps[:, number] = alike * steps[:, number - 1] + np.sqrt(1 - alike**2) * steps[:, number]
    rising = sum(found is not None and found.p_value <= 0.002 for found in map(monotone_trend, (100 + steps).tolist()))
    # With the p-value of independent values it is 30 % of them.
    assert rising / rounds <= 0.06


def test_a_trend_under_noise_keeps_nearly_all_of_its_significance() -> None:
    random = np.random.default_rng(6)
    noisy = 100 - np.linspace(0, 3, 18) + 0.3 * random.normal(size=(100, 18))
    assert sum(found is not None and found.p_value <= 0.002 for found in map(monotone_trend, noisy.tolist())) >= 90


def test_alternation_and_waves_have_the_autocorrelation_they_should() -> None:
    alternating = lag1_autocorrelation([float(index % 2) for index in range(20)])
    wave = lag1_autocorrelation(np.sin(np.arange(40) / 5).tolist())
    assert alternating is not None
    assert wave is not None
    assert alternating.value < -0.9
    assert not alternating.significant
    assert wave.value > 0.9
    assert wave.significant


def test_the_autocorrelation_is_that_of_the_ranks() -> None:
    values = [3.0, 1.0, 1.0, 10.0, 7.0, 8.0, 2.0, 100.0, 6.0, 5.0]
    ranks = scipy_stats.rankdata(values)
    ranks -= ranks.mean()
    found = lag1_autocorrelation(values)
    assert found is not None
    assert found.value == pytest.approx((ranks[1:] * ranks[:-1]).sum() / (ranks**2).sum())


def test_few_or_equal_values_have_no_autocorrelation() -> None:
    assert lag1_autocorrelation([1.0, 2.0] * 4) is None
    assert lag1_autocorrelation([1.0] * 30) is None


@pytest.mark.parametrize("runs", [10, 50])
def test_independent_heavy_tails_seldom_look_autocorrelated_or_rising(runs: int) -> None:
    random = np.random.default_rng(11)
    rounds = 600
    series = (1 + 0.01 * random.standard_t(3, (rounds, runs))).tolist()
    lagged = sum(found is not None and found.significant for found in (lag1_autocorrelation(v, 0.01) for v in series))
    rising = sum(found is not None and found.p_value <= 0.01 for found in map(monotone_trend, series))
    assert lagged / rounds <= 0.025
    assert rising / rounds <= 0.025


def test_wander_is_the_distance_of_the_parts() -> None:
    assert wander([1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 2.0, 2.0]) == pytest.approx(1.0)
    assert wander([1.0, 2.0]) == 0.0
    assert wander([0.0] * 8) == 0.0


def test_a_million_values_have_a_trend_as_few_have() -> None:
    """Each with each of them are more than any memory holds."""
    count = 1_000_003
    found = monotone_trend([1e6 + number for number in range(count)])
    assert found is not None
    assert found.change == pytest.approx((count - 1) / (1e6 + count / 2), rel=1e-5)  # parts differ by one value
    assert found.p_value < 1e-6
    source = np.random.default_rng(1)
    still = monotone_trend((1e6 + source.normal(size=count)).tolist())
    assert still is not None
    assert still.p_value > 0.001


def test_overloads_that_were_not_sent_whole_are_no_other_speed() -> None:
    """As much is forwarded of them, and as much in a second: more of what was sent."""
    low = [Trial(5e5, 1.0, 500_000, 500_000)] * 6
    whole = [Trial(load, 1.0, round(load), 1_000_000) for load in (2e6, 3e6)]
    short = [Trial(load, 1.0, round(0.96 * load), 1_000_000, unsent=round(0.04 * load)) for load in (2e6, 3e6)]
    trials = [*low, *(trial for _ in range(3) for trial in (*whole, *short))]
    curve = LoadLossCurve.from_trials(trials)
    assert curve.left_out == 0
    series = trials_past_the_pdr(trials, curve, curve, 0.005, 0.01)
    assert series is not None
    assert series.values == pytest.approx((1e6,) * 12)
    assert without_lone_dips([*low, *whole * 6, *short], 0.01) == [*low, *whole * 6, *short]


@pytest.mark.parametrize(("few", "many"), [(1, 4), (2, 5), (3, 4), (4, 3)])
def test_the_rank_sum_counts_all_ways_in_which_chance_mixes_two_samples(few: int, many: int) -> None:
    sums = [sum(chosen) for chosen in itertools.combinations(range(1, few + many + 1), few)]
    middle = few * (few + many + 1) / 2
    for chosen in itertools.combinations(range(1, few + many + 1), few):
        others = [rank for rank in range(1, few + many + 1) if rank not in chosen]
        off = abs(sum(chosen) - middle)
        expected = sum(abs(one - middle) >= off for one in sums) / len(sums)
        assert rank_sum_p([10.0**rank for rank in chosen], [10.0**rank for rank in others]) == pytest.approx(expected)


def test_the_rank_sum_of_many_values_and_of_none() -> None:
    assert rank_sum_p([], [1.0]) == rank_sum_p([1.0], []) == 1.0
    assert rank_sum_p([1.0, 1.0], [1.0, 1.0, 1.0]) == 1.0
    # Two beyond all of 58, exactly and beyond what is counted exactly.
    exact = rank_sum_p([-1.0, -2.0], list(map(float, range(58))))
    assert exact == pytest.approx(2 / math.comb(60, 2))
    assert rank_sum_p([-1.0, -2.0], list(map(float, range(59)))) < 0.02
