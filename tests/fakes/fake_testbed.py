"""A testbed without root, namespaces or packets: the simulated SUT behind the testbed's and the generator's faces."""

from __future__ import annotations

from pathlib import Path

from pdrgate.data_paths.catalogue import Hop
from pdrgate.gate.progress import Progress
from pdrgate.gate.run import Options, Run
from pdrgate.gate.scenario import Scenario
from pdrgate.gate.scenario_run import ScenarioRun
from pdrgate.observers.environment import Environment
from pdrgate.results.verdict import Judgement
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import Pinning, TestbedConfig
from pdrgate.testbeds.testbed_file import GeneratorConfig, SutConfig
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator
from pdrgate.traffic.simulated import SimulatedSut
from pdrgate.trial import Trial

CONFIG = TestbedConfig("simulated", "simulated", GeneratorConfig("simulated"), SutConfig(1), Path("no-file.yaml"))


class FakeTestbed:
    """Satisfies ``Testbed`` and, for its only generator, ``Generator``."""

    def __init__(self, sut: SimulatedSut, *, boot: str = "boot-1", kernel: str = "6.18") -> None:
        self.sut = sut
        self.boot = boot
        self.sut_cpus: tuple[int, ...] = ()
        self.kernel = kernel
        self.hops: tuple[Hop, ...] = ()
        self.calls: list[tuple[float, float]] = []
        """Loads and durations of the trials that were really measured."""
        self.settings: list[object] = []
        self.generators_open = 0
        self.open = True

    def open_with(self, config: TestbedConfig, journal: Journal) -> FakeTestbed:
        """An opener for ``Run``."""
        self.open = True
        return self

    def sentence(self) -> str:
        return "a simulated SUT"

    def describe(self) -> dict[str, str]:
        return {"hops": "0"}

    def environment(self) -> Environment:
        return Environment(kernel_release=self.kernel, cpu_model="simulated", cpus=2)

    def check(self) -> tuple[str, ...]:
        return ()

    def counters(self) -> dict[str, int]:
        return {"trials": len(self.calls)}

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
        return {"name": "simulated", "engine": "none", "chosen": "for a test"}

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        trial = self._testbed.sut.measure(load, duration)
        self._testbed.calls.append((load, duration))
        return trial

    def close(self) -> None:
        self._testbed.generators_open -= 1


class Killed(BaseException):
    """Stands for the end of the process: nothing in pdrgate catches it."""


class Watcher:
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


def gate(run: Run, scenario: Scenario | None = None, tolerance: float = 0.02) -> tuple[ScenarioRun, Judgement]:
    """All steps of one scenario, as a suite takes them."""
    subject = ScenarioRun(run, scenario or Scenario())
    subject.prepare()
    subject.search(run.options.profile.goals)
    if subject.judgement is None:
        subject.repeat()
        subject.judge(tolerance)
    return subject, subject.finish()


def new_run(testbed: FakeTestbed, options: Options, watcher: Watcher, state: Path) -> Run:
    """A run on a fake testbed, with lock and journals of its own."""
    return Run(CONFIG, options, watcher, opener=testbed.open_with, state=state)
