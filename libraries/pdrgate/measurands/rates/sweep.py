"""A sweep passes once through the loads of the load-loss curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.measurands.measurand import Ask
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial


@dataclass(frozen=True, slots=True)
class Sweep:
    """Each load once, in the given order (packets/s), for ``duration`` seconds; the curve is judged by PASTRAMI."""

    loads: tuple[float, ...]
    duration: float

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        done = {trial.intended_load for trial in trials if trial.occasion.phase == Phase.REPEAT}
        return next((Ask(load, self.duration, Phase.REPEAT) for load in self.loads if load not in done), None)
