"""A goal's bounds while its search still runs, for people who watch."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.record.phase import SPECIAL
from pdrgate.record.trial import Trial


def known_bounds(trials: Sequence[Trial], loss_ratio: float) -> tuple[float | None, float | None]:
    """The relevant lower and upper bound of a goal of ``loss_ratio``, packets/s, by the ``trials`` so far.

    A load is too high when more than half of its longest trials lost more (RFC 9971's usual exceed ratio). The upper
    bound is the lowest such load. The lower bound is the highest other load below it. Trials that are not sound are
    left out. The bounds are for people who watch: MLRsearch also weighs shorter and future trials.
    """
    by_load: dict[float, list[Trial]] = {}
    for trial in trials:
        if trial.sound and trial.occasion.phase not in SPECIAL:
            by_load.setdefault(trial.intended_load, []).append(trial)
    upper = next((load for load in sorted(by_load) if _too_high(by_load[load], loss_ratio)), None)
    lower = max((load for load in by_load if upper is None or load < upper), default=None)
    return lower, upper


def _too_high(trials: Sequence[Trial], loss_ratio: float) -> bool:
    longest = max(trial.intended_duration for trial in trials)
    exceeded = [trial.steady_loss_ratio > loss_ratio for trial in trials if trial.intended_duration == longest]
    return 2 * sum(exceeded) > len(exceeded)
