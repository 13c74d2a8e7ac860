"""How a scenario decides by what two builds are compared, and on which boots."""

from __future__ import annotations

from pdrgate.gate.comparisons.cold_boots.curve_boots import CurveBoots
from pdrgate.gate.comparisons.cold_boots.transfer_boots import TransferBoots
from pdrgate.gate.comparisons.living_boots.counted_measurands import compared_by_counts
from pdrgate.gate.comparisons.living_boots.living_boots import LivingBoots
from pdrgate.gate.comparisons.living_boots.living_counts import CountedBytes, CountedPackets, CountedReplacements
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.living_boots.several_cpu_suts import SeveralCpuSuts
from pdrgate.gate.comparisons.pairs.compared_trials import ComparedBy
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.measurands import OF_TRANSFERS, OF_TRIALS, compared_of, told_of
from pdrgate.record.fate import INSIDE

_BY_CURVES = ComparedBy(compared_of(OF_TRIALS), told_of(OF_TRIALS), curves=True)
_BY_TRANSFERS = ComparedBy(compared_of(OF_TRANSFERS), told_of(OF_TRANSFERS))


def comparison_of(task: ComparisonTask) -> PairsComparison:
    """The comparison of a scenario on boots of its own: by load-loss curves, or by transfers of a closed loop."""
    if task.scenario.streams is not None:
        return PairsComparison(task, _BY_TRANSFERS, TransferBoots(task))
    # Programs of the SUT's own take turns with packets that end there.
    inside = task.scenario.counts in INSIDE
    on_cpus = None if inside else SeveralCpuSuts(task.session, task.builds, alone=True)
    return PairsComparison(task, _BY_CURVES, CurveBoots(task), on_cpus)


def living_comparison_of(task: ComparisonTask, suts: LivingSuts) -> PairsComparison:
    """The comparison of a scenario on boots that stay up: by what a packet costs, or a byte."""
    closed = task.scenario.streams is not None
    kind = CountedReplacements if task.scenario.replaces else CountedPackets
    count = CountedBytes(task) if closed else kind(task, suts)
    on_cpus = suts.several_cpus if task.plan.several_cpus and not closed else None
    by = compared_by_counts(task.scenario)
    return PairsComparison(task, by, LivingBoots(task, suts, count), on_cpus, stay_up=True)
