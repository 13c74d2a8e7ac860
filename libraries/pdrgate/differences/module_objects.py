"""The functions and variables of a kernel module, each as what it says: bytes, and the names of what it refers to."""

from __future__ import annotations

import bisect
import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pdrgate.builds.elf_file import FUNCTION, OBJECT, ElfFile, ElfSymbol, Relocation
from pdrgate.differences.kernel_image import plain_name, says_something, which_of_its_name

_SECTION_SYMBOL = 3
"""STT_SECTION."""
_NEAR = frozenset((2, 4))
"""R_X86_64_PC32 and R_X86_64_PLT32: distances from the end of their four bytes."""
_FIELD = 4
_CONSTANTS = re.compile(r"\.rodata\.cst(\d+)")
"""Sections of constants without names, all of so many bytes."""
_TEXTS = ".rodata.str"
_LARGEST = 64 << 20
"""Bytes of a section."""


@dataclass(frozen=True, slots=True)
class ModuleObjects:
    """Functions and variables by name, and which one of that name: a digest of what each says."""

    functions: Mapping[tuple[str, int], bytes]
    variables: Mapping[tuple[str, int], bytes]
    unread: str = ""
    """Why the module could not be read; empty where it was."""


def module_objects(content: bytes) -> ModuleObjects:
    """Read a module. Raises ValueError where it is damaged."""
    elf = ElfFile(io.BytesIO(content))
    reader = _Reader(elf)
    return ModuleObjects(
        dict(which_of_its_name(reader.objects(FUNCTION))), dict(which_of_its_name(reader.objects(OBJECT)))
    )


class _Reader:
    """Reads what the symbols of one file say."""

    def __init__(self, elf: ElfFile) -> None:
        self._elf = elf
        self._symbols = tuple(elf.all_symbols())
        self._contents: dict[int, bytes] = {}
        self._relocations: dict[int, list[Relocation]] = {}
        for section, relocation in elf.relocations():
            self._relocations.setdefault(section, []).append(relocation)
        for found in self._relocations.values():
            found.sort()
        self._named: dict[int, list[tuple[int, str]]] = {}
        for symbol in self._symbols:
            if symbol.name and symbol.info & 0xF in (FUNCTION, OBJECT):
                self._named.setdefault(symbol.section, []).append((symbol.value, plain_name(symbol.name)))
        for names in self._named.values():
            names.sort()

    def objects(self, kind: int) -> Iterator[tuple[str, bytes]]:
        """The name and digest of each function, or of each variable."""
        for symbol in self._symbols:
            if symbol.info & 0xF != kind or not 0 < symbol.section < len(self._elf.sections) or not symbol.size:
                continue
            if not says_something(symbol.name, code=kind == FUNCTION) or _OF_THE_BUILD.match(
                self._elf.sections[symbol.section].name
            ):
                continue
            yield plain_name(symbol.name), self._digest(symbol)

    def _digest(self, symbol: ElfSymbol) -> bytes:
        end = symbol.value + symbol.size
        found = hashlib.sha256(b"%d\0" % symbol.size + self._content(symbol.section)[symbol.value : end])
        relocations = self._relocations.get(symbol.section, [])
        first = bisect.bisect_left(relocations, symbol.value, key=lambda one: one.place)
        for relocation in _until(relocations, first, end):
            found.update(f"\0{relocation.place - symbol.value} {relocation.kind} {self._target(relocation)}".encode())
        return found.digest()

    def _target(self, relocation: Relocation) -> str:
        """What a relocation refers to, by name, or by what it says."""
        if relocation.symbol >= len(self._symbols):
            raise ValueError("it is damaged")
        symbol = self._symbols[relocation.symbol]
        if symbol.info & 0xF != _SECTION_SYMBOL or symbol.section >= len(self._elf.sections):
            return f"{plain_name(symbol.name)}+{relocation.addend}"
        section = self._elf.sections[symbol.section]
        at = relocation.addend + (_FIELD if relocation.kind in _NEAR else 0)
        if section.name.startswith(_TEXTS):
            content = self._content(symbol.section)
            end = content.find(0, at) if 0 <= at < len(content) else -1
            return f"text {content[at:end]!r}" if end >= 0 else f"{section.name}+{at}"
        if (constant := _CONSTANTS.fullmatch(section.name)) is not None:
            return f"constant {self._content(symbol.section)[at : at + int(constant[1])].hex()}"
        names = self._named.get(symbol.section, [])
        near = bisect.bisect_right(names, at, key=lambda one: one[0]) - 1
        if near >= 0:
            return f"{names[near][1]}+{at - names[near][0]}"
        return section.name

    def _content(self, section: int) -> bytes:
        if section not in self._contents:
            found = self._elf.sections[section]
            # What the file has at the place of a section without content is another section's.
            self._contents[section] = b"" if found.kind == _WITHOUT_CONTENT else self._elf.content(found, _LARGEST)
        return self._contents[section]


_WITHOUT_CONTENT = 8
"""SHT_NOBITS: a section of zeros, which the file does not have."""
_OF_THE_BUILD = re.compile(r"\.modinfo$|__version|\.note")
"""Sections that say of what version a module is, and by what it was built."""


def _until(relocations: Sequence[Relocation], first: int, end: int) -> Iterator[Relocation]:
    for at in range(first, len(relocations)):
        if relocations[at].place >= end:
            return
        yield relocations[at]
