"""The scenario decides which comparison of two builds it takes."""

from __future__ import annotations

from collections.abc import Mapping

from pdrgate.gate.comparisons.build_comparison import BuildComparison
from pdrgate.gate.comparisons.counted_comparison import CountedComparison, CountedTransferComparison
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.compared_builds import Build
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.transfer_comparison import TransferComparison
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.results.model import Side

AnyLivingComparison = CountedComparison | CountedTransferComparison
AnyComparison = BuildComparison | TransferComparison | AnyLivingComparison


def comparison_of(
    session: Session,
    scenario: Scenario,
    builds: Mapping[Side, Build],
    plan: Plan,
    *,
    test: str = "",
    longname: str = "",
) -> AnyComparison:
    """The comparison of a scenario: an open loop is compared by trials, a closed one by transfers."""
    kind = BuildComparison if scenario.streams is None else TransferComparison
    return kind(session, scenario, builds, plan, test=test, longname=longname)


def living_comparison_of(
    session: Session, scenario: Scenario, suts: LivingSuts, plan: Plan, *, test: str = "", longname: str = ""
) -> AnyLivingComparison:
    """The comparison of a scenario on boots that stay up."""
    kind = CountedComparison if scenario.streams is None else CountedTransferComparison
    return kind(session, scenario, suts, plan, test=test, longname=longname)
