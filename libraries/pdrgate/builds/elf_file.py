"""ELF files of 64 bits, as far as builds are looked at: sections, symbols and notes (System V gABI, chapter 4 and 5).

What a stranger made is read with bounds, so that no file takes longer than its size lets one expect. A reader for
debuggers has none: sections that share one name of megabytes, or a header that counts 2^64 of them, hold it for hours.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

SYMBOLS, EXECUTABLE = 2, 0x4
"""SHT_SYMTAB and SHF_EXECINSTR."""
OBJECT = 1
"""STT_OBJECT: a symbol that is a variable."""
FUNCTION = 2
"""STT_FUNC: a symbol that is a function."""
GLOBAL_FUNCTION, WEAK_FUNCTION = 0x12, 0x22
"""STB_GLOBAL or STB_WEAK, and STT_FUNC."""
BPF = 247
"""EM_BPF."""
_LOAD, _NOTES = 1, 4
"""PT_LOAD and PT_NOTE."""
_NEEDED = 1
"""DT_NEEDED: a library that a program needs."""
_RELOCATIONS = 4
"""SHT_RELA."""
_LONGEST_NAME = 512
_MOST_NAMES = 16 << 20
_MOST_SYMBOLS = 24 << 20
"""Bytes of a table of symbols: a million of them."""
_MOST_NOTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a file."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int = 0
    """Section that relocations are for."""


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """One symbol: its name, and in which section it stands at which place."""

    name: str
    section: int
    value: int
    size: int = 0
    info: int = 0
    """Its binding and type (st_info)."""


class Relocation(NamedTuple):
    """A place in a section that gets the address of a symbol."""

    place: int
    kind: int
    symbol: int
    """Which symbol of the file's table."""
    addend: int


class LoadedPart(NamedTuple):
    """A part of a file that is loaded (PT_LOAD)."""

    address: int
    offset: int
    size: int


