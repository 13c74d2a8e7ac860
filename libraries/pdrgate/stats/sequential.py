"""Evidence that may be looked at after every value: a sequential test of two hypotheses about a mean.

The deviation is nobody's to know beforehand, so each hypothesis is given the deviation that suits it best.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pdrgate.stats.intervals import mean, t_quantile
from pdrgate.stats.pooled import Deviation

_MOST = 700.0
"""The largest log ratio. Values without any deviation would prove everything; its exponential is still a number."""


def log_likelihood_ratio(values: Sequence[float], below: float, above: float, known: Deviation | None = None) -> float:
    """How much likelier the values are with a mean of ``below`` or less than with one of ``above`` or more, as a log.

    The generalised likelihood ratio of normal values of unknown deviation: n/2 log(S_above / S_below), S being the sum
    of squares around the nearest mean that the hypothesis allows (Wald, Sequential Analysis, 1947, on t tests; Lai,
    Nearly Optimal Sequential Tests of Composite Hypotheses, Ann. Statist. 16, 1988). It passes a bound log(A) with the
    wrong sign in about 1 of A samples, however often it is looked at, if the deviation is known well: not for the first
    few values, whose own deviation may be next to nothing. tests/bench/gate_quality.py counts how often.

    Args:
        values: n of them, in measured order or any other.
        below: upper end of the one hypothesis, in the values' unit.
        above: lower end of the other, not less than ``below``.
        known: deviation of such values in earlier samples, counted as though it came from so many more of them (its
            variance times its degrees of freedom is in both sums), as the conjugate prior of a variance has it (Gelman
            et al., Bayesian Data Analysis, 3.2; so do the moderated t of Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004).

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
    if known is not None:
        own += known.freedom * known.value**2
    low = own + count * (centre - min(centre, below)) ** 2
    high = own + count * (centre - max(centre, above)) ** 2
    if low == high:
        return 0.0
    if low == 0 or high == 0:
        return _MOST if low == 0 else -_MOST
    freedom = count + (known.freedom if known is not None else 0.0)
    return max(-_MOST, min(_MOST, freedom / 2 * math.log(high / low)))


