"""What changed of memory between two builds: sure by function, summed over functions, and told in one sentence."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace

import pytest
from html_fragments import fragments
from hypothesis import given
from hypothesis import strategies as st
from made_results import result, scenario
from rule_changes import memory_changes

from pdrgate.gate.verdicts.change_verdict import comparison
from pdrgate.measurands import described
from pdrgate.measurands.functions.more_by_function import limits_of, surely_more
from pdrgate.measurands.functions.moved_work import MovedWork
from pdrgate.measurands.memory.memory_result import memory_result
from pdrgate.measurands.memory.memory_trials import MemoryTrials, memory_of
from pdrgate.measurands.memory.touched_lines import OF_MEMORY, CacheLines
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging, MemoryCounts, MemorySeen, Occasion, Seen
from pdrgate.record.trial import Trial
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.console.ending import part_lines, show_verdict
from pdrgate.reports.console.screen import Screen
from pdrgate.reports.pages.overview import evidence
from pdrgate.reports.pages.summary import summary_page
from pdrgate.reports.tree import Table
from pdrgate.reports.words.memory_words import MEMORY_CAPTION, memory_part
from pdrgate.results.model import ChangeResult, MemoryFunction, MemoryResult
from pdrgate.results.verdict import Verdict


def seen(**functions: MemoryCounts) -> MemorySeen:
    return MemorySeen(100, 3, functions)


def lines(*trials: Mapping[str, float]) -> MemoryResult:
    """A build's, of lines per packet by function and trial; those of `wipe` and `init_pages` are of pages they fill."""
    found = memory_result(
        [
            seen(**{
                name: MemoryCounts(
                    lines=round(100 * value),
                    filled_pages=round(100 * value / 64) if name in ("wipe", "init_pages") else 0,
                )
                for name, value in one.items()
            })
            for one in trials
        ]
    )  # fmt: skip
    assert found is not None
    return found


def changed(before: MemoryResult, after: MemoryResult, **renamed: str) -> dict[str, ChangeResult]:
    work = [MovedWork(later, (earlier,), renamed=True) for earlier, later in renamed.items()]
    return {one.measurand: one for one in memory_changes(before, after, work)}


BASE = lines({"rcv": 20.0, "lookup": 11.2}, {"rcv": 20.1, "lookup": 11.2})


def test_a_function_that_touches_more_is_named() -> None:
    before, after = ({"rcv": 20.0, "lookup": 11.2}, {"rcv": 21.0, "lookup": 16.2})
    change = changed(lines(before, before), lines(after, after))["cache lines"]
    assert change.verdict is Verdict.REGRESSION
    assert [one.function for one in change.parts] == ["lookup", "rcv"]
    assert described("cache lines").told(change) == (
        "each packet touches 6.0 more cache lines (31.2 -> 37.2), 5.0 of them in lookup"
    )


def test_what_replaces_pages_that_were_cleared_is_no_regression() -> None:
    """Linux 7.3 clears no pages for packets that it routes, and sets the memory of their heads instead."""
    before, after = {"rcv": 97.5, "wipe": 16.3}, {"rcv": 97.5, "set": 13.6}
    change = changed(lines(before, before), lines(after, after))["cache lines"]
    assert [one.function for one in change.parts] == ["wipe", "set"]
    assert change.verdict is Verdict.PASS
    more = changed(lines(before, before), lines(after | {"set": 26.0}, after | {"set": 26.0}))["cache lines"]
    assert more.verdict is Verdict.REGRESSION, "10 lines are more than the pages that are cleared no more"
    moved = {"rcv": 97.5, "init_pages": 16.3, "leak": 13.6}
    assert changed(lines(before, before), lines(moved, moved))["cache lines"].verdict is Verdict.REGRESSION


def test_a_packet_that_touches_fewer_lines_in_all_is_not_dearer() -> None:
    """UDP Delivery of Linux 6.16 against 6.12: 13 lines of cleared pages less, 8 more elsewhere, 5 less in all."""
    before, after = {"rcv": 90.9, "wipe": 35.3}, {"rcv": 90.9, "wipe": 22.2, "set": 7.9}
    change = changed(lines(before, before), lines(after, after))["cache lines"]
    assert change.change < 0.0
    assert change.verdict is Verdict.PASS
    more = changed(lines(after, after), lines(before, before))["cache lines"]
    assert more.verdict is Verdict.PASS, "more pages are cleared by chance"


