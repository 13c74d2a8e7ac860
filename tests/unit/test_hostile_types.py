"""A build's types are a stranger's: they are damaged, or end in a bounded number of steps, whatever they say."""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.bpf.btf import Types
from pdrgate.bpf.values import Writer
from pdrgate.builds.elf_file import ElfFile

INT, STRUCT, UNION, TYPEDEF = 1, 4, 5, 8
Members = Sequence[tuple[int, int, int]]
"""Of each where its name stands, its type, and at which bit it begins."""


def elf(types: bytes) -> bytes:
    """An object of nothing but types."""
    names = b"\0.shstrtab\0.BTF\0"
    behind = 64 + len(names)
    fields = (1, 247, 1, 0, 0, behind + len(types), 0, 64, 56, 0, 64, 3, 1)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", *fields)
    sections = [(1, 3, 64, len(names)), (11, 1, behind, len(types))]
    told = [struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, at, size, 0, 0, 1, 0) for name, kind, at, size in sections]
    return head + names + types + bytes(64) + b"".join(told)


def types_of(types: bytes, names: bytes) -> Types:
    head = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(names))
    return Types(ElfFile(io.BytesIO(elf(head + types + names))))


def structure(name: int, size: int, members: Members, kind: int = STRUCT) -> bytes:
    told = b"".join(struct.pack("<III", *one) for one in members)
    return struct.pack("<III", name, kind << 24 | len(members), size) + told


@pytest.mark.parametrize("kind", [STRUCT, UNION])
@pytest.mark.parametrize("parts", [1, 2, 0xFFFF])
def test_a_struct_that_is_a_part_of_itself_is_damaged(kind: int, parts: int) -> None:
    inner = structure(0, 8, [(0, 2, 0)] * parts, kind)
    types = types_of(structure(1, 8, [(0, 2, 0)]) + inner, b"\0cache\0")
    with pytest.raises(ValueError, match="damaged"):
        types.place_of("cache", "size")
    with pytest.raises(ValueError, match="damaged"):
        types.layout(1)
    with pytest.raises(ValueError, match="damaged"):
        Writer(types, {}).written(1, {"size": "1"}, "cache")


def test_names_that_go_on_for_megabytes_are_damaged() -> None:
    names = b"\0cache\0" + b"a" * (30 << 20) + b"\0"
    types = types_of(structure(1, 8, [(7 + at, 0, 0) for at in range(0xFFFF)]), names)
    with pytest.raises(ValueError, match="damaged"):
        types.kind(1)
    assert types_of(structure(1, 8, ()), b"\0" + b"a" * 511 + b"\0").kind(1).name == "a" * 511
    with pytest.raises(ValueError, match="damaged"):
        types_of(structure(1, 8, ()), b"\0never ends").kind(1)


def test_a_struct_of_gigabytes_is_not_told_byte_by_byte() -> None:
    with pytest.raises(ValueError, match="larger than any of a kernel"):
        types_of(structure(1, 0xFFFFFFFF, ()), b"\0cache\0").layout(1)
    one = struct.pack("<IIII", 1, INT << 24, 0xFFFFFFFF, 0)
    many = structure(1, 1 << 16, [(1, 1, 8 * at) for at in range(1 << 14)])
    layout = types_of(one + many, b"\0cache\0").layout(2)
    assert layout == ("cache",) * (1 << 16)


def test_types_that_lead_in_a_circle_are_damaged() -> None:
    types = types_of(struct.pack("<III", 0, TYPEDEF << 24, 1) + structure(1, 4, [(1, 1, 0)]), b"\0cache\0")
    with pytest.raises(ValueError, match="damaged"):
        types.layout(2)
    assert types.kind(1).sort == "other"


small = st.integers(0, 12)
words = st.one_of(small, small.map(lambda at: at * 8), st.integers(0, (1 << 32) - 1))
EACH = {STRUCT: 3, UNION: 3, 6: 2, 13: 2, 15: 3, 19: 3}
MORE = {INT: 1, 3: 3, 14: 1, 17: 1}


@st.composite
def one_type(draw: st.DrawFn) -> bytes:
    """A type whose head and length are sound, and that leads anywhere."""
    kind, members, flag = draw(st.integers(0, 20)), draw(st.integers(0, 3)), draw(st.integers(0, 1))
    count = MORE.get(kind, 0) + EACH.get(kind, 0) * members
    told = (draw(small), flag << 31 | kind << 24 | members, draw(words), *(draw(words) for _ in range(count)))
    return struct.pack(f"<{3 + count}I", *told)


@given(st.lists(one_type(), max_size=8).map(b"".join) | st.binary(max_size=200), st.binary(max_size=4))
def test_whatever_types_are_made_of_is_told_or_damaged(types: bytes, names: bytes) -> None:
    try:
        found = types_of(types, b"\0kmem_cache\0" + names + b"\0")
    except ValueError:
        return
    for number in range(found.count + 1):
        try:
            assert all(member.name for member in found.fields(found.kind(number)))
            assert len(found.layout(number)) == found.size(number)
        except ValueError:
            continue
    for ask in (
        lambda: found.place_of("kmem_cache", "size"),
        lambda: found.maps,
        lambda: found.variables,
        lambda: Writer(found, {}).written(1, {"size": "1"}, "cache"),
        lambda: Writer(found, {}).written(1, ["1", "2"], "cache"),
    ):
        with contextlib.suppress(ValueError):
            ask()
