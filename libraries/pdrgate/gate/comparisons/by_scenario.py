"""How a scenario decides by what two builds are compared, and on which boots."""

from __future__ import annotations

from collections.abc import Mapping

from pdrgate.gate.comparisons.cold_boots.curve_boots import CurveBoots
from pdrgate.gate.comparisons.cold_boots.transfer_boots import TransferBoots
from pdrgate.gate.comparisons.living_boots.counted_bytes import CountedBytes
from pdrgate.gate.comparisons.living_boots.counted_measurands import compared_by_counts
from pdrgate.gate.comparisons.living_boots.counted_packets import CountedPackets, CountedReplacements
from pdrgate.gate.comparisons.living_boots.living_boots import LivingBoots
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.living_boots.several_cpu_suts import BootedOnce
from pdrgate.gate.comparisons.pairs.compared_builds import Build
from pdrgate.gate.comparisons.pairs.compared_trials import ComparedBoots, ComparedBy
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.measurands import OF_TRANSFERS, OF_TRIALS, compared_of, told_of
from pdrgate.record.fate import INSIDE
from pdrgate.results.model import Side

_BY_CURVES = ComparedBy(compared_of(OF_TRIALS), told_of(OF_TRIALS), curves=True)
_BY_TRANSFERS = ComparedBy(compared_of(OF_TRANSFERS), told_of(OF_TRANSFERS))


def comparison_of(
    session: Session,
    scenario: Scenario,
    builds: Mapping[Side, Build],
    plan: Plan,
    *,
    test: str = "",
    longname: str = "",
) -> PairsComparison:
    """The comparison of a scenario on boots of its own: by load-loss curves, or by transfers of a closed loop.

    Args:
        test: the Robot test that asks.
        longname: name of the test that no other test of the run has; empty where ``test`` is unique.
    """
    task = ComparisonTask(session, scenario, builds, plan, test, longname or test)
    kind = CurveBoots if scenario.streams is None else TransferBoots
    # Programs of the SUT's own take turns with packets that end there.
    on_cpus = BootedOnce() if scenario.streams is None and scenario.counts not in INSIDE else None
    parts = ComparedBoots(
        _BY_CURVES if scenario.streams is None else _BY_TRANSFERS,
        lambda on_trial, known: kind(
            session, scenario, builds, together=plan.together, on_trial=on_trial, known=known, test=task.longname
        ),
        on_cpus,
    )
    return PairsComparison(task, parts)


def living_comparison_of(
    session: Session, scenario: Scenario, suts: LivingSuts, plan: Plan, *, test: str = "", longname: str = ""
) -> PairsComparison:
    """The comparison of a scenario on boots that stay up: by what a packet costs, or a byte."""
    task = ComparisonTask(session, scenario, suts.builds, plan, test, longname or test)
    closed = scenario.streams is not None
    kind = CountedBytes if closed else CountedReplacements if scenario.replaces else CountedPackets
    parts = ComparedBoots(
        compared_by_counts(scenario),
        lambda on_trial, known: LivingBoots(
            session,
            scenario,
            suts,
            kind(session, scenario, suts),
            on_trial=on_trial,
            known=known,
            test=task.longname,
            keeps_code=not plan.several_cpus,
        ),
        suts.several_cpus if plan.several_cpus and not closed else None,
        stay_up=True,
    )
    return PairsComparison(task, parts)
