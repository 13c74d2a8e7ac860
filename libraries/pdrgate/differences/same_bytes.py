"""Whether the bytes of two functions or variables say the same: where they differ, both must name the same thing.

Nothing is decoded. Where bytes differ, four of them are an address, or the distance to one, that has the same name in
both builds; eight of a variable are a pointer. A constant that was changed to another one would have to be, by chance,
an address of the same symbol at the same distance.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from pdrgate.differences.kernel_image import CodePlace, KernelImage, Numbers, SymbolAddresses, is_code

_FIELD = 4
_POINTER = 8
_KERNEL = 1 << 63
"""The first address of a kernel's half of an address space."""
_ADDRESSES: Final = 1 << 64
"""How many addresses there are. Per-CPU variables of older kernels lie at their begin, to which code wraps around."""
_NAMELESS = (".rodata", ".init.data")
"""Sections with texts and constants that have no name. All else has one."""
_BEHIND: Final = (0, 1, 2, 4)
"""Bytes of an instruction that may stand behind a distance: an immediate."""
_AT_ONCE = 1 << 21
"""Bytes that are compared together."""
_A_TEXT = 4
"""Characters of what a variable's pointer leads to, for it to be a text: a number may look like a shorter one."""
_BUG_TABLE = "__bug_table"
"""Section with the places of WARN and BUG.

The entries have no name and differ by their line numbers, so references to them count as equal.
"""
_FEATURE_TESTS, _FEATURE_TEST = ".altinstr_aux", 18
"""Section with code that asks for a feature of the CPU until alternatives are patched, and the bytes of such a test.

It is a test of a bit in memory and two jumps. None has a name.
"""
_PADDING: Final = re.compile(
    rb"(?:\x66*\x2e?\x0f\x1f(?:\x00|\x40.|\x44..|\x80.{4}|\x84.{5})|\x66*\x90|\xcc)+\Z", re.DOTALL
)


