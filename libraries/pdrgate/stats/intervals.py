"""Mean, deviation and t-intervals (PASTRAMI section IV-A), and the difference and change between two samples.

Samples are sequences of n finite numbers; every result is in the sample's unit unless said otherwise.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pdrgate.stats.order import without_order
from pdrgate.stats.pooled import Deviation
from pdrgate.stats.robust import winsorised


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval, low <= high."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """Width of the interval: high - low."""
        return self.high - self.low

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Change:
    """A relative change, 0.02 for +2 %, with the interval that holds it at the asked confidence."""

    estimate: float
    interval: Interval


_LARGEST_LOG = 700.0
"""The largest log whose exponential is still a number."""


def relative(log_ratio: float) -> float:
    """The relative change that a log of a ratio means, 0.02 for log(1.02); what is beyond all numbers is 1e304.

    Two values that differ a millionfold have an interval that no number ends.
    """
    return math.expm1(min(log_ratio, _LARGEST_LOG))


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean.

    Raises:
        ValueError: the sample is empty.
    """
    if not values:
        raise ValueError("the mean of no values is undefined")
    return math.fsum(values) / len(values)


def sample_deviation(values: Sequence[float]) -> float:
    """The sample standard deviation, divisor n - 1 (PASTRAMI Eq. 2).

    Raises:
        ValueError: fewer than two values.
    """
    _need_two(values, "the sample deviation")
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def load_meanwhile() -> None:
    """Import scipy's quantiles, which takes a second, in a thread beside a caller that is about to wait for something
    else."""
    threading.Thread(target=t_quantile, args=(0.5, 1.0), daemon=True).start()


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t with ``freedom`` degrees of freedom (any positive number).

    Raises:
        ValueError: probability not in (0, 1), or freedom not positive.
    """
    if not (0 < probability < 1 and freedom > 0):
        raise ValueError(f"no t quantile at probability {probability!r} with {freedom!r} degrees of freedom")
    # scipy.special alone costs a third of what scipy.stats costs to import.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The interval (LCL, UCL) that holds the true mean with ``confidence`` (PASTRAMI section IV-A).

    It is not clipped to any range: the lower limit of a loss ratio may be negative.

    Raises:
        ValueError: fewer than two values, or a confidence outside (0, 1).
    """
    _need_two(values, "a t-interval")
    half = _two_sided(confidence, len(values) - 1) * sample_deviation(values) / math.sqrt(len(values))
    centre = mean(values)
    return Interval(centre - half, centre + half)


def delta_ucl(values: Sequence[float], confidence: float = 0.95) -> float | None:
    """ΔUCL = (UCL - mean) / mean, the dimensionless uncertainty (PASTRAMI section IV-A); None when the mean is 0.

    Raises:
        ValueError: fewer than two values.
    """
    upper = t_interval(values, confidence).high
    centre = mean(values)
    return (upper - centre) / centre if centre else None


def change_interval(candidate: Sequence[float], baseline: Sequence[float], confidence: float = 0.95) -> Change:
    """The change (candidate - baseline) / baseline between the means, with its interval.

    Fieller's interval of a ratio of means, with Welch's degrees of freedom at the estimated ratio: unlike the
    difference divided by the baseline's mean, it carries the baseline's own uncertainty.

    Raises:
        ValueError: a sample has fewer than two values, or the baseline's mean does not differ from 0 beyond its
            scatter.
    """
    _need_two(candidate, "a change interval")
    _need_two(baseline, "a change interval")
    base = mean(baseline)
    if base == 0:
        raise ValueError("the baseline's mean is 0: a change relative to it is undefined")
    ratio = mean(candidate) / base
    error, freedom = _welch(candidate, baseline, ratio)
    if error == 0:
        return Change(ratio - 1, Interval(ratio - 1, ratio - 1))
    t = _two_sided(confidence, freedom)
    candidate_term = (t * sample_deviation(candidate) / base) ** 2 / len(candidate)
    baseline_term = (t * sample_deviation(baseline) / base) ** 2 / len(baseline)
    if baseline_term >= 1:
        raise ValueError("the baseline scatters so much that its mean may be 0; repeat it more often")
    half = math.sqrt(candidate_term * (1 - baseline_term) + ratio**2 * baseline_term)
    low, high = ((ratio + sign * half) / (1 - baseline_term) - 1 for sign in (-1, 1))
    return Change(ratio - 1, Interval(low, high))


