"""What the plugin of memory trials is made of: its model of a cache, what it reads of code, and how counts are told."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qemu_stubs import QEMU_STUBS, said_by

from pdrgate.builds.architecture import ARM64, X86_64
from pdrgate.guests.metering.memory import SERVER, CacheLevel, MemoryMeter
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind, fixed_areas, parsed_areas
from pdrgate.guests.metering.memory.memory_meter import (
    _PLACE,
    BLOCK,
    REGION,
    RETURNS,
    Touched,
)
from pdrgate.guests.metering.memory.memory_observer import memory_seen, takes_packets_up
from pdrgate.guests.metering.memory.naming.line_names import LineName
from pdrgate.guests.metering.memory.trial_memory import LISTED_LINE
from pdrgate.guests.metering.plugin import MEMORY_TRIAL, guest_code, plugin
from pdrgate.guests.metering.symbols import KernelSymbol, KernelSymbols
from pdrgate.measurands.functions.more_by_function import lines_by_kind, names_of
from pdrgate.record.stretch import MemoryCounts
from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.vm.vm_config import LocalVm

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
_DRIVER = r"""
#include <stdio.h>
#include "cache_model.h"
#include "line_kinds.h"
#include "seen_lines.h"

int main(void)
{
    struct cache cache;
    struct seen seen;
    cache_make(&cache, 2, 2);
    /* Of the set of even lines: 2 and 4 fill it, 2 is used again, 6 takes the place of 4. */
    const uint64_t touched[] = { 2, 4, 2, 6, 2, 4, 3, 3 };
    for (int at = 0; at < 8; at++)
        printf("%d", cache_touch(&cache, touched[at]));
    seen_make(&seen);
    seen_line(&seen, 7)->window = 3;
    printf(" %d %d", (int)seen_line(&seen, 7)->window, (int)seen_line(&seen, 8)->window);
    const uint64_t regions[][2] = { { 1, 0 }, { 1, 4095 }, { 1, 4096 }, { 2, 0 } };
    printf(" ");
    for (int at = 0; at < 4; at++)
        printf("%d", seen_new_region(&seen, regions[at][0], regions[at][1]));
    static struct kinds kinds;
    static struct record record = { .areas = 1, .area = { { 0x10000000, 0x1fffffff, 4 } } };
    /* Numbers of lines; of a page there are 64, and of what a CPU is given at once 32768. */
    kinds_learn(&kinds, ON_STACK, 0, 0x400010);
    kinds_learn(&kinds, OF_CPU, 0, 0x408003);
    kinds_learn(&kinds, OF_CPU, 1, 0x408009);
    kinds_learn(&kinds, OF_CPU | ON_STACK | LOADS_ELSEWHERE, 0, 0x420000);
    /* Loads of a push of memory and stores of a pop to memory are not on the stack. */
    kinds_learn(&kinds, ON_STACK | LOADS_ELSEWHERE, 0, 0x400040);
    kinds_learn(&kinds, ON_STACK | STORES_ELSEWHERE, 1, 0x400040);
    const uint64_t lines[] = { 0x400000, 0x40003f, 0x400040, 0x408002, 0x408005, 0x408009, 0x40800a, 0x420000, 0x9 };
    printf(" ");
    for (int at = 0; at < 9; at++)
        printf("%u", kinds_of(&kinds, record.area, record.areas, lines[at]));
    /* Eight bytes of which three lie in the next line; lines that are told, of two instructions. */
    printf(" %llx %llx %llx", (unsigned long long)bytes_within(0x103b, 8) >> 56,
           (unsigned long long)bytes_beyond(0x103b, 8), (unsigned long long)bytes_beyond(0x1038, 8));
    static struct listed_line told[128];
    list_line(told, 128, &(struct listed_line){ .line = 5, .place = 1, .kind = 4, .touched = 1, .writer = 9 });
    list_line(told, 128, &(struct listed_line){ .line = 5, .place = 1, .kind = 4, .touched = 6, .written = 2 });
    list_line(told, 128, &(struct listed_line){ .line = 5, .place = 2, .kind = 4, .touched = 8 });
    for (int at = 0; at < 128; at++)
        if (told[at].lines == 2)
            printf(" %d/%d/%d", (int)told[at].touched, (int)told[at].written, (int)told[at].writer);
    return 0;
}
"""


@needs_gcc
def test_the_model_forgets_what_was_used_longest_ago_and_lines_are_known_by_what_touches_them(
    tmp_path: Path,
) -> None:
    source, program = tmp_path / "driver.c", tmp_path / "driver"
    source.write_text(_DRIVER)
    subprocess.run(("gcc", "-Wall", "-Werror", "-O1", *guest_code(X86_64), str(source), "-o", str(program)), check=True)
    told = subprocess.run((str(program),), capture_output=True, text=True, check=True).stdout
    assert told == "00101001 3 0 1011 114422420 f8 7 0 7/2/9"


_PAGES_DRIVER = r"""
#include <stdio.h>
#include "filled_pages.h"

