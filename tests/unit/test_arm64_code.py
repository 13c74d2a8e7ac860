"""What our plugins take arm64 instructions for, beside what Capstone decodes: all words that a generator makes up."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import capstone
import pytest
from capstone import arm64
from plugin_traits import Trait, compiled_traits

from pdrgate.builds.architecture import ARM64
from pdrgate.guests.metering.plugin import guest_code

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

_DRIVER = """
#include GUEST_CODE
int flow_of_word(const uint8_t *code) { return flow_after(code, 4); }
uint64_t goes_to_of_word(const uint8_t *code, uint64_t end) { return goes_to(code, 4, end); }
int plain_of_word(const uint8_t *code) { return accesses_plainly(code, 4); }
int changes_of_word(const uint8_t *code) { return changes_privilege(code, 4); }
"""
_ATOMIC = (
    "ldxr", "stxr", "ldaxr", "stlxr", "ldxp", "stxp", "ldaxp", "stlxp", "cas", "swp", "ldadd", "ldclr", "ldeor",
    "ldset", "ldsmax", "ldsmin", "ldumax", "ldumin", "stadd", "stclr", "steor", "stset", "stsmax", "stsmin", "stumax",
    "stumin",
)  # fmt: skip
"""Begins of the mnemonics of exclusive and of read-modify-write instructions."""
_ORDERING = ("ldar", "ldlar", "stlr", "stllr", "ldapr", "ldapur", "stlur")
_FIELDS = (0x08000000, 0x0C000000, 0x18000000, 0x28000000, 0x38000000, 0x39000000, 0x14000000, 0xD4000000, 0xD6000000)
"""Groups of words that matter here, and of which a random one is often an instruction."""


@pytest.fixture(scope="module")
def words() -> list[tuple[int, capstone.CsInsn]]:
    """Words that are instructions, with what Capstone decodes."""
    chosen, decoder = random.Random(64), capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    decoder.detail = True
    found = []
    while len(found) < 6000:
        word = chosen.getrandbits(32)
        if chosen.random() < 0.8:
            word = (word & ~0x3F000000) | chosen.choice(_FIELDS) if chosen.random() < 0.8 else word | 0xD4000000
        found += [(word, insn) for insn in decoder.disasm(word.to_bytes(4, "little"), 0x1000)]
    return found


@pytest.fixture(scope="module")
def traits(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[bytes]], list[Trait]]:
    return compiled_traits(tmp_path_factory.mktemp("traits"), ARM64)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ctypes.CDLL]:
    folder = tmp_path_factory.mktemp("code")
    (folder / "code.c").write_text(_DRIVER)
    options = ("-O1", "-Wall", "-Werror", "-shared", "-fPIC", *guest_code(ARM64))
    subprocess.run(("gcc", *options, folder / "code.c", "-o", folder / "code.so"), check=True)
    library = ctypes.CDLL(str(folder / "code.so"))
    library.goes_to_of_word.restype = ctypes.c_uint64
    library.goes_to_of_word.argtypes = (ctypes.c_char_p, ctypes.c_uint64)
    return library


def _base(insn: capstone.CsInsn) -> int | None:
    return next((one.mem.base for one in insn.operands if one.type == arm64.ARM64_OP_MEM and one.mem.base), None)


def test_atomics_returns_and_indirect_branches_are_those_of_capstone(words, traits) -> None:
    found = traits([word.to_bytes(4, "little") for word, _ in words])
    differing = []
    for (word, insn), one in zip(words, found, strict=True):
        name = insn.mnemonic
        wanted = Trait(0)
        if name.startswith(_ATOMIC) and not name.startswith(_ORDERING):
            wanted |= Trait.ATOMIC
        if name in ("ret", "retaa", "retab"):
            wanted |= Trait.RETURNS
        if name in ("br", "blr", "braa", "brab", "braaz", "brabz", "blraa", "blrab", "blraaz", "blrabz"):
            wanted |= Trait.GOES_INDIRECTLY
        if one & (Trait.ATOMIC | Trait.RETURNS | Trait.GOES_INDIRECTLY) != wanted:
            differing.append(f"{word:08x} {name} {insn.op_str}: {one!r}")
    assert differing == []
    assert {name for name in _ATOMIC if any(insn.mnemonic.startswith(name) for _, insn in words)} >= {
        "stxr", "cas", "swp", "ldadd",
    }  # fmt: skip


def _is_vectors(word: int) -> bool:
    """Whether it is of SVE or SME, of which no kernel has any in a packet's path."""
    return word >> 25 & 0xF in (0b0000, 0b0010)


