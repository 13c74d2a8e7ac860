"""What our plugins take the code of booted and patched kernels for, beside what Capstone decodes: all of their text."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import capstone
import numpy as np
import numpy.typing as npt
import pytest
from capstone import x86
from decoded_code import decoded_code

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.guest_memory import PageTables
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.observers.function_names import branches_by, is_thunk, returns_by
from pdrgate.safety.journal import Journal

pytestmark = [
    pytest.mark.guest, pytest.mark.usefixtures("booting"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
]  # fmt: skip

PATIENCE = 180.0
IMAGE = 0xFFFFFFFF80000000
"""Where x86 has physical address 0, for the kernel's image."""
MOST_UNDECODED = 1e-3
"""Of all instructions, bytes that Capstone cannot decode: traps of data, and instructions younger than it is."""
BEGINS = re.compile(
    rb"(?:\xf3\x0f\x1e\xfa|\x0f\x1f\x44\x00\x00|\x2e\x0f\x1f.{6}|\x66?\x90)*[\x0f\x2e\x41\x48\xc3\xe8\xff]", re.DOTALL
)
"""How thunks may begin, behind what does nothing: a call, a jump, a return, a change of the stack pointer, a fence."""
LONGEST_THUNK = 64
"""Bytes that a thunk jumps over in itself."""
OFTEN = 0.05
"""Direct jumps to what the returns of a kernel go through, for each of its functions."""


@dataclass(frozen=True)
class PatchedKernel:
    """The text of a kernel after it has patched itself for the CPU that it runs on."""

    code: bytes
    begin: int
    names: Mapping[int, tuple[str, ...]]
    """Of each function, by its address."""

    def at(self, address: int, size: int) -> bytes:
        offset = max(0, address - self.begin)
        return self.code[offset : offset + size]

    @cached_property
    def going_to(self) -> npt.NDArray[np.int64]:
        """How far behind the begin direct calls and jumps of 32 bits go, whatever byte they would begin at; sorted."""
        code = np.frombuffer(self.code, np.uint8)
        at = np.flatnonzero((code[:-5] & 0xFE) == 0xE8)
        distance = sum(code[at + 1 + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4))
        return np.sort(at + 5 + distance.view(np.int32))

    def entered(self, address: int) -> int:
        """How many direct calls and jumps go to an address."""
        offset = address - self.begin
        first, last = np.searchsorted(self.going_to, [offset, offset + 1])
        return int(last - first)


@pytest.fixture(scope="module")
def kernel(
    booting: None, matrix_kernel: KernelBuild, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PatchedKernel]:
    """Its text in the memory of a guest."""
    folder = tmp_path_factory.mktemp("decoded")
    cpus = plan_cpus(None, None)
    config = GuestConfig(cpus=(cpus.generator,), accelerator="tcg", isolate=False, metered=True)
    with (
        Journal.begin(folder / "state") as journal,
        Guest(matrix_kernel, config, journal, folder / "consoles") as guest,
    ):
        guest.wait(PATIENCE)
        lines = [line.split() for line in guest.run("cat", "/proc/kallsyms", timeout=PATIENCE).stdout.splitlines()]
        own = [(int(words[0], 16), words[1], words[2]) for words in lines if len(words) == 3]
        places = {name: at for at, _, name in own}
        begin, end = places["_stext"], places["_etext"]
        assert guest.memory is not None
        code = guest.memory.stretch(PageTables(places["init_top_pgt"] - IMAGE), begin, end - begin)
    assert len(code) == end - begin
    names: dict[int, tuple[str, ...]] = {}
    for at, kind, name in own:
        if kind in "tTwW" and begin <= at < end:
            names[at] = (*names.get(at, ()), name)
    yield PatchedKernel(code, begin, names)


def test_each_instruction_of_a_kernel_is_what_a_disassembler_says(kernel: PatchedKernel, tmp_path: Path) -> None:
    found = decoded_code(kernel.code, kernel.begin, list(kernel.names), tmp_path)
    assert found.differing == ()
    assert found.counts["undecoded"] < MOST_UNDECODED * found.counts["decoded"]
    for kind in ("atomic", "indirect", "return", "stack", "cpu", "call", "direct jump"):
        assert found.counts[kind] > 0


def test_thunks_that_a_kernel_goes_through_are_known_by_their_names(kernel: PatchedKernel) -> None:
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    entered = (at for at in kernel.names if BEGINS.match(kernel.code, at - kernel.begin) and kernel.entered(at))
    used = {at: way for at in entered if (way := _followed(kernel, decoder, at)) is not None}
    branching = {at: way for at, way in used.items() if way.leaves == "branches"}
    often = OFTEN * len(kernel.names)
    returning = {at: way for at, way in used.items() if way.leaves == "returns" and kernel.entered(at) > often}
    assert len(branching) >= 15, "a CPU of this kind has retpolines, one for each register but the stack's"
    assert len(returning) == 1, "a CPU of this kind has its returns go through a thunk"
    assert [names for at in branching if not any(map(branches_by, names := kernel.names[at]))] == []
    assert [names for at in returning if not any(map(returns_by, names := kernel.names[at]))] == []
    steps = {step for way in (*branching.values(), *returning.values()) for step in way.through}
    named = [kernel.names[step] for step in steps if step in kernel.names]
    assert [names for names in named if not any(map(is_thunk, names))] == []


@dataclass(frozen=True, slots=True)
class _Way:
    """How code that does nothing else goes elsewhere."""

    leaves: str
    """``branches``, to where a register says, or ``returns``."""
    through: tuple[int, ...]
    """Addresses of its pieces."""


def _followed(kernel: PatchedKernel, decoder: capstone.Cs, at: int) -> _Way | None:
    """Which way code goes from an address on; None where it does something, or goes where another thunk does."""
    begin, through, chosen, called = at, [at], False, False
    for _ in range(16):
        insn = next(decoder.disasm(kernel.at(at, 15), at, 1), None)
        if insn is None:
            return None
        at += insn.size
        operands = insn.operands
        if insn.id in (x86.X86_INS_NOP, x86.X86_INS_LFENCE, x86.X86_INS_ENDBR64):
            continue
        if insn.id in (x86.X86_INS_CALL, x86.X86_INS_JMP) and operands[0].type == x86.X86_OP_IMM:
            at = operands[0].imm % (1 << 64)
            if at not in range(begin, begin + LONGEST_THUNK):
                if not chosen and insn.id == x86.X86_INS_JMP:
                    return None
                called |= not chosen
                through.append(at)
        elif insn.id == x86.X86_INS_JMP and operands[0].type == x86.X86_OP_REG:
            return None if called else _Way("branches", tuple(through))
        elif insn.id == x86.X86_INS_RET:
            return None if called and chosen else _Way("branches" if chosen else "returns", tuple(through))
        elif insn.id == x86.X86_INS_MOV and insn.op_str.startswith("qword ptr [rsp], "):
            chosen = True
        elif not (insn.id == x86.X86_INS_LEA and insn.op_str == "rsp, [rsp + 8]"):
            return None
    return None