ALIKE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Correlations of neighbours that are thought possible. Beyond the last, a level is as good as a level of its own, and
no number of values distinguishes it from a change."""
_LEAST = 1e-300
"""The least sum of squares: its log is still a number."""


def drifting_likelihood_ratio(values: Sequence[float], below: float, above: float) -> float:
    """Log likelihood ratio as `log_likelihood_ratio`, for values that may also be like the one before.

    Values of a machine that drifts lie beside each other, and few of them deviate by next to nothing wherever they are.
    So each hypothesis is given the correlation that suits it best as well, of those `ALIKE`: the exact likelihood of a
    stationary normal process in which each value keeps that part of the last one's distance from the mean. For
    independent values this is the smaller evidence: some more of them are needed, the fewer the less they deviate.

    Args:
        values: in measured order.
        below: upper end of the one hypothesis, in the values' unit.
        above: lower end of the other, not less than ``below``.

    Raises:
        ValueError: no values, one that is not finite, or ``below`` above ``above``.
    """
    if not values or below > above or not all(map(math.isfinite, values)):
        raise ValueError("a drift needs finite values, and hypotheses that exclude each other")
    centre = mean(values)  # or sums of squares have no digits left
    own = [value - centre for value in values]
    sums = _Sums(
        len(own), math.fsum(own), math.fsum(value**2 for value in own),
        math.fsum(value * before for before, value in itertools.pairwise(own)), own[0], own[-1],
    )  # fmt: skip
    low: list[float] = []
    high: list[float] = []
    for r in ALIKE:
        a, b, c = sums.squares_around(r)
        for likely, end in (low, min(b / c, below - centre)), (high, max(b / c, above - centre)):
            left = max(a - 2 * b * end + c * end**2, _LEAST)
            likely.append(math.log1p(-(r**2)) / 2 - len(own) / 2 * math.log(left))
    return max(-_MOST, min(_MOST, max(low) - max(high)))


def likely_correlation(values: Sequence[float]) -> float:
    """The correlation of neighbours, of those `ALIKE` to the last; 0 for values that do not vary, or alternate.

    Few values show less of it than there is, by (1 + 4 r) / n (Kendall, Biometrika 41, 1954); that is put back.
    """
    centre = mean(values)
    own = [value - centre for value in values]
    power = math.fsum(value**2 for value in own)
    if power == 0:
        return 0.0
    seen = math.fsum(value * before for value, before in itertools.pairwise(own)) / power
    return min(max(seen + (1 + 4 * seen) / len(values), 0.0), ALIKE[-1])


_Numbers = TypeVar("_Numbers", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class _Sums(Generic[_Numbers]):
    """Sums of values from which the likelihood of a stationary process with correlated neighbours is computed."""

    count: _Numbers
    values: _Numbers
    squares: _Numbers
    neighbours: _Numbers
    """The sum of the products of each value and the one before it."""
    first: _Numbers
    last: _Numbers

    def squares_around(self, r: _Numbers) -> tuple[_Numbers, _Numbers, _Numbers]:
        """Coefficients a, b and c of a - 2 b m + c m^2, the sum of squares around a mean m.

        That is (1 - r^2) (x_1 - m)^2 + the sum of (x_t - r x_{t-1} - (1 - r) m)^2.
        """
        return (
            self.squares - 2 * r * self.neighbours + r**2 * (self.squares - self.last**2 - self.first**2),
            (1 - r) * (self.values - r * (self.values - self.last - self.first)),
            (1 - r) * (self.count - r * (self.count - 2)),
        )


def _log_odds(
    samples: NDArray[np.float64], counts: NDArray[np.int64], hypotheses: tuple[float, float], alike: Sequence[float]
) -> NDArray[np.float64]:
    """`drifting_likelihood_ratio` of each sample, a row, at each count of its first values, a column."""
    centre = samples.mean()
    values = samples - centre
    at = counts - 1
    products = np.pad(np.cumsum(values[:, 1:] * values[:, :-1], axis=1), ((0, 0), (1, 0)))
    sums = _Sums(
        counts.astype(np.float64), np.cumsum(values, axis=1)[:, at], np.cumsum(values**2, axis=1)[:, at],
        products[:, at], values[:, :1], values[:, at],
    )  # fmt: skip
    r = np.asarray(alike)[:, None, None]
    a, b, c = sums.squares_around(r)
    scale = np.log1p(-(r**2)) / 2
    low, high = (
        (scale - counts / 2 * np.log(np.maximum(a - 2 * b * end + c * end**2, _LEAST))).max(axis=0)
        for end in (np.minimum(b / c, hypotheses[0] - centre), np.maximum(b / c, hypotheses[1] - centre))
    )
    return np.asarray(low - high)


_SIMULATED = 1000
"""Samples: the bias comes out to a thirtieth of their deviation, a tenth of what it is where it matters."""


def stopping_bias(
    centre: float,
    deviation: float,
    hypotheses: tuple[float, float],
    log_odds: tuple[float, float],
    if_drifting: tuple[float, float],
    looks: Sequence[int],
) -> float:
    """Average error of the mean of a sample that ends when `log_likelihood_ratio` reaches its bound.

    The end of a sample favours the result that it ends with: a mean that lies beyond a bound by chance is not given the
    values that would bring it back. The error is estimated from samples of normal values around ``centre``, a
    parametric bootstrap. Subtracted once, it leaves a quarter to a third of the bias (Whitehead, On the bias of maximum
    likelihood estimation following a sequential test, Biometrika 73, 1986, whose equation this is the first step of).
    The samples are always the same.

    Args:
        centre: mean of the values.
        deviation: theirs, positive.
        hypotheses: ``below`` and ``above`` of `log_likelihood_ratio`.
        log_odds: at which the sample ends, for the low mean and for the high one.
        if_drifting: that `drifting_likelihood_ratio` must reach besides.
        looks: the numbers of values at which it is asked, rising; at the last it ends in any case.
    """
    source = np.random.default_rng(1)
    half = source.standard_normal((_SIMULATED // 2, looks[-1]))
    values = centre + deviation * np.concatenate([half, -half])
    counts = np.asarray(looks)
    means = np.cumsum(values, axis=1)[:, counts - 1] / counts
    ratios = _log_odds(values, counts, hypotheses, ALIKE[:1])
    drifting = _log_odds(values, counts, hypotheses, ALIKE)
    ended = (ratios >= log_odds[0]) & (drifting >= if_drifting[0])
    ended |= (ratios <= -log_odds[1]) & (drifting <= -if_drifting[1])
    ended[:, -1] = True
    return float(means[np.arange(len(means)), ended.argmax(axis=1)].mean() - centre)


def pairs_to_resolve(deviation: float, distance: float, odds: float) -> int:
    """The least even number of values of which the means are `resolvable` at a distance, 10,000 at most."""
    low, high = 1, _MANY // 2  # in pairs of values
    while low < high:
        middle = (low + high) // 2
        if resolvable(deviation, 2 * middle, odds) <= distance:
            high = middle
        else:
            low = middle + 1
    return 2 * low


_MANY = 10_000


def resolvable(deviation: float, count: int, odds: float, power: float = 0.95) -> float:
    """The distance of two means that ``count`` values distinguish with ``power``, in the deviation's unit.

    The distance at which `log_likelihood_ratio` reaches log(odds) though the mean lies off by as much as one of 1 / (1
    - power) samples does (by Student's t).

    Raises:
        ValueError: fewer than two values, or odds below 1.
    """
    if count < 2 or odds < 1:
        raise ValueError(f"{count} values at odds of {odds}: no two means can be distinguished")
    off = t_quantile(power, count - 1)
    reach = off + math.sqrt(odds ** (2 / count) * (count - 1 + off**2) - (count - 1))
    return reach * deviation / math.sqrt(count)
