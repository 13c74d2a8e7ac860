"""What a comparison of two builds is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pdrgate.gate.comparisons.pairs.compared_builds import SIDES, Build
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.results.model import Side


@dataclass(frozen=True, slots=True)
class ComparisonTask:
    """What a comparison is asked: a scenario, two builds, and how much it may cost."""

    session: Session
    scenario: Scenario
    builds: Mapping[Side, Build]
    plan: Plan
    test: str = ""
    """The Robot test that asks."""
    longname: str = ""
    """Name of the test that no other test of the run has; empty where no test asks."""

    @property
    def labels(self) -> dict[Side, str]:
        """What a person calls the builds."""
        return {side: self.builds[side].label for side in SIDES}

    @property
    def identities(self) -> dict[Side, str]:
        """The digests of the builds' content; empty where they are unknown."""
        return {side: self.builds[side].identity for side in SIDES}

    @property
    def one_content(self) -> bool:
        """Whether both builds are known to have the same content."""
        baseline, candidate = (self.builds[side].identity for side in SIDES)
        return bool(baseline) and baseline == candidate
