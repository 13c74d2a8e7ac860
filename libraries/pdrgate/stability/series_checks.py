"""Checks over time of one series of rates: repeated transfers, the boots of a build, or ratios of two pair by pair."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import CheckResult
from pdrgate.stability.assessment import StabilityVerdict
from pdrgate.stability.checks import (
    SPREAD,
    Bounds,
    check_autocorrelation,
    check_spread,
    check_trend,
    check_two_modes,
)
from pdrgate.stability.drift import PACKETS_PER_SECOND, Repeats
from pdrgate.stability.trial_files import Experiment
from pdrgate.stats.intervals import mean, t_interval
from pdrgate.stats.modes import two_modes
from pdrgate.stats.ranks import LAG1_MIN_RUNS, TREND_MIN_RUNS

_QUANTITY, _UNIT, _PER_UNIT = "TCP throughput", "Gbit/s", 1e9


def checks_of_series(quantity: str, unit: str, values: Sequence[float]) -> tuple[CheckResult, ...]:
    """The checks of one series of repeats in measured order, such as throughputs.

    Args:
        quantity: what the values are, for people.
        unit: theirs.
    """
    bounds = Bounds()
    series = Repeats.of(quantity, None, tuple(values), bounds.each, unit)
    return (
        check_trend((series,), bounds),
        check_autocorrelation((series,), bounds),
        check_two_modes((series,), bounds),
        check_spread((series.scatter,) if series.scatter is not None else (), bounds),
    )


def verdict_of(checks: Sequence[CheckResult]) -> tuple[StabilityVerdict, str]:
    """Verdict of checks of transfers, and its reason. Too few repeats are INCONCLUSIVE."""
    failed = next((check for check in checks if check.passed is False), None)
    if failed is not None:
        return StabilityVerdict.UNSTABLE, failed.sentence
    unknown = next((check for check in checks if check.name == SPREAD and check.passed is None), None)
    return (StabilityVerdict.STABLE, "") if unknown is None else (StabilityVerdict.INCONCLUSIVE, unknown.sentence)


@dataclass(frozen=True, slots=True)
class TransfersAssessment:
    """Assessment of one experiment of a closed loop, which has no curve of losses."""

    experiment: Experiment
    checks: tuple[CheckResult, ...]
    verdict: StabilityVerdict
    reason: str
    """Why the verdict is not STABLE; empty when it is."""

    @property
    def source(self) -> str:
        return self.experiment.source

    @property
    def repeats(self) -> tuple[Trial, ...]:
        """The transfers that the verdict rests on."""
        return _repeats(self.experiment)

    def throughput(self) -> tuple[float, float | None, float | None]:
        """Bits/s of the repeats, and the 95 % interval of their mean; 0 without repeats."""
        rates = [one.transfer.throughput for one in self.repeats]
        if len(rates) < 2:
            return (rates[0] if rates else 0.0), None, None
        interval = t_interval(rates)
        return sum(rates) / len(rates), interval.low, interval.high

    def windows(self) -> dict[tuple[str, int], list[Trial]]:
        """The sound transfers by phase and window, in the order in which these were first measured."""
        found: dict[tuple[str, int], list[Trial]] = {}
        for one in self.experiment.trials:
            if one.sound:
                found.setdefault((one.occasion.phase, one.transfer.window), []).append(one)
        return found

    def result(self) -> dict[str, Any]:
        """An entry of ``experiments`` of ``pdrgate assess --format json``. Rates are bits/s, times seconds."""
        rate, low, high = self.throughput()
        return {
            "source": self.source,
            "scenario": self.experiment.scenario,
            "throughput": {"value": rate, "lower": low, "upper": high},
            "transfers": [
                {
                    "phase": phase, "window": window, "transfers": len(own),
                    "throughput": median(one.transfer.throughput for one in own), "rtt": round_trip(own),
                    "segments": sum(one.transfer.senders.segments for one in own),
                    "retransmitted": sum(one.transfer.senders.retransmitted for one in own),
                }
                for (phase, window), own in self.windows().items()
            ],
            "checks": [dataclasses.asdict(check) for check in self.checks],
            "verdict": self.verdict.value,
            "reason": self.reason,
        }  # fmt: skip


def assess_transfers(experiment: Experiment) -> TransfersAssessment:
    """Whether the throughput of an experiment's repeats, or of all its transfers where it has none, is one number."""
    rates = [one.transfer.throughput / _PER_UNIT for one in _repeats(experiment)]
    if not rates:
        reason = "no transfer shows the SUT; each was disturbed, or at rest"
        return TransfersAssessment(experiment, (), StabilityVerdict.INCONCLUSIVE, reason)
    checks = checks_of_series(_QUANTITY, _UNIT, rates)
    return TransfersAssessment(experiment, checks, *verdict_of(checks))


def round_trip(transfers: Sequence[Trial]) -> float | None:
    """The median of their round trip times, seconds; None if none has one."""
    times = [one.transfer.senders.rtt for one in transfers if one.transfer.senders.rtt is not None]
    return median(times) if times else None


def _repeats(experiment: Experiment) -> tuple[Trial, ...]:
    return tuple(one for one in experiment.trials if one.sound and one.occasion.phase == Phase.REPEAT)


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

    Args:
        first: of the baseline.
        second: of the candidate.
    """
    check = one_level(quantity, (*first, *second), unit)
    if check.passed is False:
        low = low_values(first, second)
        if not any(1 < count < len(own) - 1 for count, own in zip(low, (first, second), strict=True)):
            return replace(check, passed=True, sentence=f"each build has a {quantity} of its own")
        whose = f"the baseline is at the lower {low[0]} of {len(first)} times, the candidate {low[1]} of {len(second)}"
        return replace(check, sentence=f"{check.sentence}; {whose}")
    return check


def low_values(first: Sequence[float], second: Sequence[float]) -> tuple[int, int]:
    """How many values of each of two builds are of the lower of the two levels of all of them; none without levels."""
    modes = two_modes((*first, *second))
    middle = (modes.low + modes.high) / 2 if modes is not None else 0.0
    return sum(value < middle for value in first), sum(value < middle for value in second)
