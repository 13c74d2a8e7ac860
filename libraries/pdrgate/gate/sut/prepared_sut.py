"""One SUT, set up for a scenario, measured and put back.

The scenario decides what its trials are made of: a generator's packets, or what a closed loop moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.crashes.kernel_log import KernelLog
from pdrgate.data_paths.catalogue import DataPath, data_path
from pdrgate.data_paths.slowdowns import Planted
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.closed_loop_traffic import ClosedLoopTraffic
from pdrgate.gate.sut.cost_counting import counting_of, uncounted_reason, watching_during
from pdrgate.gate.sut.fingerprinting import fingerprint, fingerprint_differences
from pdrgate.gate.sut.known_state import KnownState, kernel_log_of
from pdrgate.gate.sut.measurer import Measurer, sut_blamed
from pdrgate.gate.sut.open_loop_traffic import OpenLoopTraffic
from pdrgate.hosts.answers import understood
from pdrgate.knobs import KnobSet, batching
from pdrgate.measurands import Ask
from pdrgate.observers.environment import Environment
from pdrgate.observers.set_up_costs import LoadObserver, ReplacingObserver
from pdrgate.observers.watching import Observer
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging
from pdrgate.record.trial import Trial
from pdrgate.results.fingerprint import digest
from pdrgate.results.model import Details, Findings, Origin, ScenarioResult, Side
from pdrgate.results.verdict import Judgement
from pdrgate.search.patience import Patience
from pdrgate.testbeds import Testbed
from pdrgate.traffic.generator import generator_in_words
from pdrgate.values.errors import DataError, PdrGateError, SutError, TestbedError


@dataclass(frozen=True, slots=True)
class Identity:
    """Which of the SUTs of a comparison it is, empty for the only one of a run; and for which test."""

    side: Side | None = None
    build: str = ""
    pair: int = 0
    boot_id: str = ""
    """Identifier of this start of the SUT; empty where the testbed has one of its own."""
    program: BpfBuild | Path | None = None
    """The eBPF object that the data path runs; else pdrgate's own, where it runs one."""
    planted: Planted | None = None
    """What slows it down, so that it is seen whether that is found."""
    test: str = ""
    """Long name of the test that asks; empty where no test does."""
    stays: bool = True
    """Whether other scenarios are measured on it afterwards."""


