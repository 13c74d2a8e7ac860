"""What a machine lacks is told at once, with all packages that bring it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pdrgate.builds.architecture import ARM64, X86_64
from pdrgate.testbeds import this_machine
from pdrgate.testbeds.this_machine import check_this_machine
from pdrgate.values.errors import TestbedError


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, on a machine without headers."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(this_machine.shutil, "which", lambda name, path: (tmp_path / name).exists() or None)
    monkeypatch.setattr(
        this_machine,
        "_NAMED_BESIDE",
        {"gcc": "gcc", "clang": "clang", str(tmp_path / "stdio.h"): "libc6-dev", str(tmp_path / "bpf.h"): "libbpf-dev"},
    )
    return tmp_path


def test_an_empty_machine_is_told_all_of_it_in_one_line(tools: Path) -> None:
    with pytest.raises(TestbedError) as told:
        check_this_machine("steady-guest", "makes network namespaces", guests=X86_64)
    assert str(told.value).startswith("ip, ethtool, qemu-system-x86_64, busybox are not installed; run ")
    assert str(told.value).endswith(
        "apt-get install iproute2 ethtool qemu-system-x86 busybox-static gcc clang libc6-dev libbpf-dev lz4 zstd"
    )


def test_guests_of_another_architecture_take_their_emulator_and_a_compiler(tools: Path) -> None:
    for name in ("ip", "ethtool"):
        (tools / name).touch()
    with pytest.raises(TestbedError) as told:
        check_this_machine("local-vm", "makes network namespaces", guests=ARM64)
    said = str(told.value)
    assert said.startswith(
        "qemu-system-aarch64, aarch64-linux-gnu-gcc are not installed; run ./ci/bootstrap --arch arm64,"
    )
    assert "apt-get install qemu-system-arm gcc-aarch64-linux-gnu " in said


def test_what_only_compiles_is_no_fault_by_itself(tools: Path) -> None:
    for name in ("ip", "ethtool"):
        (tools / name).touch()
    check_this_machine("local-netns", "makes network namespaces")
    (tools / "ethtool").unlink()
    (tools / "gcc").touch()
    (tools / "stdio.h").touch()
    with pytest.raises(TestbedError, match=r"^ethtool is not installed; .*apt-get install ethtool clang libbpf-dev$"):
        check_this_machine("local-netns", "makes network namespaces")
