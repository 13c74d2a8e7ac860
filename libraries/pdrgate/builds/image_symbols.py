"""The symbols of a kernel that are in its image: the tables which /proc/kallsyms shows (scripts/kallsyms.c of Linux).

An image has no label for these tables. They are found by what they must agree on: 256 tokens, of which the digits stand
for themselves, the index of the tokens, and a marker for each 256th name. In a stranger's image all of it is bounded,
and checked.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdrgate.builds.architecture import ARCHITECTURES
from pdrgate.builds.arm64_image import is_flat
from pdrgate.builds.elf_file import ElfFile, Section

_DIGITS = b"".join(b"%d\0" % digit for digit in range(10))
_TOKENS, _FIRST_DIGIT = 256, ord("0")
_LARGEST_TABLE = 1 << 16
"""Bytes of all tokens at most: an index has 16 bits."""
_TRIED = 64
"""Places that are tried for each table."""
_NEAR = 32 << 20
"""Bytes before the tokens in which the names and their markers lie."""
_EACH = 256
"""Names to a marker."""
_SHORTEST, _LONGEST = 2, 514
"""Bytes of a name, with its length."""
_HEAD = 64
_BEGINS = ("_text", "_stext")
"""Symbols at the begin of the code; kernels for arm64 without CONFIG_KALLSYMS_ALL have the second one only."""
_HEAD_OF_CODE = 1 << 16
"""Bytes that may lie before it."""
_CODE = re.compile(r"\.(?:head\.)?text")
"""Sections that an image begins with."""
_IMAGE = 1 << 63
"""The first address that a kernel's image may have."""


CODE_TYPES = frozenset("tTwW")
"""Types of symbols of code, as nm has them."""


class TypedSymbol(NamedTuple):
    """A symbol as /proc/kallsyms shows it."""

    address: int
    kind: str
    """The type as nm has it: T and t are code."""
    name: str
    module: str = ""
    """Empty of the kernel's own; ``bpf`` of BPF programs."""


def typed_symbols(lines: Iterable[str]) -> Iterator[TypedSymbol]:
    """The symbols in lines of /proc/kallsyms."""
    for line in lines:
        words = line.split()
        if len(words) >= 3:
            yield TypedSymbol(int(words[0], 16), words[1], words[2], words[3].strip("[]") if len(words) > 3 else "")


def image_symbols(image: Path) -> list[TypedSymbol] | None:
    """Read the symbols of a kernel in its linked image, ELF or flat, at the addresses where it was linked.

    Returns:
        None where the image has no such table (CONFIG_KALLSYMS), or one of another form.
    """
    try:
        with image.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if not is_flat(content[:_HEAD]):
                return _symbols(content, ElfFile(file).sections)
            return next(filter(None, (_symbols(content, one) for one in _flat_sections(len(content)))), None)
    except (OSError, ValueError):
        return None


def _flat_sections(size: int) -> Iterator[tuple[Section, ...]]:
    """A flat image as one section, for each address at which such images are linked."""
    for one in ARCHITECTURES:
        for address in one.linked_at:
            yield (Section(".text", 1, 0, address, 0, size, 0),)


