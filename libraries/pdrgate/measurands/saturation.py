"""Saturation throughput: what a SUT forwards when it is offered more than it can take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

from pdrgate.measurands.measurand import REPEAT, SATURATION, Ask
from pdrgate.results.model import Better
from pdrgate.trial import Trial


@dataclass(frozen=True, slots=True)
class SaturationThroughput:
    """T_sat of PASTRAMI Eq. 3: the median forwarding rate of some trials far beyond the PDR, packets/s.

    The median, because on a shared machine one trial of twenty dips by a tenth or more.
    """

    load: float
    """An overload, packets/s."""
    duration: float
    count: int
    """Trials at that load in a replicate, those of the curve included."""
    loss_ratio: float
    """A trial that loses no more than this is no overload, and tells nothing of saturation."""

    name: ClassVar[str] = "saturation throughput"
    unit: ClassVar[str] = "packets/s"
    better: ClassVar[Better] = "higher"

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        done = sum(trial.intended_load == self.load for trial in trials if trial.phase in (REPEAT, SATURATION))
        return Ask(self.load, self.duration, SATURATION) if done < self.count else None

    def value(self, trials: Sequence[Trial]) -> float | None:
        rates = [
            trial.forwarding_rate
            for trial in trials
            if trial.intended_load == self.load
            and not trial.generator_limited
            and trial.steady_loss_ratio > self.loss_ratio
        ]
        return median(rates) if rates else None