static struct filling row;

/* Pages that stores of so many bytes fill; with loads before each, and a store elsewhere at an offset. */
static void fills(uint64_t from, uint64_t bytes, uint64_t size, int loads, uint64_t elsewhere)
{
    int pages = 0;
    for (uint64_t at = 0; at < bytes; at += size) {
        for (int load = 0; load < loads; load++)
            filling_loads(&row);
        if (at != 0 && at == elsewhere)
            filling_stores(&row, 64, 8);
        pages += filling_stores(&row, from + at, size);
    }
    printf("%d ", pages);
}

int main(void)
{
    fills(1 << 20, 4096, 8, 0, 0);
    fills(1 << 21, 4096, 1, 0, 0);
    fills(1 << 22, 4 * 4096, 64, 0, 0);
    fills((1 << 23) + 64, 2 * 4096, 8, 0, 0); /* from within a page */
    fills(1 << 24, 4096, 8, 1, 0); /* copies */
    fills(1 << 25, 4096 - 8, 8, 0, 0); /* not to the end */
    fills(1 << 26, 2 * 4096, 8, 0, 512); /* stores elsewhere meanwhile */
    fills(1 << 27, 640, 8, 0, 0); /* an object */
    return 0;
}
"""


@needs_gcc
def test_a_page_is_filled_by_stores_one_behind_the_other_and_without_loads(tmp_path: Path) -> None:
    assert said_by(_PAGES_DRIVER, MEMORY_TRIAL.main.parent, tmp_path) == "1 1 4 1 0 0 1 0 "


@pytest.mark.parametrize(
    ("counts", "fills"),
    [
        (MemoryCounts(lines=640, filled_pages=10), True),
        (MemoryCounts(lines=1270, filled_pages=10), True),  # a line of its own beside each that it fills
        (MemoryCounts(lines=1280, filled_pages=10), False),
        (MemoryCounts(shared=64, filled_pages=1), True),
        (MemoryCounts(lines=0), False),
    ],
)
def test_most_of_a_functions_lines_tell_whether_it_fills_pages(counts: MemoryCounts, fills: bool) -> None:
    assert counts.fills_pages is fills


_PROGRAM_DRIVER = f"""
#include "memory_trial.c"
{QEMU_STUBS}

static void stores(void)
{{
    accessed(0, WRITES, FIRST_KERNEL_ADDRESS, &record->place[0]);
}}

