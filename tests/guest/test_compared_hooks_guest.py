"""Two programs of each hook compared in guests of constant speed: a slowed one is a REGRESSION, an equal one a PASS."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hook_programs import SOURCES, hook_program
from matrix_kernels import MATRIX

from pdrgate.history.results import read_result
from pdrgate.results.verdict import Verdict

CHECKOUT = Path(__file__).parents[2]
SLOWED = ("READS=40",)
LATER = {"netkit": MATRIX["6.12"][0]}
"""The kernel of kinds that the machine's own does not have."""

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("capable", "nothing_left_by_runs")]


def compared(folder: Path, kind: str, defines: Sequence[str]) -> Verdict:
    """The verdict on a program against the plain one of its kind."""
    folder.mkdir()
    baseline, candidate = (hook_program(folder, kind, name, of) for name, of in (("old", ()), ("new", defines)))
    done = subprocess.run(
        [
            sys.executable, "-m", "pdrgate.cli", "gate", "--bpf", f"{candidate}:counting", "--against",
            f"{baseline}:counting", "--testbed", str(CHECKOUT / "resources/testbeds/steady-guest.yaml"),
            *(("--kernel", LATER[kind]) if kind in LATER else ()),
            "--profile", "smoke", "--wait", "900 s", "--output", str(folder / "out"),
        ],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT / "libraries")}, capture_output=True, text=True, timeout=3000,
        check=False,
    )  # fmt: skip
    found = [one for one in (folder / "out").glob("*/result.json") if not one.parent.is_symlink()]
    assert len(found) == 1, done.stdout + done.stderr
    return read_result(found[0].parent).verdict


@pytest.mark.long
@pytest.mark.parametrize("kind", SOURCES)
def test_slowed_program_is_a_regression_and_its_equal_one_passes(kind: str, tmp_path: Path) -> None:
    assert compared(tmp_path / "slowed", kind, SLOWED) is Verdict.REGRESSION
    assert compared(tmp_path / "equal", kind, ("READS=1",)) is Verdict.PASS
