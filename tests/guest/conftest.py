"""What all tests with guests share: kernels of the distribution, the machine to themselves, and nothing left behind."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from matrix_kernels import MATRIX, matrix_build

from pdrgate.builds.architecture import ARCHITECTURES, X86_64
from pdrgate.builds.kernel_build import BuildError, KernelBuild, kernel_build
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds.vm.vm_testbed import VmTestbed

LOCK_WAIT = 600.0
QEMUS = tuple(one.qemu.encode() for one in ARCHITECTURES)
CLOUD = "linux-image-cloud-amd64"
PLAIN = "linux-image-amd64"
RT = "linux-image-rt-amd64"
_TRIES = 100
"""Tenths of a second."""
PATIENCE = 180.0
"""For guests that must come up: how long that takes is no matter of these tests."""


def our_leftovers() -> dict[str, list[str]]:
    """Our guests and namespaces on this machine; those of processes outside of this session are somebody else's."""
    parents = _parents()
    ours = {pid for pid in parents if os.getpid() in _ancestors(pid, parents)}
    guests, homes = [], defaultdict(set)
    for pid, parent in parents.items():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            homes[Path(f"/proc/{pid}/ns/net").stat().st_ino].add(pid)
        except OSError:
            continue
        orphan = parent not in parents or parent == 1
        if words[0].endswith(QEMUS) and b"pdrgate,debug-threads=on" in words and (pid in ours or orphan):
            guests.append(str(pid))
    namespaces = []
    for path in Path("/run/netns").glob("*"):
        with contextlib.suppress(OSError):
            if re.fullmatch(r"pdrgate-[0-9a-f]{6}-tg", path.name) and homes[path.stat().st_ino] <= ours:
                namespaces.append(path.name)
    return {"guests": sorted(guests), "namespaces": sorted(namespaces)}


def new_leftovers(before: dict[str, list[str]]) -> dict[str, set[str]]:
    """What of ours is there that was not before. Somebody else's namespace may be without a process for a moment."""
    for _ in range(_TRIES):
        new = {kind: found for kind, names in our_leftovers().items() if (found := set(names) - set(before[kind]))}
        if not new:
            break
        time.sleep(0.1)
    return new


def _parents() -> dict[int, int]:
    """All processes with their parents."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            found[int(path.parent.name)] = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
    return found


def _ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        yield pid
        pid = parents[pid]


@pytest.fixture(scope="module")
def capable() -> None:
    """This machine can run guests; the test is skipped where it cannot."""
    if os.geteuid() != 0:
        pytest.skip("guests with TAPs take root: run with sudo")
    for tool in (X86_64.qemu, "busybox", "ethtool", "setpriv"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    name = f"t-guest-{os.getpid()}"  # of our own: another process of the tests asks the same
    made = subprocess.run(("ip", "netns", "add", name), capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no namespace can be made here: {made.stderr.strip()}")
    subprocess.run(("ip", "netns", "delete", name), check=True)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Whatever happens in the test, no guest and no namespace stays."""
    before = our_leftovers()
    yield
    assert new_leftovers(before) == {}


@pytest.fixture
def nothing_left_by_runs() -> Iterator[None]:
    """The same for a test whose runs take the machine by themselves, while nobody else has it."""
    with Lease.acquire(whole_machine(), wait=LOCK_WAIT):
        before = our_leftovers()
    yield
    with Lease.acquire(whole_machine(), wait=LOCK_WAIT):
        assert new_leftovers(before) == {}


@pytest.fixture(scope="module")
def booting(capable: None) -> Iterator[None]:
    """For guests that are booted and asked, beside whatever else the machine does; at the end none is left."""
    before = our_leftovers()
    yield
    assert new_leftovers(before) == {}


@pytest.fixture(scope="module")
def machine(capable: None) -> Iterator[None]:
    """The machine for ourselves; at the end it must be as it was."""
    with Lease.acquire(whole_machine(), wait=LOCK_WAIT):
        before = our_leftovers()
        yield
        assert new_leftovers(before) == {}


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


@pytest.fixture(scope="session", params=MATRIX)
def matrix_kernel(request: pytest.FixtureRequest) -> KernelBuild:
    """Each kernel of the matrix in turn: 6.1, 6.12, 6.18 and the newest 7.x. One that cannot be had is skipped."""
    try:
        return matrix_build(request.param)
    except BuildError as error:
        pytest.skip(str(error))


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal.begin(tmp_path / "state")
    yield journal
    journal.close()


@pytest.fixture(scope="session")
def config() -> GuestConfig:
    """Of guests on which nothing is measured: they come after those on which others do, not on the CPU that those have,
    and boot where there is room, as those of runs do."""
    cpus = plan_cpus(None, None)
    return GuestConfig(cpus=(cpus.generator,), accelerator="tcg", isolate=False, boot_cpus=(cpus.generator, *cpus.sut))


@pytest.fixture
def boot_testbed(
    booting: None, journal: Journal, config: GuestConfig, tmp_path: Path
) -> Iterator[Callable[..., VmTestbed]]:
    """Makes testbeds on which nothing is measured; they end with the test."""
    made: list[VmTestbed] = []

    def boot(build: KernelBuild, **options: object) -> VmTestbed:
        options = {"machine": config, "patience": PATIENCE} | options
        testbed = VmTestbed(build, plan_cpus(None, None), journal, tmp_path / "consoles", **options)  # type: ignore[arg-type]
        made.append(testbed)
        return testbed.ready()

    yield boot
    for testbed in made:
        testbed.close()


@pytest.fixture(scope="module")
def shared_testbed(booting: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., VmTestbed]]:
    """A testbed of a build, booted once for all tests of a module that put back what they change."""
    folder = tmp_path_factory.mktemp("shared")
    cpus = plan_cpus(None, None)
    made: dict[tuple[str, bool], VmTestbed] = {}

    def shared(build: KernelBuild, metered: bool = False) -> VmTestbed:
        if (build.name, metered) not in made:
            config = GuestConfig(cpus=cpus.sut, accelerator="tcg", metered=metered)
            testbed = VmTestbed(build, cpus, journal, folder / "consoles", machine=config, patience=PATIENCE)
            made[build.name, metered] = testbed.ready()
        return made[build.name, metered]

    with Journal.begin(folder / "state") as journal:
        yield shared
        for testbed in made.values():
            testbed.close()


@pytest.fixture(scope="session")
def left_behind() -> Callable[[], dict[str, list[str]]]:
    """Tells our guests and namespaces on this machine."""
    return our_leftovers


@pytest.fixture(scope="session")
def newly_left() -> Callable[[dict[str, list[str]]], dict[str, set[str]]]:
    """Tells what of ours is there that was not before; given what `left_behind` told then."""
    return new_leftovers


@pytest.fixture
def boot(journal, config, tmp_path):
    """Boots builds without ports; the guests end with the test."""
    made: list[Guest] = []

    def boot(build, patience=PATIENCE, **options):
        guest = Guest(build, dataclasses.replace(config, **options), journal, tmp_path / "consoles")
        made.append(guest)
        guest.wait(patience)
        return guest

    yield boot
    for guest in made:
        guest.close()
