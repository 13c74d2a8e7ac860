"""What all tests with guests share: kernels of the distribution, the machine to themselves, and nothing left behind."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pdrgate.builds.kernel_build import BuildError, KernelBuild, kernel_build
from pdrgate.guests.guest import Guest, GuestConfig
from pdrgate.guests.qemu import PROGRAM
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal, MachineLock
from pdrgate.testbeds.vm import VmTestbed

LOCK_WAIT = 600.0
CLOUD = "linux-image-cloud-amd64"
PLAIN = "linux-image-amd64"
RT = "linux-image-rt-amd64"
GUEST_DEADLINE = 180.0
"""For guests that must come up: how long that takes is no matter of these tests."""


def our_leftovers() -> dict[str, list[str]]:
    """Our guests and namespaces on this machine."""
    guests = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(PROGRAM.encode()) and b"pdrgate,debug-threads=on" in words:
            guests.append(path.parent.name)
    namespaces = [p.name for p in Path("/run/netns").glob("*") if re.fullmatch(r"pdrgate-[0-9a-f]{6}-tg", p.name)]
    return {"guests": sorted(guests), "namespaces": sorted(namespaces)}


@pytest.fixture(scope="module")
def capable() -> None:
    """This machine can run guests; the test is skipped where it cannot."""
    if os.geteuid() != 0:
        pytest.skip("guests with TAPs take root: run with sudo")
    for tool in (PROGRAM, "busybox", "ethtool", "setpriv"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    made = subprocess.run(("ip", "netns", "add", "pdrgate-t-guest"), capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no namespace can be made here: {made.stderr.strip()}")
    subprocess.run(("ip", "netns", "delete", "pdrgate-t-guest"), check=True)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Whatever happens in the test, no guest and no namespace stays."""
    before = our_leftovers()
    yield
    assert our_leftovers() == before


@pytest.fixture
def nothing_left_by_runs() -> Iterator[None]:
    """The same for a test whose runs take the machine by themselves, while nobody else has it."""
    with MachineLock.acquire(wait=LOCK_WAIT):
        before = our_leftovers()
    yield
    with MachineLock.acquire(wait=LOCK_WAIT):
        assert our_leftovers() == before


@pytest.fixture(scope="module")
def machine(capable: None) -> Iterator[None]:
    """The machine for ourselves; at the end it must be as it was."""
    with MachineLock.acquire(wait=LOCK_WAIT):
        before = our_leftovers()
        yield
        assert our_leftovers() == before


def _package(name: str) -> KernelBuild:
    try:
        return kernel_build(name)
    except BuildError as error:
        # The archive may be out of reach, or be Ubuntu's, which calls its kernels otherwise.
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def cloud() -> KernelBuild:
    """The small kernel: no 9p, LZ4, half the modules."""
    return _package(CLOUD)


@pytest.fixture(scope="session")
def plain() -> KernelBuild:
    return _package(PLAIN)


@pytest.fixture(scope="session")
def rt() -> KernelBuild:
    """The same version with PREEMPT_RT, which routes more slowly."""
    return _package(RT)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal.begin(tmp_path / "state")
    yield journal
    journal.close()


@pytest.fixture
def config() -> GuestConfig:
    return GuestConfig(cpus=plan_cpus(None, None).sut, accelerator="tcg")


@pytest.fixture
def make_testbed(machine: None, journal: Journal, config: GuestConfig, tmp_path: Path):
    """Makes testbeds, which end with the test."""
    made: list[VmTestbed] = []

    def make(build: KernelBuild, **options: object) -> VmTestbed:
        options = {"machine": config, "deadline": GUEST_DEADLINE} | options
        testbed = VmTestbed(build, plan_cpus(None, None), journal, tmp_path / "consoles", **options)  # type: ignore[arg-type]
        made.append(testbed)
        return testbed.ready()

    yield make
    for testbed in made:
        testbed.close()


@pytest.fixture(scope="session")
def left_behind() -> Callable[[], dict[str, list[str]]]:
    """Tells our guests and namespaces on this machine."""
    return our_leftovers


@pytest.fixture
def boot(journal, config, tmp_path):
    """Boots builds without ports; the guests end with the test."""
    made: list[Guest] = []

    def boot(build, deadline=GUEST_DEADLINE, **options):
        guest = Guest(build, dataclasses.replace(config, **options), journal, tmp_path / "consoles")
        made.append(guest)
        guest.wait(deadline)
        return guest

    yield boot
    for guest in made:
        guest.close()
