"""The comparison: which verdict which numbers get, and how often chance alone gives the wrong one."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from pdrgate.errors import DataError, UsageError
from pdrgate.gate.compare import Baseline, compare
from pdrgate.results.verdict import Verdict

BASE = (1.000e6, 1.002e6, 0.998e6, 1.001e6, 0.999e6, 1.000e6)


def times(factor: float) -> tuple[float, ...]:
    return tuple(value * factor for value in BASE)


def verdict(candidate: tuple[float, ...], tolerance: float = 0.02, baseline: tuple[float, ...] = BASE) -> Verdict:
    return compare(candidate, Baseline("b", baseline, {}), tolerance)[1].verdict


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (1.00, Verdict.PASS),
        (0.99, Verdict.PASS),
        (1.015, Verdict.PASS),  # faster, but not beyond the tolerance
        (0.98, Verdict.INCONCLUSIVE),  # on the edge: neither is shown
        (0.97, Verdict.REGRESSION),
        (0.50, Verdict.REGRESSION),
        (1.02, Verdict.PASS),
        (1.03, Verdict.IMPROVEMENT),
        (2.00, Verdict.IMPROVEMENT),
    ],
)
def test_the_direction_counts(factor: float, expected: Verdict) -> None:
    assert verdict(times(factor)) is expected


def test_a_wide_interval_shows_nothing() -> None:
    scattered = (0.8e6, 1.2e6, 0.9e6, 1.1e6)
    assert verdict(scattered) is Verdict.INCONCLUSIVE
    assert verdict(BASE, baseline=scattered) is Verdict.INCONCLUSIVE
    assert verdict(scattered, tolerance=0.5) is Verdict.PASS


def test_without_tolerance_equals_are_a_pass_only_when_they_are_equal() -> None:
    assert verdict((1e6, 1e6), 0.0, (1e6, 1e6)) is Verdict.PASS
    assert verdict((0.999e6, 0.999e6), 0.0, (1e6, 1e6)) is Verdict.REGRESSION
    assert verdict((1.001e6, 1.001e6), 0.0, (1e6, 1e6)) is Verdict.IMPROVEMENT
    assert verdict(BASE, 0.0) is Verdict.INCONCLUSIVE


def test_the_reason_tells_all_numbers() -> None:
    comparison, judgement = compare(times(0.9), Baseline("old/result.json", BASE, {}), 0.02)
    assert str(judgement).startswith("REGRESSION: slower: PDR 900 kpps against 1 Mpps, change -10.0% (-10.")
    assert str(judgement).endswith("at 95% confidence), tolerance 2.0%")
    assert comparison.baseline == "old/result.json"
    assert comparison.lower < comparison.change < comparison.upper
    assert comparison.change == pytest.approx(-0.1)


def test_what_differs_is_told_with_the_baselines_value_first() -> None:
    baseline = Baseline("b", BASE, {"kernel": "6.1", "cpu": "x", "old": "1"})
    comparison, _ = compare(BASE, baseline, 0.02, {"kernel": "6.2", "cpu": "x", "new": "2"})
    assert comparison.differs == {"kernel": ("6.1", "6.2"), "old": ("1", None), "new": (None, "2")}
    assert comparison.to_dict()["differs"] == {"kernel": ["6.1", "6.2"], "old": ["1", None], "new": [None, "2"]}


@pytest.mark.parametrize("tolerance", [-0.01, 1.0, math.nan])
def test_a_tolerance_without_meaning(tolerance: float) -> None:
    with pytest.raises(UsageError, match=r"has no meaning; use 0% or more, and less than 100%$"):
        verdict(BASE, tolerance)


@pytest.mark.parametrize(
    ("candidate", "baseline", "message"),
    [
        ((1e6,), BASE, "a change interval needs at least two values"),
        (BASE, (), "a change interval needs at least two values"),
        (BASE, (1.0, 1e6), "the baseline scatters so much that its mean cannot be told from 0"),
    ],
)
def test_samples_that_cannot_be_compared(
    candidate: tuple[float, ...], baseline: tuple[float, ...], message: str
) -> None:
    with pytest.raises(DataError, match=f"^cannot compare with old.json: {message}"):
        compare(candidate, Baseline("old.json", baseline, {}), 0.02)


def shares(change: float, noise: float, repeats: int, tolerance: float = 0.02, rounds: int = 2000) -> Counter[Verdict]:
    random = np.random.default_rng(round(1e6 + 1000 * change + repeats))
    base = 1e6 * (1 + noise * random.normal(size=(rounds, repeats)))
    new = 1e6 * (1 + change) * (1 + noise * random.normal(size=(rounds, repeats)))
    found = Counter(verdict(tuple(new[n]), tolerance, tuple(base[n])) for n in range(rounds))
    return Counter({verdict: number / rounds for verdict, number in found.items()})  # type: ignore[misc]


@pytest.mark.parametrize("repeats", [3, 6])
def test_at_the_tolerance_itself_a_regression_is_called_in_2_and_a_half_percent(repeats: int) -> None:
    # One side of a 95 % interval; 3 deviations of 2000 rounds are 1 %. Welch's degrees of freedom err on either side.
    found = shares(-0.02, 0.01, repeats)
    assert found[Verdict.REGRESSION] <= 0.04
    assert found[Verdict.PASS] <= 0.04


def test_without_a_change_no_regression_is_called_and_a_large_one_is_never_missed() -> None:
    # Within-boot noise of 0.3 % (research/search-and-gating.md) and the quick profile's repeats.
    assert shares(0.0, 0.003, 6)[Verdict.PASS] == 1
    assert shares(-0.03, 0.003, 6)[Verdict.REGRESSION] >= 0.99
    assert shares(0.03, 0.003, 6)[Verdict.IMPROVEMENT] >= 0.99
