"""The constant speed of a guest's CPU: the step that a machine gets, and trials in which it could not be held."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.guest import Guest
from pdrgate.guests.metering import CpuSpeed, SpeedObserver, SpeedRecord, VcpuMeter, plugin
from pdrgate.guests.metering.meter import Counts, Executed
from pdrgate.guests.metering.speed import starvation, unheld_speed
from pdrgate.observers.reading import Counter, Place
from pdrgate.record.cause import Cause, CauseKind, causes_in_words
from pdrgate.testbeds.vm import held_speed
from pdrgate.testbeds.vm.held_speed import HeldSpeed
from pdrgate.values.errors import TestbedError


def shown(speed: float) -> Callable[[], float]:
    """What a guest shows that is not held, instructions/s."""
    return lambda: speed


def counts(instructions: float, *, halted: float = 0.0, lost: float = 0.0, time: float = 0.0) -> Counts:
    return Counts(int(instructions), halted, 0, 0.0, lost, 0.0, time)


@pytest.mark.parametrize(
    ("unheld", "speed"), [(30e6, 25e6), (225e6, 25e6), (260e6, 100e6), (900e6, 100e6), (1100e6, 400e6), (9e9, 400e6)]
)
def test_auto_is_the_highest_step_that_leaves_the_machine_room(tmp_path: Path, unheld: float, speed: float) -> None:
    choice = SpeedRecord(tmp_path).choose("auto", shown(unheld))
    assert choice.speed == speed
    assert f"{unheld / 1e6:.0f}" in choice.why


def test_auto_means_the_same_until_the_machine_is_started_anew(tmp_path: Path) -> None:
    """Else two runs of one day could not be compared, for the second came on a busier hour."""
    first = SpeedRecord(tmp_path).choose("auto", shown(300e6))
    assert SpeedRecord(tmp_path).choose("auto", shown(50e6)) == first
    (tmp_path / "cpu-speed.json").write_text('{"boot": "another", "speed": 25000000}')
    assert SpeedRecord(tmp_path).choose("auto", shown(1100e6)).speed == 400_000_000


@pytest.mark.parametrize(
    ("wanted", "unheld", "short", "long"),
    [
        ("auto", 500e6, "25 MIPS", "100 MIPS"), ("auto", 2000e6, "100 MIPS", "400 MIPS"),
        ("auto", 200e6, "25 MIPS", "25 MIPS"), (100_000_000, 500e6, "100 MIPS", "100 MIPS"),
        ("full", 500e6, "full", "full"),
    ],
)  # fmt: skip
def test_a_short_path_has_a_slower_guest_unless_a_speed_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: CpuSpeed, unheld: float, short: str, long: str
) -> None:
    monkeypatch.setattr(held_speed, "unheld_speed", lambda meter, busy: unheld)
    held = HeldSpeed(wanted, SpeedRecord(tmp_path))
    guest = cast(Guest, SimpleNamespace(meter=object(), count=lambda: None))
    held.choose(guest, contextlib.nullcontext)
    assert held.pace(False) == ""
    told = held.pace(True)
    assert str(held.choice) == short
    assert (f"{short} on this path, not {long}" in told) if short != long else told == ""
    assert held.pace(True) == ""
    held.pace(False)
    assert str(held.choice) == long


@pytest.mark.parametrize(
    ("late", "trials", "speed"), [(5, 8, 25_000_000), (4, 8, 100_000_000), (7, 7, 100_000_000), (90, 96, 25_000_000)]
)
def test_where_most_trials_are_late_auto_is_less_from_then_on(
    tmp_path: Path, late: int, trials: int, speed: int
) -> None:
    record = SpeedRecord(tmp_path)
    assert record.choose("auto", shown(500e6)).speed == 100_000_000
    record.step_down(100_000_000, late, trials)
    choice = record.choose("auto", shown(500e6))
    assert choice.speed == speed
    if speed < 100_000_000:
        assert choice.why == f"at 100 MIPS {late} of {trials} trials were late"
    record.step_down(25_000_000, 90, 96)  # there is nothing below
    assert record.choose("auto", shown(500e6)) == choice


def test_the_lowest_step_may_be_of_a_busy_moment_and_is_looked_at_again_after_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One moment at which another gate had both CPUs once decided for as long as the machine was up."""
    record = SpeedRecord(tmp_path)
    assert record.choose("auto", shown(120e6)).speed == 25_000_000
    assert record.choose("auto", shown(500e6)).speed == 25_000_000
    now = time.time()
    monkeypatch.setattr("pdrgate.guests.metering.speed.time.time", lambda: now + 3700)
    assert record.choose("auto", shown(500e6)).speed == 100_000_000
    assert record.choose("auto", shown(120e6)).speed == 100_000_000


