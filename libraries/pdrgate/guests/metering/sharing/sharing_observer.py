"""An observer: which lines the CPUs of a guest share while a trial lasts, by function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.memory.line_areas import LineArea
from pdrgate.guests.metering.memory.memory_meter import BLOCK, Role
from pdrgate.guests.metering.memory.memory_observer import KIND_FIELDS, memory_marks
from pdrgate.guests.metering.memory.naming.line_names import GuestLineNames, LineName, by_function, fields_by_function
from pdrgate.guests.metering.sharing.sharing_meter import (
    CLOCK_TICKS,
    PROGRAM_BEGINS,
    STEP_BEGINS,
    SharedByPlaces,
    SharingMeter,
)
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.observers.kernel_roles import (
    CLOCK_GOES_ON,
    INTERRUPT_OF_CPU,
    NEXT_STEP,
    TAKES_UP,
    WAITS_FOR_LOCK,
    WAKES,
)
from pdrgate.observers.watching import Observation
from pdrgate.record.stretch import MemoryCounts, MemorySeen

TURN = 1_000
"""Instructions that a CPU executes before it is the next one's turn: a fraction of what a packet takes."""
SHARED_WITHIN = 100_000
"""Instructions of each CPU, some thirty packets: what a CPU touched before them, another takes from nobody."""
_LEAST_PACKETS = 256
"""Fewest packets of a trial for a result."""


class SharingObserver:
    """Observer of each access to memory of all CPUs, which execute in turn while a trial lasts.

    Args:
        nudge: has the guest do something, after which it has nothing to do.
        symbols: of all that runs there.
        areas: returns the kinds of lines by address.
        names: names lines.
    """

    def __init__(
        self, meter: SharingMeter, nudge: Callable[[], object], symbols: KernelSymbols,
        areas: Callable[[], Sequence[LineArea]], names: GuestLineNames,
    ) -> None:  # fmt: skip
        self._meter = meter
        self._nudge = nudge
        self._symbols = symbols
        self._areas = areas
        self._names = names
        self._known: Sequence[LineArea] = ()

    def begin(self) -> None:
        self._known = self._areas()
        self._meter.set_areas(self._known)
        self._meter.begin(sharing_marks(self._symbols), TURN, SHARED_WITHIN * self._meter.cpus)
        self._meter.wait(self._nudge, f"no trial on {self._meter.cpus} CPUs could begin or end")

    def end(self) -> Observation:
        self._meter.end()
        self._meter.wait(self._nudge, f"no trial on {self._meter.cpus} CPUs could begin or end")
        shared = self._meter.shared()
        names = self._names(self._symbols, self._known, shared.listed)
        return Observation(memory=sharing_seen(shared, self._symbols, names.names, names.missing))


def sharing_marks(symbols: KernelSymbols) -> list[tuple[int, int]]:
    """Marks where packets are taken up or go a step further, the clock ticks, and other work begins and ends."""
    others = [(at, int(role)) for at, role in memory_marks(symbols, "")]
    known = ((TAKES_UP, int(Role.PACKET)), (NEXT_STEP, STEP_BEGINS), (CLOCK_GOES_ON, CLOCK_TICKS))
    own = [(at, mark) for role, mark in known for at in role.entries(symbols)]
    return [*others, *own, *((at, PROGRAM_BEGINS) for at in symbols.programs())]


def sharing_seen(
    shared: SharedByPlaces, symbols: KernelSymbols, line_names: Sequence[LineName], missing: tuple[str, ...] = ()
) -> MemorySeen | None:
    """Memory that functions share; None if too few packets count, or there was no room for all touches.

    Args:
        line_names: names of the lines that are listed one by one.
        missing: lines that could have no names, and why.
    """
    if shared.packets < _LEAST_PACKETS or shared.no_room:
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
    ran = sums(places["ran"] * places["length"])
    columns = zip(
        functions, calls, ran, *(sums(places[one]) for one in ("locked", "shared", "falsely", "filled")), strict=True
    )  # fmt: skip
    kinds = {field: sums(places["shared_of"][:, kind]) for kind, field in KIND_FIELDS.items()}
    found = {
        name: MemoryCounts(
            atomics=locked, shared=lines, falsely_shared=falsely,
            ipis=called if INTERRUPT_OF_CPU.is_one(name, symbols) else 0, wakeups=called if name in WAKES.names else 0,
            waited=executed if name in WAITS_FOR_LOCK.names else 0, filled_pages=pages,
            **{field: own[at] for field, own in kinds.items()},
        )
        for at, (name, called, executed, locked, lines, falsely, pages) in enumerate(columns)
    }  # fmt: skip
    touching = symbols.names(shared.places["address"][shared.listed["place"]])
    return MemorySeen(
        shared.packets,
        0,
        {name: one for name, one in found.items() if any(one)},
        by_function(shared.listed, touching, line_names, KIND_FIELDS),
        fields_by_function(shared.listed, touching, line_names, shared=True),
        writers=_writers(places, names, symbols),
        cpus=shared.cpus,
        missing=missing,
    )


def _writers(places: npt.NDArray[np.void], names: Sequence[str], symbols: KernelSymbols) -> dict[str, str]:
    """The function that writes to most of each function's shared lines, if that is another one."""
    most: dict[str, np.void] = {}
    for name, place in zip(names, places, strict=True):
        if place["shared"] and (name not in most or place["shared"] > most[name]["shared"]):
            most[name] = place
    writers = {name: symbols.function(int(place["writer"])) for name, place in most.items()}
    return {name: writer for name, writer in writers.items() if writer != name}
