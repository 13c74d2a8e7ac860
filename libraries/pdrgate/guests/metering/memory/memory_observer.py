"""An observer: what each function of a guest's kernel touches while a memory trial lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.function_counts import FunctionObserver
from pdrgate.guests.metering.memory.cache_levels import CacheLevel, CacheLevels
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind
from pdrgate.guests.metering.memory.memory_meter import (
    BLOCK,
    GOES_INDIRECTLY,
    REGION,
    RETURNS,
    MemoryMeter,
    Role,
    Touched,
)
from pdrgate.guests.metering.memory.naming.line_names import (
    GuestLineNames,
    LineName,
    by_function,
    fields_by_function,
)
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.observers.function_names import OTHERS, PROGRAM, is_thunk
from pdrgate.observers.kernel_roles import (
    INTERRUPT_RETURN,
    LOOKS_FOR_PACKETS,
    OWN_WORK,
    READS_DATAGRAM,
    SENDS,
    TAKES_UP,
    TIMER_INTERRUPT,
    KernelRole,
)
from pdrgate.observers.watching import Observation
from pdrgate.record.stretch import Functions, MemoryCounts, MemorySeen

WARM = 256
"""Windows that fill the model before it counts: as many packets as a receive ring holds."""
_OF_PROGRAMS: Mapping[Role, KernelRole] = {Role.READ: READS_DATAGRAM, Role.SEND: SENDS}
_AS_MANY = 0.9
"""Share of the calls of a packet's XDP program at which one of these functions marks packets as well."""
_MARKS: Mapping[Role, KernelRole] = {
    Role.INTERRUPT: TIMER_INTERRUPT, Role.RETURN: INTERRUPT_RETURN, Role.FOREIGN: OWN_WORK,
    Role.POLL: LOOKS_FOR_PACKETS,
}  # fmt: skip
"""Work that a kernel does by itself, and where it ends."""
KIND_FIELDS: Mapping[LineKind, str] = {
    LineKind.STACK: "stack_lines", LineKind.PER_CPU: "cpu_lines", LineKind.SYMBOL: "symbol_lines",
    LineKind.DIRECT: "direct_lines", LineKind.VMALLOC: "vmalloc_lines", LineKind.PAGE: "page_lines",
    LineKind.PROGRAM: "program_lines",
}  # fmt: skip
"""Fields of `MemoryCounts`, in their order, by the kind of lines that they count."""
_LEAST = 0.02
"""Instructions for a packet, for a function to be kept by itself, where it touches no line."""
_MOST = float(1 << 62)
"""A count that no trial comes to, and that fits into 64 bits with any other."""


class MemoryObserver:
    """Observer of each access to memory while a trial lasts. The guest is slower for it, and only then.

    Args:
        nudge: has the guest do something, after which it has nothing to do.
        areas: returns the kinds of lines by address.
        names: names lines.
        counting: what has counted the guest's functions; it names them, and has the function that marks packets.
    """

    def __init__(
        self,
        meter: MemoryMeter,
        levels: CacheLevels,
        nudge: Callable[[], object],
        areas: Callable[[], Sequence[LineArea]],
        names: GuestLineNames,
        counting: FunctionObserver,
    ) -> None:
        self._meter = meter
        self._levels = levels
        self._nudge = nudge
        self._areas = areas
        self._names = names
        self._known: Sequence[LineArea] = ()
        self._counting = counting

    def begin(self) -> None:
        symbols = self._counting.symbols
        if symbols is None:
            return
        self._known = self._areas()
        self._meter.set_areas(self._known)
        marks = memory_marks(symbols, takes_packets_up(self._counting.latest), _OF_PROGRAMS)
        self._meter.begin(self._levels, marks, WARM)
        self._meter.wait(self._nudge, "no memory trial could begin or end")

    def end(self) -> Observation:
        symbols = self._counting.symbols
        if symbols is None:
            return Observation()
        self._meter.end()
        self._meter.wait(self._nudge, "no memory trial could begin or end")
        touched = self._meter.touched()
        names = self._names(symbols, self._known, touched.listed)
        return Observation(memory=memory_seen(touched, symbols, self._levels, names.names, names.missing))


def memory_marks(
    symbols: KernelSymbols, packet: str, programs: Mapping[Role, KernelRole] | None = None
) -> list[tuple[int, Role]]:
    """Marks of the begins of windows, at the function ``packet``, and of begins and ends of work that no packet caused.

    Args:
        programs: functions that programs call for a packet, if programs are observed.
    """
    roles = {**(programs or {}), **_MARKS}
    others = [(at, role) for role, known in roles.items() for at in known.entries(symbols)]
    return [*((at, Role.PACKET) for at in symbols.entries(packet)), *others]


