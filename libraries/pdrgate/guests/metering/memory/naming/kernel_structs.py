"""The structs of a kernel in a guest's memory, read by the types of its build.

A stranger's kernel writes that memory, and a stranger's file has the types: all that is read is bounded, and what is
not there, or comes after so much that no kernel has it, reads as 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pdrgate.bpf.btf import Types
from pdrgate.guests.guest_memory import PAGE, GuestMemory, PageTables

ADDRESSES = (1 << 64) - 1
"""The bits of an address."""
_LARGEST = 8 << 20
"""Bytes of an array at most."""
_LONGEST = 1 << 12
"""Members of a list at most."""
_PAGES = 1 << 17
"""Limit on the number of looks into pages: a second, whatever a stranger's kernel has there."""


class KernelStructs:
    """Reads members of structs.

    Raises:
        ValueError: in all methods: the types are damaged.
    """

    def __init__(self, memory: GuestMemory, tables: PageTables, types: Types) -> None:
        self._memory = memory
        self._tables = tables
        self._types = types
        self._known: dict[tuple[str, str], int | None] = {}
        self._left = _PAGES
        self.lacking: set[str] = set()
        """Structs, and members such as ``xa_node.slots``, that were looked for and are not there."""

    def offset(self, structure: str, member: str) -> int | None:
        """Byte at which a member of a struct begins; None if there is no such member."""
        if (structure, member) not in self._known:
            place = self._known[structure, member] = self._types.place_of(structure, member)
            if place is None:
                self.lacking.add(f"{structure}.{member}")
        return self._known[structure, member]

    def place(self, at: int, structure: str, member: str) -> int:
        """The address of a member of the struct at an address; 0 if there is none."""
        offset = self.offset(structure, member)
        return 0 if not at or offset is None else (at + offset) & ADDRESSES

    def number(self, at: int, structure: str, member: str, size: int = 4) -> int:
        """The number of ``size`` bytes in a member of a struct."""
        place = self.place(at, structure, member)
        return int.from_bytes(self._read(place, size), "little") if place else 0

    def pointer(self, at: int, structure: str, member: str) -> int:
        """Address that a member points to."""
        return self.number(at, structure, member, 8)

    def text(self, at: int, structure: str, member: str) -> str:
        """A string that is in a struct itself; printable."""
        place = self.place(at, structure, member)
        return self._memory.text(self._tables, place) if place and self._left > 0 else ""

    def size(self, structure: str) -> int:
        """Bytes of a struct; 0 if there is none."""
        number = self._types.number_of(structure)
        if number is None:
            self.lacking.add(structure)
            return 0
        return self._types.size(number)

    def size_behind(self, structure: str, member: str) -> int:
        """Bytes of what a member points to; 0 if it points to nothing that has a size."""
        return self._types.size_behind(structure, member) or 0

    def words(self, at: int, count: int, each: int = 8) -> npt.NDArray[np.uint64]:
        """Words of 64 bits from an address on.

        Args:
            each: bytes from one to the next.
        """
        if not at or not 8 <= each <= _LARGEST:
            return np.empty(0, np.uint64)
        content = self._read(at, min(count, _LARGEST // each) * each)
        rows = np.frombuffer(content[: len(content) // each * each], np.uint8).reshape(-1, each)
        return np.ascontiguousarray(rows[:, :8]).view("<u8").ravel().astype(np.uint64)

    def linked(self, first: int) -> Iterator[int]:
        """The addresses of a list's members, which begin with the address of the next one.

        The last one has a null there, or a number that is odd.
        """
        seen: set[int] = set()
        while first and not first & 1 and first not in seen and len(seen) < _LONGEST:
            seen.add(first)
            yield first
            first = int.from_bytes(self._read(first, 8), "little")

    def _read(self, at: int, size: int) -> bytes:
        self._left -= 1 + size // PAGE
        return self._memory.stretch(self._tables, at, size) if self._left > 0 else b""
