"""What the plugin of several CPUs is made of: which lines count as shared, what a packet is, and how that is told."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qemu_stubs import QEMU_STUBS, said_by
from rule_changes import memory_changes, several_cpus_changes

from pdrgate.guests.metering.memory.line_areas import LineKind
from pdrgate.guests.metering.memory.memory_meter import BLOCK, Role
from pdrgate.guests.metering.memory.naming.line_names import LineName
from pdrgate.guests.metering.memory.naming.slab_objects import StructPart
from pdrgate.guests.metering.memory.trial_memory import LISTED_LINE
from pdrgate.guests.metering.plugin import SHARED_LINES
from pdrgate.guests.metering.sharing.sharing_meter import (
    _PLACE,
    CLOCK_TICKS,
    PROGRAM_BEGINS,
    STEP_BEGINS,
    SharedByPlaces,
    SharingMeter,
)
from pdrgate.guests.metering.sharing.sharing_observer import sharing_marks, sharing_seen
from pdrgate.guests.metering.symbols import KernelSymbol, KernelSymbols
from pdrgate.measurands.memory.memory_result import memory_result
from pdrgate.measurands.memory.memory_trials import memory_of
from pdrgate.measurands.memory.shared_lines import (
    OF_SEVERAL_CPUS,
    SharedLines,
)
from pdrgate.record.stretch import MemoryCounts, MemorySeen
from pdrgate.results.model import MemoryResult
from pdrgate.results.verdict import Verdict
from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.vm.vm_config import LocalVm

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
_DRIVER = f"""
#include "shared_lines.c"
{QEMU_STUBS}
enum {{ AT = 1 << 20 }};

static uint64_t writes_before = 1000;

/* What a place counts where CPU 0 and then CPU 1 touch a word each; falsely is told behind the sum. */
static void each(int first, int first_word, int second, int second_word, int times, uint64_t later)
{{
    static uint64_t line;
    uint64_t address = FIRST_KERNEL_ADDRESS + AT + (++line << LINE_SHIFT);
    struct counted_place *place = &record->place[0];
    memset(place->count, 0, sizeof place->count);
    memset(place->shared_of, 0, sizeof place->shared_of);
    place->count[WROTE] = writes_before;
    for (int time = 0; time < times; time++) {{
        accessed(0, first, address + 8 * first_word, place);
        lines.now += later;
        accessed(1, second, address + 8 * second_word, place);
    }}
    printf("%d/%d ", (int)place->count[SHARED], (int)place->count[SHARED_FALSELY]);
}}

