"""A guest of two virtual CPUs, metered: what each of them executes is told by CPU, and by function of both."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering import VcpuMeter
from pdrgate.guests.metering.stacks import CallsObserver, observed_stacks
from pdrgate.guests.metering.symbols import read_symbols
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.record.stretch import USER_SPACE
from pdrgate.safety.journal import Journal

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

WORK = "dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null"
"""System calls, so that the kernel has something to do."""


@pytest.fixture(scope="module")
def guest(booting: None, cloud: KernelBuild, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    folder = tmp_path_factory.mktemp("two")
    config = GuestConfig(cpus=plan_cpus(None, None).sut, accelerator="tcg", metered=True, vcpus=2)
    with Journal.begin(folder / "state") as journal, Guest(cloud, config, journal, folder / "consoles") as guest:
        guest.wait(180.0)
        guest.count()
        yield guest


@pytest.fixture
def meter(guest: Guest) -> VcpuMeter:
    assert guest.meter is not None
    return guest.meter


def instructions(meter: VcpuMeter) -> list[int]:
    return [one.instructions for one in meter.counts()]


@pytest.mark.parametrize("cpu", [0, 1])
def test_work_that_is_pinned_to_a_cpu_is_told_by_its_head(guest: Guest, meter: VcpuMeter, cpu: int) -> None:
    blocks = [meter.executed_by(one) for one in meter.cpus]
    before = instructions(meter)
    guest.run("taskset", str(1 << cpu), "sh", "-c", WORK, timeout=120.0)
    here, there = (instructions(meter)[one] - before[one] for one in (cpu, 1 - cpu))
    assert here > 100_000_000
    assert here > 5 * there
    kernel = [
        int((ran.length * ran.executions)[ran.address != 0].sum())
        for ran in (meter.executed_by(one).since(blocks[one]) for one in meter.cpus)
    ]
    assert kernel[cpu] > 5 * kernel[1 - cpu]


def test_functions_add_up_to_what_both_cpus_executed(guest: Guest, meter: VcpuMeter) -> None:
    symbols = read_symbols(guest, guest.build.image)
    with guest.start("sh", "-c", f"taskset 1 sh -c '{WORK}' & taskset 2 sh -c '{WORK}'; wait; sleep 60"):
        time.sleep(0.2)
        before, outer = meter.executed(), instructions(meter)
        time.sleep(0.5)
        after = meter.executed()
        inner = instructions(meter)
        told = symbols.functions(after.since(before))
    # QEMU goes on while one is read after the other, for some milliseconds.
    executed = sum(inner) - sum(outer)
    assert sum(found for found, _ in told.values()) == pytest.approx(executed, rel=0.05)
    assert all(now > then for now, then in zip(inner, outer, strict=True))
    assert {USER_SPACE, "ksys_read", "ksys_write"} <= told.keys()


def test_counts_are_exact_when_both_cpus_have_nothing_to_do(guest: Guest, meter: VcpuMeter) -> None:
    """Two threads that wrote one count would lose some of each."""
    guest.run("sh", "-c", f"taskset 1 sh -c '{WORK}' & taskset 2 sh -c '{WORK}'; wait", timeout=120.0)
    for _ in range(200):
        meter.rest(1.0)
        first, told, then = instructions(meter), meter.executed(), instructions(meter)
        if first == then:
            break
    assert first == then
    assert int((told.length * told.executions).sum()) == sum(then)


def test_calls_are_followed_on_both_cpus(guest: Guest, meter: VcpuMeter) -> None:
    observer = CallsObserver(meter, read_symbols(guest, guest.build.image), observed_stacks)
    observer.begin()
    guest.run("sh", "-c", f"taskset 1 sh -c '{WORK}' & taskset 2 sh -c '{WORK}'; wait", timeout=240.0)
    told = observer.end().stacks
    reads = sum(calls for stack, (_, calls) in told.items() if stack.endswith("ksys_read"))
    assert reads == pytest.approx(200_000, rel=0.02)


def test_a_cpu_that_has_nothing_to_do_halts_though_the_other_is_busy(guest: Guest, meter: VcpuMeter) -> None:
    with guest.start("taskset", "2", "sh", "-c", "while :; do :; done"):
        time.sleep(0.3)
        before = meter.counts()
        time.sleep(1.0)
        after = meter.counts()
    idle, busy = ((then.halted - now.halted) / (then.time - now.time) for now, then in zip(before, after, strict=True))
    assert idle > 0.8
    assert busy < 0.05
