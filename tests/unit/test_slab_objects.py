"""Fields of structs, by the types of a real object (clang's BTF), and what is certain of a slab cache's objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiled_types import types_of

from pdrgate.bpf.btf import Types
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests.guest_memory import PageTables
from pdrgate.guests.metering.memory.line_areas import LineKind
from pdrgate.guests.metering.memory.naming import slab_objects
from pdrgate.guests.metering.memory.naming.line_names import LineName, fields_by_function
from pdrgate.guests.metering.memory.naming.page_owners import PageOwner
from pdrgate.guests.metering.memory.naming.slab_objects import SlabObjects, StructPart
from pdrgate.guests.metering.memory.trial_memory import LISTED_LINE

CODE = """
struct kmem_cache { unsigned long cpu_slab; unsigned size, object_size; int refcount, red_left_pad; } cache;
struct entry {
	void *next;
	union { unsigned char key[6]; long whole; };
	struct { unsigned a : 4, b : 4; short port; };
	long updated, used;
} entry;
"""
OWNER = PageOwner("entry", 0x100, 0x10000)


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Types:
    return types_of(CODE, tmp_path_factory.mktemp("types"))


def test_a_byte_is_of_the_member_that_holds_it_also_within_parts_without_a_name(types: Types) -> None:
    number = types.number_of("entry")
    assert number is not None
    layout = types.layout(number)
    bytes_of = {byte: layout[byte] for byte in (0, 8, 14, 16, 18, 24, 39)}
    assert bytes_of == {0: "next", 8: "key", 14: "whole", 16: "a", 18: "port", 24: "updated", 39: "used"}
    assert len(layout) == 40
    assert types.place_of("entry", "port") == 18
    assert types.place_of("entry", "nothing") is types.number_of("nothing") is None


class Memory:
    """A kernel's cache at one address."""

    def __init__(self, **cache: int) -> None:
        self.cache = {"size": 64, "object_size": 48, "refcount": 1, "red_left_pad": 0} | cache

    def virtual(self, tables: PageTables, address: int, size: int) -> bytes:
        name = ("size", "object_size", "refcount", "red_left_pad")[(address - OWNER.cache - 8) // 4]
        return self.cache[name].to_bytes(size, "little")


@pytest.fixture
def objects(types: Types, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slab_objects, "kernel_types", lambda build: types)
    build = KernelBuild("made up", "", Path("none"), "", "")
    return lambda **cache: SlabObjects(Memory(**cache), PageTables(0), build)  # type: ignore[arg-type]


def test_an_address_is_in_the_object_of_its_slab_and_behind_what_the_kernel_keeps_before_it(objects) -> None:
    second = objects().part(OWNER, 0x10000 + 64 + 24)
    assert (second.struct, second.begin) == ("entry", 0x10040)
    assert second.members(0x10040, 0xFF << 24 | 0xFF << 32) == ["updated", "used"]
    assert objects(red_left_pad=16).part(OWNER, 0x10000 + 64 + 40).members(0x10040, 1 << 40) == ["updated"]
    assert objects(red_left_pad=16).part(OWNER, 0x10000 + 64 + 8) is None


@pytest.mark.parametrize("cache", [{"refcount": 2}, {"object_size": 32}, {"size": 0}], ids=str)
def test_what_is_not_certain_has_no_struct(objects, cache: dict[str, int]) -> None:
    assert objects(**cache).part(OWNER, 0x10000) is None
    assert objects().part(PageOwner("another"), 0x10000) is None
    assert objects().part(PageOwner("kmalloc-64", 0x100, 0x10000), 0x10000) is None


def test_of_shared_lines_it_is_told_what_is_written_and_what_is_read() -> None:
    layout = ("key",) * 8 + ("used",) * 8
    names = [LineName("entries", StructPart("entry", layout, 640 + at)) for at in (0, 64)] + [LineName("pages")]
    told = np.array([
        (10, 0xFF, 0xFF00, 0, 0, 9, LineKind.DIRECT, 0, 0, 0),
        (11, 0xFF00, 0xFF00, 0, 0, 1, LineKind.DIRECT, 0, 0, 0),
        (12, 1, 1, 0, 0, 5, LineKind.DIRECT, 0, 0, 0),
    ], LISTED_LINE)  # fmt: skip
    assert fields_by_function(told, "fff", names, shared=True) == {"f": {"entries": "entry.used written, .key read"}}
    assert fields_by_function(told, "fgg", names, shared=False) == {
        "f": {"entries": "entry.key"}, "g": {"entries": "entry.used"},
    }  # fmt: skip
