"""Checks of one series of rates: the boots of a build, or the ratios of two, pair by pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pdrgate.results.model import CheckResult
from pdrgate.stability.checks import Bounds, check_autocorrelation, check_trend, check_two_modes
from pdrgate.stability.drift import PACKETS_PER_SECOND, Repeats
from pdrgate.stats.intervals import mean
from pdrgate.stats.modes import two_modes
from pdrgate.stats.ranks import LAG1_MIN_RUNS, TREND_MIN_RUNS


def steady(quantity: str, values: tuple[float, ...]) -> tuple[CheckResult, ...]:
    """The checks over time of one series in measured order, such as the ratio of two builds' PDRs boot by boot.

    Scatter of its values is no fault: it shows in the interval of their mean, and more values narrow it.
    """
    bounds = Bounds()
    series = (Repeats.of(quantity, None, values, bounds.each),)
    return (
        check_trend(series, bounds, TREND_MIN_RUNS),
        check_autocorrelation(series, bounds, LAG1_MIN_RUNS),
    )


def one_level(quantity: str, values: tuple[float, ...], unit: str = PACKETS_PER_SECOND) -> CheckResult:
    """The check that a rate does not flip between two levels, such as a build's PDR from boot to boot."""
    bounds = Bounds()
    return check_two_modes((Repeats.of(quantity, None, values, bounds.each, unit),), bounds)


def one_level_within(quantity: str, boots: Iterable[Sequence[float]]) -> CheckResult:
    """The check that a rate does not flip within boots, by all of them together.

    Each value is taken relative to the best of its boot, which itself is left out: boots have levels of their own, of a
    few per cent.

    Args:
        boots: what was measured at one load in each boot.
    """
    known = [(max(own), own) for own in map(sorted, boots) if len(own) > 1 and own[-1] > 0]
    scale = mean([best for best, _ in known]) if known else 0.0
    return one_level(quantity, tuple(scale * value / best for best, own in known for value in own[:-1]))


def one_level_each(
    quantity: str, first: Sequence[float], second: Sequence[float], unit: str = PACKETS_PER_SECOND
) -> CheckResult:
    """The check that a rate of two builds does not flip between two levels that they have in common.

    Two levels of which each is one build's are no flip but a change, and one value of a build at the other's is a dip.
    """
    check = one_level(quantity, (*first, *second), unit)
    modes = two_modes((*first, *second))
    if check.passed is False and modes is not None:
        middle = (modes.low + modes.high) / 2
        low = [sum(value < middle for value in own) for own in (first, second)]
        if not any(1 < count < len(own) - 1 for count, own in zip(low, (first, second), strict=True)):
            return replace(check, passed=True, sentence=f"each build has a {quantity} of its own")
    return check
