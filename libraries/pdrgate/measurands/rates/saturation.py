"""Saturation throughput: what a SUT forwards when it is offered more than it can take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Self

from pdrgate.measurands.description import Description, Rule
from pdrgate.measurands.measurand import Ask, Measurand, Setting, rounded
from pdrgate.measurands.unit_spelling import PACKETS
from pdrgate.record.phase import SPECIAL, Phase
from pdrgate.record.trial import Trial

_MOST: Final = 2
"""Times the count, that disturbed trials may make of it."""
_LADDER: Final = (1.0, 1.5, 2.25, 3.4)
"""Multiples of the load: a SUT that is faster than when the load was chosen is offered a higher one."""


@dataclass(frozen=True, slots=True)
class SaturationThroughput(Measurand):
    """T_sat of PASTRAMI Eq. 3: the median forwarding rate of some trials far beyond the PDR, packets/s.

    It is the median, because on a shared machine one trial of twenty dips by a tenth or more. Where half of the trials
    find no overload, the SUT takes all that it is offered, and higher loads are tried.
    """

    load: float
    """An overload, packets/s."""
    duration: float
    count: int
    """Trials at that load in a replicate, those of the curve included."""
    loss_ratio: float
    """Loss ratio of an overload. A load whose trials lose no more than this in the median does not saturate the SUT."""

    about = Description(
        "saturation throughput", PACKETS, "higher", "what is forwarded of more than the SUT can take", essential=True
    )

    @classmethod
    def of(cls, setting: Setting) -> Self:
        return cls(max(setting.loads), setting.duration, setting.top_trials, setting.loss_ratio)

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        for load in self._loads:
            at_load = [one for one in trials if one.intended_load == load]
            tried = [one for one in at_load if one.occasion.phase in (Phase.REPEAT, Phase.SATURATION)]
            # What the machine disturbed is made good, within bounds.
            done = tried if len(tried) >= _MOST * self.count else [one for one in tried if not one.seen.disturbed]
            if len(done) < self.count:
                return Ask(load, self.duration, Phase.SATURATION)
            if any(one.generator_limited for one in done) or self._rate_at(load, trials) is not None:
                break
        return None

    def value(self, trials: Sequence[Trial]) -> float | None:
        rates = (self._rate_at(load, trials) for load in self._loads)
        return next((rate for rate in rates if rate is not None), None)

    @property
    def _loads(self) -> tuple[float, ...]:
        return tuple(self.load if factor == 1.0 else rounded(self.load * factor) for factor in _LADDER)

    def _rate_at(self, load: float, trials: Sequence[Trial]) -> float | None:
        """The median rate, packets/s, of trials of which the median is an overload; else None."""
        sound = [one for one in trials if one.intended_load == load and one.sound and one.occasion.phase not in SPECIAL]
        if not sound or median(one.steady_loss_ratio for one in sound) <= self.loss_ratio:
            return None
        return median(one.forwarding_rate for one in sound)


RECEIVE_RATE = Description(
    "MRR", PACKETS, "higher", "what is forwarded of all that the generator sends", rule=Rule.REPORT_ONLY
)  # fmt: skip
"""A test asks for trials of it by itself; the PDR, which is compared, is what a SUT holds."""
