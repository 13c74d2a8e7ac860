"""Equal kernels of each series pass on a path of each kind: packets, transfers, several CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from matrix_kernels import MATRIX, matrix_build

from pdrgate.builds.kernel_build import BuildError, KernelBuild
from pdrgate.history.results import read_result
from pdrgate.results.verdict import Verdict

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("capable", "nothing_left_by_runs")]

CHECKOUT = Path(__file__).parents[2]
PATHS = {"path-ipv4-routing": "IPv4 Routing", "path-tcp-to-the-sut": "TCP To The SUT", "path-bridge": "A Bridge"}
ALWAYS = ("6.1", "7")
"""Series that every run of the tests takes; `ci/test --all` takes the others, too."""


@pytest.fixture(params=[pytest.param(one, marks=() if one in ALWAYS else pytest.mark.long) for one in MATRIX])
def kernel(request: pytest.FixtureRequest) -> KernelBuild:
    try:
        return matrix_build(request.param)
    except BuildError as error:
        pytest.skip(str(error))


def test_equal_kernels_pass_on_a_path_of_each_kind_and_nothing_stays_unknown(
    kernel: KernelBuild, tmp_path: Path
) -> None:
    chosen = [word for tag in PATHS for word in ("--scenario", tag)]
    done = subprocess.run(
        [sys.executable, "-m", "pdrgate.cli", "gate", "--kernel", kernel.source, "--against", kernel.source, *chosen,
         "--wait", "900 s", "--output", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT / "libraries")},
        capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    result = read_result(tmp_path / "latest")
    assert {one.origin.test for one in result.scenarios} == set(PATHS.values()), done.stdout + done.stderr
    for one in result.scenarios:
        # A busy machine may leave it open whether equal builds are equal; it never makes them differ.
        assert one.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE), f"{one.origin.test}: {one.reason}"
        assert one.details.unmeasured == ()
        assert one.details.uncounted == ""
    assert sum(one.verdict is Verdict.PASS for one in result.scenarios) >= 2
