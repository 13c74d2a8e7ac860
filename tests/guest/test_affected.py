"""Two real kernels of which one has one instruction changed: that function differs, and nothing else does."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from matrix_kernels import matrix_build

from pdrgate.builds.boot_image import linked_image
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.cli.affected import affected
from pdrgate.differences import code_differences as comparing
from pdrgate.differences.code_differences import CodeDifference, code_differences
from pdrgate.differences.kernel_image import linked_kernel

pytestmark = pytest.mark.guest


def test_one_changed_instruction_is_one_function_and_nothing_else_differs(
    matrix_kernel: KernelBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = linked_image(matrix_kernel.image)
    assert image is not None
    kernel = linked_kernel(image)
    assert kernel is not None
    place = kernel.functions["ip_forward", 0]
    changed = tmp_path / "changed.elf"
    shutil.copy(image, changed)
    with changed.open("r+b") as file:
        file.seek(place.offset + place.size // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 0x40]))
    other = replace(matrix_kernel, image=changed)
    monkeypatch.setattr(comparing, "linked_image", lambda of: changed if of == changed else linked_image(of))
    found = code_differences(matrix_kernel, other)
    assert found.differ == (CodeDifference("function", "", "ip_forward", "changed"),)
    assert found.functions > 30_000
    assert found.variables > 15_000
    assert found.modules > 100
    assert found.missing == ()


def test_the_command_prints_values() -> None:
    source = matrix_build("6.1").source
    done = CliRunner().invoke(affected, [source, source, "--format", "json"])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["differ"] == []
    assert printed["compared"]["functions"] > 30_000