def test_the_guests_of_one_run_have_one_speed_though_one_of_them_was_late(tmp_path: Path) -> None:
    """Else the boots after it could not be taken together with those before."""
    run, later = SpeedRecord(tmp_path, "run-1"), SpeedRecord(tmp_path, "run-2")
    assert run.choose("auto", shown(500e6)).speed == 100_000_000
    for _ in range(2):
        run.step_down(100_000_000, 15, 20)
        assert run.choose("auto", shown(500e6)).speed == 100_000_000
    assert later.choose("auto", shown(500e6)).speed == 25_000_000


def test_what_is_noted_by_others_changes_no_run_that_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (SpeedRecord(tmp_path, f"run-{number}") for number in (1, 2, 3))
    assert [one.choose("auto", shown(500e6)).speed for one in (first, second)] == [100_000_000] * 2
    first.step_down(100_000_000, 15, 20)
    second.step_down(100_000_000, 15, 20)
    assert third.choose("auto", shown(500e6)).speed == 25_000_000
    now = time.time()
    monkeypatch.setattr("pdrgate.guests.metering.speed.time.time", lambda: now + 3700)
    speeds = [one.choose("auto", shown(500e6)).speed for one in (first, second, third)]
    assert speeds == [100_000_000, 100_000_000, 25_000_000]
    for number in range(100):
        SpeedRecord(tmp_path, f"later-{number}").choose("auto", shown(500e6))
    assert len(json.loads((tmp_path / "cpu-speed.json").read_text())["runs"]) == 32


def test_a_machine_that_was_busy_is_looked_at_again_after_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SpeedRecord(tmp_path, "run-1").step_down(100_000_000, 15, 20)
    record = SpeedRecord(tmp_path, "run-2")
    assert record.choose("auto", shown(500e6)).speed == 25_000_000
    now = time.time()
    monkeypatch.setattr("pdrgate.guests.metering.speed.time.time", lambda: now + 3700)
    assert record.choose("auto", shown(500e6)).speed == 25_000_000  # it has begun
    later = SpeedRecord(tmp_path, "run-3")
    assert later.choose("auto", shown(500e6)).speed == 100_000_000
    assert later.choose("auto", shown(250e6)).speed == 100_000_000


def test_what_is_asked_for_is_taken(tmp_path: Path) -> None:
    record = SpeedRecord(tmp_path)
    assert str(record.choose(60_000_000, shown(250e6))) == "60 MIPS"
    assert str(record.choose("full", shown(250e6))) == "full"
    assert not list(tmp_path.iterdir())


class _Meter(VcpuMeter):
    """Counts that a test sets, in real shared memory."""

    def __init__(self, *readings: Counts) -> None:
        super().__init__()
        self._readings = list(readings)

    def counts(self) -> tuple[Counts, ...]:
        return (self._readings.pop(0),)


class _TwoCpus(VcpuMeter):
    """The same of two CPUs."""

    def __init__(self, *readings: tuple[Counts, Counts]) -> None:
        super().__init__(2)
        self._readings = list(readings)

    def counts(self) -> tuple[Counts, ...]:
        return self._readings.pop(0)


