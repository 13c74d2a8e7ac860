"""Whole runs that end badly: killed, interrupted, two at once. What is left, and what the next start makes of it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pdrgate.gate.run.options import Options
from pdrgate.gate.run.progress import Progress, RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.session import Session
from pdrgate.history.results import read_result
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.recovery import recover_stale
from pdrgate.stability import read_trials
from pdrgate.testbeds import load_testbed
from pdrgate.values.errors import EXIT_FAULT

pytestmark = pytest.mark.datapath

ROOT = Path(__file__).parents[2]
LOCAL = ROOT / "resources" / "testbeds" / "local-netns.yaml"
BUFFER = 777
TRIALS = 3

SCRIPT = f"""
import sys
from pathlib import Path
from pdrgate.values.errors import PdrGateError
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.progress import RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.gate.run.session import Session
from pdrgate.measurands import Ask
from pdrgate.record.phase import Phase
from pdrgate.testbeds import load_testbed

class Teller(RunObserver):
    def said(self, sentence):
        print("said", sentence, flush=True)

    def measured(self, progress):
        print("measured", progress.number, flush=True)

def main(folder, state, load):
    options = Options(profile="quick")
    record = RunRecord(Path(folder), "quick")
    with Session(load_testbed({str(LOCAL)!r}), options, record, Teller(), state=Path(state)) as session:
        subject = ScenarioRun(session, Scenario(buffer={BUFFER}))
        try:
            subject.prepare()
            for _ in range({TRIALS}):
                subject.sut.measure(Ask(20e3, 0.1, Phase.LOAD))
            print("worker", subject.sut._traffic.generator.pid, flush=True)
            subject.sut.measure(Ask(float(load), 60.0, Phase.LOAD))
        finally:
            subject.finish()

try:
    main(*sys.argv[1:])
except KeyboardInterrupt:
    sys.exit(130)
except PdrGateError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


class Watcher(RunObserver):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def said(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def measured(self, progress: Progress) -> None:
        raise AssertionError("nothing was to be measured")


class Child:
    """A run in a process of its own."""

    def __init__(self, folder: Path, state: Path, load: str) -> None:
        self.process = subprocess.Popen(
            (sys.executable, "-c", SCRIPT, str(folder), str(state), load),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "libraries")},
        )  # fmt: skip
        self.worker = 0

    def until_in_a_trial(self) -> None:
        """Wait for the start of the long trial; then a little, for its traffic to flow."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("worker"):
                self.worker = int(line.split()[1])
                break
        else:
            pytest.fail(f"the run ended early: {self.process.communicate()[1]}")
        assert not select.select([self.process.stdout], [], [], 0.3)[0]

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal and wait; exit code and what was said on stderr."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@pytest.fixture
def start(machine: None, tmp_path: Path) -> Iterator[Callable[..., Child]]:
    children: list[Child] = []

    def start(name: str = "run", load: str = "20e3") -> Child:
        children.append(Child(tmp_path / name, tmp_path / "state", load))
        return children[-1]

    yield start
    for child in children:
        child.process.kill()
        child.process.communicate()
    recover_stale(tmp_path / "state")  # only after a test that failed is there anything


def gone(pid: int) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 10)[0])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("load", ["20e3", "3e6"])
def test_sigkill_in_a_trial_loses_nothing_and_the_next_start_cleans_up(
    start: Callable[..., Child], tmp_path: Path, load: str, state_of_machine: Callable[[], dict[str, object]]
) -> None:
    before = state_of_machine()
    child = start(load=load)
    child.until_in_a_trial()
    assert child.end(signal.SIGKILL)[0] == -9
    assert gone(child.worker)
    left = state_of_machine()
    assert left["backlog"] == str(BUFFER)
    assert left["namespaces"] != before["namespaces"]

    trials = tmp_path / "run" / "trials.jsonl"
    assert trials.read_bytes().endswith(b"\n")
    measured = read_trials(trials)
    assert [(trial.intended, trial.occasion.phase) for trial in measured] == [(2000, "load")] * TRIALS

    watcher = Watcher()
    options = Options(profile="quick")
    record = RunRecord(tmp_path / "run", "quick", resume=True)
    with Session(load_testbed(LOCAL), options, record, watcher, state=tmp_path / "state"):
        by = f"(left by the killed run of pid {child.process.pid})"
        told = [sentence for sentence in watcher.sentences if sentence.endswith(by)]
        assert f"put back net.core.netdev_max_backlog = {before['backlog']} on local {by}" in told
        assert sum(sentence.startswith("deleted namespace pdrgate-") for sentence in told) == 4
        cpu = plan_cpus(None, None).sut[0]
        nice = before["nice"][f"ksoftirqd/{cpu}"]  # type: ignore[index]
        assert f"put back nice value of ksoftirqd/{cpu} = {nice} on local {by}" in told
        assert list(record.earlier.all) == measured
    assert state_of_machine() == before
    assert not list((tmp_path / "state").glob("run-*"))


@pytest.mark.parametrize("load", ["20e3", "3e6"])
def test_ctrl_c_in_a_trial_leaves_nothing(
    start: Callable[..., Child], tmp_path: Path, load: str, state_of_machine: Callable[[], dict[str, object]]
) -> None:
    before = state_of_machine()
    child = start(load=load)
    child.until_in_a_trial()
    assert child.end(signal.SIGINT) == (130, "")
    assert gone(child.worker)
    assert state_of_machine() == before
    assert not list((tmp_path / "state").glob("run-*"))
    assert len(read_trials(tmp_path / "run" / "trials.jsonl")) == TRIALS
    result = read_result(tmp_path / "run")
    assert (result.verdict, result.scenarios[0].trials) == ("ERROR", TRIALS)


def test_ctrl_c_while_the_testbed_is_set_up_leaves_nothing(
    start: Callable[..., Child], tmp_path: Path, state_of_machine: Callable[[], dict[str, object]]
) -> None:
    before = state_of_machine()
    journals = tmp_path / "state"
    for lines in (1, 3, 6):  # so many changes are noted when it comes
        child = start(f"run-{lines}")
        while child.process.poll() is None:
            noted = [path.read_bytes().count(b"\n") for path in journals.glob("run-*.jsonl")]
            if noted and max(noted) >= lines:
                break
            time.sleep(0.001)
        code, said = child.end(signal.SIGINT)
        assert (code, said) == (130, "")
        assert state_of_machine() == before
        # Where it came before the run had its journal, an empty one is left, and says nothing.
        assert recover_stale(journals) == []
        assert not list(journals.glob("run-*"))


def test_two_runs_at_once(start: Callable[..., Child], tmp_path: Path) -> None:
    first = start("first")
    first.until_in_a_trial()
    second = start("second")
    _, said = second.process.communicate(timeout=60)
    assert second.process.returncode == EXIT_FAULT
    (line,) = said.splitlines()
    assert f" is in use by another pdrgate run (pid {first.process.pid}, since " in line
    assert "; wait for it to end (--wait 1h), or give this testbed other CPUs" in line
    assert first.end(signal.SIGINT)[0] == 130
