"""Evidence that may be looked at after every value: a sequential test of two hypotheses about a mean.

The deviation is nobody's to know beforehand, so each hypothesis is given the deviation that suits it best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pdrgate.stats.intervals import mean, t_quantile

_MOST = 700.0
"""Of a log ratio: values without any deviation would prove everything; its exponential is still a number."""


def log_likelihood_ratio(values: Sequence[float], below: float, above: float) -> float:
    """How much likelier the values are with a mean of ``below`` or less than with one of ``above`` or more, as a log.

    The generalised likelihood ratio of normal values of unknown deviation: n/2 log(S_above / S_below), S being the sum
    of squares around the nearest mean that the hypothesis allows (Wald, Sequential Analysis, 1947, on t tests; Lai,
    Nearly Optimal Sequential Tests of Composite Hypotheses, Ann. Statist. 16, 1988). It passes a bound log(A) with the
    wrong sign in about 1 of A samples, however often it is looked at, where the deviation is known well: not for the
    first few values, whose own deviation may be next to nothing. tests/bench/gate_quality.py counts how often.

    Args:
        values: n of them, in measured order or any other.
        below: upper end of the one hypothesis, in the values' unit.
        above: lower end of the other, not less than ``below``.

    Returns:
        Positive for the low mean, negative for the high one; between -700 and 700.

    Raises:
        ValueError: no values, one that is not finite, or ``below`` above ``above``.
    """
    if below > above:
        raise ValueError(f"a mean of at most {below!r} and one of at least {above!r} do not exclude each other")
    if not all(map(math.isfinite, values)):
        raise ValueError("a value is not finite")
    centre = mean(values)
    own = math.fsum((value - centre) ** 2 for value in values)
    count = len(values)
    low = own + count * (centre - min(centre, below)) ** 2
    high = own + count * (centre - max(centre, above)) ** 2
    if low == high:
        return 0.0
    if low == 0 or high == 0:
        return _MOST if low == 0 else -_MOST
    return max(-_MOST, min(_MOST, count / 2 * math.log(high / low)))


_SIMULATED = 1000
"""Samples: the bias comes out to a thirtieth of their deviation, a tenth of what it is where it matters."""


def stopping_bias(
    centre: float,
    deviation: float,
    hypotheses: tuple[float, float],
    log_odds: tuple[float, float],
    looks: Sequence[int],
) -> float:
    """How far the mean of a sample is off on average that ends when `log_likelihood_ratio` reaches its bound.

    Where it ends favours what it ends with: a mean that lies beyond a bound by chance is not given the values that
    would bring it back. Told by samples of normal values around ``centre``, a parametric bootstrap: subtracted once, it
    leaves a quarter to a third of the bias (Whitehead, On the bias of maximum likelihood estimation following a
    sequential test, Biometrika 73, 1986, whose equation this is the first step of). The samples are always the same.

    Args:
        centre: mean of the values.
        deviation: theirs, positive.
        hypotheses: ``below`` and ``above`` of `log_likelihood_ratio`.
        log_odds: at which the sample ends, for the low mean and for the high one.
        looks: the numbers of values at which it is asked, rising; at the last it ends in any case.
    """
    source = np.random.default_rng(1)
    half = source.standard_normal((_SIMULATED // 2, looks[-1]))
    values = centre + deviation * np.concatenate([half, -half])
    counts = np.asarray(looks)
    means = np.cumsum(values, axis=1)[:, counts - 1] / counts
    own = np.cumsum(values**2, axis=1)[:, counts - 1] - counts * means**2
    below, above = hypotheses
    low = own + counts * (means - np.minimum(means, below)) ** 2
    high = own + counts * (means - np.maximum(means, above)) ** 2
    ratios = counts / 2 * np.log(high / low)
    ended = (ratios >= log_odds[0]) | (ratios <= -log_odds[1])
    ended[:, -1] = True
    return float(means[np.arange(len(means)), ended.argmax(axis=1)].mean() - centre)


def resolvable(deviation: float, count: int, odds: float, power: float = 0.95) -> float:
    """The distance of two means that ``count`` values tell apart with ``power``, in the deviation's unit.

    The distance at which `log_likelihood_ratio` reaches log(odds) though the mean lies off by as much as one of
    1 / (1 - power) samples does (by Student's t).

    Raises:
        ValueError: fewer than two values, or odds below 1.
    """
    if count < 2 or odds < 1:
        raise ValueError(f"{count} values at odds of {odds}: nothing can be told apart")
    off = t_quantile(power, count - 1)
    reach = off + math.sqrt(odds ** (2 / count) * (count - 1 + off**2) - (count - 1))
    return reach * deviation / math.sqrt(count)
