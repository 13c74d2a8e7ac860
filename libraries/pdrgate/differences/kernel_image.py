"""A kernel's image as functions and variables by name, and what an address in it is called."""

from __future__ import annotations

import itertools
import mmap
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pdrgate.builds.elf_file import ElfFile, LoadedPart, Section
from pdrgate.builds.image_symbols import TypedSymbol, image_symbols

SymbolAddresses = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]

_Found = TypeVar("_Found")
_BITS = 1
"""SHT_PROGBITS: a section whose bytes are in the file."""
_ALLOCATED = 2
"""SHF_ALLOC."""
_CODE: Final = frozenset("tTwW")
_DATA: Final = _CODE | frozenset("dDrRvV")
"""Types of variables. Those in a section that is executable have types of code."""
_COMPILERS_NUMBER = re.compile(r"(__UNIQUE_ID_\w*?)?(?(1)\d+(?:\.\d+)*|(?:\.\d+)+)$")
"""The number by which a compiler or a macro keeps names apart, which depends on what stands before it."""
_PREFIX = "__pfx_"
"""What a kernel calls the padding before a function."""
_OF_CODE = re.compile(r"\.(head\.|init\.|exit\.|noinstr\.)?text")
"""Sections of code. A flag does not say it: since 6.16 `.data` holds code that starts the next kernel (kexec)."""
_OF_DATA = re.compile(r"\.(data|rodata|init\.data)(?!_once)")
"""Sections whose variables are compared; tables that a linker made of code have sections of their own."""
_SAYS_NOTHING = re.compile(
    r"__(ksymtab|kstrtab|crc|BTF_ID|start|stop|end|UNIQUE_ID|initcall\w*|param|modver)_|kallsyms_|linux_(banner|proc_banner)$"
    r"|vermagic$|init_uts_ns$|fips_version$|__\w+_(start|end)$|system_certificate_list|module_cert_size$|_note_\d+$|str__|_{0,2}btf|_e?(text|data|rodata)$|__irf_|\.L"
)
"""Variables that differ by where others lie, or by when a kernel was built."""
_LONGEST = 1 << 16
"""Bytes of a variable that are compared: behind the last variable of a section stand texts without a name."""
_LONGEST_TEXT = 1024
_LINE = 64
_SOURCE = re.compile(
    rb"^/.*?/(?=(arch|block|certs|crypto|drivers|fs|include|init|io_uring|ipc|kernel|lib|mm|net|rust|security|sound|virt)/"
    rb".*\.[chS]$)"
)
"""Folder in which a kernel was compiled, in front of the name of a source file."""
_TEXT: Final = frozenset(b"\t\n\r\x01\x1b" + bytes(range(0x20, 0x7F)))


class CodePlace(NamedTuple):
    """Place of a function or variable: its address, and where its bytes lie in the file."""

    address: int
    offset: int
    """Bytes from the file's begin."""
    size: int


@dataclass(frozen=True, slots=True)
class KernelImage:
    """An ELF image that was linked, with the symbols that the kernel itself knows."""

    content: npt.NDArray[np.uint8]
    sections: tuple[Section, ...]
    """Sections that have an address, in the order of their addresses."""
    begins: tuple[int, ...]
    """The address of each section."""
    addresses: SymbolAddresses
    """The address of each symbol, rising."""
    ordered: Sequence[int]
    """Symbol addresses as Python integers: numpy is slow at looking up a single address."""
    names: tuple[str, ...]
    """The name of each, without the compiler's number."""
    functions: Mapping[tuple[str, int], CodePlace]
    """Functions by their name and their number among the functions of that name."""
    variables: Mapping[tuple[str, int], CodePlace]

    def named(self, address: int) -> tuple[str, int] | None:
        """The symbol that an address lies behind, and the distance; None where no section has it."""
        if self.section_of(address) is None:
            return None
        at = bisect_right(self.ordered, address) - 1
        return (self.names[at], address - self.ordered[at]) if at >= 0 else None

    def section_of(self, address: int) -> Section | None:
        """The section that an address lies in."""
        section = self.sections[bisect_right(self.begins, address) - 1]
        return section if section.address <= address < section.address + section.size else None

    def text(self, address: int) -> bytes | None:
        """The text that stands at an address of read-only or initialised data; None where none does."""
        content = self._data(address, _LONGEST_TEXT)
        if content is None:
            return None
        end = content.find(0)
        return _SOURCE.sub(b"", content[:end]) if end >= 0 and _TEXT.issuperset(content[:end]) else None

    def data(self, address: int) -> bytes | None:
        """The bytes that stand at an address of read-only or initialised data, a cache line of them; None elsewhere."""
        return self._data(address, _LINE)

    def _data(self, address: int, most: int) -> bytes | None:
        section = self.section_of(address)
        if section is None or section.kind != _BITS or is_code(section):
            return None
        begin = section.offset + address - section.address
        return self.content[begin : begin + most].tobytes()

    def bytes_of(self, place: CodePlace) -> bytes:
        """The content of a function or variable."""
        return self.content[place.offset : place.offset + place.size].tobytes()


