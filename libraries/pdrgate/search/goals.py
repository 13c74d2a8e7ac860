"""Search goals (RFC 9971 section 4.6): what a load must show to count as a bound."""

from __future__ import annotations

from dataclasses import dataclass

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
