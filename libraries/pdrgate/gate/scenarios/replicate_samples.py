"""A replicate while it is measured: one sample of each measurand, from the trials that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.gate.verdicts.change_verdict import summarised
from pdrgate.measurands import (
    Ask,
    Cost,
    LatencyTrials,
    Measurand,
    OverloadThroughput,
    PartialDropRate,
    ReplicateStep,
    SaturationThroughput,
    Setting,
    Sweep,
    of_setting,
)
from pdrgate.record.trial import Trial
from pdrgate.results.model import MeasurandResult

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Measurands:
    """What every replicate of a scenario measures: the loads of the curve, and the values from them and from trials
    beyond."""

    all: tuple[Measurand, ...]
    """All that come to a number, the PDR first: it is what a run is about."""
    latency: LatencyTrials | None = None
    """Trials with latency probes; None where latency is not asked for."""

    @classmethod
    def of(cls, setting: Setting, latency: LatencyTrials | None = None) -> Measurands:
        """The measurands of a curve, with those of latency where there are trials with probes."""
        return cls(of_setting(replace(setting, latency=latency is not None)), latency)

    def steps(self, sweep: Sweep) -> tuple[ReplicateStep, ...]:
        """Steps of a replicate in the order in which they are measured: the knee shows where to look for the PDR."""
        others = [one for one in self.all if one is not self.saturation]
        return (sweep, self.saturation, *others, *((self.latency,) if self.latency is not None else ()))

    def expecting(self, pdr: float) -> Measurands:
        """Copy for replicates of which others came to a PDR, packets/s; 0: none is known."""
        expected = replace(self.pdr, expected=pdr)
        return replace(self, all=tuple(expected if one is self.pdr else one for one in self.all))

    @property
    def pdr(self) -> PartialDropRate:
        return self._the(PartialDropRate)

    @property
    def saturation(self) -> SaturationThroughput:
        return self._the(SaturationThroughput)

    @property
    def cost(self) -> Cost:
        return self._the(Cost)

    @property
    def overload(self) -> OverloadThroughput | None:
        return next((one for one in self.all if isinstance(one, OverloadThroughput)), None)

    def _the(self, kind: type[_Kind]) -> _Kind:
        return next(one for one in self.all if isinstance(one, kind))


@dataclass
class Replicate:
    """A replicate on the way."""

    sut: PreparedSut
    steps: Sequence[ReplicateStep]
    repeat: int = 0
    trials: list[Trial] = field(default_factory=list)

    def wants(self) -> Ask | None:
        """What comes next; None when it is complete."""
        return next((ask for step in self.steps if (ask := step.next(self.trials)) is not None), None)

    def go_on(self) -> bool:
        """Measure one trial; False when none was wanted."""
        ask = self.wants()
        if ask is None:
            return False
        patience = self.sut.session.profile.patience
        self.trials.append(self.sut.measure_patiently(ask, patience, self.repeat))
        return True


def summaries(measurands: Sequence[Measurand], replicates: Sequence[Replicate]) -> tuple[MeasurandResult, ...]:
    """Values of replicates by measurand; a measurand without a value in any of them is left out."""
    found = []
    for measurand in measurands:
        values = [value for one in replicates if (value := measurand.value(one.trials)) is not None]
        found.append(summarised(measurand.name, measurand.unit, measurand.better, values))
    return tuple(one for one in found if one is not None)


_Replicate = TypeVar("_Replicate", bound=Replicate)


def measure_in_turn(
    replicates: Sequence[_Replicate],
    between: Callable[[], None] = lambda: None,
    beside: Callable[[_Replicate], bool] = lambda one: False,
) -> None:
    """Complete replicates that can be measured side by side: a trial of each, and who begins takes turns.

    Args:
        between: called whenever each of them has had its turn.
        beside: whether the next trial of one has the same value while the others are measured; where that is so of all,
            they are measured at the same time.
    """
    with ThreadPoolExecutor(len(replicates)) as pool:  # what is begun in a thread must not end with its turn
        turn = 0
        while True:
            order = replicates if turn % 2 == 0 else replicates[::-1]
            at_once = len(order) > 1 and all(map(beside, order))
            if not any([*(pool.map(_go_on, order) if at_once else map(_go_on, order))]):
                return
            turn += 1
            between()


def _go_on(one: Replicate) -> bool:
    return one.go_on()