def test_a_change_has_the_interval_of_its_trials() -> None:
    """The least and the most by which trials of the two builds differ, summed over what surely changed."""
    before = lines({"rcv": 20.0, "lookup": 10.0, "find": 8.0}, {"rcv": 20.4, "lookup": 10.2, "find": 8.1})
    after = lines({"rcv": 20.2, "lookup": 15.3, "find": 10.0}, {"rcv": 20.5, "lookup": 15.0, "find": 10.0})
    change = changed(before, after)["cache lines"]
    assert [one.function for one in change.parts] == ["lookup", "find"]
    assert limits_of(change) == pytest.approx((15.0 - 10.2 + 10.0 - 8.1, 15.3 - 10.0 + 10.0 - 8.0))
    assert surely_more(change) == pytest.approx(5.05 + 1.95)
    told_first = described("cache lines").told(change).partition(")")[0]
    assert told_first == "each packet touches 7.2 more cache lines (38.3 -> 45.5, +6.7 to +7.3"
    told = replace(scenario(), verdict=Verdict.REGRESSION, comparison=comparison([change], "the base", {}, pairs=2))
    between = "+7.2 (+6.7 to +7.3)"
    screen = io.StringIO()
    show_verdict(result(told), Screen(screen, live=False))
    for report in (screen.getvalue(), run_markdown(result(told)), summary_page(result(told), {})):
        assert between in report
        assert "the least and the most by which trials of the two builds differ" in report
    assert (change.lower, change.upper) == pytest.approx((6.7 / 38.35, 7.3 / 38.35))


@given(st.lists(st.tuples(*[st.floats(0, 1e4)] * 4), min_size=1, max_size=6))
def test_a_change_lies_in_its_interval(functions: list[tuple[float, float, float, float]]) -> None:
    before, after = (
        MemoryResult(
            trials=2,
            values={kind.about.name: (sum(at(one)[0] for one in functions),) * 2 for kind in OF_MEMORY},
            functions=tuple(
                MemoryFunction(name=str(number), values={kind.about.name: at(one) for kind in OF_MEMORY})
                for number, one in enumerate(functions)
            ),
        )
        for at in (lambda one: one[:2], lambda one: one[2:])
    )  # fmt: skip
    for change in memory_changes(before, after, ()):
        least, most = limits_of(change)
        room = 1e-6 * (1 + abs(most) + abs(least))
        assert least - room <= surely_more(change) <= most + room


def test_it_is_told_what_the_lines_are() -> None:
    """As issue 39 has it: "5 of them in fib6_node_lookup, 4 of them of the direct map"."""
    before, after = (
        memory_result([seen(rcv=MemoryCounts(lines=2000, stack_lines=2000), lookup=lookup)] * 2)
        for lookup in (
            MemoryCounts(lines=1120, direct_lines=1000, symbol_lines=120),
            MemoryCounts(lines=1620, direct_lines=1400, symbol_lines=220),
        )
    )
    assert before is not None
    assert after is not None
    change = changed(before, after)["cache lines"]
    assert described("cache lines").told(change) == (
        "each packet touches 5.0 more cache lines (31.2 -> 36.2), in lookup, 4.0 of the direct map"
    )
    beside = replace(change, confidence=0.95)
    told = replace(scenario(), verdict=Verdict.REGRESSION, comparison=comparison([beside], "the base", {}, pairs=2))
    assert list(part_lines(memory_part(told))) == [
        f"{MEMORY_CAPTION}:",
        "  MEASURAND    FUNCTION  BEFORE  AFTER  CHANGE  LINES OF",
        "  cache lines  lookup      11.2   16.2    +5.0  the direct map +4.0, the kernel's image +1.0",
        "               a packet    31.2   36.2    +5.0",
    ]
    row = "| cache lines | `lookup` | 11.2 | 16.2 | +5.0 | the direct map +4.0, the kernel's image +1.0 |"
    assert row in run_markdown(result(told))
    assert "the direct map +4.0" in "".join(fragments(told))
    assert "the direct map +4.0" in "".join(evidence(told))


