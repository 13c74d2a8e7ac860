"""Boots of two builds, of whichever kind: what they have shown so far, and how a pair of them is measured.

Cold boots are one kind. Guests that stay up while several paths are measured on them are another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace

from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.cost_counting import cost_tolerance_of
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.gate.verdicts.disturbance import remedy
from pdrgate.measurands.counted.program_run import PROGRAM_ANSWER
from pdrgate.record.trial import Trial
from pdrgate.replication.replicates import Replicates, SutFacts
from pdrgate.results.model import Side, SideResult
from pdrgate.results.verdict import Judgement


class BuildsBoots(ABC):
    """Boots of both builds of a comparison, which are measured in pairs, and what is known of the SUT that they ran on.

    The loop that asks for pairs (`pdrgate.gate.comparisons.pairs.pairs_loop`) knows no boots: what a replicate is, a
    subclass decides.
    """

    def __init__(self, task: ComparisonTask) -> None:
        self.task = task
        self.session, self.scenario, self.builds = task.session, task.scenario, task.builds
        self.on_trial: Callable[[Trial, bool], None] = lambda trial, replayed: None
        """Gets each trial, and whether it is one of the run that is resumed."""
        self.on_first_boot: Callable[[Mapping[str, str]], None] = lambda fingerprint: None
        """Gets the fingerprint of the first boot, before anything is measured; what it raises ends the comparison."""
        self.loads: tuple[float, ...] = ()
        """Loads of the grid, packets/s; empty until they are known, and in a closed loop."""
        self.latency_loads: tuple[float, ...] = ()
        """Loads at which latency is measured, packets/s; empty until they are known."""
        self.sides: dict[Side, SideResult] = {
            side: SideResult(side=side, build=build.label, digest=build.identity) for side, build in task.builds.items()
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

    @abstractmethod
    def next(self, number: int, *, wanted: Callable[[int], bool]) -> Replicates:
        """Measure one replicate of each build; nothing comes of it where `failure` is set then.

        Args:
            number: of the pair that these two replicates are, from 1.
            wanted: whether a later pair is measured, whatever this one shows, so that it may be begun meanwhile.
        """

    @abstractmethod
    def close(self) -> None:
        """End what was begun for later replicates."""

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
            self.on_first_boot(sut.fingerprint)
        known = self.sides[side]
        # A program answers alike on each boot, so the first one asks it.
        told = sut.answer or known.findings.environment.get(PROGRAM_ANSWER, "")
        answer = {PROGRAM_ANSWER: told} if told else {}
        self.sides[side] = known.but(
            replace(known.findings, environment=sut.environment.to_dict() | answer, fingerprint=sut.fingerprint)
        )
