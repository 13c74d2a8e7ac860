"""Kernels that are made to harm whoever boots them: each is its own boot's fault, told in one line."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import hostile_kernel as hostile
import pytest

from pdrgate.builds.kernel_build import kernel_build
from pdrgate.guests import guest_console
from pdrgate.guests.guest import Guest, GuestError
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering.meter import Executed
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.observers.function_names import UNNAMED
from pdrgate.record.stretch import USER_SPACE
from pdrgate.safety.journal import Journal

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]


@pytest.mark.parametrize(
    ("says", "then", "told"),
    [
        (b"", hostile.RESET, r"exit code 0, for the kernel reset the machine"),
        (b"", hostile.TRIPLE_FAULT, r"exit code 0, for the kernel reset the machine"),
        (b"", hostile.HALT, r"gave no sign of life within 2 s"),
        (b"Kernel panic - not syncing: forged\n", hostile.RESET, r"does not boot: Kernel panic - not syncing: forged"),
        (b"\x1b]0;owned\x07\x1b[2J\r\0\xff\xfe tail", hostile.RESET, r"exit code 0, for the kernel reset the machine"),
    ],
    ids=["resets", "faults thrice", "halts", "forges a panic", "writes to the terminal"],
)
def test_what_a_hostile_kernel_does_is_told_of_its_boot(
    says: bytes, then: str, told: str, config: GuestConfig, journal: Journal, tmp_path: Path
) -> None:
    build = kernel_build(hostile.hostile_kernel(tmp_path / "bzImage", says=says, then=then))
    with (
        Guest(build, config, journal, tmp_path / "consoles") as guest,
        pytest.raises(GuestError, match=told) as error,
    ):
        guest.wait(2.0)
    assert "\n" not in str(error.value)
    assert not {"\x1b", "\0", "\r", "\x07"} & set(str(error.value))


def test_a_kernels_work_where_programs_are_is_no_programs(
    config: GuestConfig, journal: Journal, tmp_path: Path
) -> None:
    """In each tick it works four times as much as its program does, and all of both at addresses of programs."""
    build = kernel_build(hostile.hostile_kernel(tmp_path / "bzImage", then=hostile.WORKS_WHERE_PROGRAMS_ARE))
    metered, nothing = dataclasses.replace(config, metered=True), KernelSymbols(())
    with Guest(build, metered, journal, tmp_path / "consoles") as guest:
        meter = guest.meter
        assert meter is not None
        meter.begin()

        def until(instructions: int, before: Executed) -> tuple[Executed, dict[str, tuple[int, int]]]:
            """Wait until the program has executed so many more."""
            while True:
                assert guest.running
                now = meter.executed()
                found = nothing.functions(now.since(before))
                if found.get(USER_SPACE, (0, 0))[0] >= instructions:
                    return now, found
                time.sleep(0.05)

        begun, _ = until(40_000, meter.executed())  # the firmware is done
        _, found = until(2_000_000, begun)  # fifty ticks
    assert found.keys() == {USER_SPACE, UNNAMED}
    assert found[UNNAMED][0] / found[USER_SPACE][0] == pytest.approx(4, rel=0.05)  # both were read within a tick


def test_a_kernel_that_writes_for_ever_fills_neither_disk_nor_time(
    config: GuestConfig, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 1 << 18
    monkeypatch.setattr(guest_console, "MOST_OUTPUT", most)
    monkeypatch.setattr(guest_console, "OUTPUT_BOUND", ("prlimit", f"--fsize={most}", "--core=0"))
    build = kernel_build(hostile.hostile_kernel(tmp_path / "bzImage", then=hostile.FLOOD))
    with Guest(build, config, journal, tmp_path / "consoles") as guest:
        with pytest.raises(GuestError, match=r"wrote more than 0 MiB to its console; its console ends with: A{300}; "):
            guest.wait(60.0)
        assert guest.console.stat().st_size == most
        assert not guest.running
