"""What the plugins take x86 instructions for, by the tables of opcodes in Intel's SDM (volume 2)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import pytest
from decoded_code import decoded_code
from plugin_traits import Trait, compiled_traits

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

ATOMIC, RETURNS, GOES_INDIRECTLY, ON_STACK = Trait.ATOMIC, Trait.RETURNS, Trait.GOES_INDIRECTLY, Trait.ON_STACK
OF_CPU, LOADS_ELSEWHERE, STORES_ELSEWHERE = Trait.OF_CPU, Trait.LOADS_ELSEWHERE, Trait.STORES_ELSEWHERE
NOTHING = Trait(0)
TraitsOf = Callable[[Sequence[bytes]], list[Trait]]

LOCKABLE = {
    "add": ("00 07", "48 01 07", "80 07 01", "48 81 07 00 01 00 00", "48 83 07 01"),
    "or": ("08 07", "09 07", "83 0f 01"), "adc": ("10 07", "11 07", "83 17 01"), "sbb": ("18 07", "19 07", "83 1f 01"),
    "and": ("20 07", "21 07", "83 27 01"), "sub": ("28 07", "29 07", "83 2f 01"), "xor": ("30 07", "31 07", "83 37 01"),
    "btc": ("48 0f bb 07", "0f ba 3f 01"), "btr": ("48 0f b3 07", "0f ba 37 01"), "bts": ("0f ab 07", "0f ba 2f 01"),
    "cmpxchg": ("0f b0 0f", "48 0f b1 0e"), "cmpxchg8b": ("0f c7 0f",), "cmpxchg16b": ("48 0f c7 0f",),
    "dec": ("fe 0f", "ff 0f"), "inc": ("fe 07", "48 ff 07"), "neg": ("f6 1f", "48 f7 1f"), "not": ("f6 17", "f7 17"),
    "xadd": ("0f c0 07", "48 0f c1 07"),
}  # fmt: skip
"""Instructions that may have a LOCK, without it; their operand is in memory."""

TRAITS = {
    "xchg with memory": ("48 87 06", ATOMIC),
    "xchg of registers": ("87 c3", NOTHING),
    "xchg with memory of the CPU": ("65 48 87 05 00 00 00 00", ATOMIC | OF_CPU),
    "mov, padded": ("3e 3e c6 07 00", NOTHING),
    "wrmsr, padded": ("3e 0f 30", NOTHING),
    "nop, padded": ("3e 0f 1f 00", NOTHING),
    "notrack jmp *%rax": ("3e ff e0", GOES_INDIRECTLY),
    "cmp, padded": ("3e 48 83 3f 01", NOTHING),
    "cmp of a register, padded": ("3e 48 39 07", NOTHING),
    "add to a register, padded": ("3e 48 83 c0 01", NOTHING),
    "add from memory, padded": ("3e 48 03 07", NOTHING),
    "test, padded": ("3e f6 07 01", NOTHING),
    "bt, padded": ("3e 0f ba 27 01", NOTHING),
    "rdrand, padded": ("3e 0f c7 f0", NOTHING),
    "vpshufb, padded": ("3e c4 e2 71 00 07", NOTHING),
    "call *%rax": ("ff d0", GOES_INDIRECTLY | ON_STACK),
    "call *%r8": ("41 ff d0", GOES_INDIRECTLY | ON_STACK),
    "call *(%rax)": ("ff 10", GOES_INDIRECTLY | ON_STACK | LOADS_ELSEWHERE),
    "call *%gs:0": ("65 ff 14 25 00 00 00 00", GOES_INDIRECTLY | ON_STACK | LOADS_ELSEWHERE | OF_CPU),
    "jmp *%rax": ("ff e0", GOES_INDIRECTLY),
    "jmp *(%rax)": ("ff 20", GOES_INDIRECTLY),
    "lcall *(%rax)": ("48 ff 18", GOES_INDIRECTLY | ON_STACK | LOADS_ELSEWHERE),
    "ljmp *(%rax)": ("48 ff 28", GOES_INDIRECTLY),
    "call": ("e8 00 00 00 00", ON_STACK),
    "call, padded": ("2e 67 e8 00 00 00 00", ON_STACK),
    "jmp": ("e9 00 00 00 00", NOTHING),
    "ret": ("c3", RETURNS | ON_STACK),
    "repz ret": ("f3 c3", RETURNS | ON_STACK),
    "ret 8": ("c2 08 00", RETURNS | ON_STACK),
    "lretq": ("48 cb", RETURNS | ON_STACK | LOADS_ELSEWHERE),
    "lret 8": ("ca 08 00", RETURNS | ON_STACK | LOADS_ELSEWHERE),
    "iretq": ("48 cf", ON_STACK | LOADS_ELSEWHERE),
    "sysretq": ("48 0f 07", NOTHING),
    "push %rax": ("50", ON_STACK),
    "push %r15": ("41 57", ON_STACK),
    "pop %r15": ("41 5f", ON_STACK),
    "push of a byte": ("6a ff", ON_STACK),
    "push of a word": ("68 00 00 00 00", ON_STACK),
    "push of memory": ("ff 37", ON_STACK | LOADS_ELSEWHERE),
    "push of memory of the CPU": ("65 ff 34 25 00 00 00 00", ON_STACK | LOADS_ELSEWHERE | OF_CPU),
    "push %fs": ("0f a0", ON_STACK),
    "pop %gs": ("0f a9", ON_STACK),
    "pop to memory": ("8f 07", ON_STACK | STORES_ELSEWHERE),
    "pushf": ("9c", ON_STACK),
    "popf": ("9d", ON_STACK),
    "enter": ("c8 10 00 00", ON_STACK),
    "leave": ("c9", ON_STACK),
    "mov of memory of the CPU": ("65 8b 05 00 00 00 00", OF_CPU),
    "mov": ("48 89 07", NOTHING),
    "punpcklbw, whose opcode is that of a push in the other table": ("0f 60 c1", NOTHING),
    "cpuid, whose opcode is near that of a push": ("0f a2", NOTHING),
    "prefixes alone": ("66 48", NOTHING),
}  # fmt: skip


@pytest.fixture(scope="module")
def traits_of(tmp_path_factory: pytest.TempPathFactory) -> TraitsOf:
    return compiled_traits(tmp_path_factory.mktemp("traits"))


@pytest.mark.parametrize("name", LOCKABLE)
def test_what_may_have_a_lock_is_atomic_with_one_and_where_it_was_taken_out(traits_of: TraitsOf, name: str) -> None:
    encodings = [bytes.fromhex(one) for one in LOCKABLE[name]]
    assert traits_of([b"\xf0" + one for one in encodings]) == [ATOMIC] * len(encodings)
    assert traits_of([b"\x3e" + one for one in encodings]) == [ATOMIC] * len(encodings)
    assert traits_of(encodings) == [NOTHING] * len(encodings)


@pytest.mark.parametrize("name", TRAITS)
def test_an_instruction_has_the_traits_of_the_manual(traits_of: TraitsOf, name: str) -> None:
    encoding, traits = TRAITS[name]
    assert traits_of([bytes.fromhex(encoding)]) == [traits]


PREFIXES = ("", "f0", "3e", "65", "48", "f3", "f2", "66", "67", "3e 48", "48 3e", "2e")
MAPS = (b"", b"\x0f")
AT = 0x1000
ROOM = 16
"""Bytes for each encoding, with what comes next."""


def test_each_opcode_with_each_extension_is_what_a_disassembler_says(tmp_path: Path) -> None:
    encodings = (
        bytes.fromhex(prefix) + of_map + bytes((opcode, mode | extension << 3 | 7))
        for prefix, of_map, opcode, extension, mode in product(
            PREFIXES, (b"", b"\x0f"), range(256), range(8), (0, 0xC0)
        )
    )
    code = b"".join(one.ljust(ROOM, b"\x90") for one in encodings)
    found = decoded_code(code, AT, range(AT, AT + len(code), ROOM), tmp_path)
    assert found.differing == ()
    assert found.counts["decoded"] > len(code) // ROOM
    assert all(found.counts.values())
