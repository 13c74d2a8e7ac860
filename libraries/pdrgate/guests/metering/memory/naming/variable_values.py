"""The content of a guest's variables, read in its memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pdrgate.guests.guest_memory import GuestMemory
from pdrgate.guests.metering.memory.line_areas import LineArea
from pdrgate.guests.metering.memory.naming.page_owners import kernel_notes
from pdrgate.guests.metering.static_data import CPU_AREAS, CPU_BEGIN, CPU_END
from pdrgate.guests.metering.symbols import KernelSymbols


def variable_values(
    memory: GuestMemory, symbols: KernelSymbols, areas: Sequence[LineArea], names: Collection[str]
) -> dict[str, bytes]:
    """The bytes of variables, of per-CPU ones those of the first CPU; of several with one name one behind the other.

    Nothing is read of a kernel whose page tables are not found.
    """
    notes = kernel_notes(symbols, areas, memory)
    if notes is None:
        return {}
    marks = symbols.data.marks
    of_cpus = range(marks.get(CPU_BEGIN, 0), marks.get(CPU_END, 0))
    places = marks.get(CPU_AREAS)
    cpu = 0 if places is None else int.from_bytes(memory.virtual(notes.tables, places, 8), "little")
    found: dict[str, bytes] = {}
    for name, at, size in symbols.data.places(names):
        address = (at + cpu) % (1 << 64) if at in of_cpus else at
        found[name] = found.get(name, b"") + memory.stretch(notes.tables, address, size)
    return found
