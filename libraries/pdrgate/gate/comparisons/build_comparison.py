"""Two builds of a kernel or an eBPF object, compared by the load-loss curves of several boots of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pdrgate.gate.comparisons.cold_boots.curve_boots import CurveBoots
from pdrgate.gate.comparisons.cold_boots.several_cpus import on_several_cpus
from pdrgate.gate.comparisons.pairs.compared_builds import Build
from pdrgate.gate.comparisons.pairs.compared_stretches import ComparedStretches
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_shape import BuildsCurves, PairsShape, shape_of
from pdrgate.gate.comparisons.pairs.several_cpus_seen import SeveralCpusSeen
from pdrgate.gate.comparisons.pairs.tries_ledger import Earlier
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.progress import Estimate, Progress
from pdrgate.gate.sut.open_loop_sut import goals_of
from pdrgate.gate.verdicts.arrivals import arrivals
from pdrgate.gate.verdicts.build_latency import latencies
from pdrgate.gate.verdicts.packet_cost import cost_result
from pdrgate.measurands import OF_TRIALS, Description, compared_of, told_of
from pdrgate.measurands.counted.cost import with_pair_beside
from pdrgate.measurands.memory.memory_result import memory_result
from pdrgate.measurands.memory.memory_trials import memory_of
from pdrgate.observers.accounting import total
from pdrgate.record.phase import SPECIAL
from pdrgate.record.stretch import by_boot
from pdrgate.record.trial import Trial
from pdrgate.results.model import ScenarioResult, Side, SideResult
from pdrgate.search.bounds import known_bounds


class ComparedTrials(ComparedStretches[Trial]):
    """Trials of an open loop."""

    compared: ClassVar[tuple[Description, ...]] = compared_of(OF_TRIALS)
    also_told: ClassVar[tuple[Description, ...]] = told_of(OF_TRIALS)
    _boots: CurveBoots

    def replication(
        self, told: Callable[[Trial, bool], None], known: Callable[[Mapping[str, str]], None]
    ) -> CurveBoots:
        task = self.task
        self._boots = CurveBoots(
            task.session, task.scenario, task.builds, together=task.plan.together, told=told, known=known,
            test=task.longname,
        )  # fmt: skip
        return self._boots

    def known(self) -> Sequence[Trial]:
        return self.task.session.record.earlier.all

    def shape(
        self, samples: Mapping[str, Mapping[Any, tuple[float, ...]]], stretches: Sequence[Trial], earlier: Earlier
    ) -> PairsShape:
        return shape_of(
            self.compared, samples,
            trials={side: [one for one in stretches if one.belonging.side == side] for side in self.task.builds},
            curves=BuildsCurves(self._loss_ratio, self.task.scenario.name),
            earlier=earlier.samples, contradictions=earlier.contradictions,
        )  # fmt: skip

    def progress(
        self, one: Trial, now: Sequence[Trial], count: int, left: Estimate | None, *, replayed: bool
    ) -> None:  # fmt: skip
        mine = [other for other in now if other.belonging.boot == one.belonging.boot]
        lower, upper = known_bounds(mine, self.task.scenario.loss_ratio)
        self.task.session.observer.measured(Progress(self.task.scenario, one, count, replayed, lower, upper, left))

    def accounted(self, side: SideResult, stretches: Sequence[Trial]) -> SideResult:
        own = [one for one in stretches if one.belonging.side == side.side]
        others = [one for one in stretches if one.belonging.side != side.side]
        boots = [with_pair_beside(one, others) for one in by_boot(own).values()]
        return side.but(
            replace(
                side.findings,
                cost=cost_result(boots, self._loss_ratio),
                memory=memory_result(memory_of(own)),
                latency=latencies(boots),
                losses=total([trial for trial in own if trial.occasion.phase not in SPECIAL]),
                arrivals=arrivals(own),
            ),
        )

    def detailed(self, result: ScenarioResult, stretches: Sequence[Trial]) -> ScenarioResult:
        """The result with the frames that speak against one build or both."""
        if self._boots.unlike is None:
            return result
        seen, builds = self._boots.frames, self.task.builds.items()
        frames = tuple(one for side, build in builds for one in seen[side].results(side, build.label))
        return replace(result, details=replace(result.details, frames=frames))

    def trials(self, stretches: Sequence[Trial]) -> tuple[Trial, ...]:
        return tuple(stretches)

    @property
    def _loss_ratio(self) -> float:
        """The PDR's."""
        return goals_of(self.task.session.profile, self.task.scenario)[-1].loss_ratio


class BuildComparison(PairsComparison[Trial]):
    """A comparison of two builds by trials, of one scenario over boots of both."""

    def _kind_of(self, task: ComparisonTask) -> ComparedTrials:
        return ComparedTrials(task)

    def _on_several_cpus(self) -> SeveralCpusSeen:
        """A planted slowdown is none of what several CPUs do to each other."""
        wanted = self.loop.replication.facts.sees_memory and self.session.profile.several_cpus and not self._is_planted
        return on_several_cpus(self.task) if wanted else SeveralCpusSeen()

    def beside(self, builds: Mapping[Side, Build]) -> BuildComparison:
        """Another one of the same scenario, by the same plan and at the same loads, once these are known.

        Args:
            builds: both boot what is this one's baseline.
        """
        task, known = self.task, self.loop.replication
        other = BuildComparison(
            task.session, task.scenario, builds, task.plan, test=task.test, longname=task.longname
        )  # fmt: skip
        baseline = known.sides["baseline"]
        sides = {side: replace(baseline, side=side, build=build.label) for side, build in builds.items()}
        other.loop.replication.go_on_from(known.loads, known.latency_loads, sides, known.facts)
        return other
