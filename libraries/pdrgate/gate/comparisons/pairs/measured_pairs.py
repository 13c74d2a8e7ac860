"""What a comparison has measured so far, in this start and in those that it goes on from."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.gate.run.pairs_file import StoredStep
from pdrgate.measurands import Description
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.replication.earlier_tries import Pairs
from pdrgate.replication.replicates import Replicates
from pdrgate.results.model import BootResult, Side


class MeasuredPairs:
    """Boots with their values, and the trials that these rest on."""

    def __init__(self) -> None:
        self.boots: list[BootResult] = []
        """All boots, the failed ones included."""
        self.trials: list[Trial] = []
        """Trials of all whole pairs, without those of searches."""
        self.now: list[Trial] = []
        """Trials of the pair that is being measured, repeats of disturbed ones included."""
        self.all: list[Trial] = []
        """Trials of all pairs, repeats of disturbed ones included."""
        self.count = 0
        """How many trials there were."""

    @property
    def pairs(self) -> int:
        """How many pairs are whole."""
        return len(self._whole) // 2

    def take(self, one: Trial) -> None:
        """Take one trial of the pair that is being measured."""
        self.count += 1
        self.now.append(one)
        if one.occasion.repeat or one.belonging.pair:
            self.all.append(one)

    def add(self, found: Replicates) -> None:
        """Take a pair that was measured, or a boot that failed."""
        self.boots += found.results
        self.trials += found.trials

    def take_over(self, steps: Sequence[StoredStep], measured: Sequence[Trial]) -> None:
        """Take the pairs of the run that is continued, and what was measured in the boots of its whole ones."""
        self.boots += [boot for step in steps for boot in step.boots]
        self.count += len(measured)
        self.all += measured
        self.trials += _without_searches(measured)

    @property
    def judged(self) -> list[Trial]:
        """The trials of `all` that a verdict can rest on."""
        return _without_searches(self.all)

    def values(self, measurand: str, side: Side) -> tuple[float, ...]:
        """Value of a measurand in each boot of a build that has one, in the order of the pairs."""
        return tuple(boot.values[measurand] for boot in self._whole if boot.side == side and measurand in boot.values)

    def values_or_none(self, measurand: str, side: Side) -> tuple[float, ...]:
        """Value of a measurand in each boot of a build, 0 in one that has none, in the order of the pairs."""
        return tuple(boot.values.get(measurand, 0.0) for boot in self._whole if boot.side == side)

    def paired(self, measurand: str) -> Pairs:
        """A measurand of both boots of each pair."""
        return tuple(zip(*(self.values(measurand, side) for side in SIDES), strict=True))

    def everywhere(self, measurands: Sequence[Description]) -> tuple[Description, ...]:
        """The measurands that all boots have."""
        return tuple(one for one in measurands if all(one.name in boot.values for boot in self._whole))

    def somewhere(self, measurands: Sequence[Description]) -> tuple[Description, ...]:
        """The measurands that any boot of each build has."""
        return tuple(one for one in measurands if all(self.values(one.name, side) for side in SIDES))

    def complaints(self, side: Side) -> tuple[str, ...]:
        """What the kernels of a build complained of; of the candidate what the baseline did not."""
        told = {name: [line for boot in self.boots if boot.side == name for line in boot.complaints] for name in SIDES}
        return tuple(line for line in dict.fromkeys(told[side]) if side == "baseline" or line not in told["baseline"])

    @property
    def _whole(self) -> list[BootResult]:
        return [boot for boot in self.boots if not boot.failure]


def _without_searches(trials: Sequence[Trial]) -> list[Trial]:
    return [one for one in trials if one.occasion.phase not in (Phase.CALIBRATION, Phase.SEARCH)]