int main(void)
{{
    record = calloc(1, sizeof *record);
    record->window = 100;
    record->marks = 3;
    takes_cpus(2);
    record->mark[0].role = PACKET;
    record->mark[1].role = record->mark[2].role = PROGRAM;
    begin_trial();
    for (int call = 0; call < LEARNED; call++)
        learn(call % 8 == 0 ? 0 : call % 8 == 1 ? 1 : 2);
    printf("%d ", packet_mark);
    elsewhere = 0;
    each(READS, 0, READS, 0, 1, 1);
    each(WRITES, 0, READS, 0, 1, 1);
    each(READS, 0, WRITES, 0, 1, 1);
    each(WRITES, 0, WRITES, 1, 1, 1);
    each(WRITES, 0, WRITES, 0, 1, 101);
    each(WRITES, 0, WRITES, 0, 3, 1); /* of one packet of each CPU */
    /* CPU 0 wrote once, and both read ever since. */
    each(WRITES, 0, READS, 0, 1, 1);
    for (int packet = 0; packet < 5; packet++) {{
        lines.now += 60;
        doing[0].step++;
        doing[1].step++;
        accessed(0, READS, FIRST_KERNEL_ADDRESS + AT + (7 << LINE_SHIFT), &record->place[0]);
        accessed(1, READS, FIRST_KERNEL_ADDRESS + AT + (7 << LINE_SHIFT), &record->place[0]);
    }}
    printf("%d ", (int)record->place[0].count[SHARED]);
    elsewhere = 2;
    each(WRITES, 0, WRITES, 0, 3, 1);
    elsewhere = 0;
    /* What a line is, and who wrote to it; CPU 1 reads at another place. */
    record->areas = 1;
    record->area[0] = (struct area){{ FIRST_KERNEL_ADDRESS, FIRST_KERNEL_ADDRESS + 2 * AT, 4 }};
    each(WRITES, 0, READS, 0, 1, 1);
    record->place[1].address = 77;
    record->place[1].count[WROTE] = 1000;
    accessed(0, WRITES, FIRST_KERNEL_ADDRESS + 2 * AT - 56, &record->place[1]);
    accessed(1, READS, FIRST_KERNEL_ADDRESS + 2 * AT - 64, &record->place[0]);
    printf("%d/%d ", (int)record->place[0].shared_of[4], (int)record->place[0].writer);
    for (int at = 0; at < SHARED_LISTED; at++)
        if (record->listed[at].writer == 77)
            printf("%d/%llx/%llx ", (int)record->listed[at].lines, (unsigned long long)record->listed[at].touched,
                   (unsigned long long)record->listed[at].written);
    /* Steps of a packet: the line counts once for each. */
    record->mark[3].role = STEP;
    record->mark[4].role = TICK;
    for (int step = 0; step < 3; step++) {{
        heed(1, 3);
        accessed(1, READS, FIRST_KERNEL_ADDRESS + 2 * AT - 64, &record->place[0]);
    }}
    printf("%d ", (int)record->place[0].count[SHARED]);
    /* What writes once a tick: 100 times in 100 ticks; and what does so more often. */
    for (int ticks = 0; ticks < 100; ticks++)
        heed(0, 4);
    writes_before = 99;
    each(WRITES, 0, READS, 0, 1, 1);
    each(WRITES, 0, READS, 0, 2, 1); /* twice between two ticks */
    writes_before = 200;
    each(WRITES, 0, READS, 0, 1, 1);
    return 0;
}}
"""


@needs_gcc
def test_a_line_is_shared_where_one_cpu_writes_what_the_other_touched_shortly_before(tmp_path: Path) -> None:
    told = said_by(_DRIVER, SHARED_LINES.main.parent, tmp_path).split()
    # The program that gets most is what a packet begins with, for hardly any of its packets is taken up.
    assert told[:10] == ["2", "0/0", "1/0", "1/0", "1/1", "0/0", "2/0", "1/0", "3", "0/0"]
    assert told[10:] == ["1/0", "2/77", "1/ff/ff00", "5", "0/0", "2/0", "1/0"]


_FOUR = f"""
#include "shared_lines.c"
{QEMU_STUBS}

static struct counted_place *place;
static uint64_t line = FIRST_KERNEL_ADDRESS + (1 << 20);

/* What the place counts where CPUs touch a word each, one after the other; falsely is told behind the sum. */
static void each(int times, const int (*touched)[3])
{{
    line += 1 << LINE_SHIFT;
    lines.now += 1000;
    memset(place->count, 0, sizeof place->count);
    place->count[WROTE] = 1000;
    for (int at = 0; at < times; at++)
        accessed(touched[at][0], touched[at][1], line + 8 * touched[at][2], place);
    printf("%d/%d ", (int)place->count[SHARED], (int)place->count[SHARED_FALSELY]);
}}
#define EACH(...) each(sizeof (int[][3]){{ __VA_ARGS__ }} / sizeof (int[3]), (int[][3]){{ __VA_ARGS__ }})

