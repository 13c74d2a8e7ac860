"""Which trials of a living boot are counted: at an overload, whatever the speed of the guest is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.measurands import Ask
from pdrgate.phase import Phase
from pdrgate.trial import Trial

COUNTED_FOR = 2304 / 250e3
"""Seconds of a trial, in which twelve bursts are sent where packets come in bursts."""
LIGHT_LOAD, LIGHT_FOR = 4e3, 0.1
"""Packets/s that come one by one at any guest that runs at all, and seconds."""
_LOADS = (250e3, 500e3, 1e6)
"""Packets/s: more than emulated guests take, on a machine of today and of some years on."""
_TRIALS = 3
"""Of which the median counts: now and then a kernel tidies up in one, or comes upon a list that is full."""


@dataclass(frozen=True, slots=True)
class OverloadStep:
    """Trials at a load that is too much; a higher one where it was not."""

    loss_ratio: float
    """What a trial must lose more than."""

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        """The trial that is wanted next; None where there are enough, or no load is too much."""
        for load in _LOADS:
            made = [one for one in trials if one.occasion.phase == Phase.SATURATION and one.intended_load == load]
            if made and made[0].steady_loss_ratio <= self.loss_ratio:
                continue
            return Ask(load, COUNTED_FOR, Phase.SATURATION) if len(made) < _TRIALS else None
        return None
