"""One SUT, set up for a scenario and put back: what trials are measured on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pdrgate.crashes.kernel_log import KernelLog, read_kernel_log
from pdrgate.data_paths.catalogue import DataPath, data_path
from pdrgate.data_paths.slowdowns import Planted
from pdrgate.errors import DataError, PdrGateError, TestbedError, UsageError
from pdrgate.gate.counting import busy_of, counting_of, uncounted
from pdrgate.gate.fingerprint import fingerprint
from pdrgate.gate.measurer import Belonging, Measurer
from pdrgate.gate.probe import probe
from pdrgate.gate.profile import Profile
from pdrgate.gate.progress import Upcoming
from pdrgate.gate.scenario import Scenario
from pdrgate.gate.session import Session
from pdrgate.knobs import KnobSet
from pdrgate.measurands import Ask
from pdrgate.observers.environment import Environment
from pdrgate.observers.watching import Observer
from pdrgate.results.fingerprint import difference, digest
from pdrgate.results.model import CalibrationResult, Side
from pdrgate.search.calibration import Calibration, calibrate
from pdrgate.search.goals import Goal
from pdrgate.search.mlr import SearchResult, search
from pdrgate.search.patience import Patience
from pdrgate.testbeds import Booting, Testbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.traffic.generator import Generator, in_words
from pdrgate.trial import Trial
from pdrgate.units import Rate

CALIBRATION, SEARCH = "calibration", "search"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which of the SUTs of a comparison it is; empty for the only one of a run."""

    side: Side | None = None
    build: str = ""
    pair: int = 0
    boot: str = ""
    """What tells this start of the SUT from all others; else what the testbed says."""
    program: Path | None = None
    """The eBPF object that the data path runs; else pdrgate's own, where it runs one."""
    planted: Planted | None = None
    """What slows it down, so that it is seen whether that is found."""