class SameBytes:
    """Compares functions, or variables, of two images."""

    def __init__(self, before: KernelImage, after: KernelImage, *, code: bool) -> None:
        self._before, self._after, self._code = before, after, code
        ids: dict[str, int] = {}
        self._ids = tuple(
            np.array([ids.setdefault(name, len(ids)) for name in one.names], np.int64) for one in (before, after)
        )

    def differing(self, pairs: Sequence[tuple[CodePlace, CodePlace]]) -> Iterator[int]:
        """The numbers of the pairs that do not say the same."""
        same_size: list[int] = []
        for number, (old, new) in enumerate(pairs):
            one, other = self._before.bytes_of(old), self._after.bytes_of(new)
            if one == other:
                continue
            if old.size == new.size:
                same_size.append(number)
            elif not self._same(one, other, old.address, new.address):
                yield number
        for chunk in _chunks(same_size, [pairs[number][0].size for number in same_size]):
            yield from self._of_chunk(chunk, pairs)

    def _of_chunk(self, chunk: Sequence[int], pairs: Sequence[tuple[CodePlace, CodePlace]]) -> Iterator[int]:
        """The pairs of a chunk that differ. Those that differ in other than whole fields are looked at byte by byte."""
        sizes = np.array([pairs[number][0].size for number in chunk], np.int64)
        of_pair = np.repeat(np.arange(len(chunk)), sizes)
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        at = [np.array([pairs[number][side].offset for number in chunk], np.int64)[of_pair] + within for side in (0, 1)]
        differ = np.flatnonzero(self._before.content[at[0]] != self._after.content[at[1]])
        heads = np.array(_heads(differ.tolist(), of_pair[differ].tolist()), np.int64)
        room = within[heads] + _FIELD <= sizes[of_pair[heads]]
        doubtful = set(of_pair[heads[~room]].tolist())
        heads = heads[room]
        addresses = [
            np.array([pairs[number][side].address for number in chunk], np.uint64)[of_pair[heads]]
            + within[heads].astype(np.uint64)
            for side in (0, 1)
        ]
        fields = [_fields(one.content, at[side][heads]) for side, one in enumerate((self._before, self._after))]
        far = [field.astype(np.uint64) for field in fields]
        named = self._same_names(far[0], far[1])
        if self._code:
            near = [
                one + np.uint64(_FIELD) + field.astype(np.uint64) for one, field in zip(addresses, fields, strict=True)
            ]
            named |= self._same_names(near[0], near[1])
        doubtful |= set(of_pair[heads[~named]].tolist())
        known: dict[int, set[int]] = {one: set() for one in doubtful}
        for one, place in zip(of_pair[heads[named]].tolist(), within[heads[named]].tolist(), strict=True):
            if one in known:
                known[one].add(place)
        for one in sorted(doubtful):
            old, new = pairs[chunk[one]]
            texts = self._before.bytes_of(old), self._after.bytes_of(new)
            if not self._same(*texts, old.address, new.address, known[one]):
                yield chunk[one]

    def _same_names(self, before: SymbolAddresses, after: SymbolAddresses) -> npt.NDArray[np.bool_]:
        """Whether addresses of code, or of variables without content, have the same name."""
        found = []
        for image, ids, targets in zip((self._before, self._after), self._ids, (before, after), strict=True):
            at = np.searchsorted(image.addresses, targets, "right") - 1
            inside = np.zeros(len(targets), np.bool_)
            for section in image.sections:
                if is_code(section) or not section.name.startswith((".rodata", _BUG_TABLE, _FEATURE_TESTS)):
                    inside |= (targets >= np.uint64(section.address)) & (
                        targets < np.uint64(section.address + section.size)
                    )
            found.append((np.where(at >= 0, ids[at], -1), targets - image.addresses[at], inside & (at >= 0)))
        (id_before, off_before, in_before), (id_after, off_after, in_after) = found
        same: npt.NDArray[np.bool_] = (id_before == id_after) & (off_before == off_after) & in_before & in_after
        return same

    def _same(self, one: bytes, other: bytes, old: int, new: int, named: Collection[int] = ()) -> bool:
        """Whether each byte that differs belongs to a field that names the same thing; padding is left out.

        Args:
            named: where fields begin of which that is known.
        """
        if self._code:
            stripped = _PADDING.sub(b"", one), _PADDING.sub(b"", other)
            one, other = stripped if len(stripped[0]) == len(stripped[1]) else (one, other)
        if len(one) != len(other):
            return False
        known = 0
        for at in np.flatnonzero(np.frombuffer(one, np.uint8) != np.frombuffer(other, np.uint8)).tolist():
            if at < known:
                continue
            if at in named:
                known = at + _FIELD
                continue
            begin = next((start for start in range(at, at - _FIELD, -1)
                          if self._is_reference(one, other, start, old, new)), None)  # fmt: skip
            if begin is None:
                return False
            known = begin + _FIELD
        return True

    def _is_reference(self, one: bytes, other: bytes, start: int, old: int, new: int) -> bool:
        """Whether a field of both says the same: in code an address or a distance to one, in a variable a pointer."""
        if start < 0 or start + _FIELD > len(one):
            return False
        if not self._code:
            pointers = [int.from_bytes(text[start : start + _POINTER], "little") for text in (one, other)]
            return min(pointers) >= _KERNEL and self._alike(*pointers)
        fields = [int.from_bytes(text[start : start + _FIELD], "little", signed=True) for text in (one, other)]
        for behind in _BEHIND:
            next_one = start + _FIELD + behind
            if self._alike((old + next_one + fields[0]) % _ADDRESSES, (new + next_one + fields[1]) % _ADDRESSES):
                return True
        return self._alike(fields[0] % _ADDRESSES, fields[1] % _ADDRESSES)

    def _alike(self, before: int, after: int) -> bool:
        """Whether two addresses are those of the same thing: by name, or where it has none by what stands there."""
        old, new = self._before.section_of(before), self._after.section_of(after)
        if old is None or new is None or old.name != new.name:
            return False
        if old.name == _BUG_TABLE:
            return True
        if old.name == _FEATURE_TESTS:
            return self._same_tests(before, after)
        name, other = self._before.named(before), self._after.named(after)
        if name is not None and name == other:
            return True
        begins = name is not None and other is not None and not name[1] and not other[1]
        if begins or not old.name.startswith(_NAMELESS):
            return False
        one, two = self._before.text(before), self._after.text(after)
        if one and two and (self._code or min(len(one), len(two)) >= _A_TEXT):
            return one == two
        if not self._code:
            return name is not None and name[1] > 0
        content = self._before.data(before)
        return content is not None and content == self._after.data(after)

    def _same_tests(self, before: int, after: int) -> bool:
        """Whether two tests of a feature ask for the same one and go on at the same places."""
        tests = ((self._before, before), (self._after, after))
        one, two = ((image.data(at) or b"")[:_FEATURE_TEST] for image, at in tests)
        return len(one) == len(two) == _FEATURE_TEST and self._same(one, two, before, after)


def _chunks(numbers: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    chunk: list[int] = []
    together = 0
    for number, size in zip(numbers, sizes, strict=True):
        chunk.append(number)
        together += size
        if together >= _AT_ONCE:
            yield chunk
            chunk, together = [], 0
    if chunk:
        yield chunk


def _heads(differ: Sequence[int], pairs: Sequence[int]) -> list[int]:
    """Positions at which a field of four bytes begins to differ, for each pair of functions or variables.

    A byte that differs within four bytes of the last position belongs to that field.
    """
    heads: list[int] = []
    last, of = -_FIELD, -1
    for at, pair in zip(differ, pairs, strict=True):
        if at >= last + _FIELD or pair != of:
            heads.append(at)
            last, of = at, pair
    return heads


def _fields(content: npt.NDArray[np.uint8], at: Numbers) -> Numbers:
    """Signed numbers of four bytes each."""
    parts = [content[at + byte].astype(np.int64) << (8 * byte) for byte in range(_FIELD)]
    whole = parts[0] | parts[1] | parts[2] | parts[3]
    return np.where(whole >= 1 << 31, whole - (1 << 32), whole)
