"""A testbed without root, namespaces or packets: the simulated SUT behind the testbed's and the generator's faces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from flat_values import changed
from simulated_sut import SimulatedSut

from pdrgate.gate.run.options import Options
from pdrgate.gate.run.progress import Progress, RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.gate.sut.probe import PROBE_DURATION, PROBE_LOAD
from pdrgate.gate.verdicts.baseline import Baselines
from pdrgate.history.database.experience import Experience
from pdrgate.hosts.host import Host, local_host
from pdrgate.observers.environment import Environment
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.observers.watching import CounterObserver, Observer
from pdrgate.record.stretch import Latency
from pdrgate.record.trial import Trial
from pdrgate.results.verdict import Judgement
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import Pinning, Testbed, TestbedConfig
from pdrgate.testbeds.config import Claim, GeneratorConfig
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated(TestbedConfig):
    """A kind of testbed that only tests have."""

    kind: ClassVar[str] = "simulated"

    def open(self, journal: Journal, claim: Claim | None = None) -> Testbed:
        raise AssertionError("a test hands over what opens a simulated testbed")


CONFIG = Simulated(name="simulated", source=Path("no-file.yaml"), generator=GeneratorConfig("simulated"))
QUICK = Options(profile="quick")


class FakeTestbed(Testbed):
    """A testbed whose only generator is simulated, too."""

    boot_id, hops, sut_cpus = "", (), ()
    steady = disposable = boots = False
    executed: Any = None

    def __init__(self, sut: SimulatedSut, *, boot_id: str = "boot-1", kernel: str = "6.18") -> None:
        self.sut = sut
        self.boot_id = boot_id
        self.kernel = kernel
        self.calls: list[tuple[float, float]] = []
        """Loads and durations of the trials that were really measured."""
        self.settings: list[object] = []
        self.generators_open = 0
        self.open = True
        self.delay = 100e-6
        """Seconds, the median latency of probes at a load of nothing."""
        self.captures = ""
        """What its generator sends in place of packets of its own."""
        self.probed: list[float] = []
        """Loads of the trials that had probes."""

    def open_with(self, config: TestbedConfig, journal: Journal) -> FakeTestbed:
        """An opener for ``Session``."""
        self.open = True
        return self

    @property
    def machine(self) -> Host:
        return local_host()

    def sentence(self) -> str:
        return "a simulated SUT"

    def describe(self) -> dict[str, str]:
        return {"hops": "0"}

    def environment(self) -> Environment:
        return Environment(kernel_release=self.kernel, cpu_model="simulated", cpus=2)

    def check(self) -> tuple[str, ...]:
        return ()

    def counters(self) -> Reading:
        return {Counter(Place("interface", "simulated"), "trials"): len(self.calls)}

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        return (CounterObserver(self.counters),)

    def set_buffer(self, packets: int) -> None:
        self.settings.append(packets)

    def pin(self, pinning: Pinning) -> None:
        self.settings.append(pinning)

    def generator(self, family: int) -> Generator:
        self.generators_open += 1
        return _FakeGenerator(self)

    def close(self) -> None:
        self.open = False


class _FakeGenerator:
    def __init__(self, testbed: FakeTestbed) -> None:
        self._testbed = testbed

    def describe(self) -> dict[str, str]:
        about = {"name": "simulated", "engine": "none", "chosen": "for a test"}
        return about | ({"captures": self._testbed.captures} if self._testbed.captures else {})

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        if (load, duration) == (PROBE_LOAD, PROBE_DURATION):  # before anything is measured, nothing is simulated
            return Trial(load, duration, offered=round(load * duration), forwarded=round(load * duration))
        trial = self._testbed.sut.measure(load, duration)
        self._testbed.calls.append((load, duration))
        if frames.probe_rate:
            self._testbed.probed.append(load)
            # Not that of any queue: it grows with the load, and scatters as the SUT does.
            delay = self._testbed.delay * (1 + load / 1e6) * (1 + trial.loss_ratio)
            count = round(frames.probe_rate * duration)
            return changed(trial, latency=Latency(delay, 2 * delay, 4 * delay, 9 * delay, count))
        return trial

    def close(self) -> None:
        self._testbed.generators_open -= 1


class Killed(BaseException):
    """Stands for the end of the process: nothing in pdrgate catches it."""


class Watcher(RunObserver):
    """An observer that keeps what it is told, and kills the run after some fresh trials."""

    def __init__(self, kill_after: int | None = None) -> None:
        self.sentences: list[str] = []
        self.progress: list[Progress] = []
        self._kill_after = kill_after

    def said(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def measured(self, progress: Progress) -> None:
        self.progress.append(progress)
        if self._kill_after is not None and progress.number >= self._kill_after:
            raise Killed


def gate(session: Session, scenario: Scenario | None = None, tolerance: float = 0.02) -> tuple[ScenarioRun, Judgement]:
    """All steps of one scenario, as a suite takes them."""
    options = session.options
    baselines = Baselines(options.baseline, session.record.folder) if options.baseline else None
    subject = ScenarioRun(session, scenario or Scenario(), baselines=baselines)
    subject.prepare()
    subject.search()
    if subject.judgement is None:
        subject.repeat()
        subject.judge(tolerance)
    return subject, subject.finish()


def new_session(
    testbed: FakeTestbed,
    folder: Path,
    watcher: Watcher,
    state: Path,
    options: Options = QUICK,
    *,
    resume: bool = False,
    experience: Experience | None = None,
) -> Session:
    """A session on a fake testbed, with a record, locks and journals of its own."""
    record = RunRecord(folder, options.profile, resume=resume)
    return Session(CONFIG, options, record, watcher, experience=experience, opener=testbed.open_with, state=state)
