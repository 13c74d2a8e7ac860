"""Structs of the objects of a slab cache, and the offset of an address in an object.

Only certain cases are named: a cache that shares its slabs with no other, of a name that is its struct's, or that is
known to be of one, and objects that have room for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pdrgate.bpf.btf import Types
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.kernel_modules import module_places
from pdrgate.guests.guest_memory import GuestMemory, PageTables
from pdrgate.guests.metering.memory.naming.kernel_types import kernel_types, module_types
from pdrgate.guests.metering.memory.naming.page_owners import PageOwner

_CACHE, _NEEDED = "kmem_cache", ("refcount", "object_size", "size")
"""The struct of a cache, and its members by which its objects are known."""
_OBJECTS: Mapping[str, tuple[str, str]] = {
    "skbuff_head_cache": ("sk_buff", ""), "skbuff_fclone_cache": ("sk_buff_fclones", ""),
    "skbuff_ext_cache": ("skb_ext", ""), "bridge_fdb_cache": ("net_bridge_fdb_entry", "bridge"),
    "nf_conntrack": ("nf_conn", "nf_conntrack"), "ip_dst_cache": ("rtable", ""), "ip6_dst_cache": ("rt6_info", ""),
    "fib6_nodes": ("fib6_node", ""), "ip_fib_alias": ("fib_alias", ""), "inet_peer_cache": ("inet_peer", ""),
    "xfrm_dst_cache": ("xfrm_dst", ""), "sock_inode_cache": ("socket_alloc", ""), "TCP": ("tcp_sock", ""),
    "TCPv6": ("tcp6_sock", ""), "UDP": ("udp_sock", ""), "UDPv6": ("udp6_sock", ""), "RAW": ("raw_sock", ""),
    "RAWv6": ("raw6_sock", ""), "request_sock_TCP": ("tcp_request_sock", ""), "filp": ("file", ""),
    "tw_sock_TCP": ("tcp_timewait_sock", ""), "net_namespace": ("net", ""),
}  # fmt: skip
"""Struct, and the module that has it if any has, by the name of a cache that is not its struct's."""


@dataclass(frozen=True, slots=True)
class StructPart:
    """An address in a struct that is known."""

    struct: str
    layout: tuple[str, ...]
    """Member of each byte; empty if the byte is of no member with a name."""
    begin: int
    """The address at which it begins."""

    def members(self, first: int, bytes_of_line: int) -> list[str]:
        """The members that bytes are of, a bit each, of a line that begins at an address."""
        found: dict[str, None] = {}
        while bytes_of_line:
            at = first + (bytes_of_line & -bytes_of_line).bit_length() - 1 - self.begin
            bytes_of_line &= bytes_of_line - 1
            if 0 <= at < len(self.layout):
                found[self.layout[at]] = None
        return [one for one in found if one]


@dataclass(frozen=True, slots=True)
class _Objects:
    """Layout of a cache's objects in its slabs."""

    struct: str
    layout: tuple[str, ...]
    size: int
    """Bytes from one to the next."""
    before: int
    """Bytes before each, by which the kernel would see writes out of bounds."""


class SlabObjects:
    """The objects of the slab caches of a guest."""

    def __init__(self, memory: GuestMemory, tables: PageTables, build: KernelBuild) -> None:
        self._memory = memory
        self._tables = tables
        self._build = build
        self._types = kernel_types(build)
        self._known: dict[int, _Objects | None] = {}

    @property
    def lacking(self) -> list[str]:
        """Members of a cache that the kernel's types do not have, and without which no object is known."""
        types = self._types
        return [] if types is None else [f"{_CACHE}.{one}" for one in _NEEDED if types.place_of(_CACHE, one) is None]

    def part(self, owner: PageOwner, address: int) -> StructPart | None:
        """The struct of an object that an address is in; None if it is not certain."""
        if not owner.cache or self._types is None:
            return None
        if owner.cache not in self._known:
            try:
                self._known[owner.cache] = self._objects(owner, self._types)
            except ValueError:  # a stranger's types are damaged
                self._known[owner.cache] = None
        found = self._known[owner.cache]
        if found is None:
            return None
        begin = owner.first + (address - owner.first) // found.size * found.size + found.before
        return StructPart(found.struct, found.layout, begin) if begin <= address else None

    def _objects(self, owner: PageOwner, kernel: Types) -> _Objects | None:
        """The objects of a cache; None if others share its slabs, or their struct is not known."""
        members = (*_NEEDED, "red_left_pad")
        refcount, room, each, before = (self._number(owner, kernel.place_of(_CACHE, one)) for one in members)
        name, module = _OBJECTS.get(owner.name, (owner.name, ""))
        # The kernel itself may have a struct of that name, too, as it was when the module was another one.
        of_module = module in module_places(self._build)
        types = module_types(self._build, module) if of_module else kernel
        number = None if types is None else types.number_of(name)
        if types is None or number is None or refcount != 1:
            return None
        size = types.size(number)
        if not 0 < size <= room <= each:
            return None
        return _Objects(name, types.layout(number), each, before)

    def _number(self, owner: PageOwner, place: int | None) -> int:
        """A number of 32 bits of a cache; 0 if it has none."""
        if place is None:
            return 0
        return int.from_bytes(self._memory.virtual(self._tables, owner.cache + place, 4), "little")
