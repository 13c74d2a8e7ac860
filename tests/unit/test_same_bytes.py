"""Functions and variables of two made-up images: what counts as the same, and what as different."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.builds.elf_file import EXECUTABLE, Section
from pdrgate.differences.kernel_image import CodePlace, KernelImage, plain_name, says_something
from pdrgate.differences.same_bytes import SameBytes

TEXT, RODATA, DATA = 0xFFFFFFFF81000000, 0xFFFFFFFF82000000, 0xFFFFFFFF83000000
TESTS, PER_CPU = 0xFFFFFFFF84000000, 0x1000
SIZE = 0x1000
_OF_THE_BUILD = (
    "__ksymtab_dev_close", "linux_banner", "init_uts_ns", "__initramfs_start", "system_certificate_list", "_note_41",
)  # fmt: skip
"""Variables that differ from build to build, or that say where others lie."""
NOPS = b"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"


@dataclass
class Made:
    """An image that is put together: code at TEXT, texts at RODATA, variables at DATA, tests of features at TESTS and
    per-CPU variables at PER_CPU, each of one page."""

    content: bytearray = field(default_factory=lambda: bytearray(5 * SIZE))
    symbols: dict[int, str] = field(default_factory=dict)

    def put(self, address: int, content: bytes, name: str = "") -> CodePlace:
        begin = next(at for at in (TESTS, DATA, RODATA, TEXT, PER_CPU) if address >= at)
        offset = (PER_CPU, TEXT, RODATA, DATA, TESTS).index(begin) * SIZE + address - begin
        self.content[offset : offset + len(content)] = content
        if name:
            self.symbols[address] = name
        return CodePlace(address, offset, len(content))

    @property
    def image(self) -> KernelImage:
        sections = tuple(
            Section(name, 1, flags, address, at * SIZE, SIZE, 0)
            for at, (name, flags, address) in enumerate(
                (
                    (".data..percpu", 3, PER_CPU), (".text", 2 | EXECUTABLE, TEXT), (".rodata", 2, RODATA),
                    (".data", 3 | EXECUTABLE, DATA), (".altinstr_aux", 2 | EXECUTABLE, TESTS),
                )
            )
        )  # fmt: skip
        ordered = sorted(self.symbols)
        return KernelImage(
            np.frombuffer(bytes(self.content), np.uint8), sections, tuple(one.address for one in sections),
            np.array(ordered, np.uint64), ordered, tuple(self.symbols[at] for at in ordered), {}, {},
        )  # fmt: skip


def call(at: int, target: int, behind: bytes = b"") -> bytes:
    """A call, or with an immediate behind it another instruction with a distance."""
    return b"\xe8" + struct.pack("<i", target - (at + 5 + len(behind))) + behind


def differ(before: Made, old: CodePlace, after: Made, new: CodePlace, *, code: bool = True) -> bool:
    return list(SameBytes(before.image, after.image, code=code).differing([(old, new)])) == [0]


def builds(callees: tuple[str, str] = ("ip_forward", "ip_forward"), shift: int = 0x40) -> tuple[Made, Made]:
    made = Made(), Made()
    for one, name, at in zip(made, callees, (TEXT + 0x800, TEXT + 0x800 + shift), strict=True):
        one.put(at, b"\xc3", name)
    return made


@pytest.mark.parametrize("shift", [0, 1, 0x40, 0x100, -0x100])
@pytest.mark.parametrize("behind", [b"", b"\x07", b"\x07\x00\x00\x00"])
def test_a_callee_that_moved_is_the_same_one(shift: int, behind: bytes) -> None:
    before, after = builds(shift=shift)
    old = before.put(TEXT, b"\x55" + call(TEXT + 1, TEXT + 0x800, behind) + b"\xc3", "ip_rcv")
    new = after.put(TEXT, b"\x55" + call(TEXT + 1, TEXT + 0x800 + shift, behind) + b"\xc3", "ip_rcv")
    assert not differ(before, old, after, new)


@pytest.mark.parametrize("shift", [0x10, 0x100])
def test_code_that_moved_reads_the_same_per_cpu_variable_below_all_code(shift: int) -> None:
    read = b"\x65\x48\x8b\x05"
    places: list[CodePlace] = []
    made = Made(), Made()
    for one, at in zip(made, (TEXT, TEXT + shift), strict=True):
        one.put(PER_CPU, bytes(8), "pcpu_hot")
        distance = (PER_CPU - (at + len(read) + 4)) % (1 << 32)
        places.append(one.put(at, read + struct.pack("<I", distance) + b"\xc3", "__warn"))
    assert not differ(made[0], places[0], made[1], places[1])


@pytest.mark.parametrize(("bits", "differs"), [((0x08, 0x08), False), ((0x08, 0x10), True)])
def test_a_test_of_a_feature_that_moved_is_the_same_where_it_asks_for_the_same_bit(
    bits: tuple[int, int], differs: bool
) -> None:
    places: list[CodePlace] = []
    made = Made(), Made()
    for one, at, bit in zip(made, (TESTS, TESTS + 0x120), bits, strict=True):
        one.put(DATA + at - TESTS, bytes(8), "boot_cpu_data")
        asks = b"\xf6\x05" + struct.pack("<i", DATA - TESTS - 7) + bytes([bit])
        either, other = (struct.pack("<i", TEXT + 5 - (at + end)) for end in (13, 18))
        one.put(at, asks + b"\x0f\x85" + either + b"\xe9" + other)
        jump = b"\xe9" + struct.pack("<i", at - (TEXT + 5))
        places.append(one.put(TEXT, jump + b"\xc3", "sme_clear_pgd"))
    assert differ(made[0], places[0], made[1], places[1]) is differs


def test_another_callee_is_a_difference() -> None:
    before, after = builds(("ip_forward", "ip_local_deliver"))
    old = before.put(TEXT, call(TEXT, TEXT + 0x800), "ip_rcv")
    new = after.put(TEXT, call(TEXT, TEXT + 0x840), "ip_rcv")
    assert differ(before, old, after, new)


@given(st.integers(0, 0x7FFF), st.integers(0, 0x7FFF))
def test_another_constant_is_a_difference(one: int, other: int) -> None:
    before, after = builds()
    old = before.put(TEXT, b"\xb8" + struct.pack("<i", one) + b"\xc3", "ip_rcv")
    new = after.put(TEXT, b"\xb8" + struct.pack("<i", other) + b"\xc3", "ip_rcv")
    assert differ(before, old, after, new) is (one != other)


@pytest.mark.parametrize(("texts", "same"), [((b"eth0\0", b"eth0\0"), True), ((b"eth0\0", b"eth1\0"), False),
    ((b"/build/linux-7.2.11/net/core/dev.c\0", b"/build/linux-7.2.12/net/core/dev.c\0"), True)])  # fmt: skip
def test_texts_are_compared_by_what_they_say(texts: tuple[bytes, bytes], same: bool) -> None:
    before, after = builds()
    places = []
    for one, text, at in zip((before, after), texts, (RODATA + 0x10, RODATA + 0x90), strict=True):
        one.put(at, text)
        places.append(one.put(TEXT, b"\x48\xc7\xc7" + struct.pack("<I", at & 0xFFFFFFFF) + b"\xc3", "ip_rcv"))
    assert differ(before, places[0], after, places[1]) is not same


def test_padding_is_no_part_of_a_function() -> None:
    before, after = builds()
    old = before.put(TEXT, call(TEXT, TEXT + 0x800) + b"\xc3" + NOPS, "ip_rcv")
    new = after.put(TEXT, call(TEXT, TEXT + 0x840) + b"\xc3" + b"\xcc" * 3, "ip_rcv")
    assert not differ(before, old, after, new)
    longer = after.put(TEXT, call(TEXT, TEXT + 0x840) + b"\x90\x5d\xc3" + b"\xcc", "ip_rcv")
    assert differ(before, old, after, longer)


def test_variables_point_to_the_same_thing_or_differ() -> None:
    before, after = builds()
    values = [struct.pack("<QQ", 7, address) for address in (TEXT + 0x800, TEXT + 0x840)]
    old, new = (one.put(DATA, value, "ops") for one, value in zip((before, after), values, strict=True))
    assert not differ(before, old, after, new, code=False)
    other = after.put(DATA, struct.pack("<QQ", 8, TEXT + 0x840), "ops")
    assert differ(before, old, after, other, code=False)


def test_many_functions_are_compared_at_once_and_only_those_that_differ_are_named() -> None:
    before, after = builds()
    pairs = []
    for number in range(64):
        at = TEXT + 16 * number
        last = b"\xc3" if number != 23 else b"\xcb"
        pairs.append((
            before.put(at, call(at, TEXT + 0x800) + b"\xc3", f"function_{number}"),
            after.put(at, call(at, TEXT + 0x840) + last, f"function_{number}"),
        ))  # fmt: skip
    assert list(SameBytes(before.image, after.image, code=True).differing(pairs)) == [23]
    assert list(SameBytes(before.image, before.image, code=True).differing([(one, one) for one, _ in pairs])) == []


def test_what_lies_in_no_section_is_no_address() -> None:
    before, after = builds()
    assert before.image.named(0x1234) is None
    assert before.image.text(TEXT) is None
    far = replace(after.image, sections=after.image.sections[:1], begins=after.image.begins[:1])
    assert far.section_of(DATA) is None


def test_names_are_compared_without_the_compilers_numbers() -> None:
    assert plain_name("__func__.83419") == "__func__"
    assert plain_name("tcp_ack.part.0") == "tcp_ack.part"
    assert plain_name("__UNIQUE_ID_ddebug1395.3") == plain_name("__UNIQUE_ID_ddebug7") == "__UNIQUE_ID_ddebug"
    assert plain_name("sha256") == "sha256"
    assert says_something("ip_forward", code=True)
    assert says_something("__crc32c_le", code=True)
    assert says_something("__startup_64", code=False)
    assert not says_something("__pfx_ip_forward", code=True)
    assert not any(says_something(one, code=False) for one in _OF_THE_BUILD)
    assert all(says_something(one, code=False) for one in ("net_hotdata", "sysctl_start", "init_net", "_note_a"))


@pytest.mark.parametrize("content", [bytes(8), b"@" + bytes(7)], ids=["both are 0", "both are 64"])
def test_a_load_of_another_variable_differs_also_where_both_hold_the_same(content: bytes) -> None:
    before, after = builds()
    for one in (before, after):
        one.put(DATA, content, "first")
        one.put(DATA + 8, content, "second")
    load = b"\x48\x8b\x05"
    old = before.put(TEXT, load + struct.pack("<i", DATA - (TEXT + 7)) + b"\xc3", "ip_rcv")
    new = after.put(TEXT, load + struct.pack("<i", DATA + 8 - (TEXT + 7)) + b"\xc3", "ip_rcv")
    assert differ(before, old, after, new)


@pytest.mark.parametrize(("value", "other"), [(1, 2), (64, 128), (1000, 2000), (0x1000, 0x2000), (-8, -16)])
@pytest.mark.parametrize("size", [4, 8])
def test_a_variable_of_another_number_differs(value: int, other: int, size: int) -> None:
    before, after = builds()
    for one in (before, after):
        one.put(DATA + 0x100, b"x", "behind")
    old, new = (
        one.put(DATA, each.to_bytes(size, "little", signed=True), "sysctl_max")
        for one, each in ((before, value), (after, other))
    )
    assert differ(before, old, after, new, code=False)
