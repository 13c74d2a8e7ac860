"""From samples to a verdict and its sentence, and how often chance alone gives the wrong one."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from known_noise import floor

from pdrgate.gate.verdicts.change_verdict import (
    check_tolerance,
    comparison,
    judged,
    shown_value,
    summarised,
    unpaired_changes,
)
from pdrgate.replication import NoiseFloor, Samples
from pdrgate.results.model import Better
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import DataError, UsageError

BASE = (1.000e6, 1.002e6, 0.998e6, 1.001e6, 0.999e6, 1.000e6)


def times(factor: float) -> tuple[float, ...]:
    return tuple(value * factor for value in BASE)


def samples(
    candidate: tuple[float, ...],
    tolerance: float = 0.02,
    baseline: tuple[float, ...] = BASE,
    name: str = "PDR",
    better: Better = "higher",
    unit: str = "packets/s",
) -> Samples:
    return Samples(name, unit, better, tolerance, baseline, candidate)


SAME_BOOT = floor(0.0)
"""Boots do not deviate: the interval is that of the repeats."""


def verdict(
    candidate: tuple[float, ...],
    tolerance: float = 0.02,
    baseline: tuple[float, ...] = BASE,
    known: NoiseFloor | None = SAME_BOOT,
) -> Verdict:
    return judged(unpaired_changes([samples(candidate, tolerance, baseline)], "b", known)).verdict


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


@pytest.mark.parametrize(("factor", "expected"), [(1.1, Verdict.REGRESSION), (0.9, Verdict.IMPROVEMENT)])
def test_where_lower_is_better_more_is_a_regression(factor: float, expected: Verdict) -> None:
    found = judged(
        unpaired_changes([samples(times(factor), name="cost", better="lower", unit="cycles")], "b", SAME_BOOT)
    )
    assert found.verdict is expected


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
    changes = unpaired_changes([samples(times(0.9))], "old/result.json", SAME_BOOT)
    reason = str(judged(changes))
    assert reason.startswith("REGRESSION: slower: PDR 900 kpps against 1 Mpps, change -10.0% (-10.")
    assert reason.endswith("), tolerance 2.0%")
    found = comparison(changes, "old/result.json", {"kernel": ("a", "b")})
    assert found.baseline == "old/result.json"
    assert found.lower < found.change < found.upper
    assert found.change == pytest.approx(-0.1)
    assert (found.accepted, found.why_not, found.pairs) == (True, "", 0)
    assert found.differs == {"kernel": ("a", "b")}


def test_the_sentence_says_which_measurand_is_worse_and_what_the_other_does() -> None:
    """Loss that begins before saturation lowers the PDR alone, and less capacity both."""
    for pdr, saturation, leads, other in (
        (0.8, 1.0, "slower: PDR ", "saturation throughput 1 Mpps against 1 Mpps, change +0.0%"),
        (1.0, 0.8, "slower: saturation throughput ", "PDR 1 Mpps against 1 Mpps, change +0.0%"),
    ):
        found = judged(
            unpaired_changes(
                [samples(times(pdr)), samples(times(saturation), name="saturation throughput")], "old", SAME_BOOT
            )
        )
        assert found.verdict is Verdict.REGRESSION
        assert found.reason.startswith(leads)
        assert other in found.reason


def test_a_refused_change_is_stored_with_what_stands_against_it() -> None:
    found = comparison(unpaired_changes([samples(times(0.9))], "old"), "old", {}, why_not="two modes")
    assert (found.accepted, found.why_not) == (False, "two modes")
    assert found.change == pytest.approx(-0.1)


@pytest.mark.parametrize("tolerance", [-0.01, 1.0, math.nan])
def test_a_tolerance_without_meaning(tolerance: float) -> None:
    with pytest.raises(UsageError, match=r"has no meaning; use 0% or more, and less than 100%$"):
        check_tolerance(tolerance)


@pytest.mark.parametrize(
    ("candidate", "baseline", "message"),
    [
        ((1e6,), BASE, "a change interval needs at least two values"),
        (BASE, (), "a change interval needs at least two values"),
        (BASE, (-1.0, 1.0), "a mean is not positive"),
    ],
)
def test_samples_that_cannot_be_compared(
    candidate: tuple[float, ...], baseline: tuple[float, ...], message: str
) -> None:
    with pytest.raises(DataError, match=f"^cannot compare with old.json: {message}"):
        unpaired_changes([samples(candidate, baseline=baseline)], "old.json")


def test_a_baseline_that_scatters_without_bounds_is_no_error_and_tells_nothing() -> None:
    """Two boots of a round trip that lie 25 % apart: the run ended with an ERROR that nobody could mend."""
    (found,) = unpaired_changes([samples(BASE, baseline=(0.85e6, 1.15e6))], "history:v6.18", boots=(1, 2))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert -1 < found.lower < -0.5 < 1 < found.upper < 1e3


def test_a_measurand_in_words() -> None:
    assert summarised("PDR", "packets/s", "higher", ()) is None
    one = summarised("PDR", "packets/s", "higher", (3.0,))
    assert one is not None
    assert (one.value, one.lower, one.upper) == (3.0, None, None)
    several = summarised("PDR", "packets/s", "higher", (3.0, 5.0))
    assert several is not None
    assert several.lower is not None
    assert several.upper is not None
    assert several.lower < several.value == 4.0 < several.upper
    assert (shown_value(1e6, "packets/s"), shown_value(1234.5, "cycles")) == ("1 Mpps", "1234 cycles")


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
    # Noise of repeats within a boot, and the quick profile's repeats.
    assert shares(0.0, 0.003, 6)[Verdict.PASS] == 1
    assert shares(-0.03, 0.003, 6)[Verdict.REGRESSION] >= 0.99
    assert shares(0.03, 0.003, 6)[Verdict.IMPROVEMENT] >= 0.99
