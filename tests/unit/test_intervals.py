"""Means, deviations and intervals, against hand-worked cases of the paper's equations and against scipy."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pdrgate.stats.intervals import (
    Interval,
    change_interval,
    delta_ucl,
    mean,
    paired_change_interval,
    relative,
    sample_deviation,
    t_interval,
    t_quantile,
)

values = st.floats(min_value=-1e6, max_value=1e6).map(lambda value: round(value, 3))
samples = st.lists(values, min_size=2, max_size=30)


def test_the_deviation_of_equation_2_by_hand() -> None:
    # Loss ratios 0.01, 0.02, 0.06: mean 0.03, squares 4e-4 + 1e-4 + 9e-4 = 14e-4, divided by K - 1 = 2.
    assert mean([0.01, 0.02, 0.06]) == pytest.approx(0.03)
    assert sample_deviation([0.01, 0.02, 0.06]) == pytest.approx(math.sqrt(7e-4))


def test_the_limits_of_section_iv_a_by_hand() -> None:
    # K = 3: t(2, 0.025) = 4.3027 in any printed table; half width 4.3027 * sqrt(7e-4) / sqrt(3) = 0.06572.
    limits = t_interval([0.01, 0.02, 0.06])
    assert limits.low == pytest.approx(0.03 - 0.06572, abs=1e-5)
    assert limits.high == pytest.approx(0.03 + 0.06572, abs=1e-5)
    assert delta_ucl([0.01, 0.02, 0.06]) == pytest.approx(0.06572 / 0.03, abs=1e-3)


def test_the_paper_uses_50_repeats_whose_quantile_is_that_of_49_degrees() -> None:
    assert t_quantile(0.975, 49) == pytest.approx(2.0096, abs=1e-4)


def test_delta_ucl_is_undefined_for_a_mean_of_zero() -> None:
    assert delta_ucl([0.0, 0.0, 0.0]) is None


@given(samples, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_t_interval_is_scipys(sample: list[float], confidence: float) -> None:
    spread = sample_deviation(sample)
    assume(spread > 0)
    expected = scipy_stats.t.interval(
        confidence, len(sample) - 1, loc=mean(sample), scale=spread / math.sqrt(len(sample))
    )
    limits = t_interval(sample, confidence)
    assert (limits.low, limits.high) == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_a_change_of_constant_samples_has_no_width() -> None:
    change = change_interval([110.0, 110.0], [100.0, 100.0])
    assert change.estimate == pytest.approx(0.1)
    assert change.interval == Interval(change.estimate, change.estimate)


def test_a_change_against_a_constant_baseline_is_the_scaled_t_interval() -> None:
    candidate = [98.0, 101.0, 104.0]
    limits = t_interval(candidate)
    change = change_interval(candidate, [100.0, 100.0, 100.0])
    assert change.interval.low == pytest.approx(limits.low / 100 - 1)
    assert change.interval.high == pytest.approx(limits.high / 100 - 1)


@given(
    st.lists(st.floats(min_value=90, max_value=110), min_size=3, max_size=20),
    st.lists(st.floats(min_value=90, max_value=110), min_size=3, max_size=20),
    st.floats(min_value=1e-3, max_value=1e6),
)
def test_a_change_contains_its_estimate_and_has_no_unit(
    candidate: list[float], baseline: list[float], factor: float
) -> None:
    change = change_interval(candidate, baseline)
    assert change.interval.low <= change.estimate <= change.interval.high
    scaled = change_interval([factor * value for value in candidate], [factor * value for value in baseline])
    assert scaled.interval.low == pytest.approx(change.interval.low, abs=1e-6)
    assert scaled.interval.high == pytest.approx(change.interval.high, abs=1e-6)


def test_the_change_interval_holds_the_true_change_as_often_as_asked() -> None:
    import numpy as np

    random = np.random.default_rng(7)
    rounds = 1500
    held = sum(
        0.02 in change_interval(random.normal(102, 3, 5).tolist(), random.normal(100, 1, 8).tolist(), 0.9).interval
        for _ in range(rounds)
    )
    assert held / rounds == pytest.approx(0.9, abs=0.025)


@pytest.mark.parametrize("sample", [[], [1.0]])
def test_fewer_than_two_values_have_no_deviation_and_no_interval(sample: list[float]) -> None:
    for undefined in (
        lambda: sample_deviation(sample),
        lambda: t_interval(sample),
        lambda: delta_ucl(sample),
        lambda: change_interval([1.0, 2.0], sample),
    ):
        with pytest.raises(ValueError, match="at least two values"):
            undefined()


def test_what_has_no_meaning_is_said() -> None:
    with pytest.raises(ValueError, match="no values"):
        mean([])
    with pytest.raises(ValueError, match="confidence is 95"):
        t_interval([1.0, 2.0], 95)
    with pytest.raises(ValueError, match="mean is 0"):
        change_interval([1.0, 2.0], [-1.0, 1.0])
    with pytest.raises(ValueError, match="its mean may be 0"):
        change_interval([1.0, 2.0], [-10.0, 11.0])
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(1.0, 3)


def test_values_that_differ_beyond_all_numbers_have_a_change_all_the_same() -> None:
    """Its interval once ended the comparison as an error of the program's own."""
    found = paired_change_interval([1e300, 1e-300], [1.0, 1.0], 0.975)
    assert found.interval.low == -1.0
    assert found.interval.high == relative(1e9) < math.inf