def takes_packets_up(executed: Functions) -> str:
    """The function that a kernel calls once for each packet that it takes; empty if none is known."""
    programs = {name: calls for name, (_, calls) in executed.items() if name.startswith(PROGRAM)}
    most = max(programs, key=lambda name: programs[name], default="")
    for name in TAKES_UP.names:
        calls = executed.get(name, (0, 0))[1]
        if calls and calls >= _AS_MANY * programs.get(most, 0):
            return name
    return most


def memory_seen(
    touched: Touched,
    symbols: KernelSymbols,
    levels: CacheLevels,
    line_names: Sequence[LineName],
    missing: tuple[str, ...] = (),
) -> MemorySeen | None:
    """Memory that functions touched; None if no window counts, or there was no room for all touches.

    Args:
        line_names: names of the lines that are listed one by one.
        missing: lines that could have no names, and why.
    """
    if not touched.windows or touched.no_room:
        return None
    places = touched.places
    ran = places[(places["executed"] | places["loaded"] | places["stored"] | places["by_program"]) > 0]
    names = symbols.names(ran["address"])
    functions = sorted(set(names))
    number = {name: at for at, name in enumerate(functions)}
    of = np.array([number[name] for name in names], dtype=np.int64)
    code = ran["kind"] == BLOCK
    in_thunk = np.array([is_thunk(name) for name in names], dtype=np.bool_)
    indirect = code & ((ran["traits"] & GOES_INDIRECTLY > 0) | (in_thunk & symbols.begin(ran["address"])))
    returns = code & (ran["traits"] & RETURNS > 0) & ~in_thunk

    def sums(values: npt.NDArray[np.uint64], which: npt.NDArray[np.bool_]) -> list[int]:
        found = np.bincount(of, np.where(which, values, 0).astype(np.float64), len(functions))
        return [int(one) for one in found]

    def beyond(level: CacheLevel) -> npt.NDArray[np.uint64]:
        """Lines never seen before that a warm cache would not have either: they are of more than it holds."""
        found: npt.NDArray[np.uint64] = np.where(_larger(ran, level) & ~code, ran["first_ever"], 0)
        return found

    every = np.ones(len(ran), dtype=np.bool_)
    programs = np.rint(np.minimum(ran["by_program"] * (touched.windows / max(touched.packets, 1)), _MOST))
    columns = (
        sums(ran["executed"] * ran["length"], code),
        sums(ran["loaded"], ~code),
        sums(ran["stored"], ~code),
        sums(ran["new_line"], ~code),
        sums(ran["new_line"], code),
        sums(ran["missed_l1"] + ran["first_ever"], ~code),
        sums(ran["missed_l1"] + ran["first_ever"], code),
        sums(ran["missed_l2"] + beyond(levels.second), every),
        sums(ran["missed_last"] + beyond(levels.last), every),
        sums(ran["stored_locked"] + programs.astype(np.uint64), every),
        sums(ran["executed"], indirect),
        sums(ran["executed"], returns),
        *(sums(ran["lines_of"][:, kind], ~code) for kind in KIND_FIELDS),
    )
    pages = sums(ran["filled_page"], ~code)
    found = {
        name: MemoryCounts(*row)._replace(filled_pages=filled)
        for name, filled, row in zip(functions, pages, zip(*columns, strict=True), strict=True)
    }
    kept = _condensed(found, _LEAST * touched.windows)
    touching = symbols.names(touched.places["address"][touched.listed["place"]])
    functions = [one if one in kept else OTHERS for one in touching]
    named = by_function(touched.listed, functions, line_names, KIND_FIELDS, _missed(touched, levels))
    fields = fields_by_function(touched.listed, functions, line_names, shared=False)
    return MemorySeen(touched.windows, touched.dropped, kept, named, fields, missing=missing)


def _larger(places: npt.NDArray[np.void], level: CacheLevel) -> npt.NDArray[np.bool_]:
    """Whether what each instruction reads is more than a level holds."""
    found: npt.NDArray[np.bool_] = places["regions"] * np.uint64(REGION) > level.size
    return found


def _missed(touched: Touched, levels: CacheLevels) -> dict[str, npt.NDArray[np.uint64]]:
    """Number of misses of each listed line, by the field of `MemoryCounts`: how often a level did not have it."""
    lines, found = touched.listed, {}
    for field, level in (("missed_l2", levels.second), ("missed_last", levels.last)):
        larger = _larger(touched.places, level)[lines["place"]]
        found[field] = lines[field] + np.where(larger, lines["first_ever"], 0).astype(np.uint64)
    return found


def _condensed(functions: Mapping[str, MemoryCounts], least: float) -> dict[str, MemoryCounts]:
    """Functions with those of hardly any instructions and lines merged into one entry."""
    kept: dict[str, MemoryCounts] = {}
    for name, counts in functions.items():
        own = name if max(counts) >= least else OTHERS
        known = kept.get(own)
        kept[own] = counts if known is None else MemoryCounts(*map(sum, zip(known, counts, strict=True)))
    return kept
