"""Far beyond saturation: what a SUT still forwards there, and from which load on it forwards less, a livelock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self

from pdrgate.measurands.description import Description, Tolerance
from pdrgate.measurands.measurand import Ask, Measurand, Setting
from pdrgate.measurands.unit_spelling import PACKETS
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial

_OFFERED = 0.9
"""Part of a load that must have been offered, for a trial to count.

Flat out a generator may fall a little short, and the SUT is flooded all the same.
"""
_HALF = 0.5
_TOLERANCE = Tolerance(least=0.1)
"""Nobody runs far beyond saturation, and what is forwarded there scatters; a collapse matters."""


@dataclass(frozen=True, slots=True)
class OverloadThroughput(Measurand):
    """T(O) of PASTRAMI Eq. 4 at the highest of some loads far beyond saturation: the median forwarding rate, packets/s.

    Where nothing at all was forwarded, it is less than one packet in a trial, and that is the value.
    """

    loads: tuple[float, ...]
    """Rising, packets/s; all but the last are for `LivelockThreshold`."""
    duration: float
    """Seconds of each trial."""
    count: int = 2
    """Trials at each load in a replicate."""

    about = Description(
        "overload throughput", PACKETS, "higher", "what is forwarded of a load far beyond saturation",
        tolerance=_TOLERANCE,
    )  # fmt: skip

    @classmethod
    def of(cls, setting: Setting) -> Self | None:
        return cls(setting.overloads, setting.duration) if setting.overloads else None

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        for load in self.loads:
            if sum(one.occasion.phase == Phase.OVERLOAD and one.intended_load == load for one in trials) < self.count:
                return Ask(load, self.duration, Phase.OVERLOAD)
        return None

    def value(self, trials: Sequence[Trial]) -> float | None:
        counted = [
            one
            for one in offered_trials(trials)
            if one.occasion.phase == Phase.OVERLOAD and one.intended_load == self.loads[-1]
        ]
        return max(median(one.forwarding_rate for one in counted), 1.0 / self.duration) if counted else None


@dataclass(frozen=True, slots=True)
class LivelockThreshold(Measurand):
    """The load, packets/s, at which a SUT forwards half of the most that it can, for being offered so much.

    That is where f of PASTRAMI Eq. 4 is a half; between two loads the rate is taken to fall in a line, as in Eq. 5. A
    SUT that does not fall so far has its threshold beyond the highest load, and that is the value.
    """

    overload: OverloadThroughput

    about = Description(
        "livelock threshold", PACKETS, "higher", "the load at which half of the most is forwarded",
        tolerance=_TOLERANCE,
    )  # fmt: skip

    @classmethod
    def of(cls, setting: Setting) -> Self | None:
        overload = OverloadThroughput.of(setting)
        return cls(overload) if overload is not None else None

    def value(self, trials: Sequence[Trial]) -> float | None:
        at: dict[float, list[float]] = {}
        for trial in offered_trials(trials):
            at.setdefault(trial.intended_load, []).append(trial.forwarding_rate)
        if self.overload.loads[-1] not in at:
            return None
        rates = {load: median(found) for load, found in sorted(at.items())}
        most = max(rates, key=lambda load: rates[load])
        half = _HALF * rates[most]
        before = most
        for load in (load for load in rates if load > most):
            if rates[load] < half:
                return before + (load - before) * (rates[before] - half) / (rates[before] - rates[load])
            before = load
        return self.overload.loads[-1]


def offered_trials(trials: Sequence[Trial]) -> list[Trial]:
    """Trials of a replicate that show what its SUT forwards at their loads: undisturbed, and with nearly all of the
    load offered."""
    return [
        one
        for one in trials
        if one.occasion.phase in (Phase.REPEAT, Phase.SATURATION, Phase.OVERLOAD)
        and not one.seen.disturbed
        and one.offered_load >= _OFFERED * one.intended_load
    ]
