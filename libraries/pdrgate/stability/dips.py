"""Lone dips: trials in which a shared machine, as far as the repeats show, took the SUT's CPU away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pdrgate.record.trial import Trial
from pdrgate.stats.robust import deviation_about_median

_ONE_OF: Final = 36
"""A shared machine makes one of as many trials dip: that is no fault of the SUT."""
_DEPTH: Final = 0.05
"""Less than the median of its load that a trial must forward; what dips less moves no mean by much."""
_REACH: Final = 4.0
"""Median absolute deviations below the median that a dip has at least, beside `_DEPTH`."""
_FEWEST: Final = 3
"""Repeats of a load that are needed to find a dip. One of as many may be a dip."""


def without_lone_dips(trials: Sequence[Trial], false_alarm: float) -> list[Trial]:
    """The trials, without the few that forwarded far less than others at their load; all, if they are not few.

    Few are no more than one of 36 trials would be but for a chance of ``false_alarm``, and one of three at a load. A
    SUT that is slow more often is no victim of its machine, and all its trials count.
    """
    by_load: dict[float, list[Trial]] = {}
    for trial in trials:
        if trial.sound:
            by_load.setdefault(trial.intended_load, []).append(trial)
    dips = {id(trial) for own in by_load.values() for trial in _dips(own)}
    if len(dips) > _most(sum(map(len, by_load.values())), false_alarm):
        return list(trials)
    return [trial for trial in trials if id(trial) not in dips]


def _dips(own: Sequence[Trial]) -> list[Trial]:
    """The dips among trials at one load; none if they are more than a few."""
    middle, deviation = deviation_about_median([trial.throughput_ratio for trial in own])
    least = middle - max(_DEPTH * middle, _REACH * deviation)
    found = [trial for trial in own if trial.throughput_ratio < least]
    return found if len(found) <= len(own) // _FEWEST else []


def _most(trials: int, false_alarm: float) -> int:
    """The number of dips that one of 36 trials exceeds with no more than that probability."""
    from scipy.special import bdtrc  # as in stats, at its first use: it takes its time

    return next(most for most in range(trials + 1) if bdtrc(most, trials, 1 / _ONE_OF) <= false_alarm)
