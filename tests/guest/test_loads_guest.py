"""Where a program loads is told of each kernel that is booted; one that cannot be is none that refuses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wrong_routers import RIGHT, router

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.cli import main

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("capable", "nothing_left_by_runs")]


def test_each_kernel_says_what_it_makes_of_a_program(
    cloud: KernelBuild, rt: KernelBuild, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = router(tmp_path, RIGHT, "right")
    words = ["loads", str(program), cloud.source, rt.source, "--output", str(tmp_path / "out"), "--wait", "900 s"]
    assert main([*words, "--format", "json"]) == 0
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    assert [(one["release"], one["loads"]) for one in kernels] == [(cloud.release, True), (rt.release, True)]
    # One version of the verifier looks at as much, whatever the kernel is otherwise.
    assert len({one["cost"]["verified"] for one in kernels}) == 1
