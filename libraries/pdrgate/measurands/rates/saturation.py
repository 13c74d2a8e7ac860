"""Saturation throughput: what a SUT forwards when it is offered more than it can take.

Saturation throughput and PDR are one number where the SUT loses nothing up to what it forwards at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Final, Self

from pdrgate.measurands.description import Description
from pdrgate.measurands.measurand import Ask, Setting, rounded
from pdrgate.measurands.rates.pdr import PartialDropRate
from pdrgate.measurands.self_described import SelfDescribed
from pdrgate.measurands.unit_spelling import PACKETS
from pdrgate.record.phase import SPECIAL, Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult

_MOST: Final = 2
"""Times the count, that disturbed trials may make of it."""
_LADDER: Final = (1.0, 1.5, 2.25, 3.4)
"""Multiples of the load: a SUT that is faster than when the load was chosen is offered a higher one."""


@dataclass(frozen=True, slots=True)
class SaturationThroughput(SelfDescribed):
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

    about: ClassVar[Description] = Description(
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


AT_THE_KNEE: Final = f"{PartialDropRate.name} (at the knee)"
"""The name of both where they agree."""
_APART: Final = 0.01
"""Relative: a PDR at the knee lies above the saturation throughput by the loss ratio of its goal, or by less."""
_EQUAL: Final = 1e-6
"""Changes that are measured by themselves differ by more."""


def agree_at_the_knee(changes: Iterable[ChangeResult]) -> bool:
    """Whether the changes of PDR and saturation throughput are the same, and so are their values."""
    known = {one.measurand: one for one in changes}
    pdr, saturation = known.get(PartialDropRate.name), known.get(SaturationThroughput.name)
    if pdr is None or saturation is None or pdr.verdict is not saturation.verdict:
        return False
    told = ((pdr.change, saturation.change), (pdr.lower, saturation.lower), (pdr.upper, saturation.upper))
    return all(math.isclose(one, other, rel_tol=0.0, abs_tol=_EQUAL) for one, other in told) and (
        math.isclose(pdr.candidate, saturation.candidate, rel_tol=_APART)
        and math.isclose(pdr.baseline, saturation.baseline, rel_tol=_APART)
    )  # fmt: skip


def told_once(changes: Iterable[ChangeResult]) -> list[ChangeResult]:
    """The changes without that of the saturation throughput, where it equals the PDR's."""
    found = list(changes)
    if not agree_at_the_knee(found):
        return found
    return [one for one in found if one.measurand != SaturationThroughput.name]
