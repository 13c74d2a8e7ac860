"""The IP version that an eBPF program looks at, by the EtherTypes that its instructions compare with."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import Literal

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.builds.elf_file import EXECUTABLE, ElfFile

_INSTRUCTION = struct.Struct("<BBhi")
"""An instruction: operation, registers, offset, immediate (RFC 9669, section 3)."""
_JUMPS, _EQUAL_OR_NOT = (0x05, 0x06), (0x10, 0x50)
"""Classes of jumps, and JEQ and JNE (RFC 9669, sections 3.3 and 4.3)."""
_BY_REGISTER = 0x08
_IPV4, _IPV6 = (0x0800, 0x0008), (0x86DD, 0xDD86)
"""EtherTypes, as a program has them after it has turned the bytes round, and before."""
_LARGEST = 1 << 20


def looks_at(build: BpfBuild) -> Literal[4, 6] | None:
    """The one IP version that a build's object compares EtherTypes with; None where it names both, or neither."""
    elf = ElfFile(io.BytesIO(build.read()))
    compared = {
        number
        for section in elf.sections
        if section.flags & EXECUTABLE and section.size
        for number in _compared(elf.content(section, _LARGEST))
    }
    versions = (not compared.isdisjoint(_IPV4), not compared.isdisjoint(_IPV6))
    return {(True, False): 4, (False, True): 6}.get(versions)  # type: ignore[return-value]


def _compared(code: bytes) -> Iterator[int]:
    """Numbers that the code compares a register with."""
    for operation, _, _, number in _INSTRUCTION.iter_unpack(code[: len(code) // 8 * 8]):
        if operation & 0x07 in _JUMPS and operation & 0xF0 in _EQUAL_OR_NOT and not operation & _BY_REGISTER:
            yield number & 0xFFFFFFFF
