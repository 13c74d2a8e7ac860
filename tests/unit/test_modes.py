"""Two modes are seen when they are there, and seldom when they are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.stats.modes import critical_separation, two_modes


def flipping(random: np.random.Generator, runs: int, noise: float) -> list[float]:
    level = np.where(random.random(runs) < 0.5, 8e6, 10e6)
    return (level * (1 + noise * random.normal(size=runs))).tolist()


def test_the_split_is_where_the_gap_is() -> None:
    found = two_modes([8.0, 10.1, 8.1, 10.0, 7.9, 10.0, 8.0, 9.9, 10.0, 10.1])
    assert found is not None
    assert (found.low_count, found.high_count) == (4, 6)
    assert found.low == pytest.approx(8.0)
    assert found.high == pytest.approx(10.0166667)
    assert found.gap == pytest.approx((found.high - found.low) / 9.21)
    # Groups deviate by 0.0816 and 0.0753: the wider one counts.
    assert found.separation == pytest.approx((found.high - found.low) / 0.0816497, rel=1e-4)
    assert found.significant


@pytest.mark.parametrize(("runs", "least"), [(10, 0.8), (20, 0.99), (50, 0.99)])
def test_a_sut_that_flips_between_10_and_8_mpps_is_seen(runs: int, least: float) -> None:
    random = np.random.default_rng(runs)
    found = [two_modes(flipping(random, runs, 0.003)) for _ in range(200)]
    assert sum(modes is not None and modes.significant for modes in found) / 200 >= least


@pytest.mark.parametrize("runs", [8, 10, 20, 50])
@pytest.mark.parametrize("shape", ["normal", "heavy", "skewed", "uniform", "cut off"])
def test_one_mode_is_seldom_taken_for_two(runs: int, shape: str) -> None:
    random = np.random.default_rng(runs)
    rounds = 1000
    size = (rounds, runs)
    sample = {
        "normal": lambda: random.normal(size=size),
        "heavy": lambda: random.standard_t(3, size),
        "skewed": lambda: random.exponential(size=size),
        "uniform": lambda: random.random(size),
        "cut off": lambda: np.minimum(0.0, random.normal(size=size)),
    }[shape]()
    found = [two_modes(values) for values in (100 + sample).tolist()]
    assert sum(modes is not None and modes.significant for modes in found) <= 10


def test_too_few_or_equal_values_say_nothing() -> None:
    assert two_modes([8.0, 10.0] * 3 + [8.0]) is None
    assert two_modes([10.0] * 50) is None
    assert two_modes([0.0] * 50) is None


def test_a_lone_outlier_is_no_mode() -> None:
    found = two_modes([10.0 + 0.01 * (index % 5) for index in range(30)] + [5.0, 5.01])
    assert found is not None
    assert not found.significant


@given(
    st.lists(st.integers(min_value=1, max_value=10**6), min_size=8, max_size=40),
    st.sampled_from([1e-3, 2.0, 1e6]),
)
def test_the_separation_has_no_unit_and_no_order(values: list[int], factor: float) -> None:
    straight = two_modes([float(value) for value in values])
    turned = two_modes([factor * value for value in reversed(values)])
    assert (straight is None) == (turned is None)
    if straight is not None and turned is not None:
        assert turned.separation == pytest.approx(straight.separation, rel=1e-4)
        assert straight.bound == critical_separation(len(values))
