"""How two builds behave over all pairs of boots: whether each is stable, and their change one number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pdrgate.measurands import Description, PartialDropRate
from pdrgate.record.phase import OF_CURVE, SPECIAL, Phase
from pdrgate.record.trial import Trial, by_boot
from pdrgate.replication import Contradiction, Standing
from pdrgate.results.model import CheckResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stability import Assessment, assess
from pdrgate.stability import StabilityVerdict as Stability
from pdrgate.stability.checks import ENOUGH_DATA, LIVELOCK, SATURATION
from pdrgate.stability.drift import PACKETS_PER_SECOND
from pdrgate.stability.series_checks import low_values, one_level, one_level_each, one_level_within, steady
from pdrgate.stability.slow_boots import SlowBoots, slow_boots
from pdrgate.stats.intervals import mean, sample_deviation
from pdrgate.stats.order import order_effect, without_order

_ALIKE = 1.5
"""Times what ratios deviate by, the values of both builds do where the machine moves both alike. Where each goes its
own way, ratios deviate by more than either."""

SamplesBySide = Mapping[str, Mapping[Side, tuple[float, ...]]]
"""Measurands have sides, and a side a value of each boot, in the order of the pairs."""


@dataclass(frozen=True, slots=True)
class PairsShape:
    """What may speak against comparing two builds by the means of their boots."""

    pairs: int
    assessments: Mapping[Side, Assessment]
    """Assessments of each build's load-loss curve over all boots; a closed loop has none."""
    levels: tuple[CheckResult, ...]
    """Checks of each build's values from boot to boot, and within boots."""
    ratios: tuple[CheckResult, ...]
    """Checks of the builds' ratios from pair to pair."""
    contradictions: tuple[Contradiction, ...] = ()
    """What the ratios of earlier tries contradict; they do not count therefore."""
    slow: tuple[SlowBoots, ...] = ()
    """A minority of one build's boots that come up slower, by measurand and try."""
    alike: tuple[CheckResult, ...] = ()
    """Failed checks of levels that both builds flip between equally often: the machine's doing, or the method's."""

    def veto(self, standing: Standing, labels: Mapping[str, str], meanwhile: str = "") -> Judgement | None:
        """Why a change is not accepted, though it was measured; None when it is.

        A curve that could not be decided is no reason: that its throughput scatters is in the interval already. And
        where the candidate's loss begins before saturation, or it livelocks, that is what the fall of its PDR or its
        saturation throughput says too.

        Args:
            labels: by side, what a person calls the builds.
            meanwhile: what else the machine did.
        """
        for side, found in self.assessments.items():
            if found.verdict in (Stability.STABLE, Stability.INCONCLUSIVE):
                continue
            slower = side == "candidate" and standing.verdict is Verdict.REGRESSION
            if slower and {check.name for check in found.failed} <= {SATURATION, ENOUGH_DATA, LIVELOCK}:
                continue
            disturbed = f"; meanwhile {meanwhile}" if meanwhile else ""
            return Judgement(Verdict(found.verdict.value), f"the {side} {labels[side]}: {found.reason}{disturbed}")
        # At which of its levels a build comes up is chance, and so is a change between two that do. A ratio that
        # drifts is no one number, however far from the tolerance it is.
        if self.alike:
            flips = f"over {self.pairs} pairs of boots: the {self.alike[0].sentence}"
            return Judgement(Verdict.INCONCLUSIVE, f"{flips}; both builds do so, and so it is not the change's doing")
        failed = [f"the {check.sentence}" for check in self.levels if check.passed is False]
        if standing.verdict is not Verdict.REGRESSION:
            # Where all boots together are slower beyond doubt, that some are is how.
            failed += [one.sentence for one in self.slow]
        failed += [check.sentence for check in self.ratios if check.passed is False]
        if failed:
            return Judgement(Verdict.UNSTABLE, f"over {self.pairs} pairs of boots: {failed[0]}")
        was_slower = [str(one) for one in self.contradictions if one.slower]
        if was_slower and standing.verdict is not None and standing.verdict.passes:
            # Else a retry would be a fresh chance to pass just where a ratio is another one in each try.
            return Judgement(
                Verdict.UNSTABLE,
                f"the ratio is another one in each try: {was_slower[0]}; --afresh forgets what was then",
            )
        return None

    @property
    def remark(self) -> str:
        """A clause that names the slow boots; empty where no build has such a minority."""
        return self.slow[0].sentence if self.slow else ""


@dataclass(frozen=True, slots=True)
class BuildsCurves:
    """Load-loss curves of two builds, with the loss ratio at which their PDR lies."""

    loss_ratio: float
    """Loss ratio of the PDR's goal."""
    scenario: str
    """What a reason calls the curves by."""

    def assessed(
        self, trials: Mapping[Side, Sequence[Trial]], pdrs: Mapping[Side, Sequence[float]]
    ) -> Mapping[Side, Assessment]:
        """Each build's curve over all its boots, judged by PASTRAMI."""
        return {
            side: assess(
                [trial for trial in own if trial.occasion.phase in OF_CURVE], plr_threshold=self.loss_ratio,
                over_time=False, spare_dips=True, pdr=mean(pdrs[side]), source=f"{self.scenario} {side}",
            )
            for side, own in trials.items()
        }  # fmt: skip


