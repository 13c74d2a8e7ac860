"""Search goals (RFC 9971 section 4.6): what a load must show to count as a bound, and which bounds are known so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.record.phase import SPECIAL
from pdrgate.record.trial import Trial
from pdrgate.values.errors import UsageError

_FINEST = 1e-6
"""Narrower widths than this are lost in the rounding of loads."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Search goal. Ratios are fractions, times are seconds.

    Raises:
        UsageError: a value is out of its range; the message names the range.
    """

    name: str
    loss_ratio: float
    """The load holds while no more than this is lost: 0 for NDR, 0.005 for PDR."""
    width: float = 0.01
    """Relative width at which the two bounds are close enough."""
    initial_trial_duration: float = 0.5
    final_trial_duration: float = 0.5
    duration_sum: float = 2.0
    """Seconds of trials that decide a load."""
    exceed_ratio: float = 0.5
    """Part of a load's trials that may lose more than the loss ratio before it is an upper bound."""
    preceding_targets: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.loss_ratio < 1:
            raise UsageError(f"goal {self.name}: a loss ratio of {self.loss_ratio:.3%} has no meaning; use 0 to 99 %")
        if not _FINEST <= self.width < 1:
            raise UsageError(
                f"goal {self.name}: a width of {self.width:.3%} would never be reached; use one above 0 %, such as 1%"
            )
        if not 0 < self.initial_trial_duration <= self.final_trial_duration <= self.duration_sum:
            raise UsageError(
                f"goal {self.name}: trial durations {self.initial_trial_duration} s, {self.final_trial_duration} s and "
                f"their sum {self.duration_sum} s must grow in this order, and be above 0"
            )
        if not 0 <= self.exceed_ratio < 1:
            raise UsageError(f"goal {self.name}: an exceed ratio of {self.exceed_ratio} has no meaning; use 0 to 0.99")


PDR_GOAL = Goal("PDR", loss_ratio=0.005)
NDR = Goal("NDR", loss_ratio=0.0)


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
