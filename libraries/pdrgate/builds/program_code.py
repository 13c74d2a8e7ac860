"""What the instructions of an eBPF object show without being run: their bytes, and which IP versions they look at."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import Literal

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.builds.elf_file import EXECUTABLE, ElfFile

_INSTRUCTION = 8
"""Bytes of it (RFC 9669, section 3)."""
_JUMPS = (0x05, 0x06)
"""Classes BPF_JMP and BPF_JMP32."""
_EQUAL, _UNEQUAL = 0x10, 0x50
"""Operations JEQ and JNE, beside a number that stands in the instruction."""
_ETHERTYPES: dict[int, Literal[4, 6]] = {0x0800: 4, 0x0008: 4, 0x86DD: 6, 0xDD86: 6}
"""EtherTypes, as they are and as a little-endian machine reads them from a packet."""
_LARGEST = 64 << 20


def code_of(build: BpfBuild) -> tuple[bytes, ...]:
    """The instructions of all its sections, without what only a debugger reads. Raises BpfBuildError."""
    elf = ElfFile(io.BytesIO(build.read()))
    return tuple(elf.content(one, _LARGEST) for one in elf.sections if one.flags & EXECUTABLE)


def ip_versions(build: BpfBuild) -> frozenset[int]:
    """The IP versions whose EtherType its instructions compare something with. Raises BpfBuildError."""
    return frozenset(_ETHERTYPES[number] for code in code_of(build) for number in _compared(code)
                     if number in _ETHERTYPES)  # fmt: skip


def _compared(code: bytes) -> Iterator[int]:
    for at in range(0, len(code) - _INSTRUCTION + 1, _INSTRUCTION):
        operation, _, _, number = struct.unpack_from("<BBhi", code, at)
        # The lowest three bits are the class; the fourth says whether a register stands in the number's place.
        if operation & 0x07 in _JUMPS and operation & 0xF8 in (_EQUAL, _UNEQUAL):
            yield number & 0xFFFFFFFF
