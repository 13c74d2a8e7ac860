"""Two builds of a kernel or an eBPF object, compared by the load-loss curves of several boots of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from pdrgate.gate.comparisons.boots import Build
from pdrgate.gate.comparisons.curve_boots import CurveBoots
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.comparisons.pairs_shape import PairsShape, shape_of
from pdrgate.gate.run.progress import Progress
from pdrgate.gate.verdicts.arrivals import arrivals
from pdrgate.gate.verdicts.build_latency import latencies
from pdrgate.gate.verdicts.packet_cost import counted
from pdrgate.measurands import OF_TRIALS, Description, compared_of, told_of
from pdrgate.observers.accounting import total
from pdrgate.phase import Phase
from pdrgate.results.losses import LossResult
from pdrgate.results.model import ArrivalsResult, CostResult, ForwardedFrameResult, LatencyResult, Side
from pdrgate.search.bounds import known_bounds
from pdrgate.trial import Trial, by_boot


class BuildComparison(PairsComparison[Trial]):
    """One scenario over boots of two builds, by trials."""

    compared: ClassVar[tuple[Description, ...]] = compared_of(OF_TRIALS)
    also_told: ClassVar[tuple[Description, ...]] = told_of(OF_TRIALS)
    _boots: CurveBoots

    @property
    def trials(self) -> tuple[Trial, ...]:
        return tuple(self._trials)

    def beside(self, builds: Mapping[Side, Build]) -> BuildComparison:
        """Another one of the same scenario, by the same plan and at the same loads, once these are known.

        Args:
            builds: both boot what is this one's baseline.
        """
        other = BuildComparison(self.session, self.scenario, builds, self.plan, test=self.test, longname=self.longname)
        known = self._boots.sides["baseline"]
        other._boots.loads, other._boots.latency_loads = self._boots.loads, self._boots.latency_loads
        other._boots.sides = {side: replace(known, side=side, build=build.label) for side, build in builds.items()}
        return other

    def _new_boots(self) -> CurveBoots:
        return CurveBoots(
            self.session, self.scenario, self.builds, together=self.plan.together, told=self._told,
            known=self._begin_on, test=self.longname,
        )  # fmt: skip

    def _shape_of(self, samples: Mapping[str, Mapping[Side, tuple[float, ...]]]) -> PairsShape:
        return shape_of(
            {side: self._of(side) for side in self.builds}, samples,
            earlier=self._earlier.samples, contradictions=self._earlier.contradictions,
            reading=self.session.options.reading, loss_ratio=self._boots.goal.loss_ratio,
            scenario=self.scenario.name,
        )  # fmt: skip

    def _progress(self, one: Trial, replayed: bool) -> None:
        mine = [other for other in self._now if other.boot == one.boot]
        lower, upper = known_bounds(mine, self.scenario.loss_ratio)
        progress = Progress(self.scenario, one, self._count, replayed, lower, upper, self.left)
        self.session.observer.measured(progress)

    def _known(self) -> Sequence[Trial]:
        return self.session.record.earlier.all

    def _cost(self, side: Side) -> CostResult | None:
        return counted(list(by_boot(self._of(side)).values()), self._boots.goal.loss_ratio)

    def _latency(self, side: Side) -> tuple[LatencyResult, ...]:
        return latencies(by_boot(self._of(side)).values())

    def _losses(self, side: Side) -> LossResult | None:
        return total([trial for trial in self._of(side) if trial.phase != Phase.PATH])

    def _arrivals(self, side: Side) -> tuple[ArrivalsResult, ...]:
        return arrivals(self._of(side))

    def _frames(self) -> tuple[ForwardedFrameResult, ...]:
        if self._boots.unlike is None:
            return ()
        seen = self._boots.frames
        return tuple(one for side, build in self.builds.items() for one in seen[side].results(side, build.label))

    def _curve_trials(self, boot: str) -> Sequence[Trial]:
        return by_boot(self._trials).get(boot, ())

    def _of(self, side: Side) -> list[Trial]:
        return [trial for trial in self._trials if trial.side == side]
