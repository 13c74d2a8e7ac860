"""Names for a kernel's variables, as its /proc/kallsyms has them where it has any (CONFIG_KALLSYMS_ALL)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Self

import numpy as np
import numpy.typing as npt

from pdrgate.builds.architecture import ARCHITECTURES
from pdrgate.values.printable import printable_name

DATA = frozenset("dDbBrRvVA")
"""Types of symbols that are variables; A: per-CPU ones, by their distance from the begin of a CPU's area."""
CPU_BEGIN, CPU_END, CPU_AREAS = "__per_cpu_start", "__per_cpu_end", "__per_cpu_offset"
"""Symbols of the begin and the end of the per-CPU variables, and of an array of how far from there each CPU has its
own."""
MAPS = "map_idr"
"""The BPF maps of a kernel, by their ids."""
PAGE_TABLES = tuple(one.page_tables for one in ARCHITECTURES)
"""The kernel's page tables, by what each architecture calls them."""
SLAB_CACHES = "slab_caches"
"""The kernel's list of all slab caches."""
FOUND_BY_NAME = (*PAGE_TABLES, SLAB_CACHES, CPU_BEGIN, CPU_END, CPU_AREAS, MAPS)
"""Symbols that are looked for by their names: page tables, the list of slab caches, CPUs' areas, BPF maps."""
_LARGEST = 64 << 20
"""Bytes of a variable at most."""
_COMPARED = 64 << 10
"""Bytes of a variable that are read: behind the last one of a section lies what has no name."""
_MADE = re.compile(r"\.(?:\d+|\w+\.\d+|llvm\.\d+)$")
"""Suffix that a compiler adds to the names of static variables of functions."""
_CONSTANT = re.compile(r"\.L")
"""Strings and the like in modules, which have no names but the compiler's."""
_ABOUT = re.compile(r"__(?:ksymtab_|kstrtab|crc_|BTF_ID_|param_|setup_|initcall_|UNIQUE_ID|per_cpu_|start_|stop_|end_)")
"""Notes that the kernel has of itself; no packet touches them."""


class StaticData:
    """Addresses and names of variables.

    Args:
        names: by address; of several at one address one. What begins where a name is empty has none.
        marks: addresses of `FOUND_BY_NAME`, as far as they are known and not 0.
    """

    def __init__(self, names: Mapping[int, str], marks: Mapping[str, int] | None = None) -> None:
        at = sorted(names)
        self.addresses: npt.NDArray[np.uint64] = np.array(at, dtype=np.uint64)
        self.names = [names[address] for address in at]
        self.marks: Mapping[str, int] = marks or {}

    @classmethod
    def of(cls, symbols: Iterable[tuple[int, str]]) -> Self:
        """Variables among symbols that name what a packet may touch; of several at one address the shortest name."""
        found: dict[int, str] = {}
        marks: dict[str, int] = {}
        for address, symbol in symbols:
            name = "" if _CONSTANT.match(symbol) else _MADE.sub("", printable_name(symbol))
            if name in FOUND_BY_NAME and address:
                marks.setdefault(name, address)
            known = found.get(address)
            if not _ABOUT.match(name) and (known is None or _rank(name) < _rank(known)):
                found[address] = name
        return cls(found, marks)

    def with_more(self, symbols: Iterable[tuple[int, str]]) -> StaticData:
        """The variables and some more, at other addresses."""
        return StaticData(StaticData.of(symbols)._by_address() | self._by_address(), self.marks)

    def moved(self, by: int) -> StaticData:
        """The variables of a kernel that lies elsewhere; per-CPU ones do not move."""

        def new(address: int) -> int:
            return address + by if address >= _FIRST else address

        marks = {name: new(at) for name, at in self.marks.items()}
        return StaticData({new(at): name for at, name in self._by_address().items()}, marks)

    def places(self, names: Collection[str]) -> Iterator[tuple[str, int, int]]:
        """The name, the address and the size of each variable that has one of these names."""
        begins = self.addresses.tolist()
        for number, name in enumerate(self.names[:-1]):
            if name in names:
                yield name, begins[number], min(begins[number + 1] - begins[number], _COMPARED)

    def _by_address(self) -> dict[int, str]:
        return dict(zip(self.addresses.tolist(), self.names, strict=True))

    def at(self, address: int) -> tuple[str, int] | None:
        """The variable that an address is in, and its begin; None if there is none."""
        number = int(np.searchsorted(self.addresses, np.uint64(address), side="right")) - 1
        if number < 0:
            return None
        begin = int(self.addresses[number])
        return (self.names[number], begin) if address - begin < _LARGEST else None


def _rank(name: str) -> tuple[bool, int, str]:
    """Rank the names of one address: people use the lowest."""
    return not name, len(name), name


_FIRST = 1 << 63
"""Below it no kernel has anything but distances."""
