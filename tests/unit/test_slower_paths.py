"""What got slower is searched, each function's worst path once, and the run is told by the search."""

from __future__ import annotations

from dataclasses import replace

import made_results
from flat_values import changed
from test_path_table import path_result

from pdrgate.measurands.slower_paths import decisive_scenario, searched_besides, slower_paths
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.reports.words.path_table import is_portfolio, path_lines
from pdrgate.results.model import ScenarioResult
from pdrgate.results.verdict import Verdict

ROUTING = changed(path_result("Routing", Verdict.REGRESSION, 0.03, __alloc_skb=91.0), name="routing")
NAT = changed(path_result("NAT", Verdict.REGRESSION, 0.05, __alloc_skb=92.0, nf_hook_slow=30.0), name="nat")
BRIDGE = changed(path_result("Bridge", Verdict.REGRESSION, 0.02, br_forward=80.0), name="bridge")
FASTER = changed(path_result("XDP", Verdict.IMPROVEMENT, -0.05), name="xdp")
EQUAL = changed(path_result("fq", Verdict.PASS, 0.004, __alloc_skb=90.0), name="fq")
PATHS = (ROUTING, EQUAL, NAT, BRIDGE, FASTER)


def _searched(path: ScenarioResult, verdict: Verdict) -> ScenarioResult:
    """The same scenario by pairs of boots, which judge its PDR as well."""
    assert path.comparison is not None
    (cost,) = path.comparison.changes
    pdr = replace(cost, measurand="PDR", change=-0.07, lower=-0.08, upper=-0.06, better="higher")
    comparison = replace(path.comparison, changes=(pdr, cost))
    return changed(path, test="The Path That Got Slowest", verdict=verdict, reason="PDR -7 %", comparison=comparison)


def test_the_slowest_is_first_and_each_function_has_one_path() -> None:
    assert slower_paths(PATHS) == [NAT, BRIDGE]
    assert slower_paths((EQUAL, FASTER)) == []


def test_a_search_is_no_path_and_the_run_is_told_by_it() -> None:
    search = _searched(NAT, Verdict.REGRESSION)
    assert searched_besides((*PATHS, search)) == [search]
    assert slower_paths((*PATHS, search)) == [NAT, BRIDGE]
    assert decisive_scenario(PATHS) is ROUTING
    assert decisive_scenario((*PATHS, search)) is search
    assert decisive_scenario((*PATHS, _searched(NAT, Verdict.INCONCLUSIVE))) is ROUTING


def test_the_table_has_a_line_for_each_path_and_a_sentence_for_the_search() -> None:
    result = made_results.result(*PATHS, _searched(NAT, Verdict.REGRESSION))
    assert is_portfolio(result)
    assert [one.path for one in path_lines(result)] == ["NAT", "Routing", "Bridge", "fq", "XDP"]
    assert said_of_paths(result)[0] == "in 3 of 5 paths, instructions per packet (median): __alloc_skb +91"
    assert said_of_paths(result)[-1].startswith(
        "NAT by pairs of boots: REGRESSION: slower: PDR 5.25 kpps against 5 kpps"
    )
    assert said_of_paths(made_results.result(*PATHS))[-1].endswith("--measure pdr")
