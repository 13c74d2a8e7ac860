"""An observer: which lines the two CPUs of a guest share while a trial lasts, by function."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.memory.memory_meter import BLOCK, Role
from pdrgate.guests.metering.memory.memory_observer import TAKES_UP, memory_marks
from pdrgate.guests.metering.sharing.sharing_meter import PROGRAM_BEGINS, SharedByPlaces, SharingMeter
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.hosts.host import HostError
from pdrgate.observers.watching import Observation
from pdrgate.stretch import MemoryCounts, MemorySeen

TURN = 1_000
"""Instructions that a CPU executes before it is the other's turn: a fraction of what a packet takes."""
SHARED_WITHIN = 200_000
"""Instructions of both CPUs, some thirty packets each: what a CPU touched before them, the other takes from nobody."""
_LEAST_PACKETS = 256
"""Packets of a trial, for it to tell anything."""
_IPIS = frozenset(
    {"sysvec_reschedule_ipi", "sysvec_call_function", "sysvec_call_function_single", "sysvec_irq_work"}
)  # fmt: skip
"""What a kernel calls for an interrupt that another CPU of it has sent."""
_WAKES = frozenset({"try_to_wake_up"})
_HEEDED = 30.0
"""Seconds in which both CPUs have nothing to do for a moment, however busy this machine is."""


class SharingObserver:
    """Has each access to memory of both CPUs seen while a trial lasts, in which they execute in turn.

    Args:
        nudge: has the guest do something, after which it has nothing to do.
        symbols: of all that runs there.
    """

    def __init__(self, meter: SharingMeter, nudge: Callable[[], object], symbols: KernelSymbols) -> None:
        self._meter = meter
        self._nudge = nudge
        self._symbols = symbols

    def begin(self) -> None:
        self._meter.begin(sharing_marks(self._symbols), TURN, SHARED_WITHIN)
        self._wait()

    def end(self) -> Observation:
        self._meter.end()
        self._wait()
        return Observation(memory=sharing_seen(self._meter.shared(), self._symbols))

    def _wait(self) -> None:
        deadline = time.monotonic() + _HEEDED
        while not self._meter.heeded:
            if time.monotonic() > deadline:
                raise HostError(f"the guest was busy for {_HEEDED:g} s: no trial on two CPUs could begin or end")
            self._nudge()


def sharing_marks(symbols: KernelSymbols) -> list[tuple[int, int]]:
    """Where a packet may be taken up, and where what is no part of a packet's way begins and ends."""
    others = [(at, int(role)) for at, role in memory_marks(symbols, "")]
    taken_up = [(at, int(Role.PACKET)) for name in TAKES_UP for at in symbols.entries(name)]
    return [*others, *taken_up, *((at, PROGRAM_BEGINS) for at in symbols.programs())]


def sharing_seen(shared: SharedByPlaces, symbols: KernelSymbols) -> MemorySeen | None:
    """What functions share; None where too few packets count, or there was no room for all that was touched."""
    if shared.packets < _LEAST_PACKETS or shared.untold:
        return None
    places = shared.places
    places = places[(places["ran"] | places["locked"] | places["shared"]) > 0]
    names = symbols.names(places["address"])
    functions = sorted(set(names))
    number = {name: at for at, name in enumerate(functions)}
    of = np.array([number[name] for name in names], dtype=np.int64)
    begins = (places["kind"] == BLOCK) & symbols.begin(places["address"])

    def sums(values: npt.NDArray[np.uint64]) -> list[int]:
        return [int(one) for one in np.bincount(of, values.astype(np.float64), len(functions))]

    calls = sums(np.where(begins, places["ran"], 0))
    columns = zip(functions, calls, *(sums(places[one]) for one in ("locked", "shared", "falsely")), strict=True)
    found = {
        name: MemoryCounts(
            atomics=locked, shared=lines, falsely_shared=falsely,
            ipis=called if name in _IPIS else 0, wakeups=called if name in _WAKES else 0,
        )
        for name, called, locked, lines, falsely in columns
    }  # fmt: skip
    return MemorySeen(shared.packets, 0, {name: one for name, one in found.items() if any(one)})
