"""One run of the gate: from a testbed file and scenarios to verdicts, with everything measured on disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from pdrgate import __version__
from pdrgate.errors import TestbedError
from pdrgate.gate.profile import Profile
from pdrgate.gate.progress import Observer
from pdrgate.history.results import RESULT_FILE, write_result
from pdrgate.history.trials import TRIALS_FILE, TrialFile
from pdrgate.history.upgrade import OLDEST, upgraded
from pdrgate.observers.environment import Environment
from pdrgate.results.model import RunResult
from pdrgate.results.verdict import Verdict, gravest
from pdrgate.safety.journal import STATE_DIR, Journal, MachineLock, recover_stale
from pdrgate.stability import Reading, read_trials
from pdrgate.testbeds import Booting, Testbed, TestbedConfig, open_testbed
from pdrgate.trial import Trial


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked for."""

    profile: Profile
    folder: Path
    """Where results go."""
    baseline: Path | None = None
    reading: Reading = Reading.STRICT
    wait: float = 0.0
    """Seconds to wait for another run on this machine to end."""


class Run:
    """One execution of the gate on one testbed; a context manager that puts everything back.

    Suites of one Robot run share the folder: each has a run of its own, given the scenarios of those before it.

    Args:
        opener: makes the testbed that the file describes.
        state: where the machine's lock and the journals of runs lie.

    Raises:
        TestbedError: another run measures on this machine, or the testbed cannot be set up.
        StorageError: the folder cannot be written.
    """

    def __init__(
        self,
        config: TestbedConfig,
        options: Options,
        observer: Observer,
        *,
        opener: Callable[[TestbedConfig, Journal], Testbed] = open_testbed,
        state: Path = STATE_DIR,
    ) -> None:
        self.config = config
        self.options = options
        self.observer = observer
        self._opener = opener
        self._state = state
        self.scenarios: list[dict[str, Any]] = []
        self.failures: list[str] = []
        self._started = time.time()
        self._sentence = ""
        trials = options.folder / TRIALS_FILE
        self.file = TrialFile(trials)
        self.earlier: list[Trial] = read_trials(trials) if trials.stat().st_size else []
        self.environment = Environment()
        self._lock: MachineLock | None = None
        self._journal: Journal | None = None
        self._testbeds: list[Testbed] = []

    def open(self) -> None:
        """Take the machine and set the testbed up."""
        self.take()
        try:
            self.use(lambda journal: self._opener(self.config, journal))
        except BaseException:
            self.close()
            raise

    def take(self) -> None:
        """Take the machine and undo what killed runs left."""
        self._lock = MachineLock.acquire(self._state, self.options.wait)
        try:
            for sentence in recover_stale(self._state):
                self.observer.said(sentence)
            self._journal = Journal.begin(self._state)
        except BaseException:
            self.close()
            raise

    def use(self, opener: Callable[[Journal], Testbed]) -> Testbed:
        """Set a testbed up beside those that are open; each boot of a SUT is one."""
        testbed = self.begin(opener)
        self.ready(testbed)
        return testbed

    def begin(self, opener: Callable[[Journal], Testbed]) -> Testbed:
        """Begin to set a testbed up; its SUT may still be coming up, see `ready`."""
        if self._journal is None:
            raise TestbedError("the machine is not taken; begin with the keyword Open Testbed")
        testbed: Testbed | None = None
        try:
            testbed = opener(self._journal)
            self._testbeds.append(testbed)
        except BaseException as error:
            # An interruption may come when the testbed is made and not yet ours to close.
            if testbed is None and not isinstance(error, Exception):
                self._journal.undo()
            raise
        return testbed

    def ready(self, testbed: Testbed, introduce: bool = True) -> None:
        """Wait until a testbed's SUT is up, and say what it is."""
        if isinstance(testbed, Booting):
            testbed.ready()
        self.environment = testbed.environment()
        self._sentence = testbed.sentence()
        if introduce:
            self.observer.said(f"testbed {self.config.name}: {self._sentence}")

    def leave(self) -> None:
        """Put all open testbeds back."""
        while self._testbeds:
            self._testbeds[-1].close()
            self._testbeds.pop()  # only now: what did not close is tried once more

    @property
    def testbed(self) -> Testbed:
        """The testbed that was opened last."""
        if not self._testbeds:
            raise TestbedError("no testbed is open; begin with the keyword Open Testbed")
        return self._testbeds[-1]

    def record(self, entry: dict[str, Any]) -> None:
        """Add a scenario's entry, in place of an earlier one of the same name, and write result.json."""
        self.scenarios = [other for other in self.scenarios if other["name"] != entry["name"]] + [entry]
        self.write()

    def fail(self, reason: str) -> None:
        """Note that something failed before a scenario could be measured: the run is an ERROR, or worse."""
        self.failures.append(reason)
        self.write()

    def write(self, finished: bool = False) -> None:
        """Write result.json with what is known by now."""
        found = [(Verdict(entry["verdict"]), str(entry["reason"])) for entry in self.scenarios]
        found += [(Verdict.ERROR, reason) for reason in self.failures]
        verdict = gravest(each for each, _ in found)
        reasons = [reason for each, reason in found if each is verdict]
        result = {
            "schema": OLDEST,
            "pdrgate": __version__,
            "run": self.options.folder.name,
            "started": self._started,
            "finished": time.time() if finished else None,
            "profile": self.options.profile.name,
            "testbed": {
                "name": self.config.name,
                "kind": self.config.kind,
                "source": str(self.config.source),
                "sentence": self._sentence,
            },
            "environment": self.environment.to_dict(),
            "verdict": verdict,
            "reason": reasons[0] if reasons else "nothing was measured",
            "scenarios": self.scenarios,
        }
        # Entries are still of schema 1.
        write_result(self.options.folder / RESULT_FILE, msgspec.convert(upgraded(result), RunResult))

    def close(self) -> None:
        """Put everything back and let the next run begin; may be called twice."""
        try:
            self.leave()
            if self._journal is not None:
                self._journal.close()
                self._journal = None
        finally:
            self.file.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