def change_interval_of_boots(
    candidate: Sequence[float],
    baseline: Sequence[float],
    between: Deviation,
    confidence: float = 0.95,
    *,
    boots: tuple[int, int] = (1, 1),
) -> Change:
    """The change (candidate - baseline) / baseline between builds of which few boots were measured, with its interval.

    Each mean is off by its boots as well as by its values: to the variance of the difference of their logs either side
    adds d^2 / m + s^2 / n, with d the deviation between boots that is known from elsewhere, m the boots, and s the
    relative deviation of the n values. Degrees of freedom by Satterthwaite (Biometrics Bull. 2, 1946), those of d among
    them.

    Args:
        between: deviation of the logs of boots' values.
        boots: that the values of candidate and baseline are of.

    Raises:
        ValueError: a sample has fewer than two values, or a mean that is not positive.
    """
    _need_two(candidate, "a change interval")
    _need_two(baseline, "a change interval")
    centres = mean(candidate), mean(baseline)
    if min(centres) <= 0:
        raise ValueError("a mean is not positive: a change relative to it is undefined")
    # What is known of boots is one number for both sides.
    parts = [(between.value**2 * sum(1 / count for count in boots), between.freedom)]
    for values, centre in zip((candidate, baseline), centres, strict=True):
        parts.append(((sample_deviation(values) / centre) ** 2 / len(values), len(values) - 1.0))
    total = math.fsum(variance for variance, _ in parts)
    change = math.log(centres[0] / centres[1])
    if total == 0:
        return Change(relative(change), Interval(relative(change), relative(change)))
    freedom = 1 / math.fsum((variance / total) ** 2 / known for variance, known in parts)
    half = _two_sided(confidence, freedom) * math.sqrt(total)
    return Change(relative(change), Interval(relative(change - half), relative(change + half)))


def paired_change_interval(candidate: Sequence[float], baseline: Sequence[float], confidence: float = 0.95) -> Change:
    """The change (candidate - baseline) / baseline of values that were measured in pairs, with its interval.

    The t-interval of the mean of the `log_ratios`: what moves both values of a pair alike drops out, and a change of
    -x % has the same weight as the one that undoes it.

    Raises:
        ValueError: fewer than two pairs, samples of different lengths, or a value that is not positive.
    """
    logs = log_ratios(candidate, baseline)
    interval = t_interval(logs, confidence)
    return Change(relative(mean(logs)), Interval(relative(interval.low), relative(interval.high)))


def log_ratios(candidate: Sequence[float], baseline: Sequence[float]) -> tuple[float, ...]:
    """The `raw_log_ratios`, `winsorised`, so that a lone dip among many pairs does not move the mean. Raises as they
    do."""
    return winsorised(raw_log_ratios(candidate, baseline))


def raw_log_ratios(candidate: Sequence[float], baseline: Sequence[float]) -> tuple[float, ...]:
    """Logarithm log(candidate / baseline) of each pair, `without_order`: the effect of the order of boots is no change.

    Raises:
        ValueError: samples of different lengths, or a value that is not positive and finite.
    """
    if len(candidate) != len(baseline):
        raise ValueError(f"{len(candidate)} values cannot be paired with {len(baseline)}")
    if not all(0 < value < math.inf for value in (*candidate, *baseline)):
        raise ValueError("a value is not positive: a change relative to it is undefined")
    return without_order([math.log(value / base) for value, base in zip(candidate, baseline, strict=True)])


def _two_sided(confidence: float, freedom: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}: it must lie between 0 and 1")
    return t_quantile(0.5 + confidence / 2, freedom)


def _welch(candidate: Sequence[float], baseline: Sequence[float], weight: float) -> tuple[float, float]:
    """Standard error of mean(candidate) - weight * mean(baseline), and its degrees of freedom."""
    first = sample_deviation(candidate) ** 2 / len(candidate)
    second = weight**2 * sample_deviation(baseline) ** 2 / len(baseline)
    total = first + second
    if total == 0:
        return 0.0, 1.0
    # Shares instead of fourth powers, which underflow for tiny variances.
    spread = (first / total) ** 2 / (len(candidate) - 1) + (second / total) ** 2 / (len(baseline) - 1)
    return math.sqrt(total), 1 / spread


def _need_two(values: Sequence[float], what: str) -> None:
    if len(values) < 2:
        raise ValueError(f"{what} needs at least two values, there {'is one' if values else 'are none'}")
