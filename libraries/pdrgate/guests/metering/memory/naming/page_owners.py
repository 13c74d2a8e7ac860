"""Owner of a page of the direct map: the slab cache that it is of, by the kernel's own notes, read from outside.

No kernel shows this for an address. Its notes of each page (struct page, or struct slab) have a pointer to the cache;
at which of their words, and where in a cache its place in the list of all caches is, differs from version to version.
Both are found by what agrees for most pages, so that no types of the kernel are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pdrgate.guests.guest_memory import PAGE, GuestMemory, PageTables
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind, fixed_areas
from pdrgate.guests.metering.static_data import SLAB_CACHES
from pdrgate.guests.metering.symbols import KernelSymbols

PAGES = "pages"
"""Owner of pages of no slab cache, which hold packets' data for one."""
_NOTE = 64
"""Bytes of struct page."""
_HEAD = 1
"""The word of a page's note that leads to the first page of several, by its lowest bit (compound_head; compound_info
since Linux 7.1)."""
_OWNER = (1, 3)
"""Words of a note that may have the cache: of struct slab since Linux 6.2, and before."""
_DEEPEST = 512
"""Bytes of a cache before its place in the list."""
_CACHES = 4096
_FEWEST = 3
"""Pages that agree, for a layout to be believed."""


@dataclass(frozen=True, slots=True)
class KernelNotes:
    """Virtual addresses of a kernel's notes."""

    tables: PageTables
    """Page tables of the kernel."""
    caches: int
    """List of all slab caches, ``slab_caches``."""
    pages: int
    """Array of all pages."""


@dataclass(frozen=True, slots=True)
class PageOwner:
    """Owner of a page."""

    name: str
    """A slab cache, or `PAGES`."""
    cache: int = 0
    """Address of the kernel's struct kmem_cache; 0 of `PAGES`."""
    first: int = 0
    """The address at which the slab begins that the page is of."""


def kernel_notes(
    symbols: KernelSymbols, areas: Sequence[LineArea], memory: GuestMemory
) -> KernelNotes | None:  # fmt: skip
    """Addresses of a kernel's notes, by its symbols and areas; None if it lacks one of them, or has other pages."""
    architecture = memory.architecture
    array = next((one.first for one in areas if one.kind == LineKind.PAGE), None)
    tables, caches = (symbols.data.marks.get(name) for name in (architecture.page_tables, SLAB_CACHES))
    if array is None or tables is None or caches is None or memory.page_size != PAGE:
        return None
    symbolic = (one for one in (*areas, *fixed_areas(architecture)) if one.kind == LineKind.SYMBOL)
    image = next((one for one in symbolic if one.first <= tables <= one.last), None)
    if image is None:
        return None
    root = tables - image.first + architecture.image_at
    return KernelNotes(PageTables(root, 5 if array in architecture.pages.five_levels else 4), caches, array)


def page_owners(memory: GuestMemory, notes: KernelNotes, pages: Iterable[int]) -> dict[int, PageOwner]:
    """The owner of each page; only of those of which it is known.

    Args:
        pages: numbers of pages of the direct map, by virtual address.
    """
    listed = _listed(memory, notes)
    # The caches are objects of a slab cache themselves: so many pages are known to be of one.
    own = {place // PAGE for place in listed}
    found = {page: _note(memory, notes, page) for page in {*pages, *own}}
    layout = _layout((note.words for note in found.values() if note is not None), listed)
    if layout is None:
        return {}
    word, before = layout
    return {
        page: PageOwner(listed[place], note.words[word], note.first)
        if (place := note.words[word] + before) in listed
        else PageOwner(PAGES)
        for page, note in found.items()
        if note is not None
    }


def _listed(memory: GuestMemory, notes: KernelNotes) -> dict[int, str]:
    """The names of all caches, by where their place in the list is. The name stands right before it."""
    found: dict[int, str] = {}
    table, at = notes.tables, notes.caches
    for _ in range(_CACHES):
        at = int.from_bytes(memory.virtual(table, at, 8), "little")
        if at in (0, notes.caches) or at in found:
            break
        found[at] = memory.text(table, int.from_bytes(memory.virtual(table, at - 8, 8), "little"))
    return found


@dataclass(frozen=True, slots=True)
class _Note:
    words: tuple[int, ...]
    first: int
    """The address of the first page of several that belong together."""


def _note(memory: GuestMemory, notes: KernelNotes, page: int) -> _Note | None:
    """A page's note, or the first page's if it is one of several; None if there is none."""
    where = memory.physical(notes.tables, page * PAGE)
    if where is None:
        return None
    number = (where - memory.architecture.ram) // PAGE
    place, first = notes.pages + number * _NOTE, page * PAGE
    words = _words(memory.virtual(notes.tables, place, _NOTE))
    if words and words[_HEAD] & 1:
        head = _head(notes, place, words[_HEAD] - 1)
        if head is None:
            return None
        first -= (place - head) // _NOTE * PAGE
        words = _words(memory.virtual(notes.tables, head, _NOTE))
    return _Note(words, first) if words else None


def _head(notes: KernelNotes, place: int, word: int) -> int | None:
    """The note of the first page of several, by the word that one of the others has; None if it leads to none.

    The word is the address of that note, or a mask that makes it of the address of the other one: kernels with
    CONFIG_HUGETLB_PAGE_OPTIMIZE_VMEMMAP have the mask since Linux 7.1.
    """
    return next((one for one in (word, place & word) if notes.pages <= one < place), None)


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
