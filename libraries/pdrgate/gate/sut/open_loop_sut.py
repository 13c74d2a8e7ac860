"""One SUT, set up for a scenario and put back: what trials are measured on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from pdrgate.data_paths.catalogue import DataPath
from pdrgate.data_paths.replacing import Replaces
from pdrgate.gate.run.profile import Profile
from pdrgate.gate.run.progress import Upcoming
from pdrgate.gate.run.resumed_run import EarlierStretches
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.alike_packets import ALIKE_LOOKS, LOOK_DURATION
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.cost_counting import busy_of
from pdrgate.gate.sut.known_state import KnownState
from pdrgate.gate.sut.prepared_sut import Identity, PreparedSut, Traffic
from pdrgate.gate.sut.probe import PROBE_LOAD, lead_in, probe_path, warm_up
from pdrgate.gate.sut.trial_measurer import TrialMeasurer
from pdrgate.measurands import Ask
from pdrgate.observers.replacing_observer import ReplacingObserver
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import CalibrationResult
from pdrgate.search.calibration import Calibration, calibrate
from pdrgate.search.goals import Goal
from pdrgate.search.mlr import SearchOutcome, search
from pdrgate.search.patience import Patience
from pdrgate.testbeds import Testbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.traffic.generator import Generator, ShowsFrames
from pdrgate.values.errors import SutError, TestbedError, UsageError
from pdrgate.values.units import Rate


class OpenLoopSut(PreparedSut[Ask, Trial]):
    """A SUT that trials are measured on, from `prepare` to `release`.

    Args:
        told: gets each trial, and whether it is one of the run that is resumed.
        introduce: whether to say what is measured and with what.
        known: as of `PreparedSut`.

    Raises:
        TestbedError: the scenario has no open loop.
    """

    def __init__(
        self,
        session: Session,
        scenario: Scenario,
        testbed: Testbed,
        identity: Identity | None = None,
        *,
        told: Callable[[Trial, bool], None] = lambda trial, replayed: None,
        introduce: bool = True,
        known: KnownState | None = None,
    ) -> None:
        if scenario.streams is not None:
            raise TestbedError(
                f"{scenario.data_path} has no PDR: a closed loop offers what it gets acknowledged; measure transfers"
            )
        super().__init__(session, scenario, testbed, identity, introduce=introduce, known=known)
        self.calibration: Calibration | None = None
        self.frames = FramesSeen(alike=scenario.alike)
        """Of the trials that were measured here, the probe's included."""
        self._told = told
        self._generator: Generator | None = None
        self._measurer: TrialMeasurer | None = None

    @property
    def trials(self) -> list[Trial]:
        """All of this SUT so far, those of the run that is resumed included."""
        return self._measurer.made if self._measurer else []

    def _begin(self, path: DataPath) -> Traffic:
        self._generator = counted_by(path.arrivals, self.testbed.generator(path.family))
        self._traffic = self._generator  # to be closed, also when nobody carries its packets
        try:
            self._kept(probe_path(path, self.testbed, self._generator, self.scenario.frames, self.scenario.counts))
        except SutError as error:
            if why := self._why_not(path):
                raise SutError(f"{error}; {why}") from error
            raise
        for _ in range(ALIKE_LOOKS if self.scenario.alike else 0):
            sent = self._generator.trial(PROBE_LOAD, LOOK_DURATION, self.scenario.frames)
            # Where they leave the probe has judged.
            aside = dataclasses.replace(sent.aside, fate=self.scenario.counts, returned=0)
            self._kept(dataclasses.replace(sent, aside=aside))
        self._check()
        if self.testbed.steady:
            warm_up(self._generator, self.scenario.frames)
        if self.scenario.latency and not self._can_probe:
            raise UsageError("packets of a capture cannot be latency probes; leave latency out, or the capture")
        return self._generator

    def _why_not(self, path: DataPath) -> str:
        """Why the path's own program sends no packet on, in words; empty where nobody can tell."""
        source = self._generator
        return path.explain(source.sample(self.scenario.frames)) if isinstance(source, ShowsFrames) else ""

    def _kept(self, trial: Trial) -> Trial:
        """Look at the frames of a fresh trial; those that are as they must be, nobody needs any more."""
        assert self._path is not None
        return self.frames.take(trial, self._path)

    def _check(self) -> None:
        """Raises SutError, too, where frames are wrong and there is no other build to tell whose fault that is."""
        super()._check()
        if self.identity.side is None and (fault := self.frames.fault):
            for line in self.frames.in_lines():
                self.session.observer.said(line)
            assert self._path is not None
            raise SutError(
                f"{self._path.name} {fault} ({self._path.sentence()}); what came is told above, byte by byte"
                + (f"; is that its fate? --fate {fate}" if (fate := self.frames.other_fate) else "")
            )

    def _begin_measuring(self) -> None:
        self._measurer = self._new_measurer()

    def _earlier(self) -> EarlierStretches[Trial]:
        return self.session.record.earlier

    def ask(self, scenario: Scenario) -> None:
        """Change what is asked of the SUT as it is set up: the goal. Trials from here on belong to the new question."""
        if scenario == self.scenario:
            return
        earlier = self.trials
        self.scenario = scenario
        self._measurer = self._new_measurer()
        self._measurer.made[:0] = earlier

    def measure(self, load: float, duration: float, phase: Phase, goal: str = "", repeat: int = 0) -> Trial:
        """One trial."""
        if self._measurer is None:
            raise TestbedError("the SUT is not set up for a scenario; begin with what it routes")
        self.session.observer.measuring(Upcoming(phase, load, duration, self.identity.side, self.identity.pair))
        return self._measurer.measure(load, duration, phase, goal, repeat)

    def take(self, known: Trial) -> None:
        """Have a trial that was made of this boot for another scenario count for this one, too."""
        assert self._measurer is not None
        self._measurer.take(known)

    def measure_patiently(self, ask: Ask, patience: Patience, repeat: int = 0) -> Trial:
        """One trial, the last of those that it takes."""
        *_, trial = patience.attempts(
            lambda load, duration: self.measure(load, duration, ask.phase, repeat=repeat), ask.load, ask.duration
        )
        return trial

    def calibrate(self) -> Calibration:
        """What the generator offers, and what the SUT forwards there; measured once."""
        if self.calibration is None:
            duration = self.session.profile.calibration_duration
            self.calibration = calibrate(
                lambda load, time: self.measure(load, time, Phase.CALIBRATION), duration, steady=self.testbed.steady
            )
            self.session.observer.said(
                f"the generator offers up to {Rate(self.calibration.ceiling)}; "
                f"there the SUT forwards {Rate(self.calibration.forwarding_rate)}"
            )
        return self.calibration

    def search(self, goals: tuple[Goal, ...]) -> SearchOutcome:
        """Calibrate, then search for the goals' bounds: first where the SUT is, then as far as the generator goes."""
        calibration = self.calibrate()

        def measure(load: float, duration: float) -> Trial:
            return self.measure(load, duration, Phase.SEARCH, goal=goals[-1].name)

        budget, top = self.session.profile.search_budget, calibration.search_load
        while True:
            found = search(measure, goals, min_load=calibration.min_load, max_load=top, budget=budget)
            if not found.at_its_end or top >= calibration.max_load:
                return found
            # Flat out the SUT forwarded less than it can: it suffers from overload. What it holds may be little beside
            # what the generator can send.
            top = self._overload(top, goals[-1].loss_ratio)

    def _overload(self, held: float, loss_ratio: float) -> float:
        """The first load, doubling from one that is held, that loses too much; at most the highest worth a trial."""
        calibration = self.calibrate()
        load, duration = held, self.session.profile.calibration_duration
        while load < calibration.max_load:
            load = min(2 * load, calibration.max_load)
            if self.measure(load, duration, Phase.CALIBRATION).steady_loss_ratio > loss_ratio:
                break
        return load

    def calibrated(self) -> CalibrationResult | None:
        """The calibration as result.json has it."""
        if self.calibration is None:
            return None
        return CalibrationResult(ceiling=self.calibration.ceiling, forwarding_rate=self.calibration.forwarding_rate)

    def _new_measurer(self) -> TrialMeasurer:
        assert self._generator is not None
        record = self.session.record
        belonging = self.belonging()
        return TrialMeasurer(
            self._generator, self.scenario.frames, self._observers, record.trials, belonging,
            counting=self._counting, tracing=self._tracing, seeing_memory=self._seeing_memory,
            in_lockstep=self._in_lockstep,
            replacing=self._replacing, earlier=record.earlier, told=self._told, kept=self._kept, check=self._check,
            lead_in=self._lead_in,
            busy=busy_of(self.testbed), fate=self.scenario.counts, can_probe=self._can_probe,
        )  # fmt: skip

    @property
    def _replacing(self) -> tuple[ReplacingObserver, ...]:
        return (ReplacingObserver(self._path.replace),) if isinstance(self._path, Replaces) else ()

    def _lead_in(self, load: float, phase: Phase) -> None:
        """Near and past the PDR of an end host what was before shows, where the machine's speed does not hide it."""
        if self.scenario.starves and self.testbed.steady and phase in (Phase.SEARCH, Phase.PDR, Phase.PAST):
            assert self._generator is not None
            lead_in(self._generator, self.scenario.frames, load)

    @property
    def _can_probe(self) -> bool:
        """Whether packets are the generator's own, and come back to it."""
        assert self._generator is not None
        return self.scenario.counts in ("forwarded", "returned") and "captures" not in self._generator.describe()


def goals_of(profile: Profile, scenario: Scenario) -> tuple[Goal, ...]:
    """A profile's goals, the last of them as the scenario asks for it and the profile has time for."""
    *others, last = profile.goals
    asked = dataclasses.replace(last, loss_ratio=scenario.loss_ratio, width=scenario.width)
    return (*others, dataclasses.replace(asked, width=max(asked.width, profile.finest_width)))
