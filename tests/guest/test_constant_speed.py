"""A guest of the distribution's kernel, metered: its CPU keeps the speed that it is held at, and each block counts."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hog import hog

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering import SpeedObserver
from pdrgate.guests.metering.function_counts import BusyProgram
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.hosts.host import HostError
from pdrgate.record.cause import causes_in_words
from pdrgate.safety.journal import Journal

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("machine")]

SPEED = 25_000_000
"""Instructions/s that every machine has to spare."""


@pytest.fixture(scope="module")
def guest(machine: None, cloud: KernelBuild, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    folder = tmp_path_factory.mktemp("metered")
    config = GuestConfig(cpus=plan_cpus(None, None).sut, accelerator="tcg", metered=True)
    with Journal.begin(folder / "state") as journal, Guest(cloud, config, journal, folder / "consoles") as guest:
        guest.wait(180.0)
        guest.count()
        yield guest


@pytest.fixture
def busy(guest: Guest) -> Iterator[Guest]:
    """It has always something to do."""
    with guest.start("sh", "-c", "while :; do :; done"):
        yield guest


def test_one_that_stood_back_runs_on_its_own_cpu_when_it_is_measured(guest: Guest) -> None:
    """It was once pinned as soon as it was up, and what set it up ran beside another one's trials on one CPU."""
    tasks = [int(task.name) for task in Path(f"/proc/{guest.pid}/task").iterdir()]
    everywhere = os.sched_getaffinity(0)
    for task in tasks:
        os.sched_setaffinity(task, everywhere)
    guest.stand_back()
    guest.hurry()
    assert all(os.sched_getaffinity(task) == everywhere for task in tasks)
    guest.take_place()
    assert all(os.sched_getaffinity(task) == set(guest.config.cpus) for task in tasks)


def test_the_virtual_cpu_goes_first_while_it_is_held_and_the_main_loop_takes_turns(guest: Guest) -> None:
    """A main loop that went first would hand over packets one by one, and each cost a guest 8 % more."""
    assert guest.meter is not None
    (vcpu,) = (
        int(task.name)
        for task in Path(f"/proc/{guest.pid}/task").iterdir()
        if (task / "comm").read_text().startswith("CPU 0/")
    )
    observer = SpeedObserver(guest.meter, SPEED, guest.go_first)
    observer.begin()
    assert os.sched_getscheduler(vcpu) == os.SCHED_FIFO
    assert os.sched_getscheduler(guest.pid) == os.SCHED_OTHER
    observer.end()
    assert os.sched_getscheduler(vcpu) == os.SCHED_OTHER
    assert os.getpriority(os.PRIO_PROCESS, vcpu) == -20


def test_a_busy_cpu_executes_what_it_is_held_at(busy: Guest) -> None:
    assert busy.meter is not None
    busy.meter.hold(SPEED)
    time.sleep(0.1)  # it sees the new speed when it looks next
    (before,) = busy.meter.counts()
    time.sleep(1.0)
    (after,) = busy.meter.counts()
    busy.meter.hold(0)
    passed = after.time - before.time
    owed = (after.lost - before.lost) + (after.arrears - before.arrears) + (after.halted - before.halted)
    # What it did not execute, it says that it owes.
    assert after.instructions - before.instructions == pytest.approx(SPEED * (passed - owed), rel=0.02)


def test_that_qemu_has_no_cpu_is_told_though_its_cpu_has_nothing_to_do(guest: Guest) -> None:
    """Nobody hands it packets then, and it is not late for it."""
    assert guest.meter is not None
    guest.stand_back()
    guest.take_place()
    observer = SpeedObserver(guest.meter, SPEED, guest.go_first)
    told = []
    with hog(guest.config.cpus[0], "fifo"):  # 30 ms of every 200
        for _ in range(4):
            observer.begin()
            time.sleep(0.3)
            told.append(causes_in_words(observer.end().disturbed))
    assert all("QEMU had no CPU for " in one for one in told), told


def test_a_program_uses_the_cpu_while_it_is_wanted_and_stands_still_else(guest: Guest) -> None:
    meter = guest.meter
    assert meter is not None
    program = BusyProgram(guest)
    program.start()

    def share() -> float:
        """Of the time, in which the CPU had something to do."""
        (before,) = meter.counts()
        time.sleep(0.5)
        (after,) = meter.counts()
        return 1 - (after.halted - before.halted) / (after.time - before.time)

    assert share() < 0.5
    for _ in range(2):
        with program.runs():
            assert share() > 0.9
        assert share() < 0.5
    with pytest.raises(HostError):
        guest.run("sleep", "20", timeout=0.5)
    with program.runs():  # the shell was lost that it was started by
        assert share() > 0.9
    assert share() < 0.5


def test_between_trials_it_is_as_fast_as_it_goes(busy: Guest) -> None:
    assert busy.meter is not None
    (before,) = busy.meter.counts()
    time.sleep(0.5)
    (after,) = busy.meter.counts()
    assert after.held == before.held
    assert after.instructions > before.instructions


@contextlib.contextmanager
def stopped(guest: Guest) -> Iterator[None]:
    os.kill(guest.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(guest.pid, signal.SIGCONT)


@pytest.fixture
def observed(busy: Guest) -> SpeedObserver:
    """It has begun a while ago."""
    assert busy.meter is not None
    observer = SpeedObserver(busy.meter, SPEED)
    observer.begin()
    time.sleep(0.2)
    return observer


def test_a_stopped_emulator_is_seen(busy: Guest, observed: SpeedObserver) -> None:
    with stopped(busy):
        time.sleep(0.3)
    time.sleep(0.1)
    assert "the guest's CPU was late by" in causes_in_words(observed.end().disturbed)


def test_an_emulator_that_is_stopped_when_the_trial_ends_is_seen(busy: Guest, observed: SpeedObserver) -> None:
    """It was once late by as much as it would have made good, and nobody noticed."""
    with stopped(busy):
        time.sleep(0.02)
        assert "the guest's CPU was late by" in causes_in_words(observed.end().disturbed)


def test_a_cpu_with_nothing_to_do_owes_nothing(guest: Guest) -> None:
    assert guest.meter is not None
    observer = SpeedObserver(guest.meter, SPEED)
    observer.begin()
    time.sleep(0.5)
    readings = []
    while len(readings) < 100 and not (readings and readings[-1].arrears == 0):  # while a tick runs, it owes a little
        readings += guest.meter.counts()
        time.sleep(0.01)
    assert readings[-1].arrears == 0
    assert readings[-1].halted > 0
    first, last = readings[0], readings[-1]
    # It is told while it halts, too.
    assert last.halted - first.halted > 0.9 * (last.time - first.time) or len(readings) == 1
    observer.end()


def test_blocks_add_up_to_all_that_was_executed(guest: Guest) -> None:
    assert guest.meter is not None
    before, (started,) = guest.meter.executed(), guest.meter.counts()
    guest.run("seq", "10000")
    (ended,), after = guest.meter.counts(), guest.meter.executed()
    ran = after.since(before)
    told = int((ran.length * ran.executions).sum())
    # Read one after the other, while the guest goes on: no less than between the inner two.
    assert told >= 0.99 * (ended.instructions - started.instructions) > 0
    assert (ran.address == 0).any()  # programs
    assert (ran.address >= 0xFFFFFFFF81000000).any()  # the kernel, where its build has it


def test_a_layout_is_the_builds(guest: Guest) -> None:
    assert "nokaslr" in Path(guest.console).read_text(errors="replace")
