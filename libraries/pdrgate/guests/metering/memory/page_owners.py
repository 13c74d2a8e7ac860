"""Whose a page of the direct map is: the slab cache that it is of, by the kernel's own notes, read from outside.

No kernel tells this of an address. Its notes of each page (struct page, or struct slab) have a pointer to the cache; at
which of their words, and where in a cache its place in the list of all caches is, differs from version to version. Both
are found by what agrees for most pages, so that no types of the kernel are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pdrgate.guests.guest_memory import PAGE, GuestMemory
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind
from pdrgate.guests.metering.symbols import NOTES, KernelSymbols

PAGES = "pages"
"""What is of no slab cache: whole pages, packets' data for one."""
_IMAGE = 0xFFFF_FFFF_8000_0000
"""Where a kernel that is not moved has its image, and the physical address 0."""
_NOTE = 64
"""Bytes of struct page."""
_HEAD = 1
"""The word of a page's note that leads to the first page of several, by its lowest bit."""
_OWNER = (1, 3)
"""Words of a note that may have the cache: of struct slab since Linux 6.2, and before."""
_DEEPEST = 512
"""Bytes of a cache before its place in the list."""
_CACHES = 4096
_FEWEST = 3
"""Pages that agree, for a layout to be believed."""


@dataclass(frozen=True, slots=True)
class KernelNotes:
    """Where a kernel keeps its notes; virtual addresses."""

    tables: int
    """``init_top_pgt``: the page tables;"""
    caches: int
    """``slab_caches``: the list of all caches;"""
    pages: int
    """the array of all pages."""


def owners_in(
    memory: GuestMemory, symbols: KernelSymbols, areas: Sequence[LineArea], pages: Sequence[int]
) -> dict[int, str]:
    """The owners of pages of a kernel, as `page_owners` has them; none where the kernel does not tell what it takes.

    Args:
        areas: those of the kernel's addresses.
    """
    array = next((one.first for one in areas if one.kind == LineKind.PAGE), None)
    tables, caches = (symbols.variables.get(name) for name in NOTES)
    if array is None or tables is None or caches is None:
        return {}
    return page_owners(memory, KernelNotes(tables, caches, array), pages)


def page_owners(memory: GuestMemory, notes: KernelNotes, pages: Iterable[int]) -> dict[int, str]:
    """The slab cache of each page, or `PAGES`; only those of which it is known.

    Args:
        pages: numbers of pages of the direct map, by virtual address.
    """
    table = notes.tables - _IMAGE
    listed = _listed(memory, table, notes.caches)
    found = {page: _note(memory, table, notes.pages, page) for page in pages}
    known = {page: note for page, note in found.items() if note}
    layout = _layout(known.values(), listed)
    if layout is None:
        return {}
    word, before = layout
    return {page: listed.get(note[word] + before, PAGES) for page, note in known.items()}


def _listed(memory: GuestMemory, table: int, head: int) -> dict[int, str]:
    """The names of all caches, by where their place in the list is. The name stands right before it."""
    found: dict[int, str] = {}
    at = head
    for _ in range(_CACHES):
        at = int.from_bytes(memory.virtual(table, at, 8), "little")
        if at in (0, head) or at in found:
            break
        found[at] = memory.text(table, int.from_bytes(memory.virtual(table, at - 8, 8), "little"))
    return found


def _note(memory: GuestMemory, table: int, array: int, page: int) -> tuple[int, ...]:
    """The words of a page's note, or of the first page's where it is one of several."""
    where = memory.physical(table, page * PAGE)
    if where is None:
        return ()
    note = _words(memory.virtual(table, array + where // PAGE * _NOTE, _NOTE))
    if note and note[_HEAD] & 1:
        note = _words(memory.virtual(table, note[_HEAD] - 1, _NOTE))
    return note


def _words(content: bytes) -> tuple[int, ...]:
    whole = content if len(content) == _NOTE else b""
    return tuple(int.from_bytes(whole[at : at + 8], "little") for at in range(0, len(whole), 8))


def _layout(notes: Iterable[tuple[int, ...]], listed: Mapping[int, str]) -> tuple[int, int] | None:
    """The word of a note that has the cache, and how far behind the begin of a cache its place in the list is."""
    each = list(notes)
    agree = {
        (word, before): sum(note[word] + before in listed for note in each)
        for word in _OWNER
        for before in range(0, _DEEPEST, 8)
    }
    # Caches lie in a slab one behind the other: of distances that agree as often the shortest is within one.
    best = max(agree, key=lambda layout: agree[layout])
    return best if agree[best] >= _FEWEST else None
