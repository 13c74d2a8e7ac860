"""Signals at several moments of a run with a simulated SUT: what is said, and what the exit code is."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pdrgate.this_process.interruption import ECHOES_WITHIN
from tests.acceptance.conftest import ROOT, Started, started

SUITE = f"""\
*** Settings ***
Resource          {ROOT}/resources/gate.resource
Suite Setup       The Testbed Is Open


*** Test Cases ***
Measures
    Measure Load    100 kpps    100 ms

Waits
    Measure Load    200 kpps    100 ms
    Sleep    10 min
"""
OTHERS = ("Second signal", "Execution", "forcefully", "Traceback", "KeyboardInterrupt", "Robot ended")


def begun(place: Path) -> Started:
    """A run that waits in its second test, and has told what the first came to."""
    suite = place / "mine.robot"
    suite.write_text(SUITE)
    options = (
        "gate",
        "--verbose",  # trials have a line each
        "--output",
        str(place / "results"),
        "--profile",
        "smoke",
        "--scenario",
        "all",
        "--suite",
        str(suite),
    )
    run = started([*options], place, simulation={})
    run.until_told("load +200 kpps")
    return run


@pytest.mark.parametrize(
    ("number", "told", "again"),
    [
        (signal.SIGINT, "", "Ctrl-C"),
        (signal.SIGTERM, " (SIGTERM)", f"SIGTERM more than {ECHOES_WITHIN:g} s later"),
        (signal.SIGHUP, " (SIGHUP)", "Ctrl-C"),
    ],
)
def test_after_a_verdict_it_is_an_interruption_all_the_same(
    tmp_path: Path, number: signal.Signals, told: str, again: str
) -> None:
    run = begun(tmp_path)
    run.send_signal(number)
    assert run.code() == 128 + number, run.told
    (folder,) = (path for path in (tmp_path / "results").iterdir() if path.is_dir() and not path.is_symlink())
    what = "what was changed is put back first"
    assert f"pdrgate: stopping{told}: {what}; a second {again} ends it at once\n" in run.told
    assert f"continue with: --resume {folder}" in run.told
    assert not [word for word in OTHERS if word in run.told], run.told


@pytest.mark.parametrize(
    ("number", "second"),
    [
        (signal.SIGINT, signal.SIGINT),
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGTERM, signal.SIGINT),
        (signal.SIGHUP, signal.SIGHUP),
    ],
)
def test_a_second_one_changes_nothing_of_how_it_ends(
    tmp_path: Path, number: signal.Signals, second: signal.Signals
) -> None:
    run = begun(tmp_path)
    run.send_signal(number)
    run.until_told("stopping")
    run.send_signal(second)
    assert run.code() == 128 + number, run.told
    assert "--resume" in run.told
    assert not [word for word in OTHERS if word in run.told], run.told


INTERRUPTED = """
import os
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == "pdrgate.cli":
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Interrupted())
from pdrgate.__main__ import begin
code = begin()
os.kill(os.getpid(), int(sys.argv[1]))  # a second one, while Python ends
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("number", "told"), [(signal.SIGINT, ""), (signal.SIGTERM, " (SIGTERM)"), (signal.SIGHUP, " (SIGHUP)")]
)
def test_while_the_command_is_imported(tmp_path: Path, number: signal.Signals, told: str) -> None:
    done = subprocess.run(
        (sys.executable, "-c", INTERRUPTED, str(int(number))),
        capture_output=True, text=True, check=False, cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "libraries")},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", f"pdrgate: interrupted{told}\n")
