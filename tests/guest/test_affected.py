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
from pdrgate.builds.identity import build_identity
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.cli.affected import affected
from pdrgate.differences import code_differences as comparing
from pdrgate.differences.code_differences import CodeDifference
from pdrgate.differences.kernel_image import linked_kernel
from pdrgate.history.address import Address
from pdrgate.history.database.experience import Experience
from pdrgate.launch.described import described_tests
from pdrgate.record.path_code import PathCode

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
    found = comparing.code_differences(matrix_kernel, other)
    assert found.differ == (CodeDifference("function", "", "ip_forward", "changed"),)
    assert found.functions > 30_000
    assert found.variables > 15_000
    assert found.modules > 100
    assert found.missing == ()


def test_the_command_prints_values(tmp_path: Path) -> None:
    build = matrix_build("6.1")
    history = Address(file=tmp_path / "history.db")
    (nat,) = (one for one in described_tests(patterns=("path-nat",)) if one.name == "NAT")
    code = PathCode(frozenset(("ip_forward",)))
    Experience(history).add_path_codes(build_identity(build), {nat.scenario.name: code}, 1.0)
    done = CliRunner().invoke(affected, [build.source, build.source, "--history", history.text, "--format", "json"])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["differ"] == []
    assert {one["path"]: one["affected"] for one in printed["paths"]}["NAT"] is False
    assert sum(one["known"] for one in printed["paths"]) == 1
    assert printed["compared"]["functions"] > 30_000