int main(void)
{{
    record = calloc(1, sizeof *record);
    record->place[0].kind = INSTRUCTION;
    record->place[0].traits = ATOMIC;
    for (int number = 0; number < LEVELS; number++)
        record->level[number] = (struct level){{ 1, 1 }};
    begin_trial();
    heed(PACKET);
    stores(); /* on the packet's way */
    heed(SEND);
    stores(); /* of what reads no datagrams */
    heed(READ);
    stores(); /* both for a program, and without a switch of tasks: its line is one of the window's */
    heed(SEND);
    stores();
    heed(PACKET);
    heed(FOREIGN);
    stores(); /* for nobody */
    heed(READ);
    stores(); /* for a program */
    idle();
    stores(); /* for nobody */
    heed(READ);
    heed(POLL);
    stores(); /* on the way of a packet whose window does not count */
    heed(PACKET);
    struct place *place = &record->place[0];
    printf("%d %d %d, ", (int)record->packets, (int)record->windows, (int)record->dropped);
    printf("%d %d %d", (int)place->count[8], (int)place->count[2], (int)place->by_program);
    return 0;
}}
"""


@needs_gcc
def test_atomics_of_programs_that_read_datagrams_count_in_no_window(tmp_path: Path) -> None:
    told = said_by(_PROGRAM_DRIVER, MEMORY_TRIAL.main.parent, tmp_path)
    assert told == "3 1 2, 2 4 3"


@needs_gcc
def test_it_is_built_for_each_interface_of_qemu(tmp_path: Path) -> None:
    assert len({plugin(version, X86_64, MEMORY_TRIAL, tmp_path) for version in ("7.2.22", "9.1.0", "11.1.0")}) == 3


def test_whatever_is_in_the_shared_memory_reading_it_is_bounded() -> None:
    with MemoryMeter() as meter:
        meter._memory[8:] = b"\xff" * (len(meter._memory) - 8)
        assert len(meter.touched().places) == 1 << 18
        with pytest.raises(PermissionError):
            os.ftruncate(meter.fd, 0)


def test_lines_are_told_apart_by_what_they_are() -> None:
    seen = memory_seen(
        _touched(_place(0x1004, loaded=20, new_line=10, lines_of=(1, 2, 0, 0, 6, 0, 0, 1)), _place(0x2000, loaded=1)),
        SYMBOLS, SERVER, (),
    )  # fmt: skip
    assert seen is not None
    found = seen.functions["ip6_forward"]
    assert (found.stack_lines, found.direct_lines, found.program_lines, found.lines) == (2, 6, 1, 10)


FIXED = fixed_areas(X86_64)

_MAPPED = (
    (0xFFFFFFFF81000000, 0x1000000, 0x2000000), (0xFFFFC90000000000, -1, 0x1FFFFFFFFFFF),
    (0xFFFF888000001000, 0x1000, 0x9E000), (0xFFFF888000100000, 0x100000, 0x1FEE0000),
    (0xFFFFEA0000000000, -1, 0x800000),
)  # fmt: skip


def test_a_kernel_tells_where_its_memory_is_mapped() -> None:
    words = [0x00010102464C457F, 0, 0, 0, 64, 0, 0x0038004000000000, 6, 4, *(0 for _ in range(6))]
    for address, physical, size in _MAPPED:
        words += [0x700000001, 0, address, physical % (1 << 64), size, size, 4096]
    chunk = "0xffffe8ffffc00000-0xffffe8ffffe00000 2097152 pcpu_get_vm_areas+0x0/0x11d0 vmalloc\n"
    areas = parsed_areas("".join(f" {word:016x}" for word in words) + "\n" + chunk, X86_64)
    assert areas[: len(FIXED)] == FIXED
    assert areas[len(FIXED) :] == (
        LineArea(0xFFFFE8FFFFC00000, 0xFFFFE8FFFFDFFFFF, LineKind.PER_CPU),
        LineArea(0xFFFF888000001000, 0xFFFF88801FFDFFFF, LineKind.DIRECT),
        LineArea(0xFFFFC90000000000, 0xFFFFE8FFFFFFFFFE, LineKind.VMALLOC),
        LineArea(0xFFFFEA0000000000, 0xFFFFEA00007FFFFF, LineKind.PAGE),
    )


@pytest.mark.parametrize("told", ["", "what no kernel says", " 00010102464c457f", " " + "ffffffffffffffff " * 512])
def test_a_kernel_that_tells_nothing_or_nonsense_has_the_areas_of_every_kernel(told: str) -> None:
    assert parsed_areas(told, X86_64) == FIXED


_ARM64 = (
    (0xFFFF000000000000, 0x40000000, 0x20000000), (0xFFFF800000000000, -1, 0x80000000),
    (0xFFFF800080000000, -1, 0x7DFF7FFF0000), (0xFFFFFDFFC0000000, -1, 0x800000),
)  # fmt: skip
_ARM64_IMAGE = """
ffff800080000000 T _text
40210000-417effff : Kernel code
417f0000-41abffff : reserved
  41ac0000-41e6ffff : Kernel data