def test_what_is_on_the_stack_has_its_pointer_as_base(words, traits) -> None:
    found = traits([word.to_bytes(4, "little") for word, _ in words])
    differing, on_stack = [], 0
    for (word, insn), one in zip(words, found, strict=True):
        if (base := _base(insn)) is not None and not _is_vectors(word):
            on_stack += base == arm64.ARM64_REG_SP
            if (base == arm64.ARM64_REG_SP) != bool(one & Trait.ON_STACK):
                differing.append(f"{word:08x} {insn.mnemonic} {insn.op_str}: {one!r}")
    assert differing == []
    assert on_stack > 20


def test_calls_and_returns_are_followed_to_where_they_go(words, code) -> None:
    for word, insn in words:
        content, name = word.to_bytes(4, "little"), insn.mnemonic
        flow = 1 if name.startswith("bl") else 2 if name in ("ret", "retaa", "retab") else 0
        assert code.flow_of_word(content) == flow, insn
        wanted = insn.operands[0].imm % (1 << 64) if name in ("b", "bl") else 0
        assert code.goes_to_of_word(content, 0x1004) == wanted, insn


def test_only_plain_accesses_show_whose_code_it_is(words, code) -> None:
    for word, insn in words:
        content, name = word.to_bytes(4, "little"), insn.mnemonic
        if name.startswith(("ldtr", "sttr", "prf", *_ATOMIC)):
            assert not code.plain_of_word(content), insn
        if name in ("ldr", "str", "ldp", "stp", "ldur", "stur", "ldrb", "strh") and "v" not in insn.op_str[:1]:
            assert code.plain_of_word(content), insn
        if name in ("svc", "hvc", "smc", "brk", "eret"):
            assert code.changes_of_word(content), insn
        if name in ("ldr", "add", "bl", "ret"):
            assert not code.changes_of_word(content), insn


OWN = {
    "mrs x1, tpidr_el1; add x0, x0, x1; ldr x2, [x0]": [False, False, True],
    "mrs x1, tpidr_el1; mov x3, x1; ldr w2, [x3, x4]": [False, False, True],
    "mrs x1, tpidr_el1; ldr x2, [x4, x1]; ldr x2, [x2]": [False, True, False],
    "mrs x1, tpidr_el1; ldr x1, [x1]; ldr x2, [x1]": [False, True, False],
    "mrs x1, tpidr_el1; ldp x5, x1, [sp]; str x2, [x1]": [False, False, False],
    "mrs x1, tpidr_el1; ldadd w2, w1, [x1]; str x2, [x1]": [False, True, False],
    "mrs x1, tpidr_el1; str x1, [x6]; str x2, [x1]": [False, False, True],
    "mrs x1, tpidr_el1; stp x1, x7, [x1, #16]!; str x2, [x1]": [False, True, True],
    "mrs x1, tpidr_el1; add x8, x1, #8; stxr w8, x2, [x8]; str x2, [x8]": [False, False, True, False],
    "mrs x1, sp_el0; ldr x2, [x1]": [False, False],
}


@pytest.mark.parametrize("text", OWN)
def test_what_a_cpu_has_for_itself_is_known_by_where_its_address_comes_from(tmp_path: Path, text: str) -> None:
    if shutil.which("aarch64-linux-gnu-as") is None:
        pytest.skip("aarch64-linux-gnu-as is not installed")
    lines = ".arch armv8.1-a\n" + "\n".join(one.strip() for one in text.split(";")) + "\n"
    (tmp_path / "code.s").write_text(lines)
    subprocess.run(("aarch64-linux-gnu-as", "code.s", "-o", "code.o"), cwd=tmp_path, check=True)
    subprocess.run(("aarch64-linux-gnu-objcopy", "-O", "binary", "code.o", "code"), cwd=tmp_path, check=True)
    content = (tmp_path / "code").read_bytes()
    found = compiled_traits(tmp_path, ARM64)([content[at : at + 4] for at in range(0, len(content), 4)])
    assert [bool(one & Trait.OF_CPU) for one in found] == OWN[text]
