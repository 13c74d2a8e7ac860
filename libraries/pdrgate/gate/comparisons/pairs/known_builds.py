"""What boots of two builds have shown so far: the half of a `Replication` that all boots have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pdrgate.gate.comparisons.pairs.compared_builds import Build
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.cost_counting import cost_tolerance_of
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.gate.verdicts.disturbance import remedy
from pdrgate.measurands.counted.program_run import PROGRAM_ANSWER
from pdrgate.replication.replicates import SutFacts
from pdrgate.results.model import Side, SideResult
from pdrgate.results.verdict import Judgement


class KnownBuilds:
    """What is known of both builds and of the SUT that they run on.

    Args:
        known: gets the fingerprint of the first boot, before anything is measured; what it raises ends the comparison.
    """

    def __init__(self, builds: Mapping[Side, Build], known: Callable[[Mapping[str, str]], None]) -> None:
        self.loads: tuple[float, ...] = ()
        """Loads of the grid, packets/s; empty until they are known, and in a closed loop."""
        self.latency_loads: tuple[float, ...] = ()
        """Loads at which latency is measured, packets/s; empty until they are known."""
        self.sides: dict[Side, SideResult] = {
            side: SideResult(side=side, build=build.label, digest=build.identity) for side, build in builds.items()
        }
        """What is known of each build: its environment, its search."""
        self.failure: Judgement | None = None
        """Why there is nothing to compare."""
        self.unlike: Judgement | None = None
        """What packets say of the builds before any speed is compared: a `failure` then, which no load explains."""
        self.unable = ""
        """Why neither build can be set up for the scenario, in a sentence; empty where one can, or it failed."""
        self.frames: Mapping[Side, FramesSeen] = {}
        """What was seen of each build's, over all its boots; nothing of a closed loop."""
        self.facts = SutFacts()
        """What the last boot showed of the SUT that both builds run on."""
        self._known = known

    @property
    def baseline_came_up(self) -> bool:
        """Whether a boot of the baseline has come up."""
        return bool(self.sides["baseline"].findings.fingerprint)

    def go_on_from(
        self, loads: tuple[float, ...], latency_loads: tuple[float, ...], sides: Mapping[Side, SideResult],
        facts: SutFacts,
    ) -> None:  # fmt: skip
        """Take over what earlier boots have found out."""
        self.loads, self.latency_loads, self.facts = loads, latency_loads, facts
        self.sides.update(sides)

    def came_up(self, side: Side, sut: PreparedSut) -> None:
        """Record the facts, environment and fingerprint of a boot once it is prepared.

        Raises what ends the comparison.
        """
        testbed = sut.testbed
        self.facts = SutFacts(
            carried=sut.carried, uncounted=sut.uncounted, follows_calls=sut.follows_calls, sees_memory=sut.sees_memory,
            cost_tolerance=cost_tolerance_of(testbed, sut.session.options.cost_tolerance),
            sut_cpus=testbed.sut_cpus, steady=testbed.steady, remedy=remedy(testbed),
        )  # fmt: skip
        if not any(one.findings.fingerprint for one in self.sides.values()):
            self._known(sut.fingerprint)
        known = self.sides[side]
        # A program answers alike on each boot, so the first one asks it.
        told = sut.answer or known.findings.environment.get(PROGRAM_ANSWER, "")
        answer = {PROGRAM_ANSWER: told} if told else {}
        self.sides[side] = known.but(
            replace(known.findings, environment=sut.environment.to_dict() | answer, fingerprint=sut.fingerprint)
        )
