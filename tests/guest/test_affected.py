"""Two real kernels of which one has one instruction changed: that function differs, and nothing else does."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
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
from pdrgate.differences.same_bytes import SameBytes
from pdrgate.gate.run.selection_file import code_key
from pdrgate.history.address import Address
from pdrgate.history.database.experience import Experience
from pdrgate.launch.described import described_tests
from pdrgate.record.path_code import PathCode
from pdrgate.testbeds import load_testbed
from pdrgate.this_process.own_files import found

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


def test_a_number_that_doubles_is_seen_wherever_it_stands(matrix_kernel: KernelBuild) -> None:
    """On 6.1 it once was not: small numbers were taken for addresses of per-CPU variables, which begin at 0 there."""
    image = linked_image(matrix_kernel.image)
    assert image is not None
    kernel = linked_kernel(image)
    assert kernel is not None
    content, random = np.array(kernel.content), Random(7)
    numbers = [
        place
        for place in kernel.variables.values()
        if place.size in (4, 8) and 4 <= int.from_bytes(kernel.bytes_of(place), "little") <= 100_000
    ]
    chosen = random.sample(numbers, 150)
    for place in chosen:
        doubled = 2 * int.from_bytes(kernel.bytes_of(place), "little")
        content[place.offset : place.offset + 4] = np.frombuffer(doubled.to_bytes(4, "little"), np.uint8)
    other = replace(kernel, content=content)
    seen = list(SameBytes(kernel, other, code=False).differing([(place, place) for place in chosen]))
    assert len(seen) == len(chosen)


def test_the_command_prints_values(tmp_path: Path) -> None:
    build = matrix_build("6.1")
    history = Address(file=tmp_path / "history.db")
    (nat,) = (one for one in described_tests(patterns=("path-nat",)) if one.name == "NAT")
    code = PathCode(frozenset(("ip_forward",)))
    config = load_testbed(found(Path("resources/testbeds/local-vm.yaml")))
    Experience(history).add_path_codes(code_key(build_identity(build), config), {nat.scenario.name: code}, 1.0)
    done = CliRunner().invoke(affected, [build.source, build.source, "--history", history.text, "--format", "json"])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["differ"] == []
    assert {one["path"]: one["affected"] for one in printed["paths"]}["NAT"] is False
    assert sum(one["known"] for one in printed["paths"]) == 1
    assert printed["compared"]["functions"] > 30_000
