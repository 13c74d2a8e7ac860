"""Kernels for arm64 in guests of their own kind, on a machine of another architecture: the gate as a user starts it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pdrgate.builds.architecture import ARM64, X86_64
from pdrgate.history.results import read_result
from pdrgate.results.merging import architecture_of
from pdrgate.results.verdict import Verdict

CHECKOUT = Path(__file__).parents[2]
LACKING = [one for one in (ARM64.qemu, ARM64.compiler, "apt-get") if shutil.which(one) is None]

pytestmark = [
    pytest.mark.guest, pytest.mark.usefixtures("capable", "nothing_left_by_runs"),
    pytest.mark.skipif(bool(LACKING), reason=f"not installed: {', '.join(LACKING)}; ci/bootstrap --arch arm64"),
]  # fmt: skip


def _gate(output: Path, name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Gate a kernel against itself on one path."""
    done = subprocess.run(
        [sys.executable, "-m", "pdrgate.cli", "gate", "--kernel", name, "--against", name, *options,
         "--scenario", "path-ipv4-routing", "--wait", "900 s", "--output", str(output)],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT / "libraries")}, capture_output=True, text=True, check=False,
        timeout=1500,
    )  # fmt: skip
    if any(words in done.stderr for words in ("apt-get cannot fetch", "apt-get download failed", "need programs of")):
        pytest.skip(f"no kernel for arm64 can be had: {done.stderr.splitlines()[-1]}")
    return done


def test_one_command_judges_two_architectures_with_a_column_for_each(tmp_path: Path) -> None:
    done = _gate(tmp_path, "trixie/linux-image-cloud-{arch}", "--arch", "amd64,arm64")
    (merged,) = tmp_path.glob("*-merged/merged.json")
    result = read_result(merged)
    assert result.verdict is Verdict.PASS, done.stdout + done.stderr
    assert result.reason.startswith("PASS on amd64, PASS on arm64; ")
    assert [architecture_of(one) for one in result.scenarios] == [X86_64.machine, ARM64.machine]
    assert ["path", "amd64", "arm64"] in [line.lower().split() for line in done.stdout.splitlines()]
    assert done.returncode == 0


def test_equal_kernels_for_arm64_pass_with_functions_and_named_lines(tmp_path: Path) -> None:
    done = _gate(tmp_path, f"trixie/{ARM64.kernel_package}")
    folders = [path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]
    assert len(folders) == 1, done.stderr
    result = read_result(folders[0])
    assert result.verdict is Verdict.PASS, done.stdout + done.stderr
    (scenario,) = result.scenarios
    found = scenario.findings
    assert found.environment["architecture"] == ARM64.machine
    assert (found.fingerprint["testbed_cpu"], found.fingerprint["testbed_boot"]) == ("neoverse-n1", "image")
    assert found.cost is not None
    assert found.memory is not None
    assert "ip_forward" in {one.name for one in found.cost.functions}
    assert {"skbuff_head_cache", "stacks", "pages"} <= {name for one in found.memory.functions for name in one.kinds}
    assert found.memory.missing == ()
