"""What instructions of x86 read, write and take, as Capstone decodes them, for cpu_model.c."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntFlag

import capstone
import numpy as np
import numpy.typing as npt
from capstone import x86_const as x86

INSN = np.dtype(
    [
        ("address", "<u8"), ("next", "<u8"), ("flags", "<u2"), ("sources", "u1"), ("addresses", "u1"),
        ("targets", "u1"), ("port", "u1"), ("source", "u1", 6), ("target", "u1", 4), ("latency", "<u2"),
        ("slots", "<u2"), ("slow", "<u2"), ("place", "<u4"), ("function", "<u4"),
    ],
    align=True,
)  # fmt: skip
"""`struct insn` of cpu_model.c."""
SLOW = (
    "cli", "sti", "pushf", "popf", "lfence", "mfence", "rdtsc", "wrmsr", "rdmsr", "cpuid", "swapgs", "iret", "cr",
    "pause", "clac", "rdrand",
)  # fmt: skip
"""Kinds of instructions that are slow by themselves."""
_SERIALISING = frozenset({"lfence", "wrmsr", "cpuid", "iret", "cr"})
_ALU, _MULTIPLY, _DIVIDE, _BRANCH, _STORE = 0, 1, 2, 4, 6
_ON_STACK = ("push", "pop", "call", "ret")
_LEGACY = {name: number for number, name in enumerate(("ax", "cx", "dx", "bx", "si", "di", "bp", "sp"))}
_STACK, _FLAGS, _VECTORS = 7, 16, 20
_HALVED = 4
"""Registers that have names for two bytes."""
_ATOMIC = 1
"""Trait of a place of a memory trial."""
_DECODER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_DECODER.detail = True


class Flag(IntFlag):
    """Flags of `INSN`."""

    LOADS = 1 << 0
    STORES = 1 << 1
    IF = 1 << 2
    JUMPS = 1 << 3
    INDIRECT = 1 << 4
    CALLS = 1 << 5
    RETURNS = 1 << 6
    LOCKED = 1 << 7
    SERIALISES = 1 << 8
    REPEATS = 1 << 9
    FUSED = 1 << 10
    FREE = 1 << 11
    FENCE = 1 << 12
    RETURN_THUNK = 1 << 13
    INDIRECT_THUNK = 1 << 14


def _number(name: str) -> int | None:
    """The number of a register in the model; None for one that it does not know."""
    if name in ("eflags", "rflags"):
        return _FLAGS
    if found := re.fullmatch(r"r(\d+)[dwb]?", name):
        return int(found[1])
    if found := re.fullmatch(r"[xyz]mm(\d+)", name):
        return _VECTORS + int(found[1])
    for legacy, number in _LEGACY.items():
        halves = (f"{legacy[0]}l", f"{legacy[0]}h") if number < _HALVED else (f"{legacy}l",)
        if name in (legacy, f"r{legacy}", f"e{legacy}", *halves):
            return number
    return None


_REGISTERS = {one: _number(_DECODER.reg_name(one) or "") for one in range(1, 260)}


def _known(registers: Sequence[int]) -> list[int]:
    found = (_REGISTERS.get(one) for one in registers)
    return list(dict.fromkeys(one for one in found if one is not None))


def _slow(name: str, registers: Sequence[str]) -> str | None:
    if name == "mov" and any(one[:2] in ("cr", "dr") for one in registers):
        return "cr"
    word = {"stac": "clac", "rdtscp": "rdtsc"}.get(name, name)
    word = next((start for start in ("iret", "pushf", "popf") if word.startswith(start)), word)
    return word if word in SLOW and word != "cr" else None


def describe(code: bytes, address: int, row: npt.NDArray[np.void], traits: int = 0) -> str:
    """Fill a row of `INSN` with an instruction, and return its name; one that is not decoded reads nothing."""
    row["address"], row["next"], row["slots"], row["latency"], row["port"] = address, address + len(code), 1, 1, _ALU
    insn = next(_DECODER.disasm(code, address), None)
    if insn is None:
        return ""
    name, operands, flags = insn.mnemonic.split()[-1], insn.operands, Flag(0)
    read, written = insn.regs_access()
    read, written = _known(read), _known(written)
    memory = [one for one in operands if one.type == x86.X86_OP_MEM]
    addressing = _known([one for operand in memory for one in (operand.mem.base, operand.mem.index) if one])
    if name in ("lea",):
        memory = []
    loads = any(one.access & capstone.CS_AC_READ for one in memory)
    stores = any(one.access & capstone.CS_AC_WRITE for one in memory) and name not in ("cmp", "test")
    if name == "mov" and memory:
        loads = operands[1].type == x86.X86_OP_MEM
        stores = not loads
    data = [one for one in read if one not in addressing]
    if name in _ON_STACK:  # a CPU knows the stack pointer before it executes them
        data, written = [one for one in data if one != _STACK], [one for one in written if one != _STACK]
        addressing = [one for one in addressing if one != _STACK]
        loads, stores = name in ("pop", "ret") or bool(memory), name in ("push", "call") or stores
    loads = loads or name == "leave"
    if name in ("nop", "endbr64") or name.startswith("prefetch"):
        data, written, addressing, loads, stores, row["latency"] = [], [], [], False, False, 0
        flags |= Flag.FREE
    in_registers = len(operands) > 1 and all(one.type == x86.X86_OP_REG for one in operands)
    if name in ("xor", "sub", "pxor", "vpxor", "xorps") and in_registers and operands[-1].reg == operands[-2].reg:
        data, addressing, row["latency"] = [], [], 0
        flags |= Flag.FREE
    if name in ("mov", "movq", "movaps", "movdqa") and in_registers:
        row["latency"] = 0
    if name in ("imul", "mul", "mulx"):
        row["latency"], row["port"], row["slots"] = 3, _MULTIPLY, 1 if len(operands) > 1 else 2
    elif name in ("div", "idiv"):
        row["latency"], row["port"], row["slots"] = 14, _DIVIDE, 4
    elif name in ("popcnt", "bsf", "bsr", "lzcnt", "tzcnt", "pdep", "pext", "crc32"):
        row["latency"], row["port"] = 3, _MULTIPLY
    elif name in ("shld", "shrd"):
        row["latency"] = 3
    elif name in ("rcl", "rcr") or (name == "xchg" and not memory):
        row["latency"], row["slots"] = 2, 3
    if name in ("call", "jmp", "ret", "retf") or capstone.x86.X86_GRP_JUMP in insn.groups:
        row["port"] = _BRANCH
        directly = bool(operands) and operands[0].type == x86.X86_OP_IMM
        if name.startswith("ret"):
            flags |= Flag.RETURNS
        elif name in ("call", "jmp"):
            flags |= (Flag.CALLS if name == "call" else Flag(0)) | (Flag.JUMPS if directly else Flag.INDIRECT)
        else:
            flags |= Flag.IF
    if name in ("cmpxchg", "xadd") and memory:
        loads, stores, row["slots"] = True, True, 5
    if traits & _ATOMIC or "lock" in insn.mnemonic:
        loads, stores, row["slots"], row["latency"] = True, True, 8, 6 if name.startswith("cmpxchg") else 0
        flags |= Flag.LOCKED
    if insn.mnemonic.startswith("rep") and name[:4] in ("movs", "stos", "cmps", "scas", "lods"):
        both = name[:4] in ("movs", "cmps")
        addressing, data, loads, stores = [], [1, 4, 5], False, False
        row["latency"] = operands[0].size * (1 if both else 2)
        flags |= Flag.REPEATS
    slow = _slow(name, [_DECODER.reg_name(one.reg) for one in operands if one.type == x86.X86_OP_REG])
    if slow:
        row["slow"] = SLOW.index(slow) + 1
        flags |= Flag.SERIALISES if slow in _SERIALISING else Flag.FENCE if slow == "mfence" else Flag(0)
    flags |= (Flag.LOADS if loads else Flag(0)) | (Flag.STORES if stores else Flag(0))
    if loads and row["port"] == _ALU and name in ("mov", "movzx", "movsx", "movsxd", "pop", "leave", "movabs"):
        row["latency"] = 0
    if stores and not loads and name in ("mov", "push"):
        row["latency"], row["port"] = 0, _STORE
    if loads and stores:
        row["slots"] = max(row["slots"], 2)
    sources = (addressing + data)[:6]
    row["addresses"], row["sources"], row["targets"] = len(addressing[:6]), len(sources), len(written[:4])
    row["source"][: len(sources)] = sources
    row["target"][: len(written[:4])] = written[:4]
    row["flags"] = int(flags)
    return str(name)