"""


def test_an_arm64_kernel_tells_where_its_image_lies_too() -> None:
    words = [0x00010102464C457F, 0, 0, 0, 64, 0, 0x0038004000000000, len(_ARM64) + 1, 4, *(0 for _ in range(6))]
    for address, physical, size in _ARM64:
        words += [0x700000001, 0, address, physical % (1 << 64), size, size, 4096]
    told = "".join(f" {word:016x}" for word in words)
    assert parsed_areas(told + _ARM64_IMAGE, ARM64) == (
        LineArea(0, (1 << 63) - 1, LineKind.PROGRAM),
        LineArea(0xFFFF800000000000, 0xFFFF80007FFFFFFF, LineKind.SYMBOL),
        LineArea(0xFFFF800080000000, 0xFFFF800081C6FFFF, LineKind.SYMBOL),
        LineArea(0xFFFF000000000000, 0xFFFF00001FFFFFFF, LineKind.DIRECT),
        LineArea(0xFFFF800080000000, 0xFFFFFDFFFFFEFFFF, LineKind.VMALLOC),
        LineArea(0xFFFFFDFFC0000000, 0xFFFFFDFFC07FFFFF, LineKind.PAGE),
    )
    assert parsed_areas(told, ARM64) == (LineArea(0, (1 << 63) - 1, LineKind.PROGRAM),)


def test_areas_are_handed_to_the_plugin() -> None:
    with MemoryMeter() as meter:
        meter.set_areas([*FIXED, *[LineArea(1, 2, LineKind.DIRECT)] * 99])
        assert meter._get("areas") == 32


def test_a_server_s_caches_have_the_sets_that_they_have() -> None:
    assert [one.sets for one in SERVER.each] == [64, 64, 2048, 32768]
    assert CacheLevel(64, 4).sets == 1


SYMBOLS = KernelSymbols(
    [KernelSymbol(0x1000, "ip6_forward"), KernelSymbol(0x2000, "bpf_prog_0123456789abcdef_filter"),
     KernelSymbol(0x3000, "__x86_indirect_thunk_rax")]
)  # fmt: skip


def _place(address: int, **told: int) -> tuple[int, ...]:
    return tuple(({"address": address, "kind": 1} | told).get(name, 0) for name in _PLACE.names or ())


def _touched(
    *places: tuple[int, ...], windows: int = 10, no_room: int = 0, told: Sequence[tuple[int, int, int]] = ()
) -> Touched:
    lines = [(line, 1, 0, 0, place, count, LineKind.DIRECT, 0, 0, 0) for line, place, count in told]
    return Touched(2 * windows, windows, 1, no_room, np.array(list(places), _PLACE), np.array(lines, LISTED_LINE))


def test_lines_are_told_by_names_of_their_own() -> None:
    ip6, program = (_place(at, loaded=20, new_line=9, lines_of=(0, 0, 0, 0, 9, 0, 0, 0)) for at in (0x1004, 0x2000))
    touched = _touched(ip6, program, told=((7, 0, 4), (8, 0, 2), (9, 0, 3), (8, 1, 9)))
    names = [LineName(name) for name in ("skbuff_head_cache", "pages", "", "pages")]
    seen = memory_seen(touched, SYMBOLS, SERVER, names)
    assert seen is not None
    assert seen.named == {
        "ip6_forward": {"direct_lines": {"skbuff_head_cache": 4, "pages": 2}},
        "bpf:filter": {"direct_lines": {"pages": 9}},
    }
    assert lines_by_kind([seen], "ip6_forward") == {"skbuff_head_cache": 0.4, "pages": 0.2, "the direct map": 0.3}
    assert lines_by_kind([seen], "bpf:filter") == {"pages": 0.9}


def test_misses_of_lines_are_told_by_names_as_functions_misses_are_counted() -> None:
    large = _place(0x1004, loaded=20, missed_last=1, missed_l2=3, first_ever=5, regions=32768 * 1024 // REGION + 1)
    small = _place(0x2000, loaded=20, missed_last=2, missed_l2=2, first_ever=4, regions=4)
    lines = [(7, 1, 0, 0, at, 9, LineKind.DIRECT, *missed) for at, missed in ((0, (3, 1, 5)), (1, (2, 2, 4)))]
    touched = replace(_touched(large, small), listed=np.array(lines, LISTED_LINE))
    seen = memory_seen(touched, SYMBOLS, SERVER, [LineName("map routes")] * 2)
    assert seen is not None
    for function, missed in (("ip6_forward", (8, 6)), ("bpf:filter", (2, 2))):
        counts, named = seen.functions[function], seen.named[function]
        assert (counts.missed_l2, counts.missed_last) == missed
        assert [named[field]["map routes"] for field in ("missed_l2", "missed_last")] == list(missed)
        assert names_of([seen, seen], function, "missed_last") == {"map routes": missed[1] / 10}
    # Lines are not counted twice.
    assert lines_by_kind([seen], "bpf:filter") == {"map routes": 0.9}


def test_counts_are_summed_by_function() -> None:
    seen = memory_seen(
        _touched(
            _place(0x1000, kind=BLOCK, length=5, executed=20, new_line=30),
            _place(0x1004, loaded=20, new_line=10, missed_l1=4, missed_l2=2, missed_last=1),
            _place(0x1008, loaded=20, stored=20, stored_locked=20, filled_page=3),
            _place(0x1009, by_program=14),
            _place(0x1010, kind=BLOCK, length=1, executed=6, traits=RETURNS),
            _place(0x3000, kind=BLOCK, length=2, executed=7, traits=RETURNS),
            _place(0x2000, loaded=10),
        ),
        SYMBOLS, SERVER, (),
    )  # fmt: skip
    assert seen is not None
    assert (seen.windows, seen.dropped) == (10, 1)
    forward = seen.functions["ip6_forward"]
    assert (forward.instructions, forward.returns) == (106, 6)
    assert (forward.loads, forward.stores, forward.atomics) == (40, 20, 27)
    assert (forward.lines, forward.code_lines, forward.filled_pages) == (10, 30, 3)
    assert (forward.missed_l1, forward.missed_l2, forward.missed_last) == (4, 2, 1)
    assert seen.functions["__x86_indirect_thunk_rax"].indirect == 7
    assert seen.functions["__x86_indirect_thunk_rax"].returns == 0
    assert seen.functions["bpf:filter"].loads == 10


@pytest.mark.parametrize(
    ("regions", "l2", "last"),
    [(4, 0, 0), (2048 * 1024 // REGION + 1, 9, 0), (32768 * 1024 // REGION + 1, 9, 9)],
)
def test_lines_never_seen_before_are_missed_where_a_level_cannot_hold_all_that_is_read(
    regions: int, l2: int, last: int
) -> None:
    """Nobody can wait until a table is warm: one that fits is taken for warm, and one that does not for cold."""
    seen = memory_seen(_touched(_place(0x2000, loaded=9, first_ever=9, regions=regions)), SYMBOLS, SERVER, ())
    assert seen is not None
    found = seen.functions["bpf:filter"]
    assert (found.missed_l1, found.missed_l2, found.missed_last) == (9, l2, last)


def test_nothing_is_told_where_no_window_counts_or_not_all_was_counted() -> None:
    assert memory_seen(_touched(_place(0x1000, loaded=1), windows=0), SYMBOLS, SERVER, ()) is None
    assert memory_seen(_touched(_place(0x1000, loaded=1), no_room=1), SYMBOLS, SERVER, ()) is None


def test_packets_are_told_by_what_the_kernel_does_once_for_each() -> None:
    skb, program = ("napi_gro_receive", "bpf:filter")
    assert takes_packets_up({skb: (10, 100), program: (10, 100)}) == skb
    assert takes_packets_up({skb: (10, 3), program: (10, 100), "bpf:other": (10, 5)}) == program
    assert takes_packets_up({"gro_receive_skb": (10, 3)}) == "gro_receive_skb"
    assert takes_packets_up({"ip6_forward": (10, 3)}) == ""


def test_a_testbed_file_says_what_caches_are_modelled(tmp_path: Path) -> None:
    stated = (Path(__file__).parents[2] / "resources/testbeds/local-vm.yaml").read_text()
    file = tmp_path / "vm.yaml"
    file.write_text(stated.replace("caches: {}", "caches: {last: {KiB: 65536, ways: 32}}"))
    found = load_testbed(file)
    assert isinstance(found, LocalVm)
    assert found.caches == replace(SERVER, last=CacheLevel(64 * 1024 * 1024, 32))
    assert str(found.caches).endswith("2048 KiB/16 ways, 65536 KiB/32 ways")


_TRACE_DRIVER = f"""
#include "memory_trial.c"
{QEMU_STUBS}

