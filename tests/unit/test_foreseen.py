"""Whether one pair is enough of a path: what other paths foretell, and what the base came to before."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.gate.comparisons.pairs.foreseen import FORETOLD, UNCHANGED, Foreseen
from pdrgate.measurands.functions.foretold_change import foretold_change, known_calls
from pdrgate.replication import PairsRule, Samples
from pdrgate.results.model import CostResult, FunctionChange, FunctionResult
from pdrgate.results.verdict import Verdict
from pdrgate.stats.pooled import Deviation

KNOWN = Deviation(0.004, 8.0)
RULE = PairsRule(comparisons=72)


def change(
    name: str, per_call: tuple[float, float], calls: tuple[float, float], *, sure: bool = True
) -> FunctionChange:
    before, after = per_call[0] * calls[0], per_call[1] * calls[1]
    return FunctionChange(
        function=name, before=before, after=after, change=after - before, sure=sure, calls_before=calls[0],
        calls_after=calls[1],
    )  # fmt: skip


def cost(**functions: tuple[float, float]) -> CostResult:
    """A packet's cost: instructions and calls of each function, and 3000 instructions of one that both builds have."""
    each = {"everything_else": (3000.0, 1.0)} | functions
    found = tuple(
        FunctionResult(name=name, instructions=own, calls=calls, deviation=0.1) for name, (own, calls) in each.items()
    )
    return CostResult(instructions=sum(one.instructions for one in found), batch=None, trials=3, functions=found)


def vouched(foreseen: Foreseen, before: CostResult, after: CostResult) -> frozenset[Verdict]:
    return foreseen.vouched((before, after), (before.instructions, after.instructions), KNOWN)


