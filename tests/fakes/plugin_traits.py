"""What the plugins of QEMU take instructions for: their own code, compiled for a test."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from enum import IntFlag
from pathlib import Path

import numpy as np

from pdrgate.builds.architecture import X86_64, Architecture
from pdrgate.guests.metering.plugin import guest_code

_SOURCE = """
#include GUEST_TRAITS

void traits_of_each(const uint8_t *code, const uint8_t *size, uint16_t *traits, uint64_t instructions)
{
    struct code_state state = { 0 };
    for (uint64_t number = 0; number < instructions; code += size[number++])
        traits[number] = traits_of(code, size[number], &state);
}
"""


class Trait(IntFlag):
    """What code does beside touching memory, as record.h has it."""

    ATOMIC = 1
    GOES_INDIRECTLY = 2
    RETURNS = 4
    ON_STACK = 8
    OF_CPU = 16
    LOADS_ELSEWHERE = 32
    STORES_ELSEWHERE = 64


def compiled_traits(folder: Path, architecture: Architecture = X86_64) -> Callable[[Sequence[bytes]], list[Trait]]:
    """A function from the instructions of a block to their traits, compiled in a folder of the test's own."""
    source, made = folder / "traits.c", folder / "traits.so"
    source.write_text(_SOURCE)
    options = ("-O2", "-Wall", "-Werror", "-shared", "-fPIC", *guest_code(architecture))
    subprocess.run(("gcc", *options, source, "-o", made), check=True)
    traits_of_each = ctypes.CDLL(str(made)).traits_of_each
    traits_of_each.restype = None

    def traits_of(instructions: Sequence[bytes]) -> list[Trait]:
        sizes = np.array([len(one) for one in instructions], dtype=np.uint8)
        found = np.zeros(len(instructions), dtype=np.uint16)
        traits_of_each(
            b"".join(instructions), sizes.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(len(instructions)),
        )  # fmt: skip
        return [Trait(one) for one in found.tolist()]

    return traits_of
