"""BPF maps of lines of data, by the kernel's own list of all maps, read in a guest's memory.

A map's elements lie in what vmalloc made, in pages, in a slab, or in what each CPU has for itself: none of that says
whose they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.memory.naming.kernel_structs import KernelStructs
from pdrgate.guests.metering.memory.naming.maps.map_elements import KnownMap, MapPart, parts_of_map

_MAPS = 1024
"""The most maps that are looked at."""
_DEEPEST = 11
"""Levels of the list of maps: each resolves six bits of a number of 64 bits."""
_SLOTS = 64
_TO_NODE = 2
"""The lowest two bits of an address of what is another level."""
_NAME = 15
"""Characters of a map's name at most."""
_LARGEST = 1 << 40
"""Bytes of a map."""
_STRETCHES = 1 << 20
"""The most pieces of memory of all maps."""


@dataclass(frozen=True, slots=True)
class MapOwner:
    """Map that an address belongs to."""

    name: str
    """The map's, as the kernel has it: 15 characters at most."""
    cpu: int | None
    """CPU that owns the address, in the memory that each CPU has for itself."""


class MapAreas:
    """The places of the maps of a kernel.

    Args:
        maps: the address of the kernel's list of all maps, ``map_idr``.
        areas: how far each CPU's area lies behind where the kernel's file has it.
    """

    def __init__(self, kernel: KernelStructs, maps: int, areas: Sequence[int]) -> None:
        self._owners: list[MapOwner] = []
        first: list[npt.NDArray[np.uint64]] = []
        size: list[int] = []
        for one, part in _parts(kernel, maps, len(areas)):
            for cpu, area in enumerate(areas) if part.of_each_cpu else ((None, 0),):
                first.append(part.first + np.uint64(area))
                size.append(part.size)
                self._owners.append(MapOwner(one.name, cpu))
        lengths = [len(one) for one in first]
        begin = np.concatenate(first) if first else np.empty(0, np.uint64)
        order = np.argsort(begin, kind="stable")
        self._first = begin[order]
        self._size = np.repeat(np.array(size, np.uint64), lengths)[order]
        self._owner = np.repeat(np.arange(len(lengths)), lengths)[order]

    def at(self, address: int) -> MapOwner | None:
        """The map that has an address; None if none has."""
        number = int(np.searchsorted(self._first, np.uint64(address), side="right")) - 1
        if number < 0 or address - int(self._first[number]) >= int(self._size[number]):
            return None
        return self._owners[int(self._owner[number])]


def known_maps(kernel: KernelStructs, maps: int) -> Iterator[KnownMap]:
    """The maps that a kernel has."""
    root = kernel.pointer(kernel.place(maps, "idr", "idr_rt"), "xarray", "xa_head")
    left, found = [(root, 0)], 0
    while left and found < _MAPS:
        at, depth = left.pop()
        found += 1
        if at & 3 == _TO_NODE and depth < _DEEPEST:
            slots = kernel.words(kernel.place(at - _TO_NODE, "xa_node", "slots"), _SLOTS).tolist()
            left += [(int(slot), depth + 1) for slot in slots if slot]
        elif at and at & 3 == 0:
            kind, key, value, entries = (
                kernel.number(at, "bpf_map", name) for name in ("map_type", "key_size", "value_size", "max_entries")
            )
            # Maps that libbpf makes of variables begin with the object's name; a loader may leave a map without one.
            name = kernel.text(at, "bpf_map", "name")[:_NAME] or "without a name"
            yield KnownMap(at, name, kind, key, value, entries)


def _parts(kernel: KernelStructs, maps: int, cpus: int) -> Iterator[tuple[KnownMap, MapPart]]:
    """The memory of all maps, as far as it can be, without what a stranger's kernel may make up beyond that."""
    left = _STRETCHES
    for one in known_maps(kernel, maps):
        for part in parts_of_map(kernel, one, cpus):
            known = part.first[part.first > 0]
            left -= len(known)
            if 0 < part.size < _LARGEST and left > 0:
                yield one, MapPart(known, part.size, part.of_each_cpu)