int main(void)
{{
    record = calloc(1, sizeof *record);
    record->place[3].kind = INSTRUCTION;
    record->steps_wanted = 6;
    record->warm = 1;
    for (int number = 0; number < LEVELS; number++)
        record->level[number] = (struct level){{ 1, 1 }};
    begin_trial();
    accessed(0, READS, FIRST_KERNEL_ADDRESS, &record->place[3]); /* before the model is warm */
    heed(PACKET);
    executed(0, &record->place[2]);
    accessed(0, READS, FIRST_KERNEL_ADDRESS, &record->place[3]);
    accessed(0, WRITES, FIRST_KERNEL_ADDRESS + 4096, &record->place[3]);
    heed(INTERRUPT);
    executed(0, &record->place[2]); /* for nobody */
    heed(RETURN);
    heed(PACKET);
    accessed(0, READS, FIRST_KERNEL_ADDRESS, &record->place[3]); /* its place in the cache was taken */
    for (int more = 0; more < 9; more++)
        executed(0, &record->place[2]);
    for (int step = 0; step < (int)record->steps; step++)
        printf("%d:%d+%d ", (int)(record->step[step].what >> STEP_SHIFT), (int)(record->step[step].what & 0xff),
               (int)(record->step[step].address & 0xffff));
    return 0;
}}
"""


@needs_gcc
def test_a_trace_has_blocks_and_accesses_of_packets_in_their_order(tmp_path: Path) -> None:
    told = said_by(_TRACE_DRIVER, MEMORY_TRIAL.main.parent, tmp_path)
    assert told == "2:2+0 0:3+0 68:3+4096 1:0+1 56:3+0 2:2+0 "


def test_no_more_steps_are_asked_for_than_there_is_room() -> None:
    with MemoryMeter() as meter:
        meter.trace(1 << 40)
        assert meter._get("steps_wanted") == 1 << 21
        assert len(meter.traced().steps) == 0
