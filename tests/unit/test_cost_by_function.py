"""Functions decide a REGRESSION of the cost that is close to its tolerance: their sum repeats better than the whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pdrgate.gate.verdicts.change_verdict import judged
from pdrgate.measurands.counted.cost import decided_by_functions
from pdrgate.reports.words.costs import changes_table
from pdrgate.results.model import ChangeResult, FunctionChange
from pdrgate.results.verdict import Verdict


def cost(lower: float, change: float, upper: float, measurand: str = "cost") -> ChangeResult:
    """A change of a packet of 2 500 instructions, of which 1 % more are accepted."""
    return ChangeResult(
        measurand=measurand, change=change, lower=lower, upper=upper, confidence=0.95, tolerance=0.01,
        baseline=2500.0, candidate=2500.0 * (1 + change), unit="instructions/packet", better="lower",
        verdict=Verdict.REGRESSION,
    )  # fmt: skip


def function(name: str, change: float, sure: bool = True) -> FunctionChange:
    return FunctionChange(function=name, before=0.0, after=change, change=change, sure=sure)


MORE = (function("bpf_fib_set_fwd_params", 17.0), function("bpf_xdp_fib_lookup", 2.0), function("others", 4.0, False))


def test_what_functions_come_to_within_the_tolerance_is_no_regression() -> None:
    """As IPv4 Routing By XDP of Linux 7.3 against 7.2: +1.4 %, of which bursts of some trials are 0.4 %."""
    (found,) = decided_by_functions([cost(0.009, 0.014, 0.018)], MORE)
    assert found.verdict is Verdict.PASS
    assert judged([found], MORE).reason == (
        "not slower: a packet costs 1.4 % more instructions (+0.9 to +1.8 %), tolerance 1.0%; most of it in "
        "bpf_fib_set_fwd_params (+17), bpf_xdp_fib_lookup (+2.0)"
    )


@pytest.mark.parametrize(
    ("change", "functions"),
    [
        (cost(0.009, 0.014, 0.018), (function("slower", 30.0),)),  # 1.2 %
        (cost(0.012, 0.014, 0.018), MORE),  # the whole has surely more
        (cost(0.005, 0.014, 0.018), ()),  # nobody knows its functions
        (cost(0.005, 0.014, 0.018), (function("a", 1.0),)),  # what is in another function in each trial
        (cost(0.009, 0.014, 0.018, "cost of a byte"), MORE),
    ],
)
def test_functions_take_no_other_regression_back(change: ChangeResult, functions: tuple[FunctionChange, ...]) -> None:
    (found,) = decided_by_functions([change], functions)
    assert found.verdict is Verdict.REGRESSION


def test_what_no_function_has_more_of_has_a_row_of_its_own() -> None:
    table = changes_table([MORE[0], *(replace(one, sure=False) for one in MORE[1:])], cost(0.009, 0.014, 0.018))
    assert table is not None
    assert [(row[0].text, row[3].text) for row in table.rows] == [
        ("bpf_fib_set_fwd_params", "+17.0"), ("2 other functions", "+6.0"),
        ("what differs from trial to trial", "+12.0"), ("a packet", "+35.0"),
    ]  # fmt: skip
