"""Ctrl-C in a keyword is an Exception of Robot's own: a real Robot run that is interrupted leaves nothing for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pdrgate.guests.emulator.qemu_threads import QemuThreads
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_ports import GuestPorts
from pdrgate.hosts.host import ShellHost
from pdrgate.safety.processes import ProcessId
from pdrgate.safety.recovery import recover_stale

LIBRARIES = Path(__file__).parents[2] / "libraries"
FAKES = Path(__file__).parents[1] / "fakes"

LIBRARY = """
import subprocess
import time
from pathlib import Path
from fake_testbed import CONFIG, FakeTestbed, Watcher
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.session import Session
from pdrgate.hosts.host import local_host
from pdrgate.knobs import KnobSet
from pdrgate.knobs.file_knob import FileKnob
from simulated_sut import Behaviour, IdealCurve, SimulatedSut

ROBOT_LIBRARY_SCOPE = "GLOBAL"

class Slow(FakeTestbed):
    def __init__(self, journal, root, where):
        super().__init__(SimulatedSut(IdealCurve(1e6), Behaviour(0.001), seed=1))
        self.knobs, self.root, self.where = KnobSet(journal), root, where
        with local_host() as host:
            self.knobs.apply(host, FileKnob(str(root / "setting"), "2"))
        self.process = journal.start(("sleep", "6081"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (root / "process").write_text(str(self.process.pid))
        self.wait_in("setup")

    def wait_in(self, where):
        if where == self.where:
            (self.root / "ready").touch()
            time.sleep(600)

    def close(self):
        self.wait_in("close")
        self.knobs.restore()
        self.process.kill()
        self.process.wait()

class interrupted:
    ROBOT_LIBRARY_SCOPE = "GLOBAL"

    def open_slowly(self, root, where):
        root = Path(root)
        options = Options(profile="quick")
        record = RunRecord(root / "run", "quick")
        self.run = Session(CONFIG, options, record, Watcher(), state=root / "state",
                       opener=lambda config, journal: Slow(journal, root, where))
        self.run.open()

    def close_slowly(self):
        self.run.close()
"""
SUITE = """
*** Settings ***
Library    interrupted.py

*** Test Cases ***
Opened And Closed
    Open Slowly    {root}    {where}
    Close Slowly
"""


@pytest.mark.parametrize("where", ["setup", "close"])
def test_a_robot_run_that_is_interrupted_leaves_nothing_for_good(tmp_path: Path, where: str) -> None:
    (tmp_path / "setting").write_text("1\n")
    (tmp_path / "interrupted.py").write_text(LIBRARY)
    (tmp_path / "suite.robot").write_text(SUITE.format(root=tmp_path, where=where))
    robot = subprocess.Popen(
        (sys.executable, "-m", "robot", "--output", "NONE", "--log", "NONE", "--report", "NONE", "suite.robot"),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": f"{LIBRARIES}:{FAKES}"},
    )  # fmt: skip
    try:
        while not (tmp_path / "ready").exists():
            assert robot.poll() is None, robot.communicate()[0]
            time.sleep(0.05)
        sleeper = ProcessId.of(int((tmp_path / "process").read_text()))
        assert sleeper is not None
        robot.send_signal(signal.SIGINT)
        said, _ = robot.communicate(timeout=120)
        assert "Execution terminated by signal" in said
    finally:
        robot.kill()
        robot.communicate()
    if where == "setup":
        assert not list((tmp_path / "state").glob("run-*"))
    else:
        assert len(recover_stale(tmp_path / "state")) == 2
    assert (tmp_path / "setting").read_text() == "1\n"
    assert not sleeper.alive
    assert recover_stale(tmp_path / "state") == []


class ExecutionFailedError(Exception):
    """Stands for Robot's ExecutionFailed."""


class _Interrupted(subprocess.Popen[bytes]):
    """A process that is interrupted while its end is waited for, once."""

    interrupted = False

    def wait(self, timeout: float | None = None) -> int:
        if not self.interrupted:
            self.interrupted = True
            raise ExecutionFailedError
        return super().wait(timeout)


def test_a_guest_is_ended_whatever_interrupts_its_close() -> None:
    with _Interrupted(("sleep", "600"), start_new_session=True) as process:
        guest = Guest.__new__(Guest)
        ShellHost.__init__(guest, "guest", ("sh",))
        guest._closed, guest._process = False, process  # type: ignore[assignment]
        guest.pid, guest._ports = process.pid, GuestPorts(())
        guest._threads = QemuThreads(process.pid, (), isolate=False, metered=False)
        guest.meter = guest.memory_meter = guest.sharing_meter = guest.memory = None
        with pytest.raises(ExecutionFailedError):
            guest.close()
        assert guest._closed
        assert process.returncode == -signal.SIGKILL


STARTED = """
import sys
from robot.run import run
from pdrgate.launch.stopping import Stopping

stopping = Stopping()
with stopping.watching():
    run("suite.robot", listener=[stopping, "interrupting"], output="NONE", log="NONE", report="NONE", console="none")
print(stopping.heard.count, stopping.heard.first)
"""
KEYWORD = """
*** Test Cases ***
Makes A File
    Evaluate    pathlib.Path("made").touch()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_robot_imports_listeners_is_heard(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "interrupting.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n")
    (tmp_path / "suite.robot").write_text(KEYWORD)
    (tmp_path / "start.py").write_text(STARTED)
    robot = subprocess.run(
        (sys.executable, "start.py"), cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": f"{LIBRARIES}:{tmp_path}"},
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )  # fmt: skip
    assert robot.stdout.splitlines()[-1] == f"1 {int(number)}"
    assert "Second signal" not in robot.stderr
    assert "pdrgate: stopping" in robot.stderr
    assert not (tmp_path / "made").exists()
