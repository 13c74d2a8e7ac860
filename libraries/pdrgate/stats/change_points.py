"""Change points: where a series moved from one level to another, and stayed there.

The levels are found by PELT's optimum on a quadratic cost (Killick, Fearnhead and Eckley, Optimal Detection of
Changepoints With a Linear Computational Cost, JASA 107, 2012), as ruptures computes it. Around it stands what a history
of builds asks for: values that stand alone are left out, a level is held by several values, each change must pass a
test of its own, and a slow creep is reported as a creep. tests/bench/trend_alarm.py compares it with others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import ruptures

from pdrgate.stats.intervals import relative, t_quantile

FEWEST_OF_A_LEVEL = 3
"""Values that hold a level: two that dip in a row are rarer than builds that are slower."""
_REACH = 3
"""Neighbours on each side that say what is usual where a value stands."""
_ALONE = 4.0
"""Deviations off its neighbours' median that make a value one that stands alone."""
_DOUBT = 1e-5
"""The two-sided chance of a false change. It is small, for any place may show one, and the series is looked at after
every build."""
_PENALTY = 20.0
"""The penalty for a further level, in squared deviations: about what ``_DOUBT`` asks for."""
_PLACE = 6.6
"""Squared deviations that another place of a change may fit worse by: 99 % of a chi-squared with one degree."""
_SHORTEST_CREEP = 5
"""Values that a creep takes at least; what goes faster is a step."""
_PLACES = 30
"""The number of ends of a creep that are tried."""
_SMALLEST_DEVIATION = 1e-4
"""Relative; a count that hardly deviates would prove anything."""

_Values = npt.NDArray[np.float64]
_Level = tuple[int, int]
"""Index of its first value, and of the first one behind it."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A move of a series from one level to another."""

    before: int
    """Index of a value that was still at the level before: the last one that surely was."""
    after: int
    """Index of the first one that surely was at the level after."""
    change: float
    """Relative change: (level after - level before) / level before."""
    lower: float
    upper: float
    creeps: bool
    """Whether it went there in many small steps."""


@dataclass(frozen=True, slots=True)
class _Move:
    """A change among the values that are looked at, in logs."""

    before: int
    after: int
    size: float
    error: float
    """Standard error of the size."""
    creeps: bool


def change_points(values: Sequence[float], least: float = 0.01, confidence: float = 0.99) -> tuple[ChangePoint, ...]:
    """The lasting changes of the values, in their order; empty if they did not move, or are too few.

    Args:
        values: in the order of time, above 0, in any unit: changes are relative, and so is their deviation.
        least: changes smaller than this, as a fraction, are nobody's concern.
        confidence: of the interval of each change.

    Raises:
        ValueError: a value is not finite, or not above 0.
    """
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise ValueError("a series of values above 0 is asked for")
    logs = np.log(np.asarray(values, dtype=np.float64))
    if len(logs) < 2 * FEWEST_OF_A_LEVEL:
        return ()
    kept = _not_alone(logs)
    if len(kept) < 2 * FEWEST_OF_A_LEVEL:
        return ()
    series = logs[kept]
    ends = _tested(series, _ends(series), least)
    deviation, freedom = _residual(series, ends)
    reach = t_quantile((1 + confidence) / 2, freedom)
    return tuple(
        ChangePoint(
            before=int(kept[move.before]),
            after=int(kept[move.after]),
            change=relative(move.size),
            lower=relative(move.size - reach * move.error),
            upper=relative(move.size + reach * move.error),
            creeps=move.creeps,
        )
        for move in _moves(series, ends, deviation, least)
    )


def _deviation(logs: _Values) -> float:
    """The deviation of the values around their level, by the differences of neighbours, which levels do not touch."""
    return max(float(np.median(np.abs(np.diff(logs)))) / (0.6745 * math.sqrt(2)), _SMALLEST_DEVIATION)


def _not_alone(logs: _Values) -> npt.NDArray[np.intp]:
    """The indices of the values that are near their neighbours' median (Hampel's identifier)."""
    padded = np.concatenate([np.full(_REACH, np.nan), logs, np.full(_REACH, np.nan)])
    usual = np.nanmedian(np.lib.stride_tricks.sliding_window_view(padded, 2 * _REACH + 1), axis=1)
    return np.flatnonzero(np.abs(logs - usual) <= _ALONE * _deviation(logs))


def _ends(series: _Values) -> list[int]:
    """The exclusive end of each level; the last one is the end of the series."""
    scaled = (series - series.mean()) / _deviation(series)
    search = ruptures.KernelCPD(kernel="linear", min_size=FEWEST_OF_A_LEVEL).fit(scaled.reshape(-1, 1))
    return [int(end) for end in search.predict(pen=_PENALTY)]


def _tested(series: _Values, ends: list[int], least: float) -> list[int]:
    """The ends without those of levels that may be one, or that differ by less than ``least``; the weakest go first."""
    smallest = math.log1p(least)
    while len(ends) > 1:
        deviation, freedom = _residual(series, ends)
        needed = t_quantile(1 - _DOUBT / 2, freedom) * deviation
        strengths = []
        for left, right in pairwise(_levels(ends)):
            size = abs(float(series[slice(*right)].mean() - series[slice(*left)].mean()))
            strengths.append(min(size / (needed * _root(left, right)), size / smallest))
        weakest = int(np.argmin(strengths))
        if strengths[weakest] >= 1:
            break
        ends = ends[:weakest] + ends[weakest + 1 :]
    return ends


