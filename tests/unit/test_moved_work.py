"""Work that two builds do in other functions: one row, and blamed for what remains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_changes import memory_changes

from pdrgate.measurands.counted.cost import PARTS_OF_COST
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.measurands.functions.moved_work import MovedWork, moved_work, shown_by
from pdrgate.measurands.memory.touched_lines import CacheLines
from pdrgate.results.model import CostResult, FrameResult, FunctionResult, MemoryFunction, MemoryResult

Costs = Mapping[str, float]
"""Instructions for a packet by function."""
Lines = Mapping[str, Mapping[str, float]]
"""Lines for a packet by function and kind."""


def cost(functions: Costs, *path: tuple[str, int | None]) -> CostResult:
    """A build in which each function is called once; and chains of callers, each by the number of its caller."""
    return CostResult(
        instructions=sum(functions.values()), batch=64.0, trials=2,
        functions=tuple(
            FunctionResult(
                name=name, instructions=each, calls=1.0, deviation=0.1, fewest_calls=1.0, most_calls=1.0
            )
            for name, each in functions.items()
        ),
        path=tuple(FrameResult(function=name, caller=at, instructions=1.0, own=1.0, calls=1.0) for name, at in path),
    )  # fmt: skip


def memory(lines: Lines, fill: frozenset[str] = frozenset()) -> MemoryResult:
    functions = tuple(
        MemoryFunction(
            name=name, values={"cache lines": (sum(kinds.values()),) * 2}, kinds=kinds, fills_pages=name in fill
        )
        for name, kinds in lines.items()
    )
    return MemoryResult(
        trials=2, values={"cache lines": (sum(map(sum, (kinds.values() for kinds in lines.values()))),) * 2},
        functions=functions,
    )  # fmt: skip


FORWARD = {"ip_rcv": 90.0, "ip_forward": 173.0}
CALLS = (("ip_rcv", None), ("ip_forward", 0))
CLEARED = frozenset({"wipe_page", "init_pages"})


def test_what_clears_pages_in_either_build_is_one_row_and_what_remains_is_blamed() -> None:
    """As IPv4 Routing By XDP of Linux 7.0 against 6.19: "most in kernel_init_pages (+177)"."""
    before = cost(FORWARD | {"wipe_page": 169.0, "add_buffer": 134.0})
    after = cost(FORWARD | {"init_pages": 177.0, "add_buffer": 159.0})
    seen = (
        memory({"wipe_page": {"the direct map": 3.0}}, CLEARED),
        memory({"init_pages": {"the direct map": 9.0}}, CLEARED),
    )
    moved = moved_work(before, after, seen)
    assert moved == (MovedWork("init_pages", ("wipe_page",)),)
    changes = function_changes(before, after, moved)
    assert [(one.label, one.change) for one in changes] == [
        ("add_buffer", 25.0), ("init_pages with wipe_page", pytest.approx(8.0)),
    ]  # fmt: skip
    assert not any(one.calls_changed for one in changes)
    whole = after.instructions - before.instructions
    assert PARTS_OF_COST.within(whole, changes) == "most of it in add_buffer (+25), init_pages with wipe_page (+8.0)"


@pytest.mark.parametrize(
    ("there", "here"),
    [
        # It was called, and is inlined into its caller.
        ((*CALLS, ("checks", 1)), CALLS),
        # It has become another function of the same caller.
        ((*CALLS, ("checks", 0)), (*CALLS, ("ip_forward", 0))),
    ],
)
def test_what_is_called_by_or_shares_a_caller_with_what_has_its_work_now_is_one_row(
    there: tuple[tuple[str, int | None], ...], here: tuple[tuple[str, int | None], ...]
) -> None:
    before = cost(FORWARD | {"checks": 60.0}, *there)
    after = cost(FORWARD | {"ip_forward": 230.0}, *here)
    (moved,) = moved_work(before, after)
    assert moved == MovedWork("ip_forward", ("checks",))
    (change,) = function_changes(before, after)
    assert (change.label, change.change) == ("ip_forward with checks", pytest.approx(-3.0))
    assert not change.calls_changed


def test_what_lost_the_lines_that_another_gained_is_one_row() -> None:
    before, after = cost(FORWARD | {"find": 60.0}), cost(FORWARD | {"ip_forward": 231.0})
    route = {"fib_alias": 2.0, "rtable": 1.0}
    old = memory({"find": route, "ip_forward": {"net_device": 1.0}})
    assert moved_work(before, after, (old, memory({"ip_forward": {"net_device": 1.0, **route}}))) == (
        MovedWork("ip_forward", ("find",)),
    )
    elsewhere = memory({"ip_forward": {"net_device": 1.0, "map routes": 3.0}})
    assert moved_work(before, after, (old, elsewhere)) == ()
    on_stack = (memory({"find": {"stacks": 3.0}}), memory({"ip_forward": {"stacks": 3.0}}))
    assert moved_work(before, after, on_stack) == (), "all functions have lines of stacks"


def test_a_function_that_became_several_is_one_row_with_these() -> None:
    path = (*CALLS, ("receive", 0))
    now = (*CALLS, ("receive_begin", 0), ("receive_end", 0))
    before = cost(FORWARD | {"receive": 100.0}, *path)
    after = cost(FORWARD | {"receive_begin": 61.0, "receive_end": 45.0}, *now)
    assert moved_work(before, after) == (MovedWork("receive_begin", ("receive", "receive_end")),)
    (change,) = function_changes(before, after)
    assert (change.label, change.change) == ("receive_begin with receive and 1 more", pytest.approx(6.0))


def test_what_code_of_one_caller_called_and_calls_now_is_one_row() -> None:
    """As where memory trials see no page cleared, and calls are not followed: code tells who calls it."""
    often = FunctionResult(name="wipe_page", instructions=169.0, calls=8.0, deviation=0.1)
    before = cost(FORWARD | {"wipe_page": 169.0})
    functions = (*(one for one in before.functions if one.name != "wipe_page"), often)
    before = replace(before, functions=functions, callers={"wipe_page": ("ip_forward",)})
    after = replace(cost(FORWARD | {"init_pages": 177.0}), callers={"init_pages": ("ip_forward",)})
    assert moved_work(before, after) == (MovedWork("init_pages", ("wipe_page",)),)
    elsewhere = replace(after, callers={"init_pages": ("ip_rcv",)})
    assert moved_work(before, elsewhere) == ()
    inlined = cost(FORWARD | {"ip_forward": 173.0 + 160.0})
    assert moved_work(before, inlined) == (MovedWork("ip_forward", ("wipe_page",)),)


@pytest.mark.parametrize("gained", [20.0, 400.0])
def test_what_gained_far_less_or_more_than_was_lost_is_a_gain_and_a_loss(gained: float) -> None:
    before = cost(FORWARD | {"checks": 60.0}, *CALLS, ("checks", 1))
    after = cost(FORWARD | {"ip_forward": FORWARD["ip_forward"] + gained}, *CALLS)
    assert moved_work(before, after) == ()
    assert {one.function: round(one.change) for one in function_changes(before, after)} == {
        "ip_forward": gained, "checks": -60,
    }  # fmt: skip


def test_what_has_nothing_in_common_but_numbers_is_a_gain_and_a_loss() -> None:
    before, after = cost(FORWARD | {"remove": 107.0}), cost(FORWARD | {"prefetch": 107.0})
    assert moved_work(before, after) == ()
    assert len(function_changes(before, after)) == 2


def test_lines_that_moved_with_the_work_are_no_change_and_those_beside_it_are() -> None:
    before, after = cost(FORWARD | {"find": 60.0}), cost(FORWARD | {"ip_forward": 231.0})
    old = memory({"find": {"fib_alias": 4.0}, "ip_forward": {"net_device": 1.0}})
    same, more = (
        memory({"ip_forward": {"net_device": 1.0, "fib_alias": lines}}) for lines in (4.0, 5.0)
    )  # fmt: skip
    assert memory_changes(old, same, moved_work(before, after, (old, same)), [CacheLines]) == ()
    (change,) = memory_changes(old, more, moved_work(before, after, (old, more)), [CacheLines])
    (part,) = change.parts
    assert (part.label, part.change, part.kinds["fib_alias"]) == ("ip_forward with find", 1.0, 1.0)


_NAMES = st.sampled_from(["a", "b", "c", "d", "e", "f", "g"])
_BUILDS = st.dictionaries(_NAMES, st.floats(0.5, 900.0), min_size=1)
_PATHS = st.lists(_NAMES, max_size=6)


@given(_BUILDS, _BUILDS, _PATHS, _PATHS)
def test_what_moved_hides_nothing_of_the_whole(old: Costs, new: Costs, there: list[str], here: list[str]) -> None:
    before, after = (
        cost(each, *((name, at - 1 if at else None) for at, name in enumerate(path)))
        for each, path in ((old, there), (new, here))
    )
    moved = moved_work(before, after)
    members = [name for one in moved for name in one.members]
    assert len(members) == len(set(members))
    assert shown_by(moved).keys() == set(members)
    changes = function_changes(before, after, moved)
    left = abs(after.instructions - before.instructions - sum(one.change for one in changes))
    assert left <= 0.1 * len(old.keys() | new.keys()), "what changed by less than a tenth has no row"
