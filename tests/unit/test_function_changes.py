"""What changed between two builds by function: calls that are counted, names that changed, and parts that add up."""

from __future__ import annotations

import dataclasses

import pytest
from flat_values import flat_trial
from html_fragments import fragments
from hypothesis import given
from hypothesis import strategies as st
from made_results import result, scenario

from pdrgate.gate.verdicts.change_verdict import comparison, judged
from pdrgate.gate.verdicts.packet_cost import cost_result, notice_of_calls
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.measurands.functions.renamed import renamed
from pdrgate.record.phase import Phase
from pdrgate.reports.ci.junit import junit
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.markup.columns import table_lines
from pdrgate.reports.pages.icicle import icicle
from pdrgate.reports.words.costs import changes_part, changes_table
from pdrgate.reports.words.packet_way import Way, tree_of
from pdrgate.results.model import ChangeResult, CostResult, FrameResult, FunctionResult
from pdrgate.results.verdict import Verdict

Path_ = dict[str, tuple[float, float]]
"""By function, instructions and calls per packet."""
FORWARDING: Path_ = {
    "virtnet_poll": (90.0, 1 / 64), "ip6_forward": (173.0, 1.0), "fib_table_lookup": (23.5, 1.0),
    "__rcu_read_lock": (38.3, 6.38), "__x86_indirect_thunk_rax": (14.4, 4.8), "kfree_skbmem": (12.0, 0.8),
}  # fmt: skip


def boots(*paths: Path_, batch: int = 64) -> CostResult:
    """A build whose boots have one trial each."""
    packets = 100_000
    trials = [
        [
            flat_trial(
                4e4, 0.25, 2 * packets, packets, phase=Phase.SATURATION,
                functions={
                    name: (round(instructions * packets), round(calls * packets))
                    for name, (instructions, calls) in (path | {"virtnet_poll": (90.0, 1 / batch)}).items()
                },
            )
        ]
        for path in paths
    ]  # fmt: skip
    found = cost_result(trials, 0.005)
    assert found is not None
    return found


def called(name: str, *calls: float, batch: int = 64) -> CostResult:
    """A build that calls a function so often in each of its boots, by 23.5 instructions each time."""
    return boots(*(FORWARDING | {name: (23.5 * each, each)} for each in calls), batch=batch)


def cost_change(before: CostResult, after: CostResult, verdict: Verdict = Verdict.PASS) -> ChangeResult:
    by = after.instructions / before.instructions - 1
    return ChangeResult(
        measurand="cost", change=by, lower=by - 0.001, upper=by + 0.001, confidence=0.95, tolerance=0.1,
        baseline=before.instructions, candidate=after.instructions, unit="instructions/packet", better="lower",
        verdict=verdict,
    )  # fmt: skip


# --- Calls ---


def test_one_call_that_becomes_two_is_noticed_first_though_the_build_passes():
    before, after = called("fib_table_lookup", 1, 1, 1), called("fib_table_lookup", 2, 2, 2)
    functions = function_changes(before, after)
    assert [(one.function, one.calls_before, one.calls_after) for one in functions if one.calls_changed] == [
        ("fib_table_lookup", 1.0, 2.0)
    ]
    told = "fib_table_lookup is called twice for each packet, was once"
    found = judged([cost_change(before, after)], functions)
    assert found.verdict is Verdict.PASS
    assert found.reason.startswith(f"notice: {told}; not slower: ")
    assert comparison([cost_change(before, after)], "the base", {}, functions=functions).notice == told


def test_calls_change_by_more_than_boots_are_apart_or_not_surely():
    assert not notice_of_calls(function_changes(called("f", 1.0, 1.2, 1.0), called("f", 1.5, 1.7, 1.6)))
    assert notice_of_calls(function_changes(called("f", 1.0, 1.01, 1.0), called("f", 1.5, 1.51, 1.5))) == (
        "f is called 1.5 times for each packet, was once"
    )


def test_who_frees_a_packet_differs_from_boot_to_boot_of_one_kernel():
    """As boots of one Debian kernel were measured: 0.62 and 0.84 calls per packet, in two groups."""
    before, after = called("kfree_skbmem", 0.632, 0.62), called("kfree_skbmem", 0.839, 0.837)
    assert not notice_of_calls(function_changes(before, after))


def test_one_boot_of_a_build_does_not_tell_what_its_boots_are_apart():
    assert not notice_of_calls(function_changes(called("f", 1), called("f", 2, 2)))