class Subject:
    """A SUT from `prepare` to `release`; its part of that, `set_up`, may be done before, beside other SUTs' trials.

    Args:
        told: gets each trial, and whether it is one of the run that is resumed.
        introduce: whether to say what is measured and with what.
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
    ) -> None:
        self.session = session
        self.scenario = scenario
        self.testbed = testbed
        self.identity = identity or Identity()
        self.environment = Environment()
        self.fingerprint: dict[str, str] = {}
        self.carried = ""
        """How the SUT carries packets, in words."""
        self.complaints: list[str] = []
        """What the SUT's kernel complained of meanwhile."""
        self.boot = ""
        self.uncounted = ""
        """Why the cost of a packet is not counted; empty when it is."""
        self.calibration: Calibration | None = None
        self._told = told
        self.introduce = introduce
        self._path: DataPath | None = None
        self._observers: tuple[Observer, ...] = ()
        self._counting: tuple[Observer, ...] = ()
        self._is_set_up = False
        self._generator: Generator | None = None
        self._measurer: Measurer | None = None
        self._log: KernelLog | None = None
        self._planted = KnobSet(None if testbed.disposable else session.changes)

    @property
    def trials(self) -> list[Trial]:
        """All of this subject so far, those of the run that is resumed included."""
        return self._measurer.trials if self._measurer else []

    def set_up(self) -> None:
        """Wait for the SUT and set it up for the scenario, once, touching nothing else. Raises TestbedError."""
        if self._is_set_up:
            return
        testbed, scenario = self.testbed, self.scenario
        if isinstance(testbed, Booting):
            testbed.ready()
        self.boot = self.identity.boot or testbed.boot
        self.environment = testbed.environment()
        self._log = _kernel_log(testbed)
        self._path = data_path(scenario.data_path, self.identity.program, scenario.delivery)
        self._path.apply(testbed.hops)
        testbed.set_buffer(scenario.buffer)
        testbed.pin(scenario.pinning)
        self._observers = tuple(testbed.observers(shared=self._path.arrivals is not None))
        self._counting = counting_of(testbed)
        self._is_set_up = True

    def prepare(self) -> None:
        """Set the SUT up for the scenario, and start the generator. Raises TestbedError."""
        testbed, scenario = self.testbed, self.scenario
        self.set_up()
        assert self._path is not None
        self.session.record.note_environment(self.environment.to_dict())
        self._generator = counted_by(self._path.arrivals, testbed.generator(self._path.family))
        if not self._path.by_kernel:
            probe(self._path, testbed, self._generator, scenario.frames)
        if scenario.latency and not self._can_probe:
            raise UsageError("packets of a capture cannot be latency probes; leave latency out, or the capture")
        self.carried = self._path.sentence()
        self.plant(self.identity.planted)
        self._measurer = self._new_measurer()
        self.uncounted = uncounted(testbed)
        if self.introduce:
            carried = "" if self._path.by_kernel else f" ({self.carried})"
            generator = in_words(self._generator.describe())
            self.session.observer.said(f"{scenario.title}{carried}; generator {generator}")
            self.session.say_once(self.uncounted)

    def plant(self, planted: Planted | None) -> None:
        """Put a slowdown into the data path, in place of the one before; None: none. Raises TestbedError."""
        self._planted.restore()
        for hop in self.testbed.hops if planted is not None else ():
            assert planted is not None
            for knob in planted.knobs(hop):
                self._planted.apply(hop.host, knob)

    def ask(self, scenario: Scenario) -> None:
        """Change what is asked of the SUT as it is set up: the goal. Trials from here on belong to the new question."""
        if scenario == self.scenario:
            return
        earlier = self.trials
        self.scenario = scenario
        self._measurer = self._new_measurer()
        self._measurer.trials[:0] = earlier

    def measure(self, load: float, duration: float, phase: str, goal: str = "", repeat: int = 0) -> Trial:
        """One trial."""
        if self._measurer is None:
            raise TestbedError("the SUT is not set up for a scenario; begin with what it routes")
        self.session.observer.measuring(Upcoming(phase, load, duration, self.identity.side, self.identity.pair))
        return self._measurer.measure(load, duration, phase, goal, repeat)

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
            self.calibration = calibrate(lambda load, time: self.measure(load, time, CALIBRATION), duration)
            self.session.observer.said(
                f"the generator offers up to {Rate(self.calibration.ceiling)}; "
                f"there the SUT forwards {Rate(self.calibration.forwarding_rate)}"
            )
        return self.calibration

    def search(self, goals: tuple[Goal, ...]) -> SearchResult:
        """Calibrate, then search for the goals' bounds: first where the SUT is, then as far as the generator goes."""
        calibration = self.calibrate()

        def measure(load: float, duration: float) -> Trial:
            return self.measure(load, duration, SEARCH, goal=goals[-1].name)

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
            if self.measure(load, duration, CALIBRATION).steady_loss_ratio > loss_ratio:
                break
        return load

    def release(self, *, ending: bool = False) -> None:
        """Stop the generator, ask what the kernel complained of, and put the SUT back; may be called twice.

        Args:
            ending: whether the testbed is closed next: a SUT that ends with it need not be put back.
        """
        failures: list[str] = []
        if self._generator is not None:
            self._generator.close()
            self._generator = None
        if self._log is not None:
            earlier, self._log = self._log, None
            for line in _kernel_log(self.testbed, earlier).since(earlier):
                self._complained(line)
        if ending and self.testbed.disposable:
            self._path = None
        if self._path is not None:
            for restore in (self._planted.restore, self._path.restore):
                try:
                    failures += [sentence for sentence in restore() if not sentence.startswith("put back")]
                except PdrGateError as error:
                    failures.append(str(error))
            self._path = None
        for failure in failures:
            self.session.observer.said(failure)

    def calibrated(self) -> CalibrationResult | None:
        """The calibration as result.json has it."""
        if self.calibration is None:
            return None
        return CalibrationResult(ceiling=self.calibration.ceiling, forwarding_rate=self.calibration.forwarding_rate)

    def _new_measurer(self) -> Measurer:
        assert self._path is not None
        assert self._generator is not None
        self.fingerprint = fingerprint(
            self.scenario.name,
            self.session.profile.name,
            self.session.config.name,
            self.testbed.describe(),
            self._generator.describe(),
            self.environment,
        ) | dict(self._path.describe())
        made = digest(self.fingerprint)
        belonging = Belonging(
            scenario=self.scenario.name, fingerprint=made, boot=self.boot, side=self.identity.side or "",
            build=self.identity.build, pair=self.identity.pair,
        )  # fmt: skip
        record = self.session.record
        self._refuse_other_trials(belonging)
        record.note_fingerprint(made, self.fingerprint)
        return Measurer(
            self._generator, self.scenario.frames, self._observers, record.trials, belonging,
            counting=self._counting, earlier=record.earlier, on_trial=self._told, check=self._check,
            busy=busy_of(self.testbed), can_probe=self._can_probe,
        )  # fmt: skip

    @property
    def _can_probe(self) -> bool:
        """Whether packets are the generator's own, and come back to it."""
        assert self._generator is not None
        return self.scenario.delivery is None and "captures" not in self._generator.describe()

    def _refuse_other_trials(self, belonging: Belonging) -> None:
        """Raise DataError when the run that is resumed measured this very question under other conditions.

        Pairs of boots are taken over as a whole or measured anew, see `pdrgate.gate.build_comparison`.
        """
        record = self.session.record
        asked = [trial for trial in record.earlier if trial.scenario == belonging.scenario and not trial.pair]
        if belonging.pair or not asked or any(belonging.owns(trial) for trial in asked):
            return
        told = differences(record.fingerprint(asked[0].fingerprint), self.fingerprint)
        if asked[0].boot != belonging.boot:
            told.append(f"boot {asked[0].boot} there, {belonging.boot} here")
        raise DataError(
            f"cannot resume {record.folder}: its trials of {belonging.scenario} were made otherwise "
            f"({'; '.join(told) or 'by an older version of pdrgate'}); start a new run"
        )

    def _check(self) -> None:
        for sentence in self.testbed.check():
            self._complained(sentence)

    def _complained(self, sentence: str) -> None:
        if sentence not in self.complaints:
            self.complaints.append(sentence)
            self.session.observer.said(f"the SUT's kernel: {sentence}")


def goals_of(profile: Profile, scenario: Scenario) -> tuple[Goal, ...]:
    """A profile's goals, the last of them as the scenario asks for it and the profile has time for."""
    *others, last = profile.goals
    width = last.width if scenario.width is None else scenario.width
    asked = dataclasses.replace(last, loss_ratio=scenario.loss_ratio, width=width)
    return (*others, dataclasses.replace(asked, width=max(asked.width, profile.finest_width)))


def differences(theirs: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """Where two fingerprints differ, in words; nothing where one is not known."""
    told = []
    for key in sorted(theirs.keys() | ours.keys()) if theirs else ():
        if theirs.get(key) != ours.get(key):
            there, here = difference(theirs.get(key, "nothing"), ours.get(key, "nothing"))
            told.append(f"{key} {there} there, {here} here")
    return told


def _kernel_log(testbed: Testbed, otherwise: KernelLog | None = None) -> KernelLog:
    """The log of the SUT's kernel; ``otherwise`` where it does not answer, for that is told elsewhere."""
    nothing = otherwise or KernelLog(None, None)
    try:
        return read_kernel_log(testbed.hops[0].host) if testbed.hops else nothing
    except TestbedError:
        return nothing