def linked_kernel(image: Path) -> KernelImage | None:
    """Read an ELF image; None where it has no symbols (CONFIG_KALLSYMS), or is damaged."""
    symbols = image_symbols(image)
    if symbols is None:
        return None
    try:
        with image.open("rb") as file:
            elf = ElfFile(file)
            found, loads = elf.sections, tuple(elf.loads())
            content = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError):
        return None
    sections = tuple(sorted((one for one in found if one.flags & _ALLOCATED), key=lambda one: one.address))
    if any(one.kind == _BITS and one.offset + one.size > len(content) for one in sections):
        return None
    if not all(any(_holds(load, one) for load in loads) for one in sections if one.kind == _BITS):
        return None
    first = {one.address: one for one in reversed(symbols)}
    ordered = sorted(first)
    return KernelImage(
        content=content, sections=sections, begins=tuple(one.address for one in sections),
        addresses=np.array(ordered, np.uint64), ordered=ordered,
        names=tuple(plain_name(first[address].name) for address in ordered),
        functions=dict(which_of_its_name(_places(symbols, ordered, sections, _CODE))),
        variables=dict(which_of_its_name(_places(symbols, ordered, sections, _DATA))),
    )  # fmt: skip


def _holds(load: LoadedPart, section: Section) -> bool:
    """Whether what is loaded there is what the section shows: a loader looks at no section."""
    at = section.offset - load.offset
    return at >= 0 and at + section.size <= load.size and section.address - load.address == at


def plain_name(name: str) -> str:
    """A symbol's name without the number by which a compiler keeps it apart."""
    return _COMPILERS_NUMBER.sub(r"\1", name) if name[-1:].isdigit() else name


def is_code(section: Section) -> bool:
    """Whether a section holds code."""
    return _OF_CODE.match(section.name) is not None


def says_something(name: str, *, code: bool) -> bool:
    """Whether a function is no padding, or a variable none that differs from build to build."""
    return not name.startswith(_PREFIX) if code else _SAYS_NOTHING.match(name) is None


def _places(
    symbols: Iterable[TypedSymbol], ordered: list[int], sections: tuple[Section, ...], kinds: frozenset[str]
) -> Iterator[tuple[str, CodePlace]]:
    follows = dict(itertools.pairwise(ordered))
    code = kinds is _CODE
    mine = [
        one for one in sections
        if one.kind == _BITS and one.size and (_OF_CODE if code else _OF_DATA).match(one.name)
    ]  # fmt: skip
    begins = [one.address for one in mine]
    for symbol in symbols:
        if symbol.kind not in kinds:
            continue
        at = bisect_right(begins, symbol.address) - 1
        if at < 0 or not says_something(symbol.name, code=code):
            continue
        section = mine[at]
        end = section.address + section.size
        if symbol.address >= end:
            continue
        size = min(follows.get(symbol.address, end), end) - symbol.address
        size = size if code else min(size, _LONGEST)
        yield (
            plain_name(symbol.name),
            CodePlace(symbol.address, section.offset + symbol.address - section.address, size),
        )


def which_of_its_name(named: Iterable[tuple[str, _Found]]) -> Iterator[tuple[tuple[str, int], _Found]]:
    """What has a name, by the name and which one of that name it is: static functions share names."""
    counts: dict[str, int] = {}
    for name, found in named:
        number = counts.get(name, 0)
        counts[name] = number + 1
        yield (name, number), found