class PreparedSut:
    """A SUT from `prepare` to `release`; its part of that, `set_up`, may be done before, beside other SUTs' trials.

    Args:
        on_trial: gets each trial, and whether it is one of the run that is resumed.
        introduce: whether to say what is measured and with what.
        known: what the SUT is without the scenario, where another one was measured on it before.
    """

    def __init__(
        self,
        session: Session,
        scenario: Scenario,
        testbed: Testbed,
        identity: Identity | None = None,
        *,
        on_trial: Callable[[Trial, bool], None] = lambda trial, replayed: None,
        introduce: bool = True,
        known: KnownState | None = None,
    ) -> None:
        self.session = session
        self.scenario = scenario
        self.testbed = testbed
        self.identity = identity or Identity()
        self.environment = Environment()
        self.fingerprint: dict[str, str] = {}
        self.carried = ""
        """How the SUT carries packets, in words."""
        self.answer = ""
        """What the build's eBPF program returns for a packet of the scenario, in words; empty where nobody asked it."""
        self.complaints: list[str] = []
        """What the SUT's kernel complained of meanwhile."""
        self.boot_id = ""
        self.uncounted = ""
        """Why the cost of a packet is not counted; empty when it is."""
        self.introduce = introduce
        self.frames = FramesSeen(alike=scenario.alike)
        """Frames of the trials that were measured here, the probe's included; a closed loop shows none."""
        self._on_trial = on_trial
        self._path: DataPath | None = None
        self._observers: tuple[Observer, ...] = ()
        self._counting: tuple[Observer, ...] = ()
        self._during: Mapping[Phase, Sequence[Observer]] = {}
        """What watches besides in trials of a phase."""
        self._is_set_up = False
        self._traffic: OpenLoopTraffic | ClosedLoopTraffic | None = None
        self._measurer: Measurer | None = None
        self._log: KernelLog | None = None
        self._known = known or KnownState()
        self._batching, self._planted = (KnobSet(None if testbed.disposable else session.changes) for _ in range(2))

    # --- What is measured ---

    @property
    def trials(self) -> list[Trial]:
        """All of this SUT so far, those of the run that is resumed included."""
        return self._measurer.made if self._measurer else []

    def measure(self, ask: Ask, goal: str = "", repeat: int = 0) -> Trial:
        """Measure one trial. Raises TestbedError where the SUT is not set up."""
        if self._measurer is None:
            raise TestbedError("the SUT is not set up for a scenario; begin with its data path")
        self.session.observer.measuring(ask, self.identity.side, self.identity.pair)
        return self._measurer.measure(ask, goal, repeat)

    def measure_patiently(self, ask: Ask, patience: Patience, repeat: int = 0) -> Trial:
        """One trial, the last of those that it takes."""
        made = [self.measure(ask, repeat=repeat)]
        while patience.again(made):
            made.append(self.measure(ask, repeat=repeat))
        return made[-1]

    def take(self, known: Trial) -> None:
        """Have a trial that was made of this boot for another scenario count for this one, too."""
        assert self._measurer is not None
        self._measurer.take(known)

    def ask(self, scenario: Scenario) -> None:
        """Change what is asked of the SUT as it is set up: the goal. Trials from here on belong to the new question."""
        if scenario == self.scenario:
            return
        earlier = self.trials
        self.scenario = scenario
        self._measurer = self._new_measurer()
        self._measurer.made[:0] = earlier

    @property
    def follows_calls(self) -> bool:
        """Whether trials can follow calls in the SUT's kernel, and so record who calls whom."""
        return bool(self._during.get(Phase.PATH))

    @property
    def kernel(self) -> str:
        """Release of the kernel that runs."""
        return self.environment.kernel_release or "unknown"

    @property
    def sees_memory(self) -> bool:
        """Whether trials can record what functions of the SUT's kernel touch."""
        return bool(self._during.get(Phase.MEMORY))

    # --- From `prepare` to `release` ---

    def set_up(self) -> None:
        """Wait for the SUT, set it up for the scenario, and start what traffic comes from, once. Raises TestbedError.

        It touches nothing else, so that it may be done beside other SUTs' trials; see `abandon`.
        """
        if self._is_set_up:
            return
        testbed, scenario = self.testbed, self.scenario
        testbed.ready()
        self.boot_id = self.identity.boot_id or testbed.boot_id
        changes = None if testbed.disposable else self.session.changes
        self._path = data_path(
            scenario.data_path, self.identity.program or scenario.program, scenario.delivery, scenario.streams, changes,
            fate=scenario.counts, set_up=scenario.set_up, stays=not testbed.disposable or self.identity.stays,
            networks=self._known.networks, base=self._known.base,
            report=self.session.observer.said if self.introduce else lambda line: None,
        )  # fmt: skip
        if scenario.set_up is not None:
            testbed.furnish(scenario.set_up.programs, scenario.set_up.words)
        with understood(testbed.hops[0].host.name if testbed.hops else "the SUT"):
            self.environment = testbed.environment()
            self._log = self._known.log or kernel_log_of(testbed)
            self._path.apply(testbed.hops)
            testbed.set_buffer(scenario.buffer)
            testbed.pin(scenario.pinning)
            self.session.say_once(testbed.pace(short=_by_programs_alone(self._path)))
            for hop in testbed.hops:
                for port in hop.ports:
                    for knob in batching(port.interface, scenario.gro, scenario.wait):
                        self._batching.apply(hop.host, knob)
            self._observers = tuple(testbed.observers(shared=scenario.ends_at_sut))
            if told := self._path.load_cost():
                self._observers += (LoadObserver(told),)
            self._counting = counting_of(testbed)
            replacing = ReplacingObserver(self._path.replace)
            self._during = {**watching_during(testbed), Phase.REPLACEMENT: (replacing,)}
        with sut_blamed(self._look_for_faults):
            self._begin_traffic(self._path)
        self._is_set_up = True

    def _begin_traffic(self, path: DataPath) -> None:
        scenario, testbed = self.scenario, self.testbed
        # Traffic is to be closed, also when nobody carries it.
        if scenario.streams is not None:
            assert path.loop is not None
            closed = self._traffic = ClosedLoopTraffic(path.loop)
            closed.see_it_pass(scenario, testbed, self._counting)
        else:
            opened = self._traffic = OpenLoopTraffic.of(scenario, testbed, path, self._kept)
            opened.see_it_pass(scenario, testbed, path, self._check)
            if self.identity.program is not None and self.identity.pair == 1:
                self.answer = opened.answer(scenario, path)

    def prepare(self) -> None:
        """Set the SUT up for the scenario where it is not yet, so that trials can be measured. Raises TestbedError."""
        self.set_up()
        assert self._path is not None
        assert self._traffic is not None
        self.carried = self._path.sentence()
        self.plant(self.identity.planted)
        self._measurer = self._new_measurer()
        self.uncounted = uncounted_reason(self.testbed)
        if self.introduce:
            carried = "" if self._path.by_kernel else f" ({self.carried})"
            generator = generator_in_words(self._traffic.describe())
            self.session.observer.said(f"{self.scenario.title}{carried}; generator {generator}")
            self.session.say_once(self.uncounted)

    def plant(self, planted: Planted | None) -> None:
        """Put a slowdown into the data path, in place of the one before; None: none. Raises TestbedError."""
        self._planted.restore()
        for hop in self.testbed.hops if planted is not None else ():
            assert planted is not None
            for knob in planted.knobs(hop):
                self._planted.apply(hop.host, knob)

    def abandon(self) -> None:
        """Stop the traffic of a SUT that is gone, or goes with its testbed; may be called twice."""
        if self._traffic is not None:
            self._traffic.close()
            self._traffic = None

    def release(self, *, ending: bool = False) -> None:
        """Stop the traffic, ask what the kernel complained of, and put the SUT back; may be called twice.

        Args:
            ending: whether the testbed is closed next: a SUT that ends with it need not be put back.
        """
        failures: list[str] = []
        try:
            self.abandon()
        except PdrGateError as error:
            failures.append(str(error))
        if self._log is not None:
            earlier, self._log = self._log, None
            self._known.log = kernel_log_of(self.testbed, earlier)
            for line in self._known.log.since(earlier):
                self._complained(line)
        if ending and self.testbed.disposable:
            self._path = None
        if self._path is not None:
            for restore in (self._planted.restore, self._batching.restore, self._path.restore):
                try:
                    failures += restore()
                except PdrGateError as error:
                    failures.append(str(error))
            self._path = None
        for failure in failures:
            self.session.observer.said(failure)

    def belonging(self) -> Belonging:
        """Whom what is measured from here on belongs to; its fingerprint is on disk then.

        Raises DataError when the run that is resumed measured this very question under other conditions.
        """
        assert self._path is not None
        assert self._traffic is not None
        self.fingerprint = (
            fingerprint(
                self.scenario.name,
                self.session.profile.name,
                self.session.config.name,
                self.testbed.describe(),
                self._traffic.describe(),
                self.environment,
            )
            | dict(self._path.describe())
            | self.scenario.terms
        )
        made = digest(self.fingerprint)
        belonging = Belonging(
            scenario=self.scenario.name, fingerprint=made, boot=self.boot_id, side=self.identity.side or "",
            build=self.identity.build, pair=self.identity.pair, test=self.identity.test,
        )  # fmt: skip
        self._look_at_other_trials(belonging)
        self.session.record.note_fingerprint(made, self.fingerprint)
        return belonging

    def result(self, judgement: Judgement, test: str) -> ScenarioResult:
        """The scenario's result as far as the SUT knows it: what it is, and how it was set up."""
        return ScenarioResult(
            name=self.scenario.name,
            title=self.scenario.title,
            verdict=judgement.verdict,
            reason=judgement.reason,
            origin=Origin(
                test=test,
                carried=self.carried,
                testbed=self.testbed.sentence() if self.carried else "",
                boot=self.boot_id,
                set_up=self.scenario.recorded,
            ),
            findings=Findings(
                environment=self.environment.to_dict(),
                fingerprint=self.fingerprint,
                complaints=tuple(self.complaints),
            ),
            details=Details(uncounted=self.uncounted),
        )

    def _kept(self, trial: Trial) -> Trial:
        """Look at the frames of a fresh trial; those that are as they must be, nobody needs any more."""
        assert self._path is not None
        return self.frames.take(trial, self._path)

    def _new_measurer(self) -> Measurer:
        assert self._traffic is not None
        record, belonging = self.session.record, self.belonging()
        return Measurer(
            self._traffic, self._observers, record.trials, belonging, counting=self._counting, during=self._during,
            earlier=record.earlier, on_trial=self._on_trial, check=self._check,
        )  # fmt: skip

    def _look_at_other_trials(self, belonging: Belonging) -> None:
        """Raise DataError when the run that is resumed measured this very question under other conditions.

        Another boot alone is none: a guest is booted by the run itself, and values of one boot serve no other.
        """
        record = self.session.record
        earlier = record.earlier.made_otherwise(belonging)
        if earlier is None:
            return
        other = earlier.belonging
        if other.fingerprint == belonging.fingerprint and other.boot != belonging.boot:
            self.session.say_once(
                f"what was measured of {belonging.scenario} is of another boot of this kernel: it is measured anew"
            )
            return
        differences = fingerprint_differences(record.fingerprint(other.fingerprint), self.fingerprint)
        if other.boot != belonging.boot:
            differences.append(f"boot {other.boot} there, {belonging.boot} here")
        raise DataError(
            f"cannot resume {record.folder}: its trials of {belonging.scenario} were made otherwise "
            f"({'; '.join(differences) or 'for another build'}); start a new run"
        )

    def _look_for_faults(self) -> None:
        """Raises SutError where the SUT has died."""
        for sentence in self.testbed.check():
            self._complained(sentence)

    def _check(self) -> None:
        """Raise SutError where frames are wrong and no other build shows whose fault that is."""
        self._look_for_faults()
        if self.identity.side is None and (fault := self.frames.fault):
            for line in self.frames.in_lines():
                self.session.observer.said(line)
            assert self._path is not None
            raise SutError(
                f"{self._path.name} {fault} ({self._path.sentence()}); what came stands above, byte by byte"
                + (f"; is that its fate? --set fate={fate}" if (fate := self.frames.other_fate) else "")
            )

    def _complained(self, sentence: str) -> None:
        if sentence not in self.complaints:
            self.complaints.append(sentence)
            self.session.observer.said(f"the SUT's kernel: {sentence}")


def _by_programs_alone(path: DataPath) -> bool:
    """Whether programs send the packets on, and neither the kernel's router nor a socket has work with them."""
    return not path.by_kernel and path.arrivals is None and path.loop is None