int main(void)
{{
    record = calloc(1, sizeof *record);
    place = &record->place[0];
    record->window = 100;
    printf("%d%d%d ", takes_cpus(1), takes_cpus(5), takes_cpus(4));
    begin_trial();
    packet_mark = 0;
    elsewhere = 0;
    /* Each CPU after the first has the line from another one, once for a packet. */
    EACH({{0, WRITES, 0}}, {{1, WRITES, 0}}, {{2, WRITES, 0}}, {{3, WRITES, 0}}, {{3, WRITES, 0}});
    EACH({{0, WRITES, 0}}, {{1, WRITES, 1}}, {{2, WRITES, 2}}, {{3, WRITES, 3}});
    /* Only CPUs 0 and 2 meet, and only CPUs 1 and 3. */
    EACH({{0, WRITES, 0}}, {{2, WRITES, 0}});
    EACH({{1, READS, 0}}, {{3, WRITES, 0}});
    /* CPU 3 reads what CPU 0 writes; of the same line CPU 1 writes other bytes, and CPU 2 reads others. */
    EACH({{0, WRITES, 0}}, {{1, WRITES, 1}}, {{2, READS, 2}}, {{3, READS, 0}});
    EACH({{0, READS, 0}}, {{1, READS, 0}}, {{2, READS, 0}}, {{3, READS, 0}});
    /* One of the four has no packet. */
    elsewhere = 4;
    EACH({{0, WRITES, 0}}, {{1, WRITES, 0}}, {{3, WRITES, 0}});
    return 0;
}}
"""


@needs_gcc
def test_of_four_cpus_a_line_is_shared_by_any_two_and_falsely_where_no_two_touch_the_same(tmp_path: Path) -> None:
    told = said_by(_FOUR, SHARED_LINES.main.parent, tmp_path).split()
    assert told == ["001", "3/0", "3/3", "1/0", "1/0", "3/2", "0/0", "0/0"]


_TIMES = f"""
#include "shared_lines.c"
{QEMU_STUBS}

/* A block of ten instructions, perhaps with a mark. */
static void runs(int cpu, int mark)
{{
    record->place[0].length = 10;
    mark_at[0] = mark + 1;
    executed_in_time(cpu, &record->place[0]);
}}

static void tell(void)
{{
    printf("%d/%d/%d/%d ", (int)record->time[0], (int)record->idle[0], (int)record->time[1], (int)record->idle[1]);
}}

int main(void)
{{
    enum {{ TAKES, POLLS, TICKS, ENDS, SWITCHES }};
    record = calloc(1, sizeof *record);
    record->timed = 1;
    record->turn = 1000000;
    record->marks = 5;
    static const int role[] = {{ PACKET, POLL, INTERRUPT, RETURN, FOREIGN }};
    for (int mark = 0; mark < 5; mark++)
        record->mark[mark].role = role[mark];
    takes_cpus(2);
    begin_trial();
    packet_mark = TAKES;
    runs(0, -1); /* no packets yet */
    tell();
    turns.idle[1] = 1;
    runs(0, POLLS);
    runs(0, TAKES);
    tell();
    /* A tick takes no time, and neither does another task. */
    runs(0, TICKS);
    runs(0, -1);
    runs(0, ENDS);
    runs(0, SWITCHES);
    runs(0, -1);
    tell();
    /* Packets that are looked for behind a tick take some. */
    runs(0, TICKS);
    runs(0, POLLS);
    turns.idle[0] = 1;
    turns.idle[1] = 0;
    atomic_store(&turns.whose, NOBODY);
    runs(1, POLLS);
    runs(1, TAKES);
    tell();
    for (int packet = 0; packet < (int)record->taken_up; packet++)
        printf("%d:%d/%d ", (int)record->taken[packet].cpu, (int)record->taken[packet].time[0],
               (int)record->taken[packet].time[1]);
    executed_by_program(1, (void *)7);
    printf("%d", (int)record->by_programs);
    return 0;
}}
"""


@needs_gcc
def test_time_passes_for_a_cpu_that_executes_and_for_one_that_has_nothing_to_do(tmp_path: Path) -> None:
    told = said_by(_TIMES, SHARED_LINES.main.parent, tmp_path).split()
    # Each is time/idle of CPU 0 and of CPU 1; the mark of a block counts before its instructions.
    assert told[:4] == ["0/0/0/0", "20/0/20/20", "30/0/30/30", "60/20/60/40"]
    assert told[4:] == ["0:10/10", "1:50/50", "7"]


_TURNS = """
#include <stdint.h>
#include <stdio.h>
#include "turns.h"

