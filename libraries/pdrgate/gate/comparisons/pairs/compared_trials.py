"""What a comparison of two builds does with its trials: what it compares them by, and what it reports of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_shape import BuildsCurves, PairsShape, shape_of
from pdrgate.gate.comparisons.pairs.tries import Earlier
from pdrgate.gate.run.progress import Estimate, Progress
from pdrgate.gate.scenarios.transfer_run import transfer_in_words, transfers_result
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.verdicts.arrivals import arrivals
from pdrgate.gate.verdicts.build_latency import latencies
from pdrgate.gate.verdicts.packet_cost import cost_result, replacement_cost
from pdrgate.measurands import Description
from pdrgate.measurands.counted.cost import with_pair_beside
from pdrgate.measurands.memory.memory_result import memory_result
from pdrgate.measurands.memory.memory_trials import memory_of
from pdrgate.observers.accounting import total
from pdrgate.record.phase import SPECIAL
from pdrgate.record.trial import Trial, by_boot
from pdrgate.results.model import ScenarioResult, Side, SideResult
from pdrgate.search.goals import known_bounds
from pdrgate.stats.pooled import Deviation


@dataclass(frozen=True, slots=True)
class ComparedBy:
    """What boots of two builds are compared by."""

    compared: tuple[Description, ...]
    """What is compared, where all boots have it, the one that the run is about first."""
    also_told: tuple[Description, ...] = ()
    """What is reported of each build, where any of its boots has it."""
    pairs_deviate: Mapping[str, Deviation] = field(default_factory=dict)
    """Deviation of the log ratios of pairs on any machine, by measurand.

    That of other measurands is estimated from the pairs.
    """
    curves: bool = False
    """Whether each build's load-loss curve is judged."""
    replacements: bool = False
    """Whether the cost is that of what is replaced, in place of a packet's."""


class ComparedTrials:
    """The trials of a comparison. Of which kind they are the scenario decides."""

    def __init__(self, task: ComparisonTask, by: ComparedBy) -> None:
        self.by = by
        self._task = task

    def shape(
        self, samples: Mapping[str, Mapping[Any, tuple[float, ...]]], trials: Sequence[Trial], earlier: Earlier
    ) -> PairsShape:
        """What may speak against comparing by means.

        Counts have no curve, and do not depend on the level at which a boot comes up.

        Args:
            samples: by measurand and side, one of each boot.
            trials: those of all whole pairs.
        """
        sides, curves = None, None
        if self.by.curves:
            sides = {side: [one for one in trials if one.belonging.side == side] for side in self._task.builds}
            curves = BuildsCurves(self._task.scenario.loss_ratio, self._task.scenario.name)
        return shape_of(
            self.by.compared, samples, trials=sides, curves=curves, earlier=earlier.samples,
            contradictions=earlier.contradictions,
        )  # fmt: skip

    def progress(self, one: Trial, now: Sequence[Trial], count: int, left: Estimate | None, *, replayed: bool) -> None:
        """Show whoever watches a trial that was measured.

        Args:
            now: those of its pair so far.
            count: of all so far.
        """
        observer, scenario = self._task.session.observer, self._task.scenario
        if one.closed_loop:
            again = ", of the run that is continued" if replayed else ""
            observer.said(f"{one.belonging.side} {one.belonging.pair}, {transfer_in_words(one)}{again}")
            return
        mine = [other for other in now if other.belonging.boot == one.belonging.boot]
        lower, upper = known_bounds(mine, scenario.loss_ratio)
        observer.measured(Progress(scenario, one, count, replayed, lower, upper, left))

    def accounted(self, side: SideResult, trials: Sequence[Trial]) -> SideResult:
        """What is known of a build, with what packets cost it, and where and how late they came.

        Args:
            trials: those of both builds.
        """
        if self._task.scenario.window:
            return side
        own = [one for one in trials if one.belonging.side == side.side]
        others = [one for one in trials if one.belonging.side != side.side]
        boots = [with_pair_beside(one, others) for one in by_boot(own).values()]
        cost = (
            replacement_cost([*by_boot(own).values()]) if self.by.replacements
            else cost_result(boots, self._task.scenario.loss_ratio)
        )  # fmt: skip
        return side.but(
            replace(
                side.findings,
                cost=cost,
                memory=memory_result(memory_of(own)),
                latency=latencies(boots),
                losses=total([trial for trial in own if trial.occasion.phase not in SPECIAL]),
                arrivals=arrivals(own),
            ),
        )

    def detailed(
        self, result: ScenarioResult, trials: Sequence[Trial], frames: Mapping[Side, FramesSeen]
    ) -> ScenarioResult:
        """The result with what TCP did in the candidate's boots, or with frames that speak against a build.

        Args:
            frames: what was seen of them, by build; nothing where they are as they must be.
        """
        details = result.details
        if window := self._task.scenario.window:
            mine = [trial for trial in trials if trial.belonging.side == "candidate"]
            return replace(result, details=replace(details, transfers=transfers_result(window, mine)))
        builds = self._task.builds
        seen = tuple(one for side, own in frames.items() for one in own.results(side, builds[side].label))
        return replace(result, details=replace(details, frames=seen)) if frames else result