def shape_of(
    measurands: Sequence[Description],
    samples: SamplesBySide,
    *,
    trials: Mapping[Side, Sequence[Trial]] | None = None,
    curves: BuildsCurves | None = None,
    earlier: Sequence[SamplesBySide] = (),
    contradictions: Sequence[Contradiction] = (),
) -> PairsShape:
    """The shape of a comparison, by the measurands that its boots were measured for.

    Args:
        measurands: those that are compared. The essential ones have a shape; all boots have the first.
        samples: of the first and of the essential ones, at least.
        trials: of all whole pairs, by side; None where transfers were measured.
        curves: what is asked of the trials' load-loss curves; None where no PDR was measured. One needs the PDR's
            samples.
        earlier: the samples of earlier tries. Ratios are one series over all tries. The levels of boots are judged in
            each try by itself, for the machine may have another speed in each.
        contradictions: of earlier tries that do not count.
    """
    tries = (*earlier, samples)
    trials = trials or {}
    levels, ratios, slow, alike = _over_boots(measurands, tries)
    within = [
        one_level_within(f"{side}'s saturation throughput within its boots", _at_most(own))
        for side, own in trials.items()
    ]
    if len(within) > 1 and all(check.passed is False for check in within):
        alike += within
    else:
        levels += within
    assessments = curves.assessed(trials, samples[PartialDropRate.name]) if curves is not None else {}
    pairs = sum(len(one[measurands[0].name]["baseline"]) for one in tries)
    return PairsShape(
        pairs, assessments, tuple(levels), tuple(ratios), tuple(contradictions), tuple(slow), tuple(alike)
    )


def _over_boots(
    measurands: Sequence[Description], tries: Sequence[SamplesBySide]
) -> tuple[list[CheckResult], list[CheckResult], list[SlowBoots], list[CheckResult]]:
    """The checks on levels and on ratios of what is timed, whose slow boots there are, and levels of both builds alike.

    What the order of a pair's boots does is in neither: it is no flip of a build, and no wandering of a ratio.
    """
    ratios: list[CheckResult] = []
    levels: list[CheckResult] = []
    slow: list[SlowBoots] = []
    alike: list[CheckResult] = []
    for name, unit in ((one.name, one.unit) for one in measurands if one.essential):
        without_order = [_without_order(one[name]) for one in tries]
        both = [_ratios(one) for one in without_order]
        ratios += steady(f"candidate's {name} relative to the baseline's", tuple(chain.from_iterable(both)))
        for one, own in zip(without_order, both, strict=True):
            checks, few = _levels(name, one, own, unit)
            of_both = bool(checks) and checks[-1].passed is False and _flip_alike(one)
            alike += checks[-1:] if of_both else []
            levels += [] if of_both else checks
            slow += [few] if few is not None and not few.testbeds else []
    return levels, ratios, slow, alike


def _flip_alike(own: Mapping[Side, tuple[float, ...]]) -> bool:
    """Whether by chance the boots of one build are at the lower level no more often than those of the other."""
    low = low_values(own["baseline"], own["candidate"])
    return SlowBoots(*low, boots=len(own["candidate"]), depth=0.0).testbeds


def _ratios(own: Mapping[Side, Sequence[float]]) -> tuple[float, ...]:
    return tuple(new / old for new, old in zip(own["candidate"], own["baseline"], strict=True))


def _without_order(own: Mapping[Side, tuple[float, ...]]) -> Mapping[Side, tuple[float, ...]]:
    """The values of both builds as they would be without what their order did, where it did anything to the ratios."""
    if not order_effect([math.log(ratio) for ratio in _ratios(own)]):
        return own
    return {side: tuple(map(math.exp, without_order(list(map(math.log, values))))) for side, values in own.items()}


def _levels(
    name: str, own: Mapping[Side, tuple[float, ...]], both: tuple[float, ...], unit: str = PACKETS_PER_SECOND
) -> tuple[list[CheckResult], SlowBoots | None]:
    """Whether the boots of each build have one level; none where the machine moves both builds alike.

    A minority of slow boots is returned in place of the checks. Slow boots of both builds alike are the testbed's, and
    what they do to the change is in the interval.
    """
    if all(_relative_deviation(values) > _ALIKE * _relative_deviation(both) for values in own.values()):
        return [], None
    few = slow_boots(own["baseline"], own["candidate"])
    if few is not None:
        return [], few
    each = [one_level(f"{side}'s {name} from boot to boot", values, unit=unit) for side, values in own.items()]
    both_builds = f"builds' {name} from boot to boot"
    return [*each, one_level_each(both_builds, own["baseline"], own["candidate"], unit=unit)], None


def _relative_deviation(values: Sequence[float]) -> float:
    return sample_deviation(values) / mean(values)


def _at_most(trials: Sequence[Trial]) -> list[list[float]]:
    """The forwarding rates of each boot at the highest load that all boots were offered."""
    sound = [trial for trial in trials if trial.sound and trial.occasion.phase not in SPECIAL]
    offered = {trial.intended_load for trial in sound if trial.occasion.phase == Phase.REPEAT} or _of_saturation(sound)
    highest = max(offered, default=0.0)
    boots = by_boot([trial for trial in sound if trial.intended_load == highest])
    return [[trial.forwarding_rate for trial in own] for own in boots.values()]


def _of_saturation(trials: Sequence[Trial]) -> set[float]:
    """The loads that all boots were offered to saturate them; of a curve there are higher ones that only some were."""
    boots = by_boot([trial for trial in trials if trial.occasion.phase == Phase.SATURATION]).values()
    each = [{trial.intended_load for trial in own} for own in boots]
    return set.intersection(*each) if each else set()