def test_of_two_cpus_the_one_that_fell_behind_is_named_and_each_is_read() -> None:
    before = (counts(5e6, time=10.0), counts(7e6, time=10.0))
    after = (counts(55e6, time=10.5), counts(37e6, halted=0.15, lost=0.05, time=10.5))
    with _TwoCpus(before, after) as meter:
        observer = SpeedObserver(meter, 100_000_000)
        observer.begin()
        seen = observer.end()
    assert causes_in_words(seen.disturbed) == "the guest's CPU 1 was late by 50 of 500 ms"
    assert (observer.trials, observer.late) == (1, 1)
    executed = [
        seen.after[one] - seen.before[one] for one in (Counter(Place("vcpu", cpu), "instructions") for cpu in "01")
    ]
    assert executed == [50_000_000, 30_000_000]


def test_a_guest_is_as_fast_as_the_slowest_of_its_cpus() -> None:
    """Each is held at the same speed."""
    before = (counts(1e6, time=10.0), counts(2e6, time=10.0))
    with _TwoCpus(before, (counts(101e6, time=10.5), counts(52e6, time=10.5))) as meter:
        assert unheld_speed(meter, contextlib.nullcontext) == pytest.approx(100e6)


@pytest.mark.parametrize(("lost", "disturbed"), [(0.0, ""), (0.0009, ""), (0.03, "late by 30 of 500 ms")])
def test_a_trial_in_which_the_cpu_fell_behind_is_disturbed(lost: float, disturbed: str) -> None:
    with _Meter(counts(5e6, lost=1.0, time=10.0), counts(55e6, lost=1.0 + lost, time=10.5)) as meter:
        observer = SpeedObserver(meter, 100_000_000)
        observer.begin()
        assert meter.speed == 100_000_000
        seen = observer.end()
        assert meter.speed == 0
    assert disturbed in causes_in_words(seen.disturbed)
    assert bool(seen.disturbed) is bool(disturbed)
    instructions = Counter(Place("vcpu", "0"), "instructions")
    assert seen.after[instructions] - seen.before[instructions] == 50_000_000
    assert str(instructions) == "vcpu0.instructions"


@pytest.mark.parametrize(
    ("executed", "halted", "late"), [(0.46, 0.0, 40), (0.2, 0.3, 0), (0.2, 0.26, 40), (0.497, 0.0, 0)]
)
def test_a_trial_at_whose_end_the_cpu_is_behind_is_disturbed(executed: float, halted: float, late: int) -> None:
    """What it would have made good afterwards is not in the trial."""
    after = counts(5e6 + executed * 100e6, halted=halted, time=10.5)
    with _Meter(counts(5e6, time=10.0), after) as meter:
        observer = SpeedObserver(meter, 100_000_000)
        observer.begin()
        told = causes_in_words(observer.end().disturbed)
    assert told == (f"the guest's CPU was late by {late} of 500 ms" if late else "")


def test_what_a_cpu_does_once_it_was_let_go_is_no_part_of_the_trial() -> None:
    readings = (counts(5e6, time=10.0), counts(55e6, time=10.5), counts(60e6, time=11.0), counts(70e6, time=11.1))
    with _Meter(*readings) as meter:
        observer = SpeedObserver(meter, 100_000_000)
        for instructions in (50_000_000, 10_000_000):
            observer.begin()
            observer.let_go()
            assert meter.speed == 0
            seen = observer.end()
            counter = Counter(Place("vcpu", "0"), "instructions")
            assert seen.after[counter] - seen.before[counter] == instructions
        assert observer.trials == 2


@pytest.mark.parametrize(
    ("gaps", "shows"),
    [
        ([], 0),
        ([(10.1, 10.109)], 0),  # the ring bridges it
        ([(10.1, 10.115)], 15),
        ([(9.9, 10.004)], 0),
        ([(9.9, 10.02)], 20),
        ([(10.01 + 0.02 * number, 10.016 + 0.02 * number) for number in range(10)], 60),
        ([(10.246, 10.254)], 4),  # what was not received at the end is missing
        ([(10.249, 10.254)], 0),
        ([(10.26, 10.29)], 0),  # while it drains
        ([(10.26, 10.31)], 50),
        ([(10.05, 10.45)], 200),
    ],
)
def test_times_without_a_cpu_count_where_they_show(gaps: list[tuple[float, float]], shows: float) -> None:
    assert starvation(gaps, 10.0, 10.25) * 1e3 == pytest.approx(shows)


