"""Starts the gate as a user would, in a process of its own."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from known_noise import DAY, observed, spread

from pdrgate.history.address import Address
from pdrgate.history.database.experience import Experience
from pdrgate.history.results import read_result
from pdrgate.reports.words.headline import headline
from pdrgate.results.fingerprint import series
from tests.acceptance.forked_runs import Asked

ROOT = Path(__file__).parents[2]
PDRGATE = Path(sys.executable).parent / "pdrgate"
_PATIENCE = 900
"""Seconds; no run takes that long."""


@dataclass(frozen=True)
class Ended:
    """A run that ended, and what it left."""

    code: int
    stdout: str
    stderr: str
    folder: Path | None

    @property
    def result(self) -> dict[str, Any]:
        assert self.folder is not None, self.stdout + self.stderr
        loaded: dict[str, Any] = json.loads((self.folder / "result.json").read_text())
        return loaded

    @property
    def headline(self) -> str:
        """The first line of the console and of every report."""
        assert self.folder is not None, self.stdout + self.stderr
        return headline(read_result(self.folder / "result.json"))

    @property
    def robot_messages(self) -> dict[str, tuple[str, str]]:
        """By test, status and message in output.xml."""
        assert self.folder is not None
        tests = ElementTree.parse(self.folder / "output.xml").iter("test")
        statuses = {str(test.get("name")): test.find("status") for test in tests}
        return {name: (str(s.get("status")), (s.text or "").strip()) for name, s in statuses.items() if s is not None}

    @property
    def xunit_failures(self) -> list[str]:
        assert self.folder is not None
        cases = ElementTree.parse(self.folder / "xunit.xml").iter("testcase")
        return [str(fault.get("message")) for case in cases for fault in case if fault.tag in ("failure", "error")]

    @property
    def xunit_tags(self) -> list[str]:
        """What failed of a build, and what of testbed or tool."""
        assert self.folder is not None
        faults = ElementTree.parse(self.folder / "xunit.xml").iter()
        return [fault.tag for fault in faults if fault.tag in ("failure", "error")]

    @property
    def allure_statuses(self) -> list[tuple[str, str]]:
        assert self.folder is not None
        results = [json.loads(file.read_text()) for file in self.folder.glob("allure-results/*-result.json")]
        return [(entry["status"], entry.get("statusDetails", {}).get("trace", "")) for entry in results]


def run(command: list[str], output: Path, cwd: Path = ROOT, timeout: float = _PATIENCE) -> Ended:
    """A run of the command, started as a user starts it."""
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False,
        env=_environment(),
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr, _last_folder(output))


def forked(arguments: list[str], output: Path, cwd: Path = ROOT, simulation: dict[str, Any] | None = None) -> Ended:
    """A run of pdrgate with these arguments, in a process forked from one that has imported it."""
    with tempfile.TemporaryDirectory() as place:
        begun = started(arguments, Path(place), cwd, simulation)
        return Ended(begun.code(), begun.stdout.read_text(), begun.stderr.read_text(), _last_folder(output))


@dataclass(frozen=True)
class Started:
    """A run that is under way, in a process forked from one that has imported pdrgate."""

    pid: int
    stdout: Path
    stderr: Path

    @property
    def told(self) -> str:
        """All that it has told so far."""
        return self.stdout.read_text() + self.stderr.read_text()

    def until_told(self, pattern: str) -> None:
        """Wait until it has told that; a test fails whose run ends without."""
        process = os.pidfd_open(self.pid)
        ended = False
        try:
            while not re.search(pattern, self.told, re.MULTILINE):
                if ended:
                    pytest.fail(f"nothing like {pattern} in:\n{self.told}")
                ended = bool(select.select([process], [], [], 0.02)[0])
        finally:
            os.close(process)

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def code(self) -> int:
        """Its exit code, once it has ended; to be asked once."""
        return _forks().code_of(self.pid)


def started(
    arguments: list[str],
    place: Path,
    cwd: Path = ROOT,
    simulation: dict[str, Any] | None = None,
    patience: float | None = None,
) -> Started:
    """The same as `forked`, and it goes on; what it tells is in files at ``place``. ``patience`` is that of `Asked`."""
    stdout, stderr = place / "stdout", place / "stderr"
    for path in (stdout, stderr):
        path.touch()
    asked = Asked(arguments, simulation, str(cwd), _environment(), str(stdout), str(stderr), _PATIENCE, patience)
    return Started(_forks().start(asked), stdout, stderr)


def simulated(folder: Path, *options: str, cwd: Path = ROOT, command: str = "gate", **simulation: Any) -> Ended:
    """A run below ``folder`` with the command's options, and what the simulated SUT is like."""
    return forked([command, "--output", str(folder), *options], folder, cwd, simulation)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "libraries")}


def _last_folder(output: Path) -> Path | None:
    return max((path for path in output.glob("*") if path.is_dir() and not path.is_symlink()), default=None)


class _Forks:
    """A process that makes runs, see `forked_runs`; it ends with this one."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, ROOT / "tests/acceptance/forked_runs.py"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=_environment(),
        )  # fmt: skip

    def start(self, asked: Asked) -> int:
        """The process id of its run."""
        return self._answer(dataclasses.asdict(asked))

    def code_of(self, pid: int) -> int:
        """The exit code of a run, once it has ended."""
        return self._answer(pid)

    def _answer(self, told: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(told), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


@functools.cache
def _forks() -> _Forks:
    return _Forks()


@pytest.fixture
def boots_are_known(tmp_path: Path):
    """Call with a run that ended: later runs read of its testbed that boots deviate by 0.1 %."""

    def know(ended: Ended, output: str = "results") -> None:
        for scenario in ended.result["scenarios"]:
            for day in range(16):
                seen = observed(spread(0.001), when=time.time() - day * DAY)
                Experience(Address.beside(tmp_path / output)).add_observation(series(scenario["fingerprint"]), {}, seen)

    return know


@pytest.fixture
def simulated_gate(tmp_path: Path):
    """Call with gate options and what the simulated SUT is like; each call makes one run below its own output."""

    def start(*options: str, output: str = "results", cwd: Path = ROOT, **simulation: Any) -> Ended:
        return simulated(tmp_path / output, *options, cwd=cwd, **simulation)

    return start


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run without options of a SUT that is as simulated ones are; for tests that leave it as it is."""
    return simulated(tmp_path_factory.mktemp("first"))
