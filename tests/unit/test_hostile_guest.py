"""A guest's kernel is a stranger's program, and may get into QEMU: whatever it says of itself is told in bounded room,
or is an error of one line."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.guest_memory import GuestMemory
from pdrgate.guests.metering import stacks as calls
from pdrgate.guests.metering.memory.cache_levels import CacheLevel, CacheLevels
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind, parsed_areas
from pdrgate.guests.metering.memory.memory_meter import MemoryMeter
from pdrgate.guests.metering.memory.memory_observer import memory_seen
from pdrgate.guests.metering.memory.naming.line_names import GuestLineNames
from pdrgate.guests.metering.meter import Executed, Followed, VcpuMeter
from pdrgate.guests.metering.plugin import PluginMemory
from pdrgate.guests.metering.sharing.lockstep_observer import taken_in_time
from pdrgate.guests.metering.sharing.sharing_meter import SharingMeter
from pdrgate.guests.metering.sharing.sharing_observer import sharing_seen
from pdrgate.guests.metering.stacks import stacks
from pdrgate.guests.metering.static_data import StaticData
from pdrgate.guests.metering.symbols import KernelSymbol, KernelSymbols, parsed
from pdrgate.hosts.answers import GarbledError, understood
from pdrgate.record.stretch import CALLER

BASE = 0xFFFF_FFFF_8100_0000
EVIL = [
    "\x1b[2J\x1b]0;x\x07name",
    "a\u202eb",
    "a\nb\tc",
    "\x00",
    "<script>",
    "x" * 100_000,
    "\udcff",
    "=cmd|' /C calc'!A0",
]


@pytest.mark.parametrize("name", EVIL)
def test_a_name_is_one_line_of_what_can_be_seen_and_no_longer_than_a_kernels(name: str) -> None:
    symbols = KernelSymbols([KernelSymbol(BASE, name)])
    variable = StaticData.of([(BASE, name)]).at(BASE)
    assert variable is not None
    for told in (symbols.function(BASE), variable[0]):
        assert told.isprintable()
        assert 0 < len(told) <= 512


@pytest.mark.parametrize("address", ["x", "f" * 17, "9" * 5000, "-1"], ids=["x", "17 digits", "5000 digits", "-1"])
def test_a_symbol_that_lies_nowhere_is_the_guests_fault(address: str) -> None:
    with pytest.raises(GarbledError), understood("guest:linux-a"):
        KernelSymbols(symbol for symbol, _ in parsed([f"{address} T y"]))


def in_a_row(deep: int, alternate: bool = True) -> Followed:
    """Two functions that call one another, each time a chain more."""
    number = np.arange(deep, dtype=np.int64)
    at = np.where(number % 2, BASE, BASE + 16).astype(np.uint64)
    blocks = Executed(np.array([BASE, BASE + 16], np.uint64), np.ones(2, np.uint64), np.ones(2, np.uint64))
    of = number % 2 if alternate else number * 0
    return Followed(at, np.maximum(number - 1, 0), of, number, of, np.ones(deep, np.uint64), blocks)


TWO = KernelSymbols([KernelSymbol(BASE, "a" * 500), KernelSymbol(BASE + 16, "b" * 500)])


def test_calls_without_end_fill_no_memory() -> None:
    found = stacks(in_a_row(1 << 16), TWO)
    assert sum(instructions for instructions, _ in found.values()) == 1 << 16
    assert max(stack.count(CALLER) for stack in found) <= 2 * 256


def test_chains_that_there_is_no_room_for_are_told_without_their_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = stacks(in_a_row(64), TWO)
    monkeypatch.setattr(calls, "_ROOM", 40_000)
    found = stacks(in_a_row(64), TWO)
    assert len(whole) == 64
    assert sum(instructions for instructions, _ in found.values()) == 64
    assert sum(map(len, found)) < 40_000


@pytest.mark.parametrize("field", ["caller", "called_from", "chain", "block"])
def test_a_call_that_leads_nowhere_is_the_guests_fault(field: str) -> None:
    followed = in_a_row(8)
    getattr(followed, field)[3] = 1 << 31
    with pytest.raises(GarbledError), understood("guest:linux-a"):
        stacks(followed, TWO)


LEVELS = CacheLevels(CacheLevel(64, 8), CacheLevel(1024, 16), CacheLevel(4096, 16))
AREAS = (LineArea(0xFFFF_8880_0000_0000, 0xFFFF_8880_FFFF_FFFF, LineKind.DIRECT),)


def garbage(memory: PluginMemory | GuestMemory, seed: int, share: int) -> None:
    """Overwrite the memory, most of it with 0 or all bits of a byte."""
    chance = np.random.default_rng(seed)
    content = chance.integers(0, 256, len(memory._memory), dtype=np.uint8)
    content[chance.integers(0, share, len(content)) > 0] = seed % 2 * 0xFF
    memory._memory[:] = content.tobytes()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_stands_in_the_memory_of_a_plugin_is_told_or_is_the_guests_fault(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("memory.memory_meter", "sharing.sharing_meter"):
        monkeypatch.setattr(f"pdrgate.guests.metering.{module}.PLACES", 1 << 8)
        monkeypatch.setattr(f"pdrgate.guests.metering.{module}._LISTED", 1 << 8)
    with MemoryMeter() as seen, SharingMeter(2) as shared, VcpuMeter(2) as meter, GuestMemory(1, X86_64) as memory:
        for one in (seen, shared, memory):
            garbage(one, seed, 1 + seed // 2 * 4)
        for one in (seen, shared):
            one._put("no_room", 0)
            one._put("packets", 1 << 63 if one is shared else 0)
            one._put("places", 1 << 63)
        shared._put("taken_up", 1 << 63)
        seen._put("windows", 1 << 63)
        meter._put("blocks", 1 << 63)
        meter._put("traced", 2)
        names = GuestLineNames(memory, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for ask in (
                lambda: memory_seen(seen.touched(), TWO, LEVELS, names(TWO, AREAS, seen.touched().listed).names),
                lambda: sharing_seen(shared.shared(), TWO, names(TWO, AREAS, shared.shared().listed).names),
                lambda: taken_in_time(shared.taken(), 2, shared.by_programs),
                lambda: TWO.functions(meter.executed()),
                lambda: stacks(meter.followed(), TWO),
                lambda: meter.starved(0.0),
            ):
                with contextlib.suppress(GarbledError), understood("guest:linux-a"):
                    ask()


HEAD = "00010102464c457f "
CHUNK = f"0x{'f' * 16}-0x{'0' * 16} 1 pcpu_"


@pytest.mark.parametrize("told", ["", "f" * 16, HEAD * 512, HEAD + f"{'f' * 16} " * 511, CHUNK])
def test_areas_are_those_of_numbers_that_a_kernel_has(told: str) -> None:
    assert all(0 <= one.first < 1 << 64 and -1 <= one.last < 1 << 64 for one in parsed_areas(told, X86_64))
