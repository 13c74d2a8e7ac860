"""Rank tests: does a series of repeats stay where it is, and do two samples lie in one place?

Repeats of a software router have heavy tails: a false alarm rate that rests on normal noise would not hold, and one
outlier must not look like a trend. Series are in measured order, n finite numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

TREND_MIN_RUNS = 4
LAG1_MIN_RUNS = 10
_EXACT_UP_TO = 60
_MOST_OF_A_TREND = 2000
_DIGITS = 9
"""The digits that a series keeps beside its slope; further ones are those of floating numbers."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A monotone trend: relative change from the first to the last value, and how likely chance alone shows as much."""

    change: float
    p_value: float
    least_p: float
    """The p-value of a perfectly monotone series of this length: at a smaller level the test can never speak."""


@dataclass(frozen=True, slots=True)
class Autocorrelation:
    """Lag-1 autocorrelation of the ranks, and the value that independent repeats exceed with the asked probability."""

    value: float
    bound: float

    @property
    def significant(self) -> bool:
        """True when neighbours are more alike than chance explains."""
        return self.value > self.bound


def monotone_trend(values: Sequence[float]) -> Trend | None:
    """Theil-Sen slope times n - 1 over the median, with the two-sided p-value of Kendall's S.

    The p-value is exact for independent values of any distribution without ties, and too large (never too small) with
    ties. Values whose neighbours are alike rise and fall by themselves. From 10 values on, if their residuals without
    the slope have a positive lag-1 autocorrelation r of the ranks, the variance of S is that of n (1 - r) / (1 + r)
    values (Hamed and Rao, J. Hydrology 204, 1998, for r at lag k = r^k), and the p-value the larger of the two. None is
    returned for fewer than 4 values, where no trend differs from chance, and for a median of 0. More than 2000 values
    are replaced by the means of 2000 parts, for the work grows with the square.
    """
    series = np.asarray(values, dtype=np.float64)
    parts = min(len(series), _MOST_OF_A_TREND)
    if parts < len(series):
        series = np.asarray([part.mean() for part in np.array_split(series, parts)])
    n = parts
    middle = float(np.median(series)) if n >= TREND_MIN_RUNS else 0.0
    if middle == 0.0:
        return None
    early, late = np.triu_indices(n, k=1)
    rises = series[late] - series[early]
    slope = float(np.median(rises / (late - early)))
    score = int(np.sign(rises).sum())
    p_value = _kendall_p(score, n)
    left = series / middle - slope / middle * np.arange(n)
    alike = _lag1(left.round(_DIGITS)) if n >= LAG1_MIN_RUNS else 0.0
    if alike > 0:
        p_value = max(p_value, _normal_p(score, n, (1 + alike) / max(1 - alike, 1 / n)))
    whole = (len(values) - 1) * n / len(values)  # in parts, from the first value to the last
    return Trend(slope * whole / abs(middle), p_value, _kendall_p(n * (n - 1) // 2, n))


def lag1_autocorrelation(values: Sequence[float], false_alarm: float = 0.01) -> Autocorrelation | None:
    """Lag-1 autocorrelation of the ranks with its one-sided bound.

    For independent values its mean is -1/n and its variance (n - 2)^2 / (n^2 (n - 1)) (Moran 1948); the bound is the
    normal quantile of these, on the safe side in the tail at small n. None for fewer than 10 values, where the bound
    comes near 1, and for a series that does not vary.
    """
    n = len(values)
    if n < LAG1_MIN_RUNS:
        return None
    series = np.asarray(values, dtype=np.float64)
    if (series == series[0]).all():
        return None
    deviation = (n - 2) / (n * math.sqrt(n - 1))
    bound = -1 / n + NormalDist().inv_cdf(1 - false_alarm) * deviation
    return Autocorrelation(_lag1(series), bound)


def wander(values: Sequence[float], blocks: int = 4) -> float:
    """Shift of the level: largest minus smallest mean of ``blocks`` consecutive parts, over the series' mean.

    0 when there are fewer values than blocks, or the mean is 0.
    """
    series = np.asarray(values, dtype=np.float64)
    if len(series) < blocks or series.mean() == 0.0:
        return 0.0
    means = [float(part.mean()) for part in np.array_split(series, blocks)]
    return (max(means) - min(means)) / abs(float(series.mean()))


def rank_sum_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Probability that chance alone sets two samples of one distribution as far apart: two-sided, 1 if one is empty.

    Wilcoxon's rank sum (Biometrics Bull. 1, 1945), exact for values of any distribution without ties; with ties too
    large where it is exact, never too small. Of more than `_EXACT_UP_TO` values by the normal approximation.
    """
    few, many = len(first), len(second)
    if not few or not many:
        return 1.0
    ranks = _ranks(np.asarray([*first, *second], dtype=np.float64))
    middle = few * (few + many + 1) / 2
    off = abs(float(ranks[:few].sum()) - middle)
    if few + many > _EXACT_UP_TO:
        deviation = math.sqrt(few * many * (few + many + 1) / 12)
        return min(1.0, 2 * NormalDist().cdf(-max(0.0, off - 0.5) / deviation))
    sums = _rank_sums(min(few, many), few + many)
    own = min(few, many) * (few + many + 1) / 2
    return min(1.0, 2 * float(sums[math.ceil(own + off - 1e-9) :].sum()))


@lru_cache(maxsize=128)
def _rank_sums(chosen: int, n: int) -> NDArray[np.float64]:
    """Probability of each sum of ``chosen`` ranks chosen by chance from 1 to n."""
    most = chosen * n
    counts = np.zeros((chosen + 1, most + 1))
    counts[0, 0] = 1
    for rank in range(1, n + 1):
        counts[1:, rank:] += counts[:-1, : most + 1 - rank].copy()
    return np.asarray(counts[chosen] / math.comb(n, chosen))


def _lag1(series: NDArray[np.float64]) -> float:
    """Lag-1 autocorrelation of the ranks; 0 for equal values."""
    ranks = _ranks(series)
    ranks -= ranks.mean()
    power = float((ranks**2).sum())
    return float((ranks[1:] * ranks[:-1]).sum()) / power if power else 0.0


def _kendall_p(score: int, n: int) -> float:
    """Two-sided P(|S| >= |score|) when all n! orders are equally likely."""
    if n > _EXACT_UP_TO:
        return _normal_p(score, n, 1.0)
    # S = pairs - 2 * inversions, so |S| >= s means at most (pairs - s) / 2 inversions, or as many from the top.
    most = (n * (n - 1) // 2 - abs(score)) // 2
    return min(1.0, 2 * float(_inversions(n)[: most + 1].sum()))


def _normal_p(score: int, n: int, inflated: float) -> float:
    """The p-value by the normal approximation, with ``inflated`` times the variance of independent values."""
    deviation = math.sqrt(inflated * n * (n - 1) * (2 * n + 5) / 18)
    return min(1.0, 2 * NormalDist().cdf(-(abs(score) - 1) / deviation)) if score else 1.0


@lru_cache(maxsize=128)
def _inversions(n: int) -> NDArray[np.float64]:
    """Probability of 0, 1, … n(n-1)/2 inversions in a random order of n values."""
    counts = np.ones(1)
    for size in range(2, n + 1):
        counts = np.convolve(counts, np.full(size, 1 / size))
    return counts


def _ranks(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; ties share the mean of theirs."""
    _, inverse, counts = np.unique(series, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)
