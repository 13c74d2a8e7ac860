"""Whose pages are, read of a made-up memory of a guest: page tables, a list of slab caches, notes of pages."""

from __future__ import annotations

import pytest

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.guest_memory import GuestMemory
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind
from pdrgate.guests.metering.memory.naming.page_owners import PAGES, PageOwner, kernel_notes, page_owners
from pdrgate.guests.metering.static_data import StaticData
from pdrgate.guests.metering.symbols import KernelSymbols

IMAGE, DIRECT, ARRAY = 0xFFFF_FFFF_8000_0000, 0xFFFF_8880_0000_0000, 0xFFFF_EA00_0000_0000
TABLES, CACHES = 0x10_0000, 0x20_0000
"""Physical addresses of the page tables, and of the list's head."""
NOTED = 0x20_0000
"""Where the array of pages is: 2 MiB of it, as the kernel maps it. The list's head is in the note of a page that is not
asked for."""
LARGE = 0x83
FIRST = DIRECT >> 12
AREAS = (LineArea(DIRECT, DIRECT + (1 << 24), LineKind.DIRECT), LineArea(ARRAY, ARRAY + (1 << 21), LineKind.PAGE))


class MadeUp(GuestMemory):
    """Memory of 16 MiB that can be written."""

    def __init__(self) -> None:
        super().__init__(16, X86_64)
        self.tables = TABLES

    def put(self, physical: int, *words: int) -> None:
        for number, word in enumerate(words):
            self._memory[physical + 8 * number : physical + 8 * number + 8] = word.to_bytes(8, "little")

    def map(self, address: int, physical: int, levels: int = 4) -> None:
        """Map 2 MiB."""
        table = TABLES
        for shift in (48, 39, 30)[-levels + 2 :]:
            entry = table + (address >> shift & 0x1FF) * 8
            if not self.word(entry):
                self.tables += 0x1000
                self.put(entry, self.tables | 3)
            table = self.word(entry) & ~0xFFF
        self.put(table + (address >> 21 & 0x1FF) * 8, physical | LARGE)

    def cache(self, number: int, name: bytes, before: int) -> int:
        """The address of one more cache, in the list."""
        place = 0x40_0000 + number * 256
        self._memory[0x50_0000 + number * 64 : 0x50_0000 + number * 64 + len(name)] = name
        self.put(place + before - 8, DIRECT + 0x50_0000 + number * 64, self.word(CACHES) or IMAGE + CACHES)
        self.put(CACHES, DIRECT + place + before)
        return DIRECT + place

    def map_all(self, array: int, levels: int) -> None:
        """Map the direct map, the image, and the array of pages."""
        for physical in range(0, self.size, 2 << 20):
            self.map(DIRECT + physical, physical, levels)
            self.map(IMAGE + physical, physical, levels)
        self.map(array, NOTED, levels)


@pytest.fixture
def memory():
    with MadeUp() as made:
        made.map_all(ARRAY, 4)
        yield made


def symbols() -> KernelSymbols:
    found = KernelSymbols(())
    found.data = StaticData.of([(IMAGE + TABLES, "init_top_pgt"), (IMAGE + CACHES, "slab_caches")])
    return found


def owners_in(memory: GuestMemory, known: KernelSymbols, areas: tuple[LineArea, ...], pages: list[int]) -> dict:
    """The owners of these pages, as far as they are known."""
    notes = kernel_notes(known, areas, memory)
    owners = {} if notes is None else page_owners(memory, notes, pages)
    return {page: owners[page] for page in pages if page in owners}


@pytest.mark.parametrize(("word", "before"), [(3, 104), (1, 96)], ids=["Linux 6.1", "Linux 6.12"])
def test_pages_are_of_the_caches_that_their_notes_lead_to(memory: MadeUp, word: int, before: int) -> None:
    buffers, small = (memory.cache(number, name, before) for number, name in enumerate((b"skbuff_head", b"kmalloc-64")))
    for page, owner in ((600, buffers), (601, small), (602, buffers), (604, 0)):
        memory.put(NOTED + page * 64 + word * 8, owner)
    memory.put(NOTED + 603 * 64 + 8, ARRAY + 602 * 64 + 1)  # one more of the page before it
    found = owners_in(memory, symbols(), AREAS, [FIRST + page for page in range(600, 605)])
    assert [found[FIRST + page].name for page in range(600, 605)] == [
        "skbuff_head", "kmalloc-64", "skbuff_head", "skbuff_head", PAGES,
    ]  # fmt: skip
    # A slab of two pages begins with the first.
    assert found[FIRST + 603] == PageOwner("skbuff_head", buffers, DIRECT + 602 * 4096)


