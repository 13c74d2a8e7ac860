"""An observer: how many packets the CPUs of a guest handle in what time, while they execute in turn.

Time is instructions here, so it depends on nothing that this machine does: each CPU has a time of its own, which its
instructions take, and those of another one while it has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.memory.memory_meter import Role
from pdrgate.guests.metering.sharing.sharing_meter import SharingMeter
from pdrgate.guests.metering.sharing.sharing_observer import sharing_marks
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.observers.kernel_roles import DEVICE_INTERRUPT
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.observers.watching import Observation

LOCKSTEP_TURN = 1_000
"""Instructions that a CPU executes before it is the next one's turn. Shorter turns are more like two CPUs at once; with
200 a busy machine needed so long for a trial that the guest's kernel took its CPU for stuck, and ended."""
_WARM = 128
"""Packets that are left out at the begin, for not every CPU has packets by then."""
_LEFT = 0.2
"""Share of all packets that is left out at the end, when a CPU may have had more of them than another."""
_FEWEST = 384
"""Fewest packets in between for a result."""
_BY_PROGRAMS = 0.02
"""The share of the time that programs may execute for: what they do for packets takes no time here."""


class LockstepObserver:
    """Observer that has the CPUs of a guest execute in turn while a trial lasts, and counts the work of each.

    Args:
        nudge: has the guest do something, after which it has nothing to do.
        symbols: of all that runs there.
        lead: has packets come to so many CPUs, the first ones;
        0: as the scenario has it.
        cpus: how many CPUs packets come to.
    """

    def __init__(
        self, meter: SharingMeter, nudge: Callable[[], object], symbols: KernelSymbols, lead: Callable[[int], None],
        cpus: int,
    ) -> None:  # fmt: skip
        self._meter = meter
        self._nudge = nudge
        self._symbols = symbols
        self._lead = lead
        self._cpus = cpus

    def begin(self) -> None:
        self._lead(self._cpus)
        devices = [(at, int(Role.INTERRUPT)) for at in DEVICE_INTERRUPT.entries(self._symbols)]
        self._meter.begin_timed([*sharing_marks(self._symbols), *devices], LOCKSTEP_TURN)
        self._meter.wait(self._nudge, "its CPUs could not begin or end to take turns")

    def end(self) -> Observation:
        self._meter.end()
        self._meter.wait(self._nudge, "its CPUs could not begin or end to take turns")
        self._lead(0)
        counts = taken_in_time(self._meter.taken(), self._cpus, self._meter.by_programs)
        return Observation(dict.fromkeys(counts, 0), counts)


def taken_in_time(taken: npt.NDArray[np.void], cpus: int, by_programs: int) -> Reading:
    """Counts of each CPU that packets came to, in the midst of a trial; empty if the trial has too few packets or is
    not sound.

    They are ``packets`` it took up, ``turn_instructions`` of its time, and ``idle_instructions`` of these in which it
    had nothing to do.

    Args:
        taken: a record for each packet: the times of all CPUs when it was taken up, and which one took it.
        by_programs: instructions that programs executed in the whole trial.
    """
    last = len(taken) - 1 - round(_LEFT * len(taken))
    if last - _WARM < _FEWEST:
        return {}
    passed = {name: (taken[name][last] - taken[name][_WARM]).astype(np.int64) for name in ("time", "idle")}
    if by_programs > _BY_PROGRAMS * taken["time"][-1].astype(np.int64).sum():
        return {}
    took = np.bincount(taken["cpu"][_WARM:last].astype(np.int64), minlength=cpus)
    reading: dict[Counter, int] = {}
    for cpu in range(cpus):
        place = Place("vcpu", str(cpu))
        reading |= {
            Counter(place, "packets"): int(took[cpu]),
            Counter(place, "turn_instructions"): int(passed["time"][cpu]),
            Counter(place, "idle_instructions"): int(passed["idle"][cpu]),
        }
    return reading
