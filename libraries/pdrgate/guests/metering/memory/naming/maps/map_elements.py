"""The memory of a BPF map, as the kernel's code for each type of map allocates it (kernel/bpf/*.c).

A type of map that is not known here has its struct bpf_map alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.memory.naming.kernel_structs import ADDRESSES, KernelStructs

_MOST = 1 << 14
"""Elements that are looked for one by one, of a map whose elements are allocated one by one."""


@dataclass(frozen=True, slots=True)
class KnownMap:
    """The kernel's entry of a map."""

    at: int
    """The address of its struct bpf_map, with which the struct of its type begins."""
    name: str
    kind: int
    """BPF_MAP_TYPE_…"""
    key_size: int
    value_size: int
    entries: int
    """The most elements."""


@dataclass(frozen=True, slots=True)
class MapPart:
    """Memory of a map: stretches of one size."""

    first: npt.NDArray[np.uint64]
    """Their addresses; of what each CPU has for itself as the kernel has them, without the CPU's own part."""
    size: int
    of_each_cpu: bool = False


MapParts = Iterator[MapPart]


def parts_of_map(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    """The memory of a map.

    Args:
        cpus: how many the guest has.
    """
    layout = _LAYOUTS.get(one.kind)
    return _whole(one, kernel.size("bpf_map")) if layout is None else layout(kernel, one, cpus)


def _at(*addresses: int) -> npt.NDArray[np.uint64]:
    return np.array([address & ADDRESSES for address in addresses if address], np.uint64)


def _whole(one: KnownMap, size: int) -> MapParts:
    yield MapPart(_at(one.at), size)


def _each(kernel: KernelStructs, table: int, count: int, size: int) -> MapParts:
    """A table of pointers, and what they point to."""
    yield MapPart(_at(table), 8 * count)
    yield MapPart(kernel.words(table, min(count, _MOST)), size)


def _rounded(size: int) -> int:
    return (size + 7) // 8 * 8


def _inside(structure: str, member: str, each: int = 8) -> Callable[[KernelStructs, KnownMap, int], MapParts]:
    """Elements of so many bytes behind what the map has of itself."""

    def parts(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
        yield MapPart(_at(one.at), (kernel.offset(structure, member) or 0) + each * one.entries)

    return parts


def _array(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    each = kernel.number(one.at, "bpf_array", "elem_size")
    yield MapPart(_at(one.at), (kernel.offset("bpf_array", "value") or 0) + each * one.entries)


def _array_of_each_cpu(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    yield MapPart(_at(one.at), (kernel.offset("bpf_array", "pptrs") or 0) + 8 * one.entries)
    pointers = kernel.words(kernel.place(one.at, "bpf_array", "pptrs"), one.entries)
    yield MapPart(pointers, _rounded(one.value_size), of_each_cpu=True)


def _hash(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    yield MapPart(_at(one.at), kernel.size("bpf_htab"))
    buckets, elements = (kernel.pointer(one.at, "bpf_htab", name) for name in ("buckets", "elems"))
    count, each = (kernel.number(one.at, "bpf_htab", name) for name in ("n_buckets", "elem_size"))
    bucket = kernel.size_behind("bpf_htab", "buckets")
    yield MapPart(_at(buckets), bucket * count)
    if elements:
        # Each CPU has one more, with which it replaces one.
        more = cpus if one.kind not in (*_OF_EACH_CPU, *_LRU) else 0
        yield MapPart(_at(elements), each * (one.entries + more))
        yield from _free_elements(kernel, one)
    else:  # BPF_F_NO_PREALLOC: they are allocated one by one
        each_element = _at(*_linked(kernel, kernel.words(buckets, count, bucket)))
        yield MapPart(each_element, each)
    if one.kind in _OF_EACH_CPU:
        behind = (kernel.offset("htab_elem", "key") or 0) + _rounded(one.key_size)
        values = (
            kernel.words(elements + behind, one.entries, each)
            if elements
            else _at(*(word for at in each_element.tolist() for word in kernel.words(at + behind, 1).tolist()))
        )
        yield MapPart(values, _rounded(one.value_size), of_each_cpu=True)


def _free_elements(kernel: KernelStructs, one: KnownMap) -> MapParts:
    """Parts that each CPU has of a hash whose elements are there from the begin on."""
    yield MapPart(_at(kernel.pointer(one.at, "bpf_htab", "extra_elems")), 8, of_each_cpu=True)
    if one.kind in _LRU:
        lists = kernel.place(kernel.place(one.at, "bpf_htab", "lru"), "bpf_lru", "common_lru")
        local, size = kernel.pointer(lists, "bpf_common_lru", "local_list"), kernel.size("bpf_lru_locallist")
    else:
        local = kernel.pointer(kernel.place(one.at, "bpf_htab", "freelist"), "pcpu_freelist", "freelist")
        size = kernel.size("pcpu_freelist_head")
    yield MapPart(_at(local), size, of_each_cpu=True)


def _linked(kernel: KernelStructs, heads: Iterable[int]) -> list[int]:
    """The addresses of all members of lists, which begin with the address of the next one."""
    found: list[int] = []
    for head in map(int, heads):
        if len(found) >= _MOST:
            break
        found += kernel.linked(head)
    return found[:_MOST]


def _trie(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    yield MapPart(_at(one.at), kernel.size("lpm_trie"))
    left, found = [kernel.pointer(one.at, "lpm_trie", "root")], dict[int, None]()
    while left and len(found) < _MOST:
        if (node := left.pop()) and node not in found:
            found[node] = None
            left += kernel.words(kernel.place(node, "lpm_trie_node", "child"), 2).tolist()
    size = (kernel.offset("lpm_trie_node", "data") or 0) + max(0, one.key_size - _PREFIX) + one.value_size
    yield MapPart(_at(*found), size)


def _devices(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    yield MapPart(_at(one.at), kernel.size("bpf_dtab"))
    table = kernel.pointer(one.at, "bpf_dtab", "netdev_map")
    yield from _each(kernel, table, one.entries, kernel.size("bpf_dtab_netdev"))


def _devices_by_hash(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    yield MapPart(_at(one.at), kernel.size("bpf_dtab"))
    table, count = kernel.pointer(one.at, "bpf_dtab", "dev_index_head"), kernel.number(one.at, "bpf_dtab", "n_buckets")
    yield MapPart(_at(table), 8 * count)
    before = kernel.offset("bpf_dtab_netdev", "index_hlist") or 0
    links = _linked(kernel, kernel.words(table, count))
    yield MapPart(_at(*(link - before for link in links)), kernel.size("bpf_dtab_netdev"))


def _cpus(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    yield MapPart(_at(one.at), kernel.size("bpf_cpu_map"))
    table = kernel.pointer(one.at, "bpf_cpu_map", "cpu_map")
    yield from _each(kernel, table, one.entries, kernel.size("bpf_cpu_map_entry"))


def _sockets(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    yield MapPart(_at(one.at), kernel.size("bpf_stab"))
    yield MapPart(_at(kernel.pointer(one.at, "bpf_stab", "sks")), 8 * one.entries)


def _queue(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    # One element stays free, so that a full queue is no empty one.
    elements = kernel.offset("bpf_queue_stack", "elements") or 0
    yield MapPart(_at(one.at), elements + one.value_size * (one.entries + 1))


def _ring(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    yield MapPart(_at(one.at), kernel.size("bpf_ringbuf_map"))
    ring = kernel.pointer(one.at, "bpf_ringbuf_map", "rb")
    # Its data is mapped twice, one behind the other, so that no record is in two parts.
    data = kernel.offset("bpf_ringbuf", "data") or 0
    yield MapPart(_at(ring), data + 2 * (kernel.number(ring, "bpf_ringbuf", "mask", 8) + 1))


def _filter(kernel: KernelStructs, one: KnownMap, cpus: int) -> MapParts:
    bits = kernel.number(one.at, "bpf_bloom_filter", "bitset_mask") + 1
    yield MapPart(_at(one.at), (kernel.offset("bpf_bloom_filter", "bitset") or 0) + bits // 8)


_PREFIX = 4
"""Bytes of a trie's key that hold its length."""
_LRU = (9, 10)
_OF_EACH_CPU = (5, 10)
"""Types of hashes."""
_LAYOUTS: Mapping[int, Callable[[KernelStructs, KnownMap, int], MapParts]] = {
    1: _hash, 5: _hash, 9: _hash, 10: _hash, 13: _hash,
    2: _array, 3: _array, 4: _array, 8: _array, 12: _array, 6: _array_of_each_cpu,
    11: _trie, 14: _devices, 25: _devices_by_hash, 15: _sockets, 16: _cpus, 17: _inside("xsk_map", "xsk_map"),
    20: _inside("reuseport_array", "ptrs"), 22: _queue, 23: _queue, 27: _ring, 30: _filter,
}  # fmt: skip
"""Parts of maps by BPF_MAP_TYPE_… (include/uapi/linux/bpf.h)."""
