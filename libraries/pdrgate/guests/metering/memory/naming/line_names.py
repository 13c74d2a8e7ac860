"""Names of lines of data: a BPF map, a slab cache, a variable, a per-CPU variable with its CPU.

The types of a kernel show which fields of a struct were touched, if it is certain which struct that is.

All of it is read in the guest's memory when a trial has ended: the guest executes nothing for it. Lines that are not
identified for certain have no name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdrgate.bpf.btf import Types
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests.guest_memory import PAGE, GuestMemory
from pdrgate.guests.metering.memory.cache_levels import LINE
from pdrgate.guests.metering.memory.line_areas import NAMED_KINDS, LineArea, LineKind
from pdrgate.guests.metering.memory.naming.kernel_structs import KernelStructs
from pdrgate.guests.metering.memory.naming.kernel_types import kernel_types
from pdrgate.guests.metering.memory.naming.maps import MapAreas, MapOwner
from pdrgate.guests.metering.memory.naming.missing_names import LinesOfKind, TypesRead, missing_names
from pdrgate.guests.metering.memory.naming.page_owners import KernelNotes, kernel_notes, page_owners
from pdrgate.guests.metering.memory.naming.slab_objects import SlabObjects, StructPart
from pdrgate.guests.metering.static_data import CPU_AREAS, CPU_BEGIN, CPU_END, MAPS
from pdrgate.guests.metering.symbols import KernelSymbols


@dataclass(frozen=True, slots=True)
class LineName:
    """Name of a line."""

    name: str = ""
    """Empty if it has none that is known."""
    part: StructPart | None = None
    """The struct that was touched, where it is certain which that is."""


@dataclass(frozen=True, slots=True)
class NamedLines:
    """Names of lines."""

    names: Sequence[LineName]
    missing: tuple[str, ...] = ()
    """Lines of this kernel that could have no names, each with the reason, see `missing_names`."""


@dataclass(frozen=True, slots=True)
class GuestLineNames:
    """Names of a guest's lines, `LISTED_LINE`, by the kernel's symbols and areas.

    Args:
        vcpus: how many CPUs the guest has.
    """

    memory: GuestMemory
    vcpus: int
    build: KernelBuild | None = None
    """Build whose types name fields; None: no fields are named."""

    def __call__(self, symbols: KernelSymbols, areas: Sequence[LineArea], listed: npt.NDArray[np.void]) -> NamedLines:
        notes = kernel_notes(symbols, areas, self.memory)
        addresses = [first_byte(line, touched) for line, touched in listed[["line", "touched"]].tolist()]
        kinds = listed["kind"].tolist()
        pages = {at // PAGE for at, kind in zip(addresses, kinds, strict=True) if kind == LineKind.DIRECT}
        owners = page_owners(self.memory, notes, pages) if notes is not None and pages else {}
        areas_of_cpus = tuple(self._cpu_areas(symbols, notes))
        objects = None if notes is None or self.build is None else SlabObjects(self.memory, notes.tables, self.build)
        types = None if self.build is None else kernel_types(self.build)
        maps, of_maps = _maps(symbols, notes, areas_of_cpus, self.memory, types)
        structs = None if types is None else PerCpuStructs(types, symbols.data.marks.get(CPU_BEGIN, 0))

        def name(address: int, kind: int) -> LineName:
            if kind in _OF_MAPS and maps is not None and (found := maps.at(address)) is not None:
                return LineName(self._of_map(found))
            match kind:
                case LineKind.DIRECT if (owner := owners.get(address // PAGE)) is not None:
                    return LineName(owner.name, None if objects is None else objects.part(owner, address))
                case LineKind.SYMBOL:
                    return LineName(_variable(symbols, address))
                case LineKind.PER_CPU:
                    return self._of_cpu(symbols, areas_of_cpus, address, structs)
            return LineName()

        known = {at: name(*at) for at in set(zip(addresses, kinds, strict=True))}
        names = [known[at] for at in zip(addresses, kinds, strict=True)]
        read = None
        if types is not None:
            read = TypesRead(of_maps, *(one.lacking if one is not None else () for one in (objects, structs)))
        return NamedLines(
            names, missing_names(symbols.data, areas, read, _by_kind(listed, names), self.memory.page_size)
        )

    def _of_map(self, found: MapOwner) -> str:
        if found.cpu is None:
            return f"map {found.name}"
        return f"map {found.name} of CPU {found.cpu}" if self.vcpus > 1 else f"per-CPU map {found.name}"

    def _of_cpu(
        self, symbols: KernelSymbols, areas: Sequence[int], address: int, structs: PerCpuStructs | None
    ) -> LineName:
        """A per-CPU variable that the kernel has from the boot on, and of which CPU it is where there are several."""
        marks = symbols.data.marks
        for cpu, area in enumerate(areas):
            at = (address - area) % (1 << 64)
            if marks.get(CPU_BEGIN, 0) <= at < marks.get(CPU_END, 0) and (found := symbols.data.at(at)) is not None:
                variable, begin = found
                name = f"{variable} of CPU {cpu}" if self.vcpus > 1 else f"per-CPU {variable}"
                return LineName(name, None if structs is None else structs.part(begin, address - (at - begin)))
        return LineName()

    def _cpu_areas(self, symbols: KernelSymbols, notes: KernelNotes | None) -> Iterator[int]:
        """Distance of each CPU's area from its place in the kernel's file."""
        places = symbols.data.marks.get(CPU_AREAS)
        if notes is not None and places is not None:
            for cpu in range(self.vcpus):
                yield int.from_bytes(self.memory.virtual(notes.tables, places + 8 * cpu, 8), "little")


def _maps(
    symbols: KernelSymbols, notes: KernelNotes | None, areas: Sequence[int], memory: GuestMemory, types: Types | None
) -> tuple[MapAreas | None, Collection[str]]:
    """The places of the kernel's BPF maps, and what its types lack for that; None if they are not known."""
    place = symbols.data.marks.get(MAPS)
    if notes is None or types is None or place is None:
        return None, ()
    structs = KernelStructs(memory, notes.tables, types)
    try:
        return MapAreas(structs, place, areas), structs.lacking
    except ValueError:  # a stranger's types are damaged
        return None, ("end",)


