"""A scenario on SUTs that stay up: set up, counted at saturation and at a light load, and taken away again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pdrgate.errors import PdrGateError, TestbedError
from pdrgate.gate.comparisons.cold_boots.one_boot import Boot, BootError
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES, Build
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.scenarios.replicate_samples import Replicate, measure_in_turn
from pdrgate.gate.sut.carried_frames import FramesSeen, judged_with
from pdrgate.gate.sut.cost_counting import cost_tolerance_of
from pdrgate.gate.sut.open_loop_sut import OpenLoopSut, goals_of
from pdrgate.gate.sut.prepared_sut import Identity
from pdrgate.gate.verdicts.disturbance import remedy
from pdrgate.measurands import Ask, Cost, Measurand, SaturationThroughput, Setting
from pdrgate.measurands.calls import Calls
from pdrgate.measurands.measurand import rounded
from pdrgate.replication.replicates import Replicates, SutFacts
from pdrgate.results.model import BootResult, Side, SideResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.testbeds import Testbed
from pdrgate.trial import Trial
from pdrgate.units import Rate

_OVERLOAD, _LIGHT = 2.0, 0.5
"""Times what the SUT forwards of all that the generator offers: surely too much, and surely not."""
_TRIALS = 2
"""At saturation, of a boot."""


class LivingBoots:
    """Counts a scenario on pairs of living SUTs; a `Replication`.

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
        self.unlike: Judgement | None = None
        self.facts = SutFacts()
        self.frames: dict[Side, FramesSeen] = {side: FramesSeen() for side in suts.builds}
        self._session = session
        self._scenario = scenario
        self._suts = suts
        self._told = told
        self._known = known
        self._test = test

    # --- A Replication ---

    def next(self, number: int, *, wanted: Callable[[int], bool]) -> Replicates[Trial]:
        started: list[Boot[Ask, Trial]] = []
        suts: list[OpenLoopSut] = []
        order = SIDES if number % 2 else SIDES[::-1]
        try:
            testbeds = self._suts.pair(number)
            suts += [self._sut(side, testbeds[side], number) for side in order]
            self._set_up(suts)
            for side, sut in zip(order, suts, strict=True):
                started.append(self._prepared(self._suts.builds[side], sut))
            self._choose_loads(started)
            if self.failure is None:
                for one in started:
                    one.replicate.steps = self._measurands
                measure_in_turn(started)
            self._look_at_packets(suts)
            results = [self._result(one, number) for one in started] if self.failure is None else []
            trials = [trial for one in started for trial in one.replicate.trials] if results else []
        except BootError as failed:
            self._session.observer.said(f"living boot {number} of the {failed.side} failed: {failed.error}")
            self._suts.lost(failed.side, number)
            return Replicates((failed.result(number),))
        finally:
            self._take_away(suts)
        return Replicates(results, trials)

    def close(self) -> None:
        """Nothing is begun beforehand."""

    def go_on_from(
        self, loads: tuple[float, ...], latency_loads: tuple[float, ...], sides: Mapping[Side, SideResult]
    ) -> None:
        self.loads, self.latency_loads = loads, latency_loads
        self.sides.update(sides)

    # --- One pair ---

    def _sut(self, side: Side, testbed: Testbed, number: int) -> OpenLoopSut:
        build = self._suts.builds[side]
        identity = Identity(side, build.label, number, "", build.program, build.planted, self._test)
        introduce = number == 1 and side == "baseline"
        return OpenLoopSut(
            self._session, self._scenario, testbed, identity, told=self._told, introduce=introduce
        )  # fmt: skip

    def _set_up(self, suts: Sequence[OpenLoopSut]) -> None:
        """Both at once; what fails is raised again, and told, when each is prepared."""
        for future in [self._suts.workers.submit(sut.set_up) for sut in suts]:
            with contextlib.suppress(TestbedError):
                future.result()

    def _prepared(self, build: Build, sut: OpenLoopSut) -> Boot[Ask, Trial]:
        testbed = sut.testbed
        try:
            sut.prepare()
        except TestbedError as error:
            raise BootError(build.side, error, sut.boot_id) from error
        self.facts = SutFacts(
            carried=sut.carried, uncounted=sut.uncounted,
            cost_tolerance=cost_tolerance_of(testbed, self._session.options.cost_tolerance),
            sut_cpus=testbed.sut_cpus, steady=testbed.steady, remedy=remedy(testbed),
        )  # fmt: skip
        if not any(one.fingerprint for one in self.sides.values()):
            self._known(sut.fingerprint)
        self.sides[build.side] = replace(
            self.sides[build.side], environment=sut.environment.to_dict(), fingerprint=sut.fingerprint
        )
        return Boot(build, sut, Replicate(sut, ()))

    def _choose_loads(self, started: Sequence[Boot[Ask, Trial]]) -> None:
        """Around what both builds forward of an overload, once for all boots."""
        if self.facts.uncounted:
            self.failure = Judgement(
                Verdict.ERROR,
                f"living boots are judged by what a packet costs, and {self.facts.uncounted}; compare cold boots",
            )
        if self.loads or self.failure is not None:
            return
        rates = []
        for one in started:
            assert isinstance(one.sut, OpenLoopSut)
            with one.blamed():
                found = one.sut.calibrate()
            side = one.build.side
            self.sides[side] = replace(self.sides[side], calibration=one.sut.calibrated())
            if _OVERLOAD * found.forwarding_rate > found.ceiling:
                self.failure = Judgement(
                    Verdict.GENERATOR_LIMITED,
                    f"the generator ends at {Rate(found.ceiling)}, and the {side} {one.build.label} forwards "
                    f"{Rate(found.forwarding_rate)} of that: it is never saturated; give the SUT less CPU",
                )
                return
            rates.append(found.forwarding_rate)
        self.loads = (rounded(_LIGHT * min(rates)), rounded(_OVERLOAD * max(rates)))

    @property
    def _measurands(self) -> tuple[Measurand, ...]:
        goal = goals_of(self._session.profile, self._scenario)[-1]
        setting = Setting(
            loads=self.loads, duration=self._session.profile.boot_trial, loss_ratio=goal.loss_ratio, width=goal.width,
            top_trials=_TRIALS,
        )  # fmt: skip
        return SaturationThroughput.of(setting), Cost.of(setting), Calls.of(setting)

    def _result(self, one: Boot[Ask, Trial], number: int) -> BootResult:
        values = {each.name: each.value(one.replicate.trials) for each in self._measurands}
        if values[Cost.name] is None and self.failure is None:
            self.failure = Judgement(
                Verdict.UNSTABLE,
                f"boot {number} of the {one.build.side} {one.build.label} tells no cost of a packet: it forwards "
                f"nothing of {Rate(max(self.loads))}, or all of it",
            )
        return BootResult(
            side=one.build.side, pair=number, boot=one.sut.boot_id, kernel=one.kernel,
            values={name: value for name, value in values.items() if value is not None},
            complaints=tuple(one.sut.complaints),
        )  # fmt: skip

    def _look_at_packets(self, suts: Sequence[OpenLoopSut]) -> None:
        seen = ((sut.identity.side or "candidate", sut) for sut in suts)
        self.unlike = judged_with(self.frames, seen, self._session.observer.said)
        self.failure = self.failure or self.unlike

    def _take_away(self, suts: Sequence[OpenLoopSut]) -> None:
        """Put the SUTs back for the next scenario, both at once."""
        list(self._suts.workers.map(self._release, suts))

    def _release(self, sut: OpenLoopSut) -> None:
        try:
            sut.release()
        except PdrGateError as error:
            self._session.observer.said(str(error))