class ElfFile:
    """A 64-bit ELF file that stays open with its owner.

    Raises:
        ValueError: here and in all methods: it is no such file, or what is read of it is damaged.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        magic = self._bytes(0, min(64, self._size), 64)
        if magic[:4] != b"\x7fELF":
            raise ValueError("it is no ELF file")
        if magic[4:5] != b"\x02" or magic[5:6] not in (b"\x01", b"\x02"):
            raise ValueError("it is no 64-bit ELF file")
        self._order = "<" if magic[5:6] == b"\x01" else ">"
        (
            _, self.machine, _, _, self._programs, headers, _, _, each_program, self._program_count, each, count, names
        ) = self._fields("HHIQQQIHHHHHH", magic[16:64])  # fmt: skip
        if (count and each != 64) or (self._program_count and each_program != 56):
            raise ValueError("it is damaged")
        self.sections = tuple(self._sections(headers, count, names))

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((one for one in self.sections if one.name == name), None)

    def content(self, section: Section, most: int) -> bytes:
        """Content of a section, ``most`` bytes at most."""
        return self._bytes(section.offset, section.size, most)

    def symbols(self, info: int) -> Iterator[ElfSymbol]:
        """The symbols of one binding and type (st_info); a file has one table of them."""
        return (symbol for symbol in self.all_symbols() if symbol.info == info)

    def code_symbols(self) -> Iterator[ElfSymbol]:
        """The symbols that have a name and stand in code."""
        code = {number for number, section in enumerate(self.sections) if section.flags & EXECUTABLE}
        return (symbol for symbol in self.all_symbols() if symbol.section in code and symbol.name)

    def data_symbols(self) -> Iterator[ElfSymbol]:
        """The symbols that are variables and have a name."""
        return (symbol for symbol in self.all_symbols() if symbol.info & 0xF == OBJECT and symbol.name)

    def all_symbols(self) -> Iterator[ElfSymbol]:
        """The symbols in the order of the table, as relocations count them."""
        table = next((one for one in self.sections if one.kind == SYMBOLS), None)
        if table is None:
            return
        if table.link >= len(self.sections):
            raise ValueError("it is damaged")
        names = self.content(self.sections[table.link], _MOST_NAMES)
        content = self.content(table, _MOST_SYMBOLS)
        entries = struct.iter_unpack(f"{self._order}IBBHQQ", content[: len(content) // 24 * 24])
        for name, info, _, section, value, size in entries:
            yield ElfSymbol(_name(names, name), section, value, size, info)

    def relocations(self) -> Iterator[tuple[int, Relocation]]:
        """The relocations with addends, each with the number of the section that it is for."""
        for section in self.sections:
            if section.kind == _RELOCATIONS:
                content = self.content(section, _MOST_SYMBOLS)
                for place, info, addend in struct.iter_unpack(f"{self._order}QQq", content[: len(content) // 24 * 24]):
                    yield section.info, Relocation(place, info & 0xFFFFFFFF, info >> 32, addend)

    def notes(self) -> Iterator[tuple[bytes, int]]:
        """Owner and type of each note of its segments."""
        for number in range(min(self._program_count, 64)):
            header = self._bytes(self._programs + 56 * number, 56, 56)
            kind, _, offset, _, _, size, _, _ = self._fields("IIQQQQQQ", header)
            if kind != _NOTES:
                continue
            content, at = self._bytes(offset, size, _MOST_NOTES), 0
            while at + 12 <= len(content):
                owner, described, note = self._fields("III", content[at : at + 12])
                yield content[at + 12 : at + 12 + owner].rstrip(b"\0"), note
                at += 12 + (owner + 3) // 4 * 4 + (described + 3) // 4 * 4

    def libraries(self) -> list[str]:
        """File names of the libraries that a program, or a library, needs; its loader, by its path, is the first."""
        found = []
        if (loader := self.section(".interp")) is not None:
            found.append(_name(self.content(loader, _LONGEST_NAME), 0))
        if (dynamic := self.section(".dynamic")) is not None:
            if dynamic.link >= len(self.sections):
                raise ValueError("it is damaged")
            names, content = self.content(self.sections[dynamic.link], _MOST_NAMES), self.content(dynamic, _MOST_NOTES)
            entries = struct.iter_unpack(f"{self._order}QQ", content[: len(content) // 16 * 16])
            found += [_name(names, at) for tag, at in entries if tag == _NEEDED]
        return found

    def loads(self) -> Iterator[LoadedPart]:
        """The parts of the file that a loader puts into memory."""
        for number in range(min(self._program_count, 64)):
            header = self._bytes(self._programs + 56 * number, 56, 56)
            kind, _, offset, address, _, size, _, _ = self._fields("IIQQQQQQ", header)
            if kind == _LOAD:
                yield LoadedPart(address, offset, size)

    def _sections(self, headers: int, count: int, names: int) -> Iterator[Section]:
        content = self._bytes(headers, 64 * count, 64 * 0xFFFF)
        found = [self._fields("IIQQQQIIQQ", content[at : at + 64]) for at in range(0, len(content), 64)]
        if not found:
            return
        if names >= len(found):
            raise ValueError("it is damaged")
        text = self._bytes(found[names][4], found[names][5], _MOST_NAMES)
        for name, kind, flags, address, offset, size, link, info, *_ in found:
            yield Section(_name(text, name), kind, flags, address, offset, size, link, info)

    def _bytes(self, offset: int, size: int, most: int) -> bytes:
        if size > most or offset + size > self._size:
            raise ValueError("it is damaged")
        self._file.seek(offset)
        content = b""
        while len(content) < size:
            chunk = self._file.read(size - len(content))
            if not chunk:
                raise ValueError("it is damaged")
            content += chunk
        return content

    def _fields(self, form: str, content: bytes) -> tuple[int, ...]:
        try:
            return struct.unpack(f"{self._order}{form}", content)
        except struct.error as error:
            raise ValueError("it is damaged") from error


def _name(names: bytes, at: int) -> str:
    if at >= len(names):
        if at == 0:
            return ""
        raise ValueError("it is damaged")
    end = names.find(b"\0", at, at + _LONGEST_NAME)
    if end < 0:
        raise ValueError("it is damaged")
    return names[at:end].decode(errors="replace")