def _symbols(content: mmap.mmap, sections: Sequence[Section]) -> list[TypedSymbol] | None:
    for tokens in _token_tables(content):
        names = _names(content, tokens)
        if names is None:
            continue
        addresses = _addresses(content, tokens, names, sections)
        if addresses is not None:
            found = zip(addresses.tolist(), names.texts, strict=True)
            return [TypedSymbol(address, text[0], text[1:]) for address, text in found]
    return None


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The table of tokens, which names are made of."""

    begin: int
    end: int
    """Offset of the end of its index."""
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Names:
    """All names, each behind its type."""

    count: int
    """Offset in the image of the number of names."""
    texts: tuple[str, ...]


def _token_tables(content: mmap.mmap) -> Iterator[_Tokens]:
    for digits in islice(_places(content, _DIGITS), _TRIED):
        rest = bytes(content[digits : digits + _LARGEST_TABLE]).split(b"\0", _TOKENS - _FIRST_DIGIT)
        if len(rest) <= _TOKENS - _FIRST_DIGIT:
            continue
        last = digits + sum(len(one) + 1 for one in rest[:-1])
        for index in range((last + 1) // 2 * 2, last + 8, 2):
            starts = np.frombuffer(content[index : index + 2 * _TOKENS], "<u2").astype(np.int64)
            begin = digits - int(starts[_FIRST_DIGIT]) if len(starts) == _TOKENS else -1
            if begin < 0 or starts[0] or last - begin > _LARGEST_TABLE:
                continue
            texts = content[begin:last].split(b"\0")[:-1]
            ends = np.cumsum([len(one) + 1 for one in texts])
            if len(texts) == _TOKENS and np.array_equal(ends[:-1], starts[1:]):
                yield _Tokens(begin, index + 2 * _TOKENS, tuple(one.decode("ascii", "replace") for one in texts))


def _places(content: mmap.mmap, wanted: bytes) -> Iterator[int]:
    at = content.find(wanted)
    while at >= 0:
        yield at
        at = content.find(wanted, at + 1)


def _names(content: mmap.mmap, tokens: _Tokens) -> _Names | None:
    """The names before the tokens; None if none are found that their markers agree with."""
    first = max(0, tokens.begin - _NEAR) // 4 * 4
    words = np.frombuffer(content[first : tokens.begin // 4 * 4], "<u4").astype(np.int64)
    marked = _longest_rise(words)
    if marked is None:
        return None
    markers = words[marked[0] : marked[1]]
    end = first + 4 * marked[0]
    # The names end before the markers, and how long those behind the last marker are is not known.
    latest = end - int(markers[-1])
    least, most = _EACH * (len(markers) - 1) + 1, _EACH * len(markers)
    for begin in range(latest // 4 * 4, max(0, latest - _EACH * _LONGEST - 8), -4):
        for count in (begin - 4, begin - 8):
            number = int.from_bytes(content[count : count + 4], "little") if count >= 0 else 0
            if least <= number <= most:
                texts = _expanded(content[begin:end], number, markers.tolist(), tokens.texts)
                if texts is not None:
                    return _Names(count, texts)
    return None


def _longest_rise(words: npt.NDArray[np.int64]) -> tuple[int, int] | None:
    """The longest stretch of numbers that begins with 0 and rises by what 256 names take."""
    by = np.diff(words)
    rises = (by >= _EACH * _SHORTEST) & (by <= _EACH * _LONGEST)
    begins = np.flatnonzero(rises & (words[:-1] == 0))
    if not len(begins):
        return None
    stops = np.append(np.flatnonzero(~rises), len(rises))
    ends = stops[np.searchsorted(stops, begins)]
    longest = int(np.argmax(ends - begins))
    return int(begins[longest]), int(ends[longest]) + 1


def _expanded(names: bytes, number: int, markers: Sequence[int], tokens: Sequence[str]) -> tuple[str, ...] | None:
    """So many names; None if a marker does not agree, or they do not end where the markers begin."""
    found: list[str] = []
    at = 0
    for one in range(number):
        if one % _EACH == 0 and markers[one // _EACH] != at:
            return None
        length = names[at] if at < len(names) else 0
        at += 1
        if length & 0x80 and at < len(names):
            length = length & 0x7F | names[at] << 7
            at += 1
        text = "".join([tokens[token] for token in names[at : at + length]])
        at += length
        if len(text) < 2:
            return None
        found.append(text)
    return tuple(found) if at <= len(names) < at + 8 else None


def _addresses(
    content: mmap.mmap, tokens: _Tokens, names: _Names, sections: Sequence[Section]
) -> npt.NDArray[np.uint64] | None:
    """The address of each name, in whichever of its forms the table is; None if it is in none.

    Linux has had distances from one address, before the names and since 6.4 behind the tokens, and since 7.1 distances
    from the place of each. Where per-CPU variables are no addresses (up to 6.14), these alone are no distance.
    """
    number = len(names.texts)
    whole = (4 * number + 7) // 8 * 8
    for behind in (tokens.end, (tokens.end + 7) // 8 * 8):
        for at, base in ((behind, behind + whole), (names.count - 8 - whole, names.count - 8)):
            if at < 0 or base < 0 or at + 4 * number > len(content):
                continue
            offsets = np.frombuffer(content[at : at + 4 * number], "<i4").astype(np.int64)
            from_base = _from_base(offsets, int.from_bytes(content[base : base + 8], "little"))
            for addresses in (from_base, _from_places(offsets, at, sections)):
                if addresses is not None and _fit(addresses, names.texts, sections):
                    return addresses
    return None


def _from_base(offsets: npt.NDArray[np.int64], base: int) -> npt.NDArray[np.uint64] | None:
    if base < _IMAGE:
        return None
    if not np.any(offsets < 0):
        return np.uint64(base) + offsets.astype(np.uint64)
    distance = np.where(offsets < 0, -1 - offsets, 0).astype(np.uint64)
    return np.where(offsets < 0, np.uint64(base) + distance, offsets.astype(np.uint64))


def _from_places(offsets: npt.NDArray[np.int64], at: int, sections: Sequence[Section]) -> npt.NDArray[np.uint64] | None:
    place = next((one.address + at - one.offset for one in sections if 0 <= at - one.offset < one.size), 0)
    if place < _IMAGE:
        return None
    return np.uint64(place) + (offsets + 4 * np.arange(len(offsets))).astype(np.uint64)


def _fit(addresses: npt.NDArray[np.uint64], texts: Sequence[str], sections: Sequence[Section]) -> bool:
    """Whether addresses rise from one name to the next, and the first code begins where the image's does."""
    begin = min((one.address for one in sections if one.address and _CODE.fullmatch(one.name)), default=0)
    at = {name[1:]: int(addresses[number]) for number, name in enumerate(texts) if name[1:] in _BEGINS}
    fits = at["_text"] == begin if "_text" in at else begin <= at.get("_stext", -1) <= begin + _HEAD_OF_CODE
    return fits and bool(np.all(addresses[1:] >= addresses[:-1]))
