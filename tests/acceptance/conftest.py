"""Starts the gate as a user would, in a process of its own."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from known_noise import observed, spread

from pdrgate.history.noise_file import NOISE_FILE, NoiseFile
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
        told = {name: Path(place) / name for name in ("stdout", "stderr")}
        _forks().start(Asked(arguments, simulation, str(cwd), _environment(), *map(str, told.values()), _PATIENCE))
        code = _forks().code()
        return Ended(code, *(path.read_text() for path in told.values()), _last_folder(output))


class Running:
    """A run as of `forked` that goes on, and whose lines can be waited for; one at a time.

    Args:
        folder: where the pipe of its lines is made.
        patience: as in `Asked`.
    """

    def __init__(self, arguments: list[str], folder: Path, patience: float | None = None) -> None:
        pipe = folder / "lines"
        os.mkfifo(pipe)
        self.pid = _forks().start(
            Asked(arguments, None, str(ROOT), _environment(), str(pipe), str(pipe), _PATIENCE, patience)
        )
        self._lines = pipe.open()
        self._said: list[str] = []

    def until(self, pattern: str) -> None:
        for line in self._lines:
            self._said.append(line)
            if re.search(pattern, line):
                return
        pytest.fail(f"no line like {pattern} in:\n{''.join(self._said)}")

    def end(self) -> tuple[int, str]:
        """Its exit code, and all that it said."""
        with self._lines:
            self._said += self._lines
        return _forks().code(), "".join(self._said)


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
        self._running: int | None = None

    def start(self, asked: Asked) -> int:
        """The process id of a run; the one before, if its test has failed to wait for it, is killed."""
        assert self._process.stdin is not None
        if self._running is not None:
            os.kill(self._running, signal.SIGKILL)
            self.code()
        print(json.dumps(dataclasses.asdict(asked)), file=self._process.stdin, flush=True)
        self._running = self._answer()
        return self._running

    def code(self) -> int:
        """The exit code of the run, once it has ended."""
        code, self._running = self._answer(), None
        return code

    def _answer(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@functools.cache
def _forks() -> _Forks:
    return _Forks()


@pytest.fixture
def boots_are_known(tmp_path: Path):
    """Call with a run that ended: later runs read of its testbed that boots deviate by 0.1 %."""

    def know(ended: Ended, output: str = "results") -> None:
        for scenario in ended.result["scenarios"]:
            seen = observed(spread(0.001), when=time.time())
            NoiseFile(tmp_path / output / NOISE_FILE).add(series(scenario["fingerprint"]), {}, seen)

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
