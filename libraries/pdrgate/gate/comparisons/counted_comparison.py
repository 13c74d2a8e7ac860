"""Two builds compared by what a packet costs, on boots that stay up from scenario to scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from pdrgate.gate.comparisons.build_comparison import ComparedTrials
from pdrgate.gate.comparisons.living_boots.counted_packets import CountedPackets
from pdrgate.gate.comparisons.living_boots.living_boots import LivingBoots
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs.pairs_shape import PairsShape, shape_of
from pdrgate.gate.comparisons.pairs.tries_ledger import Earlier
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.open_loop_sut import OpenLoopSut
from pdrgate.measurands import Cost, Description
from pdrgate.measurands.calls import Calls
from pdrgate.measurands.load_cost import LOAD_COSTS
from pdrgate.stats.pooled import Deviation
from pdrgate.trial import Trial

_PAIRS_DEVIATE = Deviation(0.004, 8.0)
"""What pairs of equal builds deviate by, relative, on most paths, and how well that is known of any other path."""


class CountedTrials(ComparedTrials):
    """Trials at saturation and at a light load, of living boots."""

    compared: ClassVar[tuple[Description, ...]] = (Cost.about,)
    also_told: ClassVar[tuple[Description, ...]] = (Calls.about, *(one.about for one in LOAD_COSTS))
    pairs_deviate: ClassVar[Mapping[str, Deviation]] = {Cost.about.name: _PAIRS_DEVIATE}

    def __init__(self, task: ComparisonTask, suts: LivingSuts) -> None:
        super().__init__(task)
        self._suts = suts

    def replication(  # type: ignore[override]
        self, told: Callable[[Trial, bool], None], known: Callable[[Mapping[str, str]], None]
    ) -> LivingBoots[OpenLoopSut, Trial]:
        task = self.task
        self._boots = LivingBoots(  # type: ignore[assignment]
            task.session,
            self._suts,
            CountedPackets(task.session, task.scenario, self._suts),
            told=told,
            known=known,
            test=task.longname,
        )
        return self._boots  # type: ignore[return-value]

    def shape(
        self, samples: Mapping[str, Mapping[Any, tuple[float, ...]]], stretches: Sequence[Trial], earlier: Earlier
    ) -> PairsShape:
        """Counts have no curve, and do not depend on the level at which a boot comes up."""
        return shape_of(
            self.compared, samples, earlier=earlier.samples, contradictions=earlier.contradictions
        )  # fmt: skip


class CountedComparison(PairsComparison[Trial]):
    """One scenario on living boots of two builds."""

    def __init__(
        self, session: Session, scenario: Scenario, suts: LivingSuts, plan: Plan, *, test: str = "", longname: str = ""
    ) -> None:
        self._suts = suts
        super().__init__(session, scenario, suts.builds, plan, test=test, longname=longname)

    @property
    def unable(self) -> str:
        """Why neither build can be set up for the scenario, in a sentence; empty where one can."""
        replication = self.loop.replication
        return replication.unable if isinstance(replication, LivingBoots) else ""

    def _kind_of(self, task: ComparisonTask) -> CountedTrials:
        return CountedTrials(task, self._suts)