def test_a_build_of_which_nobody_knows_what_its_lines_are_has_none_of_a_kind() -> None:
    known = memory_result([seen(lookup=MemoryCounts(lines=2000, direct_lines=2000))] * 2)
    assert known is not None
    (part,) = changed(lines({"lookup": 10.0}, {"lookup": 10.0}), known)["cache lines"].parts
    assert part.kinds == {}
    assert not memory_part(scenario()).brief


def test_a_miss_is_told_with_the_name_of_what_is_missed() -> None:
    near, far = (
        memory_result([MemorySeen(
            100, 0, {"bpf:filter": MemoryCounts(lines=100, vmalloc_lines=100, missed_last=missed)},
            named={"bpf:filter": {"vmalloc_lines": {"map routes": 100}, "missed_last": {"map routes": missed}}},
        )] * 2)
        for missed in (10, 110)
    )  # fmt: skip
    assert near is not None
    assert far is not None
    change = changed(near, far)["last-level misses"]
    assert described("last-level misses").told(change) == (
        "each packet misses the modelled last level 1.0 times more (0.1 -> 1.1), in bpf:filter, 1.0 of map routes"
    )
    told = replace(scenario(), comparison=comparison([change], "the base", {}, pairs=2))
    assert list(part_lines(memory_part(told)))[2].endswith("map routes +1.0")


def test_what_has_no_kinds_has_a_table_without_them_and_what_is_small_is_summed() -> None:
    names = [f"f{number}" for number in range(7)]
    none, some = (
        memory_result([seen(**{name: MemoryCounts(lines=100, atomics=number) for name in names})] * 2)
        for number in (0, 100)
    )
    assert none is not None
    assert some is not None
    told = replace(scenario(), comparison=comparison([changed(none, some)["atomics"]], "the base", {}, pairs=2))
    (table,) = memory_part(told).brief
    assert isinstance(table, Table)
    assert table.columns[-1].name == "change"
    assert [[cell.text for cell in row] for row in table.rows[-3:]] == [
        ["", "3 other functions", "", "", "+3.0"],
        ["", "these together", "", "", "+7.0"],
        ["", "a packet", "0.0", "7.0", "+7.0"],
    ]


def test_what_boots_of_one_build_differ_by_is_no_change() -> None:
    assert not changed(BASE, lines({"rcv": 25.0, "lookup": 11.2}, {"rcv": 20.0, "lookup": 11.2}))
    scattered = lines({"rcv": 18.0, "lookup": 11.2}, {"rcv": 20.1, "lookup": 11.2})
    assert not changed(scattered, lines({"rcv": 25.0, "lookup": 11.2}, {"rcv": 23.9, "lookup": 11.2}))


def test_pages_that_are_cleared_more_often_are_told_and_judged_by_nobody() -> None:
    # Of two equal kernels: so many packets wait at once that twice as many pages are needed.
    before, after = {"forward": 60.0, "wipe": 4.1}, {"forward": 61.0, "wipe": 7.8}
    change = changed(lines(before, before), lines(after, after))["cache lines"]
    assert [one.function for one in change.parts] == ["wipe", "forward"]
    assert change.verdict is Verdict.PASS
    slower = lines({**after, "forward": 66.0}, {**after, "forward": 66.0})
    assert changed(lines(before, before), slower)["cache lines"].verdict is Verdict.REGRESSION
    fewer = {"forward": 66.0, "wipe": 1.0}
    assert changed(lines(before, before), lines(fewer, fewer))["cache lines"].verdict is Verdict.REGRESSION


def test_pages_that_another_function_clears_now_hide_no_regression_and_are_none() -> None:
    """As UDP Delivery of Linux 7.0 against 6.19: `clear_page_rep` scattered, and its successor was surely new."""
    before = [{"forward": 60.0, "wipe": cleared} for cleared in (30.0, 18.0)]
    after = [{"forward": 60.0, "init_pages": cleared} for cleared in (30.8, 31.0)]
    alike = changed(lines(*before), lines(*after))["cache lines"]
    assert alike.verdict is Verdict.PASS
    slower = [{**one, "forward": 66.0} for one in after]
    assert changed(lines(*before), lines(*slower))["cache lines"].verdict is Verdict.REGRESSION


