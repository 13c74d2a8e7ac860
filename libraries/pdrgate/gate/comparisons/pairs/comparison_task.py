"""What a comparison of two builds is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.slowdowns import Planted
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.results.model import Side
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import Testbed

SIDES: tuple[Side, Side] = ("baseline", "candidate")


@dataclass(frozen=True, slots=True)
class Build:
    """A build that is compared: what a person calls it, and how a testbed on a fresh boot of it is had."""

    side: Side
    label: str
    start: Callable[[Journal], Testbed]
    program: BpfBuild | Path | None = None
    """The eBPF object that is the build, on one kernel for both sides."""
    planted: Planted | None = None
    """What slows its boots down, see `pdrgate.gate.comparisons.spike_in`."""
    counted: Callable[[Journal], Testbed] | None = None
    """Starts a testbed for scenarios that are counted and not timed; None: `start` does that, too."""
    identity: str = ""
    """Digest of the build's content; empty where it is unknown: then no try of it is known again."""


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
        baseline, candidate = self.identities.values()
        return bool(baseline) and baseline == candidate
