"""Branches and returns through thunks: judged by their number for a packet, however few instructions they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from flat_values import flat_trial
from made_results import scenario
from rule_changes import cost_changes

from pdrgate.gate.verdicts.against_baseline import measurands_in_words
from pdrgate.gate.verdicts.change_verdict import comparison, judged, summarised
from pdrgate.gate.verdicts.packet_cost import cost_result
from pdrgate.measurands import Cost, described
from pdrgate.measurands.counted.thunks import ThunkBranches, ThunkReturns
from pdrgate.measurands.functions.more_by_function import limits_of
from pdrgate.observers.function_names import branches_by, is_thunk, returns_by
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.reports.console.ending import part_lines
from pdrgate.reports.words.measurands import change_told
from pdrgate.reports.words.memory_words import memory_part
from pdrgate.results.model import ChangeResult, CostResult
from pdrgate.results.verdict import Verdict

ROUTED = {"ip_forward": 1.0, "fib_table_lookup": 1.0}
RAX, RCX, SAFE = "__x86_indirect_thunk_rax", "__x86_indirect_thunk_rcx", "srso_alias_return_thunk"


def trial(calls: Mapping[str, float], batch: int = 64) -> Trial:
    """One at saturation, in which a packet calls functions so often; each call is of four instructions."""
    packets = 100_000
    counted = ROUTED | {"virtnet_poll": 1 / batch, **calls}
    functions = {name: (round(4 * each * packets), round(each * packets)) for name, each in counted.items()}
    return flat_trial(4e4, 0.25, 2 * packets, packets, phase=Phase.SATURATION, functions=functions)


def build(*boots: Mapping[str, float], batch: int = 64) -> CostResult:
    found = cost_result([[trial(one, batch)] for one in boots], 0.005)
    assert found is not None
    return found


def changed(before: CostResult, after: CostResult) -> dict[str, ChangeResult]:
    return {one.measurand: one for one in cost_changes(before, after)}


def test_retpolines_where_the_baseline_has_none_are_a_regression() -> None:
    after = build({RAX: 8.4, RCX: 3.0}, {RAX: 8.4, RCX: 3.02})
    change = changed(build({}, {}), after)["branches by thunks"]
    assert change.verdict is Verdict.REGRESSION
    told = "each packet takes 11.4 more indirect branches through thunks (0.0 -> 11.4), 8.4 of them in " + RAX
    assert described(change.measurand).told(change) == told
    assert judged([change]).reason == told
    assert limits_of(change) == pytest.approx((11.4, 11.42))
    assert change_told(change) == "+11.4"
    result = replace(scenario(), comparison=comparison([change], "the base", {}, pairs=2))
    assert list(part_lines(memory_part(result)))[1:] == [
        "  MEASURAND           FUNCTION                  BEFORE  AFTER  CHANGE",
        f"  branches by thunks  {RAX}     0.0    8.4    +8.4",
        f"                      {RCX}     0.0    3.0    +3.0",
        "                      these together                            +11.4",
        "                      a packet                     0.0   11.4   +11.4",
    ]


def test_returns_are_a_number_of_their_own() -> None:
    before, after = build({RAX: 5.0}, {RAX: 5.1}), build({RAX: 5.0, SAFE: 125.0}, {RAX: 5.1, SAFE: 126.0})
    (change,) = cost_changes(before, after)
    assert (change.measurand, change.verdict) == ("returns by thunks", Verdict.REGRESSION)


def test_fewer_are_told_and_no_improvement() -> None:
    (change,) = cost_changes(build({RAX: 5.0}, {RAX: 5.0}), build({}, {}))
    assert change.verdict is Verdict.PASS
    assert "5.0 fewer indirect branches" in described(change.measurand).told(change)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(({RAX: 5.0}, {RAX: 5.2}), ({RAX: 5.6}, {RAX: 5.9}), id="as equal boots scatter"),
        pytest.param(({RAX: 5.0}, {RAX: 8.0}), ({RAX: 9.0}, {RAX: 12.0}), id="apart by less than boots of one build"),
        pytest.param(({RAX: 5.0}, {RAX: 5.0}), ({RCX: 5.0}, {RCX: 5.0}), id="another register"),
        pytest.param(({RAX: 40.0}, {RAX: 40.0}), ({RAX: 40.6}, {RAX: 40.6}), id="a small share of many"),
        pytest.param(({RAX: 0.0},), ({RAX: 9.0},), id="one boot of each"),
    ],
)  # fmt: skip
def test_what_is_no_change(before: tuple[dict[str, float], ...], after: tuple[dict[str, float], ...]) -> None:
    assert not cost_changes(build(*before), build(*after))


def test_a_growth_within_the_tolerance_passes() -> None:
    (change,) = cost_changes(build({RAX: 5.0}, {RAX: 5.0}), build({RAX: 6.2}, {RAX: 6.2}))
    assert change.verdict is Verdict.PASS


def test_smaller_batches_explain_more_for_each_packet() -> None:
    before, after = build({RAX: 4.0}, {RAX: 4.0}), build({RAX: 8.0}, {RAX: 8.0}, batch=32)
    assert not cost_changes(before, after)


def test_replacements_and_programs_alone_are_not_judged() -> None:
    before, after = build({}, {}), build({RAX: 9.0}, {RAX: 9.0})
    assert not cost_changes(replace(before, each="replacement"), replace(after, each="replacement"))
    assert not cost_changes(replace(before, alone=True), replace(after, alone=True))
    assert not cost_changes(None, after)


def test_a_boot_tells_both_numbers() -> None:
    trials = [trial({RAX: 5.0, SAFE: 120.0, "srso_alias_safe_ret": 120.0})]
    assert ThunkBranches(0.005).value(trials) == pytest.approx(5.0)
    assert ThunkReturns(0.005).value(trials) == pytest.approx(120.0)
    assert ThunkBranches(0.005).value([trial({})]) == 0.0
    assert ThunkBranches(0.005).value([]) is None


@pytest.mark.parametrize(
    ("name", "branches", "returns"),
    [
        ("__x86_indirect_thunk_r11", True, False), ("__x86_indirect_call_thunk_rax", True, False),
        ("__x86_indirect_jump_thunk_rdx", True, False), ("__x86_indirect_its_thunk_rax", True, False),
        ("__x86_indirect_paranoid_thunk_r11", True, False), ("__pi___x86_indirect_thunk_rax", True, False),
        ("__llvm_retpoline_r11", True, False), ("__llvm_slsblr_thunk_x8", True, False),
        ("__call_indirect_x8", True, False), ("__s390_indirect_jump_r1", True, False),
        ("__x86_return_thunk", False, True), ("srso_return_thunk", False, True),
        ("srso_alias_return_thunk", False, True), ("retbleed_return_thunk", False, True),
        ("its_return_thunk", False, True), ("call_depth_return_thunk", False, True),
        # A return goes through one of the above first, and from there on.
        ("srso_alias_safe_ret", False, False), ("retbleed_untrain_ret", False, False),
        ("srso_safe_ret", False, False), ("entry_untrain_ret", False, False), ("entry_ibpb", False, False),
        ("write_ibpb", False, False), ("clear_bhb_loop", False, False),
    ],
)  # fmt: skip
def test_thunks_are_known_by_their_names(name: str, branches: bool, returns: bool) -> None:
    assert is_thunk(name)
    assert (branches_by(name), returns_by(name)) == (branches, returns)


@pytest.mark.parametrize(
    "name",
    [
        "ip_forward",
        "thunk_returns",
        "indirect_thunk",
        "__return_address",
        "set_return_thunk",
        "retbleed_select_mitigation",
    ],
)
def test_other_functions_are_none(name: str) -> None:
    assert not is_thunk(name)


def test_a_first_result_names_what_is_judged_and_no_thunks() -> None:
    kinds = (Cost.about, ThunkBranches.about, ThunkReturns.about)
    found = [summarised(one.name, one.unit, one.better, (100.0, 100.0)) for one in kinds]
    measured = [one for one in found if one is not None]
    assert len(measured) == len(kinds)
    assert measurands_in_words(measured) == "cost 100 instructions/packet"
    assert "branches by thunks 100" in measurands_in_words(measured[1:])  # where nothing else is known