def test_in_a_long_trial_the_same_time_shows_less() -> None:
    assert starvation([(12.0, 12.09)], 10.0, 20.0) == 0
    assert starvation([(12.0, 12.2)], 10.0, 20.0) == pytest.approx(0.2)


def test_a_trial_in_which_qemu_had_no_cpu_is_disturbed_though_its_cpu_is_not_late() -> None:
    """It had nothing to do, because nobody handed it packets."""
    rested: list[float] = []

    class Starved(_Meter):
        def starved(self, since: float) -> tuple[tuple[float, float], ...]:
            assert since == 10.0
            return ((10.2, 10.6),)

        def rest(self, patience: float) -> None:
            rested.append(patience)

    with Starved(counts(5e6, time=10.0), counts(25e6, halted=0.3, time=10.5)) as meter:
        observer = SpeedObserver(meter, 100_000_000)
        observer.begin()
        (cause,) = observer.end().disturbed
        assert cause == Cause(CauseKind.STARVED, pytest.approx(0.6), "QEMU had no CPU for 300 of 500 ms")
    assert rested  # what is left of it drains before the next one


def test_times_without_a_cpu_are_read_from_the_shared_memory() -> None:
    now = time.monotonic()
    ns = [round(1e9 * (now + at)) for at in (-3.0, -2.9, -2.0, -1.5)]
    with VcpuMeter() as meter:
        assert meter.starved(0.0) == ()
        meter._memory[128 : 128 + 32] = struct.pack("<4Q", *ns)
        meter._put("gaps", 2)
        first, second = meter.starved(0.0)
        assert first == pytest.approx((now - 3.0, now - 2.9))
        assert second == pytest.approx((now - 2.0, now - 1.5))
        assert meter.starved(now - 2.5) == (second,)
        meter._put("next_beat", round(1e9 * (now - 0.5)))  # when it wanted to run; it has not come yet
        ((begin, end),) = meter.starved(now - 1.0)
    assert begin == pytest.approx(now - 0.5)
    assert end >= now


def test_a_cpu_goes_first_while_it_is_held_and_no_longer() -> None:
    told: list[tuple[bool, int]] = []
    readings = (counts(5e6, time=10.0), counts(55e6, time=10.5))
    with _Meter(*readings) as meter:
        observer = SpeedObserver(meter, 100_000_000, lambda first: told.append((first, meter.speed)))
        observer.begin()
        observer.let_go()
        observer.end()
    # It is never the first at full speed: nobody else would have any time.
    assert told == [(True, 100_000_000), (False, 100_000_000)]


def test_blocks_that_ran_meanwhile() -> None:
    def executed(*runs: int) -> Executed:
        addresses = np.arange(len(runs), dtype=np.uint64) * np.uint64(16)
        return Executed(addresses, np.full(len(runs), 4, np.uint64), np.array(runs, np.uint64))

    since = executed(7, 5, 9, 2).since(executed(7, 3, 9))
    assert since.address.tolist() == [16, 48]
    assert since.executions.tolist() == [2, 2]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_the_plugin_is_built_once_for_each_interface_of_qemu(tmp_path: Path) -> None:
    old, new = plugin("7.2.22", X86_64, cache=tmp_path), plugin("10.0.2", X86_64, cache=tmp_path)
    assert old != new
    written = old.stat().st_mtime_ns
    assert plugin("8.2.2", X86_64, cache=tmp_path) == old
    assert old.stat().st_mtime_ns == written


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TestbedError, match="apt-get install gcc"):
        plugin("7.2.22", X86_64, cache=tmp_path)


def test_whatever_is_in_the_shared_memory_reading_it_is_bounded() -> None:
    """QEMU writes it, in which a guest may have got: a table ends where it ends, and nobody can make it shorter."""
    with VcpuMeter() as meter:
        meter._memory[8:] = b"\xff" * (len(meter._memory) - 8)
        assert len(meter.executed().address) == 1 << 18
        assert len(meter.followed().address) == 1 << 16
        assert len(meter.starved(0.0)) <= 1 << 8
        meter.counts()
        meter.rest(0.0)
        for size in (0, 1 << 30):
            with pytest.raises(PermissionError):
                os.ftruncate(meter.fd, size)