def _by_kind(listed: npt.NDArray[np.void], names: Sequence[LineName]) -> dict[LineKind, LinesOfKind]:
    """Number of touched lines of each kind that may have names, and number of those that have one."""
    touched: Counter[int] = Counter()
    named: Counter[int] = Counter()
    for (kind, count), name in zip(listed[["kind", "lines"]].tolist(), names, strict=True):
        touched[kind] += count
        named[kind] += count if name.name else 0
    return {kind: LinesOfKind(touched[kind], named[kind]) for kind in NAMED_KINDS}


def first_byte(line: int, touched: int) -> int:
    """The address of the first byte of a line that was touched."""
    return line * LINE + (touched & -touched).bit_length() - 1


def _variable(symbols: KernelSymbols, address: int) -> str:
    """A variable of the kernel or of a module; none if code lies, which has data of its own now and then."""
    found = symbols.data.at(address)
    return "" if found is None or symbols.code_before(address) > found[1] else found[0]


def by_function(
    listed: npt.NDArray[np.void],
    functions: Sequence[str],
    names: Sequence[LineName],
    kinds: Mapping[LineKind, str],
    misses: Mapping[str, npt.NDArray[np.uint64]] | None = None,
) -> dict[str, dict[str, dict[str, int]]]:
    """Number of lines of each name, by function and by the kind that they are counted as.

    Args:
        functions: what touched each line.
        kinds: what lines of each kind are counted as;
        misses: by what it is counted as, how many of each line a level of the caches did not have.
    """
    lines: Counter[tuple[str, str, str]] = Counter()
    missed = {name: count.tolist() for name, count in (misses or {}).items()}
    rows = zip(functions, names, listed[["kind", "lines"]].tolist(), strict=True)
    for row, (function, one, (kind, count)) in enumerate(rows):
        if one.name and kind in kinds:
            lines[function, kinds[LineKind(kind)], one.name] += count
            for name, each in missed.items():
                if each[row]:
                    lines[function, name, one.name] += each[row]
    found: dict[str, dict[str, dict[str, int]]] = {}
    for (function, counted, name), count in sorted(lines.items()):
        found.setdefault(function, {}).setdefault(counted, {})[name] = count
    return found


