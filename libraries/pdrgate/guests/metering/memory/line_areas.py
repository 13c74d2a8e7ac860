"""Kinds of lines of data, and the areas of a kernel's addresses that identify most of them.

A kernel maps its image and its modules, all memory of the machine, what vmalloc makes, and an array of all pages.
/proc/kcore shows these in its headers, for their begins may be drawn in each boot. Where image and modules lie, the
architecture decides, or the kernel shows it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from pdrgate.builds.architecture import Architecture
from pdrgate.guests.metering.symbols import KERNEL_READ_TIMEOUT
from pdrgate.hosts.host import Host

_READ = """\
od -A n -v -t x8 -N 4096 /proc/kcore 2>/dev/null
echo 1 >/proc/sys/kernel/kptr_restrict
grep pcpu_ /proc/vmallocinfo 2>/dev/null
echo 0 >/proc/sys/kernel/kptr_restrict"""
"""Script that prints /proc/kcore's headers and /proc/vmallocinfo. The kernel prints unreadable addresses unless it is
set to restrict them to who may see them."""
_IMAGE = "grep -m 1 ' _text$' /proc/kallsyms; grep 'Kernel ' /proc/iomem"
"""Script that prints the first address of the image, and the physical addresses of its parts."""
_TEXT_AT = re.compile(r"([0-9a-f]{16}) \w _text", re.ASCII)
_PART_OF_IMAGE = re.compile(r"\s*([0-9a-f]+)-([0-9a-f]+) : Kernel ", re.ASCII)
_CHUNK = re.compile(r"0x([0-9a-f]{16})-0x([0-9a-f]{16}) .*\bpcpu_", re.ASCII)
_WORD = re.compile("[0-9a-f]{16}", re.ASCII)
_CHUNKS = 16
"""The most areas of a kind that are listed."""
_WORDS = 7
"""Words of 64 bits of an ELF program header."""
_NOWHERE = (1 << 64) - 1
"""Physical address in /proc/kcore of an area that is no memory."""


class LineKind(IntEnum):
    """Kind of a line of data."""

    UNKNOWN = 0
    STACK = 1
    """A stack of the kernel, a thread or interrupts."""
    PER_CPU = 2
    """Memory that each CPU has for itself."""
    SYMBOL = 3
    """A variable of the kernel or of a module."""
    DIRECT = 4
    """The map of all memory: slabs, pages, and a packet's data."""
    VMALLOC = 5
    """Memory that vmalloc made, such as a large table of a BPF map."""
    PAGE = 6
    """The kernel's notes of a page, struct page."""
    PROGRAM = 7
    """Memory of a program."""


NAMED_KINDS = (LineKind.PER_CPU, LineKind.SYMBOL, LineKind.DIRECT, LineKind.VMALLOC)
"""Kinds of lines that may have names of their own."""


@dataclass(frozen=True, slots=True)
class LineArea:
    """Addresses of lines of one kind."""

    first: int
    last: int
    kind: LineKind


_PROGRAMS = LineArea(0, (1 << 63) - 1, LineKind.PROGRAM)


def fixed_areas(architecture: Architecture, text: str = "") -> tuple[LineArea, ...]:
    """Areas that are the same in every boot.

    Args:
        text: output of the script of a kernel that shows where its image lies; without it that is not known.
    """
    if architecture.image_area is not None:
        return _PROGRAMS, LineArea(*architecture.image_area, LineKind.SYMBOL)
    lines = text.splitlines()
    begin = next((int(one[1], 16) for one in map(_TEXT_AT.match, lines) if one), 0)
    end = max((int(one[2], 16) for one in map(_PART_OF_IMAGE.match, lines) if one), default=0)
    # A kernel with addresses of another width has its areas elsewhere, and its tables have other levels.
    if begin not in architecture.modules_and_image or end <= architecture.image_at:
        return (_PROGRAMS,)
    modules = LineArea(architecture.modules_and_image.start, begin - 1, LineKind.SYMBOL)
    return _PROGRAMS, modules, LineArea(begin, begin + end - architecture.image_at, LineKind.SYMBOL)


def read_areas(guest: Host, architecture: Architecture) -> tuple[LineArea, ...]:
    """The areas of a running kernel; only the fixed ones if it shows no more. Raises TestbedError."""
    script = f"{_READ}\n{_IMAGE}" if architecture.has_flat_image else _READ
    return parsed_areas(guest.script(script, KERNEL_READ_TIMEOUT).stdout, architecture)


def parsed_areas(text: str, architecture: Architecture) -> tuple[LineArea, ...]:
    """The areas in the begin of a kernel's /proc/kcore, as words of 64 bits, and in lines of /proc/vmallocinfo."""
    fixed = fixed_areas(architecture, text)
    symbols = [one for one in fixed if one.kind == LineKind.SYMBOL]
    chunks = (_CHUNK.match(line) for line in text.splitlines())
    words = [int(word, 16) for word in text.split() if _WORD.fullmatch(word)]
    # Memory of each CPU, beyond what it had at the boot, lies among what vmalloc makes.
    own = [LineArea(int(one[1], 16), int(one[2], 16) - 1, LineKind.PER_CPU) for one in chunks if one]
    return (*fixed, *own[:_CHUNKS], *_mapped(words, symbols, flat=architecture.has_flat_image))


def _mapped(words: list[int], symbols: Sequence[LineArea], *, flat: bool) -> tuple[LineArea, ...]:
    """The areas in the begin of a /proc/kcore, as words of 64 bits; empty if it is no such file."""
    if not symbols or len(words) < 8 or words[0] & 0xFFFFFFFF != 0x464C457F:
        return ()
    begin, count = words[4] // 8, words[7] & 0xFFFF
    headers = [words[begin + _WORDS * number : begin + _WORDS * (number + 1)] for number in range(count)]
    # Of a header: its type, ..., the address, the physical address, ..., the size.
    found = [(one[2], one[3], one[5]) for one in headers if len(one) == _WORDS and one[0] & 0xFFFFFFFF == 1]
    first, last_symbol = symbols[0].first, symbols[-1].last
    # A flat image lies in what vmalloc makes, another at the end of all addresses.
    below = sorted(one for one in found if one[0] < first or (flat and one[0] + one[2] - 1 > last_symbol))
    memory = [one for one in below if one[1] != _NOWHERE]
    if not memory:
        return ()
    *_, (last, _, size) = memory
    areas = [LineArea(memory[0][0], min(last + size - 1, _NOWHERE), LineKind.DIRECT)]
    # Behind it stands what vmalloc makes; the array of pages comes last.
    behind = [(address, size) for address, _, size in below if address > last]
    for (address, size), kind in zip(behind, (LineKind.VMALLOC, LineKind.PAGE), strict=False):
        areas.append(LineArea(address, min(address + size - 1, _NOWHERE), kind))
    return tuple(areas)
