"""The memory of a guest, read without a word of the guest and at no cost to it."""

from __future__ import annotations

from dataclasses import dataclass

from pdrgate.builds.architecture import Architecture
from pdrgate.guests.shared_memory import SharedMemory
from pdrgate.values.printable import printable

PAGE = 4096
"""Bytes of a page."""
_LEVELS = (48, 39, 30, 21, 12)
"""Bits of an address behind those that a level of page tables takes; with four levels there is no first one."""
_SPLIT = (30, 21)
"""Levels that may map a large page."""


@dataclass(frozen=True, slots=True)
class PageTables:
    """A kernel's page tables."""

    root: int
    """The physical address of their first level."""
    levels: int = 4
    """Four, or five where the CPU has them (LA57) and the kernel uses them."""


class GuestMemory(SharedMemory):
    """Memory of a guest of this machine.

    The guest writes it, and a stranger's kernel may run there: all that is read of it is bounded by its size.

    Args:
        mebibytes: its size.
        page_size: bytes of a page of its kernel; only tables of 4096 bytes are walked.
    """

    def __init__(self, mebibytes: int, architecture: Architecture, page_size: int = PAGE) -> None:
        self.size = mebibytes << 20
        self.architecture = architecture
        self.page_size = page_size
        super().__init__("pdrgate-guest-memory", self.size)

    def at(self, physical: int, size: int) -> bytes:
        """Bytes from a physical address on; fewer where the memory ends, and none below its begin."""
        at = physical - self.architecture.ram
        return self._memory[at : at + size] if at >= 0 else b""

    def word(self, physical: int) -> int:
        """The 64 bits at a physical address; 0 if there is no memory."""
        return int.from_bytes(self.at(physical, 8), "little")

    def physical(self, tables: PageTables, address: int) -> int | None:
        """The physical address of a virtual one; None if the kernel has it mapped nowhere."""
        table, bits = tables.root, self.architecture.pages
        for shift in _LEVELS[-tables.levels :]:
            entry = self.word(table + (address >> shift & 0x1FF) * 8)
            if not entry & bits.present:
                return None
            if shift == _LEVELS[-1] or (shift in _SPLIT and entry & bits.large == bits.large_is):
                inside = (1 << shift) - 1
                return (entry & bits.address & ~inside) | (address & inside)
            table = entry & bits.address
        return None

    def virtual(self, tables: PageTables, address: int, size: int) -> bytes:
        """Bytes from a virtual address on, to the end of its page at most; none if nothing is mapped there."""
        where = self.physical(tables, address)
        return b"" if where is None else self.at(where, min(size, PAGE - address % PAGE))

    def stretch(self, tables: PageTables, address: int, size: int) -> bytes:
        """Bytes from a virtual address on, of several pages; fewer where one of them is mapped nowhere."""
        found = bytearray()
        while len(found) < size:
            more = self.virtual(tables, address + len(found), size - len(found))
            if not more:
                break
            found += more
        return bytes(found)

    def text(self, tables: PageTables, address: int) -> str:
        """The string at a virtual address, as far as its page has it; it harms no terminal, whoever wrote it."""
        return printable(self.virtual(tables, address, 64).split(b"\0")[0].decode("ascii", "replace"))
