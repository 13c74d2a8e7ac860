"""What each kind of testbed can do, asked of the file's own values before anything is opened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pdrgate
from pdrgate.testbeds import LocalVm, load_testbed
from pdrgate.values.errors import TestbedError, UsageError

SHIPPED = Path(__file__).parents[2] / "resources/testbeds"
JOURNAL: Any = None
BUILD: Any = None


@pytest.mark.parametrize(
    ("file", "boots", "waits", "side_by_side", "here", "ssh"),
    [
        ("local-netns", False, False, True, True, False),
        ("local-vm", True, True, True, True, False),
        ("rack-trex", True, False, False, False, True),
    ],
)
def test_each_kind(file: str, boots: bool, waits: bool, side_by_side: bool, here: bool, ssh: bool) -> None:
    config = load_testbed(SHIPPED / f"{file}.yaml")
    assert (config.boots_builds, config.waits_for_build) == (boots, waits)
    assert (config.side_by_side, config.sut_is_here, config.over_ssh) == (side_by_side, here, ssh)


def test_a_kind_that_boots_nothing_says_so() -> None:
    config = load_testbed(SHIPPED / "local-netns.yaml")
    with pytest.raises(TestbedError, match=r"^testbed local-netns .* boots no kernels; use one of kind local-vm, such"):
        config.boot(BUILD, JOURNAL, SHIPPED, print)
    with pytest.raises(UsageError, match=r"^testbed local-netns .* boots no kernels; leave out --kernel$"):
        config.with_kernel("x.deb")


def test_a_guest_with_a_kernel_waits_for_none() -> None:
    config = load_testbed(SHIPPED / "local-vm.yaml")
    with pytest.raises(TestbedError, match=r"boots kernel builds, and none was named; write one as sut\.kernel in "):
        config.open(JOURNAL)
    named = config.with_kernel("linux-image-amd64")
    assert isinstance(named, LocalVm)
    assert (named.kernel, named.waits_for_build) == ("linux-image-amd64", False)


def test_numbers_that_yaml_takes_for_fractions_are_whole(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name: a\nkind: local-vm\ngenerator: {kind: embedded}\nsut: {vcpus: 2.0}\n")
    config = load_testbed(tmp_path / "x.yaml")
    assert isinstance(config, LocalVm)
    assert repr(config.vcpus) == "2"


def test_so_are_those_that_stand_deeper_in_the_file(tmp_path: Path) -> None:
    text = (SHIPPED / "rack-trex.yaml").read_text()
    text = text.replace("sync_port: 4501 ", "sync_port: 4502.0 ").replace("ports: [0, 1] ", "ports: [2.0, 3.0] ")
    (tmp_path / "x.yaml").write_text(text)
    generator = load_testbed(tmp_path / "x.yaml").generator
    assert generator.trex is not None
    assert repr((generator.trex.sync_port, generator.trex.ports)) == "(4502, (2, 3))"
    assert generator.ports == ("2", "3")


def test_reading_a_file_loads_nothing_that_opens_one() -> None:
    code = (
        f"import sys; from pdrgate.testbeds import load_testbed; load_testbed({str(SHIPPED / 'rack-trex.yaml')!r});"
        "names = ['paramiko', *(f'pdrgate.testbeds.{kind}.{kind}_testbed' for kind in ('netns', 'vm', 'rack'))];"
        "print([name for name in names if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(pdrgate.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
