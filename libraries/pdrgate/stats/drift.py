"""Does a series of repeats stay where it is? Trend and lag-1 autocorrelation, both on ranks.

Ranks, because repeats of a software router have heavy tails: a false alarm rate that rests on normal noise would not
hold, and one outlier must not look like a trend. Series are in measured order, n finite numbers.
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


def trend(values: Sequence[float]) -> Trend | None:
    """Theil-Sen slope times n - 1 over the median, with the exact two-sided p-value of Kendall's S.

    The p-value is exact for independent values of any distribution without ties, and too large (never too small)
    with ties. None for fewer than 4 values, where no trend can be told from chance, and for a median of 0.
    """
    n = len(values)
    series = np.asarray(values, dtype=np.float64)
    middle = float(np.median(series)) if n >= TREND_MIN_RUNS else 0.0
    if middle == 0.0:
        return None
    early, late = np.triu_indices(n, k=1)
    rises = series[late] - series[early]
    slope = float(np.median(rises / (late - early)))
    change = slope * (n - 1) / abs(middle)
    return Trend(change, _kendall_p(_score(values), n), _kendall_p(n * (n - 1) // 2, n))


def common_trend(series: Sequence[Sequence[float]]) -> Trend | None:
    """The trend that several series, measured over the same time, share: what five repeats alone can never show.

    The sum of their Kendall scores against its exact distribution for independent series (Hirsch and Slack's
    seasonal test without its normal approximation), and the median of their changes. Each series must have 60 values
    or fewer; None when no series has a trend of its own to speak of (see ``trend``).
    """
    found = [(each, own) for each in series if len(each) <= _EXACT_UP_TO and (own := trend(each)) is not None]
    if not found:
        return None
    distribution = np.ones(1)
    score = pairs = 0
    for each, _ in found:
        distribution = np.convolve(distribution, _inversions(len(each)))
        score += _score(each)
        pairs += len(each) * (len(each) - 1) // 2
    p_value = min(1.0, 2 * float(distribution[: (pairs - abs(score)) // 2 + 1].sum()))
    return Trend(float(np.median([own.change for _, own in found])), p_value, min(1.0, 2 * float(distribution[0])))


def lag1_autocorrelation(values: Sequence[float], false_alarm: float = 0.01) -> Autocorrelation | None:
    """Lag-1 autocorrelation of the ranks with its one-sided bound.

    For independent values its mean is -1/n and its variance (n - 2)^2 / (n^2 (n - 1)) (Moran 1948); the bound is the
    normal quantile of these, on the safe side in the tail at small n. None for fewer than 10 values, where the bound
    comes near 1, and for a series that does not vary.
    """
    n = len(values)
    if n < LAG1_MIN_RUNS:
        return None
    ranks = _ranks(np.asarray(values, dtype=np.float64))
    ranks -= ranks.mean()
    power = float((ranks**2).sum())
    if power == 0.0:
        return None
    deviation = (n - 2) / (n * math.sqrt(n - 1))
    bound = -1 / n + NormalDist().inv_cdf(1 - false_alarm) * deviation
    return Autocorrelation(float((ranks[1:] * ranks[:-1]).sum()) / power, bound)


def wander(values: Sequence[float], blocks: int = 4) -> float:
    """How far the level moves: largest minus smallest mean of ``blocks`` consecutive parts, over the series' mean.

    0 when there are fewer values than blocks, or the mean is 0.
    """
    series = np.asarray(values, dtype=np.float64)
    if len(series) < blocks or series.mean() == 0.0:
        return 0.0
    means = [float(part.mean()) for part in np.array_split(series, blocks)]
    return (max(means) - min(means)) / abs(float(series.mean()))


def _score(values: Sequence[float]) -> int:
    """Kendall's S: pairs that rise minus pairs that fall."""
    series = np.asarray(values, dtype=np.float64)
    early, late = np.triu_indices(len(values), k=1)
    return int(np.sign(series[late] - series[early]).sum())


def _kendall_p(score: int, n: int) -> float:
    """Two-sided P(|S| >= |score|) when all n! orders are equally likely."""
    if n > _EXACT_UP_TO:
        deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
        return min(1.0, 2 * (1 - NormalDist().cdf((abs(score) - 1) / deviation))) if score else 1.0
    # S = pairs - 2 * inversions, so |S| >= s means at most (pairs - s) / 2 inversions, or as many from the top.
    most = (n * (n - 1) // 2 - abs(score)) // 2
    return min(1.0, 2 * float(_inversions(n)[: most + 1].sum()))


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
