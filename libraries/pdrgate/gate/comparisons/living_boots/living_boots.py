"""A scenario on SUTs that stay up: set up, counted at saturation and at a light load, and taken away again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pdrgate.builds.bpf_build import BpfRefusedError
from pdrgate.errors import PdrGateError, TestbedError
from pdrgate.gate.comparisons.cold_boots.one_boot import BootError
from pdrgate.gate.comparisons.living_boots.living_suts import AT_ONCE, LivingSuts, OfPair
from pdrgate.gate.comparisons.living_boots.overload_step import (
    CARRIED,
    DELIVERED,
    LIGHT_FOR,
    LIGHT_LOAD,
    OverloadStep,
)
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES
from pdrgate.gate.comparisons.pairs.failed_boots import refused_alone
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.carried_frames import FramesSeen, judged_with
from pdrgate.gate.sut.cost_counting import cost_tolerance_of
from pdrgate.gate.sut.open_loop_sut import OpenLoopSut, goals_of
from pdrgate.gate.sut.prepared_sut import Identity
from pdrgate.gate.verdicts.disturbance import remedy
from pdrgate.guests.guest import GuestError
from pdrgate.measurands import Ask, Cost, Measurand
from pdrgate.measurands.calls import Calls
from pdrgate.measurands.load_cost import LOAD_COSTS
from pdrgate.phase import Phase
from pdrgate.replication.replicates import Replicates, SutFacts
from pdrgate.results.model import BootResult, Side, SideResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.testbeds import Testbed
from pdrgate.trial import Trial
from pdrgate.units import Rate


class LivingBoots:
    """Counts a scenario on pairs of living SUTs, some of them at once; a `Replication`.

    Args:
        told: gets each trial, and whether it is one of the run that is resumed.
        known: gets the fingerprint of the first boot, before anything is measured; what it raises ends the comparison.
        test: long name of the test that asks.
    """

    def __init__(
        self,
        session: Session,
        scenario: Scenario,
        suts: LivingSuts,
        *,
        told: Callable[[Trial, bool], None],
        known: Callable[[Mapping[str, str]], None],
        test: str = "",
    ) -> None:
        self.loads: tuple[float, ...] = ()
        self.latency_loads: tuple[float, ...] = ()
        self.sides: dict[Side, SideResult] = {
            side: SideResult(side=side, build=build.label, digest=build.identity) for side, build in suts.builds.items()
        }
        self.failure: Judgement | None = None
        self.unable = ""
        """Why neither build can be set up for the scenario, in a sentence; empty where one can."""
        self.unlike: Judgement | None = None
        self.facts = SutFacts()
        self.frames: dict[Side, FramesSeen] = {side: FramesSeen() for side in suts.builds}
        self._session = session
        self._scenario = scenario
        self._suts = suts
        self._told = told
        self._known = known
        self._test = test
        self._telling = threading.Lock()
        """Held by who tells of a trial: all SUTs are measured at once."""

    # --- A Replication ---

    def next(self, number: int, *, wanted: Callable[[int], bool]) -> Replicates[Trial]:
        suts: dict[OfPair, OpenLoopSut] = {}
        try:
            testbeds = self._suts.pairs(range(number, number + AT_ONCE))
            suts |= {one: self._sut(one, testbed) for one, testbed in testbeds.items()}
            self._set_up(suts)
            for one, sut in suts.items() if self.failure is None else ():
                self._prepare(one, sut)
            if self.failure is None:
                self._at_once(suts, self._count)
            self._look_at_packets(suts.values())
            results = [self._result(*one, sut) for one, sut in suts.items()] if self.failure is None else []
            trials = [trial for sut in suts.values() for trial in sut.trials] if results else []
        except BootError as failed:
            pair = next((pair for (side, pair), sut in suts.items() if sut.boot_id == failed.boot_id), number)
            self._session.observer.said(f"living boot {pair} of the {failed.side} failed: {failed.error}")
            self._suts.lost(failed.side, pair)
            return Replicates((failed.result(pair),))
        finally:
            list(self._suts.workers.map(self._release, suts.values()))
        return Replicates(results, trials)

    def close(self) -> None:
        """Nothing is begun beforehand."""

    def go_on_from(
        self, loads: tuple[float, ...], latency_loads: tuple[float, ...], sides: Mapping[Side, SideResult],
        facts: SutFacts,
    ) -> None:  # fmt: skip
        self.loads, self.latency_loads, self.facts = loads, latency_loads, facts
        self.sides.update(sides)

    # --- Some pairs ---

    def _sut(self, one: OfPair, testbed: Testbed) -> OpenLoopSut:
        (side, number), build = one, self._suts.builds[one[0]]
        identity = Identity(side, build.label, number, "", build.program, build.planted, self._test)
        return OpenLoopSut(
            self._session, self._scenario, testbed, identity, told=self._taken,
            introduce=one == (SIDES[0], 1),
        )  # fmt: skip

    def _taken(self, trial: Trial, replayed: bool) -> None:
        with self._telling:
            self._told(trial, replayed)

    def _set_up(self, suts: Mapping[OfPair, OpenLoopSut]) -> None:
        """Set all of them up. Where no boot of either build can be, no build is to blame. Raises BootError."""
        failed = self._failed(suts, OpenLoopSut.set_up)
        refused = [one.error for one in failed if isinstance(one.error, BpfRefusedError)]
        if len(failed) == len(suts) and not any(isinstance(one.error, GuestError) for one in failed):
            self.unable = f"neither build can: {failed[0].error}"
            self.failure = Judgement(Verdict.ERROR, self.unable)
        elif refused and all(one.side == "candidate" for one in failed):
            self.failure = refused_alone(str(refused[0]))
        elif failed:
            raise failed[0]

    def _at_once(self, suts: Mapping[OfPair, OpenLoopSut], done: Callable[[OpenLoopSut], object]) -> None:
        """Do it with all of them; what the first one fails with is raised when all have ended. Raises BootError."""
        if failed := self._failed(suts, done):
            raise failed[0]

    def _failed(self, suts: Mapping[OfPair, OpenLoopSut], done: Callable[[OpenLoopSut], object]) -> list[BootError]:
        failed: list[BootError] = []
        for (side, _), sut, coming in [(*both, self._suts.workers.submit(done, both[1])) for both in suts.items()]:
            try:
                coming.result()
            except TestbedError as error:
                failed.append(BootError(side, error, sut.boot_id, sut.environment.kernel_release or "unknown"))
        return failed

    def _prepare(self, one: OfPair, sut: OpenLoopSut) -> None:
        side, testbed = one[0], sut.testbed
        try:
            sut.prepare()
        except TestbedError as error:
            raise BootError(side, error, sut.boot_id) from error
        self.facts = SutFacts(
            carried=sut.carried, uncounted=sut.uncounted,
            cost_tolerance=cost_tolerance_of(testbed, self._session.options.cost_tolerance),
            sut_cpus=testbed.sut_cpus, steady=testbed.steady, remedy=remedy(testbed),
        )  # fmt: skip
        if sut.uncounted:
            self.failure = Judgement(
                Verdict.ERROR,
                f"living boots are judged by what a packet costs, and {sut.uncounted}; compare cold boots",
            )
        if not any(known.findings.fingerprint for known in self.sides.values()):
            self._known(sut.fingerprint)
        told = self.sides[side]
        self.sides[side] = told.but(
            replace(told.findings, environment=sut.environment.to_dict(), fingerprint=sut.fingerprint)
        )

    def _count(self, sut: OpenLoopSut) -> None:
        """All trials of a boot; what its kernel does by itself, the first scenario tells."""
        known = self._suts.resting.get(sut.boot_id)
        if known is not None:
            sut.take(known)
        while (ask := next(self._asks(sut.trials), None)) is not None:
            trial = sut.measure(ask.load, ask.duration, ask.phase)
            if trial.occasion.phase == Phase.IDLE:
                self._suts.resting[sut.boot_id] = trial

    def _asks(self, trials: Sequence[Trial]) -> Iterator[Ask]:
        overload = CARRIED if self._scenario.delivery is None else DELIVERED
        steps = (OverloadStep(self._loss_ratio, overload), self._cost)
        return (ask for step in steps if (ask := step.next(trials)) is not None)

    @property
    def _loss_ratio(self) -> float:
        return goals_of(self._session.profile, self._scenario)[-1].loss_ratio

    @property
    def _cost(self) -> Cost:
        return Cost(LIGHT_LOAD, LIGHT_FOR, self._loss_ratio)

    def _result(self, side: Side, number: int, sut: OpenLoopSut) -> BootResult:
        build = self._suts.builds[side]
        told: tuple[Measurand, ...] = (self._cost, Calls(self._loss_ratio), *(kind() for kind in LOAD_COSTS))
        values = {each.name: each.value(sut.trials) for each in told}
        if values[Cost.name] is None and self.failure is None:
            most = Rate(max(trial.intended_load for trial in sut.trials))
            self.failure = Judgement(
                Verdict.UNSTABLE,
                f"boot {number} of the {side} {build.label} tells no cost of a packet: it forwards nothing of {most}, "
                "or all of it",
            )
        return BootResult(
            side=side, pair=number, boot=sut.boot_id, kernel=sut.environment.kernel_release or "unknown",
            values={name: value for name, value in values.items() if value is not None},
            complaints=tuple(sut.complaints),
        )  # fmt: skip

    def _look_at_packets(self, suts: Iterable[OpenLoopSut]) -> None:
        seen = ((sut.identity.side or "candidate", sut) for sut in suts)
        self.unlike = judged_with(self.frames, seen, self._session.observer.said)
        self.failure = self.failure or self.unlike

    def _release(self, sut: OpenLoopSut) -> None:
        try:
            sut.release()
        except PdrGateError as error:
            self._session.observer.said(str(error))
