"""One curve through all trials of a boot, whatever they were measured for: PDR, NDR, saturation, livelock."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import Final

import numpy as np

from pdrgate.record.trial import Trial
from pdrgate.stats.intervals import Interval, sample_deviation

_PAST: Final = 1.1
"""Times the saturation throughput: from such loads on a trial's rate is its capacity, and not cut off by its load."""
_SAG: Final = 0.03
"""A load at which so much less than the most is forwarded lies beyond the livelock threshold."""
_SURE: Final = 4.0
"""Times the deviation of its rate, at least."""
_NOISE: Final = 2.0
"""Deviations of the capacity below the knee: one of 40 trials at such a load exceeds the goal by noise alone."""
_SEVERAL: Final = 2
_HALF: Final = 0.5
"""Of the trials exceed the goal at the PDR (the exceed ratio of RFC 9971 section 4.6.7)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A load or a rate, packets/s, with the interval that holds it at the asked confidence."""

    value: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class CurveFit:
    """What the trials come to; see `fit`."""

    pdr: Estimate
    ndr: Interval
    """The highest load at which most trials lose nothing, and the lowest above it at which they do."""
    saturation: Estimate
    """T_sat of PASTRAMI Eq. 3; the saturation load of an ideal curve is the same number."""
    livelock: Interval | None
    """O^trash of PASTRAMI Eq. 5: the last load that still brings T_sat, and the first that does not; None without."""


def fit(trials: Iterable[Trial], loss_ratio: float, confidence: float = 0.95) -> CurveFit | None:
    """The load-loss curve that is ideal past saturation, and monotone below it; None where no saturation shows.

    Past saturation each trial's rate is one measurement of T_sat (PASTRAMI Eq. 3), at whatever load: `pseudo_median`.
    Below, trials exceed ``loss_ratio`` with a probability that can only rise with the load: isotonic regression, which
    is its maximum likelihood (Ayer and others, Ann. Math. Stat. 26, 1955). The PDR is the knee T_sat / (1 -
    loss_ratio), or, where half of the trials exceed already below it, the load at which they do, between two loads
    that were measured. Where the rate falls from some load on (Eq. 4), only the loads before it tell T_sat.
    """
    sound = sorted((trial for trial in trials if trial.sound), key=lambda trial: trial.intended_load)
    rates = _past_saturation(sound, loss_ratio)
    if not rates:
        return None
    sagging = _sagging(rates)
    plateau = [load for load in rates if sagging is None or load < sagging] or [min(rates)]
    told = [rate for load in plateau for rate in rates[load]]
    value, interval = pseudo_median(told, confidence)
    knee = Estimate(
        value / (1 - loss_ratio), Interval(interval.low / (1 - loss_ratio), interval.high / (1 - loss_ratio))
    )
    held, exceeded = _crossing(sound, loss_ratio)
    noise = sample_deviation(told) / value if len(told) > 1 else 0.0
    early = exceeded is not None and _is_early(sound, loss_ratio, exceeded, knee.value * (1 - _NOISE * noise))
    # Where loss begins before saturation, the two loads are all that is known, as well as the capacity itself is.
    lossy = Interval((held or 0.0) * interval.low / value, (exceeded or knee.value) * interval.high / value)
    lossless, losing = _crossing(sound, 0.0)
    ndr = min(knee.value if losing is None else losing, knee.interval.high)
    return CurveFit(
        pdr=Estimate((lossy.low + lossy.high) / 2, lossy) if early else knee,
        ndr=Interval(min(lossless or 0.0, ndr), ndr),
        saturation=Estimate(value, interval),
        livelock=None if sagging is None else Interval(max(plateau), sagging),
    )


def _sagging(rates: Mapping[float, Sequence[float]]) -> float | None:
    """The first load from which on less is forwarded than at a smaller one, beyond what the trials deviate by."""
    middles = {load: median(own) for load, own in rates.items()}
    freedom = sum(len(own) - 1 for own in rates.values())
    squares = sum((rate / middles[load] - 1) ** 2 for load, own in rates.items() for rate in own if middles[load])
    noise = math.sqrt(squares / freedom) if freedom else 0.0
    most = max(middles, key=lambda load: middles[load])
    return min(
        (
            load
            for load, rate in middles.items()
            if load > most and rate < (1 - max(_SAG, _SURE * noise / math.sqrt(len(rates[load])))) * middles[most]
        ),
        default=None,
    )


def _is_early(sound: Sequence[Trial], loss_ratio: float, exceeded: float, noisy: float) -> bool:
    """Whether loss begins before saturation: where noise alone does not reach, and in more than one trial."""
    found = [trial for trial in sound if exceeded <= trial.intended_load < noisy]
    return sum(trial.steady_loss_ratio > loss_ratio for trial in found) >= _SEVERAL


def _past_saturation(sound: Sequence[Trial], loss_ratio: float) -> dict[float, list[float]]:
    """Rates, packets/s, by load, of the loads that lie clearly past saturation."""
    at: dict[float, list[Trial]] = {}
    for trial in sound:
        at.setdefault(trial.intended_load, []).append(trial)
    over = {
        load: median(trial.forwarding_rate for trial in own)
        for load, own in at.items()
        if median(trial.steady_loss_ratio for trial in own) > loss_ratio
    }
    most = max(over.values(), default=0.0)
    return {load: [trial.forwarding_rate for trial in at[load]] for load in over if load >= _PAST * most}


def _crossing(sound: Sequence[Trial], loss_ratio: float) -> tuple[float | None, float | None]:
    """The last load at which no more than half of the trials exceed the loss ratio, and the first at which more do."""
    from scipy.optimize import isotonic_regression  # at its first use: it takes its time

    exceeds = np.array([trial.steady_loss_ratio > loss_ratio for trial in sound], dtype=np.float64)
    loads, index, counts = np.unique([trial.intended_load for trial in sound], return_inverse=True, return_counts=True)
    share = isotonic_regression(np.bincount(index, exceeds) / counts, weights=counts).x
    past = int(np.searchsorted(share > _HALF, True))
    return (float(loads[past - 1]) if past else None, float(loads[past]) if past < len(loads) else None)


def pseudo_median(values: Sequence[float], confidence: float = 0.95) -> tuple[float, Interval]:
    """The Hodges-Lehmann estimate of a centre, and its interval: the median of all means of two, and Wilcoxon's.

    A tenth of wild values hardly moves it, and of normal ones it uses 95 % of what they tell (Hodges and Lehmann,
    Ann. Math. Stat. 34, 1963). The interval takes the normal approximation of the signed rank statistic; fewer than
    six values cannot tell one of 95 %, and get that of their extremes.

    Raises:
        ValueError: the sample is empty, or the confidence not in (0, 1).
    """
    if not values or not 0 < confidence < 1:
        raise ValueError(f"no centre of {len(values)} values at a confidence of {confidence!r}")
    series = np.asarray(values, dtype=np.float64)
    first, second = np.triu_indices(len(series))
    means = np.sort((series[first] + series[second]) / 2)
    n = len(series)
    reach = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    outer = max(0, math.floor(n * (n + 1) / 4 - reach - 0.5))
    return float(np.median(means)), Interval(float(means[outer]), float(means[len(means) - 1 - outer]))