def test_batches_that_are_half_as_large_explain_twice_as_many_calls():
    whole, half = called("f", 0.5, 0.5), called("f", 1.0, 1.0, batch=32)
    assert not notice_of_calls(function_changes(whole, half))
    assert notice_of_calls(function_changes(whole, called("f", 1.0, 1.0)))


def test_the_compilers_choice_of_a_register_is_no_call():
    before = boots(*[FORWARDING] * 2)
    other = {name: what for name, what in FORWARDING.items() if name != "__x86_indirect_thunk_rax"}
    after = boots(*[other | {"__x86_indirect_thunk_rbx": (14.4, 4.8)}] * 2)
    assert not notice_of_calls(function_changes(before, after))


def test_a_begin_that_a_compiler_inlined_is_no_change_of_calls():
    """What is left is `f.part.0`, which nobody enters by the name of `f`."""
    before, after = (boots(*[FORWARDING | {"f": (60.0, calls)}] * 2) for calls in (1.0, 0.0))
    assert not notice_of_calls(function_changes(before, after))
    assert not notice_of_calls(function_changes(after, before))


def test_a_function_that_both_builds_call_is_named_before_new_and_gone_ones():
    before = boots(*[FORWARDING | {"gone": (30.0, 3.0)}] * 2)
    after = boots(*[FORWARDING | {"new": (500.0, 7.0), "fib_table_lookup": (47.0, 2.0)}] * 2)
    assert notice_of_calls(function_changes(before, after)) == (
        "fib_table_lookup is called twice for each packet, was once; "
        "2 other functions are called more or less often as well"
    )
    assert notice_of_calls(function_changes(before, boots(*[FORWARDING] * 2))) == (
        "gone is not called any more, was 3 times for each packet"
    )


def test_calls_that_nobody_counts_are_told_nowhere():
    before, after = ({name: (cost, 0.0) for name, (cost, _) in FORWARDING.items()} for _ in range(2))
    after["ip6_forward"] = (273.0, 0.0)
    uncounted = [
        CostResult(
            instructions=500.0, batch=None, trials=2,
            functions=tuple(
                FunctionResult(name=name, instructions=cost, calls=0.0, deviation=0.1)
                for name, (cost, _) in path.items()
            ),
        )
        for path in (before, after)
    ]  # fmt: skip
    functions = function_changes(*uncounted)
    assert [(one.calls_before, one.calls_changed) for one in functions] == [(None, False)]
    assert "CALLS" not in "\n".join(change_lines(functions))


def change_lines(functions, change=None):
    """What a console shows of the table."""
    table = changes_table(functions, change)
    return [] if table is None else table_lines(table)


def test_a_notice_stands_in_every_report():
    before, after = called("fib_table_lookup", 1, 1), called("fib_table_lookup", 2, 2)
    functions, change = function_changes(before, after), cost_change(before, after)
    found = judged([change], functions)
    told = comparison([change], "the base", {}, pairs=2, functions=functions)
    whole = result(
        dataclasses.replace(scenario(), verdict=found.verdict, reason=found.reason, comparison=told),
        reason=found.reason,
    )
    unstable = dataclasses.replace(whole.scenarios[0], verdict=Verdict.UNSTABLE, reason="TIR 1.0")
    assert any(line.startswith("notice: fib_table_lookup") for line in changes_part(unstable).remarks)
    assert not changes_part(whole.scenarios[0]).remarks
    sentence = "fib_table_lookup is called twice for each packet, was once"
    assert sentence in run_markdown(whole)
    assert sentence in junit(whole).decode()
    assert "2, was 1" in "".join(fragments(whole.scenarios[0]))
    assert any(line.endswith("2, was 1") for line in change_lines(functions, change))


# --- Names ---

LISTS: Path_ = FORWARDING | {"__list_del_entry_valid": (107.0, 5.35)}
LISTS_NOW: Path_ = FORWARDING | {"__list_del_entry_valid_or_report": (113.0, 5.35)}


def test_a_function_with_another_name_is_one_line():
    before, after = boots(LISTS, LISTS), boots(LISTS_NOW, LISTS_NOW)
    (found,) = function_changes(before, after)
    assert found.label == "__list_del_entry_valid -> __list_del_entry_valid_or_report"
    assert (found.before, found.after, found.change) == (107.0, 113.0, pytest.approx(6.0))
    assert not notice_of_calls([found])
    lines = change_lines([found], cost_change(before, after))
    assert lines[1].split() == ["__list_del_entry_valid", "->", "__list_del_entry_valid_or_report", "107.0", "113.0",
                                "+6.0", "5.35"]  # fmt: skip