@given(st.floats(1, 500), st.floats(1, 500), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_a_calls_change_times_the_calls_of_another_path_is_what_that_path_shows(
    before: float, after: float, there: int, calls: int, calls_now: int
) -> None:
    known = known_calls([[change("ip_forward", (before, after), (there, there))]])
    here = change("ip_forward", (before, after), (calls, calls_now))
    found = foretold_change([here], known)
    assert found is not None
    assert found[0] == pytest.approx(here.change)
    assert found[1] == pytest.approx(here.change)


def test_a_function_that_is_new_is_foretold_by_what_a_call_of_it_takes_elsewhere() -> None:
    known = known_calls([[change("new_check", (0.0, 170.0), (0.0, 1.0))]])
    assert foretold_change([change("new_check", (0.0, 170.0), (0.0, 2.0))], known) == (340.0, 340.0)


@pytest.mark.parametrize(
    "here",
    [
        change("nf_hook_slow", (40.0, 90.0), (1.0, 1.0)),
        change("ip_forward", (100.0, 340.0), (1.0, 1.0)),
        replace(change("ip_forward", (100.0, 270.0), (1.0, 1.0)), calls_before=None),
        replace(change("ip_forward", (100.0, 270.0), (1.0, 1.0)), calls_after=0.0),
    ],
    ids=["of another function", "by more than a call's change", "calls are not counted", "no call of it is seen"],
)
def test_nothing_is_foretold_of_a_change_that_no_other_path_explains(here: FunctionChange) -> None:
    assert foretold_change([here], known_calls([[change("ip_forward", (100.0, 270.0), (1.0, 1.0))]])) is None


def test_what_did_not_surely_change_foretells_nothing_and_needs_no_foretelling() -> None:
    unsure = change("ip_rcv", (100.0, 100.2), (1.0, 1.0), sure=False)
    assert known_calls([[unsure]]) == {}
    assert foretold_change([unsure], {}) == (0.0, 0.0)


def test_one_pair_may_say_anything_where_it_shows_what_other_paths_foretell() -> None:
    foreseen = Foreseen(calls=known_calls([[change("ip_forward", (100.0, 270.0), (1.0, 1.0))]]))
    assert vouched(foreseen, cost(ip_forward=(200.0, 2.0)), cost(ip_forward=(540.0, 2.0))) == FORETOLD
    assert vouched(foreseen, cost(), cost()) == FORETOLD
    assert not vouched(foreseen, cost(), cost(br_forward=(90.0, 1.0)))


def test_a_whole_that_its_functions_do_not_explain_has_a_second_pair() -> None:
    before, after = cost(), cost()
    known = Foreseen(calls={})
    assert known.vouched((before, after), (3000.0, 3020.0), KNOWN) == FORETOLD
    assert not known.vouched((before, after), (3000.0, 3040.0), KNOWN)


def test_a_base_whose_numbers_hold_vouches_for_a_pass_alone() -> None:
    held = Foreseen(base=(3000.0, 3003.0))
    assert vouched(held, cost(), cost()) == UNCHANGED
    assert not vouched(held, cost(), cost(ip_forward=(90.0, 1.0)))
    assert not vouched(Foreseen(base=(3000.0, 3003.0)), cost(gc=(60.0, 1.0)), cost(gc=(60.0, 1.0)))
    assert not vouched(Foreseen(base=(3000.0,)), cost(), cost())
    assert not Foreseen(base=(3000.0,)).possible


def test_what_a_function_differs_by_from_boot_to_boot_needs_no_second_pair_and_another_call_does() -> None:
    """Counted of equal kernels: one function differed by 3 of 7826 instructions, and a bucket of the bridge's table
    had one entry more or less."""
    for known, verdicts in ((Foreseen(calls={}), FORETOLD), (Foreseen(base=(3125.0, 3125.0)), UNCHANGED)):
        before = cost(fib_table_lookup=(100.0, 1.0), memcmp=(25.0, 2.0))
        assert vouched(known, before, cost(fib_table_lookup=(102.5, 1.0), memcmp=(25.0, 2.0))) == verdicts
        assert not vouched(known, before, cost(fib_table_lookup=(104.0, 1.0), memcmp=(25.0, 2.0)))
        assert not vouched(known, before, cost(fib_table_lookup=(100.0, 1.0), memcmp=(23.0, 1.0)))


def test_a_build_that_was_not_counted_is_vouched_for_by_nothing() -> None:
    assert not Foreseen(calls={}).vouched((None, cost()), (1.0, 1.0), KNOWN)


def pairs(*ratios: float, known: Deviation | None = KNOWN) -> list[Samples]:
    return [Samples("cost", "instructions", "lower", 0.01, (3000.0,) * len(ratios),
                    tuple(3000.0 * one for one in ratios), known)]  # fmt: skip


def test_one_pair_ends_a_comparison_by_the_odds_that_more_pairs_need_too() -> None:
    alone = replace(RULE, alone=FORETOLD)
    assert RULE.standing(pairs(1.0)).verdict is None
    assert alone.standing(pairs(1.0)).verdict is Verdict.PASS
    assert alone.standing(pairs(1.06)).verdict is Verdict.REGRESSION
    assert alone.standing(pairs(0.94)).verdict is Verdict.IMPROVEMENT
    assert alone.standing(pairs(1.01)).verdict is None
    assert alone.standing(pairs(1.02)).verdict is None
    assert alone.standing(pairs(1.0, known=None)).verdict is None


def test_one_pair_ends_it_with_no_verdict_that_nothing_vouches_for() -> None:
    only_pass = replace(RULE, alone=UNCHANGED)
    assert only_pass.standing(pairs(1.06)).verdict is None
    assert only_pass.standing(pairs(1.06), ended=True).verdict is Verdict.INCONCLUSIVE
    assert only_pass.standing(pairs(1.0)).verdict is Verdict.PASS


def test_the_second_pair_is_not_begun_before_the_first_has_said_whether_it_is_enough() -> None:
    assert RULE.wants(2)
    assert not replace(RULE, alone=FORETOLD).wants(2)
    assert replace(RULE, alone=FORETOLD).wants(2, earlier=2)
    assert replace(RULE, alone=FORETOLD).wants(4)


@given(st.lists(st.floats(0.9, 1.1), min_size=2, max_size=8))
def test_from_the_second_pair_on_nothing_that_vouches_for_one_pair_counts(ratios: list[float]) -> None:
    assert replace(RULE, alone=FORETOLD).standing(pairs(*ratios)) == RULE.standing(pairs(*ratios))


@given(st.floats(0.9, 1.1))
def test_a_single_pair_passes_or_fails_only_where_its_evidence_is_what_the_rule_asks_for(ratio: float) -> None:
    said = replace(RULE, alone=FORETOLD).standing(pairs(ratio))
    if said.verdict is Verdict.REGRESSION:
        evidence = said.changes[0].evidence
        assert evidence is not None
        assert evidence.slower >= math.log(200 * 72)
    if said.verdict is Verdict.PASS:
        evidence = said.changes[0].evidence
        assert evidence is not None
        assert evidence.slower <= -math.log(100)