enum { TURNS = 5 };
static pthread_barrier_t all;
static char order[4 * TURNS + 1];
static int taken;

static void *execute(void *number)
{
    int cpu = (intptr_t)number;
    pthread_barrier_wait(&all);
    for (int turn = 0; turn < TURNS; turn++) {
        take_turn(cpu, 1, 1);
        order[taken++] = '0' + cpu;
    }
    end_turn(cpu);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    turns.cpus = 4;
    turns.patience = 900000000;
    turns.whose = 0;
    end_turn(2);
    pthread_barrier_init(&all, NULL, 3);
    for (intptr_t cpu = 0; cpu < 4; cpu++)
        if (cpu != 2)
            pthread_create(&threads[cpu], NULL, execute, (void *)cpu);
    for (int cpu = 0; cpu < 4; cpu++)
        if (cpu != 2)
            pthread_join(threads[cpu], NULL);
    printf("%s %d %d ", order, turns.whose, (int)turns.slips);
    printf("%d", want_turn(1));
    printf("%d ", want_turn(3));
    /* CPU 0 has the turn and does not pass it on. */
    turns.whose = 0;
    turns.patience = 1000000;
    take_turn(3, 1, 1);
    printf("%d %d", turns.whose, (int)turns.slips);
    return 0;
}
"""


@needs_gcc
def test_the_turn_goes_round_past_a_cpu_that_has_nothing_to_do(tmp_path: Path) -> None:
    order, whose, slips, alone, *stuck = said_by(_TURNS, SHARED_LINES.main.parent, tmp_path).split()
    assert order == "130" * 5  # CPU 0 has the turn, and its instructions are used up
    assert (whose, slips, alone) == ("-1", "0", "10")
    assert stuck == ["3", "1"]


def _symbols() -> KernelSymbols:
    named = {0x1000: "napi_gro_receive", 0x2000: "try_to_wake_up", 0x3000: "sysvec_reschedule_ipi", 0x4000: "bpf_prog_"
             "0123456789abcdef_router", 0x5000: "native_queued_spin_lock_slowpath", 0x6000: "memcmp",
             0x7000: "update_wall_time", 0x8000: "ip_forward"}  # fmt: skip
    return KernelSymbols(KernelSymbol(at, name) for at, name in named.items())


LAYOUT = ("key",) * 8 + ("used",) * 8
NAMED = LineName("bridge_fdb_cache", StructPart("net_bridge_fdb_entry", LAYOUT, 9 * 64))


def _place(address: int, kind: int = 1, **counts: int) -> tuple[int, ...]:
    told = (counts.get(name, 0) for name in ("ran", "locked", "shared", "falsely", "wrote", "filled"))
    kinds = [0] * len(LineKind)
    kinds[LineKind.DIRECT] = counts.get("direct", 0)
    return (address, kind, 0, 1, *told, kinds, counts.get("writer", 0))


_RESET_DRIVER = f"""
#include "shared_lines.c"
static void (*then_begin)(plugin_id);
{QEMU_STUBS.replace("{ then(id); }", "{ then_begin = then; }")}
static _Atomic int goes_on;

static void *resumes_too(void *unused)
{{
    resumes(1);
    goes_on = 1;
    return unused;
}}

