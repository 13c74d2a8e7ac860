"""What replicates are compared by: trials of an open loop, or transfers of a closed one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic

from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_shape import PairsShape
from pdrgate.gate.comparisons.pairs.tries import Earlier
from pdrgate.gate.run.progress import Estimate
from pdrgate.measurands import Description
from pdrgate.record.stretch import AnyStretch
from pdrgate.record.trial import Trial
from pdrgate.replication.replicates import Replication
from pdrgate.results.model import ScenarioResult, SideResult
from pdrgate.stats.pooled import Deviation


class ComparedStretches(ABC, Generic[AnyStretch]):
    """What a comparison does with the stretches of measurement that its replicates are made of."""

    compared: ClassVar[tuple[Description, ...]]
    """What is compared, where all boots have it, the one that the run is about first."""
    also_told: ClassVar[tuple[Description, ...]] = ()
    """What is told of each build, where all its boots have it."""
    pairs_deviate: ClassVar[Mapping[str, Deviation]] = {}
    """By measurand, what the log ratios of pairs deviate by on any machine; of others only the pairs tell."""

    def __init__(self, task: ComparisonTask) -> None:
        self.task = task

    @abstractmethod
    def replication(
        self, told: Callable[[AnyStretch, bool], None], known: Callable[[Mapping[str, str]], None]
    ) -> Replication[AnyStretch]:
        """What measures replicates of both builds.

        Args:
            told: gets each stretch, and whether it is one of the run that is resumed.
            known: gets the fingerprint of the first boot, before anything is measured; what it raises ends the
                comparison.
        """

    @abstractmethod
    def known(self) -> Sequence[AnyStretch]:
        """The stretches of the run that is resumed."""

    @abstractmethod
    def shape(
        self, samples: Mapping[str, Mapping[Any, tuple[float, ...]]], stretches: Sequence[AnyStretch], earlier: Earlier
    ) -> PairsShape:
        """What may speak against comparing by means.

        Args:
            samples: by measurand and side, one of each boot.
            stretches: those of all whole pairs.
        """

    @abstractmethod
    def progress(
        self, one: AnyStretch, now: Sequence[AnyStretch], count: int, left: Estimate | None, *, replayed: bool
    ) -> None:
        """Tell whoever watches of one that was measured.

        Args:
            now: those of its pair so far.
            count: of all so far.
        """

    def accounted(self, side: SideResult, stretches: Sequence[AnyStretch]) -> SideResult:
        """What is known of a build, with what its stretches show: cost, latency, losses, arrivals.

        Args:
            stretches: those of both builds.
        """
        return side

    def detailed(self, result: ScenarioResult, stretches: Sequence[AnyStretch]) -> ScenarioResult:
        """The result, with what these stretches tell besides."""
        return result

    def trials(self, stretches: Sequence[AnyStretch]) -> tuple[Trial, ...]:
        """The trials among them."""
        return ()
