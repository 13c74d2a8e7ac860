"""Boots of two builds, a pair at a time: booted, searched once each, measured, and left."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from pdrgate.data_paths.slowdowns import Planted
from pdrgate.errors import DataError, PdrGateError, TestbedError
from pdrgate.gate.counting import cost_tolerance_of
from pdrgate.gate.disturbance import remedy
from pdrgate.gate.latency import latency_trials
from pdrgate.gate.plan import grid, overloads, round_order
from pdrgate.gate.profile import BOOT_GRID, BOOT_WIDTH, STEADY_TOP_TRIALS
from pdrgate.gate.replicate import Measurands, Replicate, measure_in_turn
from pdrgate.gate.scenario import Scenario
from pdrgate.gate.scenario_run import search_failure, searched
from pdrgate.gate.session import Session
from pdrgate.gate.subject import Identity, Subject, differences, goals_of
from pdrgate.measurands import LatencyTrials, PartialDropRate, SaturationThroughput, Sweep
from pdrgate.results.model import BootResult, Side, SideResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.safety.journal import Journal
from pdrgate.search.goals import Goal
from pdrgate.testbeds import Booting, Testbed
from pdrgate.trial import Trial
from pdrgate.units import Rate, Ratio

SIDES: tuple[Side, Side] = ("baseline", "candidate")


_PLACING = 0.05
"""Relative width that is fine enough to place a grid by."""


@dataclass(frozen=True, slots=True)
class Build:
    """One of the two builds: what a person calls it, and how a testbed on a fresh boot of it is had."""

    side: Side
    label: str
    boot: Callable[[Journal], Testbed]
    program: Path | None = None
    """The eBPF object that is the build, on one kernel for both sides."""
    planted: Planted | None = None
    """What slows its boots down, see `pdrgate.gate.spike_in`."""
    identity: str = ""
    """The digest of its content; empty where nobody tells: then no try of it is known again."""


@dataclass
class _Boot:
    """A boot that is up, with its trials. What goes wrong while it is measured is its own fault."""

    build: Build
    subject: Subject
    replicate: Replicate

    def go_on(self) -> bool:
        with self.blamed():
            return self.replicate.go_on()

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        try:
            yield
        except TestbedError as error:
            raise BootError(self.build.side, error, self.subject.boot, self.kernel) from error

    @property
    def kernel(self) -> str:
        return self.subject.environment.kernel_release or "unknown"


class BootError(Exception):
    """A boot of a build failed."""

    def __init__(self, side: Side, error: TestbedError, boot: str = "", kernel: str = "") -> None:
        self.side = side
        self.error = error
        self.boot = boot
        self.kernel = kernel


class Boots:
    """Boots pairs of builds on one session's testbed and measures them.

    The first boot of each build searches its bounds. All boots then measure one grid of loads around both, and as many
    trials as tell their PDR.

    Args:
        together: whether both boots of a pair can be up at once, and are measured in turn.
        told: gets each trial, and whether it is one of the run that is resumed.
        known: gets the fingerprint of the first boot, before anything is measured; what it raises ends the comparison.
    """

    def __init__(
        self,
        session: Session,
        scenario: Scenario,
        builds: Mapping[Side, Build],
        *,
        together: bool,
        told: Callable[[Trial, bool], None],
        known: Callable[[Mapping[str, str]], None] = lambda fingerprint: None,
    ) -> None:
        self.session = session
        self.scenario = scenario
        self.builds = builds
        self.loads: tuple[float, ...] = ()
        """The grid, once it is known."""
        self.latency_loads: tuple[float, ...] = ()
        """Those at which latency is told, once they are known."""
        self.sides: dict[Side, SideResult] = {
            side: SideResult(side=side, build=build.label) for side, build in builds.items()
        }
        """What is known of each build: its environment, its search."""
        self.failure: Judgement | None = None
        """Why there is nothing to compare."""
        self.carried = ""
        self.uncounted = ""
        """Why the cost of a packet is not counted."""
        self.cost_tolerance: Ratio | None = None
        """None where the cost of a packet is not judged."""
        self.sut_cpus: tuple[int, ...] = ()
        self.remedy = ""
        """What a user can do where the machine disturbs."""
        self._together = together
        self._told = told
        self._known = known
        self._searched: set[Side] = set()
        self._introduced: set[Side] = set()
        """Sides of which a boot has been told of in words."""
        self._centres: dict[Side, float] = {}
        self._ahead: dict[Side, tuple[Subject, Future[None]]] = {}
        """Boots of the next pair, and whether they are set up already."""
        self._meanwhile = ThreadPoolExecutor(1, "boots-ahead")
        self._steady = False
        """Whether the boots' speed is constant."""
        self._most: dict[Side, float] = {}
        """By build, the highest load worth a trial when it was searched."""

    def measure(self, number: int, *, another: bool = False) -> tuple[list[BootResult], list[Trial]]:
        """Boot and measure pair ``number``; nothing comes of it where `failure` is set then.

        Args:
            another: whether a pair after this one is wanted, whatever this one shows: where it disturbs nobody, it
                boots meanwhile.

        Raises:
            BootError: a boot failed; both are left.
        """
        order = SIDES if number % 2 else SIDES[::-1]
        groups = [order] if self._together else [(side,) for side in order]
        if not self._together and not self.loads:
            # The grid lies around both: where boots follow each other, each build is searched in a boot of its own.
            for side in order:
                if side not in self._searched:
                    self._group((side,), number, search_only=True)
                if self.failure is not None:
                    return [], []
        done: list[_Boot] = []
        for group in groups:
            done += self._group(group, number, another=another)
            if self.failure is not None:
                return [], []
        results = [self._boot_result(one, number) for one in done]
        if self.failure is not None:
            return [], []
        return results, [trial for one in done for trial in one.replicate.trials]

    def forget_searches(self) -> None:
        """Where a boot failed before the loads were known, both builds are searched anew."""
        if not self.loads:
            self._searched.clear()

    @property
    def steady(self) -> bool:
        """Whether the boots' speed is constant; known once there was one."""
        return self._steady

    @property
    def goal(self) -> Goal:
        """The PDR's."""
        return goals_of(self.session.profile, self.scenario)[-1]

    def _unsaturated(self, what: str, trials: Sequence[Trial]) -> Judgement:
        """Why a boot tells nothing of saturation."""
        most = max(trial.intended_load for trial in trials)
        if not any(trial.generator_limited for trial in trials):
            return Judgement(
                Verdict.INCONCLUSIVE,
                f"{what} took all of {Rate(most)}, far more than the first boots did: the machine's speed is not the "
                "same from boot to boot; see pdrgate doctor, and take a quieter machine",
            )
        ceiling = min(one.calibration.ceiling for one in self.sides.values() if one.calibration is not None)
        return Judgement(
            Verdict.GENERATOR_LIMITED,
            f"the generator ends at {Rate(ceiling)}, too near the PDR to show saturation ({what} was offered "
            f"{Rate(most)} at most); give the SUT less CPU, or use a faster generator",
        )

    def _boot_result(self, one: _Boot, number: int) -> BootResult:
        """What a boot came to; sets `failure` when that is nothing to compare."""
        measurands, trials = self._measurands, one.replicate.trials
        values = {measurand.name: measurand.value(trials) for measurand in measurands.all}
        side = one.build.side
        what = f"boot {number} of the {side} {one.build.label}"
        if values[SaturationThroughput.name] == 0:
            most = Rate(measurands.saturation.load)
            self.failure = Judgement(Verdict.UNSTABLE, f"{what} forwards nothing when it is offered {most}: a livelock")
        elif values[SaturationThroughput.name] is None:
            self.failure = self._unsaturated(what, trials)
        elif values[PartialDropRate.name] is None:
            self.failure = Judgement(
                Verdict.UNSTABLE, f"{what}: no load held a loss of {self.goal.loss_ratio:.1%}: there is no PDR to find"
            )
        return BootResult(
            side=side, pair=number, boot=one.subject.boot, kernel=one.kernel,
            values={name: value for name, value in values.items() if value is not None},
            complaints=tuple(one.subject.complaints),
        )  # fmt: skip

    def _group(
        self, group: Sequence[Side], number: int, *, search_only: bool = False, another: bool = False
    ) -> list[_Boot]:
        started: list[_Boot] = []
        booting: list[Subject] = []
        try:
            for side in group:
                booting += [self._begun(side, number)]  # one by one, too
            for side, subject in zip(group, booting, strict=True):
                # One by one: what was started before a failure must be released.
                started.append(self._start(self.builds[side], subject))
            if _unlike(started):
                # One of them fell back to emulation: so will both the next time, and nothing was measured yet.
                self.session.observer.said("the two guests do not run by the same accelerator: both are booted again")
                mixed, started, ended, booting = started, [], booting, []
                self._leave(mixed, ended)
                self.sides.update({side: replace(self.sides[side], fingerprint={}) for side in group})
                return self._group(group, number, search_only=search_only)
            for one in started:
                self._search(one)
            if self.failure is None and not search_only:
                self.loads = self.loads or self._grid()
                for one in started:
                    one.replicate.steps = self._measurands.steps(
                        Sweep(round_order(self.loads, number), self.session.profile.boot_trial)
                    )
                if another and all(one.subject.testbed.steady for one in started):
                    self._begin_ahead(group, number + 1)
                measure_in_turn(started)
                if self.scenario.latency:
                    self._measure_latency(started)
        finally:
            self._leave(started, booting)
        return started

    def _measure_latency(self, started: Sequence[_Boot]) -> None:
        """At the same loads in all boots: shares of the PDR that the first boot of the baseline came to."""
        first = next((one for one in started if one.build.side == "baseline"), None)
        if not self.latency_loads and first is not None:
            pdr = self._measurands.pdr.value(first.replicate.trials)
            self.latency_loads = latency_trials(pdr, self.session.profile.boot_trial).loads
        for one in started:
            one.replicate.steps = (self._latency,)
        measure_in_turn(started)

    def _leave(self, started: Sequence[_Boot], booting: Sequence[Subject]) -> None:
        for one in reversed(started):
            self._release(one.subject)
        self.session.leave([subject.testbed for subject in booting])

    def close(self) -> None:
        """Wait until nothing is set up any more beside trials; what was is the session's to leave."""
        self._meanwhile.shutdown(cancel_futures=True)

    def _begin_ahead(self, group: Sequence[Side], number: int) -> None:
        """Let the next boots come up and be set up while these are measured: that does not change a constant speed."""
        for side in group:
            try:
                subject = self._subject(side, number)
            except TestbedError:
                return  # it is tried again, and told, when its turn comes
            self._ahead[side] = subject, self._meanwhile.submit(subject.set_up)

    def _begun(self, side: Side, number: int) -> Subject:
        self.session.observer.said(f"boot {number} of the {side}, {self.builds[side].label}")
        if side in self._ahead:
            return self._ahead[side][0]
        try:
            return self._subject(side, number)
        except TestbedError as error:
            raise BootError(side, error) from error

    def _subject(self, side: Side, number: int) -> Subject:
        build = self.builds[side]
        testbed = self.session.begin(build.boot)
        # Namespaces made anew are a start of the SUT too, though its kernel stays.
        boot = "" if isinstance(testbed, Booting) else f"{testbed.boot}-{side}-{number}"
        identity = Identity(side, build.label, number, boot, build.program, build.planted)
        return Subject(
            self.session, self.scenario, testbed, identity, told=self._told, introduce=side not in self._introduced
        )

    def _start(self, build: Build, subject: Subject) -> _Boot:
        testbed = subject.testbed
        try:
            if (ahead := self._ahead.pop(build.side, None)) is not None:
                ahead[1].result()
            self.session.ready(testbed, subject.introduce)
            try:
                subject.prepare()
            except BaseException:
                self._release(subject)
                raise
        except TestbedError as error:
            raise BootError(build.side, error, subject.boot) from error
        self._introduced.add(build.side)
        self.carried, self.sut_cpus, self.uncounted = subject.carried, testbed.sut_cpus, subject.uncounted
        self._steady, self.remedy = testbed.steady, remedy(testbed)
        self.cost_tolerance = cost_tolerance_of(testbed, self.session.options.cost_tolerance)
        if told := differences(self.sides[build.side].fingerprint, subject.fingerprint):
            self._release(subject)
            raise DataError(
                f"boots of the {build.side} {build.label} cannot be taken together: {'; '.join(told)}; start a new run"
            )
        if not any(one.fingerprint for one in self.sides.values()):
            try:
                self._known(subject.fingerprint)
            except BaseException:
                self._release(subject)
                raise
        self.sides[build.side] = replace(
            self.sides[build.side], environment=subject.environment.to_dict(), fingerprint=subject.fingerprint
        )
        return _Boot(build, subject, Replicate(subject, ()))

    def _search(self, one: _Boot) -> None:
        """Calibrate and search, once for each build."""
        side = one.build.side
        if side in self._searched or self.loads or self.failure is not None:
            return
        with one.blamed():
            found = one.subject.search(self._searched_goals)
        assert one.subject.calibration is not None
        self._searched.add(side)
        self.sides[side] = replace(self.sides[side], search=searched(found), calibration=one.subject.calibrated())
        failure = search_failure(found, one.subject.calibration)
        if failure is not None:
            self.failure = Judgement(failure.verdict, f"the {side} {one.build.label}: {failure.reason}")
            return
        result = found.results[-1]
        self._most[side] = one.subject.calibration.max_load
        self._centres[side] = result.lower or result.upper or 0.0

    @property
    def _searched_goals(self) -> tuple[Goal, ...]:
        """Where boots' speed is constant the search is short: it places the grid, and each boot tells its own PDR."""
        goals = goals_of(self.session.profile, self.scenario)
        if not self._steady:
            return goals
        trial, width = self.session.profile.boot_trial, max(_PLACING, self.goal.width)
        short = replace(
            self.goal, width=width, initial_trial_duration=trial, final_trial_duration=trial, duration_sum=2 * trial,
            preceding_targets=1,
        )  # fmt: skip
        return (short,)

    def _grid(self) -> tuple[float, ...]:
        centres = list(self._centres.values())
        return grid(min(centres), BOOT_GRID, min(self._most.values()), highest=max(centres))

    @property
    def _measurands(self) -> Measurands:
        """What all boots measure, once the loads are known."""
        profile = self.session.profile
        width = max(BOOT_WIDTH, profile.finest_width)
        top = min(STEADY_TOP_TRIALS, profile.boot_top_trials) if self._steady else profile.boot_top_trials
        # Of a run that is resumed the ceiling is in what was found then.
        known = [one.calibration.ceiling for one in self.sides.values() if one.calibration is not None]
        return Measurands.at(
            self.loads, self.goal, profile.boot_trial, top_trials=top, width=width,
            overloads=overloads(max(self.loads), self.scenario.overload, min(known, default=math.inf)),
            latency=self._latency if self.scenario.latency else None,
        )  # fmt: skip

    @property
    def _latency(self) -> LatencyTrials:
        return LatencyTrials(self.latency_loads, self.session.profile.boot_trial)

    def _release(self, subject: Subject) -> None:
        try:
            subject.release(ending=True)
        except PdrGateError as error:
            # The guest may be gone, and with it all that was to be put back.
            self.session.observer.said(str(error))


def _unlike(started: Sequence[_Boot]) -> bool:
    """Whether guests that are to be compared run by different accelerators."""
    return len({one.subject.testbed.describe().get("accelerator") for one in started}) > 1
