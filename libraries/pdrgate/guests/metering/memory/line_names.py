"""What a line of data is, by its own name: a slab cache, a variable, a per-CPU variable with its CPU, a BPF map.

All of it is read of the guest's memory when a trial has ended: the guest executes nothing for it. What is not known for
certain has no name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pdrgate.guests.guest_memory import PAGE, GuestMemory
from pdrgate.guests.metering.memory.cache_levels import LINE
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind
from pdrgate.guests.metering.memory.page_owners import KernelNotes, PageOwner, kernel_notes, page_owners
from pdrgate.guests.metering.static_data import CPU_AREAS, CPU_BEGIN, CPU_END
from pdrgate.guests.metering.symbols import KernelSymbols


class NamesLines(Protocol):
    """Tells of lines, `TOLD_LINE`, by the kernel's symbols and areas what they are: a name each, empty for none."""

    def __call__(
        self, symbols: KernelSymbols, areas: Sequence[LineArea], told: npt.NDArray[np.void]
    ) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class GuestLineNames:
    """Names of a guest's lines; satisfies `NamesLines`.

    Args:
        vcpus: how many CPUs the guest has.
    """

    memory: GuestMemory
    vcpus: int

    def __call__(self, symbols: KernelSymbols, areas: Sequence[LineArea], told: npt.NDArray[np.void]) -> Sequence[str]:
        notes = kernel_notes(symbols, areas)
        addresses = [first_byte(line, touched) for line, touched in told[["line", "touched"]].tolist()]
        kinds = told["kind"].tolist()
        pages = {at // PAGE for at, kind in zip(addresses, kinds, strict=True) if kind == LineKind.DIRECT}
        owners = page_owners(self.memory, notes, pages) if notes is not None and pages else {}
        areas_of_cpus = tuple(self._cpu_areas(symbols, notes))
        known: dict[tuple[int, int], str] = {}
        for at in set(zip(addresses, kinds, strict=True)):
            known[at] = self._name(symbols, owners, areas_of_cpus, *at)
        return [known[at] for at in zip(addresses, kinds, strict=True)]

    def _name(
        self, symbols: KernelSymbols, owners: Mapping[int, PageOwner], areas: Sequence[int], address: int, kind: int
    ) -> str:
        match kind:
            case LineKind.DIRECT:
                return owners[address // PAGE].name if address // PAGE in owners else ""
            case LineKind.SYMBOL:
                return _variable(symbols, address)
            case LineKind.PER_CPU:
                return self._of_cpu(symbols, areas, address)
        return ""

    def _of_cpu(self, symbols: KernelSymbols, areas: Sequence[int], address: int) -> str:
        """A per-CPU variable that the kernel has from the boot on, and of which CPU it is where there are several."""
        marks = symbols.data.marks
        for cpu, area in enumerate(areas):
            at = (address - area) % (1 << 64)
            if marks.get(CPU_BEGIN, 0) <= at < marks.get(CPU_END, 0) and (found := symbols.data.at(at)) is not None:
                return f"{found[0]} of CPU {cpu}" if self.vcpus > 1 else f"per-CPU {found[0]}"
        return ""

    def _cpu_areas(self, symbols: KernelSymbols, notes: KernelNotes | None) -> Iterator[int]:
        """How far each CPU's area lies behind where the kernel's file has it."""
        places = symbols.data.marks.get(CPU_AREAS)
        if notes is not None and places is not None:
            for cpu in range(self.vcpus):
                yield int.from_bytes(self.memory.virtual(notes.tables, places + 8 * cpu, 8), "little")


def first_byte(line: int, touched: int) -> int:
    """The address of the first byte of a line that was touched."""
    return line * LINE + (touched & -touched).bit_length() - 1


def _variable(symbols: KernelSymbols, address: int) -> str:
    """A variable of the kernel or of a module; none where code lies, which has data of its own now and then."""
    found = symbols.data.at(address)
    return "" if found is None or symbols.code_before(address) > found[1] else found[0]


def by_function(
    told: npt.NDArray[np.void], functions: Sequence[str], names: Sequence[str], kinds: Mapping[LineKind, str]
) -> dict[str, dict[str, dict[str, int]]]:
    """How many lines have which name, by function and by kind.

    Args:
        functions: what touched each line.
        kinds: what kinds are called.
    """
    lines: Counter[tuple[str, int, str]] = Counter()
    for function, name, (kind, count) in zip(functions, names, told[["kind", "lines"]].tolist(), strict=True):
        if name:
            lines[function, kind, name] += count
    found: dict[str, dict[str, dict[str, int]]] = {}
    for (function, kind, name), count in sorted(lines.items()):
        if kind in kinds:
            found.setdefault(function, {}).setdefault(kinds[LineKind(kind)], {})[name] = count
    return found