@pytest.mark.parametrize(
    ("later", "cost", "calls"),
    [
        ("__list_del_entry_valid_or_report", 20.0, 5.35),  # as often, and a fifth of the code
        ("__list_del_entry_valid_or_report", 113.0, 1.0),  # like code for each packet, and seldom
        ("prefetch", 107.0, 5.35),  # nothing in common but numbers
    ],
)
def test_what_is_no_like_is_a_gain_and_a_loss(later, cost, calls):
    before, after = boots(LISTS), boots(FORWARDING | {later: (cost, calls)})
    assert not renamed(before, after)
    assert {one.function: round(one.change) for one in function_changes(before, after)} == {
        "__list_del_entry_valid": -107, later: round(cost),
    }  # fmt: skip


def test_what_both_builds_have_is_never_taken_for_renamed():
    before = boots(LISTS)
    after = boots(LISTS | {"__list_del_entry_valid": (1.0, 0.05), "__list_del_entry_valid_or_report": (106.0, 5.3)})
    assert not renamed(before, after)


def placed(cost: CostResult, *frames: tuple[str, int | None]) -> CostResult:
    path = (FrameResult(function=name, caller=at, instructions=100.0, own=1.0, calls=1.0) for name, at in frames)
    return dataclasses.replace(cost, path=tuple(path))


def test_the_place_among_callers_tells_what_names_do_not():
    path = (("ip6_forward", None), ("lookup", 0), ("fib_table_lookup", 1))
    now = (("ip6_forward", None), ("find", 0), ("fib_table_lookup", 1))
    elsewhere = (("ip6_forward", None), ("virtnet_poll", None), ("find", 1), ("fib_table_lookup", 0))
    before = placed(boots(FORWARDING | {"lookup": (60.0, 1.0)}), *path)
    after = boots(FORWARDING | {"find": (61.0, 1.0)})
    assert not renamed(before, after)
    assert renamed(before, placed(after, *now)) == {"lookup": "find"}
    assert not renamed(before, placed(after, *elsewhere))
    drawn = icicle(Way(tree_of(placed(after, *now), before), is_compared=True))
    assert "lookup -&gt; find: 100.0 instructions" in drawn
    assert "<title>lookup:" not in drawn


# --- Parts that add up ---

_NAMES = st.sampled_from(["ip6_rcv", "ip6_rcv_core", "ip6_rcv_finish", "fib_lookup", "fib_lookup_fast", "memset"])
_BUILDS = st.dictionaries(_NAMES, st.tuples(st.floats(0.5, 900.0), st.sampled_from([0.5, 1.0, 2.0, 6.4])), min_size=1)


@given(_BUILDS, _BUILDS, st.integers(0, 6))
def test_the_parts_of_a_table_add_up_to_the_change(old: Path_, new: Path_, rows: int):
    before, after = boots(old, old), boots(new, new)
    functions = [
        dataclasses.replace(one, sure=at < rows, calls_changed=False)
        for at, one in enumerate(function_changes(before, after))
    ]  # fmt: skip
    table = changes_table(functions, cost_change(before, after))
    if table is None:
        assert not rows or not functions
        return
    *parts, whole = (float(row[3].text) for row in table.rows)
    assert sum(parts) == pytest.approx(whole, abs=0.05 * len(table.rows) + 0.01)
    assert whole == pytest.approx(after.instructions - before.instructions, abs=0.051)


@given(_BUILDS, _BUILDS)
def test_to_take_two_names_for_one_hides_nothing(old: Path_, new: Path_):
    before, after = boots(old, old), boots(new, new)
    pairs = renamed(before, after)
    assert set(pairs) <= old.keys() - new.keys()
    assert set(pairs.values()) <= new.keys() - old.keys()
    assert len(set(pairs.values())) == len(pairs)
    known = {one.function: one for one in function_changes(before, after)}
    for earlier, later in pairs.items():
        if later in known:
            change = after_of(after, later) - after_of(before, earlier)
            assert known[later].change == pytest.approx(change, abs=0.01)


def after_of(cost: CostResult, name: str) -> float:
    return next(one.instructions for one in cost.functions if one.name == name)
