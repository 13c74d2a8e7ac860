"""Which comparison of two builds a scenario takes."""

from __future__ import annotations

from collections.abc import Mapping

from pdrgate.gate.comparisons.build_comparison import BuildComparison
from pdrgate.gate.comparisons.pairs.compared_builds import Build
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.transfer_comparison import TransferComparison
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.results.model import Side

AnyComparison = BuildComparison | TransferComparison


def comparison_of(
    session: Session,
    scenario: Scenario,
    builds: Mapping[Side, Build],
    plan: Plan,
    *,
    test: str = "",
    longname: str = "",
) -> AnyComparison:
    """By trials where the scenario is an open loop, by transfers where it is a closed one."""
    kind = BuildComparison if scenario.streams is None else TransferComparison
    return kind(session, scenario, builds, plan, test=test, longname=longname)
