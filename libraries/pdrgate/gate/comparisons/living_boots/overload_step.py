"""Which trials of a living boot are counted: at an overload, whatever the speed of the guest is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.measurands import Ask
from pdrgate.measurands.counted.cost import complete
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial

LIGHT_LOAD, LIGHT_FOR = 4e3, 0.1
"""Packets/s that come one by one at any guest that runs at all, and seconds."""
_TRIALS = 3
"""Trials at an overload, of which the median counts.

Now and then a kernel tidies up in one trial, or comes upon a list that is full.
"""
_MOST = 6
"""Trials at one load, where some were no overload, or lost packets of a burst."""


@dataclass(frozen=True, slots=True)
class Overload:
    """Loads that emulated guests do not take, on a machine of today and of some years on, and for how long."""

    loads: tuple[float, ...]
    """Packets/s; the first that is too much counts."""
    seconds: float
    """Seconds of a trial."""


CARRIED = Overload((250e3, 500e3, 1e6), 2304 / 250e3)
"""For packets that come back, or end at programs: twelve bursts are sent, where packets come in bursts. Else a socket's
buffer of 2 MiB has room for all of them: Linux 6.12 takes 1280 bytes of 4 MiB for each."""
PACED = Overload((500e3, 1e6), 6144 / 500e3)
"""For packets that do not come back, and are sent when they are due: half as many again as a ring of 4096 has room for.
Of as many as it holds, it is chance whether any is refused, and a boot that loses none is asked at a higher load."""


@dataclass(frozen=True, slots=True)
class OverloadStep:
    """Trials at a load that is too much; a higher one where none of three lost anything."""

    loss_ratio: float
    """What a trial must lose more than."""
    overload: Overload = CARRIED

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        """The trial that is wanted next; None where there are enough, or no load is too much."""
        for load in self.overload.loads:
            made = [one for one in trials if one.occasion.phase == Phase.SATURATION and one.intended_load == load]
            lossy = [one for one in made if one.steady_loss_ratio > self.loss_ratio]
            if len(made) >= _TRIALS and not lossy:
                continue
            enough = sum(map(complete, lossy)) >= _TRIALS or len(made) >= _MOST
            return None if enough else Ask(load, self.overload.seconds, Phase.SATURATION)
        return None