def test_a_mask_leads_to_the_first_page_of_several(memory: MadeUp) -> None:
    """Linux 7.1 has compound_info in place of compound_head: a mask of the address, where huge pages need no notes."""
    buffers, small = (memory.cache(number, name, 96) for number, name in enumerate((b"skbuff_small", b"kmalloc-4k")))
    for page, owner in ((600, buffers), (602, small), (608, buffers)):
        memory.put(NOTED + page * 64 + 8, owner)
    for first, order in ((600, 1), (608, 3)):
        for page in range(first + 1, first + (1 << order)):
            memory.put(NOTED + page * 64 + 8, (1 << 64) - (64 << order) | 1)
    memory.put(NOTED + 640 * 64 + 8, 0x1234_5671)  # leads to no note
    found = owners_in(memory, symbols(), AREAS, [FIRST + page for page in (600, 601, 602, 609, 615, 640)])
    assert {page - FIRST: (one.name, one.first - DIRECT >> 12) for page, one in found.items()} == {
        600: ("skbuff_small", 600), 601: ("skbuff_small", 600), 602: ("kmalloc-4k", 602),
        609: ("skbuff_small", 608), 615: ("skbuff_small", 608),
    }  # fmt: skip


def test_page_tables_of_five_levels_are_walked() -> None:
    array = 0xFFD4_0000_0000_0000
    with MadeUp() as memory:
        memory.map_all(array, 5)
        cache = memory.cache(0, b"skbuff_head", 96)
        for page in (600, 601, 602):
            memory.put(NOTED + page * 64 + 8, cache)
        areas = (AREAS[0], LineArea(array, array + (1 << 21), LineKind.PAGE))
        found = owners_in(memory, symbols(), areas, [FIRST + page for page in (600, 601, 602)])
    assert found[FIRST + 601].name == "skbuff_head"


def test_what_is_not_known_has_no_owner(memory: MadeUp) -> None:
    pages = [FIRST + page for page in range(600, 700)]
    assert owners_in(memory, symbols(), AREAS, pages) == {}  # no caches
    assert owners_in(memory, KernelSymbols(()), AREAS, pages) == {}
    assert owners_in(memory, symbols(), AREAS[:1], pages) == {}
    memory.cache(0, b"skbuff_head", 96)
    assert owners_in(memory, symbols(), AREAS, pages) == {}  # no note agrees
    assert owners_in(memory, symbols(), AREAS, [(1 << 52) - 1, 0]) == {}


def test_of_one_page_the_pages_of_the_caches_themselves_tell_the_layout(memory: MadeUp) -> None:
    own, *_ = (memory.cache(number, name, 96) for number, name in enumerate((b"kmem_cache", b"kmalloc-64", b"x", b"y")))
    others = [memory.cache(number, b"c", 96) for number in (20, 40)]
    for cache in (own, *others):
        memory.put(NOTED + (cache - DIRECT) // 4096 * 64 + 8, own)
    memory.put(NOTED + 600 * 64 + 8, own + 256)
    assert owners_in(memory, symbols(), AREAS, [FIRST + 600])[FIRST + 600].name == "kmalloc-64"


def test_a_name_that_a_stranger_chose_harms_no_terminal(memory: MadeUp) -> None:
    evil = memory.cache(0, b"\x1b[2Jcache", 96)
    for page in (600, 601, 602):
        memory.put(NOTED + page * 64 + 8, evil)
    pages = [FIRST + 600, FIRST + 601, FIRST + 602]
    (name,) = {one.name for one in owners_in(memory, symbols(), AREAS, pages).values()}
    assert name.endswith("cache")
    assert name.isprintable()


def test_a_list_that_a_stranger_made_endless_ends(memory: MadeUp) -> None:
    memory.put(CACHES, DIRECT + 0x40_0000)
    memory.put(0x40_0000, DIRECT + 0x40_0040)
    memory.put(0x40_0040, DIRECT + 0x40_0000)
    assert owners_in(memory, symbols(), AREAS, [FIRST]) == {}
    memory.put(TABLES, *([0xFFFF_FFFF_FFFF_FFFF] * 512))
    assert owners_in(memory, symbols(), AREAS, [FIRST]) == {}
