"""What lines are called, by a made-up kernel's symbols and a guest's memory."""

from __future__ import annotations

import numpy as np
import pytest

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.guest_memory import GuestMemory
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind
from pdrgate.guests.metering.memory.naming.line_names import GuestLineNames, LineName, by_function
from pdrgate.guests.metering.memory.trial_memory import LISTED_LINE
from pdrgate.guests.metering.static_data import StaticData
from pdrgate.guests.metering.symbols import KernelSymbol, KernelSymbols

IMAGE = 0xFFFF_FFFF_8000_0000
TABLES, OFFSETS = 0x10_0000, 0x20_0000
CPU_0, CPU_1 = 0xFFFF_8880_0C00_0000, 0xFFFF_8880_0C10_0000
AREAS = (LineArea(1 << 63, 1 << 63, LineKind.PAGE),)
DATA = (
    (IMAGE + TABLES, "init_top_pgt"), (IMAGE + OFFSETS, "__per_cpu_offset"), (0, "fixed_percpu_data"),
    (0x2_B000, "softnet_data"), (0x2_C000, "__per_cpu_end"), (IMAGE + 0x30_0000, "jiffies"),
    (IMAGE + 0x30_0008, "count.7"), (IMAGE + 0x31_0000, "slab_caches"),
)  # fmt: skip


class MadeUp(GuestMemory):
    """Memory whose first 1 GiB of the image is mapped, and that has two CPUs' areas."""

    def __init__(self) -> None:
        super().__init__(4, X86_64)
        entries = {TABLES + 511 * 8: 0x11_0003, 0x11_0000 + 510 * 8: 0x83, OFFSETS: CPU_0, OFFSETS + 8: CPU_1}
        for place, word in entries.items():
            self._memory[place : place + 8] = word.to_bytes(8, "little")


def named(symbols: KernelSymbols, vcpus: int, *lines: tuple[int, LineKind]) -> list[str]:
    told = np.array([(at // 64, 1 << at % 64, 0, 0, 0, 1, kind, 0, 0, 0) for at, kind in lines], LISTED_LINE)
    with MadeUp() as memory:
        return [one.name for one in GuestLineNames(memory, vcpus)(symbols, AREAS, told).names]


@pytest.fixture
def symbols() -> KernelSymbols:
    found = KernelSymbols([KernelSymbol(IMAGE + 0x1000, "f"), KernelSymbol(IMAGE + 0x4000_0000, "of_a_module")])
    found.data = StaticData.of(DATA)
    return found


def test_a_variable_is_told_by_the_byte_that_was_touched(symbols: KernelSymbols) -> None:
    at = IMAGE + 0x30_0000
    assert named(symbols, 1, (at, LineKind.SYMBOL), (at + 8, LineKind.SYMBOL), (at - 64, LineKind.STACK)) == [
        "jiffies", "count", "",
    ]  # fmt: skip


def test_what_lies_in_code_is_of_no_variable(symbols: KernelSymbols) -> None:
    assert named(symbols, 1, (IMAGE + 0x4000_0040, LineKind.SYMBOL)) == [""]


def test_a_variable_of_each_cpu_is_told_with_the_cpu_where_there_are_several(symbols: KernelSymbols) -> None:
    own, other = (CPU_0 + 0x2_B010, LineKind.PER_CPU), (CPU_1 + 0x2_B010, LineKind.PER_CPU)
    assert named(symbols, 1, own) == ["per-CPU softnet_data"]
    assert named(symbols, 2, own, other) == ["softnet_data of CPU 0", "softnet_data of CPU 1"]
    # What was allocated later lies behind them, and is nobody's that is known.
    assert named(symbols, 2, (CPU_1 + 0x2_C010, LineKind.PER_CPU)) == [""]


def test_a_kernel_that_names_no_variables_has_lines_without_names() -> None:
    assert named(KernelSymbols(()), 2, (CPU_0 + 0x2_B010, LineKind.PER_CPU), (IMAGE, LineKind.SYMBOL)) == ["", ""]


def test_names_are_counted_by_function_and_kind() -> None:
    told = np.array([(1, 1, 0, 0, 0, 4, kind, 0, 0, 0) for kind in (3, 4, 4, 4, 2)], LISTED_LINE)
    found = by_function(told, "ffffg", [LineName(name) for name in ("jiffies", "pages", "pages", "", "softnet_data")], {
        LineKind.SYMBOL: "symbol_lines", LineKind.DIRECT: "direct_lines",
    })  # fmt: skip
    assert found == {"f": {"symbol_lines": {"jiffies": 4}, "direct_lines": {"pages": 8}}}
