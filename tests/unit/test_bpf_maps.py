"""Which map a line is of, in a made-up kernel's memory; the types of its structs are those of a real object."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from compiled_types import types_of

from pdrgate.bpf.btf import Types
from pdrgate.builds.architecture import X86_64
from pdrgate.guests.guest_memory import GuestMemory, PageTables
from pdrgate.guests.metering.memory.naming.kernel_structs import KernelStructs
from pdrgate.guests.metering.memory.naming.maps.bpf_maps import MapAreas, MapOwner, known_maps

CODE = """
struct xarray { unsigned lock, flags; void *xa_head; } xarray;
struct idr { struct xarray idr_rt; } idr;
struct xa_node { unsigned char shift[8]; void *slots[64]; } xa_node;
struct bpf_map { unsigned map_type, key_size, value_size, max_entries; char name[16]; } map;
struct bpf_array { struct bpf_map map; unsigned elem_size; union { char value[0]; void *pptrs[0]; }; } array;
struct bucket { void *first; int lock; } bucket;
struct bpf_htab { struct bpf_map map; struct bucket *buckets; void *elems; unsigned n_buckets, elem_size; } htab;
struct htab_elem { void *next; int hash; char key[] __attribute__((aligned(8))); } element;
struct lpm_trie_node { struct lpm_trie_node *child[2]; unsigned char data[0]; } node;
struct lpm_trie { struct bpf_map map; struct lpm_trie_node *root; } trie;
"""
TABLES = 0x10_0000
LIST, NODE, OTHER_NODE = 0x20_0000, 0x20_1000, 0x20_2000
HASH, ARRAY, PER_CPU, TRIE, DATA = 1, 2, 6, 11, 0x30_0000
CPUS = (0x1_0000, 0x2_0000)


class MadeUp(GuestMemory):
    """Memory of 4 MiB, each byte of which has its physical address as its virtual one, too."""

    def __init__(self) -> None:
        super().__init__(4, X86_64)
        for entry, word in {TABLES: 0x10_1003, 0x10_1000: 0x10_2003, 0x10_2000: 0x83, 0x10_2008: 0x20_0083}.items():
            self.put(entry, word)

    def put(self, place: int, *words: int, size: int = 8) -> None:
        for number, word in enumerate(words):
            self._memory[place + size * number : place + size * (number + 1)] = word.to_bytes(size, "little")

    def map(self, at: int, name: bytes, kind: int, *more: int, key: int = 4, value: int = 100, entries: int = 4) -> int:
        """A map, and words behind its struct bpf_map."""
        self.put(at, kind, key, value, entries, size=4)
        self._memory[at + 16 : at + 16 + len(name)] = name
        self.put(at + 32, *more)
        return at

    def listed(self, *maps: int) -> None:
        """Have the kernel's list lead to these maps, some of them by one more level."""
        self.put(LIST + 8, NODE | 2)
        self.put(NODE + 8, OTHER_NODE | 2, *maps[:2])
        self.put(OTHER_NODE + 8 + 8 * 7, *maps[2:])


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Types:
    return types_of(CODE, tmp_path_factory.mktemp("types"))


@pytest.fixture
def memory() -> Iterator[MadeUp]:
    with MadeUp() as made:
        yield made


def areas(memory: MadeUp, types: Types) -> MapAreas:
    return MapAreas(KernelStructs(memory, PageTables(TABLES), types), LIST, CPUS)


def test_elements_of_each_type_of_map_are_its_own(memory: MadeUp, types: Types) -> None:
    array = memory.map(DATA, b"routes", ARRAY, 104)
    of_cpus = memory.map(DATA + 0x1000, b"counters", PER_CPU, 104, 0x5000, 0x5400, entries=2)
    ready = memory.map(DATA + 0x2000, b"flows", HASH, DATA + 0x3000, DATA + 0x4000, 8 | 64 << 32)
    made = memory.map(DATA + 0x5000, b"stations", HASH, DATA + 0x6000, 0, 2 | 64 << 32)
    memory.put(DATA + 0x6000, DATA + 0x7000, 0, 1, 0)  # two lists: one of two elements, and one of none
    memory.put(DATA + 0x7000, DATA + 0x7100)
    memory.put(DATA + 0x7100, 3)
    trie = memory.map(DATA + 0x8000, b"prefixes", TRIE, DATA + 0x9000, key=8)
    memory.put(DATA + 0x9000, 0, DATA + 0x9200)
    memory.listed(array, of_cpus, ready, made, trie)
    found = areas(memory, types)
    for address, name in (
        (array, "routes"), (array + 40 + 4 * 104 - 1, "routes"), (array + 40 + 4 * 104, None),
        (of_cpus + 40 + 15, "counters"), (of_cpus + 40 + 16, None),
        (DATA + 0x3000 + 8 * 16 - 1, "flows"), (DATA + 0x4000 + 6 * 64 - 1, "flows"), (DATA + 0x4000 + 6 * 64, None),
        (DATA + 0x7000, "stations"), (DATA + 0x713F, "stations"), (DATA + 0x7140, None),
        (DATA + 0x9000, "prefixes"), (DATA + 0x9200 + 16 + 4 + 99, "prefixes"), (DATA + 0x9200 + 16 + 4 + 100, None),
    ):  # fmt: skip
        assert found.at(address) == (None if name is None else MapOwner(name, None)), hex(address)
    assert found.at(CPUS[1] + 0x5400 + 103) == MapOwner("counters", 1)
    assert found.at(CPUS[0] + 0x5000) == MapOwner("counters", 0)
    assert found.at(CPUS[0] + 0x5400 + 104) is None


def test_a_kernel_that_lies_only_makes_names_wrong(memory: MadeUp, types: Types) -> None:
    loop = memory.map(DATA, b"\x1b[2J\n" + b"x" * 40, HASH, DATA + 0x1000, 0, 0xFFFF_FFFF | 0xFFFF_FFFF << 32)
    memory.put(DATA + 0x1000, *itertools.chain.from_iterable([(DATA + 0x2000, 0)] * 256))
    memory.put(DATA + 0x2000, DATA + 0x2008, DATA + 0x2000)
    endless = memory.map(DATA + 0x3000, b"", TRIE, DATA + 0x4000, key=0, entries=0xFFFF_FFFF, value=0xFFFF_FFFF)
    memory.put(DATA + 0x4000, DATA + 0x4000, DATA + 0x4000)
    large = memory.map(DATA + 0x5000, b"large", ARRAY, 0xFFFF_FFFF, entries=0xFFFF_FFFF)
    nowhere = (1 << 64) - 8
    memory.listed(loop, endless, large, nowhere, NODE | 2)
    found = areas(memory, types)
    assert found.at(loop) == MapOwner("\N{REPLACEMENT CHARACTER}[2J " + "x" * 10, None)
    assert found.at(endless) == MapOwner("without a name", None)
    assert found.at(large) != MapOwner("large", None)
    assert len(list(known_maps(KernelStructs(memory, PageTables(TABLES), types), LIST))) <= 1024
    assert found.at((1 << 64) - 1) == MapOwner("without a name", None)


def test_a_kernel_without_maps_has_none(memory: MadeUp, types: Types) -> None:
    assert areas(memory, types).at(DATA) is None