def fields_by_function(
    listed: npt.NDArray[np.void], functions: Sequence[str], names: Sequence[LineName], *, shared: bool
) -> dict[str, dict[str, str]]:
    """Fields of their struct that each function touches, by name of its lines: ``sk_buff.head, .len``.

    Args:
        shared: whether lines are those that CPUs share, whose written fields are distinguished.
    """
    # Objects of a cache are alike: the same bytes are touched of most of them.
    alike: Counter[tuple[str, str, int, int, int]] = Counter()
    parts: dict[str, StructPart] = {}
    rows = listed[["line", "touched", "written", "lines"]].tolist()
    for function, one, (line, touched, written, count) in zip(functions, names, rows, strict=True):
        if one.part is not None:
            alike[function, one.name, line * LINE - one.part.begin, touched, written if shared else 0] += count
            parts[one.name] = one.part
    fields: dict[tuple[str, str], Counter[tuple[bool, str]]] = {}
    whole: Counter[tuple[str, str]] = Counter()
    for (function, name, at, touched, written), count in alike.items():
        whole[function, name] += count
        own = fields.setdefault((function, name), Counter())
        stored, members = (parts[name].members(parts[name].begin + at, each) for each in (written, touched))
        own.update(dict.fromkeys(((True, member) for member in stored), count))
        own.update(dict.fromkeys(((False, member) for member in members if member not in stored), count))
    found: dict[str, dict[str, str]] = {}
    for (function, name), counted in fields.items():
        often = [one for one, count in counted.most_common() if count >= _OFTEN * whole[function, name]]
        if often:
            found.setdefault(function, {})[name] = _fields_in_words(parts[name].struct, often, shared=shared)
    return found


def _fields_in_words(struct: str, members: Sequence[tuple[bool, str]], *, shared: bool) -> str:
    """``net_bridge_fdb_entry.used written, .key read``."""
    parts = []
    for wrote, verb in ((True, "written"), (False, "read")):
        own = [f".{member}" for stored, member in members if stored == wrote][:_FIELDS]
        if own:
            parts.append(f"{', '.join(own)} {verb}" if shared else ", ".join(own))
    return f"{struct}{', '.join(parts)}"


_OF_MAPS = (LineKind.DIRECT, LineKind.VMALLOC, LineKind.PER_CPU)
"""Kinds of lines that may be a BPF map's."""
_OFTEN = 0.3
"""Share of a function's lines of one name above which a field of them is named."""
_FIELDS = 3
"""The most fields that are named."""


_SECTION = ".data..percpu"


class PerCpuStructs:
    """The structs of a kernel's per-CPU variables.

    Args:
        begin: where the variables begin, as the kernel's file has them.
    """

    def __init__(self, types: Types, begin: int) -> None:
        self._types = types
        self._begin = begin
        self._known: dict[int, tuple[str, tuple[str, ...]] | None] = {}
        try:
            self._placed = types.placed(_SECTION)
        except ValueError:  # a stranger's types are damaged
            self._placed = {}

    @property
    def lacking(self) -> list[str]:
        """The section of per-CPU variables, where the kernel's types have none of these."""
        return [] if self._placed else [_SECTION]

    def part(self, variable: int, address: int) -> StructPart | None:
        """The struct of a variable; None if it is no struct, or not known.

        Args:
            variable: where it begins, as the kernel's file has it.
            address: where a CPU's own begins.
        """
        if variable not in self._known:
            try:
                self._known[variable] = self._struct(self._placed.get(variable - self._begin))
            except ValueError:
                self._known[variable] = None
        found = self._known[variable]
        return None if found is None else StructPart(*found, address)

    def _struct(self, number: int | None) -> tuple[str, tuple[str, ...]] | None:
        kind = None if number is None else self._types.kind(number)
        if number is None or kind is None or kind.sort != "struct" or not kind.name:
            return None
        return kind.name, self._types.layout(number)