int main(void)
{{
    pthread_t other;
    record = calloc(1, sizeof *record);
    record->window = 100;
    takes_cpus(2);
    turns.idle[0] = turns.idle[1] = 1;
    record->asked = 1;
    resumes(0); /* no other CPU has anything to do: a trial is to begin, once all stand still */
    pthread_create(&other, NULL, resumes_too, NULL);
    nanosleep(&(struct timespec){{ .tv_nsec = 100000000 }}, NULL);
    printf("%d ", goes_on);
    then_begin(self);
    pthread_join(other, NULL);
    printf("%d", goes_on);
    return 0;
}}
"""


@needs_gcc
def test_a_cpu_that_wakes_up_while_a_trial_is_about_to_begin_waits_for_that(tmp_path: Path) -> None:
    """It would be stopped in the midst of code, and QEMU 7.2 abort at its next interrupt."""
    assert said_by(_RESET_DRIVER, SHARED_LINES.main.parent, tmp_path) == "0 1"


def test_what_is_counted_at_places_is_told_by_function() -> None:
    rows = [
        _place(0x1000, BLOCK, ran=512), _place(0x2000, BLOCK, ran=3), _place(0x2010, BLOCK, ran=7),
        _place(0x3000, BLOCK, ran=2), _place(0x4010, locked=512, shared=500, falsely=4, writer=0x4010),
        _place(0x4020, shared=6), _place(0x5010, BLOCK, ran=40), _place(0x6010, shared=3, writer=0x4020),
        _place(0x6020, shared=7, direct=7, writer=0x1010, filled=2),
    ]  # fmt: skip
    told = np.array([(9, 0xFF, 0xFF00, 0x1010, 8, 7, LineKind.DIRECT, 0, 0, 0)], LISTED_LINE)
    seen = sharing_seen(SharedByPlaces(4, 512, 0, 0, np.array(rows, _PLACE), told), _symbols(), (NAMED,))
    assert seen == MemorySeen(
        512, 0,
        {
            "bpf:router": MemoryCounts(atomics=512, shared=506, falsely_shared=4),
            "sysvec_reschedule_ipi": MemoryCounts(ipis=2), "try_to_wake_up": MemoryCounts(wakeups=3),
            "native_queued_spin_lock_slowpath": MemoryCounts(waited=40),
            "memcmp": MemoryCounts(shared=10, direct_lines=7, filled_pages=2),
        },
        {"memcmp": {"direct_lines": {"bridge_fdb_cache": 7}}},
        {"memcmp": {"bridge_fdb_cache": "net_bridge_fdb_entry.used written, .key read"}},
        {"memcmp": "napi_gro_receive"},
        4,
    )  # fmt: skip


@pytest.mark.parametrize(("packets", "no_room"), [(0, 0), (200, 0), (512, 1)])
def test_few_packets_and_what_there_was_no_room_for_tell_nothing(packets: int, no_room: int) -> None:
    rows = np.array([_place(0x4010, shared=5)], _PLACE)
    assert sharing_seen(SharedByPlaces(2, packets, 0, no_room, rows, np.array([], LISTED_LINE)), _symbols(), ()) is None


def test_what_takes_a_packet_up_is_marked_with_all_programs() -> None:
    assert sharing_marks(_symbols()) == [
        (0x1000, Role.PACKET), (0x8000, STEP_BEGINS), (0x7000, CLOCK_TICKS), (0x4000, PROGRAM_BEGINS)
    ]  # fmt: skip


def test_the_plugin_and_its_reader_agree_on_a_fresh_memory() -> None:
    with SharingMeter(3) as meter:
        assert meter.heeded
        meter.begin([(0x1000, Role.PACKET)], 1000, 5000)
        assert not meter.heeded
        told = meter.shared()
        assert (told.cpus, told.packets, told.slips, told.no_room, len(told.places), len(told.listed)) == (
            3,
            0,
            0,
            0,
            0,
            0,
        )


def _seen(shared: int, *, elsewhere: int = 0) -> MemorySeen:
    functions = {"bpf:router": MemoryCounts(shared=shared), "get_page": MemoryCounts(shared=elsewhere)}
    return MemorySeen(1000, 0, functions)


def test_more_shared_lines_of_a_function_are_a_regression_and_what_chance_shares_is_none() -> None:
    before, after = (
        memory_result(each, OF_SEVERAL_CPUS) for each in ([_seen(0), _seen(10)], [_seen(1000), _seen(1010)])
    )
    (change,) = memory_changes(before, after, (), [SharedLines])
    assert (change.measurand, change.verdict) == ("shared lines", Verdict.REGRESSION)
    assert [one.function for one in change.parts] == ["bpf:router"]
    assert SharedLines.about.sentence is not None
    told = SharedLines.about.sentence.clause(change, None)
    assert told == "each packet touches 1.0 more lines that another CPU uses (0.0 -> 1.0), in bpf:router"
    # Pages that one CPU frees and the other takes: now many, now none.
    some, others = (
        memory_result([_seen(0, elsewhere=by) for by in each], OF_SEVERAL_CPUS) for each in ((0, 450), (500, 900))
    )
    assert memory_changes(some, others, (), [SharedLines]) == ()


def test_what_four_cpus_share_is_not_compared_with_what_two_do() -> None:
    def seen(cpus: int, shared: int) -> MemoryResult | None:
        return memory_result([replace(_seen(shared), cpus=cpus)] * 2, OF_SEVERAL_CPUS)

    assert [len(memory_changes(seen(2, 0), seen(cpus, 1000), (), [SharedLines])) for cpus in (2, 4)] == [1, 0]


def test_lines_are_told_with_what_they_are_and_who_writes_to_them() -> None:
    def seen(shared: int) -> MemorySeen:
        counts = MemoryCounts(shared=shared, direct_lines=shared)
        fields = {"memcmp": {"bridge_fdb_cache": "net_bridge_fdb_entry.used written, .key read"}}
        named = {"memcmp": {"direct_lines": {"bridge_fdb_cache": shared}}}
        return MemorySeen(1000, 0, {"memcmp": counts}, named, fields, {"memcmp": "br_handle_frame_finish"})

    before, after = (memory_result(each, OF_SEVERAL_CPUS) for each in ([seen(0)] * 2, [seen(1000), seen(1008)]))
    (change,) = memory_changes(before, after, (), [SharedLines])
    assert SharedLines.about.sentence is not None
    told = SharedLines.about.sentence.clause(change, None)
    assert told.endswith(
        "(0.0 -> 1.0), in memcmp, 1.0 of bridge_fdb_cache (net_bridge_fdb_entry.used written, .key read), written by "
        "br_handle_frame_finish"
    )


def test_waiting_for_locks_is_told_where_it_is_much_and_decides_nothing() -> None:
    def seen(waited: int) -> MemoryResult | None:
        functions = {"native_queued_spin_lock_slowpath": MemoryCounts(waited=waited)}
        return memory_result([MemorySeen(1000, 0, functions)] * 2, OF_SEVERAL_CPUS)

    (change,) = several_cpus_changes(seen(0), seen(500_000))
    assert (change.measurand, change.candidate, change.verdict) == ("waiting for locks", 500, Verdict.NO_BASELINE)
    assert change.unresolved
    assert several_cpus_changes(seen(0), seen(50_000)) == ()


def test_trials_of_one_cpu_tell_nothing_of_several() -> None:
    assert memory_of([]) == []
    assert all(kind.of is not None and kind.about.name for kind in OF_SEVERAL_CPUS)


def test_a_testbed_of_guests_has_one_of_several_cpus_and_one_of_namespaces_has_none() -> None:
    of_pairs = load_testbed("resources/testbeds/local-vm.yaml")
    assert isinstance(of_pairs, LocalVm)
    for wanted in (of_pairs, replace(of_pairs, sharing_vcpus=4)):
        several = wanted.on_several_cpus()
        assert isinstance(several, LocalVm)
        assert (several.shares, several.vcpus, several.sut_cpus) == (True, *[wanted.sharing_vcpus] * 2)
    assert replace(of_pairs, vcpus=2).on_several_cpus() is None
    assert load_testbed("resources/testbeds/local-netns.yaml").on_several_cpus() is None
