"""The constant speed at which a guest's CPU is held while a trial lasts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering import CpuSpeed, SpeedChoice, SpeedObserver, SpeedRecord, step_below, unheld_speed
from pdrgate.observers.watching import Observer
from pdrgate.values.errors import TestbedError


def with_meter(machine: GuestConfig, wanted: CpuSpeed) -> GuestConfig:
    """The guest with the meter that a speed takes. Raises TestbedError if it has more CPUs than can be held."""
    if wanted != "full" and machine.vcpus == 1:
        return replace(machine, metered=True)
    if isinstance(wanted, int):
        raise TestbedError(
            f"a guest of {machine.vcpus} virtual CPUs is not held at a constant speed, for one that waits for the "
            "other's lock executes instructions meanwhile; give it one (sut.vcpus), or leave out sut.cpu_speed"
        )
    return machine


class HeldSpeed:
    """A guest's speed: chosen once the guest is up, held in each trial, and lowered where it could not be held.

    Args:
        wanted: what the testbed file asks for; ``auto`` is ``full`` where a speed cannot be held.
        record: what earlier guests have shown on this machine.
    """

    def __init__(self, wanted: CpuSpeed, record: SpeedRecord) -> None:
        self._wanted: CpuSpeed = wanted
        self._record = record
        self._observer: SpeedObserver | None = None
        self.choice = self._chosen = SpeedChoice(0, "")

    @property
    def constant(self) -> bool:
        """Whether the guest is held at all."""
        return self.choice.speed > 0

    def choose(self, guest: Guest, busy: Callable[[], AbstractContextManager[object]]) -> None:
        """Choose the speed of a guest that is up; ``busy`` has a program use its CPU. Raises TestbedError."""
        meter = guest.meter
        if meter is None:
            if isinstance(self._wanted, int):
                raise TestbedError(
                    "only an emulated guest can be held at a constant speed, and this one runs by KVM; use "
                    "accelerator: tcg in the testbed file, or cpu_speed: full"
                )
            return

        def unheld() -> float:
            guest.count()
            return unheld_speed(meter, busy)

        self.choice = self._chosen = self._record.choose(self._wanted, unheld)

    def pace(self, short: bool) -> str:
        """Hold the guest a step below its chosen speed on a short data path; what changed, in words.

        A speed that the testbed file names holds on each path.
        """
        lower = step_below(self._chosen.speed) if short and self._wanted == "auto" else 0
        choice = SpeedChoice(lower, "its packets need little work") if lower else self._chosen
        if choice == self.choice:
            return ""
        self.close()
        before, self.choice = self.choice, choice
        return f"the guest's CPU is held at {choice} on this path, not {before}: {choice.why}"

    def observers(self, guest: Guest) -> tuple[Observer, ...]:
        """Observers that hold the speed while they watch a trial; empty if the guest is not held."""
        meter = guest.meter
        guest.count()
        if meter is None or not self.constant:
            return ()
        self._observer = self._observer or SpeedObserver(meter, self.choice.speed, guest.go_first)
        return (self._observer,)

    def let_go(self) -> None:
        """Hold the speed no longer in this trial: a held guest drains a queue of 4096 packets longer than it lasts."""
        if self._observer is not None:
            self._observer.let_go()

    def sentence(self) -> str:
        """The speed in words; empty if the guest is not held."""
        return f"its CPU held at {self.choice} ({self.choice.why})" if self.constant else ""

    def close(self) -> None:
        """Hold later guests at a lower speed if this machine was too slow for it. Calling it twice is harmless."""
        observer, self._observer = self._observer, None
        if observer is not None and self._wanted == "auto":
            self._record.step_down(self.choice.speed, observer.late, observer.trials)