def test_code_that_moved_between_functions_is_no_regression() -> None:
    moved = changed(BASE, lines({"rcv": 31.2, "lookup": 0.0}, {"rcv": 31.3, "lookup": 0.0}))["cache lines"]
    assert moved.verdict is Verdict.PASS
    renamed = changed(BASE, lines({"rcv": 20.0, "find": 11.2}, {"rcv": 20.1, "find": 11.2}), lookup="find")
    assert not renamed


def test_fewer_lines_are_told_and_are_no_improvement() -> None:
    fewer = changed(lines({"rcv": 20.0}, {"rcv": 20.0}), lines({"rcv": 14.0}, {"rcv": 14.0}))["cache lines"]
    assert fewer.verdict is Verdict.PASS
    assert described("cache lines").told(fewer) == "each packet touches 6.0 fewer cache lines (20.0 -> 14.0), in rcv"


@pytest.mark.parametrize(
    ("counts", "measurand", "verdict", "sentence"),
    [
        (MemoryCounts(missed_last=100), "last-level misses", Verdict.REGRESSION,
         "each packet misses the modelled last level 1.0 times more (0.0 -> 1.0), in bpf:filter"),
        (MemoryCounts(missed_last=20), "last-level misses", Verdict.PASS,
         "each packet misses the modelled last level 0.2 times more (0.0 -> 0.2), in bpf:filter"),
        (MemoryCounts(missed_l2=100), "L2 misses", Verdict.REGRESSION,
         "each packet misses the modelled second level 1.0 times more (0.0 -> 1.0), in bpf:filter"),
        (MemoryCounts(atomics=100), "atomics", Verdict.REGRESSION,
         "each packet takes 1.0 more atomic instructions (0.0 -> 1.0), in bpf:filter"),
    ],
)  # fmt: skip
def test_what_a_packet_had_none_of_has_a_tolerance_of_its_own(
    counts: MemoryCounts, measurand: str, verdict: Verdict, sentence: str
) -> None:
    none, some = (seen(**{"bpf:filter": one}) for one in (MemoryCounts(lines=100), counts._replace(lines=100)))
    change = changed(*(found for each in (none, some) if (found := memory_result([each, each]))))
    assert list(change) == [measurand]
    assert change[measurand].verdict is verdict
    assert described(measurand).told(change[measurand]) == sentence


def test_of_one_trial_nothing_is_sure() -> None:
    assert not changed(lines({"rcv": 1.0}), lines({"rcv": 90.0}))
    assert memory_result([]) is None
    assert memory_changes(None, BASE, ()) == ()


def trial(phase: Phase, *, side: str = "baseline", pair: int = 1, memory: MemorySeen | None = None) -> Trial:
    made = Trial(
        intended_load=1024.0, intended_duration=1.0, offered=1024, forwarded=512,
        belonging=Belonging("x", side=side, pair=pair), occasion=Occasion(phase=phase),
    )  # fmt: skip
    functions = {"rcv": (1, 1)} if phase == Phase.SATURATION else {}
    return replace(made, seen=Seen(functions=functions, memory=memory))


def test_trials_are_asked_for_in_the_first_boots_of_builds_that_are_compared() -> None:
    counted = trial(Phase.SATURATION)
    ask = MemoryTrials().next([counted])
    assert ask is not None
    assert (ask.load, ask.duration, ask.phase) == (1024.0, 2.0, Phase.MEMORY)
    told = trial(Phase.MEMORY, memory=seen(rcv=MemoryCounts(lines=150)))
    assert MemoryTrials().next([counted, told]) is not None
    assert MemoryTrials().next([counted, told, told]) is None
    assert MemoryTrials().next([]) is None
    assert MemoryTrials().next([trial(Phase.REPEAT)]) is None
    assert MemoryTrials().next([trial(Phase.SATURATION, side="")]) is None
    assert MemoryTrials().next([trial(Phase.SATURATION, pair=3)]) is None
    assert CacheLines().value([counted, told]) == 1.5
    assert CacheLines().value([counted]) is None
    assert memory_of([counted, told]) == [told.seen.memory]