def _levels(ends: Sequence[int]) -> list[_Level]:
    return list(pairwise([0, *ends]))


def _root(left: _Level, right: _Level) -> float:
    return math.sqrt(1 / (left[1] - left[0]) + 1 / (right[1] - right[0]))


def _residual(series: _Values, ends: Sequence[int]) -> tuple[float, int]:
    """Deviation of all values around their levels, and its degrees of freedom."""
    freedom = len(series) - len(ends)
    squares = sum(_squares(series[first:end]) for first, end in _levels(ends))
    return max(math.sqrt(squares / freedom), _SMALLEST_DEVIATION), freedom


def _squares(values: _Values) -> float:
    return float(((values - values.mean()) ** 2).sum())


def _moves(series: _Values, ends: Sequence[int], deviation: float, least: float) -> list[_Move]:
    """All of them in order; what goes on in one direction is a creep where a slope fits better than steps do."""
    levels = _levels(ends)
    found: list[_Move] = []
    crept: set[_Level] = set()
    for run in _runs(series, levels):
        slope = _slope(series, run[0][0], run[-1][1], deviation)
        if slope is not None and slope.misfit < _misfit_of_steps(series, run, deviation):
            found.append(slope.move)
            crept.update(run)
        else:
            found += [_step(series, *pair, deviation) for pair in pairwise(run)]
    for level in levels:
        slope = None if level in crept else _slope(series, *level, deviation)
        if slope is not None and slope.sure and abs(slope.move.size) >= math.log1p(least):
            found.append(slope.move)
    return sorted(found, key=lambda move: move.before)


def _runs(series: _Values, levels: Sequence[_Level]) -> Iterator[Sequence[_Level]]:
    """Stretches of two or more levels that go in one direction; the last one of each is the first of the next."""
    means = [float(series[slice(*one)].mean()) for one in levels]
    first = 0
    while first < len(levels) - 1:
        down = means[first + 1] < means[first]
        last = first + 1
        while last + 1 < len(levels) and (means[last + 1] < means[last]) == down:
            last += 1
        yield levels[first : last + 1]
        first = last


def _step(series: _Values, left: _Level, right: _Level, deviation: float) -> _Move:
    """A step lies between the places that fit surely worse."""
    part = series[left[0] : right[1]]
    low, high = float(series[slice(*left)].mean()), float(series[slice(*right)].mean())
    misfit = np.cumsum((part - low) ** 2 - (part - high) ** 2)[:-1] / deviation**2
    plausible = np.flatnonzero(misfit <= misfit.min() + _PLACE)
    before, after = left[0] + int(plausible[0]), left[0] + int(plausible[-1]) + 1
    return _Move(before, after, high - low, deviation * _root(left, right), creeps=False)


def _misfit_of_steps(series: _Values, levels: Sequence[_Level], deviation: float) -> float:
    """Squares left, in squared deviations, with what its levels and their places cost (BIC)."""
    squares = sum(_squares(series[slice(*one)]) for one in levels) / deviation**2
    return squares + (2 * len(levels) - 1) * math.log(levels[-1][1] - levels[0][0])


@dataclass(frozen=True, slots=True)
class _Slope:
    """A level, a straight way to another one, and that level, as they fit some values best."""

    move: _Move
    misfit: float
    """Squares left, in squared deviations, with what four parameters cost (BIC)."""
    sure: bool
    """Whether it is there at all."""


def _slope(series: _Values, start: int, end: int, deviation: float) -> _Slope | None:
    """The slope that fits best; None if there are too few values for one."""
    part = series[start:end]
    count = len(part)
    places = np.unique(np.linspace(0, count - 1, min(count, _PLACES)).astype(np.int64))
    begins, stops = (one.ravel() for one in np.meshgrid(places, places, indexing="ij"))
    long_enough = stops - begins >= _SHORTEST_CREEP
    begins, stops = begins[long_enough], stops[long_enough]
    if count < 2 * _SHORTEST_CREEP or not len(begins):
        return None
    slopes = np.clip((np.arange(count) - begins[:, None]) / (stops - begins)[:, None], 0, 1)
    centred = slopes - slopes.mean(axis=1, keepdims=True)
    squares, products = (centred**2).sum(axis=1), centred @ part
    best = int((products**2 / squares).argmax())
    size, spread = float(products[best] / squares[best]), math.sqrt(float(squares[best]))
    left = _squares(part) - (size * spread) ** 2
    own = max(math.sqrt(max(left, 0.0) / (count - 4)), _SMALLEST_DEVIATION)
    return _Slope(
        _Move(start + int(begins[best]), start + int(stops[best]), size, deviation / spread, creeps=True),
        misfit=left / deviation**2 + 4 * math.log(count),
        sure=abs(size) * spread >= t_quantile(1 - _DOUBT / 2, count - 4) * own,
    )
